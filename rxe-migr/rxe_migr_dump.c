// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The image of a context whose QPs are Stopped. rxe_migr_image.h describes it.
 */
#include <linux/crc32.h>
#include <linux/vmalloc.h>

#include "rxe.h"
#include "rxe_queue.h"

/*
 * Where the image goes. The writer counts on when there is no more room, so
 * one pass with no room at all tells how much is needed.
 */
struct out {
	u8	*buf;
	size_t	room;	/* bytes of @buf */
	size_t	used;	/* bytes written or wanted */
	u32	count;
	u32	max_handle;
	u32	objects; /* CRC-32 over all identities, events and groups */
	bool	changed; /* objects came after STOP */
	int	err;
	struct xarray channels; /* to the CQ by which each is known */
};

/* @n zeroed bytes at the end of the image, or NULL if there is no room */
static void *out_reserve(struct out *out, size_t n)
{
	u8 *p = NULL;

	if (out->used + n <= out->room) {
		p = out->buf + out->used;
		memset(p, 0, n);
	}
	out->used += n;

	return p;
}

static void *out_record(struct out *out, enum rxe_migr_type type, size_t size)
{
	struct rxe_migr_rec *rec = out_reserve(out, size);

	if (size > U32_MAX) /* rec->length */
		out->err = -EFBIG;
	out->count++;
	if (rec) {
		rec->type = type;
		rec->length = size;
	}

	return rec;
}

static void *out_object(struct out *out, enum rxe_migr_type type,
			size_t fixed, size_t tail, struct ib_uobject *uobj)
{
	struct rxe_migr_rec *rec = out_record(out, type, fixed + tail);

	out->max_handle = max_t(u32, out->max_handle, uobj->id);
	if (rec) {
		rec->handle = uobj->id;
		rec->user_handle = uobj->user_handle;
	}

	return rec;
}

/* what must be the same in both passes */
static void out_note(struct out *out, const void *data, size_t size)
{
	out->objects = crc32_le(out->objects, data, size);
}

/* ib_uobject is the first member of the core's private uobjects */
static u32 cq_handle(struct ib_cq *ibcq)
{
	return ((struct ib_uobject *)ibcq->uobject)->id;
}

static u32 qp_handle(struct ib_qp *ibqp)
{
	return ((struct ib_uobject *)ibqp->uobject)->id;
}

static u32 srq_handle(struct ib_srq *ibsrq)
{
	return ((struct ib_uobject *)ibsrq->uobject)->id;
}

/* number of entries to ask for so that the same ring comes out */
static u32 ring_request(struct rxe_queue *q)
{
	return (q->index_mask + 1) / 2;
}

/*
 * How many slots of the ring go into the image: the application may be in the
 * middle of writing a WQE behind the producer, so all but those that nobody
 * ever used. A CQ is written by the driver alone, its live slots are enough.
 */
static u32 ring_slots(struct rxe_queue *q, u32 prod, u32 cons)
{
	u32 n = q->index_mask + 1;

	if (q->type == QUEUE_TYPE_TO_CLIENT)
		return (prod - cons) & q->index_mask;

	if (prod < cons)
		return n;

	while (n > prod && !memchr_inv(queue_addr_from_index(q, n - 1), 0,
				       1 << q->log2_elem_size))
		n--;

	return n;
}

/*
 * What a ring is at this moment. The application may post or poll meanwhile, so
 * each index is read once.
 */
static struct rxe_migr_ring get_ring(struct rxe_queue *q)
{
	u32 prod = queue_get_producer(q, q->type) & q->index_mask;
	u32 cons = queue_get_consumer(q, q->type) & q->index_mask;

	return (struct rxe_migr_ring){
		.mmap_offset	= q->ip->info.offset,
		.mmap_size	= q->ip->info.size,
		.log2_elem	= q->log2_elem_size,
		.index_mask	= q->index_mask,
		.producer	= prod,
		.consumer	= cons,
		.slots		= ring_slots(q, prod, cons),
	};
}

static size_t slots_size(const struct rxe_migr_ring *ring)
{
	return (size_t)ring->slots << ring->log2_elem;
}

