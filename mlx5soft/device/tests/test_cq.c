// SPDX-License-Identifier: GPL-2.0
/* Completion queues: owner bits, arming, overrun, moderation, resizing */
#include "commands/cmd.h"
#include "cq.h"
#include "eq.h"
#include "nic.h"
#include "rig.h"

#define VECTOR 5

static struct rig *r;
static struct rig_ring eq, async, cq;

static void setup(uint8_t log_cq)
{
	r = rig_up();
	async = rig_eq(r, 4, 1, 1ULL << EVENT_CQ_ERROR);
	eq = rig_eq(r, 4, VECTOR, 0);
	cq = rig_cq(r, log_cq, eq.id);
	rig_eq_db(r, r->uar, &eq, true);
}

static bool post(enum cqe_op op, bool solicited)
{
	struct cq *dev = (struct cq *)obj_find(r->nic, OBJ_CQ, cq.id);
	uint8_t cqe[64] = { 0 };

	put_be32(cqe + 44, dev->pi);
	return cq_post(r->nic, dev, cqe, op, solicited);
}

static void arm(bool solicited)
{
	rig_arm_cq(r, r->uar, &cq, solicited);
}

/* how many completion events there are, all about our CQ */
static unsigned int events(void)
{
	unsigned int count = 0;
	uint8_t eqe[64];

	while (rig_eqe(r, &eq, eqe)) {
		CHECK(eqe[1] == EVENT_COMP, "type %u", eqe[1]);
		CHECK(get_be32(eqe + 56) == cq.id, "CQ %u", get_be32(eqe + 56));
		count++;
	}
	rig_eq_db(r, r->uar, &eq, false);
	return count;
}

/* QUERY_CQ; returns the status */
static uint8_t query(void)
{
	rig_begin_id(r, MLX5_CMD_OP_QUERY_CQ, cq.id);
	r->out_len = BYTES(query_cq_out);
	CHECK(!rig_run(r), "%s", r->log);
	return GET(query_cq_out, r->out, cq_context.status);
}

static void test_arming(void)
{
	uint8_t cqe[64];

	setup(4);
	CHECK(post(CQE_REQ, false) && !events(), "not armed");
	/* what came before the arming, and was not seen, is told at once */
	arm(false);
	CHECK(events() == 1, "armed late");
	arm(false);
	CHECK(!events(), "a CQE makes one event");
	CHECK(post(CQE_REQ, false) && events() == 1, "the next another");
	CHECK(post(CQE_REQ, false) && !events(), "once for each arming");
	while (rig_cqe(r, &cq, cqe))
		;
	arm(false);
	CHECK(!events(), "all was seen");
	CHECK(post(CQE_REQ, false) && events() == 1, "armed");
	CHECK(post(CQE_REQ, false) && !events(), "once");
	rig_cqe(r, &cq, cqe);
	arm(false); /* one of two was seen */
	CHECK(events() == 1, "one more");
	/* a consumer in front of the producer, or too far behind it */
	while (rig_cqe(r, &cq, cqe))
		;
	CHECK(post(CQE_REQ, false) && !events(), "not armed");
	cq.ci += 3;
	arm(false);
	CHECK(!events(), "in front of the producer");
	cq.ci -= 3 + 17;
	arm(false);
	cq.ci += 17;
	CHECK(events() == 1, "far behind");
	/* arming twice is arming once */
	while (rig_cqe(r, &cq, cqe))
		;
	arm(false);
	arm(false);
	CHECK(post(CQE_REQ, false) && post(CQE_REQ, false), "post");
	CHECK(events() == 1, "once");
	rig_stop(r);
}

