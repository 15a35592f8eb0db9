/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * RECVs of shared receive queues, until they complete: nobody gives them back when a
 * queue is replaced. The provider gets a number of ours as the id of each, by which it
 * is found when it completes, on whichever CQ. Those of UD QPs have slots, too, for what
 * comes before a datagram says where it is from.
 */
#ifndef MIGRRDMA_SLOTS_H
#define MIGRRDMA_SLOTS_H

#include "shadow.h"

/** slots_new - of an SRQ that has become so; NULL if there is no memory */
struct slots *slots_new(const struct ibv_srq_attr *became);

/** slots_resize - the provider has room for so many now */
void slots_resize(struct slots *slots, uint32_t max_wr);

/**
 * slots_retire - the SRQ is gone, but a CQ may still have completions of it
 * @ctx: keeps what is left, while there are CQs from before; its lock is held
 */
void slots_retire(struct slots *slots, struct shadow_context *ctx);

/** slots_free_retired - forget those of which no CQ can have completions any more */
void slots_free_retired(struct shadow_context *ctx);

/** slots_retired - how many are kept */
unsigned int slots_retired(const struct shadow_context *ctx);

/** slots_post - what ibv_post_srq_recv() does */
int slots_post(struct shadow_srq *srq, struct ibv_recv_wr *wr,
	       struct ibv_recv_wr **bad_wr);

/** slots_are_sure - has the provider always said what it has taken? */
bool slots_are_sure(const struct slots *slots);

/* in a process that has just been forked; those of each context, too */
void slots_all_in_child(void);
void slots_in_child(struct shadow_context *ctx);

/*
 * An id: 28 bits at random, which no application's has, 16 of the SRQ, 20 of the slot
 */
enum {
	SLOT_BITS = 20,
	SRQ_BITS = 16
};
extern uint64_t slots_cookie; /* written before there is a slot */

/* slots_done() of one that begins like that */
uint64_t slots_take(uint64_t wr_id, void **grh);

/**
 * slots_done - the application's id of a RECV that has completed; or the same
 * @grh: receives where a global route header is, if one has come with it, or NULL
 */
static inline uint64_t slots_done(uint64_t wr_id, void **grh)
{
	*grh = NULL;
	return likely(wr_id >> (SRQ_BITS + SLOT_BITS) != slots_cookie)
		       ? wr_id
		       : slots_take(wr_id, grh);
}

/** slots_of_datagrams - a header comes before what is received */
void slots_of_datagrams(struct slots *slots);

/** slots_post_qp - what ibv_post_recv() does, of a QP with slots, by the provider's function */
int slots_post_qp(struct shadow_qp *qp, struct ibv_recv_wr *wr,
		  struct ibv_recv_wr **bad_wr);

/** slots_clear - there are none any more, nor completions of them */
void slots_clear(struct slots *slots);

/** slots_renew - a QP has others, as a CQ may still have completions of the ones before */
void slots_renew(struct shadow_qp *qp);

/** slots_drop - a QP is gone */
void slots_drop(struct shadow_qp *qp);

/** slots_hold - from now on RECVs are collected, none is given to the provider */
void slots_hold(struct slots *slots);

/** slots_flushed - if this is one's id, the provider has it no more */
bool slots_flushed(uint64_t wr_id);

/** slots_flushed_all - the provider has none of them */
void slots_flushed_all(struct slots *slots);

/**
 * slots_post_again - give the provider those that it has not, in the order they were
 *		      posted
 * @n: receives how many there were
 *
 * They are not collected any more, if this succeeds.
 *
 * Return: 0, or what the provider said
 */
int slots_post_again(struct shadow_srq *srq, unsigned int *n);

#endif