static u8 *put_slots(struct rxe_queue *q, u8 *to, u32 first, u32 slots)
{
	size_t size = 1 << q->log2_elem_size;
	u32 i;

	for (i = 0; i < slots; i++, to += size)
		memcpy(to, queue_addr_from_index(q, first + i), size);

	return to;
}

static void dump_pd(struct out *out, void *obj, struct ib_uobject *uobj)
{
	out_object(out, RXE_MIGR_PD, sizeof(struct rxe_migr_rec_pd), 0, uobj);
}

static void dump_channel(struct out *out, struct ib_cq *cq, u32 handle)
{
	struct rxe_migr_rec_comp_channel *rec;
	u32 crc, now = 0;
	int n;

	n = rxe_migr_get_comp_events(cq, NULL, 0, &crc);
	if (n < 0) {
		out->changed = true;
		return;
	}

	rec = out_record(out, RXE_MIGR_COMP_CHANNEL,
			 sizeof(*rec) + ALIGN((u64)n * sizeof(u32), 8));
	out_note(out, &n, sizeof(n));
	out_note(out, &crc, sizeof(crc));
	if (!rec)
		return;

	rec->cq = handle;
	rec->events = n;
	if (rxe_migr_get_comp_events(cq, (u32 *)(rec + 1), n, &now) != n ||
	    now != crc)
		out->changed = true;
}

/* the name of the CQ's channel, which comes with the first of its CQs */
static u32 channel_of(struct out *out, struct ib_cq *cq, u32 handle)
{
	unsigned long channel = (unsigned long)rxe_migr_channel(cq);
	void *known;

	if (!channel)
		return RXE_MIGR_NO_HANDLE;

	known = xa_load(&out->channels, channel);
	if (known)
		return xa_to_value(known);

	known = xa_store(&out->channels, channel, xa_mk_value(handle),
			 GFP_KERNEL);
	if (xa_is_err(known))
		out->err = xa_err(known);
	dump_channel(out, cq, handle);

	return handle;
}

/* under the lock, because the application can still resize the CQ */
static void dump_cq(struct out *out, void *obj, struct ib_uobject *uobj)
{
	struct rxe_cq *cq = obj;
	u32 channel = channel_of(out, &cq->ibcq, uobj->id);
	u32 events[2];
	struct rxe_queue *q = cq->queue;
	struct rxe_migr_rec_cq *rec;
	struct rxe_migr_ring ring;
	unsigned long flags;

	rxe_migr_get_cq_events(&cq->ibcq, &events[0], &events[1]);
	out_note(out, &channel, sizeof(channel));
	out_note(out, events, sizeof(events));

	spin_lock_irqsave(&cq->cq_lock, flags);
	if (!q->ip) { /* it was resized without an answer after STOP */
		out->changed = true;
		goto out;
	}
	ring = get_ring(q);
	rec = out_object(out, RXE_MIGR_CQ, sizeof(*rec), slots_size(&ring),
			 uobj);
	if (!rec)
		goto out;

	rec->cqe = ring_request(q);
	rec->comp_channel = channel;
	rec->notify = cq->notify;
	rec->comp_events_reported = events[0];
	rec->events_reported = events[1];
	rec->ring = ring;
	put_slots(q, (u8 *)(rec + 1), ring.consumer, ring.slots);
out:
	spin_unlock_irqrestore(&cq->cq_lock, flags);
}

static void put_srq(struct out *out, struct rxe_srq *srq,
		    struct rxe_queue *q, u32 events, struct ib_uobject *uobj)
{
	struct rxe_migr_ring ring = get_ring(q);
	struct rxe_migr_rec_srq *rec;

	rec = out_object(out, RXE_MIGR_SRQ, sizeof(*rec), slots_size(&ring),
			 uobj);
	if (!rec)
		return;

	rec->pd = srq->ibsrq.pd->uobject->id;
	rec->srq_num = srq->srq_num;
	rec->max_wr = ring_request(q);
	rec->max_sge = srq->rq.max_sge;
	/* nobody has looked at what its creation asked for */
	rec->limit = min_t(u32, srq->limit, q->index_mask);
	rec->error = !!srq->error;
	rec->ring = ring;
	rec->events_reported = events;
	put_slots(q, (u8 *)(rec + 1), 0, ring.slots);
}

