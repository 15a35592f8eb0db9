// SPDX-License-Identifier: GPL-2.0
/*
 * Failures that take more than one wrong WQE: retries, order, lost keys and
 * lost completions, shared receive queues.
 */
#include "scene.h"

#define WRITE ROCE_WR_RDMA_WRITE
#define WRITE_IMM ROCE_WR_RDMA_WRITE_WITH_IMM
#define READ ROCE_WR_RDMA_READ
#define SEND ROCE_WR_SEND

/* The NAK comes behind the responses to what was right. */
static void test_order_of_nak(void)
{
	const enum roce_wc_status status[] = { ROCE_WC_SUCCESS, ROCE_WC_SUCCESS,
					       ROCE_WC_SUCCESS,
					       ROCE_WC_REM_ACCESS_ERR };
	struct roce_send_wqe wqe;
	struct scene s;

	make_scene(&s);
	sim_connect(s.a, s.b, &s.attr);
	post(s.a, READ, 100000);
	post(s.a, WRITE, 5000);
	post(s.a, READ, 100000);
	wqe = sim_wqe(s.a, WRITE, 0, 64, 0);
	wqe.rkey = NO_KEY;
	sim_post_send(s.a, &wqe);
	sim_run(s.sim, SIM_LONG);
	expect_sends("order of NAK", s.a, status, 4);
	sim_destroy(s.sim);
}

/* A local error waits for what is under way before it. */
static void test_order_of_local_error(void)
{
	const enum roce_wc_status status[] = { ROCE_WC_SUCCESS, ROCE_WC_SUCCESS,
					       ROCE_WC_LOC_PROT_ERR,
					       ROCE_WC_WR_FLUSH_ERR };
	struct roce_send_wqe wqe;
	struct scene s;

	make_scene(&s);
	s.sim->loss = 0.05;
	sim_connect(s.a, s.b, &s.attr);
	post(s.a, WRITE, 100000);
	post(s.a, READ, 100000);
	wqe = sim_wqe(s.a, WRITE, 0, 64, 0);
	wqe.sge[0].key = NO_KEY;
	sim_post_send(s.a, &wqe);
	post(s.a, WRITE, 64);
	sim_run(s.sim, SIM_LONG);
	expect_sends("order of a local error", s.a, status, 4);
	CHECK(roce_qp_state(s.b->qp) == ROCE_QPS_RTS, "peer");
	sim_destroy(s.sim);
}

/* Keys that go away while a message is under way. */
static void test_lost_keys(void)
{
	static const struct {
		enum roce_wr_opcode opcode;
		int node;
		enum roce_wc_status status;
	} lost[] = {
		{ WRITE, 0, ROCE_WC_LOC_PROT_ERR },
		{ WRITE, 1, ROCE_WC_REM_ACCESS_ERR },
		{ READ, 0, ROCE_WC_LOC_PROT_ERR },
		{ READ, 1, ROCE_WC_REM_ACCESS_ERR },
	};

	for (int i = 0; i < 4; i++) {
		struct scene s;

		make_scene(&s);
		/* so that it takes a while */
		s.sim->nodes[0].room = s.sim->nodes[1].room = 300;
		sim_connect(s.a, s.b, &s.attr);
		post(s.a, lost[i].opcode, 900000);
		sim_run(s.sim, 100000);
		CHECK(!s.a->num_send_wcs, "done already");
		s.sim->nodes[lost[i].node].keys[0].key = 0;
		s.sim->nodes[0].room = s.sim->nodes[1].room = -1;
		sim_run(s.sim, SIM_LONG);
		expect_sends("lost key", s.a, &lost[i].status, 1);
		sim_destroy(s.sim);
	}
}

static void test_retry(void)
{
	const enum roce_wc_status status[] = { ROCE_WC_SUCCESS,
					       ROCE_WC_RETRY_EXC_ERR,
					       ROCE_WC_WR_FLUSH_ERR };
	const struct roce_qp_counters *counters;
	uint64_t start, ns;
	struct scene s;

	make_scene(&s);
	s.attr.retry_cnt = 3;
	sim_connect(s.a, s.b, &s.attr);
	post(s.a, WRITE, 64);
	sim_run(s.sim, SIM_LONG);
	s.sim->unplugged = true;
	start = s.sim->now;
	post(s.a, WRITE, 64);
	post(s.a, READ, 64);
	sim_run(s.sim, SIM_LONG);
	ns = s.sim->now - start;
	expect_sends("retry", s.a, status, 3);
	counters = roce_qp_counters(s.a->qp);
	CHECK(counters->local_ack_timeout_err == 4, "%d timeouts",
	      (int)counters->local_ack_timeout_err);
	/* the longer the peer is silent, the longer it is waited for */
	CHECK(ns == (1 + 2 + 4 + 4) * (4096ULL << 8), "%llu ns", (long long)ns);
	CHECK(!errors(s.a), "events");
	sim_destroy(s.sim);
}

