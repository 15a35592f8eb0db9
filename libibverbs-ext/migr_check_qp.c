// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The record of a queue pair: references, attributes, progress and rings. The
 * work requests are in migr_check_work.c.
 *
 * What the driver's REFILL would refuse is refused here: the dump is parsed,
 * too, and then the source still runs.
 */

#include <errno.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>

#include "migr_check.h"
#include "migr_qp.h"

#define N_ELEM(a) (sizeof(a) / sizeof((a)[0]))

/* rdma_rxe's limits (rxe_param.h) */
#define MIN_QPN 16
#define MAX_QP_WR (1U << 20)
#define MAX_RD_ATOMIC 128
#define MAX_INLINE (RXE_MIGR_MAX_SGE * sizeof(struct rxe_sge))

#define PSN_MASK MIGR_PSN_MASK
#define QPN_MASK 0xffffffU
#define NO_OPCODE 0xffffffffU
#define MAX_INT 0x7fffffffU

/* BTH opcodes (IBA 9.2.1): five bits below those of the QP's type */
#define OPCODE_BITS 0x1fU
#define SEND_MIDDLE 0x01U /* SEND_FIRST is 0 */

/* what types of QPs know, as bits: requests, and RC's first and middle response */
static const struct opcodes {
	uint32_t type;
	uint32_t requests, unfinished;
} opcodes[] = {
	[IBV_QPT_RC] = { 0x00, 0x30d81fff, 0x00006000 },
	[IBV_QPT_UC] = { 0x20, 0x00000fff, 0 },
	[IBV_QPT_UD] = { 0x60, 0x00000030, 0 },
};

#define F(member, lo, hi) MIGR_FIELD(rxe_migr_rec_qp, member, lo, hi)

static const struct migr_field creation[] = {
	F(qpn, MIN_QPN, QPN_MASK),
	F(qp_type, IBV_QPT_RC, IBV_QPT_UD),
	F(sq_sig_all, 0, 1),
	F(max_send_wr, 0, MAX_QP_WR),
	F(max_send_sge, 0, RXE_MIGR_MAX_SGE),
	F(max_inline_data, 0, MAX_INLINE),
	F(max_recv_wr, 0, MAX_QP_WR),
	F(max_recv_sge, 0, RXE_MIGR_MAX_SGE),
	F(last_wqe, 0, 1),
	F(peer_absent, 0, 1),
	F(reserved, 0, 0),
};

static const struct migr_field attributes[] = {
	F(state, IBV_QPS_RESET, IBV_QPS_ERR),
	F(pkey_index, 0, 0xffff),
	F(port_num, 0, 1),
	F(path_mtu, 1, 5),
	F(dest_qpn, 0, QPN_MASK),
	F(rq_psn, 0, PSN_MASK),
	F(sq_psn, 0, PSN_MASK),
	F(max_rd_atomic, 0, MAX_RD_ATOMIC),
	F(max_dest_rd_atomic, 0, MAX_RD_ATOMIC),
	F(min_rnr_timer, 0, 31),
	F(timeout, 0, 31),
	F(retry_cnt, 0, 7),
	F(rnr_retry, 0, 7),
	F(sq_draining, 0, 1),
	F(en_sqd_async_notify, 0, 1),
	F(network_type, 0, RXE_NETWORK_TYPE_IPV6),
};

static const struct migr_field progress[] = {
	F(epoch, 0, UINT32_MAX - 1),  F(req_psn, 0, PSN_MASK),
	F(req_need_rd_atomic, 0, 1),  F(req_noack_pkts, 0, MAX_INT),
	F(comp_psn, 0, PSN_MASK),     F(resp_psn, 0, PSN_MASK),
	F(resp_ack_psn, 0, PSN_MASK), F(resp_status, 0, IBV_WC_GENERAL_ERR),
	F(wqe.valid, 0, 1),
};

/* what a connected QP must have besides */
static const struct migr_field connected[] = {
	F(port_num, 1, 1),
	F(dest_qpn, 1, QPN_MASK),
	F(network_type, RXE_NETWORK_TYPE_IPV4, RXE_NETWORK_TYPE_IPV6),
};

bool migr_qp_connected(const struct rxe_migr_rec_qp *qp)
{
	return qp->qp_type != IBV_QPT_UD && qp->state >= IBV_QPS_RTR &&
	       qp->state <= IBV_QPS_SQD;
}

bool migr_gid_is_ipv4(const uint8_t *gid)
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid, prefix, sizeof(prefix));
}