/*
 * The application can still resize it, and the ring may be too large to be
 * looked at under the locks. No QP takes anything from it.
 */
static void dump_srq(struct out *out, void *obj, struct ib_uobject *uobj)
{
	struct rxe_srq *srq = obj;
	u32 events = rxe_migr_get_srq_events(&srq->ibsrq);
	struct rxe_queue q;
	unsigned long flags;

	out_note(out, &events, sizeof(events));
	spin_lock_irqsave(&srq->rq.consumer_lock, flags);
	spin_lock(&srq->rq.producer_lock);
	q = *srq->rq.queue;
	if (q.ip)
		kref_get(&q.ip->ref);	/* keeps the buffer */
	else
		out->changed = true;
	spin_unlock(&srq->rq.producer_lock);
	spin_unlock_irqrestore(&srq->rq.consumer_lock, flags);
	if (!q.ip)
		return;

	out_note(out, &q.buf, sizeof(q.buf));
	put_srq(out, srq, &q, events, uobj);
	kref_put(&q.ip->ref, rxe_mmap_release);
}

static void dump_mr(struct out *out, void *obj, struct ib_uobject *uobj)
{
	struct rxe_mr *mr = obj;
	struct xarray *xa = &mr->elem.pool->xa;
	struct rxe_migr_rec_mr *rec;
	u32 pd;

	/* the application can still give it another one: rxe_migr_set_pd() */
	xa_lock(xa);
	pd = mr->ibmr.pd->uobject->id;
	xa_unlock(xa);
	out_note(out, &pd, sizeof(pd));

	rec = out_object(out, RXE_MIGR_MR, sizeof(*rec), 0, uobj);
	if (!rec)
		return;

	rec->pd = pd;
	rec->key = mr->rkey;
	rec->wire_key = mr->rkey;
	rec->access = mr->access;
	/* a shell that was made after STOP: see rxe_migr_mr_init() */
	rec->start = mr->umem ? mr->umem->address : mr->page_mask;
	rec->size = mr->ibmr.length;
	rec->iova = mr->ibmr.iova;
}

static void put_res(const struct resp_res *res, struct rxe_migr_res *to)
{
	to->first_psn = res->first_psn;
	to->last_psn = res->last_psn;
	to->cur_psn = res->cur_psn;

	switch (res->type) {
	case RXE_READ_MASK:
		to->kind = RXE_MIGR_RES_READ;
		to->rkey = res->read.rkey;
		to->length = res->read.length;
		to->value = res->read.va_org;
		break;
	case RXE_ATOMIC_MASK:
		to->kind = RXE_MIGR_RES_ATOMIC;
		to->value = res->atomic.orig_val;
		break;
	case RXE_ATOMIC_WRITE_MASK:
		to->kind = RXE_MIGR_RES_ATOMIC_WRITE;
		break;
	case RXE_FLUSH_MASK:
		to->kind = RXE_MIGR_RES_FLUSH;
		to->length = res->flush.length;
		to->value = res->flush.va;
		to->flush_type = res->flush.type;
		to->flush_level = res->flush.level;
		break;
	default:
		memset(to, 0, sizeof(*to));
		break;
	}
}

static void put_recv_wqe(const struct rxe_recv_wqe *wqe, u32 max_sge,
			 struct rxe_migr_recv_wqe *to)
{
	u32 i;

	to->valid = 1;
	to->num_sge = min_t(u32, wqe->dma.num_sge, max_sge);
	to->wr_id = wqe->wr_id;
	to->length = wqe->dma.length;
	to->resid = wqe->dma.resid;
	to->cur_sge = wqe->dma.cur_sge;
	to->sge_offset = wqe->dma.sge_offset;
	for (i = 0; i < to->num_sge; i++) {
		to->sge[i].addr = wqe->dma.sge[i].addr;
		to->sge[i].length = wqe->dma.sge[i].length;
		to->sge[i].lkey = wqe->dma.sge[i].lkey;
	}
}

