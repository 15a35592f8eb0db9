// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "events.h"

#include "armed.h"
#include "clock.h"
#include "control.h"
#include "gate.h"
#include "handles.h"
#include "section.h"

/* --- completion events --- */

static void ring_channel(struct shadow_channel *s, unsigned int carried)
{
	bool was = s->carried;

	s->carried = carried;
	if (!was != !carried)
		relay_ring(&s->relay, carried);
}

void events_add(struct shadow_cq *cq)
{
	struct shadow_channel *s = to_channel(cq->cq.channel);

	cq->carried++;
	ring_channel(s, s->carried + 1);
}

/* the last one of its CQ, as the one that was given for what was taken */
static void take_one(struct shadow_cq *cq)
{
	struct shadow_channel *s = to_channel(cq->cq.channel);

	if (!--cq->carried)
		cq->woken = false;
	ring_channel(s, s->carried - 1);
}

bool events_take_back(struct shadow_cq *cq)
{
	struct shadow_context *c = to_context(cq->cq.context);
	bool is;

	pthread_mutex_lock(&c->lock);
	is = atomic_exchange(&cq->woken, false);
	if (is)
		take_one(cq);
	pthread_mutex_unlock(&c->lock);
	return is;
}

void events_forget_cq(struct shadow_cq *cq)
{
	struct shadow_channel *s;

	if (!cq->carried)
		return;
	s = to_channel(cq->cq.channel);
	ring_channel(s, s->carried - cq->carried);
	cq->carried = 0;
	cq->woken = false;
}

/* It is not destroyed until there is an acknowledgement. */
static void hold_cq(struct shadow_cq *cq)
{
	pthread_mutex_lock(&cq->cq.mutex);
	cq->given++;
	pthread_mutex_unlock(&cq->cq.mutex);
}

/* the application gets an event of it */
static void give(struct shadow_cq *cq)
{
	unsigned int arms = atomic_load(&cq->arms);

	while (arms &&
	       !atomic_compare_exchange_weak(&cq->arms, &arms, arms - 1))
		;
}

/* Destroying it waits for the acknowledgement, so it is there until then. */
static int read_real(struct ibv_comp_channel *channel, struct ibv_cq **cq)
{
	void *context;
	int err;

	handles_begin();
	err = real()->ibv_get_cq_event(channel, cq, &context);
	handles_end();
	return err;
}

/* Return: 0, EAGAIN if there is none, or EIO if none will ever come */
static int take_carried(struct shadow_channel *s, struct shadow_cq **found)
{
	struct shadow_context *c = to_context(s->channel.context);
	struct shadow_cq *cq = NULL;
	int err = EAGAIN;

	pthread_mutex_lock(&c->lock);
	if (s->carried) {
		TAILQ_FOREACH (cq, &c->cqs, entry)
			if (cq->cq.channel == &s->channel && cq->carried)
				break;
		err = EIO;
	}
	if (cq) {
		take_one(cq);
		hold_cq(cq);
		give(cq);
		*found = cq;
		err = 0;
	}
	pthread_mutex_unlock(&c->lock);
	return err;
}

/* The last event of a channel, of no CQ, is there for ever. */
void events_unplug(struct shadow_context *c)
{
	struct shadow_channel *s;
	struct shadow_cq *cq;

	pthread_mutex_lock(&c->lock);
	TAILQ_FOREACH (cq, &c->cqs, entry)
		if (cq->cq.channel && armed_is(cq))
			events_add(cq);
	TAILQ_FOREACH (s, &c->channels, entry)
		ring_channel(s, s->carried + 1);
	pthread_mutex_unlock(&c->lock);
}

/*
 * Whoever was told by poll(2) that there is an event, and then waits for it, would wait for
 * another one: it is the application's, unless nobody can have been told. Else the CQ is
 * armed again.
 */
static bool is_dropped(struct shadow_cq *cq, const struct ibv_cq *real,
		       bool was_slow, bool is_untold)
{
	struct shadow_channel *s = to_channel(cq->cq.channel);

	return (is_untold || atomic_load(&s->muted) || atomic_load(&s->held) ||
		!relay_waits(&s->relay)) &&
	       armed_is_own(cq, real, was_slow) && !armed_rearm(cq);
}

static void carry(struct shadow_cq *cq, const struct ibv_cq *real)
{
	struct shadow_context *c = to_context(cq->cq.context);

	if (is_dropped(cq, real, true, false))
		return;
	pthread_mutex_lock(&c->lock);
	events_add(cq);
	pthread_mutex_unlock(&c->lock);
}

void events_carry(struct ibv_comp_channel *old, bool keep)
{
	struct ibv_cq *cq;

	while (!read_real(old, &cq)) {
		if (keep)
			carry(to_cq(shadow_of_cq(cq)), cq);
		real()->ibv_ack_cq_events(cq, 1);
	}
}