static int check_state(const struct rxe_migr_rec_qp *qp, struct migr_error *err)
{
	const struct rxe_migr_rec *rec = &qp->rec;
	int ret;

	if (qp->state == IBV_QPS_SQE)
		return migr_bad(err, rec,
				"state is SQE, which rdma_rxe does not have");
	if (qp->access_flags & ~MIGR_ACCESS_ALL)
		return migr_bad(err, rec, "access_flags is %#x",
				qp->access_flags);
	if (qp->max_dest_rd_atomic & (qp->max_dest_rd_atomic - 1))
		return migr_bad(err, rec,
				"max_dest_rd_atomic is %u, not a power of two",
				qp->max_dest_rd_atomic);
	if (qp->last_wqe &&
	    (qp->state != IBV_QPS_ERR || qp->srq == RXE_MIGR_NO_HANDLE))
		return migr_bad(err, rec,
				"last_wqe is 1, in state %u with srq %u",
				qp->state, qp->srq);
	if (qp->peer_absent && !migr_qp_connected(qp))
		return migr_bad(err, rec,
				"peer_absent is 1, in state %u of type %u",
				qp->state, qp->qp_type);
	if (qp->state == IBV_QPS_INIT && !qp->port_num)
		return migr_bad(err, rec, "port_num is 0 in state INIT");
	if (!migr_qp_connected(qp))
		return 0;

	ret = migr_check_fields(rec, connected, N_ELEM(connected), err);
	if (ret)
		return ret;
	if (!qp->life)
		return migr_bad(err, rec, "life is 0, in state %u", qp->state);
	if (migr_gid_is_ipv4(qp->dgid) !=
	    (qp->network_type == RXE_NETWORK_TYPE_IPV4))
		return migr_bad(
			err, rec,
			"network_type is %u, dgid is of the other family",
			qp->network_type);
	return 0;
}

static int check_opcode(const struct rxe_migr_rec_qp *qp, const char *field,
			uint32_t opcode, uint32_t allowed,
			struct migr_error *err)
{
	const uint32_t type = opcodes[qp->qp_type].type;

	if (opcode == NO_OPCODE || ((opcode & ~OPCODE_BITS) == type &&
				    allowed >> (opcode & OPCODE_BITS) & 1))
		return 0;
	return migr_bad(err, &qp->rec, "%s is %#x", field, opcode);
}

static int check_opcodes(const struct rxe_migr_rec_qp *qp,
			 struct migr_error *err)
{
	const struct opcodes *known = &opcodes[qp->qp_type];
	int ret;

	ret = check_opcode(qp, "req_opcode", qp->req_opcode, known->requests,
			   err);
	if (!ret)
		ret = check_opcode(qp, "comp_opcode", qp->comp_opcode,
				   known->unfinished, err);
	if (!ret)
		ret = check_opcode(qp, "resp_opcode", qp->resp_opcode,
				   known->requests, err);
	return ret;
}

static int check_progress(const struct rxe_migr_rec_qp *qp,
			  struct migr_error *err)
{
	const struct rxe_migr_rec *rec = &qp->rec;
	const uint32_t mask = qp->sq.index_mask;

	/* PSNs wrap: the distance is a signed number of 24 bits */
	if (qp->qp_type == IBV_QPT_RC &&
	    ((qp->req_psn - qp->comp_psn) & (PSN_MASK + 1) >> 1))
		return migr_bad(err, rec, "req_psn is %#x, before comp_psn %#x",
				qp->req_psn, qp->comp_psn);
	if (qp->req_wqe_index > mask ||
	    ((qp->req_wqe_index - qp->sq.consumer) & mask) >
		    ((qp->sq.producer - qp->sq.consumer) & mask))
		return migr_bad(
			err, rec,
			"req_wqe_index is %u, the send queue goes from %u to %u",
			qp->req_wqe_index, qp->sq.consumer, qp->sq.producer);
	if (qp->req_rd_atomic > qp->max_rd_atomic)
		return migr_bad(err, rec,
				"req_rd_atomic is %u, max_rd_atomic is %u",
				qp->req_rd_atomic, qp->max_rd_atomic);
	if (qp->resp_resid > qp->resp_length &&
	    qp->resp_resid != sizeof(uint64_t)) /* an atomic sets no length */
		return migr_bad(err, rec, "resp_resid is %u, resp_length is %u",
				qp->resp_resid, qp->resp_length);
	if (qp->state != IBV_QPS_ERR && !qp->wqe.valid &&
	    (qp->resp_opcode & ~SEND_MIDDLE) == opcodes[qp->qp_type].type)
		return migr_bad(err, rec,
				"resp_opcode is %#x, without a receive WQE",
				qp->resp_opcode);
	return check_opcodes(qp, err);
}

