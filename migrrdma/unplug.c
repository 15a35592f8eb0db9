// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A context that is unplugged stays as it is while it is suspended, so that nothing
 * reaches the provider; but what was collected then is refused, and bury.c does not let
 * commands through to the kernel.
 */
#include "unplug.h"

#include <time.h>

#include "events.h"
#include "gate.h"
#include "recvq.h"
#include "sendq.h"
#include "suspend.h"
#include "taken.h"

#define FOREVER (UINT64_MAX / 2) /* of a deadline */

static bool flush_recvs(struct shadow_qp *qp)
{
	struct shadow_cq *cq = to_cq(qp->qp.recv_cq);
	bool all;

	pthread_mutex_lock(&cq->lock);
	all = recvq_flush(qp);
	pthread_mutex_unlock(&cq->lock);
	return all;
}

static bool flush_sends(struct shadow_qp *qp)
{
	struct shadow_cq *cq = to_cq(qp->qp.send_cq);
	bool all;

	/* a batch may have it, in a thread that waits for us */
	if (pthread_mutex_trylock(&qp->lock))
		return false;
	pthread_mutex_lock(&cq->lock);
	all = sendq_flush(qp);
	pthread_mutex_unlock(&cq->lock);
	pthread_mutex_unlock(&qp->lock);
	return all;
}

/* of a QP that was not stopped again in the end: it had these before */
static void drop_flushed(struct shadow_cq *cq)
{
	pthread_mutex_lock(&cq->lock);
	while (cq->n_stopping)
		taken_end_flush(cq, cq->stopping[0], false);
	pthread_mutex_unlock(&cq->lock);
}

/* Return: is all done? */
static bool flush(struct shadow_context *c)
{
	struct shadow_cq *cq;
	struct shadow_qp *qp;
	bool all = true;

	TAILQ_FOREACH (cq, &c->cqs, entry)
		drop_flushed(cq);

	TAILQ_FOREACH (qp, &c->qps, entry) {
		if (qp->recvq)
			all &= flush_recvs(qp);
		if (qp->qp.send_cq)
			all &= flush_sends(qp);
	}
	return all;
}

static bool flush_all(void)
{
	struct shadow_context *c;
	bool all = true;

	TAILQ_FOREACH (c, &contexts, entry)
		if (c->unplugged)
			all &= flush(c);
	return all;
}

static void end(struct shadow_context *c)
{
	struct shadow_qp *qp;

	events_unplug(c);
	events_unplug_async(c);
	TAILQ_FOREACH (qp, &c->qps, entry)
		qp->qp.state = qp->real->state = IBV_QPS_ERR;
	gate_put_away(c);
}

void unplug_all(void)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	struct shadow_context *c, *next;

	suspend_let_verbs();
	TAILQ_FOREACH (c, &contexts, entry)
		c->unplugged = true;
	while (!flush_all()) {
		gate_open();
		nanosleep(&pause, NULL);
		gate_close(FOREVER);
	}
	for (c = TAILQ_FIRST(&contexts); c; c = next) {
		next = TAILQ_NEXT(c, entry);
		if (c->unplugged)
			end(c);
	}
}