static void test_rnr(void)
{
	const enum roce_wc_status status[] = { ROCE_WC_SUCCESS,
					       ROCE_WC_RNR_RETRY_EXC_ERR };
	const struct roce_qp_counters *counters;
	struct scene s;

	for (int retries = 0; retries <= 7; retries++) {
		make_scene(&s);
		s.attr.rnr_retry = retries;
		s.attr.min_rnr_timer = 10; /* 320 us */
		sim_connect(s.a, s.b, &s.attr);
		post(s.a, WRITE, 3000);
		post(s.a, retries & 1 ? SEND : WRITE_IMM, 3000);
		sim_run(s.sim, 100000000);
		counters = roce_qp_counters(s.a->qp);
		if (retries < 7) {
			expect_sends("RNR", s.a, status, 2);
			CHECK(counters->rnr_nak_retry_err == (uint64_t)retries,
			      "%d RNR NAKs", (int)counters->rnr_nak_retry_err);
			CHECK(roce_qp_state(s.b->qp) == ROCE_QPS_RTS, "peer");
		} else {
			CHECK(counters->rnr_nak_retry_err > 250 &&
				      counters->rnr_nak_retry_err < 320,
			      "%d RNR NAKs", (int)counters->rnr_nak_retry_err);
			sim_post_recv(s.b, 0, 0, 4096, ALL);
			sim_run(s.sim, 1000000);
			CHECK(s.a->num_send_wcs == 2 &&
				      !s.a->send_wcs[1].status &&
				      s.b->num_recv_wcs == 1 &&
				      s.b->recv_wcs[0].byte_len == 3000,
			      "after the RNR NAKs");
			CHECK(!counters->packet_seq_err &&
				      !counters->local_ack_timeout_err,
			      "more than RNR NAKs");
		}
		sim_destroy(s.sim);
	}
}

/* What arrives gives all retries back. */
static void test_rnr_progress(void)
{
	struct scene s;

	make_scene(&s);
	s.attr.rnr_retry = 1;
	s.attr.min_rnr_timer = 20; /* 10.24 ms */
	sim_connect(s.a, s.b, &s.attr);
	for (int i = 0; i < 4; i++)
		post(s.a, SEND, 64);
	for (uint32_t i = 0; i < 4; i++) {
		sim_run(s.sim, 5000000);
		CHECK(s.b->num_recv_wcs == i, "receive %u", i);
		sim_post_recv(s.b, i, 0, RECV_BYTES, ALL);
		sim_run(s.sim, 5300000);
	}
	sim_run(s.sim, SIM_LONG);
	CHECK(s.a->num_send_wcs == 4 && !s.a->send_wcs[3].status &&
		      roce_qp_counters(s.a->qp)->rnr_nak_retry_err == 4,
	      "completions");
	sim_destroy(s.sim);
}

static void test_invalidate(void)
{
	struct roce_send_wqe wqe;
	struct scene s;

	make_scene(&s);
	sim_connect(s.a, s.b, &s.attr);
	for (int i = 0; i < 3; i++)
		sim_post_recv(s.b, i, 0, RECV_BYTES, ALL);
	wqe = sim_wqe(s.a, ROCE_WR_SEND_WITH_INV, 0, 64, 0);
	wqe.invalidate_key = SHORT;
	sim_post_send(s.a, &wqe);
	sim_run(s.sim, SIM_LONG);
	CHECK(s.b->num_recv_wcs == 1 &&
		      s.b->recv_wcs[0].flags & ROCE_WC_WITH_INV &&
		      s.b->recv_wcs[0].invalidated_key == SHORT &&
		      !s.sim->nodes[1].keys[SHORT - ALL].key,
	      "invalidation");
	/* Again: class J, the sender learns it from what comes next. */
	wqe = sim_wqe(s.a, ROCE_WR_SEND_WITH_INV, 0, 64, 0);
	wqe.invalidate_key = SHORT;
	sim_post_send(s.a, &wqe);
	sim_run(s.sim, SIM_LONG);
	CHECK(s.b->num_recv_wcs == 3 &&
		      s.b->recv_wcs[1].status == ROCE_WC_REM_INV_REQ_ERR &&
		      s.b->recv_wcs[2].status == ROCE_WC_WR_FLUSH_ERR &&
		      roce_qp_state(s.b->qp) == ROCE_QPS_ERR,
	      "invalidation of what is not valid");
	CHECK(s.a->num_send_wcs == 2 && !s.a->send_wcs[1].status, "sender");
	wqe = sim_wqe(s.a, ROCE_WR_LOCAL_INV, 0, 0, 0);
	wqe.invalidate_key = SHORT;
	sim_post_send(s.a, &wqe);
	sim_run(s.sim, SIM_LONG);
	CHECK(s.a->num_send_wcs == 3 && !s.a->send_wcs[2].status &&
		      !s.sim->nodes[0].keys[SHORT - ALL].key,
	      "local invalidation");
	sim_destroy(s.sim);
}