static void test_solicited(void)
{
	uint8_t cqe[64];

	setup(4);
	arm(true);
	CHECK(post(CQE_RESP_SEND, false) && !events(), "not solicited");
	CHECK(post(CQE_RESP_SEND, true) && events() == 1, "solicited");
	CHECK(post(CQE_RESP_SEND, true) && !events(), "once");
	while (rig_cqe(r, &cq, cqe))
		;
	/* only what is not solicited is waiting */
	CHECK(post(CQE_RESP_SEND, false), "post");
	arm(true);
	CHECK(!events(), "nothing solicited");
	CHECK(post(CQE_RESP_SEND, true) && events() == 1, "solicited");
	/* solicited, then more that is not */
	CHECK(post(CQE_RESP_SEND, true) && post(CQE_RESP_SEND, false), "post");
	arm(true);
	CHECK(events() == 1, "a solicited one was not seen");
	while (rig_cqe(r, &cq, cqe))
		;
	/* errors count, whatever they are */
	arm(true);
	CHECK(post(CQE_REQ_ERR, false) && events() == 1, "send error");
	while (rig_cqe(r, &cq, cqe))
		;
	arm(true);
	CHECK(post(CQE_RESP_ERR, false) && events() == 1, "receive error");
	while (rig_cqe(r, &cq, cqe))
		;
	/* the second arming asks for more than the first */
	arm(true);
	arm(false);
	CHECK(post(CQE_REQ, false) && events() == 1, "any");
	while (rig_cqe(r, &cq, cqe))
		;
	/* ...and one that asks for less takes nothing back */
	arm(false);
	arm(true);
	CHECK(post(CQE_REQ, false) && events() == 1, "still any");
	while (rig_cqe(r, &cq, cqe))
		;
	/* until the event: it is used up then */
	arm(true);
	CHECK(post(CQE_REQ, false) && !events(), "solicited only");
	rig_stop(r);
}

static void test_wraps(void)
{
	struct cq *dev;
	uint8_t cqe[64];
	uint32_t i, ci;

	setup(2);
	dev = (struct cq *)obj_find(r->nic, OBJ_CQ, cq.id);
	for (i = 0; i < 40; i++) {
		CHECK(post(CQE_REQ, i & 1), "%u", i);
		CHECK(rig_cqe(r, &cq, cqe), "%u", i);
		CHECK(get_be32(cqe + 44) == i && cqe[63] >> 4 == CQE_REQ, "%u",
		      i);
		CHECK((cqe[63] & 2) == (i & 1) * 2, "solicited");
		put_be32(rig_mem(r, cq.db), cq.ci);
	}
	/* numbers of 24 bits: as if very much had happened */
	dev->pi = dev->notified_pi = 0xfffffe;
	dev->news = false;
	ci = cq.ci = 0xfffffe;
	put_be32(rig_mem(r, cq.db), ci);
	for (i = 0; i < 4; i++)
		CHECK(post(CQE_REQ, false), "%u", i);
	arm(false);
	CHECK(events() == 1, "over the wrap");
	cq.ci = 2;
	arm(false);
	CHECK(!events(), "all was seen");
	rig_stop(r);
}

/*
 * A consumer that arms once and then polls for a while: however much it takes,
 * up to any distance that numbers of 24 bits can have, what it has not seen
 * when it arms again makes an event.
 */
static void test_polled_between(void)
{
	static const uint32_t polled[] = {
		1, 3, 4, 5, 8, 4096, 0xfffffb, 0xfffffc, 0xfffffd, 0xffffff
	};
	struct cq *dev;
	uint8_t cqe[64];

	for (size_t i = 0; i < N_ELEM(polled); i++) {
		setup(2);
		dev = (struct cq *)obj_find(r->nic, OBJ_CQ, cq.id);
		arm(true);
		CHECK(post(CQE_RESP_SEND, true) && events() == 1, "armed");
		CHECK(rig_cqe(r, &cq, cqe), "one");
		/* the same as so many CQEs, each polled at once */
		CHECK(post(CQE_RESP_SEND, true), "first of them");
		cq.ci = dev->pi = (cq.ci + polled[i]) & 0xffffff;
		dev->solicited_pi = dev->pi;
		put_be32(rig_mem(r, cq.db), cq.ci);
		arm(false);
		CHECK(!events(), "%u polled: all was seen", polled[i]);
		dev->armed = false; /* as if it had not been armed */
		CHECK(post(CQE_RESP_SEND, true) && !events(), "not armed");
		arm(i & 1);
		CHECK(events() == 1, "%u polled: lost", polled[i]);
		arm(i & 1);
		CHECK(!events(), "%u polled: again", polled[i]);
		rig_stop(r);
	}
}

/* A solicited CQE is news while it is in the ring, and never again after that. */
static void test_solicited_before(void)
{
	struct cq *dev;
	uint8_t cqe[64];

	setup(2);
	dev = (struct cq *)obj_find(r->nic, OBJ_CQ, cq.id);
	CHECK(post(CQE_RESP_SEND, true), "solicited");
	for (int i = 0; i < 3; i++)
		CHECK(post(CQE_RESP_SEND, false), "%d", i);
	arm(true);
	CHECK(events() == 1, "it is the oldest in a full ring");
	while (rig_cqe(r, &cq, cqe))
		;
	put_be32(rig_mem(r, cq.db), cq.ci);
	CHECK(post(CQE_RESP_SEND, true) && rig_cqe(r, &cq, cqe), "solicited");
	/* the same as so many others, each polled at once */
	cq.ci = dev->pi = cq.ci + (1 << 23);
	put_be32(rig_mem(r, cq.db), cq.ci);
	CHECK(post(CQE_RESP_SEND, false) && rig_cqe(r, &cq, cqe), "the last");
	arm(true);
	CHECK(!events(), "an event, and nothing that was not seen");
	CHECK(post(CQE_RESP_SEND, true) && events() == 1, "the next one");
	rig_stop(r);
}