static void put_qp_attr(struct rxe_qp *qp, struct rxe_migr_rec_qp *rec)
{
	const struct ib_qp_attr *attr = &qp->attr;
	const struct rxe_av *av = &qp->pri_av;

	rec->state = qp_state(qp);
	rec->access_flags = attr->qp_access_flags;
	rec->pkey_index = attr->pkey_index;
	rec->port_num = attr->port_num;
	rec->path_mtu = attr->path_mtu;
	rec->dest_qpn = attr->dest_qp_num;
	rec->rq_psn = attr->rq_psn;
	rec->sq_psn = attr->sq_psn;
	rec->max_rd_atomic = attr->max_rd_atomic;
	rec->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	rec->min_rnr_timer = attr->min_rnr_timer;
	rec->timeout = attr->timeout;
	rec->retry_cnt = attr->retry_cnt;
	rec->rnr_retry = attr->rnr_retry;
	rec->qkey = attr->qkey;
	rec->sq_draining = attr->sq_draining;
	rec->en_sqd_async_notify = attr->en_sqd_async_notify;

	memcpy(rec->dgid, av->grh.dgid.raw, sizeof(rec->dgid));
	rxe_migr_sgid(av, rec->sgid);
	memcpy(rec->dmac, av->dmac, sizeof(rec->dmac));
	rec->network_type = av->network_type;
	rec->sgid_index = av->grh.sgid_index;
	rec->flow_label = av->grh.flow_label;
	rec->hop_limit = av->grh.hop_limit;
	rec->traffic_class = av->grh.traffic_class;
	rec->udp_sport = qp->src_port;
}

static void put_qp_tasks(struct rxe_qp *qp, struct rxe_migr_rec_qp *rec)
{
	rec->epoch = to_migr_qp(qp)->epoch;
	rec->peer_epoch = to_migr_qp(qp)->peer_epoch;

	rec->req_psn = qp->req.psn & BTH_PSN_MASK;
	rec->req_opcode = qp->req.opcode;
	/* what is flushed in ERR leaves it behind */
	rec->req_wqe_index = qp_state(qp) == IB_QPS_ERR ?
			     rec->sq.consumer :
			     qp->req.wqe_index & rec->sq.index_mask;
	/*
	 * Others have none: the modify to RTS gives them. One while some are in
	 * use gives them all, and those come back, too.
	 */
	rec->req_rd_atomic = qp_state(qp) == IB_QPS_RTS ||
			     qp_state(qp) == IB_QPS_SQD ?
			     min_t(u32, atomic_read(&qp->req.rd_atomic),
				   rec->max_rd_atomic) : 0;
	rec->req_need_rd_atomic = qp->req.need_rd_atomic;
	rec->req_noack_pkts = qp->req.noack_pkts;
	rec->ssn = atomic_read(&qp->ssn);

	rec->comp_psn = qp->comp.psn & BTH_PSN_MASK;
	rec->comp_opcode = qp->comp.opcode;

	rec->resp_msn = qp->resp.msn;
	rec->resp_psn = qp->resp.psn & BTH_PSN_MASK;
	rec->resp_ack_psn = qp->resp.ack_psn & BTH_PSN_MASK;
	rec->resp_opcode = qp->resp.opcode;
	rec->resp_status = qp->resp.status;
	rec->resp_resid = qp->resp.resid;
	rec->resp_rkey = qp->resp.rkey;
	rec->resp_length = qp->resp.length;
	/* a QP that had resources and has none now keeps its index */
	rec->resp_res_head = rec->max_dest_rd_atomic ? qp->resp.res_head : 0;
	rec->resp_va = qp->resp.va;
	rec->resp_offset = qp->resp.offset;
	/* what UD receives is whole, and what has gone wrong it forgets */
	if (qp->resp.wqe && qp_type(qp) != IB_QPT_UD)
		put_recv_wqe(qp->resp.wqe, rxe_migr_recv_sge(qp), &rec->wqe);
	else if (rec->resp_opcode == IB_OPCODE_UC_SEND_FIRST ||
		 rec->resp_opcode == IB_OPCODE_UC_SEND_MIDDLE)
		/* its receive, of an SRQ, is done: the message was wrong */
		rec->resp_opcode = OPCODE_NONE;
}

