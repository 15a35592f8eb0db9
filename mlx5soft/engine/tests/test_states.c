// SPDX-License-Identifier: GPL-2.0
/*
 * States of a QP: which changes are allowed, what is flushed, draining; and
 * that an engine whose output is full goes on where it stopped.
 */
#include <errno.h>
#include <string.h>

#include "sim.h"

#define MEMORY (4U << 20)

static struct sim *sim;
static struct sim_qp *a, *b;
static struct roce_qp_attr attr;

static void setup(enum roce_qp_type type)
{
	sim = sim_create(MEMORY, NULL);
	a = sim_qp(&sim->nodes[0], type, NULL);
	b = sim_qp(&sim->nodes[1], type, NULL);
	sim_attributes(sim, &attr, 1, b->qpn);
}

static void post(struct sim_qp *q, enum roce_wr_opcode opcode, uint32_t len)
{
	struct roce_send_wqe wqe = sim_wqe(q, opcode, 0, len, 4096);

	sim_post_send(q, &wqe);
}

static int modify(uint32_t mask)
{
	return roce_qp_modify(a->qp, &attr, mask);
}

static void test_transitions(void)
{
	/* as bits, without RESET and ERR that can be reached from anywhere */
	static const uint32_t allowed[] = {
		[ROCE_QPS_RESET] = 1 << ROCE_QPS_INIT,
		[ROCE_QPS_INIT] = 1 << ROCE_QPS_INIT | 1 << ROCE_QPS_RTR,
		[ROCE_QPS_RTR] = 1 << ROCE_QPS_RTS,
		[ROCE_QPS_RTS] = 1 << ROCE_QPS_RTS | 1 << ROCE_QPS_SQD,
		[ROCE_QPS_SQD] = 1 << ROCE_QPS_RTS | 1 << ROCE_QPS_SQD,
		[ROCE_QPS_ERR] = 0,
	};

	for (int from = 0; from <= ROCE_QPS_ERR; from++) {
		for (int to = 0; to <= ROCE_QPS_ERR; to++) {
			bool yes = to == ROCE_QPS_RESET || to == ROCE_QPS_ERR;
			int ret;

			if (from == ROCE_QPS_SQE || to == ROCE_QPS_SQE)
				continue;
			yes |= allowed[from] >> to & 1;
			setup(ROCE_QPT_RC);
			for (int s = 1; s <= from && from != ROCE_QPS_ERR; s++)
				CHECK(!sim_modify(a, &attr, s), "to %d", s);
			if (from == ROCE_QPS_ERR)
				sim_modify(a, &attr, from);
			CHECK((int)roce_qp_state(a->qp) == from, "state");
			/* with a state that stays, no attribute is needed */
			attr.state = to;
			ret = from == to || from == ROCE_QPS_SQD
				      ? modify(ROCE_QP_STATE)
				      : sim_modify(a, &attr, to);
			CHECK((ret == 0) == yes, "%d to %d: %d", from, to, ret);
			CHECK(ret == 0 || (int)roce_qp_state(a->qp) == from,
			      "changed");
			sim_destroy(sim);
		}
	}
}

