// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The records of what datagrams need: address handles, and the multicast groups
 * of a QP.
 */

#include <infiniband/verbs.h>
#include <rdma/rdma_user_rxe.h>

#include "migr_check.h"
#include "migr_qp.h"

#define N_ELEM(a) (sizeof(a) / sizeof((a)[0]))

/* rdma_rxe's limits (rxe_param.h) */
#define MIN_AH_NUM 1
#define MAX_AH_NUM ((1U << 15) - 1)

bool migr_gid_is_multicast(const uint8_t *gid)
{
	return migr_gid_is_ipv4(gid) ? gid[12] >> 4 == 0xe : gid[0] == 0xff;
}

int migr_check_ah(const struct migr_index *index,
		  const struct rxe_migr_rec *rec, struct migr_error *err)
{
	static const struct migr_field fields[] = {
		MIGR_FIELD(rxe_migr_rec_ah, ah_num, MIN_AH_NUM, MAX_AH_NUM),
		MIGR_FIELD(rxe_migr_rec_ah, network_type, RXE_NETWORK_TYPE_IPV4,
			   RXE_NETWORK_TYPE_IPV6),
	};
	const struct rxe_migr_rec_ah *ah = (const void *)rec;
	int ret;

	ret = migr_check_length(rec, sizeof(*ah), err);
	if (!ret)
		ret = migr_check_ref(index, rec, "pd", ah->pd, RXE_MIGR_PD,
				     err);
	if (!ret)
		ret = migr_check_fields(rec, fields, N_ELEM(fields), err);
	if (ret)
		return ret;
	if (migr_gid_is_ipv4(ah->sgid) !=
	    (ah->network_type == RXE_NETWORK_TYPE_IPV4))
		return migr_bad(
			err, rec,
			"network_type is %u, sgid is of the other family",
			ah->network_type);
	/* the driver lets a group be of the other family, and sends nowhere */
	if (migr_gid_is_ipv4(ah->dgid) != migr_gid_is_ipv4(ah->sgid) &&
	    !migr_gid_is_multicast(ah->dgid))
		return migr_bad(
			err, rec,
			"network_type is %u, dgid is of the other family",
			ah->network_type);
	return 0;
}

static int check_group(const struct rxe_migr_rec_mcast *mcast, uint32_t i,
		       struct migr_error *err)
{
	const struct rxe_migr_group *groups = (const void *)(mcast + 1);

	if (!migr_gid_is_multicast(groups[i].mgid))
		return migr_bad(err, &mcast->rec,
				"group %u: mgid is no multicast address", i);
	if (groups[i].mlid > 0xffff)
		return migr_bad(err, &mcast->rec, "group %u: mlid is %#x", i,
				groups[i].mlid);
	if (groups[i].reserved)
		return migr_bad(err, &mcast->rec, "group %u: reserved is %#x",
				i, groups[i].reserved);
	return 0;
}

int migr_check_mcast(const struct migr_index *index,
		     const struct rxe_migr_rec *rec, struct migr_error *err)
{
	const struct rxe_migr_rec_mcast *mcast = (const void *)rec;
	const struct rxe_migr_rec_qp *qp;
	uint32_t i;
	int ret;

	if (rec->handle)
		return migr_bad(err, rec, "a list of groups has no handle");
	ret = migr_check_ref(index, rec, "qp", mcast->qp, RXE_MIGR_QP, err);
	if (!ret)
		ret = migr_check_length(
			rec,
			sizeof(*mcast) + (uint64_t)mcast->groups *
						 sizeof(struct rxe_migr_group),
			err);
	if (ret)
		return ret;
	if (!mcast->groups)
		return migr_bad(err, rec, "groups is 0");
	qp = index ? (const void *)migr_index_find(index, mcast->qp) : NULL;
	if (qp && qp->qp_type != IBV_QPT_UD)
		return migr_bad(err, rec, "qp is %u, which is not UD",
				mcast->qp);
	for (i = 0; i < mcast->groups && !ret; i++)
		ret = check_group(mcast, i, err);
	return ret;
}
