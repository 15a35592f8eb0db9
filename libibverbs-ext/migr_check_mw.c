// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The record of a memory window: what it says of itself, and what it is bound to.
 *
 * What the driver would refuse is refused here: the dump is parsed, too, and then
 * the source still runs.
 */

#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_verbs.h>

#include "migr_check.h"

#define N_ELEM(a) (sizeof(a) / sizeof((a)[0]))

/* rdma_rxe's limits (rxe_param.h) */
#define MIN_MW_INDEX ((1U << 19) + 1)
#define MAX_MW_INDEX (1U << 20)

/* rdma_rxe's enum rxe_mw_state */
#define FREE 1
#define VALID 2

/* what rdma_rxe accepts of a bind: no page of it is asked whether it can */
#define ACCESS_ALL \
	(MIGR_ACCESS_ALL | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND)

/* NULL: a record on its own, or a reference to nothing */
static const void *target(const struct migr_index *index, uint32_t handle)
{
	return index && handle != RXE_MIGR_NO_HANDLE
		       ? migr_index_find(index, handle)
		       : NULL;
}

/* a handle of this type if there must be one, else none */
static int check_link(const struct migr_index *index,
		      const struct rxe_migr_rec *rec, const char *field,
		      uint32_t handle, uint32_t type, bool wanted,
		      struct migr_error *err)
{
	if (wanted)
		return migr_check_ref(index, rec, field, handle, type, err);
	if (handle != RXE_MIGR_NO_HANDLE)
		return migr_bad(err, rec, "%s is %u, of a window without one",
				field, handle);
	return 0;
}

static int check_range(const struct rxe_migr_rec_mw *mw,
		       const struct rxe_migr_rec_mr *mr, struct migr_error *err)
{
	if (mw->size > mr->size ||
	    (!(mw->access & IBV_ACCESS_ZERO_BASED) &&
	     (mw->addr < mr->iova ||
	      mw->addr - mr->iova > mr->size - mw->size)))
		return migr_bad(err, &mw->rec,
				"addr is %#llx, size %#llx: outside of MR %u",
				(unsigned long long)mw->addr,
				(unsigned long long)mw->size, mw->mr);
	return 0;
}

/* as rdma_rxe's rxe_check_bind_mw() */
static int check_mr(const struct rxe_migr_rec_mw *mw,
		    const struct rxe_migr_rec_mr *mr, struct migr_error *err)
{
	const uint32_t writes =
		IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

	if (mr->pd != mw->pd)
		return migr_bad(err, &mw->rec, "mr is %u, of PD %u, not %u",
				mw->mr, mr->pd, mw->pd);
	if (!(mr->access & IBV_ACCESS_MW_BIND))
		return migr_bad(err, &mw->rec,
				"mr is %u, to which no window can be bound",
				mw->mr);
	if (mw->access & writes && !(mr->access & IBV_ACCESS_LOCAL_WRITE))
		return migr_bad(err, &mw->rec,
				"access is %#x, MR %u cannot be written",
				mw->access, mw->mr);
	return check_range(mw, mr, err);
}

int migr_check_mw(const struct migr_index *index,
		  const struct rxe_migr_rec *rec, struct migr_error *err)
{
	static const struct migr_field fields[] = {
		MIGR_FIELD(rxe_migr_rec_mw, mw_type, IBV_MW_TYPE_1,
			   IBV_MW_TYPE_2),
		MIGR_FIELD(rxe_migr_rec_mw, rkey, MIN_MW_INDEX << 8,
			   MAX_MW_INDEX << 8 | 0xff),
		MIGR_FIELD(rxe_migr_rec_mw, state, FREE, VALID),
	};
	const struct rxe_migr_rec_mw *mw = (const void *)rec;
	const bool type_2 = mw->mw_type == IBV_MW_TYPE_2;
	const bool valid = mw->state == VALID;
	const struct rxe_migr_rec_mr *mr;
	const struct rxe_migr_rec_qp *qp;
	int ret;

	ret = migr_check_length(rec, sizeof(*mw), err);
	if (!ret)
		ret = migr_check_ref(index, rec, "pd", mw->pd, RXE_MIGR_PD,
				     err);
	if (!ret)
		ret = migr_check_fields(rec, fields, N_ELEM(fields), err);
	if (ret)
		return ret;

	if (mw->wire_key != mw->rkey)
		return migr_bad(err, rec, "wire_key is %#x, not rkey %#x",
				mw->wire_key, mw->rkey);
	if (!valid && !type_2)
		return migr_bad(err, rec, "state is %u, of type 1", mw->state);
	if (mw->access & ~ACCESS_ALL ||
	    (!type_2 && mw->access & IBV_ACCESS_ZERO_BASED))
		return migr_bad(err, rec, "access is %#x", mw->access);
	if (type_2 && valid != !!mw->size)
		return migr_bad(err, rec, "size is %llu in state %u",
				(unsigned long long)mw->size, mw->state);

	ret = check_link(index, rec, "mr", mw->mr, RXE_MIGR_MR, mw->size, err);
	if (!ret)
		ret = check_link(index, rec, "qp", mw->qp, RXE_MIGR_QP,
				 type_2 && valid, err);
	if (ret)
		return ret;

	mr = target(index, mw->mr);
	if (mr)
		ret = check_mr(mw, mr, err);
	if (ret)
		return ret;
	qp = target(index, mw->qp);
	if (qp && qp->pd != mw->pd)
		return migr_bad(err, rec, "qp is %u, of PD %u, not %u", mw->qp,
				qp->pd, mw->pd);
	return 0;
}