static void test_masks(void)
{
	const uint32_t init = ROCE_QP_STATE | ROCE_QP_PKEY_INDEX |
			      ROCE_QP_PORT | ROCE_QP_ACCESS_FLAGS;
	struct roce_qp_attr now;
	bool draining;

	setup(ROCE_QPT_RC);
	attr.state = ROCE_QPS_INIT;
	for (int i = 1; i < 21; i++) {
		if (!(init & 1 << i) && i != 1)
			CHECK(modify(init | 1 << i) == -EINVAL, "bit %d", i);
		else if (i != 1)
			CHECK(modify(init & ~(1U << i)) == -EINVAL, "bit %d",
			      i);
	}
	attr.port = 2;
	CHECK(modify(init) == -EINVAL, "port");
	attr.port = 1;
	attr.pkey_index = 1;
	CHECK(modify(init) == -EINVAL, "partition");
	attr.pkey_index = 0;
	attr.cur_state = ROCE_QPS_RTS;
	CHECK(modify(init | ROCE_QP_CUR_STATE) == -EINVAL, "cur_state");
	CHECK(!modify(init), "init");
	attr.path_mtu = ROCE_MTU_4096 + 1;
	CHECK(sim_modify(a, &attr, ROCE_QPS_RTR) == -EINVAL, "mtu");
	attr.path_mtu = ROCE_MTU_1024;
	attr.rq_psn = 1 << 24;
	CHECK(sim_modify(a, &attr, ROCE_QPS_RTR) == -EINVAL, "psn");
	attr.rq_psn = 7;
	attr.max_dest_rd_atomic = ROCE_MAX_RD_ATOMIC + 1;
	CHECK(sim_modify(a, &attr, ROCE_QPS_RTR) == -EINVAL, "resources");
	attr.max_dest_rd_atomic = 16;
	CHECK(!sim_modify(a, &attr, ROCE_QPS_RTR), "rtr");
	attr.timeout = 32;
	CHECK(sim_modify(a, &attr, ROCE_QPS_RTS) == -EINVAL, "timeout");
	attr.timeout = 14;
	CHECK(!sim_modify(a, &attr, ROCE_QPS_RTS), "rts");
	roce_qp_query(a->qp, &now, &draining);
	CHECK(now.state == ROCE_QPS_RTS && now.rq_psn == 7 &&
		      now.max_dest_rd_atomic == 16 && now.timeout == 14 &&
		      now.dest_qpn == b->qpn && !draining,
	      "query");
	sim_destroy(sim);
}

/* SQD stops with the message under way; RTS goes on. */
static void test_drain(enum roce_qp_type type)
{
	setup(type);
	sim_connect(a, b, &attr);
	sim->nodes[0].room = 3;
	post(a, ROCE_WR_RDMA_WRITE, 10000);
	post(a, ROCE_WR_RDMA_WRITE, 10000);
	sim_run(sim, 100000);
	attr.en_sqd_async_notify = true;
	attr.state = ROCE_QPS_SQD;
	CHECK(!modify(ROCE_QP_STATE | ROCE_QP_EN_SQD_ASYNC_NOTIFY), "sqd");
	post(a, ROCE_WR_RDMA_WRITE, 64);
	CHECK(!a->num_events, "too early");
	sim->nodes[0].room = -1;
	sim_run(sim, 100000000);
	CHECK(a->num_send_wcs == 1 && a->num_events == 1 &&
		      a->events[0] == ROCE_EVENT_SQ_DRAINED,
	      "%u completions, %u events", a->num_send_wcs, a->num_events);
	CHECK(!sim_modify(a, &attr, ROCE_QPS_SQD), "sqd to sqd");
	attr.state = ROCE_QPS_RTS;
	CHECK(!modify(ROCE_QP_STATE), "rts");
	sim_run(sim, 100000000);
	CHECK(a->num_send_wcs == 3 && !a->send_wcs[2].status, "after it");
	/* nothing under way: drained at once */
	attr.state = ROCE_QPS_SQD;
	modify(ROCE_QP_STATE | ROCE_QP_EN_SQD_ASYNC_NOTIFY);
	CHECK(a->num_events == 2, "event");
	sim_destroy(sim);
}

static void test_flush(void)
{
	bool draining;

	setup(ROCE_QPT_RC);
	sim_connect(a, b, &attr);
	sim->unplugged = true;
	for (int i = 0; i < 1000; i++) {
		post(a, i % 3 ? ROCE_WR_RDMA_WRITE : ROCE_WR_RDMA_READ, 100);
		sim_post_recv(a, i, 0, 64, 1000);
	}
	sim_run(sim, 100000);
	CHECK(!sim_modify(a, &attr, ROCE_QPS_ERR), "modify");
	sim_run(sim, SIM_LONG);
	CHECK(a->num_send_wcs == 1000 && a->num_recv_wcs == 1000,
	      "%u sends, %u receives", a->num_send_wcs, a->num_recv_wcs);
	for (uint32_t i = 0; i < a->num_send_wcs; i++)
		CHECK(a->send_wcs[i].cookie == i &&
			      a->recv_wcs[i].cookie == i &&
			      a->send_wcs[i].status == ROCE_WC_WR_FLUSH_ERR &&
			      a->recv_wcs[i].status == ROCE_WC_WR_FLUSH_ERR,
		      "completion %u", i);
	/* what is posted now is flushed as well */
	post(a, ROCE_WR_SEND, 1);
	sim_post_recv(a, 1000, 0, 64, 1000);
	sim_run(sim, SIM_LONG);
	CHECK(a->num_send_wcs == 1001 && a->num_recv_wcs == 1001, "late");
	CHECK(!a->num_events, "events");

	/* A new life with other PSNs; the peer has stayed as it was. */
	sim->unplugged = false;
	CHECK(!sim_modify(a, &attr, ROCE_QPS_RESET), "reset");
	CHECK(!sim_modify(b, &attr, ROCE_QPS_RESET), "reset");
	roce_qp_query(a->qp, &attr, &draining);
	CHECK(attr.state == ROCE_QPS_RESET && !attr.dest_qpn, "query");
	sim_attributes(sim, &attr, 0, 0);
	attr.rq_psn = attr.sq_psn = 5;
	sim_connect(a, b, &attr);
	post(a, ROCE_WR_RDMA_WRITE, 3000);
	sim_run(sim, SIM_LONG);
	CHECK(a->num_send_wcs == 1002 && !a->send_wcs[1001].status, "again");
	sim_destroy(sim);
}

