/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What a QP has been given to receive: nobody gives it back when the QP is replaced. A
 * ring has copies of the last requests, at least as many as there can be at a time;
 * that some of them have completed is found out only when it matters, by flushing the
 * others.
 *
 * The first thread that posts owns the ring: it needs no lock, and no atomic. Another
 * one takes that away from it, by membarrier(2), and from then on all take the lock.
 */
#ifndef MIGRRDMA_RECVQ_H
#define MIGRRDMA_RECVQ_H

#include "shadow.h"

/**
 * recvq_new - of a QP with these capacities
 *
 * Return: a ring, or NULL if there is no memory
 */
struct recvq *recvq_new(const struct ibv_qp_cap *cap);

void recvq_free(struct recvq *q);

/** recvq_post - what ibv_post_recv() does */
int recvq_post(struct shadow_qp *qp, struct ibv_recv_wr *wr,
	       struct ibv_recv_wr **bad_wr);

/** recvq_reset - the provider has none of them */
void recvq_reset(struct recvq *q);

/** recvq_is_sure - has the provider always said what it has taken? */
bool recvq_is_sure(const struct recvq *q);

/** recvq_is_unused - nothing was ever posted; SLOW_RECVS is set, and who posts knows */
bool recvq_is_unused(struct recvq *q);

/* in a process that has just been forked */
void recvq_in_child(struct recvq *q);

/*
 * While SLOW_RECVS is set and no thread is in a section from before, RECVs wait until
 * flushes have told how many there are; then they are collected.
 */

/** recvq_counted - the provider had so many of them: who waits to post goes on */
void recvq_counted(struct recvq *q, uint32_t n);

/**
 * recvq_flush - complete all that have been counted, and were collected since, as flushed
 * @qp: QP, the lock of its CQ held
 *
 * Return: true, or false if there is no memory: the rest is still there
 */
bool recvq_flush(struct shadow_qp *qp);

/**
 * recvq_post_again - give the provider what it has flushed, and what was collected
 * @n: receives how many there were
 *
 * SLOW_RECVS is not set any more, if this succeeds.
 *
 * Return: 0, or what the provider said
 */
int recvq_post_again(struct shadow_qp *qp, unsigned int *n);

#endif
