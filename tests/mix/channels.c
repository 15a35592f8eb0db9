// SPDX-License-Identifier: GPL-2.0
/* Where events come from: channels, who reads them, and who waits for them. */
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
#include "verdict.h"

#define MOST_CHANNELS 2

/* What ends the sleep of a thread in ibv_get_cq_event(). */
#define SIGNAL_END SIGURG

const char *event_cq_name(const struct events *e, const struct event_cq *c)
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
			  event_cq_name(e, c), context, c->context);
	if (c->cq->channel != e->channel[i])
		violation(e->verdict, "event for the %s on another's channel",
			  event_cq_name(e, c));
	if (!c->due) {
		violation(e->verdict,
			  "event %" PRIu64
			  " for the %s, which was not armed since the last",
			  c->read, event_cq_name(e, c));
		return;
	}
	c->due--;
	c->armed = false;
	c->owed = false;
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

static bool readable(const struct events *e, unsigned int i, int ms)
{
	struct pollfd p = { .fd = e->channel[i]->fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

bool channels_wait(const struct events *e)
{
	unsigned int i;

	for (i = 0; i < e->channels; i++)
		if (e->how & EVENTS_BLOCK && readable(e, i, 0))
			return true;
	return false;
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
		while (came && readable(e, i, 0) &&
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

int channels_start(struct events *e)
{
	unsigned int i;

	if (e->how & EVENTS_BLOCK)
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
void channels_read(struct events *e)
{
	struct epoll_event ev[MOST_CHANNELS + 1];
	int n = epoll_wait(e->epoll, ev, MOST_CHANNELS + 1, 0);

	if (n < 0 && errno != EINTR)
		violation_fatal(e->verdict, "epoll_wait: %s", strerror(errno));
	while (n-- > 0)
		if (ev[n].data.u32 < MOST_CHANNELS)
			read_channel(e, ev[n].data.u32);
}

/* Until somebody has read an event, or one comes. The lock is held. */
static bool may_sleep(const struct events *e)
{
	unsigned int i;

	for (i = 0; i < e->cqs; i++)
		if (e->cq[i].drain || !(e->cq[i].armed || channels_wait(e)))
			return false;
	return true;
}

void events_sleep(struct events *e, int ms)
{
	struct epoll_event ev;
	struct timespec until;

	pthread_mutex_lock(&e->lock);
	if (e->how & EVENTS_BLOCK && may_sleep(e)) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += ms * 1000000L;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&e->came, &e->lock, &until);
	} else if (may_sleep(e)) {
		epoll_wait(e->epoll, &ev, 1, ms);
	}
	pthread_mutex_unlock(&e->lock);
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

/* How long an event may still take, in ms. */
static int patience(const struct events *e, unsigned int channel,
		    unsigned int seconds)
{
	unsigned int i;

	for (i = 0; i < e->cqs; i++)
		if (e->cq[i].owed &&
		    e->cq[i].cq->channel == e->channel[channel])
			return seconds * 1000;
	return 0;
}

void channels_end(struct events *e, unsigned int seconds)
{
	struct ibv_cq *cq;
	unsigned int i;
	void *context;

	if (e->how & EVENTS_BLOCK)
		end_threads(e);
	else
		close(e->epoll);
	for (i = 0; i < e->channels && !verdict_fatal(e->verdict); i++)
		while (readable(e, i, patience(e, i, seconds)) &&
		       !read_event(e, i, &cq, &context))
			judge(e, i, cq, context);
}
