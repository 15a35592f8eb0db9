// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "stop.h"

#include <time.h>

#include "build.h"
#include "clock.h"
#include "crew.h"
#include "events.h"
#include "gate.h"
#include "recvq.h"
#include "slots.h"
#include "suspend.h"
#include "taken.h"

static struct shadow_qp *find(struct shadow_cq *cq, uint32_t real_num)
{
	for (unsigned int i = 0; i < cq->n_stopping; i++)
		if (cq->stopping[i]->real_num == real_num)
			return cq->stopping[i];
	return NULL;
}

/* A message may have had one of an SRQ's RECVs in hand. */
bool stop_is_flush(struct shadow_cq *cq, const struct ibv_wc *wc, bool *keep)
{
	struct shadow_qp *qp = find(cq, wc->qp_num);

	if (!qp || wc->status != IBV_WC_WR_FLUSH_ERR || qp->swap.was_err)
		return false;
	if (!qp->recvq)
		return slots_flushed(wc->wr_id);
	*keep = true;
	return true;
}

enum {
	ROUNDS = 4,
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

/* that may be flushed to this CQ: what it sends is done */
static uint32_t recvs_to(const struct shadow_cq *cq, const struct shadow_qp *qp)
{
	return qp->recvq && to_cq(qp->qp.recv_cq) == cq ? qp->cap.max_recv_wr
							: 0;
}

/*
 * An application may have made less room than all of its QPs together could need, and some
 * may go on: these have half of it.
 */
static bool has_room(const struct shadow_cq *cq, const struct shadow_qp *qp)
{
	uint64_t n = cq ? recvs_to(cq, qp) : 0;

	if (!cq || !cq->n_stopping)
		return true;
	for (unsigned int i = 0; i < cq->n_stopping; i++)
		n += recvs_to(cq, cq->stopping[i]);
	return cq->n_stopping < STOP_AT_ONCE && n <= (uint64_t)cq->cq.cqe / 2;
}

/* What is flushed is the layer's until all is, and that comes late, too. */
static void begin_flush(struct shadow_qp *qp)
{
	struct shadow_cq *one = send_cq(qp), *other = recv_cq(qp);

	if (one)
		one->stopping[one->n_stopping++] = qp;
	if (other)
		other->stopping[other->n_stopping++] = qp;
}

/* Return: how many RECVs were kept */
static size_t end_flush(struct shadow_qp *qp, bool give)
{
	size_t n = 0;

	if (send_cq(qp))
		n = taken_end_flush(send_cq(qp), qp, give);
	if (recv_cq(qp))
		n = taken_end_flush(recv_cq(qp), qp, give);
	return n;
}

/* --- stopping, with their locks --- */

/* From now on the ring has what was flushed. */
static void end(struct shadow_qp *qp)
{
	size_t n = end_flush(qp, false);

	if (qp->recvq)
		recvq_counted(qp->recvq, (uint32_t)n);
	if (qp->slots)
		slots_clear(qp->slots);
	qp->swap.stopped = true;
}

/* Is all completed that was ever posted to it? Before RTS nothing can be sent. */
static bool is_empty(const struct shadow_qp *qp)
{
	bool sent = !qp_can_send(qp) || qp->real->state < IBV_QPS_RTS ||
		    (qp->real->state == IBV_QPS_RTS && qp->was_marked &&
		     !qp->is_marked && qp->marker_status == IBV_WC_SUCCESS);

	return qp->qp.qp_type == IBV_QPT_RC && sent && !qp->qp.srq &&
	       (!qp->recvq || recvq_is_unused(qp->recvq));
}

/* libibverbs notes it */
static int ask_state(const struct shadow_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return real()->ibv_query_qp(qp->real, &attr, IBV_QP_STATE, &init);
}

/*
 * It may have gone there by itself, and nobody knows yet. One that is empty need not be
 * moved, which takes devices long: who could send to it is suspended.
 */
static int begin(struct shadow_qp *qp)
{
	int err;

	if (qp->swap.asked && is_empty(qp)) {
		end(qp);
		return 0;
	}
	if (!has_room(send_cq(qp), qp) || !has_room(recv_cq(qp), qp))
		return EINPROGRESS;
	err = ask_state(qp);
	if (err)
		return err;
	qp->swap.was_err = qp->real->state == IBV_QPS_ERR;
	qp->swap.dead |= qp->swap.was_err;
	if (is_empty(qp)) {
		end(qp);
		return 0;
	}
	begin_flush(qp);
	qp->swap.last_wqe = false;
	qp->swap.moved =
		true; /* whoever gets the event knows that it is ours */
	err = move(qp);
	if (err) {
		qp->swap.moved = false;
		end_flush(qp, true);
	}
	return err;
}

/* Of what is stopped already the device may be gone. */
struct shadow_qp **stop_find_empty(size_t most, size_t *n)
{
	struct shadow_qp **all = calloc(most + 1, sizeof(*all));
	struct shadow_context *c;
	struct shadow_qp *qp;