static void expect_failed(const char *what)
{
	uint8_t eqe[64];

	CHECK(!post(CQE_REQ, false), "%s", what);
	CHECK(rig_eqe(r, &async, eqe), "%s: no event", what);
	CHECK(eqe[1] == EVENT_CQ_ERROR && get_be32(eqe + 32) == cq.id &&
		      eqe[32 + 11] == 1,
	      "%s: type %u", what, eqe[1]);
	CHECK(query() == 9, "%s: status", what);
	/* it stays so, in silence */
	arm(false);
	CHECK(!post(CQE_REQ, true) && !events(), "%s", what);
	CHECK(!rig_eqe(r, &async, eqe), "%s: an event too many", what);
	CHECK(!rig_run_id(r, MLX5_CMD_OP_DESTROY_CQ, cq.id), "%s", r->log);
}

static void test_overrun(void)
{
	uint8_t cqe[64];

	setup(2);
	for (int i = 0; i < 4; i++)
		CHECK(post(CQE_REQ, false), "%d", i);
	expect_failed("overrun");
	/* room counts as far as the doorbell record says */
	cq = rig_cq(r, 2, eq.id);
	for (int i = 0; i < 4; i++)
		CHECK(post(CQE_REQ, false), "%d", i);
	put_be32(rig_mem(r, cq.db), 1);
	CHECK(post(CQE_REQ, false), "room for one");
	expect_failed("overrun");
	/* who asks for it is overrun in silence */
	rig_cq_in(r, 2, eq.id);
	SET(create_cq_in, r->in, cq_context.oi, 1);
	cq.id = rig_id(r);
	for (int i = 0; i < 20; i++)
		CHECK(post(CQE_REQ, false), "%d", i);
	CHECK(!rig_eqe(r, &async, cqe), "an event");
	rig_stop(r);
}

static void test_cq_memory(void)
{
	setup(2);
	rig_cq_in(r, 2, eq.id);
	SET(create_cq_in, r->in, cq_context.dbr_addr, RIG_NOWHERE);
	cq.id = rig_id(r);
	expect_failed("doorbell record");
	rig_cq_in(r, 2, eq.id);
	SET(create_cq_in, r->in, cq_context.dbr_addr, -8ULL);
	cq.id = rig_id(r);
	expect_failed("doorbell record");
	rig_cq_in(r, 2, eq.id);
	put_be64(r->in + BYTES(create_cq_in), RIG_NOWHERE);
	cq.id = rig_id(r);
	expect_failed("buffer");
	rig_cq_in(r, 2, eq.id);
	put_be64(r->in + BYTES(create_cq_in), -1ULL);
	cq.id = rig_id(r);
	expect_failed("buffer");
	rig_stop(r);
}

/* of 128 bytes, which end with the entry proper */
static void test_big(void)
{
	uint64_t buf;

	setup(2);
	rig_cq_in(r, 7, eq.id);
	SET(create_cq_in, r->in, cq_context.log_cq_size, 6);
	SET(create_cq_in, r->in, cq_context.cqe_sz, 1);
	buf = r->buf;
	cq.id = rig_id(r);
	for (int i = 0; i < 64; i++) {
		CHECK(post(CQE_REQ, false), "%d", i);
		CHECK(rig_mem(r, buf)[128 * i + 63] == 0xf1, "first half");
		CHECK(rig_mem(r, buf)[128 * i + 127] == 0, "second half");
	}
	rig_stop(r);
}

static int moderate(uint32_t fields, uint16_t count, uint16_t period,
		    uint8_t mode)
{
	uint8_t *cqc;

	rig_begin(r, MLX5_CMD_OP_MODIFY_CQ, BYTES(modify_cq_in), 16);
	SET(modify_cq_in, r->in, cqn, cq.id);
	put_be32(r->in + 12, fields);
	cqc = AT(modify_cq_in, r->in, cq_context);
	SET(cqc, cqc, cq_max_count, count);
	SET(cqc, cqc, cq_period, period);
	SET(cqc, cqc, cq_period_mode, mode);
	return rig_run(r);
}

