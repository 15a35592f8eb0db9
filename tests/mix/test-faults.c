// SPDX-License-Identifier: GPL-2.0
/*
 * The checks are awake: traffic over a perfect NIC passes, and each mistake
 * a NIC can make once is noticed and named.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fakenic.h"
#include "faults.h"
#include "traffic.h"
#include "verbs.h"

#define QPS 3
#define AFTER 500     /* operations before the mistake */
#define ENOUGH 400    /* operations per QP and side */
#define PATIENCE 1000 /* rounds in which nothing happens */

static const struct shape shape = {
	.seed = 7,
	.qps = QPS,
	.window = 16,
	.max = 9000,
	.mtu = 1024,
};

static struct ibv_mr fake_mr[2];
static struct ibv_pd fake_pd[2];
static struct fake_net *net; /* between the two sides */

static void start_side(struct traffic *t, unsigned int side,
		       const struct mode *mode)
{
	bool solicits = mode->how & EVENTS_SOLICITED;
	unsigned int k;

	memset(t, 0, sizeof(*t));
	t->shape = shape;
	t->shape.without = mode->without;
	t->side = side;
	t->max_inline = 64;
	t->solicit = solicits;
	t->cqs = mode->cqs;
	memcpy(t->cq, fake_cqs(net, side), sizeof(t->cq));
	if (memory_alloc(&t->memory, &t->shape, side, PAGES_DEFAULT))
		exit(1);
	for (k = 0; k < REGIONS; k++)
		t->memory.region[k].mr = &fake_mr[side];
	fake_mr[side].context = fake_pd[side].context = fake_context(net, side);
	if (traffic_init(t, fake_qps(net, side)) ||
	    (mode->windows >> side & 1 && mw_alloc(t, &fake_pd[side])) ||
	    (mode->srq &&
	     srq_init(&t->srq, fake_srq(net, side), mode->srq * shape.window,
		      QPS, !solicits, &t->verdict)) ||
	    events_start(t, mode->how, fake_cqs(net, side)) ||
	    (mode != &plain && async_start(t, fake_context(net, side))) ||
	    traffic_post_receives(t))
		exit(1);
}

/* How many objects verbs_create(), and so on, would have made here */
static unsigned int destroy(struct traffic *t, const struct mode *mode)
{
	unsigned int side = t->side, windows = mode->windows >> side & 1;
	struct verbs v = {
		.context = fake_context(net, side),
		.pd = &fake_pd[side],
		.srq = mode->srq ? fake_srq(net, side) : NULL,
		.qp = calloc(QPS, sizeof(*v.qp)),
		.qps = QPS,
	};
	unsigned int i, channels = 0;

	if (!v.qp)
		exit(1);
	memcpy(v.qp, fake_qps(net, side), QPS * sizeof(*v.qp));
	for (i = 0; i < 2; i++)
		v.cq[i] = fake_cqs(net, side)[i % mode->cqs];
	if (mode->how)
		channels = mode->how & EVENTS_SHARED ? 1 : mode->cqs;
	for (i = 0; i < channels; i++)
		v.channel[i] = fake_channel(net, side, i);
	verbs_destroy(&v, t, 60);
	return 2 + !!mode->srq + QPS * (1 + windows) + mode->cqs + channels +
	       REGIONS;
}

static void end_side(struct traffic *t)
{
	traffic_free(t);
	memory_free(&t->memory);
}

static void introduce(struct traffic *a, const struct traffic *b)
{
	unsigned int k;

	for (k = 0; k < REGIONS; k++)
		a->remote.addr[k] = (uintptr_t)b->memory.region[k].base;
}

static unsigned int turn(struct traffic *t)
{
	static unsigned int count;
	unsigned int n;

	/* the NIC of who sleeps works by itself, and not all the time */
	if (t->events.how && !(++count % 8))
		fake_work(net);
	n = traffic_poll(t);
	async_poll(t);
	n += traffic_post(t, false);
	if (!n && t->events.how & EVENTS_BLOCK)
		events_sleep(&t->events, 1);
	if (!traffic_stopping(t) &&
	    (t->qp[0].next >= ENOUGH || traffic_peer_stopped(t)))
		traffic_stop(t);
	return n;
}

