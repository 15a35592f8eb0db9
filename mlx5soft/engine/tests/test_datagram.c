// SPDX-License-Identifier: GPL-2.0
/*
 * UD, GSI and UC, and packets that a node sends to itself.
 */
#include <errno.h>
#include <string.h>

#include "sim.h"

#define MEMORY (4U << 20)
#define QKEY 0x11111111

static struct sim *sim;
static struct sim_qp *a, *b;
static struct roce_qp_attr attr;

static void setup(enum roce_qp_type type, bool ipv6)
{
	sim = sim_create(MEMORY, NULL);
	sim->ipv6 = ipv6;
	a = sim_qp(&sim->nodes[0], type, NULL);
	b = sim_qp(&sim->nodes[1], type, NULL);
	sim_attributes(sim, &attr, 1, b->qpn);
	sim_connect(a, b, &attr);
	for (int i = 0; i < 8192; i++)
		sim->nodes[0].mem[i] = i * 11;
}

static struct roce_send_wqe datagram(uint32_t len)
{
	struct roce_send_wqe wqe = sim_wqe(a, ROCE_WR_SEND, 0, len, 0);

	wqe.remote_qpn = b->qpn;
	wqe.remote_qkey = QKEY;
	sim_address(sim, 1, &wqe.av);
	wqe.av.tclass = 0x22;
	wqe.av.hop_limit = 9;
	wqe.av.flow_label = 0x12345;
	return wqe;
}

static void test_ud(enum roce_qp_type type, bool ipv6)
{
	const uint32_t sizes[] = { 0, 1, 256, 4095, 4096 };
	uint32_t qkey = type == ROCE_QPT_GSI ? ROCE_GSI_QKEY : QKEY;

	setup(type, ipv6);
	for (uint32_t i = 0; i < 5; i++) {
		const uint8_t *grh = sim->nodes[1].mem + 8192 * (i + 1);
		struct roce_send_wqe wqe = datagram(sizes[i]);
		const struct roce_recv_wc *wc;
		struct roce_av me;

		sim_address(sim, 0, &me);
		wqe.remote_qkey = qkey;
		if (i & 1) {
			wqe.opcode = ROCE_WR_SEND_WITH_IMM;
			wqe.imm_data = 0x01020304;
			wqe.flags |= ROCE_SEND_SOLICITED;
		}
		sim_post_recv(b, i, 8192 * (i + 1), sizes[i] + 40, 1000);
		sim_post_send(a, &wqe);
		sim_run(sim, SIM_LONG);
		CHECK(b->num_recv_wcs == i + 1, "%u of %u", b->num_recv_wcs,
		      i + 1);
		if (b->num_recv_wcs != i + 1)
			return;
		wc = &b->recv_wcs[i];
		CHECK(!wc->status && wc->cookie == i &&
			      wc->byte_len == sizes[i] + 40 &&
			      wc->src_qpn == a->qpn &&
			      wc->flags & ROCE_WC_GRH && wc->tclass == 0x22 &&
			      !memcmp(wc->smac, me.dmac, 6),
		      "completion %u", i);
		CHECK(!(wc->flags & ROCE_WC_SOLICITED) == !(i & 1) &&
			      !(wc->flags & ROCE_WC_WITH_IMM) == !(i & 1) &&
			      !(wc->flags & ROCE_WC_IPV6) == !ipv6,
		      "flags %x", wc->flags);
		CHECK(!(i & 1) || wc->imm_data == 0x01020304, "immediate");
		CHECK(!memcmp(grh + 40, sim->nodes[0].mem, sizes[i]), "data");
		if (ipv6)
			CHECK(grh[0] == 0x62 && grh[1] == 0x21 && grh[7] == 9 &&
				      !memcmp(grh + 8, me.dgid, 16),
			      "GRH");
		else
			CHECK(!grh[0] && grh[20] == 0x45 && grh[21] == 0x22 &&
				      grh[28] == 9 &&
				      !memcmp(grh + 32, me.dgid + 12, 4),
			      "GRH");
	}
	sim_destroy(sim);
}

