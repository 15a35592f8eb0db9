// SPDX-License-Identifier: GPL-2.0
/*
 * The checks are awake: traffic over a perfect NIC passes, and each mistake
 * a NIC can make once is noticed and named.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fakenic.h"
#include "traffic.h"

#define QPS 3
#define AFTER 500     /* operations before the mistake */
#define ENOUGH 400    /* operations per QP and side */
#define PATIENCE 1000 /* rounds in which nothing happens */

/* How the sides run, and a word for it. */
struct mode {
	const char *name;
	unsigned int how; /* EVENTS_... */
	unsigned int cqs, srq;
};

enum {
	ON = EVENTS_ON,
	SOLICITED = EVENTS_ON | EVENTS_SOLICITED,
	BLOCK = EVENTS_ON | EVENTS_BLOCK,
	SHARED = EVENTS_ON | EVENTS_SHARED,
};

static const struct mode plain = { "plain", 0, 2, 0 },
			 sleeps = { "events", ON, 2, 0 },
			 solicited = { "solicited", SOLICITED, 2, 0 },
			 shares = { "SRQ", 0, 2, 2 },
			 shares_more = { "SRQ", 0, 2, 3 };

/* Those in which a perfect NIC passes; the last number is the SRQ's QPs. */
static const struct mode modes[] = {
	{ "plain", 0, 1, 0 },
	{ "events", ON, 1, 0 },
	{ "events, 2 CQs", ON, 2, 0 },
	{ "events, shared channel", SHARED, 2, 0 },
	{ "solicited", SOLICITED, 2, 0 },
	{ "solicited, shared channel", SOLICITED | SHARED, 2, 0 },
	{ "block", BLOCK, 1, 0 },
	{ "block, 2 CQs", BLOCK, 2, 0 },
	{ "block, solicited, shared", BLOCK | SOLICITED | SHARED, 2, 0 },
	{ "SRQ of 1", 0, 1, 1 },
	{ "SRQ of 2", 0, 2, 2 },
	{ "SRQ of 3", 0, 2, 3 },
	{ "SRQ of 1, events", ON, 1, 1 },
	{ "SRQ of 3, events, shared", SHARED, 2, 3 },
	{ "SRQ of 3, solicited", SOLICITED, 2, 3 },
	{ "SRQ of 2, block", BLOCK, 2, 2 },
};

