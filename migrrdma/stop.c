// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "stop.h"

#include <time.h>

#include "clock.h"
#include "events.h"
#include "gate.h"
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

enum {
	ROUNDS = 16,
};

/* Once more does no harm: some providers look at their queues only then. */
static int move(struct shadow_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	return real()->ibv_modify_qp(qp->real, &attr, IBV_QP_STATE);
}

/* --- the CQs of a QP --- */

static struct shadow_cq *send_cq(const struct shadow_qp *qp)
{
	return qp->qp.send_cq ? to_cq(qp->qp.send_cq) : NULL;
}

/* the other one, if it has one */
static struct shadow_cq *recv_cq(const struct shadow_qp *qp)
{
	return qp->qp.recv_cq && qp->qp.recv_cq != qp->qp.send_cq
		       ? to_cq(qp->qp.recv_cq)
		       : NULL;
}

/* both, to be locked */
static struct shadow_cq *cqs_of(const struct shadow_qp *qp)
{
	struct shadow_cq *one = send_cq(qp), *other = recv_cq(qp);

	if (other)
		other->also = NULL;
	if (!one)
		return other;
	one->also = other;
	return one;
}

/* That is so until all is flushed: what comes late is the layer's, too. */
static void set_stopping(struct shadow_qp *qp, struct shadow_qp *to)
{
	if (send_cq(qp))
		send_cq(qp)->stopping = to;
	if (recv_cq(qp))
		recv_cq(qp)->stopping = to;
}

/* --- stopping, with their locks --- */

/* From now on the ring has what was flushed. */
static void end(struct shadow_qp *qp)
{
	size_t n = 0;

	set_stopping(qp, NULL);
	if (qp->qp.recv_cq) {
		n = to_cq(qp->qp.recv_cq)->n_flushed;
		to_cq(qp->qp.recv_cq)->n_flushed = 0;
	}
	if (send_cq(qp))
		send_cq(qp)->n_flushed = 0;
	if (qp->recvq)
		recvq_counted(qp->recvq, (uint32_t)n);
	if (qp->slots)
		slots_clear(qp->slots);
	qp->swap.stopped = true;
}

/* Is all completed that was ever posted to it? */
static bool is_empty(const struct shadow_qp *qp)
{
	return qp->qp.qp_type == IBV_QPT_RC && qp->real->state == IBV_QPS_RTS &&
	       qp->was_marked && !qp->is_marked && qp->recvq &&
	       recvq_is_unused(qp->recvq);
}

/*
 * It may have gone there by itself, and nobody knows yet. One that is empty need not be
 * moved, which takes devices long: who could send to it is suspended.
 */
static int begin(struct shadow_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int err = real()->ibv_query_qp(qp->real, &attr, IBV_QP_STATE, &init);

	if (err)
		return err;
	qp->swap.was_err = attr.qp_state == IBV_QPS_ERR;
	qp->swap.dead |= qp->swap.was_err;
	if (!qp->swap.was_err && is_empty(qp)) {
		end(qp);
		return 0;
	}
	qp->swap.last_wqe = false;
	set_stopping(qp, qp);
	qp->swap.moved =
		true; /* whoever gets the event knows that it is ours */
	err = move(qp);
	if (err) {
		qp->swap.moved = false;
		set_stopping(qp, NULL);
	}
	return err;
}

/*
 * Take what there is. Of a QP with an SRQ an event says that no message is under way:
 * that is so if it has come, to whichever thread, before CQs are looked at.
 *
 * Return: is that all?
 */
static bool take(struct shadow_qp *qp)
{
	struct shadow_context *c = to_context(qp->qp.context);
	bool last =
		!qp->qp.srq || qp->qp.state < IBV_QPS_RTR || qp->swap.was_err;

	events_carry_async(c, c->real);
	last |= qp->swap.last_wqe;
	if (send_cq(qp))
		taken_fill(send_cq(qp));
	if (recv_cq(qp))
		taken_fill(recv_cq(qp));
	return last && !qp->is_marked && !qp->swap.marked;
}

/*
 * Behind all there is goes a marker, as soon as there is room for it. Where there never
 * was anything to send, there may be no place for a marker either (mlx5). The command that
 * lets providers look takes long, and nothing new is there to be seen most times.
 */
static int flush(struct shadow_qp *qp, bool *send, bool *recv,
		 unsigned int round)
{
	bool look = *send || *recv || round % ROUNDS == 0;
	int err = 0;

	if (*send)
		*send = suspend_post_marker(qp) && qp->was_rts;
	if (*recv)
		*recv = suspend_post_recv_marker(qp);
	if (look)
		err = move(qp);
	if (err)
		return err;
	if (!take(qp) || *send || *recv)
		return EINPROGRESS;
	end(qp);
	return 0;
}

int stop_qp(struct shadow_qp *qp, uint64_t deadline)
{
	const struct timespec pause = { .tv_nsec = 20000 };
	bool send = qp_has_sends(qp) && qp->qp.send_cq, recv = qp->recvq;
	struct shadow_cq *cqs = cqs_of(qp);
	unsigned int round = 0;
	int err;

	if (qp->swap.stopped)
		return 0;
	err = marker_make_ah(qp);
	if (err)
		return err;
	for (;;) {
		if (!lock_cqs(cqs, deadline))
			return ETIMEDOUT;
		err = 0;
		if (!qp->swap.moved && qp->real->state == IBV_QPS_RESET)
			end(qp);
		else if (!qp->swap.moved)
			err = begin(qp);
		if (!err && !qp->swap.stopped)
			err = flush(qp, &send, &recv, ++round);
		unlock_cqs(cqs);
		if (qp->swap.stopped || (err && err != EINPROGRESS))
			return err;
		if (clock_ns() > deadline)
			return ETIMEDOUT;
		nanosleep(&pause, NULL);
	}
}
