/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A receive queue that all QPs of a side share, and its limit.
 *
 * What is demanded of the NIC: it takes elements in the order in which they
 * were posted. A message holds the one it took until its last packet, and
 * other QPs' messages may take and complete later ones meanwhile. So
 *
 * - each completion is of an element that is posted, once;
 * - the elements of one QP come in the order of posting;
 * - an element that was passed over is held by a QP in the middle of a
 *   message. A QP holds one at most, and none older than what it has completed.
 *   So there are fewer of them than QPs, one that is older than the last of
 *   every QP was skipped, and at the end there are none.
 *
 * Which QP takes which element is up to the network.
 *
 * The limit: the event must come when an element that was posted after the
 * arming was taken and left fewer than the limit; for elements posted before,
 * nobody knows if they were not taken before, too. So receives go on being
 * posted for a while, then they are held back until the event comes. It must
 * not come when the limit is not armed, or so few elements can have been
 * taken, those in the middle of messages included, that the limit was left.
 */
#ifndef MIX_SRQ_H
#define MIX_SRQ_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "verdict.h"

/* In the wr_ids of its receives, where those of QPs have the QP. */
#define SRQ_QP 0x7fff

struct srq_element {
	uint64_t index;	 /* in its wr_id: one more turn each time */
	uint64_t number; /* in the order of posting */
	bool posted;
};

struct srq {
	struct ibv_srq *srq; /* NULL: each QP has its own receives */
	struct verdict *verdict;
	struct srq_element *element;
	uint32_t *free; /* buffers to be posted, a ring */
	uint64_t freed; /* how many have been put there, ever */
	uint32_t size, qps;
	bool hold; /* receives are held back for the limit's sake */

	uint64_t posted; /* number of the next element */
	uint64_t next;	 /* after the latest that has completed */
	uint64_t passed; /* elements before that which have not */
	uint64_t *last;	 /* per QP: the number after its last one's */

	uint32_t limit;		   /* 0: not armed */
	uint64_t armed_at, arm_at; /* in elements posted */
	bool must;		   /* the event has to come */
	bool prove;		   /* more than ... must have been taken */
	int64_t proof;
	uint64_t events;
};

/* @hold: receives may be held back. Returns -1 without memory, else 0. */
int srq_init(struct srq *s, struct ibv_srq *srq, uint32_t size, uint32_t qps,
	     bool hold, struct verdict *verdict);
void srq_free(struct srq *s);

/* Which buffer is to be posted now, and as what? False: none. */
bool srq_next(struct srq *s, uint64_t *wr_id, uint32_t *buffer);

/*
 * Judges which element has completed on QP @qp (@s->qps: none of ours); its
 * buffer may be posted again. False: don't look at it further.
 */
bool srq_complete(struct srq *s, uint64_t wr_id, unsigned int qp,
		  uint32_t *buffer);

/* Completions were polled; @empty: there are no more. */
void srq_polled(struct srq *s, bool empty);

/* IBV_EVENT_SRQ_LIMIT_REACHED has come. The caller posts what was held. */
void srq_limit_reached(struct srq *s);

void srq_explain_stuck(struct srq *s);
void srq_check_end(struct srq *s);

#endif