/* How many of so many rounds had something to do. */
static unsigned int turns(struct traffic t[2], unsigned int n)
{
	unsigned int busy = 0;

	while (n--)
		busy += turn(&t[0]) + turn(&t[1]) > 0;
	return busy;
}

static bool both_rest(struct traffic t[2])
{
	return traffic_rests(&t[0]) && traffic_rests(&t[1]);
}

static bool either_rests(struct traffic t[2])
{
	return traffic_rests(&t[0]) || traffic_rests(&t[1]);
}

/*
 * Where one side rests both are quiet soon, and both know that, and when it is
 * over. On one QP alone that is not yet so.
 */
static bool rest(struct traffic t[2])
{
	uint64_t next;

	if (!turns(t, 20) || either_rests(t))
		return false;
	t[0].qp[1].peer_rests = true;
	if (either_rests(t))
		return false;
	traffic_rest(&t[1], true);
	turns(t, PATIENCE);
	next = t[0].qp[0].next;
	if (turns(t, PATIENCE) || !both_rest(t))
		return false;
	traffic_rest(&t[1], false);
	turns(t, 50);
	return !either_rests(t) && t[0].qp[0].next > next;
}

static void try_stale_keys(struct traffic t[2])
{
	unsigned int n, side;

	for (side = 0; side < 2; side++)
		stale_try(&t[side]);
	for (n = 0; n < 2 * PATIENCE; n++) {
		fake_work(net);
		if (stale_refused(&t[n % 2]) && stale_refused(&t[!(n % 2)]))
			return;
	}
	violation(&t[0].verdict, "no answer to READs by old keys");
}

/* Returns when all is over, or when nothing has happened for long. */
static void run(struct traffic t[2])
{
	unsigned int still = 0, side;

	while (still < PATIENCE && !verdict_fatal(&t[0].verdict) &&
	       !verdict_fatal(&t[1].verdict)) {
		still = turn(&t[0]) + turn(&t[1]) ? 0 : still + 1;
		if (traffic_drained(&t[0]) && traffic_drained(&t[1]))
			break;
	}
	fake_finish(net);
	for (side = 0; side < 2; side++) {
		async_settle(&t[side], 0);
		if (!traffic_drained(&t[side]))
			traffic_explain_stuck(&t[side]);
		else
			traffic_check_end(&t[side]);
		events_end(&t[side], 0);
	}
	if (!t[0].verdict.count && !t[1].verdict.count)
		try_stale_keys(t);
}

/* What was noticed: on one side the first violation has to be the right one. */
static const char *noticed(struct traffic t[2], const char *expected)
{
	unsigned int side;

	for (side = 0; side < 2; side++)
		if (t[side].verdict.count &&
		    strstr(t[side].verdict.text[0], expected))
			return t[side].verdict.text[0];
	return NULL;
}

/*
 * Who offers windows has bound each QP's several times, and has seen as many SENDs
 * with invalidate as the other has sent, if there can be any.
 */
static bool windows_count(struct traffic t[2], unsigned int owner,
			  const struct mode *mode)
{
	bool offers = mode->windows >> owner & 1;
	uint64_t by_send, by_word, bound;
	const struct traffic_qp *q;
	unsigned int i;

	for (i = 0; i < QPS; i++) {
		q = &t[owner].qp[i];
		bound = q->count[OP_BIND];
		by_send = q->mw.invalidated;
		by_word = q->count[OP_LOCAL_INV];
		if (by_send != t[!owner].qp[i].count[OP_SEND_INV] ||
		    (by_send > 1) != (offers && !mode->without) ||
		    (by_word > 1) != offers || bound < by_send + by_word ||
		    bound > by_send + by_word + 1)
			return false;
	}
	return true;
}

