/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Judges completions: each wr_id once and in order, each WC field as posted.
 *
 * Knows only what was posted, so it can be tested without a device.
 */
#ifndef MIX_TRACKER_H
#define MIX_TRACKER_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "stream.h"
#include "verdict.h"

/*
 * A wr_id says which queue it belongs to and its place in it:
 * receive (1 bit), QP (15 bits), index (48 bits).
 */
static inline uint64_t wr_id_make(bool recv, unsigned int qp, uint64_t index)
{
	return (uint64_t)recv << 63 | (uint64_t)qp << 48 | index;
}

static inline bool wr_id_recv(uint64_t wr_id)
{
	return wr_id >> 63;
}

static inline unsigned int wr_id_qp(uint64_t wr_id)
{
	return wr_id >> 48 & 0x7fff;
}

static inline uint64_t wr_id_index(uint64_t wr_id)
{
	return wr_id & 0xffffffffffffULL;
}

/* A work request in the send queue, and what its result has to be. */
struct sq_entry {
	struct op op;
	uint64_t expect; /* atomics on a cell of this QP: the old value */
	bool signaled;
};

/* The send queue as the application sees it: entries [head, tail). */
struct sq {
	struct verdict *verdict;
	struct sq_entry *entry;
	unsigned int qp;
	uint32_t depth;	     /* a power of two */
	uint32_t unsignaled; /* entries since the last signaled one */
	uint64_t head, tail;
};

int sq_init(struct sq *sq, unsigned int qp, uint32_t depth,
	    struct verdict *verdict);
void sq_free(struct sq *sq);

static inline uint32_t sq_room(const struct sq *sq)
{
	return sq->depth - (sq->tail - sq->head);
}

static inline struct sq_entry *sq_at(const struct sq *sq, uint64_t index)
{
	return &sq->entry[index & (sq->depth - 1)];
}

/* Adds @op at the tail; returns its entry. The caller made sure of room. */
struct sq_entry *sq_push(struct sq *sq, const struct op *op, bool signaled);

/*
 * Judges a successful completion. Returns how many entries, from the head,
 * are over now: the completed one and the unsignaled ones before it; 0 if
 * the completion is a mistake. The caller advances the head.
 */
uint64_t sq_complete(struct sq *sq, const struct ibv_wc *wc, uint32_t qp_num);

/* The receive queue: receives [done, posted) are waiting. */
struct rq {
	struct verdict *verdict;
	unsigned int qp;
	unsigned int with_inv; /* wc_flags that say IBV_WC_WITH_INV */
	uint64_t done, posted;
};

/* Judges the order of a receive completion; false: don't look at it further. */
bool rq_complete(struct rq *rq, const struct ibv_wc *wc);

/* Judges the fields of a receive completion that @op of the peer consumed. */
void rq_check(const struct rq *rq, const struct ibv_wc *wc, const struct op *op,
	      uint32_t qp_num);

#endif