#define PATIENCE \
	5000000 /* ns; an event comes at once after its completion, or never */

static const struct timespec pause_between = { .tv_nsec = 20000 };

static void carry_unsorted(struct shadow_cq *cq)
{
	struct shadow_context *c = to_context(cq->cq.context);

	pthread_mutex_lock(&c->lock);
	if (armed_is(cq))
		events_add(cq);
	pthread_mutex_unlock(&c->lock);
}

/*
 * @slow: takes the layer completions of it, while it is read?
 *
 * Return: 0; the CQ is held then; or EAGAIN if there is none, or an errno
 */
static int read_one(struct shadow_channel *s, struct shadow_cq **cq,
		    struct ibv_cq **r, bool *slow)
{
	int err = EAGAIN;

	section_begin();
	if (!atomic_load(&s->held))
		err = read_real(s->real, r) ? errno : 0;
	if (!err) {
		*cq = to_cq(shadow_of_cq(*r));
		hold_cq(*cq);
		*slow = atomic_load(&(*cq)->slow) & CQ_SLOW;
		real()->ibv_ack_cq_events(*r, 1);
	}
	section_end();
	return err;
}

void events_expect(struct shadow_cq *cq, bool is_locked)
{
	struct shadow_channel *s = to_channel(cq->cq.channel);
	uint64_t end = clock_ns() + PATIENCE;
	struct shadow_cq *other;
	bool came = false, slow;
	struct ibv_cq *r;

	do {
		while (!came && !read_one(s, &other, &r, &slow)) {
			came = other == cq;
			if (!came && is_locked)
				carry_unsorted(other);
			else if (!came)
				carry(other, r);
			ibv_ack_cq_events(&other->cq, 1);
		}
	} while (!came && !nanosleep(&pause_between, NULL) && clock_ns() < end);
}

/* --- while the layer takes completions --- */

/* Events from before may have been told: they are read in between. */
void events_sort_begin(void)
{
	struct shadow_channel *s;
	struct shadow_context *c;

	EACH (c, s, channels) {
		if (!c->suspended)
			continue;
		relay_mute(&s->relay, s->real->fd, true);
		events_carry(s->real, true);
		atomic_store(&s->muted, true);
	}
}

bool events_sort(void)
{
	struct shadow_channel *s;
	struct shadow_context *c;
	struct shadow_cq *cq;
	bool more = false;

	EACH (c, s, channels)
		if (c->suspended && !atomic_load(&s->held))
			events_carry(s->real, true);
	EACH (c, cq, cqs) {
		if (!c->suspended)
			continue;
		pthread_mutex_lock(&cq->lock);
		more |= cq->cause == CAUSE_OURS && !cq->n_taken;
		pthread_mutex_unlock(&cq->lock);
	}
	return more;
}

void events_sort_end(void)
{
	uint64_t end = clock_ns() + PATIENCE;
	struct shadow_channel *s;
	struct shadow_context *c;

	while (events_sort() && clock_ns() < end)
		nanosleep(&pause_between, NULL);
	EACH (c, s, channels)
		if (atomic_exchange(&s->muted, false))
			relay_mute(&s->relay, s->real->fd, false);
}

/* --- what the application asks for --- */

/*
 * @waited: the application does, in this call
 *
 * Return: 0, EAGAIN, ERESTART if there may be another one, or an errno
 */
static int read_event(struct shadow_channel *s, struct shadow_cq **cq,
		      bool waited)
{
	struct ibv_cq *r;
	bool slow;
	int err;

	err = read_one(s, cq, &r, &slow);
	if (err)
		return err;
	if (is_dropped(*cq, r, slow, waited)) {
		ibv_ack_cq_events(&(*cq)->cq, 1);
		return ERESTART;
	}
	give(*cq);
	return 0;
}

static int next_event(struct shadow_channel *s, struct shadow_cq **cq)
{
	bool waited = false;
	int err;

	do {
		err = take_carried(s, cq);
		if (err == EAGAIN)
			err = read_event(s, cq, waited);
		if (!err)
			return 0;
		if (err == EAGAIN) {
			err = relay_wait(&s->relay);
			waited = true;
		}
	} while (!err || err == ERESTART);
	errno = err;
	return -1;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
		     void **cq_context)
{
	struct shadow_cq *s;
	int err;

	if (is_shadow(channel->context) && control_is_on()) {
		err = next_event(to_channel(channel), &s);
		if (!err)
			*cq = &s->cq;
	} else {
		err = real()->ibv_get_cq_event(real_channel(channel), cq,
					       cq_context);
		if (!err && is_shadow(channel->context))
			*cq = shadow_of_cq(*cq);
	}
	if (!err)
		*cq_context = (*cq)->cq_context;
	return err;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	if (!is_shadow(cq->context) || !control_is_on()) {
		real()->ibv_ack_cq_events(real_cq(cq), nevents);
		return;
	}
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}
