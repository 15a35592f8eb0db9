// SPDX-License-Identifier: GPL-2.0
/*
 * Between queue pairs and the transport: WQEs to it, completions and events
 * from it. README.md tells how a WQE travels.
 */

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "cq.h"
#include "eq.h"
#include "mkey.h"
#include "nic.h"
#include "rdma/qp.h"
#include "rdma/rdma.h"
#include "rdma/srq.h"
#include "rdma/wqe.h"

/* ---- send queue ---- */

/* The WQE at `at` in one piece. Returns its length, or 0 if there is none whole */
static uint32_t read_wqe(struct nic *nic, const struct qp *qp, uint16_t at,
			 uint16_t posted, uint8_t *wqe)
{
	uint32_t mask = (1U << qp->log_sq) - 1, size, i;

	for (i = 0, size = WQE_BB; i < size; i += WQE_BB) {
		uint16_t bb = at + i / WQE_BB;

		if (bb == posted ||
		    !pas_read(nic, &qp->pas,
			      qp->sq_at + (uint64_t)(bb & mask) * WQE_BB,
			      wqe + i, WQE_BB))
			return 0;
		if (!i)
			size = wqe_bytes(wqe);
	}
	return size;
}

static int fetch_send(void *ctx, void *qp_ctx, struct roce_send_wqe *out)
{
	uint8_t wqe[WQE_MAX], data[WQE_MAX];
	struct nic *nic = ctx;
	struct qp *qp = qp_ctx;
	uint32_t size, posted, inl = 0;
	uint16_t at = qp->sq_ci;
	int ret;

	if (qp->no_sq)
		return 0;
	/* what cannot be posted says as little as what cannot be read */
	if (!dma_read_be32(nic, qp->db + 4, &posted) ||
	    (uint16_t)(posted - qp->sq_ci) > 1U << qp->log_sq)
		return -EIO;
	if ((uint16_t)posted == qp->sq_ci)
		return 0;
	memset(wqe, 0, WQE_DS); /* has an opcode also if it cannot be read */
	size = read_wqe(nic, qp, qp->sq_ci, posted, wqe);
	out->cookie = (uint32_t)wqe_opcode(wqe) << 16 | qp->sq_ci;
	qp->sq_ci += size ? (size + WQE_BB - 1) / WQE_BB : 1;
	ret = wqe_decode_send(wqe, size, qp->roce_type, out, data, &inl);
	if (!ret && out->flags & ROCE_SEND_INLINE && !out->flush) {
		out->owned = malloc(inl + !inl);
		if (!out->owned) {
			qp->sq_ci = at;
			return -EAGAIN;
		}
		memcpy(out->owned, data, inl);
		out->num_sge = 1;
		out->sge[0] = (struct roce_sge){ .addr = (uintptr_t)out->owned,
						 .length = inl };
	}
	return ret ? ret : 1;
}

/* Nothing is kept of it but its place. */
static enum roce_wc_status local_op(void *ctx, void *qp_ctx,
				    const struct roce_send_wqe *local)
{
	struct nic *nic = ctx;
	struct qp *qp = qp_ctx;
	uint8_t wqe[WQE_MAX];
	uint32_t len;

	if (local->cookie >> 16 == WQE_NOP)
		return ROCE_WC_SUCCESS;
	len = read_wqe(nic, qp, local->cookie, qp->sq_ci, wqe);
	if (!qp->umr || !len)
		return ROCE_WC_LOC_QP_OP_ERR;
	return umr_execute(nic, wqe, len);
}

static const uint8_t syndrome_of[] = {
	[ROCE_WC_LOC_LEN_ERR] = 0x01,	 [ROCE_WC_LOC_QP_OP_ERR] = 0x02,
	[ROCE_WC_LOC_PROT_ERR] = 0x04,	 [ROCE_WC_WR_FLUSH_ERR] = 0x05,
	[ROCE_WC_MW_BIND_ERR] = 0x06,	 [ROCE_WC_BAD_RESP_ERR] = 0x10,
	[ROCE_WC_LOC_ACCESS_ERR] = 0x11, [ROCE_WC_REM_INV_REQ_ERR] = 0x12,
	[ROCE_WC_REM_ACCESS_ERR] = 0x13, [ROCE_WC_REM_OP_ERR] = 0x14,
	[ROCE_WC_RETRY_EXC_ERR] = 0x15,	 [ROCE_WC_RNR_RETRY_EXC_ERR] = 0x16,
	[ROCE_WC_REM_ABORT_ERR] = 0x22,
};

