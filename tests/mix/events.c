// SPDX-License-Identifier: GPL-2.0
#include <inttypes.h>
#include <string.h>

#include "events.h"
#include "traffic.h"

/* So many are acknowledged at once, and one is always left over. */
#define ACK_BATCH 16

int events_start(struct traffic *t, unsigned int how, struct ibv_cq **cq)
{
	struct events *e = &t->events;
	unsigned int i;

	memset(e, 0, sizeof(*e));
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->came, NULL);
	e->how = how;
	e->verdict = &t->verdict;
	if (!how)
		return 0;
	e->cqs = t->cqs;
	e->channels = how & EVENTS_SHARED ? 1 : t->cqs;
	for (i = 0; i < e->cqs; i++) {
		e->cq[i].cq = t->cq[i];
		e->cq[i].context = &cq[i];
		e->cq[i].solicited = how & EVENTS_SOLICITED && i;
		if (i < e->channels)
			e->channel[i] = t->cq[i]->channel;
	}
	return channels_start(e);
}

/*
 * Who asks for solicited events empties the CQ before that, too, to know that
 * what solicits the next one has not been there before.
 */
static bool arm_anew(const struct events *e, const struct event_cq *c)
{
	return !c->armed && !(c->solicited && c->drain) && !channels_wait(e);
}

static void arm(struct traffic *t, struct event_cq *c)
{
	int rc;

	if (traffic_stopping(t))
		c->solicited = false;
	c->armed = true;
	c->due++;
	c->drain = true;
	c->armed_at = t->solicited;
	rc = ibv_req_notify_cq(c->cq, c->solicited);
	if (rc)
		violation_fatal(&t->verdict, "ibv_req_notify_cq: %s",
				strerror(rc));
}

/*
 * Who stops wants to hear of all that comes: nobody knows whether the peer's
 * last message solicits. If one that does has come while we slept, an event is
 * on its way. Else all are asked for; one for a message that has come just now
 * may be on its way as well, so two may come.
 */
static unsigned int widen(struct traffic *t, struct event_cq *c)
{
	uint64_t before = t->solicited;
	unsigned int n, total = 0;

	if (!traffic_stopping(t) || !c->solicited || !c->armed || c->drain ||
	    c->owed)
		return 0;
	while ((n = traffic_poll_cq(t, c->cq)))
		total += n;
	c->owed = t->solicited != before;
	if (!c->owed)
		arm(t, c);
	return total;
}

static void acknowledge(struct event_cq *c, uint64_t but)
{
	if (c->read - c->acked <= but)
		return;
	ibv_ack_cq_events(c->cq, c->read - c->acked - but);
	c->acked = c->read - but;
}

/* Who asked for solicited events gets none without a message that solicits. */
static void prove(struct traffic *t, struct event_cq *c)
{
	if (c->prove && t->solicited == c->proof)
		violation(&t->verdict,
			  "event for the receive CQ, but nothing had come"
			  " that solicits one");
	c->prove = false;
}

unsigned int events_poll(struct traffic *t)
{
	struct events *e = &t->events;
	unsigned int i, n, total = 0;
	struct event_cq *c;

	pthread_mutex_lock(&e->lock);
	if (!(e->how & EVENTS_BLOCK))
		channels_read(e);
	for (i = 0; i < e->cqs; i++) {
		c = &e->cq[i];
		if (arm_anew(e, c))
			arm(t, c);
		if (c->read - c->acked > ACK_BATCH)
			acknowledge(c, 1);
		total += widen(t, c);
		if (!c->drain)
			continue;
		n = traffic_poll_cq(t, c->cq);
		total += n;
		c->drain = n;
		if (!n)
			prove(t, c);
	}
	pthread_mutex_unlock(&e->lock);
	return total;
}

void events_explain_stuck(struct traffic *t)
{
	struct events *e = &t->events;
	uint64_t solicited, n;
	struct event_cq *c;
	unsigned int i, got;

	for (i = 0; i < e->cqs; i++) {
		c = &e->cq[i];
		solicited = t->solicited;
		for (n = 0; (got = traffic_poll_cq(t, c->cq)); n += got)
			;
		if (!n || !c->armed ||
		    (c->solicited && t->solicited == solicited))
			continue;
		violation_fatal(&t->verdict,
				"lost event: the %s was armed%s, had %" PRIu64
				" entries when polled, and no event came"
				" (%" PRIu64 " came before)",
				event_cq_name(e, c),
				c->solicited ? " (solicited)" : "", n, c->read);
	}
}

void events_end(struct traffic *t, unsigned int seconds)
{
	struct events *e = &t->events;
	unsigned int i;

	if (!e->how)
		return;
	channels_end(e, seconds);
	for (i = 0; i < e->cqs; i++) {
		if (e->cq[i].owed)
			violation(&t->verdict,
				  "lost event: the %s was armed (solicited),"
				  " had what solicits, and no event came",
				  event_cq_name(e, &e->cq[i]));
		acknowledge(&e->cq[i], 0);
	}
}

void events_count(struct events *e, uint64_t *read, uint64_t *acked)
{
	unsigned int i;

	*read = 0;
	*acked = 0;
	pthread_mutex_lock(&e->lock);
	for (i = 0; i < e->cqs; i++) {
		*read += e->cq[i].read;
		*acked += e->cq[i].acked;
	}
	pthread_mutex_unlock(&e->lock);
}
