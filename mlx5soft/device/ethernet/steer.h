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
	uint32_t index, action;
	uint8_t dest_type;
	uint32_t dest;
	uint8_t value[MATCH]; /* under the mask */
};

struct group {
	struct group *next; /* by index */
	uint32_t id, first, last;
	uint32_t from, to; /* bytes of the mask that are not zero */
	uint32_t entries;
	uint8_t mask[MATCH];
	struct entry *bucket[GROUP_BUCKETS];
};

/* -EINVAL: it overlaps with another; -ENOMEM */
int group_add(struct group **groups, uint32_t id, uint32_t first, uint32_t last,
	      const uint8_t mask[MATCH]);
void group_free(struct group *g); /* with its entries */
struct entry *entry_find(struct group *groups, uint32_t index,
			 struct group **of);
struct entry *entry_add(struct group *g, uint32_t index,
			const uint8_t value[MATCH]);
void entry_del(struct group *g, struct entry *e);

/* Does the mask ask for no more than what steer_describe() tells? */
bool steer_known(const uint8_t mask[MATCH]);
/* A packet as entries describe it: `pkt` is zeroed. */
void steer_describe(uint8_t pkt[MATCH], const uint8_t *f, uint32_t len,
		    const struct frame *h);
const struct entry *steer_match(const struct group *groups,
				const uint8_t pkt[MATCH]);

#endif /* MLX5SOFT_STEER_H */
