// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Restored objects: creation with wanted identities through the ordinary
 * create commands, pages for the MRs, and the start of the QPs.
 */
#include <linux/capability.h>
#include <linux/math64.h>
#include <linux/module.h>

#include "rxe.h"
#include "rxe_queue.h"
#include "rxe_task.h"

/* larger than any device hands out; keeps a bad image from wearing them out */
#define MAX_MMAP_OFFSET	(1ULL << 44)

static unsigned int migr_first;
module_param(migr_first, uint, 0444);
MODULE_PARM_DESC(migr_first,
		 "Where in each range of numbers this host begins, in percent, 0 to 99");

/**
 * rxe_migr_first - the first number of a pool that is given out, if nobody wants another
 * @limit: of the pool's numbers
 *
 * Numbers have to be free where a process moves to: hosts that begin at different ones
 * seldom give out the same.
 *
 * Context: any
 */
u32 rxe_migr_first(const struct xa_limit *limit)
{
	return limit->min + mul_u64_u32_div(limit->max - limit->min,
					    min(migr_first, 99U), 100);
}

static bool is_offset(u64 offset)
{
	return !(offset % PAGE_SIZE) && offset < MAX_MMAP_OFFSET;
}

/* Context: lock of the context held */
static int read_record(struct rxe_migr_uc *muc, u32 type, u32 handle,
		       struct rxe_migr_wanted *w)
{
	const struct rxe_migr_rec_srq *srq;
	const struct rxe_migr_rec_cq *cq;
	const struct rxe_migr_rec_mr *mr;
	const struct rxe_migr_rec_mw *mw;
	const struct rxe_migr_rec_qp *qp;
	const struct rxe_migr_rec_ah *ah;
	const void *rec = rxe_migr_record(muc, type, handle);

	if (!rec)
		return -ENOENT;

	switch (type) {
	case RXE_MIGR_CQ:
		cq = rec;
		w->mmap_offset[0] = cq->ring.mmap_offset;
		break;
	case RXE_MIGR_SRQ:
		srq = rec;
		w->index = srq->srq_num;
		w->mmap_offset[0] = srq->ring.mmap_offset;
		break;
	case RXE_MIGR_MR:
		mr = rec;
		w->index = mr->key;
		w->start = mr->start;
		w->length = mr->size;
		w->access = mr->access;
		if (mr->wire_key != mr->key)
			return -EINVAL;
		break;
	case RXE_MIGR_MW:
		mw = rec;
		w->index = mw->rkey;
		break;
	case RXE_MIGR_AH:
		ah = rec;
		w->index = ah->ah_num;
		break;
	case RXE_MIGR_QP:
		qp = rec;
		w->index = qp->qpn;
		w->qp_type = qp->qp_type;
		w->life = qp->life;
		w->mmap_offset[0] = qp->sq.mmap_offset;
		w->mmap_offset[1] = qp->rq.mmap_offset;
		if (qp->wire_qpn != qp->qpn)
			return -EINVAL;
		break;
	}
	if (!is_offset(w->mmap_offset[0]) || !is_offset(w->mmap_offset[1]))
		return -EINVAL;

	w->type = type;
	w->handle = handle;
	return 0;
}

/**
 * rxe_migr_get_wanted - what does the RESTORE attribute of a command want?
 * @udata: the create command
 * @type: of the object that it creates
 * @wanted: receives what the record says; .type is 0 if there is no attribute
 *
 * Context: process; sleeps.
 * Return: 0 or an error
 */
int rxe_migr_get_wanted(struct ib_udata *udata, enum rxe_migr_type type,
			struct rxe_migr_wanted *wanted)
{
	struct uverbs_attr_bundle *attrs;
	struct rxe_migr_restore restore;
	struct rxe_migr_uc *muc;
	int err;

	memset(wanted, 0, sizeof(*wanted));
	if (!udata)
		return 0;

	attrs = rdma_udata_to_uverbs_attr_bundle(udata);
	if (!uverbs_attr_is_valid(attrs, RXE_MIGR_ATTR_RESTORE))
		return 0;

	if (!checkpoint_restore_ns_capable(&init_user_ns))
		return -EPERM;

	err = uverbs_copy_from(&restore, attrs, RXE_MIGR_ATTR_RESTORE);
	if (err)
		return err;
	if (restore.reserved)
		return -EINVAL;

