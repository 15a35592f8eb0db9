// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that changes while packets are made of it, as a counter or a lock does
 * that peers READ: each packet has the ICRC of the bytes that it carries.
 */
#include "sim.h"

#define MEMORY 16384
#define ROUNDS 4

static void post(struct sim_qp *q, enum roce_wr_opcode opcode, uint32_t len)
{
	struct roce_send_wqe wqe = sim_wqe(q, opcode, 0, len, 0);

	sim_address(q->node->sim, 1, &wqe.av);
	wqe.remote_qkey = 0x11111111;
	wqe.remote_qpn = q->node->sim->nodes[1].qps[1].qpn;
	sim_post_send(q, &wqe);
}

static void expect_success(const struct sim_qp *q, const char *what)
{
	CHECK(q->num_send_wcs == q->num_sends, "%s: %u of %u completed", what,
	      q->num_send_wcs, q->num_sends);
	for (uint32_t i = 0; i < q->num_send_wcs; i++)
		CHECK(!q->send_wcs[i].status, "%s: %u: status %d", what, i,
		      q->send_wcs[i].status);
	CHECK(!roce_qp_counters(q->qp)->retransmits, "%s: sent twice", what);
}

static void test_restless(void)
{
	struct sim *sim = sim_create(MEMORY, NULL);
	struct sim_qp *rc[2], *ud[2];
	struct roce_qp_attr attr;

	sim_attributes(sim, &attr, 0, 0);
	for (int i = 0; i < 2; i++) {
		rc[i] = sim_qp(&sim->nodes[i], ROCE_QPT_RC, NULL);
		ud[i] = sim_qp(&sim->nodes[i], ROCE_QPT_UD, NULL);
		sim->nodes[i].restless = true;
	}
	sim_connect(rc[0], rc[1], &attr);
	sim_connect(ud[0], ud[1], &attr);
	for (int n = 0; n < ROUNDS; n++) {
		sim_post_recv(rc[1], n, 0, MEMORY, 1000);
		sim_post_recv(ud[1], n, 0, MEMORY, 1000);
		post(rc[0], ROCE_WR_RDMA_WRITE, MEMORY);
		post(rc[0], ROCE_WR_RDMA_READ, MEMORY);
		post(rc[0], ROCE_WR_SEND, 4099);
		post(ud[0], ROCE_WR_SEND, 1024);
		sim_run(sim, SIM_LONG);
	}
	for (int i = 0; i < 2; i++)
		CHECK(!roce_counters(sim->nodes[i].engine)->rx_bad_icrc,
		      "node %d: bad ICRC", i);
	expect_success(rc[0], "RC");
	expect_success(ud[0], "UD");
	CHECK(ud[1]->num_recv_wcs == ROUNDS, "%u datagrams",
	      ud[1]->num_recv_wcs);
	sim_destroy(sim);
}

int main(void)
{
	test_restless();
	return check_result();
}
