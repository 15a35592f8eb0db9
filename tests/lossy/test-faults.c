// SPDX-License-Identifier: GPL-2.0
/*
 * The checks of lossy_mix are awake: over a NIC that loses or cuts messages the traffic
 * passes, and each mistake that rc_mix's NIC can make with them is seen and named.
 */
#include "check.h"
#include "fakeparts.h"
#include "lossy.h"
#include "pattern.h"

#define LANES 3
#define AFTER 2000  /* operations before the mistake */
#define ENOUGH 1500 /* messages of each lane */
#define CUTS 20

enum {
	OWN = 1,
	SHARED = 2,
	UD = 4,
	UD_SHARED = 8,
	UC = OWN | SHARED,
	ALL = UC | UD | UD_SHARED,
};

enum how {
	BEFORE,
	LATE,	 /* the mistake is made with the last operation */
	CUT,	 /* messages are cut */
	GARBAGE, /* ... and what is left of them is not what was sent */
	WHOLE,	 /* ... of a WRITE all has come but its completion */
	FORGETS, /* no receive is flushed */
};

static const struct test {
	enum fault fault;
	unsigned int modes;
	const char *expected; /* NULL: it passes */
	enum how how;
} tests[] = {
	{ FAULT_NONE, ALL, NULL, BEFORE },
	{ FAULT_SEND_LOST, ALL, NULL, BEFORE },
	{ FAULT_NONE, UC, NULL, CUT },
	{ FAULT_NONE, OWN, "what lies behind it", GARBAGE },
	{ FAULT_NONE, UC, "is missing lies", WHOLE },
	{ FAULT_RECV_BEYOND, ALL, "what lies behind it", BEFORE },
	{ FAULT_WRITE_BEYOND, UC, "what lies behind it", BEFORE },
	{ FAULT_SEND_BYTE, ALL, "a message says", BEFORE },
	{ FAULT_WRITE_BYTE, UC, "its content", BEFORE },
	{ FAULT_SEND_TWICE, OWN | UD, "that it has come before", BEFORE },
	{ FAULT_SQ_TWICE, ALL, "completion of send", BEFORE },
	{ FAULT_SQ_LOST, ALL, "completion of send", BEFORE },
	{ FAULT_SQ_LOST, ALL, "send completions missing: 1 of", LATE },
	{ FAULT_SQ_SWAPPED, ALL, "completion of send", BEFORE },
	{ FAULT_SQ_SWAPPED, ALL, "send completions missing: 1 of", LATE },
	{ FAULT_SQ_OPCODE, ALL, "wc.opcode", BEFORE },
	{ FAULT_SQ_QPN, ALL, "completion of", BEFORE },
	{ FAULT_SQ_STATUS, ALL, "transport retry", BEFORE },
	{ FAULT_SQ_WR_ID, ALL, "completion of send", BEFORE },
	{ FAULT_RQ_TWICE, ALL, "which is not posted there", BEFORE },
	{ FAULT_RQ_LOST, ALL, "turn it is not", BEFORE },
	{ FAULT_RQ_LOST, OWN | UD, "turn it is not", LATE },
	{ FAULT_NONE, OWN | UD, "receive completions missing: 64 of", FORGETS },
	{ FAULT_RQ_SWAPPED, ALL, "turn it is not", BEFORE },
	{ FAULT_RQ_OPCODE, ALL, "a message says", BEFORE },
	{ FAULT_RQ_QPN, OWN | UD, "completion of", BEFORE },
	{ FAULT_RQ_LEN, ALL, "how much has come", BEFORE },
	{ FAULT_RQ_IMM, UC, "a message says", BEFORE },
	{ FAULT_RQ_IMM, UD | UD_SHARED, "its immediate data", BEFORE },
	{ FAULT_RQ_NO_IMM, ALL, "its immediate data", BEFORE },
	{ FAULT_SRQ_TWICE, SHARED | UD_SHARED, "not posted there", BEFORE },
	{ FAULT_SRQ_SKIPPED, SHARED | UD_SHARED, "turn it is not", BEFORE },
	{ FAULT_SRQ_MANY, SHARED | UD_SHARED, "turn it is not", BEFORE },
	{ FAULT_SRQ_WR_ID, SHARED | UD_SHARED, "not posted there", BEFORE },
	{ FAULT_SRQ_QPN, SHARED | UD_SHARED, "a completion of QP", BEFORE },
};

