// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * REFILL: the state of a CQ, SRQ or QP comes back from its image record.
 *
 * A kernel of the cluster has signed the record, but it may have been wrong. It
 * is checked whole against the object that was created for it, and only then
 * used. What the application could write into its own rings anyhow is checked
 * only as far as the driver relies on it.
 */
#include "rxe.h"
#include "rxe_queue.h"
#include "rxe_task.h"

#define NO_OPCODE	0xffffffffU

/* one thing that a record must fulfil */
struct check {
	bool		ok;
	const char	*field;
};

static const char *first_bad(const struct check *checks, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!checks[i].ok)
			return checks[i].field;
	return NULL;
}

static int judge_qp(struct rxe_qp *qp, const struct check *checks, size_t n)
{
	const char *field = first_bad(checks, n);

	if (!field)
		return 0;
	rxe_err_qp(qp, "image: bad %s\n", field);
	return -EINVAL;
}

/* does the ring of the image fit the ring of the object? */
static bool ring_fits(const struct rxe_queue *q,
		      const struct rxe_migr_ring *ring)
{
	u32 live = (ring->producer - ring->consumer) & q->index_mask;

	return q->ip && ring->mmap_offset == q->ip->info.offset &&
	       ring->mmap_size == q->ip->info.size &&
	       ring->log2_elem == q->log2_elem_size &&
	       ring->index_mask == q->index_mask &&
	       ring->producer <= q->index_mask &&
	       ring->consumer <= q->index_mask &&
	       (q->type == QUEUE_TYPE_TO_CLIENT ?
		ring->slots == live : ring->slots <= q->index_mask + 1);
}

/* may be asked before ring_fits() has been */
static size_t slots_size(const struct rxe_migr_ring *ring)
{
	return ring->log2_elem < 32 ? (size_t)ring->slots << ring->log2_elem :
				      0;
}

/* fill a ring that nobody uses yet; returns the end of the slots */
static const u8 *fill_ring(struct rxe_queue *q,
			   const struct rxe_migr_ring *ring, u32 first,
			   const u8 *slots)
{
	size_t size = 1 << q->log2_elem_size;
	u32 i;

	for (i = 0; i < ring->slots; i++, slots += size)
		memcpy(queue_addr_from_index(q, first + i), slots, size);

	q->buf->producer_index = ring->producer;
	q->buf->consumer_index = ring->consumer;
	q->index = q->type == QUEUE_TYPE_TO_CLIENT ? ring->producer :
						     ring->consumer;
	return slots;
}

static int chk_cq(struct rxe_cq *cq, const struct rxe_migr_rec_cq *rec)
{
	const struct check checks[] = {
		{ ring_fits(cq->queue, &rec->ring), "ring" },
		{ rec->rec.length == sizeof(*rec) + slots_size(&rec->ring),
		  "length" },
		{ (rec->comp_channel == RXE_MIGR_NO_HANDLE) ==
		  !rxe_migr_channel(&cq->ibcq), "comp_channel" },
		{ !(rec->notify & ~IB_CQ_SOLICITED_MASK), "notify" },
		{ queue_empty(cq->queue, cq->queue->type), "order: in use" },
	};
	const char *field = first_bad(checks, ARRAY_SIZE(checks));

	if (!field)
		return 0;
	rxe_err_cq(cq, "image: bad %s\n", field);
	return -EINVAL;
}

/**
 * rxe_migr_refill_cq - fill a restored CQ
 * @muc: its context; the lock is held
 * @cq: the CQ
 * @handle: its uverbs handle
 *
 * Context: process; sleeps.
 * Return: 0, -EINVAL with the field in the log, -ENOENT if the image has no
 * record of it, -EBUSY if the application may use it already
 */
