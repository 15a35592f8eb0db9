// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Which of this device's GIDs a restored QP sends from. The table comes from
 * the device file: sysfs need not be visible to the restorer.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "migr_qp.h"
#include "migr_restore.h"

/* rdma_rxe's table has this many; a query must offer room for all */
#define MAX_GIDS 1024
/* the index is 8 bits wide in a modify command */
#define MAX_INDEX 255

int migr_query_gids(struct migr_restore *r)
{
	uint64_t count = 0;
	struct migr_ioctl cmd;
	int ret;

	if (r->gids)
		return 0;
	r->gids = calloc(MAX_GIDS, sizeof(*r->gids));
	if (!r->gids)
		return -ENOMEM;

	migr_ioctl_init(&cmd, UVERBS_OBJECT_DEVICE,
			UVERBS_METHOD_QUERY_GID_TABLE);
	migr_ioctl_const(&cmd, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE,
			 sizeof(*r->gids));
	migr_ioctl_out(&cmd, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, r->gids,
		       MAX_GIDS * sizeof(*r->gids));
	migr_ioctl_out(&cmd, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES,
		       &count, sizeof(count));
	ret = migr_ioctl_run(r->fd, &cmd);
	if (ret) {
		free(r->gids);
		r->gids = NULL;
		return ret;
	}
	r->gid_count = count < MAX_GIDS ? count : MAX_GIDS;
	return 0;
}

static bool is_link_local(const uint8_t *gid)
{
	return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

static bool fits(const struct ib_uverbs_gid_entry *entry, const uint8_t *sgid)
{
	const uint8_t *gid = (const uint8_t *)entry->gid;

	return entry->gid_type == IB_UVERBS_GID_TYPE_ROCE_V2 &&
	       entry->gid_index <= MAX_INDEX &&
	       migr_gid_is_ipv4(gid) == migr_gid_is_ipv4(sgid) &&
	       is_link_local(gid) == is_link_local(sgid);
}

int migr_pick_gid(const struct ib_uverbs_gid_entry *gids, size_t count,
		  const uint8_t *sgid, unsigned int preferred)
{
	int index = -EADDRNOTAVAIL;
	size_t i;

	for (i = 0; i < count; i++) {
		if (!fits(&gids[i], sgid))
			continue;
		if (gids[i].gid_index == preferred)
			return (int)preferred;
		if (index < 0)
			index = (int)gids[i].gid_index;
	}
	return index;
}
