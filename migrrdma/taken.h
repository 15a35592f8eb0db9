/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Completions that the layer has taken from a real CQ and the application has not: they
 * come first. The layer's own are among them no more.
 */
#ifndef MIGRRDMA_TAKEN_H
#define MIGRRDMA_TAKEN_H

#include "shadow.h"

/**
 * taken_fill - take all that the real CQ has
 * @cq: CQ, its lock held
 *
 * Return: 0, ENOMEM, or what the provider says
 */
int taken_fill(struct shadow_cq *cq);

/**
 * taken_poll - what ibv_poll_cq() does while there are some
 * @cq: CQ, its lock held
 *
 * Return: as ibv_poll_cq()
 */
int taken_poll(struct shadow_cq *cq, int num_entries, struct ibv_wc *wc);

/** taken_start - what ibv_start_poll() does meanwhile; @cq->batch is held till its end */
int taken_start(struct shadow_cq *cq, struct ibv_poll_cq_attr *attr);

/**
 * taken_end_flush - what comes of a QP from now on is the application's
 * @cq: one of its CQs, the lock held
 * @give: and what was kept of it: it is not stopped after all
 *
 * Return: how many were kept; none of one that is not flushed by the layer
 */
size_t taken_end_flush(struct shadow_cq *cq, const struct shadow_qp *qp,
		       bool give);

/** taken_flush - a request of this QP is flushed. Return: false if there is no memory */
bool taken_flush(struct shadow_cq *cq, uint32_t qp_num, uint64_t wr_id);

/** taken_settle - back to the real CQ, if nothing of the layer's is to come */
void taken_settle(struct shadow_cq *cq);

/** taken_forget - the same of a QP that is destroyed, or in RESET, as providers do; of the
 * number that the application knows
 */
void taken_forget(struct shadow_cq *cq, uint32_t qp_num);

/** taken_clear - forget all of them */
void taken_clear(struct shadow_cq *cq);

#endif