int rxe_migr_refill_cq(struct rxe_migr_uc *muc, struct rxe_cq *cq, u32 handle)
{
	const struct rxe_migr_rec_cq *rec;
	unsigned long flags;
	int err;

	if (!muc->restored || muc->attached)
		return -EBUSY;

	rec = rxe_migr_record(muc, RXE_MIGR_CQ, handle);
	if (!rec)
		return -ENOENT;

	err = chk_cq(cq, rec);
	if (err)
		return err;

	spin_lock_irqsave(&cq->cq_lock, flags);
	fill_ring(cq->queue, &rec->ring, rec->ring.consumer,
		  (const u8 *)(rec + 1));
	cq->notify = rec->notify;
	rxe_migr_set_cq_events(&cq->ibcq, rec->comp_events_reported,
			       rec->events_reported);
	spin_unlock_irqrestore(&cq->cq_lock, flags);

	return 0;
}

/* --- SRQ --- */

/* a waiting receive WQE: what the responder takes for granted */
static bool posted_wqe_ok(const struct rxe_recv_wqe *wqe, u32 max_sge)
{
	return wqe->dma.num_sge <= max_sge &&
	       wqe->dma.cur_sge <= wqe->dma.num_sge &&
	       wqe->dma.resid <= wqe->dma.length;
}

static bool srq_slots_ok(struct rxe_srq *srq, const struct rxe_migr_ring *ring,
			 const u8 *slots)
{
	u32 i = ring->consumer;

	for (; i != ring->producer; i = queue_next_index(srq->rq.queue, i))
		if (i >= ring->slots ||
		    !posted_wqe_ok((const void *)
				   (slots + ((size_t)i << ring->log2_elem)),
				   srq->rq.max_sge))
			return false;

	return true;
}

static int chk_srq(struct rxe_srq *srq, const struct rxe_migr_rec_srq *rec)
{
	struct rxe_queue *q = srq->rq.queue;
	const struct check checks[] = {
		{ !rec->reserved, "reserved" },
		{ rec->srq_num == srq->srq_num, "srq_num" },
		{ rec->max_sge == srq->rq.max_sge, "max_sge" },
		{ ring_fits(q, &rec->ring), "ring" },
		{ rec->rec.length == sizeof(*rec) + slots_size(&rec->ring),
		  "length" },
		{ rec->limit <= q->index_mask, "limit" },
		{ rec->error <= 1, "error" },
		{ queue_empty(q, q->type), "order: in use" },
	};
	const char *field = first_bad(checks, ARRAY_SIZE(checks));

	if (!field && !srq_slots_ok(srq, &rec->ring, (const u8 *)(rec + 1)))
		field = "slots";
	if (!field)
		return 0;
	rxe_err_srq(srq, "image: bad %s\n", field);
	return -EINVAL;
}

/**
 * rxe_migr_refill_srq - fill a restored SRQ
 * @muc: its context; the lock is held
 * @srq: the SRQ
 * @handle: its uverbs handle
 *
 * Context: process; sleeps.
 * Return: 0, -EINVAL with the field in the log, -ENOENT if the image has no
 * record of it, -EBUSY if the application may use it already
 */
int rxe_migr_refill_srq(struct rxe_migr_uc *muc, struct rxe_srq *srq,
			u32 handle)
{
	const struct rxe_migr_rec_srq *rec;
	unsigned long flags;
	int err;

	if (!muc->restored || muc->attached)
		return -EBUSY;

	rec = rxe_migr_record(muc, RXE_MIGR_SRQ, handle);
	if (!rec)
		return -ENOENT;

	err = chk_srq(srq, rec);
	if (err)
		return err;

	spin_lock_irqsave(&srq->rq.consumer_lock, flags);
	fill_ring(srq->rq.queue, &rec->ring, 0, (const u8 *)(rec + 1));
	srq->limit = rec->limit;
	srq->error = rec->error;
	rxe_migr_set_srq_events(&srq->ibsrq, rec->events_reported);
	spin_unlock_irqrestore(&srq->rq.consumer_lock, flags);

	return 0;
}

/* --- QP --- */

static bool is_psn(u32 psn)
{
	return !(psn & ~BTH_PSN_MASK);
}

