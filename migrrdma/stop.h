/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The end of a real QP that is replaced: all that was posted to it completes
 */
#ifndef MIGRRDMA_STOP_H
#define MIGRRDMA_STOP_H

#include "shadow.h"

/**
 * stop_qp - move a real QP to ERR, if it has anything, and take the completions of that
 * @deadline: in ns of CLOCK_MONOTONIC
 *
 * RECVs that are flushed by this are counted, and kept until all are; those of a QP that
 * was in ERR before are the application's to see. What was stopped once is not stopped
 * again, and what could not be may be tried again.
 *
 * Polls may come in between. Context: the process is suspended, SLOW_RECVS set
 * Return: 0, ETIMEDOUT, or what the provider says
 */
int stop_qp(struct shadow_qp *qp, uint64_t deadline);

/*
 * Is it a flush of the layer's? @keep: and the application's, if the QP is not replaced in
 * the end? The CQ's lock is held.
 */
bool stop_is_flush(struct shadow_cq *cq, const struct ibv_wc *wc, bool *keep);

#endif