static void cqe_error(uint8_t *cqe, enum roce_wc_status status, uint8_t vendor)
{
	cqe[CQE_AT_VENDOR_SYNDROME] = vendor;
	if (status < N_ELEM(syndrome_of))
		cqe[CQE_AT_SYNDROME] = syndrome_of[status];
	if (!cqe[CQE_AT_SYNDROME])
		cqe[CQE_AT_SYNDROME] = syndrome_of[ROCE_WC_LOC_QP_OP_ERR];
}

static int complete_send(void *ctx, void *qp_ctx, const struct roce_send_wc *wc)
{
	struct nic *nic = ctx;
	struct qp *qp = qp_ctx;
	uint8_t cqe[64] = { 0 };
	bool error = wc->status != ROCE_WC_SUCCESS;

	if (!error && !wc->signaled)
		return 0;
	cqe_set_user_index(cqe, GET(qpc, qp->qpc, user_index));
	put_be32(cqe + CQE_AT_BYTE_CNT, wc->byte_len);
	put_be32(cqe + CQE_AT_QPN,
		 (uint32_t)(wc->cookie >> 16) << 24 | qp->obj.id);
	put_be16(cqe + CQE_AT_WQE_COUNTER, wc->cookie);
	if (error) {
		cqe_error(cqe, wc->status, wc->syndrome);
		q_failed(nic, qp, wc->status);
	}
	return cq_post(nic, qp->send_cq, cqe, error ? CQE_REQ_ERR : CQE_REQ,
		       false)
		       ? 0
		       : -ENOSPC;
}

/* ---- receive queues ---- */

/* of its XRC domain, or NULL */
static struct srq *xrc_srq(struct nic *nic, const struct qp *qp, uint32_t srqn)
{
	struct srq *srq = (struct srq *)obj_find(nic, OBJ_XRC_SRQ, srqn);

	return srq && srq->xrcd == qp->xrcd ? srq : NULL;
}

static int find_srq(void *ctx, void *qp_ctx, uint32_t srqn, uint32_t *pd)
{
	const struct srq *srq = xrc_srq(ctx, qp_ctx, srqn);

	if (!srq)
		return -ENOENT;
	*pd = srq->pd;
	return 0;
}

static int fetch_recv(void *ctx, void *qp_ctx, struct roce_recv_wqe *out)
{
	uint8_t list[1U << MAX_LOG_RQ_STRIDE];
	struct nic *nic = ctx;
	struct qp *qp = qp_ctx;
	struct srq *srq = qp->srq;
	uint32_t stride, posted;

	if (qp->roce_type == ROCE_QPT_XRC_RECV)
		srq = xrc_srq(nic, qp, out->srqn);
	if (srq) {
		out->pd = srq->pd;
		return srq_take(nic, srq, out);
	}
	if (qp->no_rq)
		return 0;
	if (!dma_read_be32(nic, qp->db, &posted) ||
	    (uint16_t)(posted - qp->rq_ci) > 1U << qp->log_rq)
		return -EIO;
	if ((uint16_t)posted == qp->rq_ci)
		return 0;
	stride = 1U << qp->rq_shift;
	out->cookie = qp->rq_ci++;
	if (!pas_read(nic, &qp->pas,
		      (uint64_t)(out->cookie & ((1U << qp->log_rq) - 1))
			      << qp->rq_shift,
		      list, stride) ||
	    wqe_decode_recv(list, stride, out))
		return -EINVAL;
	return 1;
}

static enum cqe_op receive_op(uint32_t flags)
{
	if (flags & ROCE_WC_RDMA)
		return CQE_RESP_WRITE_IMM;
	if (flags & ROCE_WC_WITH_INV)
		return CQE_RESP_SEND_INV;
	return flags & ROCE_WC_WITH_IMM ? CQE_RESP_SEND_IMM : CQE_RESP_SEND;
}

#define L3_IPV6 (1U << 24)
#define L3_IPV4 (2U << 24)
#define GRH (1U << 28)