static struct ibv_mr fake_mr;
static struct fake_net *net;
static double tick, clock_now;

double now(void)
{
	return clock_now += tick;
}

static void start_side(struct lossy *l, unsigned int side, unsigned int mode)
{
	*l = (struct lossy){
		.verdict = VERDICT_INIT,
		.server = side,
		.ud = mode & (UD | UD_SHARED),
		.lanes = LANES,
		.seed = 7,
		.cq = fake_cqs(net, side)[0],
		.mr = &fake_mr,
	};
	if (mode & (SHARED | UD_SHARED))
		l->srq = fake_srq(net, side);
	lanes_alloc(l);
	for (unsigned int i = 0; i < LANES; i++) {
		struct lane *lane = &l->lane[i];

		lane->qp = fake_qps(net, side)[i];
		lane->qpn = lane->qp->qp_num;
		lane->peer_qpn = fake_qps(net, !side)[i]->qp_num;
		lane->peer.raw[10] = lane->peer.raw[11] = 0xff;
		/* checks go on after something was lost */
		lane->lost = 1;
	}
	for (unsigned int slot = 0; slot < LANES * RECEIVES; slot++)
		lane_receive(l, slot);
}

/* What is under way; and then ops are numbers of what has been done */
static unsigned int waiting(void)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < 2 * LANES; i++) {
		struct fake_qp *q = &net->qp[i % 2][i / 2];

		n += q->sq_tail - q->sq_head;
	}
	return n;
}

/*
 * The next message of @lane to @peer is cut behind its first packet; nothing else is
 * under way. True if it was longer.
 */
static bool cut(struct lossy *l, unsigned int i, struct lossy *to, enum how how)
{
	struct lane *lane = &l->lane[i], *peer = &to->lane[i];
	struct fake_qp *q = (struct fake_qp *)peer->qp;
	uint64_t n = lane->next, key = key_of(lane->key_out, n);
	struct header h = {
		.seq = n,
		.ack = lane->expected,
		.bytes =
			(uint32_t)(sizeof(h) + key % (MOST_UC - sizeof(h) + 1)),
		.kind = (uint32_t)(mix64(key) % KINDS),
	};
	char *at = peer->slots + n % WINDOW * SLOT;
	uint32_t bytes = how == WHOLE ? h.bytes : PATH_MTU;

	if (h.bytes <= PATH_MTU || n - lane->answered >= WINDOW)
		return false;
	if (h.kind == WRITE_IMM) {
		if (how == GARBAGE)
			return false;
	} else if (to->srq || how == WHOLE) {
		return false;
	} else {
		at = (char *)(uintptr_t)q->rq[q->rq_head % DEPTH].sge[0].addr;
	}
	memcpy(at, &h, sizeof(h));
	pattern_fill(at + sizeof(h), key, 0, bytes - sizeof(h));
	if (how == GARBAGE)
		memset(at + sizeof(h), 0x11, PATH_MTU - sizeof(h));
	lane->next = ++lane->done;
	return true;
}

static void turns(struct lossy l[2], bool sends)
{
	unsigned int n, rest = 0;

	while (rest < 100) {
		n = messages_poll(&l[0]) + messages_poll(&l[1]);
		rest = n ? 0 : rest + 1;
		if (verdict_fatal(&l[0].verdict) ||
		    verdict_fatal(&l[1].verdict))
			return;
		for (unsigned int i = 0; i < 2 * LANES && sends; i++)
			messages_send(&l[i % 2], &l[i % 2].lane[i / 2]);
		if (sends && l[0].lane[0].next >= ENOUGH)
			return;
	}
}

