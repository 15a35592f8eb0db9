// SPDX-License-Identifier: GPL-2.0
/*
 * Multicast: who gets a copy, limits, and frames that are not what they seem.
 */
#include <errno.h>
#include <string.h>

#include "packet.h"
#include "sim.h"

#define MEMORY (1U << 20)
#define QKEY 0x11111111
#define LEN 64U

static const uint8_t groups[2][16] = {
	{ [10] = 0xff, 0xff, 239, 0x81, 2, 3 },
	{ 0xff, 0x0e, [12] = 4, 5, 6, 7 },
};
static const uint8_t macs[2][6] = {
	{ 0x01, 0x00, 0x5e, 0x01, 2, 3 },
	{ 0x33, 0x33, 4, 5, 6, 7 },
};

static struct sim *sim;
static struct sim_qp *a, *a2, *b, *b2;
static struct roce_qp_attr attr;
static const uint8_t *group;
static uint8_t dmac[6];

static bool see(struct sim *s, int from, uint8_t *data, size_t len)
{
	(void)s;
	(void)from;
	(void)len;
	memcpy(dmac, data, 6);
	return false;
}

static struct sim_qp *ud(int node)
{
	struct sim_qp *q = sim_qp(&sim->nodes[node], ROCE_QPT_UD, NULL);

	for (int s = ROCE_QPS_INIT; s <= ROCE_QPS_RTS; s++)
		CHECK(!sim_modify(q, &attr, s), "state %d", s);
	for (uint32_t i = 0; i < 4; i++)
		sim_post_recv(q, i, 4096 * (i + 1), LEN + 40, 1000);
	return q;
}

static void setup(bool ipv6)
{
	sim = sim_create(MEMORY, NULL);
	sim->ipv6 = ipv6;
	sim->filter = see;
	group = groups[ipv6];
	sim_attributes(sim, &attr, 1, 0);
	a = ud(0);
	a2 = ud(0);
	b = ud(1);
	b2 = ud(1);
	memset(sim->nodes[0].mem, 0x5c, LEN);
}

static void send_one(struct sim_qp *q)
{
	struct roce_send_wqe wqe = sim_wqe(q, ROCE_WR_SEND, 0, LEN, 0);

	sim_address(sim, 1, &wqe.av); /* the MAC address is not a group's */
	memcpy(wqe.av.dgid, group, 16);
	wqe.remote_qpn = ROCE_MULTICAST_QPN;
	wqe.remote_qkey = QKEY;
	sim_post_send(q, &wqe);
	sim_run(sim, SIM_LONG);
	CHECK(!q->send_wcs[q->num_send_wcs - 1].status, "send");
}

static void received(const char *when, uint32_t n_a, uint32_t n_a2,
		     uint32_t n_b, uint32_t n_b2)
{
	CHECK(a->num_recv_wcs == n_a && a2->num_recv_wcs == n_a2 &&
		      b->num_recv_wcs == n_b && b2->num_recv_wcs == n_b2,
	      "%s: %u %u %u %u", when, a->num_recv_wcs, a2->num_recv_wcs,
	      b->num_recv_wcs, b2->num_recv_wcs);
}

static void test_members(bool ipv6)
{
	const struct roce_recv_wc *wc;

	setup(ipv6);
	send_one(a);
	received("no member", 0, 0, 0, 0);
	CHECK(!memcmp(dmac, macs[ipv6], 6), "MAC address");
	CHECK(!roce_attach(b->qp, group) && !roce_attach(b->qp, group), "b");
	send_one(a);
	received("once, also if attached twice", 0, 0, 1, 0);
	wc = b->recv_wcs;
	CHECK(!wc->status && wc->src_qpn == a->qpn &&
		      wc->byte_len == LEN + 40 && wc->flags & ROCE_WC_GRH &&
		      !memcmp(sim->nodes[1].mem + 4096 + 40, sim->nodes[0].mem,
			      LEN) &&
		      !memcmp(sim->nodes[1].mem + 4096 + (ipv6 ? 24 : 36),
			      ipv6 ? group : group + 12, ipv6 ? 16 : 4),
	      "completion");
	CHECK(!roce_attach(b2->qp, group) && !roce_attach(a2->qp, group),
	      "more");
	send_one(a);
	received("not to the sender, who is no member", 0, 1, 2, 1);
	CHECK(!roce_attach(a->qp, group), "a");
	send_one(a);
	received("to the sender too", 1, 2, 3, 2);
	CHECK(!roce_detach(b->qp, group) &&
		      roce_detach(b->qp, group) == -ENOENT,
	      "detach");
	roce_qp_destroy(a2->qp);
	a2->qp = NULL;
	send_one(a);
	received("b and a2 have left", 2, 2, 3, 3);
	sim_destroy(sim);
}

