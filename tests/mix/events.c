// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "events.h"
#include "traffic.h"

/* So many are acknowledged at once, and one is always left over. */
#define ACK_BATCH 16

#define MOST_CHANNELS 2

/* What ends the sleep of a thread in ibv_get_cq_event(). */
#define SIGNAL_END SIGURG

static const char *cq_name(const struct events *e, const struct event_cq *c)
{
	if (e->cqs == 1)
		return "CQ";
	return c == &e->cq[0] ? "send CQ" : "receive CQ";
}

static struct event_cq *find_cq(struct events *e, const struct ibv_cq *cq)
{
	unsigned int i;

	for (i = 0; i < e->cqs; i++)
		if (e->cq[i].cq == cq)
			return &e->cq[i];
	return NULL;
}

/* An event was read from channel @i. */
static void judge(struct events *e, unsigned int i, struct ibv_cq *cq,
		  void *context)
{
	struct event_cq *c = find_cq(e, cq);

	if (!c) {
		/* which one has to be acknowledged is anybody's guess */
		violation_fatal(e->verdict, "event for %p, no CQ of ours",
				(void *)cq);
		return;
	}
	c->read++;
	if (context != c->context)
		violation(e->verdict,
			  "event for the %s: cq_context %p, expected %p",
			  cq_name(e, c), context, c->context);
	if (c->cq->channel != e->channel[i])
		violation(e->verdict, "event for the %s on another's channel",
			  cq_name(e, c));
	if (!c->due) {
		violation(e->verdict,
			  "event %" PRIu64
			  " for the %s, which was not armed since the last",
			  c->read, cq_name(e, c));
		return;
	}
	c->due--;
	c->armed = false;
	c->drain = true;
	if (!c->solicited)
		return;
	c->prove = true;
	c->proof = c->armed_at;
}

/* Returns -1 if there is none (EAGAIN, EINTR), or after a violation. */
static int read_event(struct events *e, unsigned int i, struct ibv_cq **cq,
		      void **context)
{
	if (!ibv_get_cq_event(e->channel[i], cq, context))
		return 0;
	if (errno != EAGAIN && errno != EINTR)
		violation_fatal(e->verdict, "ibv_get_cq_event: %s",
				strerror(errno));
	return -1;
}

static bool readable(const struct events *e, unsigned int i)
{
	struct pollfd p = { .fd = e->channel[i]->fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void *block(void *arg)
{
	struct events *e = arg;
	struct ibv_cq *cq;
	void *context;
	bool came, ending;
	unsigned int i;

	pthread_mutex_lock(&e->lock);
	i = e->threads++;
	pthread_mutex_unlock(&e->lock);
	do {
		came = !read_event(e, i, &cq, &context);
		pthread_mutex_lock(&e->lock);
		if (came)
			judge(e, i, cq, context);
		/* before anybody arms anew: nothing more may have come */
		while (came && readable(e, i) &&
		       !read_event(e, i, &cq, &context))
			judge(e, i, cq, context);
		ending = e->ending;
		pthread_cond_signal(&e->came);
		pthread_mutex_unlock(&e->lock);
	} while (!ending && !verdict_fatal(e->verdict));
	return NULL;
}

static int no_block(int fd)
{
	return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/* @channel: which one it is of, or MOST_CHANNELS. */
static int watch(struct events *e, int fd, unsigned int channel)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = channel };

	if (no_block(fd) || (e->how && !(e->how & EVENTS_BLOCK) &&
			     epoll_ctl(e->epoll, EPOLL_CTL_ADD, fd, &ev))) {
		perror("an fd of events");
		return -1;
	}
	return 0;
}

int events_watch(struct events *e, int fd)
{
	return watch(e, fd, MOST_CHANNELS);
}

static void on_end(int sig)
{
	(void)sig;
}

static int start_threads(struct events *e)
{
	/* no SA_RESTART: it has to interrupt */
	const struct sigaction act = { .sa_handler = on_end };
	unsigned int i;
	int rc;

	sigaction(SIGNAL_END, &act, NULL);
	for (i = 0; i < e->channels; i++) {
		rc = pthread_create(&e->thread[i], NULL, block, e);
		if (rc) {
			fprintf(stderr, "a thread: %s\n", strerror(rc));
			return -1;
		}
	}
	return 0;
}

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
	if (how & EVENTS_BLOCK)
		return start_threads(e);
	e->epoll = epoll_create1(EPOLL_CLOEXEC);
	for (i = 0; i < e->channels; i++)
		if (watch(e, e->channel[i]->fd, i))
			return -1;
	return 0;
}

