// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The record of a queue pair: attributes, responder, rings and the work
 * requests that are under way in them.
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
#define MAX_DEST_RD_ATOMIC 256 /* 8 bits, rounded up */
#define MAX_INLINE (RXE_MIGR_MAX_SGE * sizeof(struct rxe_sge))

#define PSN_MASK 0xffffffU
#define QPN_MASK 0xffffffU
#define FLOW_MASK 0xfffffU
#define MAX_WR_OPCODE IB_UVERBS_WR_ATOMIC_WRITE
#define NO_OPCODE 0xffffffffU

#define F(member, lo, hi) MIGR_FIELD(rxe_migr_rec_qp, member, lo, hi)

static const struct migr_field creation[] = {
	F(qpn, MIN_QPN, QPN_MASK),
	F(qp_type, IBV_QPT_RC, IBV_QPT_RC),
	F(sq_sig_all, 0, 1),
	F(max_send_wr, 0, MAX_QP_WR),
	F(max_send_sge, 0, RXE_MIGR_MAX_SGE),
	F(max_inline_data, 0, MAX_INLINE),
	F(max_recv_wr, 0, MAX_QP_WR),
	F(max_recv_sge, 0, RXE_MIGR_MAX_SGE),
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
	F(max_dest_rd_atomic, 0, MAX_DEST_RD_ATOMIC),
	F(min_rnr_timer, 0, 31),
	F(timeout, 0, 31),
	F(retry_cnt, 0, 7),
	F(rnr_retry, 0, 7),
	F(sq_draining, 0, 1),
	F(en_sqd_async_notify, 0, 1),
	F(network_type, 0, RXE_NETWORK_TYPE_IPV6),
	F(flow_label, 0, FLOW_MASK),
};

static const struct migr_field progress[] = {
	F(req_psn, 0, PSN_MASK),      F(req_need_rd_atomic, 0, 1),
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
	return qp->state >= IBV_QPS_RTR && qp->state <= IBV_QPS_SQD;
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
				"state is SQE, which RC does not have");
	if (qp->access_flags & ~MIGR_ACCESS_ALL)
		return migr_bad(err, rec, "access_flags is %#x",
				qp->access_flags);
	if (qp->max_dest_rd_atomic & (qp->max_dest_rd_atomic - 1))
		return migr_bad(err, rec,
				"max_dest_rd_atomic is %u, not a power of two",
				qp->max_dest_rd_atomic);
	if (qp->state == IBV_QPS_INIT && !qp->port_num)
		return migr_bad(err, rec, "port_num is 0 in state INIT");
	if (!migr_qp_connected(qp))
		return 0;

	ret = migr_check_fields(rec, connected, N_ELEM(connected), err);
	if (ret)
		return ret;
	if (migr_gid_is_ipv4(qp->dgid) !=
	    (qp->network_type == RXE_NETWORK_TYPE_IPV4))
		return migr_bad(
			err, rec,
			"network_type is %u, dgid is of the other family",
			qp->network_type);
	return 0;
}

static int check_opcode(const struct rxe_migr_rec_qp *qp, const char *field,
			uint32_t opcode, struct migr_error *err)
{
	if (opcode > 0xff && opcode != NO_OPCODE)
		return migr_bad(err, &qp->rec, "%s is %#x", field, opcode);
	return 0;
}

static int check_requester(const struct rxe_migr_rec_qp *qp,
			   struct migr_error *err)
{
	const struct rxe_migr_rec *rec = &qp->rec;
	int ret;

	if (qp->req_wqe_index > qp->sq.index_mask)
		return migr_bad(err, rec,
				"req_wqe_index is %u, sq.index_mask is %u",
				qp->req_wqe_index, qp->sq.index_mask);
	if (qp->req_rd_atomic > qp->max_rd_atomic)
		return migr_bad(err, rec,
				"req_rd_atomic is %u, max_rd_atomic is %u",
				qp->req_rd_atomic, qp->max_rd_atomic);
	ret = check_opcode(qp, "req_opcode", qp->req_opcode, err);
	if (!ret)
		ret = check_opcode(qp, "comp_opcode", qp->comp_opcode, err);
	if (!ret)
		ret = check_opcode(qp, "resp_opcode", qp->resp_opcode, err);
	return ret;
}

static int check_resources(const struct rxe_migr_rec_qp *qp,
			   struct migr_error *err)
{
	const struct rxe_migr_res *res = (const void *)(qp + 1);
	const struct rxe_migr_rec *rec = &qp->rec;
	uint32_t i;

	if (qp->resp_res_head >= qp->max_dest_rd_atomic && qp->resp_res_head)
		return migr_bad(err, rec, "resp_res_head is %u of %u resources",
				qp->resp_res_head, qp->max_dest_rd_atomic);