static void put_qp(struct out *out, struct rxe_qp *qp, struct ib_uobject *uobj)
{
	struct rxe_queue *sq = qp->sq.queue;
	struct rxe_queue *rq = qp->srq ? NULL : qp->rq.queue;
	u32 n_res = rxe_migr_connected(qp) ? qp->attr.max_dest_rd_atomic : 0;
	struct rxe_migr_ring sq_ring = get_ring(sq);
	struct rxe_migr_ring rq_ring = {};
	struct rxe_migr_rec_qp *rec;
	struct rxe_migr_res *res;
	u32 events = rxe_migr_get_qp_events(&qp->ibqp);
	u8 *slots;
	u32 i;

	if (rq)
		rq_ring = get_ring(rq);
	out_note(out, &events, sizeof(events));
	rec = out_object(out, RXE_MIGR_QP, sizeof(*rec),
			 n_res * sizeof(*res) + slots_size(&sq_ring) +
			 slots_size(&rq_ring), uobj);
	/* in both passes, for peers in this context that come before */
	WRITE_ONCE(to_migr_qp(qp)->dumped_alive, qp_state(qp) != IB_QPS_ERR);
	if (!rec)
		return;

	rec->pd = qp->ibqp.pd->uobject->id;
	rec->send_cq = cq_handle(qp->ibqp.send_cq);
	rec->recv_cq = cq_handle(qp->ibqp.recv_cq);
	rec->qpn = qp_num(qp);
	rec->wire_qpn = qp->elem.index;
	rec->qp_type = qp_type(qp);
	rec->sq_sig_all = qp->sq_sig_type == IB_SIGNAL_ALL_WR;
	rec->max_send_wr = ring_request(sq);
	rec->max_send_sge = qp->sq.max_sge;
	rec->max_inline_data = qp->sq.max_inline;
	rec->max_recv_wr = rq ? ring_request(rq) : 0;
	rec->max_recv_sge = qp->rq.max_sge;
	rec->srq = qp->srq ? srq_handle(qp->ibqp.srq) : RXE_MIGR_NO_HANDLE;
	put_qp_attr(qp, rec);
	rec->max_dest_rd_atomic = n_res;
	rec->sq = sq_ring;
	rec->rq = rq_ring;
	put_qp_tasks(qp, rec);
	rec->events_reported = events;
	rec->last_wqe = qp->last_wqe;
	rec->peer_ended = rxe_migr_peer_ended(qp);

	res = (struct rxe_migr_res *)(rec + 1);
	for (i = 0; i < n_res; i++)
		put_res(&qp->resp.resources[i], &res[i]);
	slots = put_slots(sq, (u8 *)&res[n_res], 0, sq_ring.slots);
	if (rq)
		put_slots(rq, slots, 0, rq_ring.slots);
}

/* the groups follow their QP */
static void dump_groups(struct out *out, struct rxe_qp *qp,
			struct ib_uobject *uobj)
{
	u32 n = rxe_migr_get_groups(&qp->ibqp, NULL, 0);
	size_t size = n * sizeof(struct rxe_migr_group);
	struct rxe_migr_rec_mcast *rec;
	struct rxe_migr_group *groups;

	if (!n) {
		out_note(out, &n, sizeof(n));
		return;
	}

	groups = kvzalloc(size, GFP_KERNEL);
	if (!groups) {
		out->err = -ENOMEM;
		return;
	}

	if (rxe_migr_get_groups(&qp->ibqp, groups, n) != n)
		out->changed = true;
	out_note(out, groups, size);
	rec = out_record(out, RXE_MIGR_MCAST, sizeof(*rec) + size);
	if (rec) {
		rec->qp = uobj->id;
		rec->groups = n;
		memcpy(rec + 1, groups, size);
	}
	kvfree(groups);
}

/*
 * The application can still create QPs, which are not Stopped, and modify
 * them, which takes the same lock.
 */
static void dump_qp(struct out *out, void *obj, struct ib_uobject *uobj)
{
	struct rxe_migr_qp *m = to_migr_qp(obj);

	mutex_lock(&m->lock);
	if (m->qp.migr == RXE_MIGR_STOPPED)
		put_qp(out, &m->qp, uobj);
	else
		out->changed = true;
	mutex_unlock(&m->lock);
	dump_groups(out, &m->qp, uobj);
}

