// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The multicast groups of a UD QP. The core has a list of them, from which an
 * application can leave a group; it is private, as in rxe_migr_event.c. They are
 * joined again with the ordinary command.
 */
#include "core_uverbs.h"
#include "rxe.h"

/**
 * rxe_migr_get_groups - the groups that an application has joined
 * @qp: its QP, with a reference
 * @groups: receives them, in the order in which they were joined
 * @max: how many at most
 *
 * Context: process; sleeps.
 * Return: how many there are
 */
u32 rxe_migr_get_groups(struct ib_qp *qp, struct rxe_migr_group *groups,
			u32 max)
{
	struct ib_uqp_object *uobj = qp->uobject;
	struct ib_uverbs_mcast_entry *entry;
	u32 n = 0;

	mutex_lock(&uobj->mcast_lock);
	list_for_each_entry(entry, &uobj->mcast_list, list) {
		if (n++ >= max)
			continue;
		memcpy(groups[n - 1].mgid, entry->gid.raw,
		       sizeof(groups[n - 1].mgid));
		groups[n - 1].mlid = entry->lid;
	}
	mutex_unlock(&uobj->mcast_lock);

	return n;
}
