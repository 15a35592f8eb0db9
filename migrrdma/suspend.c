// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "suspend.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "control.h"
#include "gate.h"
#include "recvq.h"
#include "section.h"
#include "sendq.h"
#include "slots.h"
#include "swap.h"
#include "taken.h"

#define FOREVER (UINT64_MAX / 2) /* of a deadline */

/* one suspension or resumption, or what is done between them, at a time */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static bool suspended;

bool suspend_hold(void)
{
	pthread_mutex_lock(&turn);
	if (suspended)
		return true;
	pthread_mutex_unlock(&turn);
	return false;
}

void suspend_release(void)
{
	pthread_mutex_unlock(&turn);
}

/* --- suspend --- */

static int refuse(struct suspension *s, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(s->reason, sizeof(s->reason), format, args);
	va_end(args);
	return err;
}

static void pause_us(long us)
{
	nanosleep(&(struct timespec){ .tv_nsec = us * 1000 }, NULL);
}

#define ROUND 100000000 /* ns */

/* No wait is longer than a round: at its end it may be in vain. */
static uint64_t round_of(uint64_t deadline)
{
	uint64_t end = clock_ns() + ROUND;

	return end < deadline ? end : deadline;
}

static bool is_in_vain(uint64_t deadline)
{
	return clock_ns() > deadline || control_is_left();
}

/* Can it be suspended, if it is in a state in which it sends? */
static int check(const struct shadow_qp *qp, struct suspension *s)
{
	const char *why = NULL;

	if (qp->real->state != IBV_QPS_RTS ||
	    qp->qp.qp_type == IBV_QPT_XRC_RECV)
		return 0;
	if (!qp_has_sends(qp))
		why = "is of a type that cannot";
	else if (!to_cq(qp->qp.send_cq)->spare)
		why = "has a CQ without room for markers";
	else if (qp->unqueueable)
		why = "may post what cannot be queued";
	else if (to_pd(qp->qp.pd)->parent.td)
		why = "is in a thread domain";
	if (why)
		return refuse(s, EOPNOTSUPP, "QP 0x%06x %s", qp->qp.qp_num,
			      why);
	return 0;
}

static bool close_gate(uint64_t deadline)
{
	while (!gate_close(round_of(deadline)))
		if (is_in_vain(deadline))
			return false;
	return true;
}

/*
 * Polls look at what the layer has from now on. An application may hold a CQ between
 * ibv_start_poll() and its end, if it was flagged before, and may wait for us there.
 */
static bool flag_cqs(uint64_t deadline)
{
	struct shadow_context *c;
	struct shadow_cq *cq;

	EACH (c, cq, cqs) {
		while (!lock_until(&cq->lock, round_of(deadline)))
			if (is_in_vain(deadline))
				return false;
		cq->draining = true;
		atomic_fetch_or(&cq->slow, CQ_SLOW);
		pthread_mutex_unlock(&cq->lock);
	}
	return true;
}

/* all that are connected and can send */
static void flag_qps(struct suspension *s)
{
	struct shadow_context *c;
	struct shadow_qp *qp;

	EACH (c, qp, qps)
		if (qp->real->state == IBV_QPS_RTS && qp_has_sends(qp)) {
			atomic_fetch_or(&qp->slow, SLOW_SUSPENDED);
			qp->was_marked = false;
			s->qps++;
		}
}

/* and wait for who may not have seen them */
static bool set_flags(uint64_t deadline, struct suspension *s)
{
	if (!flag_cqs(deadline))
		return false;
	flag_qps(s);
	sections_begin_wait();
	while (!sections_have_ended()) {
		if (is_in_vain(deadline))
			return false;
		pause_us(20);
	}
	return true;
}

/* No thread is in a batch of the provider's any more: batches of ours may begin. */
static void let_batches(void)
{
	struct shadow_context *c;
	struct shadow_qp *qp;
	struct shadow_cq *cq;

	EACH (c, cq, cqs)
		atomic_fetch_or(&cq->slow, CQ_BATCHES);
	EACH (c, qp, qps)
		if (qp->slow & SLOW_SUSPENDED)
			atomic_fetch_or(&qp->slow, SLOW_BATCHES);
}

/* Post a marker where there is none yet. Is there more to do? */
static bool mark(struct shadow_qp *qp, uint64_t deadline, struct suspension *s)
{
	struct shadow_cq *cq = to_cq(qp->qp.send_cq);

	if (!lock_until(&cq->lock, deadline))
		return true;
	qp->was_marked = !suspend_post_marker(qp);
	s->markers += qp->was_marked;
	pthread_mutex_unlock(&cq->lock);
	return !qp->was_marked;
}

/* The same, and take what has completed. */
static bool drain_some(uint64_t deadline, struct suspension *s)
{
	struct shadow_context *c;
	struct shadow_qp *qp;
	struct shadow_cq *cq;
	bool more = false;

	EACH (c, qp, qps)
		if (qp->slow & SLOW_SUSPENDED && !qp->was_marked)
			more |= mark(qp, deadline, s);
	EACH (c, cq, cqs) {
		if (!lock_until(&cq->lock, deadline))
			return true;
		taken_fill(cq);
		more |= !LIST_EMPTY(&cq->marked);
		pthread_mutex_unlock(&cq->lock);
	}
	return more;
}

static int drain(uint64_t deadline, struct suspension *s)
{
	struct shadow_context *c;
	struct shadow_cq *cq;

	while (drain_some(round_of(deadline), s)) {
		if (is_in_vain(deadline))
			return refuse(s, ETIMEDOUT,
				      "send queues are not drained");
		pause_us(20);
	}
	EACH (c, cq, cqs)
		s->taken += (unsigned int)cq->n_taken;
	return 0;
}

