// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The image of a context whose QPs are Stopped. rxe_migr_image.h describes it.
 */
#include <linux/crc32.h>
#include <linux/vmalloc.h>

#include "rxe.h"
#include "rxe_queue.h"
#include "rxe_migr_out.h"

static void dump_pd(struct rxe_migr_out *out, void *obj,
		    struct ib_uobject *uobj)
{
	rxe_migr_out_object(out, RXE_MIGR_PD, sizeof(struct rxe_migr_rec_pd), 0,
			    uobj);
}

/* does a file not have @n events that can be dumped? */
static bool no_events(struct rxe_migr_out *out, struct ib_device *dev,
		      const char *file, int n)
{
	if (n == -EAGAIN) {
		out->changed = true;
	} else if (n == -EFBIG) {
		out->err = n;
		rxe_err_dev(to_rdev(dev), "%s has more than %d unread events\n",
			    file, RXE_MIGR_MOST_EVENTS);
	}

	return n < 0;
}

static void dump_channel(struct rxe_migr_out *out, struct ib_cq *cq, u32 handle)
{
	struct rxe_migr_rec_comp_channel *rec;
	u32 crc, now = 0;
	int n;

	n = rxe_migr_get_comp_events(cq, NULL, 0, &crc);
	if (no_events(out, cq->device, "a completion channel", n))
		return;

	rec = rxe_migr_out_record(out, RXE_MIGR_COMP_CHANNEL,
				  sizeof(*rec) + ALIGN((u64)n * sizeof(u32), 8));
	rxe_migr_out_note(out, &n, sizeof(n));
	rxe_migr_out_note(out, &crc, sizeof(crc));
	if (!rec)
		return;

	rec->cq = handle;
	rec->events = n;
	if (rxe_migr_get_comp_events(cq, (u32 *)(rec + 1), n, &now) != n ||
	    now != crc)
		out->changed = true;
}

/* the name of the CQ's channel, which comes with the first of its CQs */
static u32 channel_of(struct rxe_migr_out *out, struct ib_cq *cq, u32 handle)
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
static void dump_cq(struct rxe_migr_out *out, void *obj,
		    struct ib_uobject *uobj)
{
	struct rxe_cq *cq = obj;
	u32 channel = channel_of(out, &cq->ibcq, uobj->id);
	u32 events[2];
	struct rxe_queue *q = cq->queue;
	struct rxe_migr_rec_cq *rec;
	struct rxe_migr_ring ring;
	unsigned long flags;

	rxe_migr_get_cq_events(&cq->ibcq, &events[0], &events[1]);
	rxe_migr_out_note(out, &channel, sizeof(channel));
	rxe_migr_out_note(out, events, sizeof(events));

	spin_lock_irqsave(&cq->cq_lock, flags);
	if (!q->ip) { /* it was resized without an answer after STOP */
		out->changed = true;
		goto out;
	}
	ring = rxe_migr_out_ring(q);
	rec = rxe_migr_out_object(out, RXE_MIGR_CQ, sizeof(*rec),
				  slots_size(&ring), uobj);
	if (!rec)
		goto out;

	rec->cqe = ring_request(q);
	rec->comp_channel = channel;
	rec->notify = cq->notify;
	rec->comp_events_reported = events[0];
	rec->events_reported = events[1];
	rec->ring = ring;
	rxe_migr_out_slots(q, (u8 *)(rec + 1), ring.consumer, ring.slots);
out:
	spin_unlock_irqrestore(&cq->cq_lock, flags);
}

static void put_srq(struct rxe_migr_out *out, struct rxe_srq *srq,
		    struct rxe_queue *q, u32 events, struct ib_uobject *uobj)
{
	struct rxe_migr_ring ring = rxe_migr_out_ring(q);
	struct rxe_migr_rec_srq *rec;

	rec = rxe_migr_out_object(out, RXE_MIGR_SRQ, sizeof(*rec),
				  slots_size(&ring), uobj);
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
	rxe_migr_out_slots(q, (u8 *)(rec + 1), 0, ring.slots);
}

/*
 * The application can still resize it, and the ring may be too large to be
 * looked at under the locks. No QP takes anything from it.
 */
static void dump_srq(struct rxe_migr_out *out, void *obj,
		     struct ib_uobject *uobj)
{
	struct rxe_srq *srq = obj;
	u32 events = rxe_migr_get_srq_events(&srq->ibsrq);
	struct rxe_queue q;
	unsigned long flags;

	rxe_migr_out_note(out, &events, sizeof(events));
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

	rxe_migr_out_note(out, &q.buf, sizeof(q.buf));
	put_srq(out, srq, &q, events, uobj);
	kref_put(&q.ip->ref, rxe_mmap_release);
}

static void dump_mr(struct rxe_migr_out *out, void *obj,
		    struct ib_uobject *uobj)
{
	struct rxe_mr *mr = obj;
	struct xarray *xa = &mr->elem.pool->xa;
	struct rxe_migr_rec_mr *rec;
	u32 pd;

	/* the application can still give it another one: rxe_migr_set_pd() */
	xa_lock(xa);
	pd = mr->ibmr.pd->uobject->id;
	xa_unlock(xa);
	rxe_migr_out_note(out, &pd, sizeof(pd));

