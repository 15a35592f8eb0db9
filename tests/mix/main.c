// SPDX-License-Identifier: GPL-2.0
/*
 * rc_mix: mixed SEND, WRITE, READ and ATOMIC traffic in both directions on
 * many RC QPs, with every completion, byte and sum checked.
 *
 *	rc_mix -s			on one node
 *	rc_mix [options] HOST		on the other
 *	... -- [options] [HOST]		more traffic, of the same process, with another one
 *
 * The client says what the traffic is like; either side ends it, after -t
 * seconds or on SIGTERM or SIGINT. From SIGUSR1 on a side posts nothing new,
 * but tells its peer, which soon brings both to rest, until SIGUSR2.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "conn.h"
#include "end.h"
#include "options.h"
#include "report.h"
#include "traffic.h"
#include "verbs.h"

#define NS_PER_S 1000000000ULL
#define PROGRESS_NS (NS_PER_S / 10)
#define HELLO_SECONDS 60

static volatile sig_atomic_t stop_signal, resting;

static void on_signal(int sig)
{
	if (sig == SIGUSR1 || sig == SIGUSR2)
		resting = sig == SIGUSR1;
	else
		stop_signal = sig;
}

static void catch_signals(void)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGUSR1, SIGUSR2 };
	const struct sigaction act = { .sa_handler = on_signal };

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaction(signals[i], &act, NULL);
}

/*
 * The client proposes, the server takes it, with the smaller MTU. Each says
 * whether it is to be solicited (*@solicit), and learns it of the other.
 */
static int agree_on_shape(struct shape *s, int fd, bool client, uint32_t mtu,
			  bool *solicit)
{
	uint64_t w[] = { MAGIC,	 s->seed,    s->qps, s->window,
			 s->max, s->without, mtu,    *solicit };
	const bool mine = *solicit;
	const size_t n = sizeof(w) / sizeof(*w);

	if (client && conn_send(fd, w, n))
		return -1;
	if (conn_recv(fd, w, n, HELLO_SECONDS))
		return -1;
	if (w[0] != MAGIC) {
		fprintf(stderr, "the peer is not this version of rc_mix\n");
		return -1;
	}
	if (w[6] > mtu)
		w[6] = mtu;
	s->seed = w[1];
	s->qps = w[2];
	s->window = w[3];
	s->max = w[4];
	s->without = w[5];
	s->mtu = w[6];
	*solicit = w[7];
	w[7] = mine;
	return client ? 0 : conn_send(fd, w, n);
}

/*
 * Fewer receives than the peer may send messages, and nobody looks before one
 * comes that solicits: it would never come.
 */
static int check_srq(const struct traffic *t, const struct options *o)
{
	if (!(o->verbs.events & EVENTS_SOLICITED) || !o->verbs.srq ||
	    o->verbs.srq >= t->shape.qps)
		return 0;
	fprintf(stderr, "-e solicited needs an -R as large as -q\n");
	return -1;
}

/* What there is beyond QPs that poll their own queues. */
static int set_up_more(struct traffic *t, struct verbs *v,
		       const struct options *o)
{
	bool hold = !(o->verbs.events & EVENTS_SOLICITED);

	if (o->verbs.windows && mw_alloc(t, v->pd))
		return -1;
	if (v->srq && srq_init(&t->srq, v->srq, v->srq_size, t->shape.qps, hold,
			       &t->verdict))
		return -1;
	if (events_start(t, o->verbs.events, v->cq))
		return -1;
	return v->srq || o->verbs.events ? async_start(t, v->context) : 0;
}

static int set_up(struct traffic *t, struct verbs *v, const struct options *o,
		  int fd)
{
	t->shape = o->shape;
	t->side = !!o->host;
	t->solicit = o->verbs.events & EVENTS_SOLICITED;
	if (verbs_open(v, &o->verbs) ||
	    agree_on_shape(&t->shape, fd, t->side, v->mtu, &t->solicit) ||
	    check_srq(t, o) || verbs_create(v, &o->verbs, &t->shape) ||
	    memory_alloc(&t->memory, &t->shape, t->side, o->pages) ||
	    memory_register(&t->memory, v->pd, o->verbs.windows))
		return -1;
	t->cqs = o->verbs.cqs;
	memcpy(t->cq, v->cq, sizeof(t->cq));
	t->max_inline = v->max_inline;
	if (traffic_init(t, v->qp) || set_up_more(t, v, o) ||
	    traffic_post_receives(t))
		return -1;
	return verbs_connect(v, &o->verbs, &t->shape, &t->memory, &t->remote,
			     fd);
}

/*
 * Leaves the CPU to others after a few rounds with nothing to do, for at most
 * an eighth of the time that nothing has happened, and 13 ms: where processors
 * are few, a peer that moves has a better use for them.
 */