/* The device's clock runs on: until nothing is due any more */
static void wait_for_timer(void)
{
	while (nic_due(r->nic) >= 0)
		nic_tick(r->nic);
}

static void wait_until(uint64_t ns)
{
	while (nic_now() < ns)
		;
}

/*
 * An event comes after so many CQEs, or so long after the last one: of 4095
 * microseconds, which no step in between takes unless the machine stands still;
 * what then is not told in time is told too early, and tried again.
 */
static void test_moderation(void)
{
	struct cq *dev;
	uint64_t before, start; /* the last event; this round */
	unsigned int early;
	bool late;
	uint8_t cqe[64];

	setup(4);
	dev = (struct cq *)obj_find(r->nic, OBJ_CQ, cq.id);
	CHECK(!moderate(3, 4, 4095, 0), "%s", r->log);
	arm(false);
	before = nic_now();
	CHECK(post(CQE_REQ, false) && events() == 1, "the last was long ago");
	do {
		arm(false);
		start = nic_now();
		early = 0;
		for (int i = 0; i < 3; i++) {
			CHECK(post(CQE_REQ, false), "%d", i);
			early += events();
		}
		CHECK(post(CQE_REQ, false), "the fourth");
		CHECK(events() + early == 1, "by count");
		while (rig_cqe(r, &cq, cqe))
			;
		put_be32(rig_mem(r, cq.db), cq.ci);
		late = nic_now() - before > 4095000;
		before = start;
		if (early) /* else what came behind it counts in the next round */
			dev->notified_pi = dev->pi;
	} while (early && late);
	CHECK(!early, "%u too early", early);
	/* by time */
	do {
		arm(false);
		start = nic_now();
		CHECK(post(CQE_REQ, false), "post");
		early = events();
		CHECK(early || nic_due(r->nic) >= 0, "due");
		wait_for_timer();
		CHECK(events() + early == 1, "by time");
		while (rig_cqe(r, &cq, cqe))
			;
		put_be32(rig_mem(r, cq.db), cq.ci);
		late = nic_now() - before > 4095000;
		before = start;
	} while (early && late);
	CHECK(!early, "%u too early", early);
	/* CQEs that are there when it is armed, with an event that just was */
	wait_until(nic_now() + 4096000);
	arm(false);
	CHECK(post(CQE_REQ, false) && events() == 1, "at once");
	CHECK(post(CQE_REQ, false), "post");
	arm(false);
	wait_for_timer();
	CHECK(events() == 1, "armed late");
	/* from the last CQE on: also after a long time */
	CHECK(!moderate(0x13, 4, 4095, 1), "%s", r->log);
	do {
		arm(false);
		start = nic_now();
		CHECK(post(CQE_REQ, false), "post");
		early = events();
	} while (early && nic_now() - start > 4095000);
	CHECK(!early, "at once");
	wait_for_timer();
	CHECK(events() == 1, "after a while");
	/* who arms again and again does not put it off */
	start = nic_now();
	CHECK(post(CQE_REQ, false), "post");
	do {
		wait_until(nic_now() + 1000000);
		arm(false);
		nic_tick(r->nic);
		early = events();
	} while (!early && nic_now() - start < 100000000);
	CHECK(early == 1, "not after %lu us", (nic_now() - start) / 1000);
	/* an arming for solicited ones does not take the event away */
	arm(false);
	CHECK(post(CQE_REQ, false), "post");
	arm(true);
	wait_for_timer();
	CHECK(events() == 1, "armed for less meanwhile");
	/* none: either of both is 0 */
	for (int i = 0; i < 2; i++) {
		CHECK(!moderate(0x13, i ? 0 : 4, i ? 4095 : 0, 1), "%s",
		      r->log);
		arm(false);
		CHECK(post(CQE_REQ, false) && events() == 1, "none: %d", i);
	}
	/* the end of moderation, and of the CQ, while an event is due */
	for (int i = 0; i < 2; i++) {
		CHECK(!moderate(0x13, 100, 4095, 1), "%s", r->log);
		arm(false);
		CHECK(post(CQE_REQ, false), "post");
		if (!i) {
			CHECK(!moderate(3, 0, 0, 0), "%s", r->log);
			CHECK(events() == 1, "not kept any longer");
		}
	}
	query();
	CHECK(GET(query_cq_out, r->out, cq_context.cq_period) == 4095 &&
		      GET(query_cq_out, r->out, cq_context.cq_max_count) == 100,
	      "QUERY_CQ");
	CHECK(moderate(1 << 3, 0, 0, 0) == CMD_BAD_PARAM, "another EQ");
	CHECK(!rig_run_id(r, MLX5_CMD_OP_DESTROY_CQ, cq.id), "%s", r->log);
	wait_for_timer();
	CHECK(!events(), "nothing left");
	rig_stop(r);
}