	rec = rxe_migr_out_object(out, RXE_MIGR_MR, sizeof(*rec), 0, uobj);
	if (!rec)
		return;

	rec->pd = pd;
	rec->key = mr->rkey;
	rec->wire_key = mr->rkey;
	rec->access = mr->access;
	if (mr->umem && mr->umem->writable && !ib_access_writable(rec->access))
		rec->access |= RXE_MIGR_ACCESS_PINNED;
	/* a shell that was made after STOP: see rxe_migr_mr_init() */
	rec->start = mr->umem ? mr->umem->address : mr->page_mask;
	rec->size = mr->ibmr.length;
	rec->iova = mr->ibmr.iova;
}

static void dump_ah(struct rxe_migr_out *out, void *obj,
		    struct ib_uobject *uobj)
{
	const struct rxe_ah *ah = obj;
	const struct rxe_av *av = &ah->av;
	struct rxe_migr_rec_ah *rec;

	rec = rxe_migr_out_object(out, RXE_MIGR_AH, sizeof(*rec), 0, uobj);
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
static void dump_mw(struct rxe_migr_out *out, void *obj,
		    struct ib_uobject *uobj)
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
	/* the QP is being destroyed: see rxe_migr_hide_qp() */
	if (mw->qp && xa_load(&mw->qp->elem.pool->xa, mw->qp->elem.index) !=
			      &mw->qp->elem)
		out->changed = true;
	spin_unlock_bh(&mw->lock);

	rxe_migr_out_note(out, &now, sizeof(now));
	rec = rxe_migr_out_object(out, RXE_MIGR_MW, sizeof(*rec), 0, uobj);
	if (!rec)
		return;

	now.rec = rec->rec;
	*rec = now;
}

/* --- all objects of a context --- */

static void dump_pool(struct rxe_migr_out *out, struct rxe_pool *pool,
		      struct ib_ucontext *uc,
		      void (*dump)(struct rxe_migr_out *, void *,
				   struct ib_uobject *))
{
	struct rxe_pool_elem *elem;
	struct ib_uobject *uobj;
	unsigned long index = 0;

	while ((elem = rxe_migr_next(pool, uc, &index))) {
		uobj = rxe_migr_uobject(elem);
		if (uobj) {
			u32 ids[] = { pool->type, elem->index, uobj->id };

			rxe_migr_out_note(out, ids, sizeof(ids));
			dump(out, elem->obj, uobj);
		} else {
			out->changed = true;	/* the core is at it */
		}
		__rxe_put(elem);
		cond_resched();
	}
}

static void dump_async(struct rxe_migr_out *out, struct ib_ucontext *uc,
		       struct ib_uverbs_file *ufile)
{
	struct rxe_migr_rec_async_fd *rec;
	u32 crc = 0, now = 0;
	int n;

	n = rxe_migr_get_async_events(ufile, NULL, 0, &crc);
	rxe_migr_out_note(out, &n, sizeof(n));
	rxe_migr_out_note(out, &crc, sizeof(crc));
	if (no_events(out, uc->device, "the asynchronous file", n))
		return;

	rec = rxe_migr_out_record(out, RXE_MIGR_ASYNC_FD,
				  sizeof(*rec) + n * sizeof(struct rxe_migr_event));
	if (!rec)
		return;

	rec->events = n;
	if (rxe_migr_get_async_events(ufile, (void *)(rec + 1), n, &now) != n ||
	    now != crc)
		out->changed = true;
}

static void dump_context(struct rxe_migr_out *out, struct ib_ucontext *uc,
			 struct ib_uverbs_file *ufile)
{
	struct rxe_dev *rxe = to_rdev(uc->device);
	struct rxe_migr_image_hdr *hdr = rxe_migr_out_reserve(out, sizeof(*hdr));
	struct rxe_migr_rec_context *rec = rxe_migr_out_reserve(out, sizeof(*rec));

	dump_pool(out, &rxe->pd_pool, uc, dump_pd);
	dump_pool(out, &rxe->cq_pool, uc, dump_cq);
	dump_pool(out, &rxe->srq_pool, uc, dump_srq);
	dump_pool(out, &rxe->mr_pool, uc, dump_mr);
	dump_pool(out, &rxe->qp_pool, uc, rxe_migr_dump_qp);
	dump_pool(out, &rxe->mw_pool, uc, dump_mw);
	dump_pool(out, &rxe->ah_pool, uc, dump_ah);
	dump_async(out, uc, ufile);
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
	rxe_migr_release(uc, qps, n);

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
 * -ENOMEM, -EFBIG if an object takes more than 4 GiB or a file has more than
 * RXE_MIGR_MOST_EVENTS, -EAGAIN if objects were created or destroyed meanwhile, or
 * if there are some that STOP would refuse, -ENOKEY if there is no key to sign it with
 */
int rxe_migr_dump(struct ib_ucontext *uc, struct ib_uverbs_file *ufile,
		  u64 length, void **image, struct rxe_migr_dump_resp *resp)
{
	struct rxe_migr_out out = {};
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
	out = (struct rxe_migr_out){ .room = out.used };
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