static void test_lost_completions(void)
{
	struct scene s;

	make_scene(&s);
	sim_connect(s.a, s.b, &s.attr);
	s.a->lose_send_wc = true;
	post(s.a, WRITE, 64);
	post(s.a, WRITE, 64);
	sim_run(s.sim, SIM_LONG);
	CHECK(roce_qp_state(s.a->qp) == ROCE_QPS_ERR &&
		      has_event(s.a, ROCE_EVENT_QP_FATAL) &&
		      s.a->num_send_wcs == 1 &&
		      s.a->send_wcs[0].status == ROCE_WC_WR_FLUSH_ERR,
	      "send");
	sim_destroy(s.sim);

	make_scene(&s);
	sim_connect(s.a, s.b, &s.attr);
	s.b->lose_recv_wc = true;
	sim_post_recv(s.b, 0, 0, RECV_BYTES, ALL);
	sim_post_recv(s.b, 1, 0, RECV_BYTES, ALL);
	post(s.a, SEND, 64);
	sim_run(s.sim, SIM_LONG);
	CHECK(roce_qp_state(s.b->qp) == ROCE_QPS_ERR &&
		      has_event(s.b, ROCE_EVENT_QP_FATAL) &&
		      s.b->num_recv_wcs == 1 &&
		      s.b->recv_wcs[0].status == ROCE_WC_WR_FLUSH_ERR,
	      "receive");
	CHECK(s.a->send_wcs[0].status == ROCE_WC_RETRY_EXC_ERR, "sender");
	sim_destroy(s.sim);
}

/*
 * A send queue of which nobody knows what is posted: no completion tells of
 * that. What was fetched is flushed, and so is the rest when it is known.
 */
static void test_broken_send(enum roce_qp_type type)
{
	const enum roce_wc_status status[] = {
		ROCE_WC_SUCCESS,
		type == ROCE_QPT_RC ? ROCE_WC_WR_FLUSH_ERR : ROCE_WC_SUCCESS,
		ROCE_WC_WR_FLUSH_ERR, ROCE_WC_WR_FLUSH_ERR
	};
	struct scene s;

	make_scene(&s);
	s.a = sim_qp(&s.sim->nodes[0], type, NULL);
	s.b = sim_qp(&s.sim->nodes[1], type, NULL);
	sim_connect(s.a, s.b, &s.attr);
	post(s.a, WRITE, 64);
	sim_run(s.sim, SIM_LONG);
	s.sim->unplugged = true;
	post(s.a, WRITE, 64); /* RC: waits for its ACK */
	sim_run(s.sim, 1000);
	s.a->broken_send = true;
	post(s.a, WRITE, 64);
	sim_run(s.sim, SIM_LONG);
	expect_sends("broken", s.a, status, 2);
	CHECK(roce_qp_state(s.a->qp) == ROCE_QPS_ERR &&
		      has_event(s.a, ROCE_EVENT_QP_FATAL) &&
		      s.a->num_events == 1,
	      "%u events", s.a->num_events);
	post(s.a, WRITE, 64);
	sim_run(s.sim, SIM_LONG);
	s.a->broken_send = false;
	roce_kick(s.a->qp);
	sim_run(s.sim, SIM_LONG);
	expect_sends("not broken any more", s.a, status, 4);
	CHECK(s.a->num_events == 1, "%u events", s.a->num_events);
	sim_destroy(s.sim);
}