	muc = to_migr_uc(attrs->context);
	if (mutex_lock_killable(&muc->lock))
		return -EINTR;
	err = read_record(muc, type, restore.handle, wanted);
	mutex_unlock(&muc->lock);

	return err;
}

/**
 * rxe_migr_add_at - as __rxe_add_to_pool(), but at a given index
 * @pool: the pool
 * @elem: of the new object
 * @index: the index
 *
 * Context: process; sleeps.
 * Return: 0, -EBUSY if the index is taken, -ERANGE, -EINVAL if the pool is full,
 * or -ENOMEM
 */
int rxe_migr_add_at(struct rxe_pool *pool, struct rxe_pool_elem *elem,
		    u32 index)
{
	int err;

	if (index < pool->limit.min || index > pool->limit.max)
		return -ERANGE;

	if (atomic_inc_return(&pool->num_elem) > pool->max_elem) {
		err = -EINVAL;
		goto err_cnt;
	}

	elem->pool = pool;
	elem->obj = (u8 *)elem - pool->elem_offset;
	elem->index = index;
	kref_init(&elem->ref_cnt);
	init_completion(&elem->complete);

	/* reserves the slot; -EBUSY if it is taken */
	err = xa_insert(&pool->xa, index, NULL, GFP_KERNEL);
	if (err)
		goto err_cnt;

	return 0;

err_cnt:
	atomic_dec(&pool->num_elem);
	return err;
}

/* give the pending mmap of a new ring the offset that it had, and say so */
static int force_offset(struct rxe_queue *q, u64 offset,
			struct mminfo __user *resp)
{
	struct rxe_dev *rxe = q->rxe;
	u64 end;

	if (!q->ip) /* the command has no room for the answer */
		return -EINVAL;
	end = offset + ALIGN(q->ip->info.size, SHMLBA);

	spin_lock_bh(&rxe->pending_lock);
	q->ip->info.offset = offset;
	spin_unlock_bh(&rxe->pending_lock);

	/* what the application creates next must not get the same */
	spin_lock_bh(&rxe->mmap_offset_lock);
	rxe->mmap_offset = max(rxe->mmap_offset, end);
	spin_unlock_bh(&rxe->mmap_offset_lock);

	return copy_to_user(resp, &q->ip->info, sizeof(*resp)) ? -EFAULT : 0;
}

/**
 * rxe_migr_add_qp - hook in rxe_create_qp(): add the QP to its pool
 * @rxe: the device
 * @qp: the new QP, all zero but for the core's part
 * @udata: the create command
 *
 * Return: 0, -EBUSY if the wanted QPN is taken, -ERANGE, -EINVAL if its type is
 * not that of the record, or another error
 */
int rxe_migr_add_qp(struct rxe_dev *rxe, struct rxe_qp *qp,
		    struct ib_udata *udata)
{
	struct rxe_migr_qp *m = to_migr_qp(qp);
	int err;

	err = rxe_migr_get_wanted(udata, RXE_MIGR_QP, &m->wanted);
	if (err)
		return err;

	rxe_migr_proto_init_qp(m);

	if (!m->wanted.type)
		return rxe_add_to_pool(&rxe->qp_pool, qp);

	if (!rxe_migr_can_move(qp))
		return -EOPNOTSUPP;
	if (qp_type(qp) != m->wanted.qp_type)
		return -EINVAL;

	rxe_migr_claim(rxe, m->wanted.index, m->wanted.life);
	return rxe_migr_add_at(&rxe->qp_pool, &qp->elem, m->wanted.index);
}

/**
 * rxe_migr_finish_qp - hook in rxe_create_qp(): before others can find the QP
 * @qp: the new QP
 * @udata: the create command
 *
 * Return: 0 or an error, for which the caller destroys the QP
 */
int rxe_migr_finish_qp(struct rxe_qp *qp, struct ib_udata *udata)
{
	struct rxe_migr_qp *m = to_migr_qp(qp);
	struct rxe_create_qp_resp __user *resp;
	int err;

	if (!m->wanted.type)
		return 0;

	resp = udata->outbuf;
	err = force_offset(qp->sq.queue, m->wanted.mmap_offset[0],
			   &resp->sq_mi);
	if (!err && !qp->srq)
		err = force_offset(qp->rq.queue, m->wanted.mmap_offset[1],
				   &resp->rq_mi);
	if (err)
		return err;

	rxe_disable_task(&qp->send_task);
	rxe_disable_task(&qp->recv_task);
	rxe_migr_change(qp, RXE_MIGR_IN(RUNNING), RXE_MIGR_STOPPED);

	return 0;
}

