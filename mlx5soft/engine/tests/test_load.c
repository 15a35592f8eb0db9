// SPDX-License-Identifier: GPL-2.0
/* What the engine says that it has under way, when the other end is silent */
#include "scene.h"

#define MTU 1024U

static struct scene s;

/* A QP to the peer, whose packets get lost when they have been sent */
static void begin(void)
{
	make_scene(&s);
	s.attr.path_mtu = ROCE_MTU_1024;
	sim_connect(s.a, s.b, &s.attr);
	s.sim->unplugged = true;
}

static void expect(const char *when, uint64_t packets, uint64_t bytes,
		   uint64_t read_bytes, uint64_t unsent_bytes)
{
	struct roce_load load = roce_load(s.sim->nodes[0].engine);

	CHECK(load.qps == 1 && load.packets == packets && load.bytes == bytes &&
		      load.read_bytes == read_bytes &&
		      load.unsent_bytes == unsent_bytes,
	      "%s: %lu packets, %lu bytes, %lu to read, %lu to send", when,
	      load.packets, load.bytes, load.read_bytes, load.unsent_bytes);
}

/* All is there, or lost: nothing is under way. */
static void finish(void)
{
	expect("at the end", 0, 0, 0, 0);
	sim_destroy(s.sim);
}

static void answered(void)
{
	s.sim->unplugged = false;
	sim_run(s.sim, SIM_LONG);
	CHECK(s.a->num_send_wcs == s.a->num_sends, "%u of %u completed",
	      s.a->num_send_wcs, s.a->num_sends);
	finish();
}

static void test_sent(void)
{
	begin();
	expect("before", 0, 0, 0, 0);
	post(s.a, ROCE_WR_RDMA_WRITE, 10 * MTU - 24);
	post(s.a, ROCE_WR_RDMA_WRITE, 0);
	post(s.a, ROCE_WR_RDMA_READ, 5 * MTU + 1);
	post(s.a, ROCE_WR_ATOMIC_FETCH_AND_ADD, 8);
	sim_run(s.sim, 1000);
	expect("sent", 13, 10 * MTU - 24, 5 * MTU + 1, 0);
	answered();
}

/* The wire has room for three; what is sent again is no other packet. */
static void test_unsent(void)
{
	begin();
	s.sim->nodes[0].room = 3;
	post(s.a, ROCE_WR_RDMA_WRITE, 10 * MTU);
	post(s.a, ROCE_WR_RDMA_WRITE, MTU); /* has not been fetched */
	sim_run(s.sim, 1000);
	expect("no room", 3, 3 * MTU, 0, 7 * MTU);
	s.sim->nodes[0].room = 2;
	sim_run(s.sim, 1000);
	expect("no room again", 5, 5 * MTU, 0, 5 * MTU);
	s.sim->nodes[0].room = -1;
	while (!roce_qp_counters(s.a->qp)->retransmits)
		sim_run(s.sim, 1000);
	expect("sent again", 11, 11 * MTU, 0, 0);
	answered();
}

/* It was fetched, and has to wait for another one. */
static void test_fenced(void)
{
	struct roce_send_wqe wqe;

	begin();
	post(s.a, ROCE_WR_RDMA_READ, MTU);
	wqe = sim_wqe(s.a, ROCE_WR_RDMA_WRITE, 0, 3 * MTU, 4096);
	wqe.flags |= ROCE_SEND_FENCE;
	sim_post_send(s.a, &wqe);
	sim_run(s.sim, 1000);
	expect("behind a READ", 1, 0, MTU, 3 * MTU);
	answered();
}

/* The acknowledgement of a half leaves the other. */
static bool only_one(struct sim *sim, int from, uint8_t *data, size_t len)
{
	uint32_t *left = sim->filter_arg;

	(void)data;
	(void)len;
	return from == 0 && !(*left && (*left)--);
}

static void test_half(void)
{
	uint32_t left = 32; /* who asks for an acknowledgement */

	begin();
	s.sim->unplugged = false;
	s.sim->filter = only_one;
	s.sim->filter_arg = &left;
	post(s.a, ROCE_WR_RDMA_WRITE, 40 * MTU);
	sim_run(s.sim, 1000000);
	expect("half", 40 - 32, (40 - 32) * MTU, 0, 0);
	s.sim->filter = NULL;
	answered();
}

/* Who is in ERR sends nothing any more. */
static void test_error(void)
{
	begin();
	post(s.a, ROCE_WR_RDMA_WRITE, 10 * MTU);
	sim_run(s.sim, 1000);
	CHECK(!sim_modify(s.a, &s.attr, ROCE_QPS_ERR), "to ERR");
	finish();
}

/* Without acknowledgements a packet is done when it is sent. */
static void test_unreliable(void)
{
	make_scene(&s);
	sim_destroy(s.sim);
	s.sim = sim_create(MEMORY, NULL);
	s.a = sim_qp(&s.sim->nodes[0], ROCE_QPT_UC, NULL);
	s.b = sim_qp(&s.sim->nodes[1], ROCE_QPT_UC, NULL);
	s.attr.path_mtu = ROCE_MTU_1024;
	sim_connect(s.a, s.b, &s.attr);
	s.sim->nodes[0].room = 3;
	post(s.a, ROCE_WR_RDMA_WRITE, 10 * MTU);
	sim_run(s.sim, 1000);
	expect("UC", 0, 0, 0, 7 * MTU);
	s.sim->nodes[0].room = -1;
	answered();
}

int main(void)
{
	test_sent();
	test_unsent();
	test_fenced();
	test_half();
	test_error();
	test_unreliable();
	return check_result();
}