	*n = 0;
	EACH_CHOSEN (c, qp) {
		qp->swap.asked = false;
		if (all && *n < most && !qp->swap.moved && !qp->swap.stopped &&
		    qp->real->state != IBV_QPS_RESET && is_empty(qp))
			all[(*n)++] = qp;
	}
	return all;
}

struct asking {
	struct shadow_qp **qps;
	atomic_int err;
	struct shadow_qp *bad;
};

static bool ask_one(size_t i, void *arg)
{
	struct asking *a = arg;
	struct shadow_qp *qp = a->qps[i];
	int err = ask_state(qp), none = 0;

	qp->swap.asked = !err;
	if (err && atomic_compare_exchange_strong(&a->err, &none, err))
		a->bad = qp;
	return !err;
}

int stop_ask(struct shadow_qp **qps, size_t n, struct shadow_qp **bad)
{
	struct asking a = { .qps = qps };

	crew_do(n, CREW_MOST, ask_one, &a);
	*bad = a.bad;
	return atomic_load(&a.err);
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

/* one that is being stopped */
struct job {
	struct shadow_qp *qp;
	bool send, recv; /* to be marked still */
};

/*
 * Behind all there is goes a marker, as soon as there is room for it. Where there never
 * was anything to send, there may be no place for a marker either (mlx5). The command that
 * lets providers look takes long, and most of them have looked by themselves.
 */
static int flush(struct job *j, unsigned int round)
{
	struct shadow_qp *qp = j->qp;
	int err = 0;

	if (j->send)
		j->send = suspend_post_marker(qp) && qp->was_rts;
	if (j->recv)
		j->recv = suspend_post_recv_marker(qp);
	if (round % ROUNDS == 0)
		err = move(qp);
	if (err)
		return err;
	if (!take(qp) || j->send || j->recv)
		return EINPROGRESS;
	end(qp);
	return 0;
}

/* Return: 0 if it is stopped, EINPROGRESS, or what is wrong */
static int step(struct job *j, unsigned int round)
{
	struct shadow_qp *qp = j->qp;
	struct shadow_cq *cqs = cqs_of(qp);
	int err = 0;

	if (qp->swap.stopped)
		return 0;
	err = marker_make_ah(qp);
	if (err)
		return err;
	lock_cqs(cqs);
	if (!qp->swap.moved && qp->real->state == IBV_QPS_RESET)
		end(qp);
	else if (!qp->swap.moved)
		err = begin(qp);
	if (!err && !qp->swap.stopped)
		err = flush(j, round);
	unlock_cqs(cqs);
	return err;
}

int stop_qps(struct shadow_qp *const *qps, unsigned int n, uint64_t deadline,
	     struct shadow_qp **bad)
{
	const struct timespec pause = { .tv_nsec = 20000 };
	struct job jobs[STOP_AT_ONCE];
	int err = 0, all;

	for (unsigned int i = 0; i < n; i++)
		jobs[i] =
			(struct job){ qps[i],
				      qp_can_send(qps[i]) && qps[i]->qp.send_cq,
				      qps[i]->recvq };
	for (unsigned int round = 1; !err; round++) {
		all = 0;
		for (unsigned int i = 0; i < n; i++) {
			err = step(&jobs[i], round);
			if (!err)
				continue;
			if (!all || err != EINPROGRESS)
				*bad = qps[i];
			if (err != EINPROGRESS)
				return err;
			all = err;
		}
		/* else nobody reads of the channels, which are replaced */
		if (!suspend_is_whole())
			events_sort();
		if (!all)
			return 0;
		err = clock_ns() > deadline ? ETIMEDOUT : 0;
		nanosleep(&pause, NULL);
	}
	return err;
}