/**
 * rxe_migr_finish_cq - hook in rxe_create_cq()
 * @cq: the new CQ
 * @udata: the create command
 *
 * Return: 0 or an error, for which the caller destroys the CQ
 */
int rxe_migr_finish_cq(struct rxe_cq *cq, struct ib_udata *udata)
{
	struct rxe_create_cq_resp __user *resp;
	struct rxe_migr_wanted wanted;
	int err;

	err = rxe_migr_get_wanted(udata, RXE_MIGR_CQ, &wanted);
	if (err || !wanted.type)
		return err;

	resp = udata->outbuf;
	return force_offset(cq->queue, wanted.mmap_offset[0], &resp->mi);
}

/**
 * rxe_migr_add_srq - hook in rxe_create_srq(): add the SRQ to its pool
 * @rxe: the device
 * @srq: the new SRQ
 * @udata: the command
 * @wanted: receives what its record says, for rxe_migr_finish_srq()
 *
 * Return: 0, -EBUSY if the wanted number is taken, -ERANGE, or another error
 */
int rxe_migr_add_srq(struct rxe_dev *rxe, struct rxe_srq *srq,
		     struct ib_udata *udata, struct rxe_migr_wanted *wanted)
{
	int err;

	err = rxe_migr_get_wanted(udata, RXE_MIGR_SRQ, wanted);
	if (err)
		return err;

	if (!wanted->type)
		return rxe_add_to_pool(&rxe->srq_pool, srq);

	return rxe_migr_add_at(&rxe->srq_pool, &srq->elem, wanted->index);
}

/**
 * rxe_migr_finish_srq - hook in rxe_create_srq(): before others can find it
 * @srq: the new SRQ
 * @udata: the command
 * @wanted: what rxe_migr_add_srq() has found
 *
 * Return: 0 or an error, for which the caller destroys the SRQ
 */
int rxe_migr_finish_srq(struct rxe_srq *srq, struct ib_udata *udata,
			const struct rxe_migr_wanted *wanted)
{
	struct rxe_create_srq_resp __user *resp;

	if (!wanted->type)
		return 0;

	resp = udata->outbuf;
	return force_offset(srq->rq.queue, wanted->mmap_offset[0], &resp->mi);
}

/**
 * rxe_migr_add_mr - hook in rxe_reg_user_mr(): add the MR to its pool
 * @rxe: the device
 * @mr: the new MR, all zero
 * @udata: the command
 * @wanted: receives what its record says, for rxe_migr_mr_init()
 *
 * Return: 0, -EBUSY if the index of the wanted key is taken, or another error
 */
int rxe_migr_add_mr(struct rxe_dev *rxe, struct rxe_mr *mr,
		    struct ib_udata *udata, struct rxe_migr_wanted *wanted)
{
	int err;

	err = rxe_migr_get_wanted(udata, RXE_MIGR_MR, wanted);
	if (err)
		return err;

	if (!wanted->type)
		return rxe_add_to_pool(&rxe->mr_pool, mr);

	return rxe_migr_add_at(&rxe->mr_pool, &mr->elem, wanted->index >> 8);
}

static void set_key(struct rxe_mr *mr, u32 key)
{
	mr->lkey = key;
	mr->rkey = key;
	mr->ibmr.lkey = key;
	mr->ibmr.rkey = key;
}

/**
 * rxe_migr_mr_init - hook in rxe_reg_user_mr(): pin the pages, or don't yet
 * @rxe: the device
 * @start: address in the application
 * @length: bytes
 * @access: enum ib_access_flags
 * @mr: the new MR
 * @wanted: what rxe_migr_add_mr() has found
 *
 * A restored MR becomes a shell: when this runs the application's memory is
 * not there yet. The start address waits in page_mask, which
 * rxe_mr_init_user() sets anew, and how to pin it in access.
 *
 * Return: 0 or an error
 */
int rxe_migr_mr_init(struct rxe_dev *rxe, u64 start, u64 length, int access,
		     struct rxe_mr *mr, const struct rxe_migr_wanted *wanted)
{
	if (!wanted->type)
		return rxe_mr_init_user(rxe, start, length, access, mr);

