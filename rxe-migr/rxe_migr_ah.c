// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Address handles. Work requests call an AH by its number, so that comes back;
 * where it leads the command says, since the host's own address is another one.
 */
#include "rxe.h"

/* does the command ask for what the record says? Context: lock of it held */
static bool is_same(struct rxe_migr_uc *muc, struct rxe_ah *ah, u32 handle,
		    struct rdma_ah_attr *attr)
{
	const struct rxe_migr_rec_ah *rec;

	rec = rxe_migr_record(muc, RXE_MIGR_AH, handle);

	return rec && rec->rec.length == sizeof(*rec) &&
	       rec->pd == ah->ibah.pd->uobject->id &&
	       rdma_ah_get_ah_flags(attr) & IB_AH_GRH &&
	       !memcmp(rec->dgid, rdma_ah_read_grh(attr)->dgid.raw,
		       sizeof(rec->dgid));
}

/**
 * rxe_migr_add_ah - hook in rxe_create_ah(): add the AH to its pool
 * @rxe: the device
 * @ah: the new AH, all zero but for the core's part
 * @init: what is asked for
 * @udata: the command, or NULL
 *
 * Context: process if there is a command, which may sleep
 * Return: 0, -EBUSY if the wanted number is taken, -ERANGE, -EINVAL if another
 * AH is asked for than the record says, or another error
 */
int rxe_migr_add_ah(struct rxe_dev *rxe, struct rxe_ah *ah,
		    struct rdma_ah_init_attr *init, struct ib_udata *udata)
{
	struct rxe_migr_wanted wanted;
	struct rxe_migr_uc *muc;
	bool same;
	int err;

	err = rxe_migr_get_wanted(udata, RXE_MIGR_AH, &wanted);
	if (err)
		return err;

	if (!wanted.type)
		return rxe_add_to_pool_ah(&rxe->ah_pool, ah, init->flags &
					  RDMA_CREATE_AH_SLEEPABLE);

	muc = to_migr_uc(rdma_udata_to_uverbs_attr_bundle(udata)->context);
	if (mutex_lock_killable(&muc->lock))
		return -EINTR;
	same = is_same(muc, ah, wanted.handle, init->ah_attr);
	mutex_unlock(&muc->lock);
	if (!same)
		return -EINVAL;

	return rxe_migr_add_at(&rxe->ah_pool, &ah->elem, wanted.index);
}
