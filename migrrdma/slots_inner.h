/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the files of slots know of each other; all of it with the lock.
 */
#ifndef MIGRRDMA_SLOTS_INNER_H
#define MIGRRDMA_SLOTS_INNER_H

#include "slots.h"

struct slot {
	uint64_t wr_id;
	uint64_t turn; /* in which order it was posted */
	uint32_t next; /* the next one that is free */
	int num_sge;   /* FREE, of one that is */
	bool posted;   /* to the provider */
};
#define FREE (-1)

struct slots {
	pthread_mutex_t lock; /* held while the provider has them posted, too */
	uint32_t id, max_sge;
	uint32_t max_wr; /* that the provider has room for */
	struct slot *slot;
	struct ibv_sge *sge; /* @max_sge of each */
	uint32_t n, used, free;
	uint64_t turn;
	bool hold;
	bool datagrams; /* that is what comes, with a header before it */
	bool unsure;	/* what the provider has, as it has not said so */
	LIST_ENTRY(slots) entry; /* of an SRQ that is gone, */
	uint64_t last_cq;	 /* when this was the last CQ there was */
};

/** slot_take - a slot for a request, of which it has a copy; false if there is no memory */
bool slot_take(struct slots *s, const struct ibv_recv_wr *wr, uint32_t *at);

/** slot_put - it is free again */
void slot_put(struct slots *s, uint32_t i);

/** slot_id - what the provider has as the id of what is in it */
uint64_t slot_id(const struct slots *s, uint32_t i);

#endif
