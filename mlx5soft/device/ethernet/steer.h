/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a flow table has inside: groups of entries with one mask each. The entry
 * with the lowest index wins; as the ranges of groups do not overlap, that is a
 * look into one hash table per group.
 */
#ifndef MLX5SOFT_STEER_H
#define MLX5SOFT_STEER_H

#include "ethernet/frame.h"

#define MATCH BYTES(fte_match_param)
#define GROUP_BUCKETS 64U

struct entry {
	struct entry *next; /* in the bucket, by index */
	u32 index, action;
	u8 dest_type;
	u32 dest;
	u8 value[MATCH]; /* under the mask */
};

struct group {
	struct group *next; /* by index */
	u32 id, first, last;
	u32 from, to; /* bytes of the mask that are not zero */
	u32 entries;
	u8 mask[MATCH];
	struct entry *bucket[GROUP_BUCKETS];
};

/* NULL: no memory, or it overlaps with another. */
struct group *group_add(struct group **groups, u32 id, u32 first, u32 last,
			const u8 mask[MATCH]);
void group_free(struct group *g); /* with its entries */
struct entry *entry_find(struct group *groups, u32 index, struct group **of);
struct entry *entry_add(struct group *g, u32 index, const u8 value[MATCH]);
void entry_del(struct group *g, struct entry *e);

/* A packet as entries describe it: `pkt` is zeroed. */
void steer_describe(u8 pkt[MATCH], const u8 *f, u32 len, const struct frame *h);
const struct entry *steer_match(const struct group *groups,
				const u8 pkt[MATCH]);

#endif /* MLX5SOFT_STEER_H */
