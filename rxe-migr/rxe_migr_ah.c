// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Addresses of what is restored: where an AH or a QP leads to the record says. From
 * where it comes the command says, since the host's own address is another one. Work
 * requests call an AH by its number, so that comes back.
 */
#include <linux/etherdevice.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>

#include "rxe.h"

static bool is_ipv4(const union ib_gid *gid)
{
	return ipv6_addr_v4mapped((const struct in6_addr *)gid);
}

/*
 * Lead to @to instead, as a record says. The MAC address is that of the device's own
 * GID, which the command names: it only says whether that is on this host.
 */
static bool redirect(struct rxe_dev *rxe, const u8 *to, u8 hop_limit,
		     struct rdma_ah_attr *attr)
{
	struct ib_global_route *grh = rdma_ah_retrieve_grh(attr);
	const union ib_gid *own = &grh->sgid_attr->gid;
	const struct ib_gid_attr *here;
	union ib_gid dgid;

	memcpy(dgid.raw, to, sizeof(dgid.raw));
	if (memcmp(&grh->dgid, own, sizeof(*own)) ||
	    is_ipv4(&dgid) != is_ipv4(own))
		return false;

	here = rdma_find_gid_by_port(&rxe->ib_dev, &dgid,
				     IB_GID_TYPE_ROCE_UDP_ENCAP, 1, NULL);
	if (IS_ERR(here))
		eth_zero_addr(attr->roce.dmac);
	else
		rdma_put_gid_attr(here);
	grh->dgid = dgid;
	grh->hop_limit = hop_limit; /* the core has set its own */

	return true;
}

/*
 * Is the command for this record? To resolve an address takes time, and fails if
 * nobody answers, so for that of a host it names the device's own. Multicast
 * addresses need no answer. Context: lock of @muc held
 */
static bool fits(struct rxe_migr_uc *muc, struct rxe_ah *ah, u32 handle,
		 struct rdma_ah_attr *attr)
{
	const struct rxe_migr_rec_ah *rec;

	rec = rxe_migr_record(muc, RXE_MIGR_AH, handle);
	if (!rec || rec->rec.length != sizeof(*rec) ||
	    rec->pd != ah->ibah.pd->uobject->id ||
	    !(rdma_ah_get_ah_flags(attr) & IB_AH_GRH))
		return false;

	if (rdma_is_multicast_addr((struct in6_addr *)rec->dgid))
		return !memcmp(rec->dgid, rdma_ah_read_grh(attr)->dgid.raw,
			       sizeof(rec->dgid));

	return redirect(to_rdev(ah->ibah.device), rec->dgid, rec->hop_limit,
			attr);
}

/**
 * rxe_migr_add_ah - hook in rxe_create_ah(): add the AH to its pool
 * @rxe: the device
 * @ah: the new AH, all zero but for the core's part
 * @init: what is asked for; of a restored AH, what it comes to
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
	bool fit;
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
	fit = fits(muc, ah, wanted.handle, init->ah_attr);
	mutex_unlock(&muc->lock);
	if (!fit)
		return -EINVAL;

	return rxe_migr_add_at(&rxe->ah_pool, &ah->elem, wanted.index);
}

/**
 * rxe_migr_lead_qp - hook in rxe_migr_modify_qp(): a RESTORE attribute says where to
 * @qp: the QP
 * @attr: what is asked for; with the attribute, what it comes to
 * @mask: which of it
 * @udata: the command, or NULL
 *
 * As for an AH, the command names the device's own GID: the peer's host may not
 * answer, be it for now.
 *
 * Context: process; sleeps.
 * Return: 0, -EINVAL if the attribute is none for this command, or another error
 */
int rxe_migr_lead_qp(struct rxe_qp *qp, struct ib_qp_attr *attr, int mask,
		     struct ib_udata *udata)
{
	const struct rxe_migr_rec_qp *rec;
	struct rxe_migr_wanted wanted;
	struct rxe_migr_uc *muc;
	bool fit;
	int err;

	err = rxe_migr_get_wanted(udata, RXE_MIGR_QP, &wanted);
	if (err || !wanted.type)
		return err;

	if (!(mask & IB_QP_AV) ||
	    !(rdma_ah_get_ah_flags(&attr->ah_attr) & IB_AH_GRH) ||
	    !to_migr_qp(qp)->wanted.type ||
	    to_migr_qp(qp)->wanted.handle != wanted.handle)
		return -EINVAL;

	muc = to_migr_uc(rdma_udata_to_uverbs_attr_bundle(udata)->context);
	if (mutex_lock_killable(&muc->lock))
		return -EINTR;
	rec = rxe_migr_record(muc, RXE_MIGR_QP, wanted.handle);
	fit = rec && redirect(to_rdev(qp->ibqp.device), rec->dgid,
			      rec->hop_limit, &attr->ah_attr);
	mutex_unlock(&muc->lock);

	return fit ? 0 : -EINVAL;
}