/* Old keys of the other side's windows, if there are any, have been refused. */
static bool stale_counts(const struct traffic *t, const struct mode *mode)
{
	return !t->stale_refused == !(mode->windows >> !t->side & 1);
}

/* Events were there, all are acknowledged, and limits were armed anew. */
static bool counts(struct traffic t[2], const struct mode *mode)
{
	uint64_t read, acked;
	unsigned int side;

	for (side = 0; side < 2; side++) {
		events_count(&t[side].events, &read, &acked);
		if (!read != !mode->how || read != acked)
			return false;
		if (mode->srq && t[side].srq.events < 2)
			return false;
		if (!windows_count(t, side, mode) ||
		    !stale_counts(&t[side], mode))
			return false;
	}
	return !fake_unacknowledged(net);
}

static bool judge(struct traffic t[2], enum fault fault,
		  const struct mode *mode)
{
	uint64_t n = t[0].verdict.count + t[1].verdict.count;
	const char *seen = fault ? noticed(t, faults[fault].expected) : NULL;
	const char *text = t[!t[0].verdict.count].verdict.text[0];
	bool ok = fault ? !!seen : !n;

	if (fault && !fake_made_mistake(net)) {
		text = "the mistake was never made";
		ok = false;
	} else if (!fault && !n && !counts(t, mode)) {
		text = "events or binds are missing, or not acknowledged";
		ok = false;
	}
	printf("%-4s %-28s %s\n", ok ? "ok" : "FAIL",
	       fault ? faults[fault].name : mode->name,
	       seen	  ? seen
	       : n || !ok ? text
			  : "");
	return ok;
}

static bool test(enum fault fault, const struct mode *mode, bool rests)
{
	const struct fake_setup setup = {
		.qps = QPS,
		.cqs = mode->cqs,
		.shared = mode->how & EVENTS_SHARED,
		.srq = mode->srq * shape.window,
		.slow = mode->how,
	};
	unsigned int after = faults[fault].after, side;
	unsigned int objects;
	static struct traffic t[2];
	bool ok;

	net = fake_net_new(&setup, fault, after ? after : AFTER);
	for (side = 0; side < 2; side++)
		start_side(&t[side], side, mode);
	introduce(&t[0], &t[1]);
	introduce(&t[1], &t[0]);
	for (side = 0; side < 2; side++)
		fake_set_shared(net, side,
				t[side].remote.addr[REGION_CELLS] + OFF_SHARED);
	ok = !rests || rest(t);
	if (!ok)
		printf("FAIL rest\n");
	run(t);
	objects = destroy(&t[0], mode) + destroy(&t[1], mode);
	if (fake_destroyed(net) != objects) {
		printf("FAIL %u of %u objects destroyed\n", fake_destroyed(net),
		       objects);
		ok = false;
	}
	ok &= judge(t, fault, mode);
	end_side(&t[0]);
	end_side(&t[1]);
	fake_net_free(net);
	return ok;
}

static const struct mode *mode_of(const struct again *a)
{
	unsigned int i;

	for (i = 0; i < mode_count; i++)
		if (!strcmp(modes[i].name, a->mode))
			return &modes[i];
	fprintf(stderr, "there is no mode '%s'\n", a->mode);
	exit(1);
}

int main(void)
{
	unsigned int fault, i, failed = 0;

	for (i = 0; i < mode_count; i++)
		failed += !test(FAULT_NONE, &modes[i],
				!(modes[i].how & EVENTS_BLOCK));
	for (fault = FAULT_NONE; fault < FAULTS; fault++)
		failed +=
			!test(fault,
			      faults[fault].mode ? faults[fault].mode : &plain,
			      false);
	for (i = 0; i < again_count; i++)
		failed += !test(again[i].fault, mode_of(&again[i]), false);
	printf("%u of %u failed\n", failed, FAULTS + mode_count + again_count);
	return failed ? 1 : 0;
}