static const struct {
	const char *name, *expected;
	const struct mode *mode; /* NULL: plain */
	unsigned int after;
} faults[FAULTS] = {
	[FAULT_SEND_BYTE] = { "SEND, wrong byte", "expected 0x" },
	[FAULT_WRITE_BYTE] = { "WRITE, wrong byte", "expected 0x" },
	[FAULT_READ_BYTE] = { "READ, wrong byte", "(read" },
	[FAULT_WRITE_BEYOND] = { "WRITE beyond its end", "of its slot" },
	[FAULT_RECV_BEYOND] = { "receive beyond its piece", "lies outside" },
	[FAULT_READ_BEYOND] = { "READ beyond its piece", "lies outside" },
	[FAULT_WRITE_LOST] = { "WRITE lost", "expected 0x" },
	[FAULT_WRITE_AGAIN] = { "old WRITE repeated", "expected 0x" },
	[FAULT_INLINE_LATE] = { "inline data fetched late", "is 0xee" },
	[FAULT_FENCE] = { "fence ignored", "forwarded" },
	[FAULT_SQ_TWICE] = { "SQ completion twice", "completed again" },
	[FAULT_SQ_LOST] = { "SQ completion lost", "lost or overtaken" },
	[FAULT_SQ_SWAPPED] = { "SQ completions swapped", "overtaken" },
	[FAULT_SQ_UNSIGNALED] = { "completion unasked for", "unsignaled" },
	[FAULT_RQ_TWICE] = { "RQ completion twice", "out of order" },
	[FAULT_RQ_LOST] = { "RQ completion lost", "out of order" },
	[FAULT_RQ_SWAPPED] = { "RQ completions swapped", "out of order" },
	[FAULT_SEND_LOST] = { "SEND lost", "expected" },
	[FAULT_SEND_TWICE] = { "SEND arrives twice", "expected" },
	[FAULT_SQ_OPCODE] = { "SQ wc.opcode", "wc.opcode" },
	[FAULT_SQ_QPN] = { "SQ wc.qp_num", "wc.qp_num" },
	[FAULT_SQ_LEN] = { "SQ wc.byte_len", "wc.byte_len" },
	[FAULT_SQ_STATUS] = { "SQ wc.status", "transport retry" },
	[FAULT_SQ_WR_ID] = { "SQ wc.wr_id", "never posted" },
	[FAULT_RQ_OPCODE] = { "RQ wc.opcode", "wc.opcode" },
	[FAULT_RQ_QPN] = { "RQ wc.qp_num", "wc.qp_num" },
	[FAULT_RQ_LEN] = { "RQ wc.byte_len", "wc.byte_len" },
	[FAULT_RQ_IMM] = { "wc.imm_data", "imm_data" },
	[FAULT_RQ_NO_IMM] = { "wc.wc_flags", "wc.wc_flags" },
	[FAULT_ADD_LOST] = { "FETCH_ADD lost", "fetch_add): old" },
	[FAULT_ADD_TWICE] = { "FETCH_ADD twice", "fetch_add): old" },
	[FAULT_SHARED_LOST] = { "shared FETCH_ADD lost", "shared" },
	[FAULT_SHARED_TWICE] = { "shared FETCH_ADD twice", "shared counter" },
	[FAULT_SHARED_OLD] = { "shared counter steps back",
			       "shared): old value 0x0" },
	[FAULT_SHARED_EMPTY] = { "atomic without result",
				 "shared): old value 0x5a" },
	[FAULT_SWAP_LOST] = { "CMP_SWAP lost", "cmp_swap): old" },
	[FAULT_EVENT_LOST] = { "event lost", "lost event: the", &sleeps },
	[FAULT_EVENT_TWICE] = { "event twice", "not armed since", &sleeps },
	[FAULT_EVENT_UNARMED] = { "event not asked for", "not armed since",
				  &sleeps },
	[FAULT_EVENT_UNSOLICITED] = { "event not solicited", "that solicits",
				      &solicited },
	[FAULT_EVENT_CQ] = { "event of another side", "no CQ of ours",
			     &sleeps },
	[FAULT_EVENT_CONTEXT] = { "event with another context", "cq_context",
				  &sleeps },
	[FAULT_EVENT_CHANNEL] = { "event on another's channel", "another's",
				  &sleeps },
	[FAULT_EVENT_BLOCKS] = { "channel fd blocks", "O_NONBLOCK", &sleeps },
	[FAULT_ASYNC_EVENT] = { "async event", "async event: port", &sleeps },
	[FAULT_ASYNC_BLOCKS] = { "async_fd blocks", "async_fd", &shares },
	[FAULT_SRQ_TWICE] = { "SRQ element twice", "completed again", &shares },
	[FAULT_SRQ_SKIPPED] = { "SRQ element skipped", "skipped", &shares },
	[FAULT_SRQ_LEFT] = { "SRQ element left", "never used", &shares, 2500 },
	[FAULT_SRQ_MANY] = { "SRQ elements skipped", "too many", &shares },
	[FAULT_SRQ_SWAPPED] = { "SRQ elements swapped", "out of order", &shares,
				600 },
	[FAULT_SRQ_WR_ID] = { "SRQ wc.wr_id", "never posted", &shares },
	[FAULT_SRQ_QPN] = { "SRQ wc.qp_num", "no QP of ours", &shares },
	[FAULT_SRQ_QPN_OTHER] = { "SRQ wc.qp_num of another", "expected",
				  &shares },
	[FAULT_LIMIT_LOST] = { "SRQ limit event lost", "lost SRQ limit",
			       &shares },
	[FAULT_LIMIT_TWICE] = { "SRQ limit event twice", "not armed since",
				&shares },
	[FAULT_LIMIT_UNARMED] = { "SRQ limit event unasked", "not armed since",
				  &shares },
	[FAULT_LIMIT_EARLY] = { "SRQ limit event early", "cannot have been",
				&shares_more, 1 },
	[FAULT_LIMIT_SRQ] = { "SRQ limit event of another", "no SRQ of ours",
			      &shares },
	[FAULT_LIMIT_QUERY] = { "ibv_query_srq", "srq_limit is", &shares },
	[FAULT_SRQ_SIZE] = { "ibv_query_srq, max_wr", "max_wr is", &shares },
};