/* A receive queue that is broken: an event, and no completion */
static void test_broken_recv(enum roce_qp_type type, bool shared)
{
	struct roce_send_wqe wqe;
	struct sim_qp *srq;

	sim = sim_create(MEMORY, NULL);
	srq = sim_qp(&sim->nodes[1], type, NULL);
	a = sim_qp(&sim->nodes[0], type, NULL);
	b = sim_qp(&sim->nodes[1], type, shared ? srq : NULL);
	sim_attributes(sim, &attr, 1, b->qpn);
	sim_connect(a, b, &attr);
	srq->broken_recv = b->broken_recv = true;
	wqe = datagram(64);
	sim_post_send(a, &wqe);
	sim_run(sim, SIM_LONG);
	CHECK(roce_qp_state(b->qp) == ROCE_QPS_ERR, "type %u: state %u", type,
	      roce_qp_state(b->qp));
	CHECK(!b->num_recv_wcs, "type %u: %u completions", type,
	      b->num_recv_wcs);
	CHECK(b->num_events && b->events[0] == ROCE_EVENT_QP_FATAL,
	      "type %u: %u events", type, b->num_events);
	sim_destroy(sim);
}

/* ...in ERR costs no time, and is flushed when it is not broken any more. */
static void test_broken_flush(void)
{
	setup(ROCE_QPT_RC, false);
	b->broken_recv = true;
	sim_post_recv(b, 0, 0, 8, 1000);
	CHECK(!sim_modify(b, &attr, ROCE_QPS_ERR), "ERR");
	for (int i = 0; i < 3; i++)
		roce_tick(b->node->engine, sim->now);
	CHECK(roce_next_deadline(b->node->engine) && !b->num_recv_wcs,
	      "%u completions", b->num_recv_wcs);
	b->broken_recv = false;
	roce_kick_recv(b->qp);
	for (int i = 0; i < 3; i++)
		roce_tick(b->node->engine, sim->now);
	CHECK(b->num_recv_wcs == 1 &&
		      b->recv_wcs[0].status == ROCE_WC_WR_FLUSH_ERR,
	      "%u completions", b->num_recv_wcs);
	sim_destroy(sim);
}

/* What is wrong with a datagram stays without effect at the receiver. */
static void test_ud_drops(void)
{
	const struct roce_counters *c;
	struct roce_send_wqe wqe;

	setup(ROCE_QPT_UD, false);
	c = roce_counters(sim->nodes[1].engine);
	wqe = datagram(64);
	sim_post_send(a, &wqe); /* no receive WQE */
	sim_run(sim, SIM_LONG);
	CHECK(roce_qp_counters(b->qp)->out_of_buffer == 1, "buffer");
	sim_post_recv(b, 0, 0, 104, 1000);
	wqe.remote_qkey++;
	sim_post_send(a, &wqe);
	wqe.remote_qkey = QKEY;
	wqe.remote_qpn = 999;
	sim_post_send(a, &wqe);
	wqe = datagram(65); /* 1 too long for the receive WQE */
	sim_post_send(a, &wqe);
	wqe = datagram(4097); /* longer than the MTU: not sent, no error */
	sim_post_send(a, &wqe);
	wqe = datagram(64);
	wqe.av.sgid_index = 77; /* nobody */
	sim_post_send(a, &wqe);
	sim_run(sim, SIM_LONG);
	CHECK(c->rx_bad_qkey == 1 && c->rx_no_qp == 1 &&
		      roce_qp_counters(b->qp)->resp_local_length_error == 1 &&
		      roce_counters(sim->nodes[0].engine)->tx_no_address == 1,
	      "counters");
	wqe = datagram(64);
	wqe.remote_qkey = 0x80000000; /* one's own */
	sim_post_send(a, &wqe);
	sim_run(sim, SIM_LONG);
	CHECK(a->num_send_wcs == 7 && b->num_recv_wcs == 1 &&
		      b->recv_wcs[0].byte_len == 104,
	      "%u sends, %u receives", a->num_send_wcs, b->num_recv_wcs);
	for (uint32_t i = 0; i < a->num_send_wcs; i++)
		CHECK(!a->send_wcs[i].status, "send %u", i);
	sim_destroy(sim);
}

