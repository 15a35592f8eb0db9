// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Events that nobody had read when the context was dumped come into their files
 * again, in their order, before the application runs.
 */
#include "rxe.h"

/**
 * struct replay - the objects to which events belong
 * @cqs: by handle, each with a reference
 * @qps: by handle, each with a reference
 * @srqs: by handle, each with a reference
 * @spare: memory for the events
 * @post: events are put into their files; else they are only looked at, and get
 *        memory: so nothing can fail when the first one is put back
 */
struct replay {
	struct xarray	cqs;
	struct xarray	qps;
	struct xarray	srqs;
	struct list_head spare;
	bool		post;
};

static int collect(struct xarray *xa, struct rxe_pool *pool,
		   struct ib_ucontext *uc)
{
	struct rxe_pool_elem *elem;
	struct ib_uobject *uobj;
	unsigned long index = 0;
	int err;

	while ((elem = rxe_migr_next(pool, uc, &index))) {
		uobj = rxe_migr_uobject(elem);
		err = uobj ? xa_insert(xa, uobj->id, elem, GFP_KERNEL) :
			     -EAGAIN;
		if (err) {
			__rxe_put(elem);
			return err;
		}
	}

	return 0;
}

static void release(struct xarray *xa)
{
	struct rxe_pool_elem *elem;
	unsigned long index;

	xa_for_each(xa, index, elem)
		__rxe_put(elem);
	xa_destroy(xa);
}

static int refuse(struct rxe_migr_uc *muc, const char *what, u32 handle)
{
	rxe_err_uc(&muc->uc, "image: %s of %u, which is not there\n", what,
		   handle);
	return -EINVAL;
}

static int replay_comp(struct rxe_migr_uc *muc, struct replay *r,
		       const struct rxe_migr_rec_comp_channel *rec)
{
	const u32 *handles = (const void *)(rec + 1);
	struct rxe_pool_elem *elem;
	struct rxe_cq *cq;
	int err = 0;
	u32 i;

	if (rec->rec.length != sizeof(*rec) +
			       ALIGN((u64)rec->events * sizeof(*handles), 8))
		return refuse(muc, "completion events", rec->cq);

	for (i = 0; i < rec->events && !err; i++) {
		elem = xa_load(&r->cqs, handles[i]);
		cq = elem ? elem->obj : NULL;
		if (!cq || !cq->ibcq.cq_context)
			return refuse(muc, "completion event", handles[i]);
		if (r->post)
			rxe_migr_put_comp_event(&r->spare, &cq->ibcq);
		else
			err = rxe_migr_alloc_event(&r->spare);
	}

	return err;
}

static int replay_object(struct replay *r, struct xarray *xa,
			 const struct rxe_migr_event *e)
{
	struct rxe_pool_elem *elem = xa_load(xa, e->handle);

	if (!elem)
		return -ENOENT;
	if (!r->post)
		return rxe_migr_alloc_event(&r->spare);
	rxe_migr_put_async_event(&r->spare, rxe_migr_uobject(elem), e->type);

	return 0;
}

static int replay_async(struct rxe_migr_uc *muc, struct replay *r,
			struct ib_uverbs_file *ufile,
			const struct rxe_migr_rec_async_fd *rec)
{
	const struct rxe_migr_event *e = (const void *)(rec + 1);
	int err = 0;
	u32 i;

	if (rec->rec.length != sizeof(*rec) + (u64)rec->events * sizeof(*e))
		return refuse(muc, "asynchronous events", 0);

	for (i = 0; i < rec->events && !err; i++, e++) {
		switch (e->type) {
		case IB_EVENT_CQ_ERR:
			err = replay_object(r, &r->cqs, e);
			break;
		case IB_EVENT_SRQ_ERR:
		case IB_EVENT_SRQ_LIMIT_REACHED:
			err = replay_object(r, &r->srqs, e);
			break;
		case IB_EVENT_QP_FATAL:
		case IB_EVENT_QP_REQ_ERR:
		case IB_EVENT_QP_ACCESS_ERR:
		case IB_EVENT_COMM_EST:
		case IB_EVENT_SQ_DRAINED:
		case IB_EVENT_PATH_MIG:
		case IB_EVENT_PATH_MIG_ERR:
		case IB_EVENT_QP_LAST_WQE_REACHED:
			err = replay_object(r, &r->qps, e);
			break;
		case IB_EVENT_DEVICE_FATAL:
		case IB_EVENT_PORT_ACTIVE:
		case IB_EVENT_PORT_ERR:
		case IB_EVENT_LID_CHANGE:
		case IB_EVENT_PKEY_CHANGE:
		case IB_EVENT_SM_CHANGE:
		case IB_EVENT_CLIENT_REREGISTER:
		case IB_EVENT_GID_CHANGE:
			if (r->post)
				rxe_migr_put_port_event(&r->spare, ufile,
							e->handle, e->type);
			else
				err = rxe_migr_alloc_event(&r->spare);
			break;
		default:
			err = -EINVAL;
			break;
		}
	}

	if (!err || err == -ENOMEM)
		return err;
	return refuse(muc, "asynchronous event", e[-1].handle);
}

static int replay_all(struct rxe_migr_uc *muc, struct replay *r,
		      struct ib_uverbs_file *ufile)
{
	const struct rxe_migr_rec *rec = NULL;
	int err = 0;

	while (!err && (rec = rxe_migr_next_record(muc, rec))) {
		if (rec->type == RXE_MIGR_COMP_CHANNEL)
			err = replay_comp(muc, r, (const void *)rec);
		else if (rec->type == RXE_MIGR_ASYNC_FD)
			err = replay_async(muc, r, ufile, (const void *)rec);
	}

	return err;
}

/**
 * rxe_migr_replay - put back the events that nobody had read
 * @muc: the context, with its image; the lock is held
 * @ufile: its file
 * @check: only find out whether they could be
 *
 * Once they have been put back the image is forgotten. Before, nothing has changed.
 *
 * Context: process; sleeps.
 * Return: 0, -ENOMEM, -EAGAIN if an object is just being created, or -EINVAL
 * with the event in the log
 */
int rxe_migr_replay(struct rxe_migr_uc *muc, struct ib_uverbs_file *ufile,
		    bool check)
{
	struct rxe_dev *rxe = to_rdev(muc->uc.ibuc.device);
	struct replay r = {};
	int err;

	xa_init(&r.cqs);
	xa_init(&r.qps);
	xa_init(&r.srqs);
	INIT_LIST_HEAD(&r.spare);
	err = collect(&r.cqs, &rxe->cq_pool, &muc->uc.ibuc);
	if (!err)
		err = collect(&r.qps, &rxe->qp_pool, &muc->uc.ibuc);
	if (!err)
		err = collect(&r.srqs, &rxe->srq_pool, &muc->uc.ibuc);

	if (!err)
		err = replay_all(muc, &r, ufile);
	if (!err && !check) {
		r.post = true;
		err = replay_all(muc, &r, ufile);
		rxe_migr_unload(muc);
	}

	rxe_migr_free_events(&r.spare);
	release(&r.srqs);
	release(&r.qps);
	release(&r.cqs);
	return err;
}