/* a request that rxe knows, of the QP's type */
static bool is_request(struct rxe_qp *qp, u32 opcode)
{
	static const u32 classes[] = {
		[IB_QPT_RC] = IB_OPCODE_RC,
		[IB_QPT_UC] = IB_OPCODE_UC,
		[IB_QPT_UD] = IB_OPCODE_UD,
	};

	if (opcode == NO_OPCODE)
		return true;

	return (opcode & ~0x1fU) == classes[qp_type(qp)] &&
	       !(rxe_opcode[opcode].mask & RXE_MIGR_MASK) &&
	       rxe_opcode[opcode].mask & RXE_REQ_MASK;
}

/* the completer warns of anything else */
static bool is_comp_opcode(struct rxe_qp *qp, u32 opcode)
{
	if (opcode == NO_OPCODE)
		return true;

	return qp_type(qp) == IB_QPT_RC &&
	       (opcode == IB_OPCODE_RC_RDMA_READ_RESPONSE_FIRST ||
		opcode == IB_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE);
}

/* the verbs state in which a QP must be to become what the record says */
static bool state_fits(enum ib_qp_state now, u32 wanted)
{
	switch (wanted) {
	case IB_QPS_RESET:
	case IB_QPS_INIT:
	case IB_QPS_RTR:
	case IB_QPS_RTS:
		return now == wanted;
	case IB_QPS_SQD:
		return now == IB_QPS_RTS;
	case IB_QPS_ERR:
		return now <= IB_QPS_INIT;
	default:
		return false;
	}
}

static int chk_attr(struct rxe_qp *qp, const struct rxe_migr_rec_qp *rec)
{
	bool connected = rxe_migr_connected(qp);
	u32 n_res = connected ? qp->attr.max_dest_rd_atomic : 0;
	const struct check checks[] = {
		{ state_fits(qp_state(qp), rec->state), "state" },
		{ rec->max_dest_rd_atomic == n_res, "max_dest_rd_atomic" },
		{ !connected || rec->dest_qpn == qp->attr.dest_qp_num,
		  "dest_qpn" },
		{ rec->retry_cnt <= 7, "retry_cnt" },
		{ rec->rnr_retry <= 7, "rnr_retry" },
		{ rec->timeout <= 31, "timeout" },
		{ rec->sq_draining <= 1, "sq_draining" },
		{ rec->epoch != U32_MAX, "epoch" },
		{ !rec->reserved, "reserved" },
	};

	return judge_qp(qp, checks, ARRAY_SIZE(checks));
}

static int chk_wqe(struct rxe_qp *qp, const struct rxe_migr_recv_wqe *wqe)
{
	u32 cur = min_t(u32, wqe->cur_sge, RXE_MIGR_MAX_SGE - 1);
	const struct check checks[] = {
		{ wqe->valid == 1, "wqe.valid" },
		{ wqe->num_sge <= rxe_migr_recv_sge(qp) &&
		  wqe->num_sge <= RXE_MIGR_MAX_SGE, "wqe.num_sge" },
		{ wqe->cur_sge < max(wqe->num_sge, 1U), "wqe.cur_sge" },
		{ wqe->resid <= wqe->length && wqe->length <= S32_MAX,
		  "wqe.resid" },
		{ wqe->sge_offset <= wqe->sge[cur].length, "wqe.sge_offset" },
	};

	return wqe->valid ? judge_qp(qp, checks, ARRAY_SIZE(checks)) : 0;
}

/* the responder takes it for granted that a SEND in progress has its WQE */
static bool wants_recv_wqe(const struct rxe_migr_rec_qp *rec)
{
	return rec->state != IB_QPS_ERR &&
	       (rec->resp_opcode == IB_OPCODE_RC_SEND_FIRST ||
		rec->resp_opcode == IB_OPCODE_RC_SEND_MIDDLE ||
		rec->resp_opcode == IB_OPCODE_UC_SEND_FIRST ||
		rec->resp_opcode == IB_OPCODE_UC_SEND_MIDDLE);
}

