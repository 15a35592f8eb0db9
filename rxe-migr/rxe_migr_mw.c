// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory windows. A restored one is filled while it is created, before anybody
 * can find it: so it comes after the MR and the QP to which it is bound. It has no
 * reference to its QP, which has a list of its windows.
 *
 * A kernel of the cluster has signed the record, but it may have been wrong. It
 * is checked whole, by the rules of rxe_check_bind_mw(), and only then used.
 */
#include "rxe.h"

/**
 * rxe_migr_add_mw - hook in rxe_alloc_mw(): add the window to its pool
 * @rxe: the device
 * @mw: the new window, all zero but for the core's part
 * @udata: the command
 * @wanted: receives what its record says, for rxe_migr_finish_mw()
 *
 * Return: 0, -EBUSY if the index of the wanted key is taken, -ERANGE, or another
 * error
 */
int rxe_migr_add_mw(struct rxe_dev *rxe, struct rxe_mw *mw,
		    struct ib_udata *udata, struct rxe_migr_wanted *wanted)
{
	int err;

	err = rxe_migr_get_wanted(udata, RXE_MIGR_MW, wanted);
	if (err)
		return err;

	if (!wanted->type)
		return rxe_add_to_pool(&rxe->mw_pool, mw);

	return rxe_migr_add_at(&rxe->mw_pool, &mw->elem, wanted->index >> 8);
}

/* with a reference, or NULL if it is not the object of this handle */
static void *find(struct rxe_migr_uc *muc, struct rxe_pool *pool, u32 index,
		  u32 handle)
{
	struct rxe_pool_elem *elem = rxe_migr_get(pool, index);
	struct ib_uobject *uobj;

	if (!elem)
		return NULL;

	uobj = rxe_migr_uobject(elem);
	if (uobj && uobj->context == &muc->uc.ibuc && uobj->id == handle)
		return elem->obj;

	__rxe_put(elem);
	return NULL;
}

/*
 * The MR of a record, a shell: as such it stays for as long as the lock of the
 * context is held. See rxe_migr_lock_shell() and ATTACH.
 */
static struct rxe_mr *find_mr(struct rxe_migr_uc *muc, u32 handle)
{
	struct rxe_dev *rxe = to_rdev(muc->uc.ibuc.device);
	const struct rxe_migr_rec_mr *rec;
	struct rxe_mr *mr;

	rec = rxe_migr_record(muc, RXE_MIGR_MR, handle);
	if (!rec)
		return NULL;

	mr = find(muc, &rxe->mr_pool, rec->key >> 8, handle);
	if (mr && (mr->ibmr.type != IB_MR_TYPE_USER || mr->umem)) {
		rxe_put(mr);
		mr = NULL;
	}

	return mr;
}

static struct rxe_qp *find_qp(struct rxe_migr_uc *muc, u32 handle)
{
	struct rxe_dev *rxe = to_rdev(muc->uc.ibuc.device);
	const struct rxe_migr_rec_qp *rec;

	rec = rxe_migr_record(muc, RXE_MIGR_QP, handle);

	return rec ? find(muc, &rxe->qp_pool, rec->qpn, handle) : NULL;
}

/* the part of the record that needs nobody else; returns the bad field */
static const char *bad_window(struct rxe_mw *mw,
			      const struct rxe_migr_rec_mw *rec)
{
	bool type_2 = rec->mw_type == IB_MW_TYPE_2;
	bool valid = rec->state == RXE_MW_STATE_VALID;

	if (rec->rec.length != sizeof(*rec))
		return "length";
	if (rec->pd != mw->ibmw.pd->uobject->id)
		return "pd";
	if (rec->mw_type != mw->ibmw.type ||
	    (!type_2 && rec->mw_type != IB_MW_TYPE_1))
		return "mw_type";
	/* that for which there is place in the pool: LOAD may have come since */
	if (rec->rkey >> 8 != mw->elem.index || !rkey_is_mw(rec->rkey))
		return "rkey";
	if (rec->wire_key != rec->rkey)
		return "wire_key";
	if (!valid && !(type_2 && rec->state == RXE_MW_STATE_FREE))
		return "state";
	if (rec->access & ~RXE_ACCESS_SUPPORTED_MW ||
	    (!type_2 && rec->access & IB_ZERO_BASED))
		return "access";
	if (type_2 && valid != !!rec->size)
		return "size";

	return NULL;
}

static const char *bad_mr(struct rxe_mw *mw,
			  const struct rxe_migr_rec_mw *rec,
			  struct rxe_mr *mr)
{
	u32 writes = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC;

