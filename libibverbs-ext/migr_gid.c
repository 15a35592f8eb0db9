// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Which of this device's GIDs a restored QP sends from. The table comes from
 * the device file: sysfs need not be visible to the restorer.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "migr_check.h"
#include "migr_qp.h"
#include "migr_restore.h"

/* rdma_rxe's table has this many; a query must offer room for all */
#define MAX_GIDS 1024
/* the index is 8 bits wide in a modify command */
#define MAX_INDEX 255

int migr_gids_query(int fd, struct migr_gids *gids)
{
	uint64_t count = 0;
	struct migr_ioctl cmd;
	int ret;

	if (gids->entry)
		return 0;
	gids->entry = calloc(MAX_GIDS, sizeof(*gids->entry));
	if (!gids->entry)
		return -ENOMEM;

	migr_ioctl_init(&cmd, UVERBS_OBJECT_DEVICE,
			UVERBS_METHOD_QUERY_GID_TABLE);
	migr_ioctl_const(&cmd, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE,
			 sizeof(*gids->entry));
	migr_ioctl_out(&cmd, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES,
		       gids->entry, MAX_GIDS * sizeof(*gids->entry));
	migr_ioctl_out(&cmd, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES,
		       &count, sizeof(count));
	ret = migr_ioctl_run(fd, &cmd);
	if (ret) {
		migr_gids_free(gids);
		return ret;
	}
	gids->count = count < MAX_GIDS ? count : MAX_GIDS;
	return 0;
}

void migr_gids_free(struct migr_gids *gids)
{
	free(gids->entry);
	memset(gids, 0, sizeof(*gids));
}

static bool is_link_local(const uint8_t *gid)
{
	return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

static bool usable(const struct ib_uverbs_gid_entry *entry)
{
	return entry->gid_type == IB_UVERBS_GID_TYPE_ROCE_V2 &&
	       entry->gid_index <= MAX_INDEX;
}

static bool same_kind(const uint8_t *a, const uint8_t *b)
{
	return migr_gid_is_ipv4(a) == migr_gid_is_ipv4(b) &&
	       is_link_local(a) == is_link_local(b);
}

/* What it has always been needs no route to be right */
const struct ib_uverbs_gid_entry *
migr_find_gid(const struct migr_gids *gids, const uint8_t *gid, uint8_t index)
{
	const struct ib_uverbs_gid_entry *entry, *found = NULL;

	for (entry = gids->entry; entry < gids->entry + gids->count; entry++)
		if (usable(entry) && !memcmp(entry->gid, gid, 16) &&
		    (!found || entry->gid_index == index))
			found = entry;
	return found;
}

int migr_pick_gid(const struct migr_gids *gids,
		  const struct rxe_migr_rec_qp *qp, bool peer_moves,
		  const struct ib_uverbs_gid_entry **picked)
{
	enum migr_reach reach, best = MIGR_REACH_NONE;
	const struct ib_uverbs_gid_entry *entry;
	const uint8_t *gid;
	bool any = false;

	*picked = migr_find_gid(gids, qp->sgid, qp->sgid_index);
	if (*picked)
		return 0;
	for (entry = gids->entry; entry < gids->entry + gids->count; entry++) {
		gid = (const uint8_t *)entry->gid;
		if (!usable(entry) || !same_kind(gid, qp->sgid))
			continue;
		any = true;
		reach = MIGR_REACH_ROUTE;
		if (!peer_moves)
			reach = migr_route(qp->dgid, gid,
					   entry->netdev_ifindex);
		if (reach > best || (*picked && reach == best &&
				     entry->gid_index == qp->sgid_index)) {
			best = reach;
			*picked = entry;
		}
	}
	if (*picked)
		return 0;
	return any ? -EHOSTUNREACH : -EADDRNOTAVAIL;
}

int migr_gid_error(const struct rxe_migr_rec_qp *qp, int ret,
		   struct migr_error *err)
{
	const char *family = migr_gid_is_ipv4(qp->sgid) ? "IPv4" : "IPv6";
	char gid[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, qp->dgid, gid, sizeof(gid));
	if (ret == -EADDRNOTAVAIL)
		migr_bad(
			err, &qp->rec,
			"sgid: this host's device has no %s RoCEv2 GID of the same scope to reach peer %s QPN %#x",
			family, gid, qp->dest_qpn);
	else
		migr_bad(
			err, &qp->rec,
			"QPN %#x: no route from an %s RoCEv2 GID of this host's device to peer %s QPN %#x",
			qp->qpn, family, gid, qp->dest_qpn);
	return ret;
}