static void test_ud_errors(void)
{
	struct roce_send_wqe wqe;

	/* SQE: sends are flushed, receives go on, RTS repairs it */
	setup(ROCE_QPT_UD, false);
	wqe = datagram(64);
	wqe.sge[0].key = 1;
	sim_post_send(a, &wqe);
	wqe = datagram(64);
	sim_post_send(a, &wqe);
	sim_post_recv(a, 0, 0, 4096, 1000);
	sim_post_recv(b, 0, 0, 4096, 1000);
	sim_run(sim, SIM_LONG);
	CHECK(a->num_send_wcs == 2 &&
		      a->send_wcs[0].status == ROCE_WC_LOC_PROT_ERR &&
		      a->send_wcs[1].status == ROCE_WC_WR_FLUSH_ERR &&
		      roce_qp_state(a->qp) == ROCE_QPS_SQE && !a->num_recv_wcs,
	      "send queue error");
	attr.state = ROCE_QPS_RTS;
	CHECK(!roce_qp_modify(a->qp, &attr, ROCE_QP_STATE), "repair");
	sim_post_send(a, &wqe);
	sim_run(sim, SIM_LONG);
	CHECK(a->num_send_wcs == 3 && !a->send_wcs[2].status &&
		      b->num_recv_wcs == 1,
	      "after it");
	/* a receive WQE that cannot be used breaks the QP */
	sim_post_recv(b, 1, 0, 4096, 1);
	sim_post_recv(b, 2, 0, 4096, 1000);
	sim_post_send(a, &wqe);
	sim_run(sim, SIM_LONG);
	CHECK(b->num_recv_wcs == 3 &&
		      b->recv_wcs[1].status == ROCE_WC_LOC_PROT_ERR &&
		      b->recv_wcs[2].status == ROCE_WC_WR_FLUSH_ERR &&
		      roce_qp_state(b->qp) == ROCE_QPS_ERR,
	      "receive");
	/* an operation that UD does not have */
	wqe = datagram(64);
	wqe.opcode = ROCE_WR_RDMA_WRITE;
	sim_post_send(a, &wqe);
	sim_run(sim, SIM_LONG);
	CHECK(a->send_wcs[4].status == ROCE_WC_LOC_QP_OP_ERR, "operation");
	sim_destroy(sim);
}

#define QUEUE 64U /* max_send_wr of the simulation */

/* Of @n sends the first fails: until somebody can see that. Returns completions. */
static uint32_t fail_first(enum roce_qp_type type, uint32_t n)
{
	struct roce_config config = { .budget = 16 };
	struct roce_send_wqe wqe;

	sim = sim_create(MEMORY, &config);
	a = sim_qp(&sim->nodes[0], type, NULL);
	b = sim_qp(&sim->nodes[1], type, NULL);
	sim_attributes(sim, &attr, 1, b->qpn);
	sim_connect(a, b, &attr);
	for (uint32_t i = 0; i < n; i++) {
		wqe = datagram(64);
		wqe.sge[0].key = i ? 1000 : 1;
		sim_post_send(a, &wqe);
		sim_post_recv(b, i, 0, 4096, 1000);
	}
	while (!a->num_send_wcs)
		roce_tick(a->node->engine, sim->now);
	CHECK(a->num_send_wcs < QUEUE && roce_qp_state(a->qp) == ROCE_QPS_SQE,
	      "type %u: %u completions", type, a->num_send_wcs);
	attr.state = ROCE_QPS_RTS;
	return a->num_send_wcs;
}

