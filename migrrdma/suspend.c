// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "suspend.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ahead.h"
#include "clock.h"
#include "control.h"
#include "events.h"
#include "flags.h"
#include "gate.h"
#include "peer.h"
#include "resume.h"
#include "section.h"
#include "slots.h"
#include "swap.h"
#include "taken.h"

#define FOREVER (UINT64_MAX / 2) /* of a deadline */

/* one suspension or resumption, or what is done between them, at a time */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
/*
 * The gate is closed only while somebody looks at the lists, until all is settled: a peer
 * that is suspended, too, may wait for a RECV, and that for a verb.
 */
static enum {
	NOTHING,
	SOME,
	ALL,
	ALL_SETTLED
} suspended;

/* since the last one something that was collected has no room in a send queue */
static atomic_bool unfinished;

static bool is_gate_open(void)
{
	return suspended == SOME || suspended == ALL;
}

static void let_verbs(void)
{
	if (is_gate_open())
		gate_let_in();
}

static void keep_verbs(void)
{
	if (is_gate_open())
		gate_close_surely();
}

bool suspend_take_turn(void)
{
	pthread_mutex_lock(&turn);
	keep_verbs();
	if (suspended == ALL)
		suspended = ALL_SETTLED;
	return suspended;
}

bool suspend_hold(void)
{
	bool is = suspend_take_turn();

	if (!is)
		suspend_release();
	return is;
}

void suspend_release(void)
{
	let_verbs();
	pthread_mutex_unlock(&turn);
}