static int chk_tasks(struct rxe_qp *qp, const struct rxe_migr_rec_qp *rec)
{
	u32 mask = qp->sq.queue->index_mask;
	u32 sq_live = (rec->sq.producer - rec->sq.consumer) & mask;
	const struct check checks[] = {
		{ is_psn(rec->req_psn), "req_psn" },
		{ is_psn(rec->comp_psn), "comp_psn" },
		{ is_psn(rec->resp_psn), "resp_psn" },
		{ is_psn(rec->resp_ack_psn), "resp_ack_psn" },
		{ is_psn(rec->rq_psn), "rq_psn" },
		{ is_psn(rec->sq_psn), "sq_psn" },
		{ qp_type(qp) != IB_QPT_RC ||
		  psn_compare(rec->req_psn, rec->comp_psn) >= 0,
		  "req_psn: before comp_psn" },
		{ is_request(qp, rec->req_opcode), "req_opcode" },
		{ is_comp_opcode(qp, rec->comp_opcode), "comp_opcode" },
		{ is_request(qp, rec->resp_opcode), "resp_opcode" },
		{ rec->wqe.valid || !wants_recv_wqe(rec),
		  "resp_opcode: SEND without WQE" },
		{ ((rec->req_wqe_index - rec->sq.consumer) & mask) <= sq_live &&
		  rec->req_wqe_index <= mask, "req_wqe_index" },
		{ rec->req_rd_atomic <= rec->max_rd_atomic &&
		  rec->max_rd_atomic <= RXE_MAX_QP_RD_ATOM, "req_rd_atomic" },
		{ rec->req_need_rd_atomic <= 1, "req_need_rd_atomic" },
		{ rec->req_noack_pkts <= S32_MAX, "req_noack_pkts" },
		{ rec->resp_status <= IB_WC_GENERAL_ERR, "resp_status" },
		{ rec->resp_res_head < max(rec->max_dest_rd_atomic, 1U),
		  "resp_res_head" },
		{ rec->resp_resid <= rec->resp_length ||
		  rec->resp_resid == sizeof(u64), "resp_resid" },
	};
	int err = judge_qp(qp, checks, ARRAY_SIZE(checks));

	return err ?: chk_wqe(qp, &rec->wqe);
}

/* live WQEs of the send queue: what the requester takes for granted */
static int chk_send_wqe(struct rxe_qp *qp, const void *slot)
{
	const struct rxe_send_wqe *wqe = slot;
	const struct check checks[] = {
		{ wqe->wr.opcode <= IB_WR_ATOMIC_WRITE &&
		  wqe->wr.opcode != IB_WR_REG_MR &&
		  wr_opcode_mask(wqe->wr.opcode, qp), "sq: opcode" },
		{ wqe->state <= wqe_state_error, "sq: state" },
		{ wqe->dma.num_sge <= qp->sq.max_sge, "sq: num_sge" },
		{ wqe->dma.cur_sge <= wqe->dma.num_sge, "sq: cur_sge" },
		{ wqe->dma.resid <= wqe->dma.length, "sq: resid" },
		{ !(wqe->wr.send_flags & IB_SEND_INLINE) ||
		  (u64)wqe->dma.sge_offset + wqe->dma.resid <=
		  qp->sq.max_inline, "sq: inline" },
		{ is_psn(wqe->first_psn) && is_psn(wqe->last_psn), "sq: psn" },
		{ wqe->has_rd_atomic <= 1, "sq: has_rd_atomic" },
	};

	return judge_qp(qp, checks, ARRAY_SIZE(checks));
}

static int chk_posted_wqe(struct rxe_qp *qp, const void *slot)
{
	const struct check have = { posted_wqe_ok(slot, qp->rq.max_sge),
				    "rq: WQE" };

	return judge_qp(qp, &have, 1);
}