/* Packets come and go only in the states for them. */
static void test_receive_states(void)
{
	setup(ROCE_QPT_RC);
	for (int s = 1; s <= ROCE_QPS_RTS; s++)
		CHECK(!sim_modify(a, &attr, s), "a");
	sim_attributes(sim, &attr, 0, a->qpn);
	CHECK(!sim_modify(b, &attr, ROCE_QPS_INIT), "b");
	sim_post_recv(b, 0, 0, 64, 1000);
	post(a, ROCE_WR_SEND, 64);
	post(b, ROCE_WR_SEND, 64);
	sim_run(sim, 2000000);
	CHECK(!a->num_send_wcs && !b->num_recv_wcs && !b->next_send, "init");
	CHECK(roce_counters(sim->nodes[1].engine)->rx_no_qp, "drop");
	CHECK(!sim_modify(b, &attr, ROCE_QPS_RTR), "b");
	sim_run(sim, 4000000);
	CHECK(a->num_send_wcs == 1 && b->num_recv_wcs == 1 && !b->next_send,
	      "rtr");
	CHECK(b->num_events == 1 && b->events[0] == ROCE_EVENT_COMM_EST,
	      "communication established");
	sim_post_recv(a, 0, 0, 64, 1000);
	CHECK(!sim_modify(b, &attr, ROCE_QPS_RTS), "b");
	sim_run(sim, 4000000);
	CHECK(b->num_send_wcs == 1 && a->num_recv_wcs == 1, "rts");
	sim_destroy(sim);
}

static void test_create(void)
{
	struct roce_config bad = { .port_mtu = 6 };
	struct roce_qp_init init = { .type = ROCE_QPT_RC, .max_send_wr = 1 };
	struct roce_engine *e;
	struct roce_qp *qp;
	const uint8_t gid[16] = { 0 };

	CHECK(roce_engine_create(&bad, &e) == -EINVAL, "no callbacks");
	setup(ROCE_QPT_RC);
	e = sim->nodes[0].engine;
	init.qpn = a->qpn;
	CHECK(roce_qp_create(e, &init, &qp) == -EEXIST, "in use");
	init.qpn = 1 << 24;
	CHECK(roce_qp_create(e, &init, &qp) == -EINVAL, "QPN");
	init.qpn = a->qpn + 1024; /* the same bucket */
	init.max_recv_sge = ROCE_MAX_SGE + 1;
	CHECK(roce_qp_create(e, &init, &qp) == -EINVAL, "elements");
	init.max_recv_sge = 0;
	init.type = 0;
	CHECK(roce_qp_create(e, &init, &qp) == -EINVAL, "type");
	init.type = ROCE_QPT_UC;
	init.ctx = a;
	CHECK(!roce_qp_create(e, &init, &qp), "create");
	roce_kick(qp);
	roce_kick(a->qp);
	roce_qp_destroy(qp);
	CHECK(roce_set_gid(e, ROCE_MAX_GIDS, gid, gid) == -EINVAL, "gid");
	sim_connect(a, b, &attr);
	post(a, ROCE_WR_RDMA_WRITE, 64);
	sim_run(sim, SIM_LONG);
	CHECK(a->num_send_wcs == 1, "the other one works");
	sim_destroy(sim);
}