static void idle(unsigned int *rounds)
{
	unsigned int doubled = *rounds / 16;
	struct timespec nap = { .tv_nsec = 50000 };

	(*rounds)++;
	if (!doubled) {
		sched_yield();
		return;
	}
	nap.tv_nsec <<= doubled < 8 ? doubled : 8;
	nanosleep(&nap, NULL);
}

/* As idle(), but what completes ends it. */
static void wait_for_events(struct traffic *t, unsigned int *rounds)
{
	unsigned int doubled = *rounds / 16;

	(*rounds)++;
	events_sleep(&t->events, 1 << (doubled < 4 ? doubled : 4));
}

/* The second thread posts on the same QPs, from the other end. */
static void *post_too(void *arg)
{
	struct traffic *t = arg;
	unsigned int rounds = 0;

	while (!traffic_stopping(t) && !verdict_fatal(&t->verdict)) {
		if (traffic_post(t, true))
			rounds = 0;
		else
			idle(&rounds);
	}
	return NULL;
}

static bool should_stop(struct traffic *t, const struct options *o,
			const struct run_clock *c)
{
	return stop_signal || traffic_peer_stopped(t) ||
	       (o->seconds && c->active >= o->seconds * NS_PER_S);
}

static void run(struct traffic *t, const struct options *o, struct run_clock *c)
{
	uint64_t next_progress = 0;
	unsigned int rounds = 0;
	bool done;

	run_clock_start(c);
	while (!verdict_fatal(&t->verdict)) {
		done = traffic_poll(t);
		async_poll(t);
		run_clock_tick(c, done);
		if (!traffic_stopping(t) && should_stop(t, o, c))
			traffic_stop(t);
		traffic_rest(t, resting && !traffic_stopping(t));
		if (traffic_rests(t))
			run_clock_rests(c);
		if (o->progress && c->active >= next_progress) {
			if (report_progress(o->progress, t, c))
				violation_fatal(&t->verdict, "%s: %s",
						o->progress, strerror(errno));
			next_progress = c->active + PROGRESS_NS;
		}
		if (traffic_post(t, false) || done)
			rounds = 0;
		else if (traffic_stopping(t) && traffic_drained(t))
			break;
		else if (t->events.how)
			wait_for_events(t, &rounds);
		else
			idle(&rounds);
		if (c->active - c->last_active > o->stuck_seconds * NS_PER_S)
			traffic_explain_stuck(t);
	}
}

static int give_result(struct traffic *t, const struct options *o,
		       const struct run_clock *c)
{
	bool failed = t->verdict.count;
	FILE *f;

	if (o->progress)
		report_progress(o->progress, t, c);
	printf("%s ", failed ? "FAIL" : "PASS");
	report_result(stdout, t, c);
	printf("\n");
	if (!o->result)
		return failed;
	f = fopen(o->result, "we");
	if (!f) {
		fprintf(stderr, "%s: %s\n", o->result, strerror(errno));
		return 1;
	}
	report_result(f, t, c);
	fputc('\n', f);
	return fclose(f) || failed;
}

/* The process' exit code, if there is no other traffic */
static int do_traffic(const struct options *o, struct traffic *t)
{
	struct run_clock clock;
	struct verbs v = { 0 };
	pthread_t thread;
	int fd, rc;

	fd = o->host ? conn_connect(o->host, o->port) : conn_listen(o->port);
	if (fd < 0 || set_up(t, &v, o, fd))
		return 1;
	catch_signals();
	if (o->threads == 2 && pthread_create(&thread, NULL, post_too, t)) {
		perror("pthread_create");
		return 1;
	}
	run(t, o, &clock);
	if (o->threads == 2)
		pthread_join(thread, NULL);
	end_run(t, &v, o, fd);
	if (o->violate)
		violation(&t->verdict, "none: told so by -V");
	rc = give_result(t, o, &clock);
	if (v.cq[0])
		return rc; /* as some thread is still busy with it */
	traffic_free(t);
	memory_free(&t->memory);
	close(fd);
	return rc;
}

/* What else the process does */
static struct {
	struct options o;
	struct traffic t;
	int rc;
} more;

static void *do_more(void *arg)
{
	more.rc = do_traffic(&more.o, &more.t);
	return arg;
}

int main(int argc, char **argv)
{
	static struct traffic t;
	pthread_t thread;
	struct options o;
	int first = 1, rc;

	while (first < argc && strcmp(argv[first], "--"))
		first++;
	if (first == argc) {
		options_parse(&o, argc, argv);
		return do_traffic(&o, &t);
	}
	options_parse(&more.o, argc - first, argv + first);
	argv[first] = NULL;
	options_parse(&o, first, argv);
	if (pthread_create(&thread, NULL, do_more, NULL)) {
		perror("pthread_create");
		return 1;
	}
	rc = do_traffic(&o, &t);
	pthread_join(thread, NULL);
	return rc ? rc : more.rc;
}