/* the live slots of a ring; @field: what to blame if one is not there */
static int chk_slots(struct rxe_qp *qp, struct rxe_queue *q,
		     const struct rxe_migr_ring *ring, const u8 *slots,
		     const char *field,
		     int (*chk)(struct rxe_qp *qp, const void *slot))
{
	u32 i = ring->consumer;
	int err = 0;

	while (i != ring->producer && !err) {
		const struct check have = { i < ring->slots, field };

		err = judge_qp(qp, &have, 1);
		if (!err)
			err = chk(qp, slots + ((size_t)i << ring->log2_elem));
		i = queue_next_index(q, i);
	}

	return err;
}

static int chk_res(struct rxe_qp *qp, const struct rxe_migr_res *res, u32 n)
{
	int err = 0;

	for (; n && !err; n--, res++) {
		const struct check checks[] = {
			{ res->kind <= RXE_MIGR_RES_FLUSH, "res.kind" },
			{ is_psn(res->first_psn) && is_psn(res->last_psn) &&
			  is_psn(res->cur_psn), "res.psn" },
			{ res->length <= 1U << 31, "res.length" },
			{ res->flush_type <= U8_MAX &&
			  res->flush_level <= U8_MAX, "res.flush" },
		};

		err = judge_qp(qp, checks, ARRAY_SIZE(checks));
	}

	return err;
}

/* the ring of a QP with an SRQ is not there */
static bool rq_fits(struct rxe_qp *qp, const struct rxe_migr_rec_qp *rec)
{
	struct ib_uobject *srq;

	if (!qp->srq)
		return rec->srq == RXE_MIGR_NO_HANDLE &&
		       ring_fits(qp->rq.queue, &rec->rq);

	srq = (struct ib_uobject *)qp->ibqp.srq->uobject;
	return rec->srq == srq->id &&
	       !memchr_inv(&rec->rq, 0, sizeof(rec->rq));
}

static int chk_qp(struct rxe_qp *qp, const struct rxe_migr_rec_qp *rec)
{
	u32 n_res = rec->max_dest_rd_atomic;
	size_t res_size = n_res * sizeof(struct rxe_migr_res);
	const u8 *tail = (const u8 *)(rec + 1);
	const struct check checks[] = {
		{ rec->qpn == qp_num(qp), "qpn" },
		{ rec->wire_qpn == rec->qpn, "wire_qpn" },
		{ rec->last_wqe <= (rec->state == IB_QPS_ERR && qp->srq),
		  "last_wqe" },
		{ rec->peer_absent <= rxe_migr_connected(qp), "peer_absent" },
		{ rec->life || !rxe_migr_connected(qp), "life" },
		{ rec->qp_type == qp_type(qp), "qp_type" },
		{ ring_fits(qp->sq.queue, &rec->sq), "sq" },
		{ rq_fits(qp, rec), "rq" },
		{ n_res <= RXE_MAX_QP_RD_ATOM, "max_dest_rd_atomic" },
		{ rec->rec.length == sizeof(*rec) + res_size +
		  slots_size(&rec->sq) + slots_size(&rec->rq), "length" },
	};
	int err;

	err = judge_qp(qp, checks, ARRAY_SIZE(checks));
	if (!err)
		err = chk_attr(qp, rec);
	if (!err)
		err = chk_tasks(qp, rec);
	if (!err)
		err = chk_res(qp, (const void *)tail, n_res);
	if (!err)
		err = chk_slots(qp, qp->sq.queue, &rec->sq, tail + res_size,
				"sq.slots", chk_send_wqe);
	if (!err && !qp->srq)
		err = chk_slots(qp, qp->rq.queue, &rec->rq,
				tail + res_size + slots_size(&rec->sq),
				"rq.slots", chk_posted_wqe);

	return err;
}

/*
 * Of a READ that is asked for again the driver checks the range, but not whose
 * key it is and what it allows. So that must have been allowed the first time.
 */