static int complete_recv(void *ctx, void *qp_ctx, const struct roce_recv_wc *wc)
{
	struct nic *nic = ctx;
	struct qp *qp = qp_ctx;
	const struct srq *srq = qp->srq;
	struct cq *cq = qp->recv_cq;
	uint8_t cqe[64] = { 0 };
	bool error = wc->status != ROCE_WC_SUCCESS;

	if (qp->roce_type == ROCE_QPT_XRC_RECV) {
		srq = xrc_srq(nic, qp, wc->srqn);
		if (!srq) /* destroyed meanwhile: nobody waits */
			return 0;
		cq = srq->cq;
	}
	put_be32(cqe + CQE_AT_FLAGS_RQPN,
		 wc->src_qpn | (wc->flags & ROCE_WC_IPV6 ? L3_IPV6 : L3_IPV4) |
			 (wc->flags & ROCE_WC_GRH ? GRH : 0));
	if (srq)
		put_be32(cqe + CQE_AT_SRQN, srq->obj.id);
	cqe_set_user_index(cqe, qp->roce_type == ROCE_QPT_XRC_RECV
					? GET(xrc_srqc, srq->ctx, user_index)
					: GET(qpc, qp->qpc, user_index));
	if (wc->flags & ROCE_WC_WITH_IMM)
		memcpy(cqe + CQE_AT_IMM, &wc->imm_data, 4);
	else if (wc->flags & ROCE_WC_WITH_INV)
		put_be32(cqe + CQE_AT_IMM, wc->invalidated_key);
	else
		put_be32(cqe + CQE_AT_IMM, DEFAULT_PKEY);
	put_be32(cqe + CQE_AT_BYTE_CNT, wc->byte_len);
	put_be32(cqe + CQE_AT_QPN, qp->obj.id);
	put_be16(cqe + CQE_AT_WQE_COUNTER, wc->cookie);
	if (error)
		cqe_error(cqe, wc->status, 0);
	return cq_post(nic, cq, cqe,
		       error ? CQE_RESP_ERR : receive_op(wc->flags),
		       wc->flags & ROCE_WC_SOLICITED)
		       ? 0
		       : -ENOSPC;
}

/* ---- memory, events, the wire ---- */

_Static_assert((int)ROCE_ACCESS_LOCAL_WRITE == MKEY_LOCAL_WRITE &&
		       (int)ROCE_ACCESS_REMOTE_WRITE == MKEY_REMOTE_WRITE &&
		       (int)ROCE_ACCESS_REMOTE_READ == MKEY_REMOTE_READ &&
		       (int)ROCE_ACCESS_REMOTE_ATOMIC == MKEY_REMOTE_ATOMIC,
	       "rights have the same bits");

static int translate(void *ctx, void *qp_ctx, uint32_t pd, uint32_t key,
		     uint64_t addr, uint32_t len, unsigned int access,
		     bool remote, struct iovec *iov, int max)
{
	const struct qp *qp = qp_ctx;

	return mkey_translate(ctx, pd, key, addr, len, access,
			      qp->rlky && !remote, iov, max);
}

static int invalidate(void *ctx, void *qp_ctx, uint32_t pd, uint32_t key,
		      bool remote)
{
	(void)qp_ctx;
	(void)remote;
	return mkey_invalidate(ctx, pd, key);
}

static void event(void *ctx, void *qp_ctx, enum roce_event event)
{
	static const uint8_t types[] = {
		[ROCE_EVENT_QP_FATAL] = EVENT_QP_FATAL,
		[ROCE_EVENT_QP_REQ_ERR] = EVENT_QP_REQ_ERR,
		[ROCE_EVENT_QP_ACCESS_ERR] = EVENT_QP_ACCESS_ERR,
		[ROCE_EVENT_COMM_EST] = EVENT_COMM_EST,
		[ROCE_EVENT_QP_LAST_WQE_REACHED] = EVENT_SRQ_LAST_WQE,
	};
	const struct qp *qp = qp_ctx;

	event_queue(ctx, types[event], QUEUE_QP, qp->obj.id);
}

static bool has_room(void *ctx)
{
	const struct nic *nic = ctx;

	return !nic->tx_blocked || nic->port_down;
}

static int transmit(void *ctx, const void *frame, size_t len)
{
	struct nic *nic = ctx;

	if (nic->wire.fd < 0 || nic->port_down)
		return 0;
	if (nic->tx_blocked || !wire_put(&nic->wire, frame, len)) {
		nic->tx_blocked = true;
		return -EAGAIN;
	}
	nic->eth_first = true;
	count_tx(nic, frame, len);
	count_traffic(&nic->port.rdma_tx, frame, len);
	return 0;
}

static const struct roce_ops ops = {
	.has_room = has_room,
	.transmit = transmit,
	.fetch_send = fetch_send,
	.fetch_recv = fetch_recv,
	.find_srq = find_srq,
	.complete_send = complete_send,
	.complete_recv = complete_recv,
	.local_op = local_op,
	.translate = translate,
	.invalidate = invalidate,
	.event = event,
};

/* ---- the NIC's side ---- */

int rdma_create(struct nic *nic)
{
	const struct roce_config config = { .ops = &ops, .ctx = nic };

	return roce_engine_create(&config, &nic->roce);
}

bool rdma_receive(struct nic *nic, const void *frame, size_t len)
{
	if (!roce_rx(nic->roce, nic_now(), frame, len))
		return false;
	count_traffic(&nic->port.rdma_rx, frame, len);
	return true;
}

void qp_doorbell(struct nic *nic, struct qp *qp)
{
	(void)nic;
	roce_kick(qp->roce);
}

void rdma_forget(struct nic *nic, struct qp *qp)
{
	q_account(nic, qp);
	roce_qp_destroy(qp->roce);
}