/* An fd that has learnt to block would hold us for ever. */
static void read_channel(struct events *e, unsigned int i)
{
	struct ibv_cq *cq;
	void *context;

	if (!(fcntl(e->channel[i]->fd, F_GETFL) & O_NONBLOCK)) {
		violation_fatal(e->verdict,
				"a channel's fd has lost O_NONBLOCK");
		return;
	}
	while (!verdict_fatal(e->verdict) && !read_event(e, i, &cq, &context))
		judge(e, i, cq, context);
}

/* Of a channel that epoll does not name nothing is read. */
static void read_channels(struct events *e)
{
	struct epoll_event ev[MOST_CHANNELS + 1];
	int n = epoll_wait(e->epoll, ev, MOST_CHANNELS + 1, 0);

	if (n < 0 && errno != EINTR)
		violation_fatal(e->verdict, "epoll_wait: %s", strerror(errno));
	while (n-- > 0)
		if (ev[n].data.u32 < MOST_CHANNELS)
			read_channel(e, ev[n].data.u32);
}

/*
 * Who asks for solicited events empties the CQ before that, too, to know that
 * what solicits the next one has not been there before. Who stops wants to hear
 * of all that comes: nobody knows whether the peer's last message solicits. An
 * event may have been on its way already, so two may come then.
 */
static bool arm_anew(const struct traffic *t, const struct event_cq *c)
{
	if (c->solicited && traffic_stopping(t))
		return true;
	return !c->armed && !(c->solicited && c->drain);
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
		read_channels(e);
	for (i = 0; i < e->cqs; i++) {
		c = &e->cq[i];
		if (arm_anew(t, c))
			arm(t, c);
		if (c->read - c->acked > ACK_BATCH)
			acknowledge(c, 1);
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

/* The lock is held. */
static bool all_sleep(const struct events *e)
{
	unsigned int i;

	for (i = 0; i < e->cqs; i++)
		if (!e->cq[i].armed || e->cq[i].drain)
			return false;
	return true;
}

void events_sleep(struct events *e, int ms)
{
	struct epoll_event ev;
	struct timespec until;

	pthread_mutex_lock(&e->lock);
	if (e->how & EVENTS_BLOCK && all_sleep(e)) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += ms * 1000000L;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&e->came, &e->lock, &until);
	} else if (all_sleep(e)) {
		epoll_wait(e->epoll, &ev, 1, ms);
	}
	pthread_mutex_unlock(&e->lock);
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
				cq_name(e, c),
				c->solicited ? " (solicited)" : "", n, c->read);
	}
}

/* A signal may come before the sleep it is to end, so it comes often. */
static void end_threads(struct events *e)
{
	const struct timespec nap = { .tv_nsec = 1000000 };
	unsigned int i;

	pthread_mutex_lock(&e->lock);
	e->ending = true;
	pthread_mutex_unlock(&e->lock);
	for (i = 0; i < e->channels; i++)
		while (pthread_tryjoin_np(e->thread[i], NULL)) {
			pthread_kill(e->thread[i], SIGNAL_END);
			nanosleep(&nap, NULL);
		}
}

void events_end(struct traffic *t)
{
	struct events *e = &t->events;
	struct ibv_cq *cq;
	unsigned int i;
	void *context;

	if (!e->how)
		return;
	if (e->how & EVENTS_BLOCK)
		end_threads(e);
	else
		close(e->epoll);
	for (i = 0; i < e->channels && !verdict_fatal(e->verdict); i++)
		while (readable(e, i) && !read_event(e, i, &cq, &context))
			judge(e, i, cq, context);
	for (i = 0; i < e->cqs; i++)
		acknowledge(&e->cq[i], 0);
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
