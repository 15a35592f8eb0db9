/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory windows of type 2: one for each QP, over the slots that the peer's QP
 * writes and reads back.
 *
 * Its owner binds it under a new key, as an entry of the send queue, and when
 * that has completed, tells the peer in a credit: generation 1, 2 and so on. The
 * peer then uses that key in place of the MR's for most of what it does in slots,
 * and after some operations gives the window back:
 *
 * - An odd generation by a SEND of its stream, which becomes a SEND with
 *   invalidate. It is fenced: a READ that had to be repeated afterwards would
 *   find the window gone, and the fence waits until all are over. Not so WRITEs,
 *   which are not executed again when they are repeated.
 * - An even one by a word in a credit, when all operations that used it are over:
 *   then the owner invalidates the window itself, by a LOCAL_INV.
 *
 * If there are to be no SENDs or no fences, all are given back by a word. Until
 * the next generation is announced the MR's key is used.
 *
 * What is demanded of the NIC: binds and invalidations complete in order, like
 * everything; who uses a window that was announced meets no error; the receive
 * of a SEND with invalidate says so and names the key, and no other does. A window
 * that was not invalidated cannot be bound again, and one that was not bound not be
 * used. At the end the key of a generation before the last is tried: it must be
 * refused, which is counted, since there may be none.
 */
#ifndef MIX_MW_H
#define MIX_MW_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct credit;
struct op;
struct traffic;
struct traffic_qp;

enum mw_state {
	MW_FREE,  /* or will be, when what is posted has been executed */
	MW_BINDS, /* to be announced when that has completed */
	MW_OUT,	  /* the peer may use it */
	MW_BACK,  /* the peer has given it back, by a word */
};

struct mw {
	/* ours */
	struct ibv_mw *mw; /* NULL: none is offered */
	enum mw_state state;
	uint32_t gen, rkey;
	uint64_t offer;	      /* what the peer is told of it */
	uint64_t invalidated; /* by SENDs of the peer, ever */

	/* the peer's */
	uint32_t peer_gen, peer_rkey;
	bool held; /* announced, and not given back */
	uint32_t uses;
	uint64_t last;	   /* the send queue's index behind the last use */
	uint32_t back;	   /* the last generation that was given back, by */
	uint64_t back_seq; /* this SEND, or NO_SEND */
	bool news;	   /* there is something to be said in a credit */
	uint32_t stale;	   /* the key of the generation before */
	bool tries;	   /* that, and has no answer yet */
};

#define NO_SEND UINT64_MAX

/*
 * Windows for all QPs of @t. Returns -1 after a message to stderr, else 0. They
 * end before the QPs, which stock rdma_rxe cannot destroy while they are bound.
 */
int mw_alloc(struct traffic *t, struct ibv_pd *pd);
void mw_free(struct traffic *t);

/* Ours: what is to be posted now? False: nothing. */
bool mw_next(struct traffic_qp *q, struct op *op);
/* The part of that request that is about the window; and when it was posted. */
void mw_build(struct traffic_qp *q, const struct op *op,
	      struct ibv_send_wr *wr);
void mw_posted(struct traffic_qp *q, const struct op *op);
void mw_bound(struct traffic_qp *q);
/* A receive: @op of the peer, which may be one that invalidates. */
void mw_arrived(struct traffic_qp *q, const struct ibv_wc *wc, struct op *op);

/* The peer's: the key for what @op, the last entry, does in a slot. */
uint32_t mw_key(struct traffic_qp *q, const struct op *op);
/* Gives it back if it is time, by @op, or by a word in the next credit. */
void mw_give_by(struct traffic_qp *q, struct op *op);
void mw_give(struct traffic_qp *q);

/*
 * With both sides drained, and their completions looked at: old keys must be of
 * no use. Each side tries every other QP, which does not survive that.
 */
void stale_try(struct traffic *t);
/* All have been refused, or something else. */
bool stale_refused(struct traffic *t);

/* What a credit says of both. */
void mw_say(struct traffic_qp *q, struct credit *c);
void mw_hear(struct traffic_qp *q, const struct credit *c);

#endif