static void dump_ah(struct out *out, void *obj, struct ib_uobject *uobj)
{
	const struct rxe_ah *ah = obj;
	const struct rxe_av *av = &ah->av;
	struct rxe_migr_rec_ah *rec;

	rec = out_object(out, RXE_MIGR_AH, sizeof(*rec), 0, uobj);
	if (!rec)
		return;

	rec->pd = ah->ibah.pd->uobject->id;
	rec->ah_num = ah->ah_num;
	memcpy(rec->dgid, av->grh.dgid.raw, sizeof(rec->dgid));
	rxe_migr_sgid(av, rec->sgid);
	rec->flow_label = av->grh.flow_label;
	rec->network_type = av->network_type;
	rec->sgid_index = av->grh.sgid_index;
	rec->hop_limit = av->grh.hop_limit;
	rec->traffic_class = av->grh.traffic_class;
}

/*
 * Only QPs of its PD change what a window is bound to, and those that are there are
 * Stopped; but the application can still create and destroy them. The QP and the MR
 * are there for as long as the lock is held: see rxe_free_mws().
 */
static void dump_mw(struct out *out, void *obj, struct ib_uobject *uobj)
{
	struct rxe_migr_rec_mw *rec, now = {};
	struct rxe_mw *mw = obj;
	struct ib_uobject *mr = NULL;

	now.pd = mw->ibmw.pd->uobject->id;
	now.mw_type = mw->ibmw.type;

	spin_lock_bh(&mw->lock);
	now.rkey = mw->rkey;
	now.wire_key = mw->rkey;
	now.state = mw->state;
	now.access = mw->access;
	now.addr = mw->addr;
	now.size = mw->length;
	if (mw->mr)
		mr = READ_ONCE(mw->mr->ibmr.uobject);
	if (mw->mr && !mr) /* bound before the core has finished the MR */
		out->changed = true;
	now.mr = mr ? mr->id : RXE_MIGR_NO_HANDLE;
	now.qp = mw->qp ? qp_handle(&mw->qp->ibqp) : RXE_MIGR_NO_HANDLE;
	spin_unlock_bh(&mw->lock);

	out_note(out, &now, sizeof(now));
	rec = out_object(out, RXE_MIGR_MW, sizeof(*rec), 0, uobj);
	if (!rec)
		return;

	now.rec = rec->rec;
	*rec = now;
}

/* --- all objects of a context --- */

static void dump_pool(struct out *out, struct rxe_pool *pool,
		      struct ib_ucontext *uc,
		      void (*dump)(struct out *, void *, struct ib_uobject *))
{
	struct rxe_pool_elem *elem;
	struct ib_uobject *uobj;
	unsigned long index = 0;

	while ((elem = rxe_migr_next(pool, uc, &index))) {
		uobj = rxe_migr_uobject(elem);
		if (uobj) {
			u32 ids[] = { pool->type, elem->index, uobj->id };

			out_note(out, ids, sizeof(ids));
			dump(out, elem->obj, uobj);
		} else {
			out->changed = true;	/* the core is at it */
		}
		__rxe_put(elem);
		cond_resched();
	}
}

static void dump_async(struct out *out, struct ib_uverbs_file *ufile)
{
	struct rxe_migr_rec_async_fd *rec;
	u32 crc = 0, now = 0;
	int n;

	n = rxe_migr_get_async_events(ufile, NULL, 0, &crc);
	out_note(out, &n, sizeof(n));
	out_note(out, &crc, sizeof(crc));
	if (n == -EAGAIN)
		out->changed = true;
	if (n < 0)
		return;

	rec = out_record(out, RXE_MIGR_ASYNC_FD,
			 sizeof(*rec) + n * sizeof(struct rxe_migr_event));
	if (!rec)
		return;

	rec->events = n;
	if (rxe_migr_get_async_events(ufile, (void *)(rec + 1), n, &now) != n ||
	    now != crc)
		out->changed = true;
}

static void dump_context(struct out *out, struct ib_ucontext *uc,
			 struct ib_uverbs_file *ufile)
{
	struct rxe_dev *rxe = to_rdev(uc->device);
	struct rxe_migr_image_hdr *hdr = out_reserve(out, sizeof(*hdr));
	struct rxe_migr_rec_context *rec = out_reserve(out, sizeof(*rec));