	for (i = 0; i < qp->max_dest_rd_atomic; i++, res++) {
		if (res->kind > RXE_MIGR_RES_FLUSH)
			return migr_bad(err, rec, "resource %u: kind is %u", i,
					res->kind);
		if ((res->first_psn | res->last_psn | res->cur_psn) & ~PSN_MASK)
			return migr_bad(
				err, rec,
				"resource %u: first_psn, last_psn or cur_psn has more than 24 bits",
				i);
		if (res->flush_type > 0xff || res->flush_level > 0xff)
			return migr_bad(
				err, rec,
				"resource %u: flush_type or flush_level has more than 8 bits",
				i);
	}
	return 0;
}

/* progress within a scatter list */
struct cursor {
	const char *name;
	uint32_t index; /* slot, or the like */
	uint32_t num_sge, max_sge, cur_sge;
	uint32_t length, resid;
};

static int check_cursor(const struct rxe_migr_rec_qp *qp,
			const struct cursor *c, struct migr_error *err)
{
	const struct rxe_migr_rec *rec = &qp->rec;

	if (c->num_sge > c->max_sge)
		return migr_bad(err, rec,
				"%s %u: num_sge is %u, allowed are %u", c->name,
				c->index, c->num_sge, c->max_sge);
	if (c->cur_sge > c->num_sge)
		return migr_bad(err, rec, "%s %u: cur_sge is %u, num_sge is %u",
				c->name, c->index, c->cur_sge, c->num_sge);
	if (c->resid > c->length)
		return migr_bad(err, rec, "%s %u: resid is %u, length is %u",
				c->name, c->index, c->resid, c->length);
	return 0;
}

static int check_wqe(const struct rxe_migr_rec_qp *qp, struct migr_error *err)
{
	const struct rxe_migr_recv_wqe *wqe = &qp->wqe;
	const struct cursor c = {
		.name = "wqe",
		.num_sge = wqe->num_sge,
		.max_sge = qp->max_recv_sge,
		.cur_sge = wqe->cur_sge,
		.length = wqe->length,
		.resid = wqe->resid,
	};

	return wqe->valid ? check_cursor(qp, &c, err) : 0;
}

static int check_dma(const struct rxe_migr_rec_qp *qp, const char *name,
		     uint32_t slot, uint32_t max_sge,
		     const struct rxe_dma_info *dma, struct migr_error *err)
{
	const struct cursor c = {
		.name = name,
		.index = slot,
		.num_sge = dma->num_sge,
		.max_sge = max_sge,
		.cur_sge = dma->cur_sge,
		.length = dma->length,
		.resid = dma->resid,
	};

	return check_cursor(qp, &c, err);
}

static int check_send(const struct rxe_migr_rec_qp *qp, uint32_t slot,
		      const void *at, struct migr_error *err)
{
	const struct rxe_send_wqe *wqe = at;

	if (wqe->wr.opcode > MAX_WR_OPCODE)
		return migr_bad(err, &qp->rec, "sq slot %u: opcode is %#x",
				slot, wqe->wr.opcode);
	return check_dma(qp, "sq slot", slot, qp->max_send_sge, &wqe->dma, err);
}

static int check_recv(const struct rxe_migr_rec_qp *qp, uint32_t slot,
		      const void *at, struct migr_error *err)
{
	const struct rxe_recv_wqe *wqe = at;

	return check_dma(qp, "rq slot", slot, qp->max_recv_sge, &wqe->dma, err);
}

/* what is posted and not finished; slots behind ring->slots are all zero */
static int check_slots(const struct rxe_migr_rec_qp *qp,
		       const struct rxe_migr_ring *ring, const char *slots,
		       int (*check)(const struct rxe_migr_rec_qp *qp,
				    uint32_t slot, const void *at,
				    struct migr_error *err),
		       struct migr_error *err)
{
	uint32_t i = ring->consumer;
	int ret;

	while (i != ring->producer) {
		if (i >= ring->slots) {
			if (ring->producer > i)
				break;
			i = 0;
			continue;
		}
		ret = check(qp, i, slots + ((size_t)i << ring->log2_elem), err);
		if (ret)
			return ret;
		i = (i + 1) & ring->index_mask;
	}
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
	if (!ret)
		ret = migr_check_ring(&qp->rec, &rq, err);
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

static int check_content(const struct rxe_migr_rec_qp *qp,
			 struct migr_error *err)
{
	const struct rxe_migr_res *res = (const void *)(qp + 1);
	const char *sq = (const char *)(res + qp->max_dest_rd_atomic);
	const char *rq = sq + migr_ring_bytes(&qp->sq);
	int ret;

	ret = check_resources(qp, err);
	if (!ret)
		ret = check_wqe(qp, err);
	if (!ret)
		ret = check_slots(qp, &qp->sq, sq, check_send, err);
	if (!ret)
		ret = check_slots(qp, &qp->rq, rq, check_recv, err);
	return ret;
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
	};
	size_t i;
	int ret = 0;

	for (i = 0; i < N_ELEM(refs) && !ret; i++)
		ret = migr_check_ref(index, rec, refs[i].field, refs[i].handle,
				     refs[i].type, err);
	if (!ret)
		ret = migr_check_fields(rec, creation, N_ELEM(creation), err);
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
		ret = check_requester(qp, err);
	if (!ret)
		ret = check_content(qp, err);
	return ret;
}
