// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "stop.h"

#include <time.h>

#include "clock.h"
#include "events.h"
#include "recvq.h"
#include "slots.h"
#include "suspend.h"
#include "taken.h"

/* A message may have had one of an SRQ's RECVs in hand. */
bool stop_is_flush(struct shadow_cq *cq, const struct ibv_wc *wc, bool *keep)
{
	struct shadow_qp *qp = cq->stopping;

	if (!qp || wc->qp_num != qp->real_num ||
	    wc->status != IBV_WC_WR_FLUSH_ERR || qp->swap.was_err)
		return false;
	if (!qp->recvq)
		return slots_flushed(wc->wr_id);
	*keep = true;
	return true;
}

/* Once more does no harm: some providers look at their queues only then. */
static int move(struct shadow_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	return real()->ibv_modify_qp(qp->real, &attr, IBV_QP_STATE);
}

/* It may have gone there by itself, and nobody knows yet. */
static int begin(struct shadow_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int err = real()->ibv_query_qp(qp->real, &attr, IBV_QP_STATE, &init);

	if (err)
		return err;
	qp->swap.was_err = attr.qp_state == IBV_QPS_ERR;
	qp->swap.last_wqe = false;
	qp->swap.moved =
		true; /* whoever gets the event knows that it is ours */
	err = move(qp);
	if (err)
		qp->swap.moved = false;
	return err;
}

static void take(struct shadow_qp *qp)
{
	struct shadow_context *c = to_context(qp->qp.context);

	if (qp->qp.send_cq)
		taken_fill(to_cq(qp->qp.send_cq));
	if (qp->qp.recv_cq && qp->qp.recv_cq != qp->qp.send_cq)
		taken_fill(to_cq(qp->qp.recv_cq));
	events_carry_async(c, c->real);
}

/* Of a QP with an SRQ an event says that no message is under way. */
static bool is_awaited(const struct shadow_qp *qp)
{
	return qp->is_marked || qp->swap.marked ||
	       (qp->qp.srq && qp->qp.state >= IBV_QPS_RTR &&
		!qp->swap.was_err && !qp->swap.last_wqe);
}

/* Behind all there is goes a marker, as soon as there is room for it. */
static int flush(struct shadow_qp *qp, uint64_t deadline)
{
	const struct timespec pause = { .tv_nsec = 20000 };
	bool send = qp_has_sends(qp) && qp->qp.send_cq, recv = qp->recvq;
	int err;

	for (;;) {
		if (send)
			send = suspend_post_marker(qp);
		if (recv)
			recv = suspend_post_recv_marker(qp);
		err = move(qp);
		if (err)
			return err;
		take(qp);
		if (!send && !recv && !is_awaited(qp))
			return 0;
		if (clock_ns() > deadline)
			return ETIMEDOUT;
		nanosleep(&pause, NULL);
	}
}

/* That is so until all is flushed: what comes late is the layer's, too. */
static void set_stopping(struct shadow_qp *qp, struct shadow_qp *to)
{
	if (qp->qp.send_cq)
		to_cq(qp->qp.send_cq)->stopping = to;
	if (qp->qp.recv_cq)
		to_cq(qp->qp.recv_cq)->stopping = to;
}

/* From now on the ring has them. */
static void count(struct shadow_qp *qp)
{
	struct shadow_cq *cq = to_cq(qp->qp.recv_cq);

	recvq_counted(qp->recvq, (uint32_t)cq->n_flushed);
	cq->n_flushed = 0;
	if (qp->qp.send_cq)
		to_cq(qp->qp.send_cq)->n_flushed = 0;
}

int stop_qp(struct shadow_qp *qp, uint64_t deadline)
{
	int err = 0;

	if (qp->swap.stopped)
		return 0;
	if (!qp->swap.moved && qp->real->state != IBV_QPS_RESET)
		err = begin(qp);
	if (!err && qp->swap.moved) {
		set_stopping(qp, qp);
		err = flush(qp, deadline);
	}
	if (err)
		return err;
	set_stopping(qp, NULL);
	if (qp->recvq)
		count(qp);
	qp->swap.stopped = true;
	return 0;
}