/* Nothing that was posted before the repair is sent after it. */
static void test_early_repair(enum roce_qp_type type)
{
	struct roce_send_wqe wqe;
	uint32_t n;

	fail_first(type, QUEUE);
	CHECK(!roce_qp_modify(a->qp, &attr, ROCE_QP_STATE), "repair");
	wqe = datagram(64);
	sim_post_send(a, &wqe);
	sim_run(sim, SIM_LONG);
	for (n = 1; n < a->num_send_wcs; n++)
		if (a->send_wcs[n].status != ROCE_WC_WR_FLUSH_ERR)
			break;
	CHECK(n == QUEUE && a->num_send_wcs == QUEUE + 1 &&
		      !a->send_wcs[QUEUE].status && b->num_recv_wcs == 1,
	      "type %u: %u flushed of %u, %u received", type, n - 1,
	      a->num_send_wcs, b->num_recv_wcs);
	sim_destroy(sim);
	/* who posts without an end does not keep the engine from its work */
	n = fail_first(type, 4 * QUEUE);
	CHECK(!roce_qp_modify(a->qp, &attr, ROCE_QP_STATE), "repair");
	CHECK(a->num_send_wcs == n + QUEUE, "type %u: %u, then %u", type, n,
	      a->num_send_wcs);
	sim_destroy(sim);
	/* a completion gets lost */
	fail_first(type, QUEUE);
	a->lose_send_wc = true;
	CHECK(roce_qp_modify(a->qp, &attr, ROCE_QP_STATE) == -EINVAL &&
		      roce_qp_state(a->qp) == ROCE_QPS_ERR &&
		      a->num_events == 1 && a->events[0] == ROCE_EVENT_QP_FATAL,
	      "type %u: state %u", type, roce_qp_state(a->qp));
	sim_destroy(sim);
}

/* UC: what arrives is whole and in order, the rest never was. */
static void test_uc(double loss)
{
	uint32_t n = 400, whole = 0;
	uint64_t last = 0;

	setup(ROCE_QPT_UC, false);
	sim->loss = loss;
	for (uint32_t i = 0; i < n; i++) {
		struct roce_send_wqe wqe;
		uint32_t len = i % 3 ? 3000 : 10;

		memcpy(sim->nodes[0].mem + 8192 + 4 * i, &i, 4);
		wqe = sim_wqe(a, ROCE_WR_SEND_WITH_IMM, 8192 + 4 * i, len, 0);
		wqe.imm_data = i + 1;
		sim_post_send(a, &wqe);
		wqe = sim_wqe(a, ROCE_WR_RDMA_WRITE, 0, 2500, 3 << 20);
		sim_post_send(a, &wqe);
		sim_post_recv(b, i, (1 << 20) + 4096 * i, 4096, 1000);
	}
	sim_run(sim, SIM_LONG);
	CHECK(a->num_send_wcs == 2 * n, "%u sends", a->num_send_wcs);
	for (uint32_t i = 0; i < b->num_recv_wcs; i++) {
		const struct roce_recv_wc *wc = &b->recv_wcs[i];
		uint32_t k = wc->imm_data - 1;

		CHECK(wc->cookie == i && !wc->status && wc->imm_data > last,
		      "receive %u", i);
		CHECK(wc->byte_len == (k % 3 ? 3000 : 10), "length");
		CHECK(!memcmp(sim->nodes[1].mem + (1 << 20) + 4096 * i,
			      sim->nodes[0].mem + 8192 + 4 * k, wc->byte_len),
		      "data of %u", k);
		last = wc->imm_data;
		whole++;
	}
	CHECK(loss ? whole > n / 2 && whole < n : whole == n, "%u of %u", whole,
	      n);
	CHECK(!memcmp(sim->nodes[1].mem + (3 << 20), sim->nodes[0].mem, 2500),
	      "WRITE");
	printf("UC, loss %.0f %%: %u of %u\n", 100 * loss, whole, n);
	sim_destroy(sim);
}

