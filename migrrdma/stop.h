/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The end of a real QP that is replaced: all that was posted to it completes
 */
#ifndef MIGRRDMA_STOP_H
#define MIGRRDMA_STOP_H

#include "shadow.h"

/**
 * stop_find_empty - those of the chosen QPs that have nothing to be flushed
 * @most: there are so many chosen ones
 * @n: receives how many
 *
 * Context: the process is suspended, SLOW_RECVS set; the locks of all CQs are held
 * Return: a list, to be freed; NULL without memory
 */
struct shadow_qp **stop_find_empty(size_t most, size_t *n);

/**
 * stop_ask - ask devices, of several of them at a time, whether they have died: of those
 *	      that are empty still stop_qps() need not ask any more
 * @bad: receives one that cannot be asked
 *
 * Context: without the locks
 * Return: 0, or what the provider says
 */
int stop_ask(struct shadow_qp **qps, size_t n, struct shadow_qp **bad);

/**
 * stop_qps - move real QPs to ERR, if they have anything, and take the completions of that
 * @qps: QPs
 * @n: how many, at most STOP_AT_ONCE: what devices do to each of them takes its time
 * @deadline: in ns of CLOCK_MONOTONIC
 * @bad: receives one that could not be stopped
 *
 * RECVs that are flushed by this are counted, and kept until all are; those of a QP that
 * was in ERR before are the application's to see. What was stopped once is not stopped
 * again, and what could not be may be tried again.
 *
 * Polls may come in between. Context: the process is suspended, SLOW_RECVS set
 * Return: 0, ETIMEDOUT, or what the provider says
 */
int stop_qps(struct shadow_qp *const *qps, unsigned int n, uint64_t deadline,
	     struct shadow_qp **bad);

/*
 * Is it a flush of the layer's? @keep: and the application's, if the QP is not replaced in
 * the end? The CQ's lock is held.
 */
bool stop_is_flush(struct shadow_cq *cq, const struct ibv_wc *wc, bool *keep);

#endif
