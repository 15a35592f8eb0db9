// SPDX-License-Identifier: GPL-2.0
/* Event queues: owner bits, arming, overrun, events that wait for room */
#include "commands/cmd.h"
#include "cq.h"
#include "eq.h"
#include "nic.h"
#include "rig.h"

#define VECTOR 5

static struct rig *r;
static struct rig_ring eq;

static void setup(void)
{
	r = rig_up();
	eq = rig_eq(r, 4, VECTOR, 0);
	rig_eq_db(r, r->uar, &eq, true);
}

static void query(void)
{
	rig_begin_id(r, MLX5_CMD_OP_QUERY_EQ, eq.id);
	r->out_len = BYTES(query_eq_out);
	CHECK(!rig_run(r), "%s", r->log);
}

static void fire(unsigned int count)
{
	const uint8_t data[EQE_DATA] = { 0 };
	struct eq *dev = (struct eq *)obj_find(r->nic, OBJ_EQ, eq.id);

	while (count--)
		eq_post(r->nic, dev, EVENT_PORT_CHANGE, 0, data);
}

static unsigned int take(void)
{
	unsigned int count = 0;
	uint8_t eqe[64];

	for (; rig_eqe(r, &eq, eqe); count++)
		CHECK(eqe[1] == EVENT_PORT_CHANGE, "type %u", eqe[1]);
	return count;
}

static void test_eq(void)
{
	setup();
	host_irqs(r->host, VECTOR);
	for (int i = 0; i < 10; i++) {
		fire(3);
		CHECK(host_irqs(r->host, VECTOR) == 1, "once, armed");
		CHECK(take() == 3, "all");
		rig_eq_db(r, r->uar, &eq, false);
		fire(2);
		CHECK(!host_irqs(r->host, VECTOR), "not armed");
		/* armed with two that were not seen */
		rig_eq_db(r, r->uar, &eq, true);
		CHECK(host_irqs(r->host, VECTOR) == 1, "at once");
		CHECK(take() == 2, "the others");
		fire(1);
		CHECK(!host_irqs(r->host, VECTOR), "told already");
		CHECK(take() == 1, "one");
		rig_eq_db(r, r->uar, &eq, true);
		CHECK(!host_irqs(r->host, VECTOR), "nothing new");
	}
	/* too many are lost; it goes on when there is room */
	r->lines = 0;
	fire(20);
	CHECK(r->lines == 1 && strstr(r->log, "overrun"), "%s", r->log);
	CHECK(take() == 16, "all that fit");
	rig_eq_db(r, r->uar, &eq, true);
	fire(1);
	CHECK(take() == 1, "goes on");
	fire(20);
	CHECK(r->lines == 2 && take() == 15, "lost again: %u lines", r->lines);
	rig_eq_db(r, r->uar, &eq, false);
	query();
	CHECK(GET(query_eq_out, r->out, eq_context_entry.status) == 9,
	      "status");
	CHECK(GET(query_eq_out, r->out, eq_context_entry.producer_counter) ==
		      eq.ci,
	      "counter");
	rig_stop(r);
}

static bool post(const struct rig_ring *cq)
{
	struct cq *dev = (struct cq *)obj_find(r->nic, OBJ_CQ, cq->id);
	uint8_t cqe[64] = { 0 };

	return cq_post(r->nic, dev, cqe, CQE_REQ, false);
}

static void arm(const struct rig_ring *cq)
{
	rig_arm_cq(r, r->uar, cq, false);
}

/*
 * More CQs than the EQ has entries: their events wait, one for each, until
 * there is room.
 */
static void test_eq_full(void)
{
	struct rig_ring cqs[11];
	unsigned int seen[11] = { 0 }, i, n, round;
	uint8_t eqe[64], cqe[64];

	setup();
	eq = rig_eq(r, 2, VECTOR, 0);
	for (i = 0; i < N_ELEM(cqs); i++)
		cqs[i] = rig_cq(r, 4, eq.id);
	rig_eq_db(r, r->uar, &eq, true);
	host_irqs(r->host, VECTOR);
	for (round = 0; round < 2; round++)
		for (i = 0; i < N_ELEM(cqs); i++) {
			arm(&cqs[i]);
			CHECK(post(&cqs[i]), "%u", i);
		}
	CHECK(host_irqs(r->host, VECTOR) == 1, "armed once");
	/* one that waits goes away, and one that does not */
	CHECK(!rig_run_id(r, MLX5_CMD_OP_DESTROY_CQ, cqs[2].id), "%s", r->log);
	CHECK(!rig_run_id(r, MLX5_CMD_OP_DESTROY_CQ, cqs[10].id), "%s", r->log);
	for (round = 0; round < 6; round++) {
		for (n = 0; rig_eqe(r, &eq, eqe); n++)
			for (i = 0; i < N_ELEM(cqs); i++)
				seen[i] += get_be32(eqe + 56) == cqs[i].id;
		CHECK(n <= 4, "%u in a ring of 4", n);
		rig_eq_db(r, r->uar, &eq, true);
		CHECK(host_irqs(r->host, VECTOR) <= 1, "a storm");
	}
	/* the first four told before the second CQE of theirs came */
	for (i = 0; i < N_ELEM(cqs); i++) {
		n = i == 10 ? 0 : i < 4 && i != 2 ? 2 : 1;
		CHECK(seen[i] == n, "%u: %u events", i, seen[i]);
	}
	query();
	CHECK(!GET(query_eq_out, r->out, eq_context_entry.status), "overrun");
	/* in use until the end, with events that wait */
	for (i = 3; i < 10; i++) {
		while (rig_cqe(r, &cqs[i], cqe))
			;
		arm(&cqs[i]);
		CHECK(post(&cqs[i]), "%u", i);
	}
	rig_stop(r);
}

static void test_eq_memory(void)
{
	setup();
	rig_eq_in(r, 2, VECTOR, 0);
	put_be64(r->in + BYTES(create_eq_in), RIG_NOWHERE);
	eq.id = rig_id(r) & 0xff;
	r->lines = 0;
	fire(5);
	CHECK(r->lines == 1 && strstr(r->log, "memory"), "%s", r->log);
	CHECK(!host_irqs(r->host, VECTOR), "nothing was posted");
	/* nobody wants this event */
	CHECK(!event_post(r->nic, EVENT_SRQ_LIMIT, 0, (uint8_t[EQE_DATA]){ 0 }),
	      "event without an EQ");
	CHECK(!event_post(r->nic, 0xff, 0, (uint8_t[EQE_DATA]){ 0 }),
	      "type 0xff");
	rig_stop(r);
}

int main(void)
{
	test_eq();
	test_eq_full();
	test_eq_memory();
	return check_result();
}