/* --- resume --- */

/*
 * The first one was accepted when it was posted, so what is wrong now is said by its
 * completion: behind those of what was posted before it, of something of which the
 * provider finds out only later that it is wrong. The QP's lock is held.
 */
static int fail(struct shadow_qp *qp)
{
	struct ibv_sge nowhere = { .length = 1, .lkey = UINT32_MAX };
	struct ibv_send_wr *bad, wr = {
		.wr_id = sendq_first(qp),
		.sg_list = &nowhere,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	int err = qp->post_send(qp->real, &wr, &bad);

	if (!err)
		sendq_drop(qp);
	return err;
}

/* Is all posted that was collected? A queue may be full of what was posted before. */
static bool resume_qp(struct shadow_qp *qp)
{
	int err;

	/* a batch may have it, in a thread that waits for us */
	if (pthread_mutex_trylock(&qp->lock))
		return false;
	do {
		err = sendq_post(qp);
	} while (err && err != ENOMEM && !fail(qp));
	if (!err)
		atomic_fetch_and(&qp->slow, (unsigned char)~(SLOW_SUSPENDED |
							     SLOW_BATCHES));
	pthread_mutex_unlock(&qp->lock);
	return !err;
}

static bool resume_cq(struct shadow_cq *cq, bool ends)
{
	if (pthread_mutex_trylock(&cq->lock))
		return false;
	taken_give_flushed(cq);
	taken_fill(cq); /* which makes room in send queues */
	cq->draining = !ends;
	pthread_mutex_unlock(&cq->lock);
	return true;
}

static bool resume_some(void)
{
	struct shadow_context *c;
	struct shadow_qp *qp;
	struct shadow_cq *cq;
	bool all = true;

	EACH (c, qp, qps)
		if (qp->slow & SLOW_SUSPENDED)
			all &= resume_qp(qp);
	EACH (c, cq, cqs)
		if (cq->draining && !resume_cq(cq, all))
			all = false;
	return all;
}

/* with the gate closed; it is open in the end, and from time to time */
static void resume_all(void)
{
	while (!resume_some()) {
		gate_open();
		pause_us(1000);
		gate_close(FOREVER);
	}
	gate_open();
	suspended = false;
}

static int do_suspend(uint64_t deadline, struct suspension *s)
{
	uint64_t begin = clock_ns();
	struct shadow_context *c;
	struct shadow_qp *qp;
	int err;

	suspend_make_markers();
	if (!close_gate(deadline))
		return refuse(s, ETIMEDOUT, "a verb does not return");
	EACH (c, qp, qps) {
		err = check(qp, s);
		if (err) {
			gate_open();
			return err;
		}
	}

	suspended = true;
	if (!set_flags(deadline, s)) {
		resume_all();
		return refuse(s, ETIMEDOUT,
			      "a thread is within a batch of verbs");
	}
	let_batches();
	s->wait_ns = clock_ns() - begin;
	err = drain(deadline, s);
	s->drain_ns = clock_ns() - begin - s->wait_ns;
	if (err)
		resume_all();
	return err;
}

int layer_suspend(unsigned int timeout_ms, struct suspension *s)
{
	uint64_t deadline = clock_ns() + (uint64_t)timeout_ms * 1000000;
	int err;

	*s = (struct suspension){};
	pthread_mutex_lock(&turn);
	err = suspended ? refuse(s, EBUSY, "it is suspended")
			: do_suspend(deadline, s);
	pthread_mutex_unlock(&turn);
	return err;
}

int layer_resume(struct suspension *s)
{
	int err = 0;

	*s = (struct suspension){};
	if (!suspend_hold())
		return refuse(s, EINVAL, "it is not suspended");
	err = swap_is_whole(s->reason, sizeof(s->reason));
	if (!err)
		resume_all();
	suspend_release();
	return err;
}

void layer_give_up(void)
{
	if (!suspend_hold())
		return;
	swap_give_up();
	resume_all();
	suspend_release();
}

/* --- fork --- */

/* What a thread of the parent had locked, or the layer was at, is not waited for. */
static void context_in_child(struct shadow_context *c)
{
	struct shadow_channel *ch;
	struct shadow_srq *srq;
	struct shadow_cq *cq;
	struct shadow_qp *qp;

	unlock_in_child(&c->lock);
	unlock_in_child(&c->carried_lock);
	TAILQ_FOREACH (ch, &c->channels, entry)
		atomic_store(&ch->held, false);
	TAILQ_FOREACH (cq, &c->cqs, entry)
		cq_init_lock(cq);
	TAILQ_FOREACH (srq, &c->srqs, entry)
		if (srq->slots)
			slots_in_child(srq->slots);
	TAILQ_FOREACH (qp, &c->qps, entry) {
		unlock_in_child(&qp->lock);
		atomic_fetch_and(&qp->slow,
				 (unsigned char)~(SLOW_SUSPENDED |
						  SLOW_BATCHES | SLOW_RECVS));
		if (qp->recvq)
			recvq_in_child(qp->recvq);
	}
}

/* It has one thread, and nobody to suspend it or to resume. */
void suspend_in_child(void)
{
	struct shadow_context *c;

	gate_in_child();
	unlock_in_child(&turn);
	suspended = false;
	TAILQ_FOREACH (c, &contexts, entry)
		context_in_child(c);
}