/* A member that cannot receive, or should not, keeps nobody else from it. */
static void test_unfit(void)
{
	const struct roce_counters *c;

	setup(false);
	c = roce_counters(sim->nodes[1].engine);
	CHECK(!roce_attach(b->qp, group) && !roce_attach(b2->qp, group), "b");
	attr.qkey = QKEY + 1;
	CHECK(!roce_qp_modify(b->qp, &attr, ROCE_QP_QKEY), "Q_Key");
	send_one(a);
	received("Q_Key", 0, 0, 0, 1);
	CHECK(c->rx_bad_qkey == 1, "counter");
	/* a member in RESET stays one */
	attr.state = ROCE_QPS_RESET;
	CHECK(!roce_qp_modify(b->qp, &attr, ROCE_QP_STATE), "reset");
	send_one(a);
	received("reset", 0, 0, 0, 2);
	CHECK(!c->rx_no_qp, "counter");
	attr.qkey = QKEY;
	for (int s = ROCE_QPS_INIT; s <= ROCE_QPS_RTS; s++)
		CHECK(!sim_modify(b, &attr, s), "state %d", s);
	send_one(a);
	received("again", 0, 0, 1, 3);
	/* no receive WQE, and an error that one has alone */
	send_one(a);
	send_one(a);
	received("buffers", 0, 0, 3, 4);
	CHECK(roce_qp_counters(b2->qp)->out_of_buffer == 1, "buffer");
	sim_post_recv(b2, 4, 0, LEN + 40, 1);
	send_one(a);
	CHECK(b2->recv_wcs[4].status == ROCE_WC_LOC_PROT_ERR &&
		      roce_qp_state(b2->qp) == ROCE_QPS_ERR &&
		      b->num_recv_wcs == 4 && !b->recv_wcs[3].status,
	      "error");
	sim_destroy(sim);
}

static void test_limits(void)
{
	static const uint8_t wrong[][16] = {
		{ [10] = 0xff, 0xff, 223, 255, 255, 255 },
		{ [10] = 0xff, 0xff, 240, 0, 0, 1 },
		{ [12] = 239, 0, 0, 1 },
		{ 0xfe, 0x80, [15] = 1 },
	};
	uint8_t gid[16] = { 0xff, 2 };
	struct sim_qp *q[ROCE_MAX_GROUP_QPS + 1];
	struct sim_qp *rc;

	setup(false);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		CHECK(roce_attach(a->qp, wrong[i]) == -EINVAL, "GID %zu", i);
	rc = sim_qp(&sim->nodes[0], ROCE_QPT_RC, NULL);
	CHECK(roce_attach(rc->qp, group) == -EINVAL, "RC");
	rc = sim_qp(&sim->nodes[0], ROCE_QPT_GSI, NULL);
	CHECK(roce_attach(rc->qp, group) == -EINVAL, "GSI");
	for (uint32_t i = 0; i <= ROCE_MAX_GROUPS; i++) {
		gid[15] = i;
		CHECK(roce_attach(a->qp, gid) ==
			      (i < ROCE_MAX_GROUPS ? 0 : -ENOSPC),
		      "group %u", i);
	}
	gid[15] = 7;
	CHECK(!roce_detach(a->qp, gid) && !roce_attach(a2->qp, group),
	      "one that is free again");
	/* all at once */
	roce_qp_destroy(a->qp);
	a->qp = NULL;
	for (uint32_t i = 0; i < ROCE_MAX_GROUP_QPS; i++) {
		q[i] = sim_qp(&sim->nodes[0], ROCE_QPT_UD, NULL);
		CHECK(roce_attach(q[i]->qp, group) ==
			      (i < ROCE_MAX_GROUP_QPS - 1 ? 0 : -ENOSPC),
		      "QP %u", i);
	}
	CHECK(!roce_detach(a2->qp, group) && !roce_attach(q[31]->qp, group),
	      "a place that is free again");
	sim_destroy(sim);
}