	if (!rec->size)
		return rec->mr == RXE_MIGR_NO_HANDLE ? NULL : "mr";
	if (!mr || mr_pd(mr) != rxe_mw_pd(mw) ||
	    mr->access & IB_ZERO_BASED || !(mr->access & IB_ACCESS_MW_BIND))
		return "mr";
	if (rec->access & writes && !(mr->access & IB_ACCESS_LOCAL_WRITE))
		return "access";
	if (rec->size > mr->ibmr.length)
		return "size";
	if (!(rec->access & IB_ZERO_BASED) &&
	    (rec->addr < mr->ibmr.iova ||
	     rec->addr - mr->ibmr.iova > mr->ibmr.length - rec->size))
		return "addr";

	return NULL;
}

static const char *bad_qp(struct rxe_mw *mw,
			  const struct rxe_migr_rec_mw *rec,
			  const struct rxe_qp *qp)
{
	if (rec->mw_type != IB_MW_TYPE_2 || rec->state != RXE_MW_STATE_VALID)
		return rec->qp == RXE_MIGR_NO_HANDLE ? NULL : "qp";

	return qp && qp->pd == rxe_mw_pd(mw) ? NULL : "qp";
}

/* the reference to the MR becomes the window's, as in rxe_do_bind_mw() */
static void fill_mw(struct rxe_mw *mw, const struct rxe_migr_rec_mw *rec,
		    struct rxe_mr *mr, struct rxe_qp *qp)
{
	mw->rkey = rec->rkey;
	mw->ibmw.rkey = rec->rkey; /* the answer to the command */
	mw->state = rec->state;
	mw->access = rec->access;
	mw->addr = rec->addr;
	mw->length = rec->size;
	if (qp)
		rxe_mw_set_qp(mw, qp);
	mw->mr = mr;
	if (mr)
		atomic_inc(&mr->num_mw);
}

/* Context: lock of the context held */
static int restore_mw(struct rxe_migr_uc *muc, struct rxe_mw *mw, u32 handle)
{
	const struct rxe_migr_rec_mw *rec;
	const char *bad;
	struct rxe_mr *mr = NULL;
	struct rxe_qp *qp = NULL;

	rec = rxe_migr_record(muc, RXE_MIGR_MW, handle);
	if (!rec)
		return -ENOENT;

	if (rec->mr != RXE_MIGR_NO_HANDLE)
		mr = find_mr(muc, rec->mr);
	if (rec->qp != RXE_MIGR_NO_HANDLE)
		qp = find_qp(muc, rec->qp);

	bad = bad_window(mw, rec) ?: bad_mr(mw, rec, mr) ?:
	      bad_qp(mw, rec, qp);
	if (!bad) {
		fill_mw(mw, rec, mr, qp);
		rxe_finalize(mw);
		mr = NULL;
	} else {
		rxe_err_mw(mw, "image: bad %s\n", bad);
	}

	/* not before rxe_free_mws() would find the window */
	if (qp)
		rxe_put(qp);
	if (mr)
		rxe_put(mr);
	return bad ? -EINVAL : 0;
}

/**
 * rxe_migr_finish_mw - hook in rxe_alloc_mw(): fill it, and let others find it
 * @mw: the new window, free or not yet bound
 * @udata: the command
 * @wanted: what rxe_migr_add_mw() has found
 *
 * Context: process; sleeps.
 * Return: 0, or an error, for which the caller cleans the window up: -EINVAL
 * with the field in the log, -ENOENT if the image has no record of it any more
 */
int rxe_migr_finish_mw(struct rxe_mw *mw, struct ib_udata *udata,
		       const struct rxe_migr_wanted *wanted)
{
	struct rxe_migr_uc *muc;
	int err;

	if (!wanted->type) {
		rxe_finalize(mw);
		return 0;
	}

	muc = to_migr_uc(rdma_udata_to_uverbs_attr_bundle(udata)->context);
	if (mutex_lock_killable(&muc->lock))
		return -EINTR;
	err = restore_mw(muc, mw, wanted->handle);
	mutex_unlock(&muc->lock);

	return err;
}

/**
 * rxe_migr_mw_reads - may a QP's peer have read through this window?
 * @qp: the QP
 * @rkey: the window's key
 *
 * As rxe_lookup_mw(), which finds windows under RCU alone.
 *
 * Context: process
 * Return: whether it may
 */
bool rxe_migr_mw_reads(struct rxe_qp *qp, u32 rkey)
{
	struct rxe_dev *rxe = to_rdev(qp->ibqp.device);
	struct rxe_pool_elem *elem;
	struct rxe_mw *mw;
	bool may;

	elem = rxe_migr_get(&rxe->mw_pool, rkey >> 8);
	if (!elem)
		return false;

	mw = elem->obj;
	spin_lock_bh(&mw->lock);
	may = mw->rkey == rkey && rxe_mw_pd(mw) == qp->pd &&
	      mw->state == RXE_MW_STATE_VALID && mw->length &&
	      mw->access & IB_ACCESS_REMOTE_READ &&
	      (mw->ibmw.type != IB_MW_TYPE_2 || mw->qp == qp);
	spin_unlock_bh(&mw->lock);
	rxe_put(mw);

	return may;
}