	dump_pool(out, &rxe->pd_pool, uc, dump_pd);
	dump_pool(out, &rxe->cq_pool, uc, dump_cq);
	dump_pool(out, &rxe->srq_pool, uc, dump_srq);
	dump_pool(out, &rxe->mr_pool, uc, dump_mr);
	dump_pool(out, &rxe->qp_pool, uc, dump_qp);
	dump_pool(out, &rxe->mw_pool, uc, dump_mw);
	dump_pool(out, &rxe->ah_pool, uc, dump_ah);
	dump_async(out, ufile);
	xa_destroy(&out->channels);

	if (out->err || out->changed || out->used > out->room)
		return;

	rec->rec.type = RXE_MIGR_CONTEXT;
	rec->rec.length = sizeof(*rec);
	strscpy_pad(rec->device, dev_name(&uc->device->dev),
		    sizeof(rec->device));
	rec->max_handle = out->max_handle;

	memcpy(hdr->magic, RXE_MIGR_MAGIC, sizeof(hdr->magic));
	hdr->version = RXE_MIGR_IMAGE_VERSION;
	hdr->hdr_length = sizeof(*hdr);
	hdr->length = out->used;
	hdr->count = out->count;
}

static int chk_qp_stopped(struct rxe_qp *qp)
{
	struct rxe_migr_qp *m = to_migr_qp(qp);
	int err = 0;

	mutex_lock(&m->lock);
	if (qp->migr != RXE_MIGR_STOPPED)
		err = -EINVAL;
	else if (rxe_migr_connected(qp) && !rxe_migr_peer_ok(m->peer))
		err = -EAGAIN;	/* another one than STOP has asked */
	mutex_unlock(&m->lock);

	return err;
}

/* is the context one that STOP would accept, every QP stopped? */
static int chk_stopped(struct ib_ucontext *uc)
{
	struct rxe_migr_status st;
	struct rxe_qp **qps;
	unsigned int n, i;
	int err;

	err = rxe_migr_collect(uc, &qps, &n);
	if (err)
		return err;
	for (i = 0; i < n && !err; i++)
		err = chk_qp_stopped(qps[i]);
	if (!err && rxe_migr_chk_context(uc, qps, n, &st))
		err = -EAGAIN;
	rxe_migr_release(qps, n);

	return err;
}

/**
 * rxe_migr_dump - make the image of a context
 * @uc: the context
 * @ufile: its file
 * @length: room for it, in bytes
 * @image: receives the image, to be given to vfree()
 * @resp: receives the size needed and the number of records
 *
 * The application may run, and only its QPs are Stopped. The image is of one
 * moment all the same: what the first pass and the second one both found was
 * there between them, and if they found the same, nothing else was.
 *
 * Context: process; sleeps. The context's lock is held.
 * Return: 0, -EINVAL if a QP is not Stopped, -ENOSPC if @length is too small,
 * -ENOMEM, -EFBIG if an object takes more than 4 GiB, -EAGAIN if objects were
 * created or destroyed meanwhile, or if there are some that STOP would refuse,
 * -ENOKEY if there is no key to sign it with
 */
int rxe_migr_dump(struct ib_ucontext *uc, struct ib_uverbs_file *ufile,
		  u64 length, void **image, struct rxe_migr_dump_resp *resp)
{
	struct out out = {};
	u32 objects;
	int err;

	err = chk_stopped(uc);
	if (err)
		return err;

	xa_init(&out.channels);
	dump_context(&out, uc, ufile);
	resp->needed = out.used;
	resp->count = out.count;
	if (out.err)
		return out.err;
	if (out.changed)
		return -EAGAIN;
	if (length < out.used)
		return -ENOSPC;

	objects = out.objects;
	out = (struct out){ .room = out.used };
	out.buf = vmalloc(out.room);
	if (!out.buf)
		return -ENOMEM;

	xa_init(&out.channels);
	dump_context(&out, uc, ufile);
	resp->needed = out.used;
	resp->count = out.count;
	if (out.err)
		err = out.err;
	else if (out.changed || out.used > out.room || out.objects != objects)
		err = -EAGAIN;
	else
		err = chk_stopped(uc);
	if (!err)
		err = rxe_migr_sign((void *)out.buf);
	if (err)
		vfree(out.buf);
	else
		*image = out.buf;

	return err;
}