/* No room in the queue to oneself: the wire gets it once all the same. */
static void test_blocked(void)
{
	struct roce_config config = { .loopback_frames = 2 };
	struct roce_send_wqe wqe;

	sim = sim_create(MEMORY, &config);
	group = groups[0];
	sim_attributes(sim, &attr, 1, 0);
	a = ud(0);
	b = ud(1);
	CHECK(!roce_attach(a->qp, group) && !roce_attach(b->qp, group), "");
	wqe = sim_wqe(a, ROCE_WR_SEND, 0, LEN, 0);
	memcpy(wqe.av.dgid, group, 16);
	wqe.remote_qpn = ROCE_MULTICAST_QPN;
	wqe.remote_qkey = QKEY;
	for (int i = 0; i < 4; i++)
		sim_post_send(a, &wqe);
	sim_run(sim, SIM_LONG);
	CHECK(roce_counters(sim->nodes[0].engine)->tx_blocked, "blocked");
	CHECK(a->num_recv_wcs == 4 && b->num_recv_wcs == 4 && sim->frames == 4,
	      "%u %u", a->num_recv_wcs, b->num_recv_wcs);
	/* and no room in the wire: nothing to oneself before */
	sim->nodes[0].room = 0;
	sim_post_recv(a, 4, 0, LEN + 40, 1000);
	sim_post_send(a, &wqe);
	for (int i = 0; i < 3; i++)
		roce_tick(sim->nodes[0].engine, sim->now);
	CHECK(a->num_recv_wcs == 4 && a->num_send_wcs == 4, "no room");
	sim->nodes[0].room = -1;
	sim_run(sim, SIM_LONG);
	CHECK(a->num_recv_wcs == 5 && a->num_send_wcs == 5, "room");
	sim_destroy(sim);
}

struct hostile {
	const char *name;
	uint8_t opcode;
	uint32_t qpn;
	const uint8_t *dgid, *mac;
	bool broken; /* its ICRC */
	bool ours;   /* what roce_rx() says */
};

static bool inject(const struct hostile *h)
{
	uint8_t buf[512] = { 0 }, *frame;
	uint8_t ext[DETH_BYTES] = { 0x11, 0x11, 0x11, 0x11 };
	struct roce_av me;
	struct header head = {
		.dmac = h->mac,
		.dgid = h->dgid,
		.opcode = h->opcode,
		.dest_qpn = h->qpn,
		.ext = ext,
		.ext_len = packet_flags(h->opcode) & PKT_DETH ? DETH_BYTES : 0,
	};
	uint32_t len;

	sim_address(sim, 0, &me);
	head.smac = me.dmac;
	head.sgid = me.dgid;
	frame = packet_build(&head, buf + MAX_HEADER_BYTES, LEN, &len);
	frame[len - 1] ^= h->broken;
	return roce_rx(sim->nodes[1].engine, sim->now, frame, len);
}

static void test_hostile(void)
{
	static const uint8_t unicast[6] = { 0x52, 0x54, 0, 0, 0, 2 };
	static const uint8_t other[16] = { [10] = 0xff, 0xff, 239, 9, 9, 9 };
	static const uint8_t b_gid[16] = { [10] = 0xff, 0xff, 10, 0, 0, 2 };
	const uint8_t send = SERVICE_UD | OP_SEND_ONLY;
	const uint32_t all = ROCE_MULTICAST_QPN;
	const struct hostile table[] = {
		{ "QPN", send, b->qpn, groups[0], macs[0], false, true },
		{ "QPN 1", send, 1, groups[0], macs[0], false, true },
		{ "MAC", send, all, groups[0], unicast, false, true },
		{ "MAC of IPv6", send, all, groups[0], macs[1], false, true },
		{ "RC", OP_SEND_ONLY, all, groups[0], macs[0], false, true },
		{ "UC", SERVICE_UC | OP_SEND_ONLY, all, groups[0], macs[0],
		  false, true },
		{ "ICRC", send, all, groups[0], macs[0], true, true },
		{ "group", send, all, other, macs[0], false, false },
		{ "no group", send, all, b_gid, macs[0], false, true },
		{ "none", send, all, b_gid, unicast, false, true },
	};
	const struct hostile good = { "",      send,  all, groups[0],
				      macs[0], false, true };
	const struct roce_counters *c = roce_counters(sim->nodes[1].engine);

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		CHECK(inject(&table[i]) == table[i].ours, "%s", table[i].name);
		CHECK(!b->num_recv_wcs, "%s: received", table[i].name);
	}
	CHECK(c->rx_bad_icrc == 1 && c->rx_bad_address == 6 && c->rx_no_qp == 2,
	      "counters %u %u", (unsigned int)c->rx_bad_address,
	      (unsigned int)c->rx_no_qp);
	CHECK(inject(&good) && b->num_recv_wcs == 1, "a good one");
	/* without members it is someone else's */
	CHECK(!roce_detach(b->qp, group) && !inject(&good), "no members");
}

int main(void)
{
	test_members(false);
	test_members(true);
	test_unfit();
	test_limits();
	test_blocked();
	setup(false);
	CHECK(!roce_attach(b->qp, group), "b");
	test_hostile();
	sim_destroy(sim);
	return check_result();
}