/* Ends when that many have been cut, and what came behind them was looked at. */
static unsigned int cut_some(struct lossy l[2], enum how how)
{
	unsigned int cuts = 0;

	for (unsigned int i = 0; i < 2000 && cuts < CUTS; i++) {
		unsigned int lane = i % LANES, side = i / LANES % 2;

		turns(l, false);
		cuts += cut(&l[side], lane, &l[!side], how);
		for (unsigned int k = 0; k < 2 * LANES; k++)
			messages_send(&l[k % 2], &l[k % 2].lane[k / 2]);
	}
	return cuts;
}

static void end(struct lossy l[2], const struct test *t)
{
	if (t->how == LATE)
		net->after = net->ops + waiting();
	else
		turns(l, false);
	for (unsigned int i = 0; i < 2 * LANES && t->how == FORGETS; i++) {
		struct fake_qp *q = &net->qp[i % 2][i / 2];

		q->rq_head = q->rq_tail;
	}
	tick = 0.05;
	lossy_end(&l[0]);
	lossy_end(&l[1]);
	tick = 1e-5;
}

static void judge(struct lossy l[2], const struct test *t, unsigned int mode,
		  unsigned int cuts)
{
	uint64_t lost = 0, seen = 0;
	const char *text = "";
	bool ok;

	for (unsigned int i = 0; i < 2 * LANES; i++) {
		lost += l[i % 2].lane[i / 2].lost - 1;
		seen += l[i % 2].lane[i / 2].cut;
	}
	for (unsigned int side = 0; side < 2; side++)
		if (l[side].verdict.count)
			text = l[side].verdict.text[0];
	ok = t->expected ? strstr(text, t->expected) != NULL : !*text;
	ok &= t->fault == FAULT_NONE || fake_made_mistake(net);
	if (!t->expected)
		ok &= lost == (t->fault == FAULT_SEND_LOST) + cuts;
	if (t->how == CUT) /* SENDs only if what follows is shorter */
		ok &= cuts == CUTS && seen <= cuts && seen > cuts / 4;
	printf("%-4s fault %u, how %u, mode %u: %s\n", ok ? "ok" : "FAIL",
	       t->fault, t->how, mode, text);
	CHECK(ok, "%ju lost, %u cut, %ju seen", (uintmax_t)lost, cuts,
	      (uintmax_t)seen);
}

static void try(const struct test *t, unsigned int mode)
{
	const struct fake_setup setup = {
		.qps = LANES,
		.cqs = 1,
		.srq = mode & (SHARED | UD_SHARED) ? LANES * RECEIVES : 0,
		.ud = mode & (UD | UD_SHARED),
		.sig_all = true,
		.shorter = true,
	};
	unsigned int cuts = 0;
	struct lossy l[2];

	net = fake_net_new(&setup, t->fault,
			   t->how == LATE ? UINT32_MAX : AFTER);
	for (unsigned int side = 0; side < 2; side++)
		start_side(&l[side], side, mode);
	for (unsigned int i = 0; i < 2 * LANES; i++) {
		struct lane *lane = &l[i % 2].lane[i / 2];

		lane->peer_addr = (uintptr_t)l[!(i % 2)].lane[i / 2].slots;
	}
	turns(l, true);
	if (t->how == CUT || t->how == GARBAGE || t->how == WHOLE)
		cuts = cut_some(l, t->how);
	end(l, t);
	judge(l, t, mode, cuts);
	lanes_free(&l[0]);
	lanes_free(&l[1]);
	fake_net_free(net);
}

int main(void)
{
	tick = 1e-5;
	for (unsigned int i = 0; i < sizeof(tests) / sizeof(*tests); i++)
		for (unsigned int mode = 1; mode < ALL; mode *= 2)
			if (tests[i].modes & mode)
				try(&tests[i], mode);
	return check_result();
}
