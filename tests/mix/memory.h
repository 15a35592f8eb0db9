/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The memory of a side: four regions, each a mapping and an MR of its own,
 * with just the access rights its use needs. Both sides lay theirs out alike.
 */
#ifndef MIX_MEMORY_H
#define MIX_MEMORY_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stream.h"

struct verdict;

enum region_kind {
	REGION_LOCAL,	/* per QP: what it sends from, reads and receives to */
	REGION_SLOTS,	/* per QP: what the peer writes and reads back */
	REGION_PATTERN, /* what the peer reads; never changes */
	REGION_CELLS,	/* atomics and credits */
	REGIONS
};

enum page_kind {
	PAGES_DEFAULT,
	PAGES_4K,
	PAGES_THP
};

/* Where the peer says how far it is, by RDMA WRITE. */
struct credit {
	uint64_t verified; /* operations of our stream it has checked */
	uint64_t final;	   /* where its own stream ends, or NO_FINAL */
	uint64_t rests;	   /* it posts nothing but this until it says so */
	/* see mw.h */
	uint64_t offer;	   /* its window: generation (high half) and key */
	uint64_t back;	   /* the generation of ours that it has given back, */
	uint64_t back_seq; /* with this operation, or NO_SEND */
	uint64_t check;	   /* tells a half-written credit from a whole one */
};

#define NO_FINAL UINT64_MAX

uint64_t credit_sum(const struct credit *c);

/* Per QP; the peer alone changes it. */
struct cells {
	uint64_t add;  /* FETCH_ADD by this QP only */
	uint64_t swap; /* CMP_SWAP by this QP only */
	uint64_t pad[2];
	struct credit credit;
};

struct region {
	void *base;
	size_t size;
	void *map; /* what was mapped: base is aligned within */
	size_t map_size;
	struct ibv_mr *mr;
};

struct memory {
	const struct shape *shape;
	struct region region[REGIONS];
};

/* What one side must know of the other's memory. */
struct remote {
	uint64_t addr[REGIONS];
	uint32_t rkey[REGIONS];
};

int memory_alloc(struct memory *m, const struct shape *s, unsigned int side,
		 enum page_kind pages);
/* @windows: some will be bound to where the peer writes. */
int memory_register(struct memory *m, struct ibv_pd *pd, bool windows);
/* What fails is a violation. */
void memory_deregister(struct memory *m, struct verdict *verdict);
void memory_free(struct memory *m);

/* Offsets in a region, the same on both sides. */
uint64_t off_slot(const struct shape *s, unsigned int qp, uint64_t seq);
uint64_t off_cells(unsigned int qp);
#define OFF_SHARED 0 /* of the counter that all QPs add to, in CELLS */

/* In REGION_LOCAL. */
void *local_slot(const struct memory *m, unsigned int qp, uint64_t seq);
void *local_recv(const struct memory *m, unsigned int qp, uint64_t index);

void *region_at(const struct memory *m, enum region_kind k, uint64_t off);

/*
 * Bytes between and behind the pieces of a message, which nobody may touch.
 * guard_check() returns the index of the first touched byte, or -1.
 */
#define GUARD_BYTE 0xa5
ssize_t guard_check(const void *guard, size_t len);

/*
 * What a slot must hold: WRITEs of different lengths lie on top of each
 * other. The last one comes last; each one before it is longer, and all that
 * is left of it is its end.
 */
enum {
	SLOT_WRITERS = 32
};

struct slot {
	unsigned int n;
	struct {
		uint64_t seq;
		uint32_t len;
	} writer[SLOT_WRITERS];
};

void slot_wrote(struct slot *slot, uint64_t seq, uint32_t len);

#endif