/* Mistakes that another part of the checks sees in another mode. */
static const struct {
	enum fault fault;
	unsigned int mode;
} again[] = {
	{ FAULT_EVENT_LOST, 4 },   { FAULT_EVENT_LOST, 8 },
	{ FAULT_EVENT_LOST, 1 },   { FAULT_EVENT_CONTEXT, 7 },
	{ FAULT_SRQ_SKIPPED, 13 }, { FAULT_LIMIT_LOST, 14 },
	{ FAULT_LIMIT_TWICE, 12 },
};

static const struct shape shape = {
	.seed = 7,
	.qps = QPS,
	.window = 16,
	.max = 9000,
	.mtu = 1024,
};

static struct ibv_mr fake_mr;
static struct fake_net *net; /* between the two sides */

static void start_side(struct traffic *t, unsigned int side,
		       const struct mode *mode)
{
	bool solicits = mode->how & EVENTS_SOLICITED;
	unsigned int k;

	memset(t, 0, sizeof(*t));
	t->shape = shape;
	t->side = side;
	t->max_inline = 64;
	t->solicit = solicits;
	t->cqs = mode->cqs;
	memcpy(t->cq, fake_cqs(net, side), sizeof(t->cq));
	if (memory_alloc(&t->memory, &t->shape, side, PAGES_DEFAULT))
		exit(1);
	for (k = 0; k < REGIONS; k++)
		t->memory.region[k].mr = &fake_mr;
	if (traffic_init(t, fake_qps(net, side)) ||
	    (mode->srq &&
	     srq_init(&t->srq, fake_srq(net, side), mode->srq * shape.window,
		      QPS, !solicits, &t->verdict)) ||
	    events_start(t, mode->how, fake_cqs(net, side)) ||
	    (mode != &plain && async_start(t, fake_context(net, side))) ||
	    traffic_post_receives(t))
		exit(1);
}

static void end_side(struct traffic *t)
{
	unsigned int k;

	for (k = 0; k < REGIONS; k++)
		t->memory.region[k].mr = NULL;
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
	turns(t, 20);
	return !either_rests(t) && t[0].qp[0].next > next;
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
		text = "events are missing, or not acknowledged";
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
	ok &= judge(t, fault, mode);
	end_side(&t[0]);
	end_side(&t[1]);
	fake_net_free(net);
	return ok;
}

int main(void)
{
	const unsigned int some = sizeof(modes) / sizeof(*modes);
	const unsigned int more = sizeof(again) / sizeof(*again);
	unsigned int fault, i, failed = 0;

	for (i = 0; i < some; i++)
		failed += !test(FAULT_NONE, &modes[i],
				!(modes[i].how & EVENTS_BLOCK));
	for (fault = FAULT_NONE; fault < FAULTS; fault++)
		failed +=
			!test(fault,
			      faults[fault].mode ? faults[fault].mode : &plain,
			      false);
	for (i = 0; i < more; i++)
		failed += !test(again[i].fault, &modes[again[i].mode], false);
	printf("%u of %u failed\n", failed, FAULTS + some + more);
	return failed ? 1 : 0;
}