/* With a shared receive queue only what the QP has is flushed. */
static void test_srq(void)
{
	struct sim_qp *srq;
	struct scene s;

	make_scene(&s);
	srq = s.b;
	s.b = sim_qp(&s.sim->nodes[1], ROCE_QPT_RC, srq);
	sim_connect(s.a, s.b, &s.attr);
	for (int i = 0; i < 4; i++)
		sim_post_recv(srq, i, 0, 4096, ALL);
	post(s.a, SEND, 64);
	sim_run(s.sim, SIM_LONG);
	s.sim->nodes[0].room = 1;
	post(s.a, SEND, 4096); /* gets stuck after a packet */
	sim_run(s.sim, 100000);
	CHECK(srq->next_recv == 2, "a WQE is in use");
	CHECK(!sim_modify(s.b, &s.attr, ROCE_QPS_ERR), "modify");
	sim_run(s.sim, 100000);
	CHECK(s.b->num_recv_wcs == 2 && !s.b->recv_wcs[0].status &&
		      s.b->recv_wcs[1].status == ROCE_WC_WR_FLUSH_ERR &&
		      s.b->recv_wcs[1].cookie == 1 && srq->next_recv == 2 &&
		      has_event(s.b, ROCE_EVENT_QP_LAST_WQE_REACHED),
	      "flush");
	sim_destroy(s.sim);
}

/*
 * QPs in ERR, whose receive queues are looked at for what is posted late: it is
 * flushed soon, the looks become rare, and turns of others are not theirs.
 */
static void test_dead(void)
{
	struct sim *sim = sim_create(1 << 20, NULL);
	struct sim_node *node = &sim->nodes[0];
	struct sim_qp *dead[32], *a, *b;
	struct roce_qp_attr attr;
	struct roce_send_wqe wqe;
	uint32_t looks;

	sim->poll_recv = true;
	sim_attributes(sim, &attr, 0, 0);
	for (int i = 0; i < 32; i++) {
		dead[i] = sim_qp(node, ROCE_QPT_RC, NULL);
		CHECK(!sim_modify(dead[i], &attr, ROCE_QPS_ERR), "ERR");
	}
	sim_run(sim, 1000000000);
	looks = dead[0]->recv_looks;
	CHECK(looks > 5 && looks < 20, "%u looks in the first second", looks);
	sim_run(sim, 10000000000);
	looks = dead[0]->recv_looks - looks;
	CHECK(looks < 50, "%u looks in the next ten", looks);
	for (int i = 0; i < 20; i++)
		sim_post_recv(dead[0], i, 0, 8, 1000);
	sim_run(sim, 300000000);
	CHECK(dead[0]->num_recv_wcs == 20, "%u flushed", dead[0]->num_recv_wcs);
	/* now there is somebody who looks soon again */
	sim_post_recv(dead[0], 20, 0, 8, 1000);
	looks = dead[0]->recv_looks;
	sim_run(sim, 20000000000);
	CHECK(dead[0]->num_recv_wcs == 21, "%u flushed", dead[0]->num_recv_wcs);
	CHECK(dead[0]->recv_looks - looks > 80, "looks go on");

	/* They are all to be looked at, and behind them is one with work. */
	a = sim_qp(node, ROCE_QPT_RC, NULL);
	b = sim_qp(&sim->nodes[1], ROCE_QPT_RC, NULL);
	sim_connect(a, b, &attr);
	wqe = sim_wqe(a, ROCE_WR_RDMA_WRITE, 0, 1 << 20, 0);
	for (int i = 0; i < 32; i++)
		roce_kick_recv(dead[i]->qp);
	sim_post_send(a, &wqe);
	roce_tick(node->engine, sim->now);
	CHECK(roce_qp_counters(a->qp)->tx_packets == 128, "%d packets",
	      (int)roce_qp_counters(a->qp)->tx_packets);
	sim_run(sim, 1000000000);
	CHECK(a->num_send_wcs == 1, "WRITE");
	sim_destroy(sim);
}

int main(void)
{
	test_order_of_nak();
	test_order_of_local_error();
	test_lost_keys();
	test_retry();
	test_rnr();
	test_rnr_progress();
	test_invalidate();
	test_lost_completions();
	test_broken_send(ROCE_QPT_RC);
	test_broken_send(ROCE_QPT_UC);
	test_srq();
	test_dead();
	return check_result();
}
