/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Completion events: sleeping until the NIC says that a CQ has something.
 *
 * A CQ is armed, then polled until it is empty, then left alone until its
 * event has come. It is never polled otherwise, so who loses an event is left
 * without completions, and the watch over those tells. It is armed again only
 * when nothing more waits in its channel, so each event answers one arming.
 *
 * Credits come silently, as they are RDMA WRITEs. So nobody sleeps for longer
 * than some milliseconds; but what wakes up by itself looks at memory only.
 */
#ifndef MIX_EVENTS_H
#define MIX_EVENTS_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct traffic;
struct verdict;

enum {
	EVENTS_ON = 1,
	EVENTS_SOLICITED = 2, /* the receive CQ is armed for these only */
	EVENTS_BLOCK = 4,     /* threads in ibv_get_cq_event(); else epoll */
	EVENTS_SHARED = 8,    /* one channel for both CQs */
};

struct event_cq {
	struct ibv_cq *cq;
	void *context;	   /* given to ibv_create_cq() */
	bool armed;	   /* and no event has come since */
	bool solicited;	   /* how */
	unsigned int due;  /* events that may come: one for each arming */
	bool drain;	   /* not seen empty since it was armed */
	uint64_t armed_at; /* solicited messages received when it was */
	bool owed;	   /* one has to come, whatever else comes */
	bool prove;	   /* there must be more of them than ... */
	uint64_t proof;
	uint64_t read, acked;
};

struct events {
	unsigned int how;     /* 0: no events */
	pthread_mutex_t lock; /* all below, from the threads that block */
	pthread_cond_t came;
	struct verdict *verdict;
	struct event_cq cq[2];
	unsigned int cqs;
	struct ibv_comp_channel *channel[2];
	pthread_t thread[2];
	unsigned int channels, threads;
	int epoll;
	bool ending;
};

/*
 * Both return -1 after a message to stderr, else 0. @t has its CQs; the
 * context of the one at @cq[i] is the address &cq[i].
 */
int events_start(struct traffic *t, unsigned int how, struct ibv_cq **cq);
/* An fd that wakes the sleeper, too. */
int events_watch(struct events *e, int fd);

/* As traffic_poll(), but only of CQs whose event has come. */
unsigned int events_poll(struct traffic *t);
/* Until an event comes, or for @ms; not if there is something to do. */
void events_sleep(struct events *e, int ms);

/* Nothing completes: is it that an event was lost? */
void events_explain_stuck(struct traffic *t);

/* No more events: the last ones are read, and all acknowledged. */
void events_end(struct traffic *t, unsigned int seconds);
void events_count(struct events *e, uint64_t *read, uint64_t *acked);

/* Internal, between events.c and channels.c. */
int channels_start(struct events *e);
/* Judges all events that are there; not for threads that block. */
void channels_read(struct events *e);
/* Something waits to be judged before a CQ may be armed anew. */
bool channels_wait(const struct events *e);
/* An event that is owed is waited for. */
void channels_end(struct events *e, unsigned int seconds);
const char *event_cq_name(const struct events *e, const struct event_cq *c);

#endif