static bool may_be_read(struct rxe_qp *qp, u32 rkey)
{
	struct rxe_dev *rxe = to_rdev(qp->ibqp.device);
	struct rxe_mr *mr;
	bool may;

	if (rkey_is_mw(rkey))
		return rxe_migr_mw_reads(qp, rkey);

	mr = rxe_pool_get_index(&rxe->mr_pool, rkey >> 8);
	if (!mr)
		return false;

	/* its pages need not be there yet */
	may = mr->ibmr.type == IB_MR_TYPE_USER && mr->rkey == rkey &&
	      mr_pd(mr) == qp->pd && mr->access & IB_ACCESS_REMOTE_READ;
	rxe_put(mr);

	return may;
}

static void get_res(struct rxe_qp *qp, const struct rxe_migr_res *from,
		    struct resp_res *res)
{
	/* the key may be gone: what the driver cannot answer is dropped */
	if (from->kind == RXE_MIGR_RES_READ && from->length &&
	    !may_be_read(qp, from->rkey)) {
		memset(res, 0, sizeof(*res));
		return;
	}

	res->first_psn = from->first_psn;
	res->last_psn = from->last_psn;
	res->cur_psn = from->cur_psn;
	res->replay = 1;
	res->state = rdatm_res_state_next;

	switch (from->kind) {
	case RXE_MIGR_RES_READ:
		res->type = RXE_READ_MASK;
		res->read.rkey = from->rkey;
		res->read.length = from->length;
		res->read.va_org = from->value;
		res->read.va = from->value;
		break;
	case RXE_MIGR_RES_ATOMIC:
		res->type = RXE_ATOMIC_MASK;
		res->atomic.orig_val = from->value;
		break;
	case RXE_MIGR_RES_ATOMIC_WRITE:
		res->type = RXE_ATOMIC_WRITE_MASK;
		break;
	case RXE_MIGR_RES_FLUSH:
		res->type = RXE_FLUSH_MASK;	/* of a replay all that counts */
		break;
	default:
		memset(res, 0, sizeof(*res));
		break;
	}
}

static void get_recv_wqe(struct rxe_qp *qp,
			 const struct rxe_migr_recv_wqe *from)
{
	struct rxe_recv_wqe *wqe = &qp->resp.srq_wqe.wqe;
	u32 i;

	qp->resp.wqe = NULL;
	if (!from->valid)
		return;

	wqe->wr_id = from->wr_id;
	wqe->dma.length = from->length;
	wqe->dma.resid = from->resid;
	wqe->dma.cur_sge = from->cur_sge;
	wqe->dma.num_sge = from->num_sge;
	wqe->dma.sge_offset = from->sge_offset;
	for (i = 0; i < from->num_sge; i++) {
		qp->resp.srq_wqe.sge[i].addr = from->sge[i].addr;
		qp->resp.srq_wqe.sge[i].length = from->sge[i].length;
		qp->resp.srq_wqe.sge[i].lkey = from->sge[i].lkey;
	}
	qp->resp.wqe = wqe;
}

static void get_tasks(struct rxe_qp *qp, const struct rxe_migr_rec_qp *rec)
{
	qp->req.psn = rec->req_psn;
	qp->req.opcode = rec->req_opcode;
	qp->req.wqe_index = rec->req_wqe_index;
	atomic_set(&qp->req.rd_atomic, rec->req_rd_atomic);
	qp->req.need_rd_atomic = rec->req_need_rd_atomic;
	qp->req.noack_pkts = rec->req_noack_pkts;
	atomic_set(&qp->ssn, rec->ssn);

	qp->comp.psn = rec->comp_psn;
	qp->comp.opcode = rec->comp_opcode;

	qp->resp.msn = rec->resp_msn;
	qp->resp.psn = rec->resp_psn;
	qp->resp.ack_psn = rec->resp_ack_psn;
	qp->resp.opcode = rec->resp_opcode;
	qp->resp.status = rec->resp_status;
	qp->resp.resid = rec->resp_resid;
	qp->resp.rkey = rec->resp_rkey;
	qp->resp.length = rec->resp_length;
	qp->resp.res_head = rec->resp_res_head;
	qp->resp.va = rec->resp_va;
	qp->resp.offset = rec->resp_offset;
	get_recv_wqe(qp, &rec->wqe);
}