	if (start != wanted->start || length != wanted->length ||
	    access != (wanted->access & ~RXE_MIGR_ACCESS_PINNED))
		return -EINVAL;

	rxe_mr_init(wanted->access, mr);
	mr->ibmr.type = IB_MR_TYPE_USER;
	mr->page_mask = start;
	set_key(mr, wanted->index);

	return 0;
}

/**
 * rxe_migr_lock_shell - hook in rxe_dereg_mr()
 * @mr: the MR
 *
 * ATTACH refers to a shell for as long as its pages take to come, and
 * __rxe_cleanup() would not wait for that.
 *
 * Return: NULL if @mr is no shell; else its context, with the lock held, or
 * -EBUSY, also if a window has been bound to it before the lock was there
 */
struct rxe_migr_uc *rxe_migr_lock_shell(struct rxe_mr *mr)
{
	struct rxe_migr_uc *muc;

	if (mr->ibmr.type != IB_MR_TYPE_USER || READ_ONCE(mr->umem) ||
	    !mr->ibmr.uobject)
		return NULL;

	muc = to_migr_uc(mr->ibmr.uobject->context);
	if (!mutex_trylock(&muc->lock))
		return ERR_PTR(-EBUSY);
	if (!atomic_read(&mr->num_mw))
		return muc;

	mutex_unlock(&muc->lock);
	return ERR_PTR(-EBUSY);
}

/* pin the pages of a shell */
static int attach_mr(struct rxe_dev *rxe, struct rxe_mr *mr,
		     struct rxe_migr_status *st)
{
	u64 start = mr->page_mask;
	bool pinned = mr->access & RXE_MIGR_ACCESS_PINNED;
	u32 access = mr->access & ~RXE_MIGR_ACCESS_PINNED;
	u32 key = mr->rkey;
	int err;

	err = rxe_mr_init_user(rxe, start, mr->ibmr.length,
			       access | (pinned ? IB_ACCESS_LOCAL_WRITE : 0),
			       mr);
	set_key(mr, key);
	mr->access = access;
	if (err) {
		if (pinned)
			mr->access |= RXE_MIGR_ACCESS_PINNED;
		/* which rxe leaves as it was when it meets a page that it refuses */
		mr->num_buf = 0;
		mr->page_mask = start;
		st->why = RXE_MIGR_WHY_PIN;
		st->type = RXE_MIGR_MR;
		st->handle = mr->ibmr.uobject->id;
	} else {
		st->objects++;
	}

	return err;
}

/**
 * rxe_migr_attach_mrs - pin the pages of all MR shells of a context
 * @uc: the context
 * @st: counts the MRs, or names the one that failed
 *
 * MRs that got their pages before an error keep them until they are destroyed.
 *
 * Context: process, the application's own memory; track_lock held; sleeps.
 * Return: 0, -EAGAIN if an MR is just being created, or the error of
 * ib_umem_get()
 */
int rxe_migr_attach_mrs(struct ib_ucontext *uc, struct rxe_migr_status *st)
{
	struct rxe_migr_uc *muc = to_migr_uc(uc);
	struct rxe_dev *rxe = to_rdev(uc->device);
	struct rxe_pool_elem *elem;
	unsigned long index = 0;
	struct rxe_mr *mr;
	int err = 0;

	while (!err && (elem = rxe_migr_next(&rxe->mr_pool, uc, &index))) {
		mr = elem->obj;
		if (!mr->ibmr.uobject)
			err = -EAGAIN;	/* the core has not finished it */
		else if (mr->ibmr.type == IB_MR_TYPE_USER && !mr->umem)
			err = attach_mr(rxe, mr, st);
		if (!err)
			rxe_migr_track_mr(muc, mr);
		rxe_put(mr);
	}

	return err;
}

/*
 * Has the peer been restored here, and was it connected to this QP when both
 * were dumped? Then it is where the QP looks for it, though no image says so.
 */
