// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Which of this device's GIDs a restored QP, or AH, sends from. The table comes from
 * the device file: sysfs need not be visible to the restorer.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "migr_check.h"
#include "migr_qp.h"
#include "migr_restore.h"

/* rdma_rxe's table has this many; a query must offer room for all */
#define MAX_GIDS 1024
/* the index is 8 bits wide in a modify command */
#define MAX_INDEX 255

bool migr_path_of(const struct rxe_migr_rec *rec, struct migr_path *path)
{
	const struct rxe_migr_rec_ah *ah = (const void *)rec;
	const struct rxe_migr_rec_qp *qp = (const void *)rec;

	switch (rec->type) {
	case RXE_MIGR_AH:
		*path = (struct migr_path){
			.rec = rec,
			.dgid = ah->dgid,
			.sgid = ah->sgid,
			.sgid_index = ah->sgid_index,
		};
		return true;
	case RXE_MIGR_QP:
		*path = (struct migr_path){
			.rec = rec,
			.dgid = qp->dgid,
			.sgid = qp->sgid,
			.sgid_index = qp->sgid_index,
			.qpn = qp->qpn,
			.dest_qpn = qp->dest_qpn,
		};
		return migr_qp_connected(qp);
	default:
		return false;
	}
}

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
	if (!ret)
		ret = migr_query_mtu(fd, &gids->active_mtu);
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

int migr_check_qp_mtu(const struct rxe_migr_rec *rec,
		      const struct migr_gids *gids, struct migr_error *err)
{
	const struct rxe_migr_rec_qp *qp = (const void *)rec;

	if (rec->type != RXE_MIGR_QP || !migr_qp_connected(qp) ||
	    qp->path_mtu <= gids->active_mtu)
		return 0;
	migr_bad(
		err, rec,
		"QPN %#x: path_mtu is %u bytes, the port of this host's device has %u",
		qp->qpn, 128U << qp->path_mtu, 128U << gids->active_mtu);
	return -EMSGSIZE;
}

int migr_check_mtu(const struct migr_image *img, const struct migr_gids *gids,
		   struct migr_error *err)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < img->count && !ret; i++)
		ret = migr_check_qp_mtu(img->records[i], gids, err);
	return ret;
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

/* An AH may have no route, and come back: of these GIDs the one that it had */
static const struct ib_uverbs_gid_entry *
pick_without_route(const struct migr_gids *gids, const struct migr_path *path)
{
	const struct ib_uverbs_gid_entry *entry, *found = NULL;

	for (entry = gids->entry; entry < gids->entry + gids->count; entry++)
		if (usable(entry) &&
		    same_kind((const uint8_t *)entry->gid, path->sgid) &&
		    (!found || entry->gid_index == path->sgid_index))
			found = entry;
	return found;
}

int migr_pick_gid(const struct migr_gids *gids, const struct migr_path *path,
		  bool peer_moves, const struct ib_uverbs_gid_entry **picked)
{
	enum migr_reach reach, best = MIGR_REACH_NONE;
	const struct ib_uverbs_gid_entry *entry;
	const bool anywhere = peer_moves || migr_gid_is_multicast(path->dgid);
	const uint8_t *gid;
	bool any = false;

	*picked = NULL;
	/* one that has come along is right, or none is */
	entry = migr_find_gid(gids, path->sgid, path->sgid_index);
	if (entry) {
		if (!anywhere && path->rec->type != RXE_MIGR_AH &&
		    migr_route(path->dgid, (const uint8_t *)entry->gid,
			       entry->netdev_ifindex) == MIGR_REACH_NONE)
			return -EHOSTUNREACH;
		*picked = entry;
		return 0;
	}
	for (entry = gids->entry; entry < gids->entry + gids->count; entry++) {
		gid = (const uint8_t *)entry->gid;
		if (!usable(entry) || !same_kind(gid, path->sgid))
			continue;
		any = true;
		reach = MIGR_REACH_ROUTE;
		if (!anywhere)
			reach = migr_route(path->dgid, gid,
					   entry->netdev_ifindex);
		if (reach > best || (*picked && reach == best &&
				     entry->gid_index == path->sgid_index)) {
			best = reach;
			*picked = entry;
		}
	}
	if (!*picked && path->rec->type == RXE_MIGR_AH)
		*picked = pick_without_route(gids, path);
	if (*picked)
		return 0;
	return any ? -EHOSTUNREACH : -EADDRNOTAVAIL;
}

int migr_gid_error(const struct migr_path *path, int ret,
		   struct migr_error *err)
{
	const char *family = migr_gid_is_ipv4(path->sgid) ? "IPv4" : "IPv6";
	char gid[INET6_ADDRSTRLEN], who[16] = "", peer[64];

	inet_ntop(AF_INET6, path->dgid, gid, sizeof(gid));
	snprintf(peer, sizeof(peer), "%s", gid);
	if (path->dest_qpn) {
		snprintf(who, sizeof(who), "QPN %#x: ", path->qpn);
		snprintf(peer, sizeof(peer), "peer %s QPN %#x", gid,
			 path->dest_qpn);
	}
	if (ret == -EADDRNOTAVAIL)
		migr_bad(
			err, path->rec,
			"sgid: this host's device has no %s RoCEv2 GID of the same scope to reach %s",
			family, peer);
	else
		migr_bad(
			err, path->rec,
			"%sno route from an %s RoCEv2 GID of this host's device to %s",
			who, family, peer);
	return ret;
}