static void test_uc_errors(void)
{
	struct roce_send_wqe wqe;

	setup(ROCE_QPT_UC, false);
	sim_post_recv(b, 0, 0, 100, 1000);
	wqe = sim_wqe(a, ROCE_WR_RDMA_WRITE, 0, 64, 0);
	wqe.rkey = 1;
	sim_post_send(a, &wqe); /* disappears */
	wqe = sim_wqe(a, ROCE_WR_SEND, 0, 101, 0);
	sim_post_send(a, &wqe); /* too long: disappears */
	wqe = sim_wqe(a, ROCE_WR_SEND, 0, 5000, 0);
	sim_post_send(a, &wqe);
	wqe = sim_wqe(a, ROCE_WR_SEND, 0, 100, 0);
	sim_post_send(a, &wqe);
	sim_run(sim, SIM_LONG);
	CHECK(b->num_recv_wcs == 1 && b->recv_wcs[0].byte_len == 100,
	      "receive");
	wqe = sim_wqe(a, ROCE_WR_RDMA_READ, 0, 64, 0);
	sim_post_send(a, &wqe);
	sim_run(sim, SIM_LONG);
	CHECK(a->num_send_wcs == 5 && !a->send_wcs[3].status &&
		      a->send_wcs[4].status == ROCE_WC_LOC_QP_OP_ERR &&
		      roce_qp_state(a->qp) == ROCE_QPS_SQE,
	      "READ");
	sim_destroy(sim);
}

/* two QPs of one node, with more packets than its queue takes */
static void test_loopback(void)
{
	struct roce_config config = { .loopback_frames = 8 };
	struct roce_send_wqe wqe;
	struct sim_qp *c;

	sim = sim_create(MEMORY, &config);
	a = sim_qp(&sim->nodes[0], ROCE_QPT_RC, NULL);
	c = sim_qp(&sim->nodes[0], ROCE_QPT_RC, NULL);
	sim_attributes(sim, &attr, 0, 0);
	sim_connect(a, c, &attr);
	for (int i = 0; i < 1 << 20; i++)
		sim->nodes[0].mem[i] = i % 251;
	wqe = sim_wqe(a, ROCE_WR_RDMA_WRITE, 0, 1 << 20, 1 << 20);
	sim_post_send(a, &wqe);
	wqe = sim_wqe(a, ROCE_WR_RDMA_READ, 2 << 20, 1 << 20, 1 << 20);
	wqe.flags |= ROCE_SEND_FENCE;
	sim_post_send(a, &wqe);
	wqe = sim_wqe(c, ROCE_WR_RDMA_WRITE, 0, 1 << 20, 3 << 20);
	sim_post_send(c, &wqe);
	sim_run(sim, SIM_LONG);
	CHECK(a->num_send_wcs == 2 && !a->send_wcs[1].status &&
		      c->num_send_wcs == 1 && !c->send_wcs[0].status,
	      "completions");
	for (int i = 1; i < 4; i++)
		CHECK(!memcmp(sim->nodes[0].mem + ((size_t)i << 20),
			      sim->nodes[0].mem, 1 << 20),
		      "copy %d", i);
	CHECK(!sim->frames && !roce_qp_counters(a->qp)->retransmits &&
		      roce_counters(sim->nodes[0].engine)->loopback_frames >
			      3000,
	      "frames");
	sim_destroy(sim);
}

int main(void)
{
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		test_ud(ROCE_QPT_UD, ipv6);
		test_ud(ROCE_QPT_GSI, ipv6);
	}
	test_broken_flush();
	test_broken_recv(ROCE_QPT_RC, true);
	test_broken_recv(ROCE_QPT_RC, false);
	test_broken_recv(ROCE_QPT_UC, true);
	test_broken_recv(ROCE_QPT_UC, false);
	test_broken_recv(ROCE_QPT_UD, true);
	test_broken_recv(ROCE_QPT_UD, false);
	test_ud_drops();
	test_ud_errors();
	test_early_repair(ROCE_QPT_UD);
	test_early_repair(ROCE_QPT_UC);
	test_uc(0);
	test_uc(0.05);
	test_uc_errors();
	test_loopback();
	return check_result();
}