static bool peer_is_here(struct rxe_migr_qp *m, const union ib_gid *dgid)
{
	struct rxe_dev *rxe = to_rdev(m->qp.ibqp.device);
	struct rxe_pool_elem *elem;
	struct rxe_migr_qp *peer;
	union ib_gid sgid;
	struct rxe_qp *qp;
	bool is;

	elem = rxe_migr_get(&rxe->qp_pool, m->qp.attr.dest_qp_num);
	if (!elem)
		return false;

	qp = elem->obj;
	peer = to_migr_qp(qp);
	mutex_lock(&peer->lock);
	rxe_migr_sgid(&qp->pri_av, sgid.raw);
	is = peer->refilled && rxe_migr_connected(qp) &&
	     qp->attr.dest_qp_num == qp_num(&m->qp) &&
	     !memcmp(&sgid, dgid, sizeof(sgid)) &&
	     (m->peer_life ? peer->life == m->peer_life :
			     peer->peer_life == m->life);
	mutex_unlock(&peer->lock);
	rxe_put(qp);

	return is;
}

/* may it be that it has been given the right peer? */
static bool peer_is_right(struct rxe_migr_qp *m)
{
	const union ib_gid *dgid = (void *)m->qp.pri_av.grh.dgid.raw;

	return !rxe_migr_connected(&m->qp) ||
	       !memcmp(dgid, &m->led_to, sizeof(*dgid)) ||
	       peer_is_here(m, dgid);
}

static int chk_resumable(struct ib_ucontext *uc, struct rxe_qp **qps,
			 unsigned int n, struct rxe_migr_status *st)
{
	struct rxe_migr_uc *muc = to_migr_uc(uc);
	unsigned int i;

	if (!muc->restored || !muc->attached || !muc->loaded)
		return -EINVAL;

	for (i = 0; i < n; i++) {
		struct rxe_migr_qp *m = to_migr_qp(qps[i]);

		if (!m->wanted.type || (m->refilled && peer_is_right(m)))
			continue;
		st->why = m->refilled ? RXE_MIGR_WHY_ELSEWHERE :
					RXE_MIGR_WHY_QP_STATE;
		st->type = RXE_MIGR_QP;
		st->handle = ((struct ib_uobject *)qps[i]->ibqp.uobject)->id;
		st->qpn = qp_num(qps[i]);
		return -EINVAL;
	}

	return 0;
}

/**
 * rxe_migr_resume - start the QPs of a restored context
 * @uc: the context, attached
 * @ufile: its file
 * @flags: RXE_MIGR_RESUME_*
 * @st: counts the QPs, or names the one that is not ready
 *
 * Context: process; sleeps.
 * Return: 0, -EINVAL, -ENOKEY, -EAGAIN or -ENOMEM
 */
int rxe_migr_resume(struct ib_ucontext *uc, struct ib_uverbs_file *ufile,
		    u32 flags, struct rxe_migr_status *st)
{
	bool check = flags & RXE_MIGR_RESUME_CHECK_ONLY;
	struct rxe_qp **qps;
	unsigned int n, i;
	int err;

	err = rxe_migr_collect(uc, &qps, &n);
	if (err)
		return err;

	err = chk_resumable(uc, qps, n, st);
	for (i = 0; i < n && !err; i++)
		if (rxe_migr_connected(qps[i]))
			err = rxe_migr_key_active();
	if (!err)
		err = rxe_migr_replay(to_migr_uc(uc), ufile, check);
	if (err || check)
		goto out;

	to_migr_uc(uc)->resumed = true;
	for (i = 0; i < n; i++) {
		struct rxe_migr_qp *m = to_migr_qp(qps[i]);
		bool resumes;

		mutex_lock(&m->lock);
		if (m->wanted.type && qps[i]->migr == RXE_MIGR_STOPPED) {
			if (m->peer != RXE_MIGR_PEER_ABSENT)
				m->peer = RXE_MIGR_PEER_CAPABLE; /* STOP has asked */
			rxe_enable_task(&qps[i]->recv_task);
			rxe_enable_task(&qps[i]->send_task);
			/* not who has been connected since REFILL */
			resumes = rxe_migr_connected(qps[i]) &&
				  m->before == RXE_MIGR_RESUMING;
			rxe_migr_run(qps[i], resumes ? RXE_MIGR_RESUMING :
						       RXE_MIGR_RUNNING);
			rxe_counter_inc(to_rdev(uc->device),
					RXE_CNT_MIGR_RESTORED);
			st->objects++;
		}
		mutex_unlock(&m->lock);
	}

out:
	rxe_migr_release(uc, qps, n);
	return err;
}