/* The old ring ends with a CQE that says so, the new one goes on behind it. */
static void test_resize(void)
{
	struct rig_ring old;
	uint8_t cqe[64];
	uint32_t i;

	setup(3);
	for (i = 0; i < 3; i++)
		CHECK(post(CQE_REQ, false), "%u", i);
	old = cq;
	rig_cq_resize_in(r, 1, cq.id);
	CHECK(rig_run(r) == CMD_BAD_RES_STATE, "more than two wait");
	rig_cq_resize_in(r, 4, cq.id);
	rig_mem(r, r->buf)[0] = 0; /* stays as it is */
	CHECK(!rig_run(r), "%s", r->log);
	for (i = 0; i < 3; i++)
		CHECK(rig_cqe(r, &old, cqe) && cqe[63] >> 4 == CQE_REQ, "%u",
		      i);
	CHECK(rig_cqe(r, &old, cqe) && cqe[63] >> 4 == CQE_RESIZE, "end");
	CHECK(!rig_cqe(r, &old, cqe), "nothing behind it");
	cq.buf = r->buf;
	cq.log_size = 4;
	cq.ci = old.ci;
	put_be32(rig_mem(r, cq.db), cq.ci);
	for (i = 0; i < 16; i++)
		CHECK(post(CQE_REQ, false), "room for all: %u", i);
	CHECK(rig_cqe(r, &cq, cqe) && get_be32(cqe + 44) == old.ci, "goes on");
	/* no list, a broken CQ */
	rig_cq_resize_in(r, 5, cq.id);
	r->in_len = BYTES(modify_cq_in);
	CHECK(rig_run(r) == CMD_BAD_PARAM, "no list");
	CHECK(!post(CQE_REQ, false), "overrun");
	rig_cq_resize_in(r, 5, cq.id);
	CHECK(rig_run(r) == CMD_BAD_RES_STATE, "overrun before");
	rig_stop(r);
}

/*
 * The consumer takes its CQEs one place further on. The oldest of them, which is
 * solicited, still makes its event, with the new ring full, too; not if it was
 * seen before.
 */
static void test_resize_solicited(void)
{
	struct cq *dev;
	uint8_t cqe[64];

	for (int others = 0; others < 2; others++) {
		setup(2);
		dev = (struct cq *)obj_find(r->nic, OBJ_CQ, cq.id);
		dev->pi = cq.ci = 0xfffffe; /* its number wraps, too */
		put_be32(rig_mem(r, cq.db), cq.ci);
		CHECK(post(CQE_RESP_SEND, true), "solicited");
		rig_cq_resize_in(r, 1, cq.id);
		CHECK(!rig_run(r), "%s", r->log);
		CHECK(rig_cqe(r, &cq, cqe), "copied"); /* not polled */
		put_be32(rig_mem(r, cq.db), cq.ci);
		for (int i = 0; i < others; i++)
			CHECK(post(CQE_RESP_SEND, false), "%d", i);
		arm(true);
		CHECK(events() == 1, "lost, with %d behind it", others);
		query();
		CHECK(GET(query_cq_out, r->out,
			  cq_context.last_solicit_index) == 0,
		      "QUERY_CQ");
		rig_stop(r);
	}
	setup(2);
	CHECK(post(CQE_RESP_SEND, true) && rig_cqe(r, &cq, cqe), "solicited");
	put_be32(rig_mem(r, cq.db), cq.ci);
	rig_cq_resize_in(r, 1, cq.id);
	CHECK(!rig_run(r), "%s", r->log);
	CHECK(rig_cqe(r, &cq, cqe) && cqe[63] >> 4 == CQE_RESIZE, "end");
	arm(true);
	CHECK(!events(), "seen before");
	rig_stop(r);
}

int main(void)
{
	test_arming();
	test_solicited();
	test_wraps();
	test_polled_between();
	test_solicited_before();
	test_overrun();
	test_cq_memory();
	test_big();
	test_resize();
	test_resize_solicited();
	test_moderation();
	return check_result();
}