/* An output that takes a few frames at a time loses and doubles nothing. */
static void test_blocked(void)
{
	const struct roce_counters *c;

	setup(ROCE_QPT_RC);
	sim_connect(a, b, &attr);
	sim_post_recv(b, 0, 1 << 20, 100000, 1000);
	for (int i = 0; i < 100000; i++)
		sim->nodes[0].mem[i] = i * 7;
	sim->nodes[0].room = sim->nodes[1].room = 0;
	post(a, ROCE_WR_SEND, 100000);
	post(a, ROCE_WR_RDMA_READ, 50000);
	for (int i = 0; i < 500 && a->num_send_wcs < 2; i++) {
		sim->nodes[0].room = sim->nodes[1].room = i % 3;
		sim_run(sim, 1000);
	}
	c = roce_counters(sim->nodes[0].engine);
	CHECK(a->num_send_wcs == 2 && c->tx_blocked, "%u completions",
	      a->num_send_wcs);
	CHECK(!memcmp(sim->nodes[1].mem + (1 << 20) + 50000,
		      sim->nodes[0].mem + 50000, 50000),
	      "data");
	CHECK(!roce_qp_counters(a->qp)->retransmits, "sent twice");
	sim_destroy(sim);
}

/* Many QPs with work: none waits for another one to finish. */
static void test_fair(void)
{
	struct roce_qp_attr at;
	struct sim_qp *q[2][20];
	uint64_t least = -1, most = 0;

	setup(ROCE_QPT_RC);
	for (int i = 0; i < 20; i++) {
		for (int n = 0; n < 2; n++)
			q[n][i] = sim_qp(&sim->nodes[n], ROCE_QPT_RC, NULL);
		sim_attributes(sim, &at, 0, 0);
		sim_connect(q[0][i], q[1][i], &at);
		post(q[0][i], ROCE_WR_RDMA_WRITE, 1 << 20);
	}
	sim->nodes[0].room = 1000;
	sim_run(sim, 1000000);
	for (int i = 0; i < 20; i++) {
		uint64_t n = roce_qp_counters(q[0][i]->qp)->tx_packets;

		least = n < least ? n : least;
		most = n > most ? n : most;
	}
	CHECK(least && most - least <= 32, "%d to %d packets", (int)least,
	      (int)most);
	sim_destroy(sim);
}

/* QPs that have work go away, from all places of the list of those. */
static void test_destroy_with_work(void)
{
	struct sim *sim = sim_create(4096, NULL);
	struct sim_qp *q[2][12];
	struct roce_qp_attr attr;
	struct roce_send_wqe wqe;

	sim_attributes(sim, &attr, 0, 0);
	for (int i = 0; i < 12; i++) {
		q[0][i] = sim_qp(&sim->nodes[0], ROCE_QPT_RC, NULL);
		q[1][i] = sim_qp(&sim->nodes[1], ROCE_QPT_RC, NULL);
		sim_connect(q[0][i], q[1][i], &attr);
		wqe = sim_wqe(q[0][i], ROCE_WR_RDMA_WRITE, 0, 8, 0);
		sim_post_send(q[0][i], &wqe);
	}
	for (int i = 0; i < 12; i += i == 4 ? 1 : 2) /* 0 2 4 5 7 9 11 */
		roce_qp_destroy(q[0][i]->qp);
	/* behind those that are left */
	wqe = sim_wqe(q[0][1], ROCE_WR_RDMA_WRITE, 0, 8, 0);
	sim_post_send(q[0][1], &wqe);
	sim_run(sim, SIM_LONG);
	for (int i = 0; i < 12; i++) {
		bool gone = i < 5 ? i % 2 == 0 : i % 2 == 1;

		CHECK(q[0][i]->num_send_wcs == (gone ? 0 : q[0][i]->num_sends),
		      "QP %d: %u completions", i, q[0][i]->num_send_wcs);
	}
	sim_destroy(sim);
}

int main(void)
{
	test_transitions();
	test_masks();
	test_drain(ROCE_QPT_RC);
	test_drain(ROCE_QPT_UC);
	test_flush();
	test_receive_states();
	test_create();
	test_blocked();
	test_fair();
	test_destroy_with_work();
	return check_result();
}
