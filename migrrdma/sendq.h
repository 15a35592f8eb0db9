/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Send queues of suspended QPs: copies of work requests, with all they point to, until
 * the provider can have them.
 */
#ifndef MIGRRDMA_SENDQ_H
#define MIGRRDMA_SENDQ_H

#include "shadow.h"

/**
 * sendq_add - what ibv_post_send() does while a QP is suspended
 * @qp: QP, its lock held
 *
 * Checks what a provider checks: the QP's capacities, and the opcode.
 *
 * Return: 0, ENOMEM, EINVAL or EIO; then *@bad_wr is the request, and those before it are
 * in the queue
 */
int sendq_add(struct shadow_qp *qp, struct ibv_send_wr *wr,
	      struct ibv_send_wr **bad_wr);

/**
 * sendq_post - give the provider all there are, in their order
 * @qp: QP, its lock held
 *
 * Return: 0, or what the provider said to one that it does not take; this and the ones
 * behind it are still there
 */
int sendq_post(struct shadow_qp *qp);

/** sendq_first - the wr_id of the first one, which there is */
uint64_t sendq_first(const struct shadow_qp *qp);

/** sendq_drop - drop it */
void sendq_drop(struct shadow_qp *qp);

/**
 * sendq_flush - complete all of them as flushed
 * @qp: QP, its lock and that of its CQ held
 *
 * Return: true, or false if there is no memory: the rest is still there
 */
bool sendq_flush(struct shadow_qp *qp);

/** sendq_clear - forget all there are */
void sendq_clear(struct shadow_qp *qp);

/* The same by ibv_wr_*(): what wr_start() does instead, with the QP's lock held until
 * the batch ends. */
void sendq_start_batch(struct shadow_qp *qp);

#endif
