// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "events.h"

#include "control.h"
#include "handles.h"
#include "section.h"

/* --- whether a CQ is armed --- */

/* Events that it may cause are read later. */
void events_arm(struct shadow_cq *cq, bool solicited_only)
{
	if (!atomic_fetch_add(&cq->arms, 1))
		atomic_store(&cq->arms_any, !solicited_only);
	else if (!solicited_only)
		atomic_store(&cq->arms_any, true);
}

/* Who arms twice before an event is read may have done so before it, or behind. */
bool events_armed(const struct shadow_cq *cq)
{
	return atomic_load(&cq->arms) > cq->carried;
}

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

void events_forget_cq(struct shadow_cq *cq)
{
	struct shadow_channel *s;

	if (!cq->carried)
		return;
	s = to_channel(cq->cq.channel);
	ring_channel(s, s->carried - cq->carried);
	cq->carried = 0;
}

/* the application gets an event of it */
static void give(struct shadow_cq *cq)
{
	unsigned int arms = atomic_load(&cq->arms);

	while (arms &&
	       !atomic_compare_exchange_weak(&cq->arms, &arms, arms - 1))
		;
	pthread_mutex_lock(&cq->cq.mutex);
	cq->given++;
	pthread_mutex_unlock(&cq->cq.mutex);
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
		cq->carried--;
		ring_channel(s, s->carried - 1);
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
		if (cq->cq.channel && events_armed(cq))
			events_add(cq);
	TAILQ_FOREACH (s, &c->channels, entry)
		ring_channel(s, s->carried + 1);
	pthread_mutex_unlock(&c->lock);
}

void events_carry(struct ibv_comp_channel *old, bool keep)
{
	struct ibv_cq *cq;

	while (!read_real(old, &cq)) {
		if (keep)
			events_add(to_cq(shadow_of_cq(cq)));
		real()->ibv_ack_cq_events(cq, 1);
	}
}

static int read_event(struct shadow_channel *s, struct shadow_cq **cq)
{
	int err = EAGAIN;
	struct ibv_cq *r;

	section_begin();
	if (!atomic_load(&s->held))
		err = read_real(s->real, &r) ? errno : 0;
	if (!err) {
		*cq = to_cq(shadow_of_cq(r));
		give(*cq);
		real()->ibv_ack_cq_events(r, 1);
	}
	section_end();
	return err;
}

static int next_event(struct shadow_channel *s, struct shadow_cq **cq)
{
	int err;

	do {
		err = take_carried(s, cq);
		if (err == EAGAIN)
			err = read_event(s, cq);
		if (!err)
			return 0;
		if (err == EAGAIN)
			err = relay_wait(&s->relay);
	} while (!err);
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