bool suspend_is_whole(void)
{
	return suspended >= ALL;
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

static int prepare(struct shadow_qp *qp, struct suspension *s)
{
	int err = marker_make_ah(qp);

	return err ? refuse(s, err, "QP 0x%06x: markers go to no address: %s",
			    qp->qp.qp_num, strerror(err))
		   : 0;
}

static bool close_gate(uint64_t deadline)
{
	while (!gate_close(round_of(deadline)))
		if (is_in_vain(deadline))
			return false;
	return true;
}

void suspend_let_verbs(void)
{
	struct shadow_context *c;
	struct shadow_qp *qp;

	/* of a context, too, of which all QPs are destroyed since */
	TAILQ_FOREACH (c, &contexts, entry)
		c->suspended = false;
	EACH (c, qp, qps)
		qp->suspended = false;
}

static int choose(const uint32_t *qpns, unsigned int n, struct suspension *s)
{
	struct shadow_context *c;
	struct shadow_qp *qp;
	struct swap why;
	int err = 0;

	EACH (c, qp, qps)
		qp->suspended = !n;
	for (unsigned int i = 0; i < n; i++) {
		qp = swap_find(qpns[i], &why);
		if (!qp)
			return refuse(s, EINVAL, "%s", why.reason);
		qp->suspended = true;
	}
	EACH (c, qp, qps)
		if (qp->suspended && !err) {
			c->suspended = true;
			err = check(qp, s);
			if (!err)
				err = prepare(qp, s);
		}
	return err;
}

/* before it is tried again. Return: false if that is in vain */
static bool breathe(uint64_t deadline)
{
	if (is_in_vain(deadline))
		return false;
	let_verbs();
	pause_us(20);
	keep_verbs();
	return true;
}

static bool set_flags(uint64_t deadline, struct suspension *s)
{
	flags_set_cqs();
	s->qps = flags_set_qps();
	sections_begin_wait();
	while (!sections_have_ended())
		if (!breathe(deadline))
			return false;
	return true;
}

/* Post a marker where there is none yet. Is there more to do? */
static bool mark(struct shadow_qp *qp, struct suspension *s)
{
	struct shadow_cq *cq = to_cq(qp->qp.send_cq);

	pthread_mutex_lock(&cq->lock);
	qp->was_marked = !suspend_post_marker(qp);
	s->markers += qp->was_marked;
	pthread_mutex_unlock(&cq->lock);
	return !qp->was_marked;
}

/* Of others something may be left that was collected before. */
static bool is_to_drain(const struct shadow_qp *qp)
{
	return qp->suspended && qp->slow & SLOW_SUSPENDED && qp_can_send(qp);
}

/* The same, and take what has completed; it is counted anew. */
static bool drain_some(struct suspension *s)
{
	struct shadow_context *c;
	struct shadow_qp *qp;
	struct shadow_cq *cq;
	bool more = false;

	s->taken = 0;
	EACH (c, qp, qps)
		if (is_to_drain(qp) && !qp->was_marked)
			more |= mark(qp, s);
	EACH (c, cq, cqs) {
		if (!cq->draining)
			continue;
		pthread_mutex_lock(&cq->lock);
		taken_fill(cq);
		more |= marker_is_awaited(cq);
		s->taken += (unsigned int)cq->n_taken;
		pthread_mutex_unlock(&cq->lock);
	}
	events_sort();
	return more;
}

/* which of them is not, and why; NULL if that has just changed */
static const struct shadow_qp *undrained(const char **why)
{
	struct shadow_context *c;
	struct shadow_qp *qp;

	EACH (c, qp, qps) {
		if (!is_to_drain(qp))
			continue;
		*why = qp->was_marked ? "what it has sent is not completed"
				      : "its queue or CQ stays full";
		if (!qp->was_marked || qp->is_marked)
			return qp;
	}
	return NULL;
}

static int drain(uint64_t deadline, struct suspension *s)
{
	const struct shadow_qp *qp;
	const char *why;

	while (drain_some(s))
		if (!breathe(deadline)) {
			qp = undrained(&why);
			return qp ? refuse(s, ETIMEDOUT,
					   "send queues are not drained: QP 0x%06x: %s",
					   qp->qp.qp_num, why)
				  : refuse(s, ETIMEDOUT,
					   "send queues are not drained");
		}
	return 0;
}

/* --- resume --- */

/* with the gate closed: of any of these, or, with 0, of any at all */
static bool has_rest(const uint32_t *qpns, unsigned int n)
{
	struct shadow_context *c;
	struct shadow_qp *qp;
	bool has = unfinished && !n;

	EACH (c, qp, qps)
		for (unsigned int i = 0; i < n && !has; i++)
			has = qp->qp.qp_num == qpns[i] &&
			      qp->slow & SLOW_SUSPENDED;
	return has;
}

/* Return: is that all, of these? */
static bool resume_more(const uint32_t *qpns, unsigned int n, uint64_t deadline)
{
	bool all;

	if (!gate_close(round_of(deadline)))
		return false;
	unfinished = !resume_some();
	all = !has_rest(qpns, n);
	gate_open();
	return all;
}

static bool resume_rest(const uint32_t *qpns, unsigned int n, uint64_t deadline)
{
	bool all = !unfinished;

	while (!all && !is_in_vain(deadline)) {
		pause_us(1000);
		all = resume_more(qpns, n, deadline);
	}
	return all;
}

/*
 * With the gate closed; it is open in the end. Full send queues are not waited for for long:
 * who resumes has more to say, and not only to this process.
 */
static void resume_all(void)
{
	suspended = NOTHING;
	suspend_let_verbs();
	unfinished = !resume_some();
	gate_open();
	resume_rest(NULL, 0, clock_ns() + ROUND);
}

/*
 * What is left of others does not wait for those that are suspended; their CQs may have to, and
 * are seen to when these go on.
 */
static void resume_those_beside(void)
{
	if (gate_close(0)) { /* nobody is kept out for it */
		unfinished = !resume_others();
		gate_open();
	}
}

bool suspend_go_on(void)
{
	if (unfinished && !pthread_mutex_trylock(&turn)) {
		if (unfinished && !suspended)
			resume_more(NULL, 0, FOREVER);
		else if (unfinished && suspended == SOME)
			resume_those_beside();
		pthread_mutex_unlock(&turn);
	}
	return !unfinished;
}

static int do_suspend(const uint32_t *qpns, unsigned int n, uint64_t deadline,
		      struct suspension *s)
{
	uint64_t begin = clock_ns();
	int err;

	suspend_make_markers();
	if (!close_gate(deadline))
		return refuse(s, ETIMEDOUT, "a verb does not return");
	if (!n)
		ahead_drop();
	err = choose(qpns, n, s);
	if (err) {
		suspend_let_verbs();
		gate_open();
		return err;
	}

	suspended = n ? SOME : ALL;
	if (!set_flags(deadline, s)) {
		resume_all();
		return refuse(s, ETIMEDOUT,
			      "a thread is within a batch of verbs");
	}
	flags_let_batches();
	peers_drop_unused();
	s->wait_ns = clock_ns() - begin;
	events_sort_begin();
	err = drain(deadline, s);
	events_sort_end();
	s->drain_ns = clock_ns() - begin - s->wait_ns;
	if (err)
		resume_all();
	else
		let_verbs();
	return err;
}

static int suspend(const uint32_t *qpns, unsigned int n,
		   unsigned int timeout_ms, struct suspension *s)
{
	uint64_t deadline = clock_ns() + (uint64_t)timeout_ms * 1000000;
	int err;

	*s = (struct suspension){};
	pthread_mutex_lock(&turn);
	if (suspended)
		err = refuse(s, EBUSY, "it is suspended");
	else if (!resume_rest(qpns, n, deadline))
		err = refuse(s, ETIMEDOUT,
			     "what was collected before is not posted yet");
	else
		err = do_suspend(qpns, n, deadline, s);
	pthread_mutex_unlock(&turn);
	return err;
}

int layer_suspend(unsigned int timeout_ms, struct suspension *s)
{
	return suspend(NULL, 0, timeout_ms, s);
}

int layer_suspend_some(const uint32_t *qpns, unsigned int n,
		       unsigned int timeout_ms, struct suspension *s)
{
	return suspend(qpns, n, timeout_ms, s);
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

/* It has one thread, and nobody to suspend it or to resume. */
void suspend_in_child(void)
{
	struct shadow_context *c;

	gate_in_child();
	unlock_in_child(&turn);
	suspended = NOTHING;
	unfinished = false;
	slots_all_in_child();
	TAILQ_FOREACH (c, &contexts, entry)
		resume_in_child(c);
}
