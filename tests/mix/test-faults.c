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

static const struct {
	const char *name, *expected;
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
};

static const struct shape shape = {
	.seed = 7,
	.qps = QPS,
	.window = 16,
	.max = 9000,
	.mtu = 1024,
};

static struct ibv_mr fake_mr;

static void start_side(struct traffic *t, struct fake_net *net,
		       unsigned int side)
{
	unsigned int k;

	memset(t, 0, sizeof(*t));
	t->shape = shape;
	t->side = side;
	t->max_inline = 64;
	t->cqs = 2;
	t->cq[0] = fake_cq(net, side, false);
	t->cq[1] = fake_cq(net, side, true);
	if (memory_alloc(&t->memory, &t->shape, side, PAGES_DEFAULT))
		exit(1);
	for (k = 0; k < REGIONS; k++)
		t->memory.region[k].mr = &fake_mr;
	if (traffic_init(t, fake_qps(net, side)) || traffic_post_receives(t))
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
	unsigned int n = traffic_poll(t);

	n += traffic_post(t, false);
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
static void run(struct traffic t[2], struct fake_net *net)
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
		if (!traffic_drained(&t[side]))
			traffic_explain_stuck(&t[side]);
		else
			traffic_check_end(&t[side]);
	}
}

static bool noticed(struct traffic t[2], const char *expected)
{
	unsigned int side;

	/* the first violation has to be the right one */
	for (side = 0; side < 2; side++)
		if (t[side].verdict.count &&
		    strstr(t[side].verdict.text[0], expected))
			return true;
	return false;
}

static bool judge(struct traffic t[2], const struct fake_net *net,
		  enum fault fault)
{
	uint64_t n = t[0].verdict.count + t[1].verdict.count;
	const char *name = fault ? faults[fault].name : "no mistake";
	const char *text = t[!t[0].verdict.count].verdict.text[0];
	bool ok = fault ? noticed(t, faults[fault].expected) : !n;

	if (fault && !fake_made_mistake(net)) {
		text = "the mistake was never made";
		ok = false;
	}
	printf("%-4s %-28s %s\n", ok ? "ok" : "FAIL", name, n ? text : "");
	return ok;
}

static bool test(enum fault fault, bool rests)
{
	static struct traffic t[2];
	struct fake_net *net = fake_net_new(QPS, fault, AFTER);
	unsigned int side;
	bool ok;

	for (side = 0; side < 2; side++)
		start_side(&t[side], net, side);
	introduce(&t[0], &t[1]);
	introduce(&t[1], &t[0]);
	for (side = 0; side < 2; side++)
		fake_set_shared(net, side,
				t[side].remote.addr[REGION_CELLS] + OFF_SHARED);
	ok = !rests || rest(t);
	if (!ok)
		printf("FAIL rest\n");
	run(t, net);
	ok &= judge(t, net, fault);
	end_side(&t[0]);
	end_side(&t[1]);
	fake_net_free(net);
	return ok;
}

int main(void)
{
	unsigned int fault, failed = !test(FAULT_NONE, true);

	for (fault = FAULT_NONE; fault < FAULTS; fault++)
		failed += !test(fault, false);
	printf("%u of %u failed\n", failed, FAULTS + 1);
	return failed ? 1 : 0;
}
