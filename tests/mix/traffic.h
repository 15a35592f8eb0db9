/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The traffic of a side: posts its own streams, checks the peer's.
 *
 * Flow control is an RDMA WRITE into the peer's memory (struct credit) that
 * says how many operations of the peer's stream have been checked. A side is
 * never more than a window ahead of it, so there is always a receive waiting
 * and no slot is written again before it was looked at.
 *
 * A side that stops says in its last credit where its streams end; the peer
 * stops then too. One that rests says that, too, and when it goes on.
 */
#ifndef MIX_TRAFFIC_H
#define MIX_TRAFFIC_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "events.h"
#include "memory.h"
#include "mw.h"
#include "srq.h"
#include "stream.h"
#include "tracker.h"
#include "verdict.h"

struct traffic_qp {
	pthread_mutex_t lock; /* all below; posting and completions */
	struct traffic *t;
	unsigned int index;
	struct ibv_qp *qp;
	uint32_t qp_num;     /* as it was at the start */
	struct cells *cells; /* what the peer writes to */

	/* our stream */
	struct stream out;
	struct sq sq;
	uint64_t next;	       /* operation to post */
	uint64_t retired;      /* operations that are over */
	uint64_t credit;       /* operations the peer has checked */
	uint64_t add_sum;      /* posted on our cell */
	uint64_t shared_sum;   /* posted on the shared counter */
	uint64_t shared_least; /* what it held at least, by the last result */
	uint64_t swaps;	       /* posted */
	bool stopped;
	bool final_sent;
	bool rest_sent; /* the last credit said so */

	/* the peer's stream */
	struct stream in;
	struct rq rq;
	struct mw mw;	    /* both windows: ours, and the peer's */
	uint64_t verified;  /* operations checked */
	uint64_t announced; /* the same, as the peer has been told */
	uint64_t peer_final;
	bool peer_rests;
	uint64_t in_add, in_shared, in_swaps; /* what the cells must hold */
	struct slot *slot;		      /* what each must hold */

	uint64_t count[OP_KINDS]; /* operations of ours that are over */
	uint64_t received;	  /* operations of the peer checked */
	uint64_t bytes;		  /* checked, both directions */
};

struct traffic {
	struct shape shape;
	unsigned int side;
	struct memory memory;
	struct remote remote;
	struct ibv_cq *cq[2];
	unsigned int cqs;
	uint32_t max_inline;
	struct traffic_qp *qp;
	struct verdict verdict;
	uint64_t shared_sum; /* posted by all QPs on the shared counter */
	struct events events;
	struct srq srq;
	struct ibv_context *context; /* of async events, if these are watched */
	bool solicit;	    /* the peer sleeps until a message solicits */
	uint64_t solicited; /* messages received that do */
	unsigned int stale_refused; /* READs by old keys of windows */
	bool stopping;
	bool resting;
};

/* All return -1 on failure (of memory or of the verbs), else 0. */
int traffic_init(struct traffic *t, struct ibv_qp **qp);
int traffic_post_receives(struct traffic *t);
void traffic_free(struct traffic *t);

/* Posts what may be posted on all QPs; returns how many operations. */
unsigned int traffic_post(struct traffic *t, bool backwards);
/* Handles what has completed; one thread only. Returns how many. */
unsigned int traffic_poll(struct traffic *t);
unsigned int traffic_poll_cq(struct traffic *t, struct ibv_cq *cq);

/* Nothing is posted but word of that, or it goes on; who stops does not rest. */
static inline void traffic_rest(struct traffic *t, bool rest)
{
	__atomic_store_n(&t->resting, rest, __ATOMIC_RELAXED);
}
static inline bool traffic_resting(const struct traffic *t)
{
	return __atomic_load_n(&t->resting, __ATOMIC_RELAXED);
}
/* This side rests, or the peer does on all QPs: nothing has to complete. */
bool traffic_rests(struct traffic *t);

void traffic_stop(struct traffic *t);
static inline bool traffic_stopping(const struct traffic *t)
{
	return __atomic_load_n(&t->stopping, __ATOMIC_RELAXED);
}

/* The peer has stopped, or an own QP has. */
bool traffic_peer_stopped(struct traffic *t);
/* Stopped, and nothing is outstanding in either direction. */
bool traffic_drained(struct traffic *t);

/*
 * With both sides drained: the last WRITEs, all slots and cells once more,
 * and nothing may complete any more.
 */
void traffic_check_end(struct traffic *t);

/* One violation per QP that has not finished, saying what it waits for. */
void traffic_explain_stuck(struct traffic *t);

/* Async events; returns -1 after a message to stderr, else 0. */
int async_start(struct traffic *t, struct ibv_context *context);
void async_poll(struct traffic *t);
/* The same at the end; one that has to come is waited for. */
void async_settle(struct traffic *t, unsigned int seconds);

/* Internal, between post.c, receive.c and check.c. */
int post_receive(struct traffic_qp *q, uint64_t index);
int post_shared(struct traffic *t);
void check_retired(struct traffic_qp *q, const struct sq_entry *e);
void check_received(struct traffic_qp *q, const struct ibv_wc *wc);
void check_received_shared(struct traffic *t, const struct ibv_wc *wc);
void check_qp_end(struct traffic_qp *q);

#endif