/* who has an SRQ has no receive queue of his own */
static int check_no_rq(const struct rxe_migr_rec_qp *qp, struct migr_error *err)
{
	static const struct rxe_migr_ring none;

	if (qp->max_recv_wr || qp->max_recv_sge ||
	    memcmp(&qp->rq, &none, sizeof(none)))
		return migr_bad(err, &qp->rec,
				"rq is not empty, although srq is %u", qp->srq);
	return 0;
}

static int check_rings(const struct rxe_migr_rec_qp *qp, struct migr_error *err)
{
	const size_t sges = qp->max_send_sge * sizeof(struct rxe_sge);
	const struct migr_ring_check sq = {
		.name = "sq",
		.ring = &qp->sq,
		.entries = qp->max_send_wr,
		.entry_size =
			sizeof(struct rxe_send_wqe) +
			(sges > qp->max_inline_data ? sges
						    : qp->max_inline_data),
	};
	const struct migr_ring_check rq = {
		.name = "rq",
		.ring = &qp->rq,
		.entries = qp->max_recv_wr,
		.entry_size = sizeof(struct rxe_recv_wqe) +
			      qp->max_recv_sge * sizeof(struct rxe_sge),
	};
	uint64_t length;
	int ret;

	ret = migr_check_ring(&qp->rec, &sq, err);
	if (!ret && qp->srq == RXE_MIGR_NO_HANDLE)
		ret = migr_check_ring(&qp->rec, &rq, err);
	else if (!ret)
		ret = check_no_rq(qp, err);
	if (ret)
		return ret;

	length =
		sizeof(*qp) +
		(uint64_t)qp->max_dest_rd_atomic * sizeof(struct rxe_migr_res) +
		migr_ring_bytes(&qp->sq) + migr_ring_bytes(&qp->rq);
	if (qp->rec.length != length)
		return migr_bad(err, &qp->rec,
				"length is %u bytes, the content takes %llu",
				qp->rec.length, (unsigned long long)length);
	return 0;
}

/* a record on its own does not say it: the kernel will see */
static uint32_t recv_sge(const struct migr_index *index,
			 const struct rxe_migr_rec_qp *qp)
{
	const struct rxe_migr_rec_srq *srq = NULL;

	if (qp->srq == RXE_MIGR_NO_HANDLE)
		return qp->max_recv_sge;
	if (index)
		srq = (const void *)migr_index_find(index, qp->srq);
	/* the SRQ itself may be checked later */
	return srq && srq->max_sge < RXE_MIGR_MAX_SGE ? srq->max_sge
						      : RXE_MIGR_MAX_SGE;
}

int migr_check_qp(const struct migr_index *index,
		  const struct rxe_migr_rec *rec, struct migr_error *err)
{
	const struct rxe_migr_rec_qp *qp = (const void *)rec;
	const struct {
		const char *field;
		uint32_t handle, type;
	} refs[] = {
		{ "pd", qp->pd, RXE_MIGR_PD },
		{ "send_cq", qp->send_cq, RXE_MIGR_CQ },
		{ "recv_cq", qp->recv_cq, RXE_MIGR_CQ },
		{ "srq", qp->srq, RXE_MIGR_SRQ },
	};
	const size_t n = N_ELEM(refs) - (qp->srq == RXE_MIGR_NO_HANDLE);
	size_t i;
	int ret = 0;

	for (i = 0; i < n && !ret; i++)
		ret = migr_check_ref(index, rec, refs[i].field, refs[i].handle,
				     refs[i].type, err);
	if (!ret)
		ret = migr_check_fields(rec, creation, N_ELEM(creation), err);
	if (!ret && qp->wire_qpn != qp->qpn)
		ret = migr_bad(err, rec, "wire_qpn is %#x, not qpn %#x",
			       qp->wire_qpn, qp->qpn);
	if (!ret)
		ret = migr_check_fields(rec, attributes, N_ELEM(attributes),
					err);
	if (!ret)
		ret = migr_check_fields(rec, progress, N_ELEM(progress), err);
	if (!ret)
		ret = check_state(qp, err);
	if (!ret)
		ret = check_rings(qp, err);
	if (!ret)
		ret = check_progress(qp, err);
	if (!ret)
		ret = migr_check_work(qp, recv_sge(index, qp), err);
	return ret;
}