/* the record has been checked. Context: m->lock held, tasks disabled */
static void fill_qp(struct rxe_migr_qp *m, const struct rxe_migr_rec_qp *rec)
{
	struct rxe_qp *qp = &m->qp;
	const struct rxe_migr_res *res = (const void *)(rec + 1);
	u32 n_res = rec->max_dest_rd_atomic;
	u8 own[16] = {};
	const u8 *slots = (const u8 *)&res[n_res];
	unsigned long flags;
	u32 i;

	slots = fill_ring(qp->sq.queue, &rec->sq, 0, slots);
	if (!qp->srq)
		fill_ring(qp->rq.queue, &rec->rq, 0, slots);
	get_tasks(qp, rec);
	for (i = 0; i < n_res; i++)
		get_res(qp, &res[i], &qp->resp.resources[i]);

	/* what a modify does not set, or sets after the wrong idea */
	qp->attr.rq_psn = rec->rq_psn;
	qp->attr.sq_psn = rec->sq_psn;
	qp->attr.qkey = rec->qkey;
	qp->attr.en_sqd_async_notify = rec->en_sqd_async_notify;
	qp->src_port = rec->udp_sport;
	qp->last_wqe = rec->last_wqe;
	rxe_migr_set_qp_events(&qp->ibqp, rec->events_reported);
	m->epoch = rec->epoch + 1;
	m->nonce = get_random_u32();
	m->peer_epoch = rec->peer_epoch;
	m->peer_nonce = rec->peer_nonce;
	m->life = rec->life;
	m->peer_life = rec->peer_life;
	memcpy(&m->led_to, rec->dgid, sizeof(rec->dgid));
	memcpy(m->from.gid, rec->sgid, sizeof(rec->sgid));
	if (rxe_migr_connected(qp))
		rxe_migr_sgid(&qp->pri_av, own);
	/* an address that has come along leads to no tombstone */
	m->from.qpn = memcmp(own, rec->sgid, sizeof(own)) ? rec->qpn : 0;

	spin_lock_irqsave(&qp->state_lock, flags);
	qp->attr.qp_state = rec->state;
	qp->attr.sq_draining = rec->sq_draining;
	spin_unlock_irqrestore(&qp->state_lock, flags);

	/* what it will be: rxe_migr_modify_qp() asks */
	if (rec->peer_absent)
		m->peer = RXE_MIGR_PEER_ABSENT;
	m->untold = rec->peer_absent;
	m->before = rxe_migr_connected(qp) && !m->untold ?
		    RXE_MIGR_RESUMING : RXE_MIGR_RUNNING;
	WRITE_ONCE(m->refilled, true);
	rxe_migr_come_back(qp);
}

/**
 * rxe_migr_refill_qp - fill a restored QP
 * @muc: its context; the lock is held
 * @qp: the QP, in the verbs state that rxe_migr_abi.h demands
 * @handle: its uverbs handle
 *
 * Context: process; sleeps.
 * Return: 0, -EINVAL with the field in the log, -ENOENT if the image has no
 * record of it, -EBUSY if the QP is not a restored one or is filled already
 */
int rxe_migr_refill_qp(struct rxe_migr_uc *muc, struct rxe_qp *qp, u32 handle)
{
	struct rxe_migr_qp *m = to_migr_qp(qp);
	const struct rxe_migr_rec_qp *rec;
	int err;

	/* also: no other QP has both rings for sure */
	if (!m->wanted.type)
		return -EBUSY;

	rec = rxe_migr_record(muc, RXE_MIGR_QP, handle);
	if (!rec)
		return -ENOENT;

	mutex_lock(&m->lock);
	if (m->refilled || qp->migr != RXE_MIGR_STOPPED)
		err = -EBUSY;
	else
		err = chk_qp(qp, rec);
	if (!err)
		fill_qp(m, rec);
	mutex_unlock(&m->lock);

	return err;
}
