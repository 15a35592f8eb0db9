// SPDX-License-Identifier: GPL-2.0
/*
 * XRC: one connection, and SRQs of several PDs behind it. Nodes' memory is
 * split: keys ALL and OTHER_PD reach it in PD 1 and in PD 2.
 */
#include <string.h>

#include "packet.h"
#include "scene.h"

#define XRCD 7
#define LENGTH 5000 /* 5 packets */
#define ETH_IPV4_UDP (ETH_BYTES + IPV4_BYTES + UDP_BYTES)

static struct scene s;
static struct sim_qp *srq[3]; /* PD 1, PD 2, and one of another domain */

static struct sim_qp *make_srq(uint32_t xrcd, uint32_t pd)
{
	struct sim_qp *q = sim_qp(&s.sim->nodes[1], ROCE_QPT_RC, NULL);

	q->xrcd = xrcd;
	q->pd = pd;
	return q;
}

static void setup(void)
{
	make_scene(&s);
	s.a = sim_qp(&s.sim->nodes[0], ROCE_QPT_XRC_SEND, NULL);
	s.b = sim_qp(&s.sim->nodes[1], ROCE_QPT_XRC_RECV, NULL);
	s.b->xrcd = XRCD;
	srq[0] = make_srq(XRCD, 1);
	srq[1] = make_srq(XRCD, 2);
	srq[2] = make_srq(XRCD + 1, 1);
	sim_connect(s.a, s.b, &s.attr);
	for (int i = 0; i < LENGTH; i++)
		s.sim->nodes[0].mem[i] = 1 + i * 7;
}

/* From the start of the memory, to @remote of an SRQ's PD. */
static void post_xrc(enum roce_wr_opcode opcode, uint32_t len, uint32_t srqn,
		     uint64_t remote, uint32_t rkey)
{
	struct roce_send_wqe wqe = sim_wqe(s.a, opcode, 0, len, remote);

	wqe.srqn = srqn;
	wqe.rkey = rkey;
	wqe.compare_add = 5;
	sim_post_send(s.a, &wqe);
}

static void expect_recv(const char *name, const struct sim_qp *q, uint32_t n,
			uint32_t cookie, uint32_t len)
{
	const struct roce_recv_wc *wc = &q->recv_wcs[n];

	CHECK(q->num_recv_wcs > n, "%s: %u completions", name, q->num_recv_wcs);
	if (q->num_recv_wcs > n)
		CHECK(!wc->status && wc->cookie == cookie &&
			      wc->byte_len == len && wc->srqn == q->qpn &&
			      wc->src_qpn == s.a->qpn,
		      "%s: status %d, cookie %d, %u bytes, SRQ %u", name,
		      wc->status, (int)wc->cookie, wc->byte_len, wc->srqn);
}

/* All operations, to both SRQs, with @loss and more. */
static void test_traffic(double loss)
{
	static const enum roce_wc_status good[16];
	static const uint32_t key[2] = { ALL, OTHER_PD };
	const uint8_t *from, *to;
	uint64_t word;

	setup();
	from = s.sim->nodes[0].mem;
	to = s.sim->nodes[1].mem;
	s.sim->loss = loss;
	s.sim->duplicates = loss;
	s.sim->reorder = loss;
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 3; j++)
			sim_post_recv(srq[i], 10 * i + j,
				      0x10000 * (1 + 3 * i + j), 0x10000,
				      key[i]);
	memset(s.sim->nodes[1].mem + 0x80000, 3, 16);
	for (int i = 0; i < 2; i++) {
		post_xrc(ROCE_WR_SEND, LENGTH, srq[i]->qpn, 0, 0);
		post_xrc(ROCE_WR_SEND_WITH_IMM, 0, srq[i]->qpn, 0, 0);
		post_xrc(ROCE_WR_RDMA_WRITE, LENGTH, srq[i]->qpn,
			 0x90000 + 0x10000 * i, key[i]);
		post_xrc(ROCE_WR_RDMA_WRITE_WITH_IMM, LENGTH, srq[i]->qpn,
			 0xb0000 + 0x10000 * i, key[i]);
	}
	sim_run(s.sim, SIM_LONG);
	expect_sends("data", s.a, good, 8);
	for (int i = 0; i < 2; i++) {
		expect_recv("SEND", srq[i], 0, 10 * i, LENGTH);
		expect_recv("immediate", srq[i], 1, 10 * i + 1, 0);
		expect_recv("WRITE", srq[i], 2, 10 * i + 2, LENGTH);
		CHECK(!memcmp(from, to + 0x10000 * (1 + 3 * i), LENGTH) &&
			      !memcmp(from, to + 0x90000 + 0x10000 * i,
				      LENGTH) &&
			      !memcmp(from, to + 0xb0000 + 0x10000 * i, LENGTH),
		      "data of SRQ %d", i);
	}
	for (int i = 0; i < 2; i++) {
		post_xrc(ROCE_WR_ATOMIC_FETCH_AND_ADD, 8, srq[i]->qpn,
			 0x80000 + 8 * i, key[i]);
		post_xrc(ROCE_WR_RDMA_READ, LENGTH, srq[i]->qpn, 0x90000,
			 key[i]);
	}
	memset(s.sim->nodes[1].mem + 0x90000, 0x55, LENGTH);
	sim_run(s.sim, SIM_LONG);
	expect_sends("READ", s.a, good, 12);
	for (int i = 0; i < 2; i++) {
		memcpy(&word, to + 0x80000 + 8 * i, 8);
		CHECK(word == 0x0303030303030308, "atomic: %llx",
		      (unsigned long long)word);
	}
	CHECK(!memcmp(from, to + 0x90000, LENGTH), "READ");
	CHECK(srq[0]->num_recv_wcs == 3 && srq[1]->num_recv_wcs == 3 &&
		      !errors(s.a) && !errors(s.b),
	      "nothing else");
	sim_destroy(s.sim);
}

static void test_errors(void)
{
	static const struct {
		const char *name;
		enum roce_wr_opcode opcode;
		int srq;       /* -1: there is none of this number */
		uint32_t rkey; /* ALL is of PD 1, OTHER_PD of PD 2 */
		enum roce_wc_status status;
		enum roce_event event;
	} cases[] = {
#define INVALID ROCE_WC_REM_INV_REQ_ERR, ROCE_EVENT_QP_REQ_ERR
#define ACCESS ROCE_WC_REM_ACCESS_ERR, ROCE_EVENT_QP_ACCESS_ERR
		{ "SEND, no SRQ", ROCE_WR_SEND, -1, ALL, INVALID },
		{ "SEND, other XRCD", ROCE_WR_SEND, 2, ALL, INVALID },
		{ "WRITE, no SRQ", ROCE_WR_RDMA_WRITE, -1, ALL, INVALID },
		{ "WRITE, other XRCD", ROCE_WR_RDMA_WRITE, 2, ALL, INVALID },
		{ "READ, no SRQ", ROCE_WR_RDMA_READ, -1, ALL, INVALID },
		{ "READ, other XRCD", ROCE_WR_RDMA_READ, 2, ALL, INVALID },
		{ "atomic, no SRQ", ROCE_WR_ATOMIC_FETCH_AND_ADD, -1, ALL,
		  INVALID },
		{ "WRITE, PD", ROCE_WR_RDMA_WRITE, 1, ALL, ACCESS },
		{ "READ, PD", ROCE_WR_RDMA_READ, 0, OTHER_PD, ACCESS },
		{ "atomic, PD", ROCE_WR_ATOMIC_FETCH_AND_ADD, 1, ALL, ACCESS },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const enum roce_wc_status status[] = { cases[i].status };

		setup();
		for (int j = 0; j < 3; j++)
			sim_post_recv(srq[j], 0, 0, 64, ALL);
		post_xrc(cases[i].opcode, 64,
			 cases[i].srq < 0 ? 0x123456 : srq[cases[i].srq]->qpn,
			 4096, cases[i].rkey);
		sim_run(s.sim, SIM_LONG);
		expect_sends(cases[i].name, s.a, status, 1);
		CHECK(roce_qp_state(s.a->qp) == ROCE_QPS_ERR &&
			      roce_qp_state(s.b->qp) == ROCE_QPS_ERR,
		      "%s: states", cases[i].name);
		CHECK(!errors(s.a) && errors(s.b) == 1 &&
			      has_event(s.b, cases[i].event),
		      "%s: events", cases[i].name);
		for (int j = 0; j < 3; j++)
			CHECK(!srq[j]->next_recv && !srq[j]->num_recv_wcs,
			      "%s: SRQ %d", cases[i].name, j);
		sim_destroy(s.sim);
	}
}

/* The SRQ is there, but has nothing yet. */
static void test_rnr(void)
{
	static const enum roce_wc_status good[1];

	setup();
	post_xrc(ROCE_WR_SEND, 64, srq[1]->qpn, 0, 0);
	sim_run(s.sim, 1000000);
	CHECK(!s.a->num_send_wcs &&
		      roce_qp_counters(s.a->qp)->rnr_nak_retry_err,
	      "waits");
	sim_post_recv(srq[1], 3, 0x1000, 64, OTHER_PD);
	sim_run(s.sim, SIM_LONG);
	expect_sends("RNR", s.a, good, 1);
	expect_recv("RNR", srq[1], 0, 3, 64);
	sim_destroy(s.sim);
}

/* A message begins and cannot end: the SRQ's WQE is flushed, or it is gone. */
static void test_flush(bool gone)
{
	setup();
	sim_post_recv(srq[0], 3, 0, 8192, ALL);
	sim_post_recv(srq[0], 4, 0, 8192, ALL);
	s.sim->nodes[0].room = 2;
	post_xrc(ROCE_WR_SEND, LENGTH, srq[0]->qpn, 0, 0);
	sim_run(s.sim, 100000);
	CHECK(srq[0]->next_recv == 1 && !srq[0]->num_recv_wcs, "under way");
	if (gone) {
		srq[0]->xrcd = 0;
		s.sim->nodes[0].room = -1;
		sim_run(s.sim, SIM_LONG);
		CHECK(s.a->num_send_wcs == 1 &&
			      s.a->send_wcs[0].status ==
				      ROCE_WC_REM_INV_REQ_ERR &&
			      roce_qp_state(s.b->qp) == ROCE_QPS_ERR &&
			      !srq[0]->num_recv_wcs,
		      "SRQ is gone");
	} else {
		CHECK(!sim_modify(s.b, &s.attr, ROCE_QPS_ERR) &&
			      !sim_modify(s.a, &s.attr, ROCE_QPS_ERR),
		      "modify");
		sim_run(s.sim, SIM_LONG);
		CHECK(srq[0]->num_recv_wcs == 1 &&
			      srq[0]->recv_wcs[0].status ==
				      ROCE_WC_WR_FLUSH_ERR &&
			      srq[0]->recv_wcs[0].cookie == 3 &&
			      srq[0]->next_recv == 1 &&
			      has_event(s.b, ROCE_EVENT_QP_LAST_WQE_REACHED),
		      "flush of the target");
		CHECK(s.a->num_send_wcs == 1 && !s.a->num_events,
		      "flush of the initiator");
	}
	sim_destroy(s.sim);
}

/* ---- packets ---- */

static uint8_t seen[2][256]; /* opcodes, by the node that sent them */
static bool (*change)(uint8_t *bth);

static bool look(struct sim *sim, int from, uint8_t *data, size_t len)
{
	uint8_t *bth = data + ETH_IPV4_UDP, *ext = bth + BTH_BYTES;

	(void)sim;
	(void)len;
	seen[from][bth[0]]++;
	CHECK((bth[0] & 0xe0) == 0xa0, "opcode %02x", bth[0]);
	if (!from)
		CHECK(get_be32(ext) == srq[0]->qpn, "%02x: XRCETH %08x", bth[0],
		      get_be32(ext));
	if (!from && (bth[0] & 0x1f) == OP_WRITE_ONLY_IMM)
		CHECK(get_be64(ext + 4) == 0x1000 &&
			      get_be32(ext + 12) == ALL &&
			      get_be32(ext + 16) == 8 &&
			      get_be32(ext + 20) == 0x01020304 &&
			      len == ETH_IPV4_UDP + 12 + 24 + 8 + 4,
		      "WRITE with immediate");
	if (!from && (bth[0] & 0x1f) == OP_FETCH_ADD)
		CHECK(get_be64(ext + 4) == 0x1000 &&
			      get_be32(ext + 12) == ALL &&
			      get_be64(ext + 16) == 5 &&
			      len == ETH_IPV4_UDP + 12 + 32 + 4,
		      "atomic");
	return false;
}

static void test_packets(void)
{
	struct roce_send_wqe wqe;

	setup();
	memset(seen, 0, sizeof(seen));
	s.sim->filter = look;
	for (int i = 0; i < 2; i++)
		sim_post_recv(srq[0], i, 0, 8192, ALL);
	post_xrc(ROCE_WR_SEND, 3000, srq[0]->qpn, 0, 0);
	wqe = sim_wqe(s.a, ROCE_WR_RDMA_WRITE_WITH_IMM, 0, 8, 0x1000);
	/* The upper 8 bits are reserved: zero on the wire. */
	wqe.srqn = srq[0]->qpn | 0xff000000;
	memcpy(&wqe.imm_data, "\1\2\3\4", 4);
	sim_post_send(s.a, &wqe);
	sim_run(s.sim, SIM_LONG); /* or the READ's response is its ACK */
	post_xrc(ROCE_WR_RDMA_READ, 2000, srq[0]->qpn, 0, ALL);
	post_xrc(ROCE_WR_ATOMIC_FETCH_AND_ADD, 8, srq[0]->qpn, 0x1000, ALL);
	sim_run(s.sim, SIM_LONG);
	CHECK(s.a->num_send_wcs == 4 && !s.a->send_wcs[3].status, "sends");
	for (int op = 0xa0; op <= 0xa2; op++)
		CHECK(seen[0][op] == 1, "SEND: %02x", op);
	CHECK(seen[0][0xab] == 1 && seen[0][0xac] == 1 && seen[0][0xb4] == 1,
	      "requests");
	CHECK(seen[1][0xad] == 1 && seen[1][0xaf] == 1 && seen[1][0xb1] &&
		      seen[1][0xb2] == 1,
	      "responses");
	sim_destroy(s.sim);
}

/* Frames are changed in front of the peer's check of the ICRC. */
static bool tamper(struct sim *sim, int from, uint8_t *data, size_t len)
{
	struct packet pkt;
	struct header h;
	uint8_t buf[8192], *frame;
	uint32_t made;

	if (from || packet_parse_network(&pkt, data, len) != PARSE_OK ||
	    packet_parse_transport(&pkt) != PARSE_OK)
		return false;
	if (!change(data + ETH_IPV4_UDP))
		return false;
	h = (struct header){
		.smac = data + 6,
		.dmac = data,
		.sgid = pkt.sgid,
		.dgid = pkt.dgid,
		.opcode = data[ETH_IPV4_UDP],
		.ack_req = pkt.ack_req,
		.dest_qpn = pkt.dest_qpn,
		.psn = pkt.psn,
		.ext = data + ETH_IPV4_UDP + BTH_BYTES,
		.ext_len = pkt.payload - (data + ETH_IPV4_UDP + BTH_BYTES),
	};
	memcpy(buf + MAX_HEADER_BYTES, pkt.payload, pkt.payload_len);
	frame = packet_build(&h, buf + MAX_HEADER_BYTES, pkt.payload_len,
			     &made);
	CHECK(made == len, "length");
	roce_rx(sim->nodes[1].engine, sim->now, frame, len);
	return true;
}

static bool other_srq(uint8_t *bth)
{
	if (bth[0] != (SERVICE_XRC | OP_SEND_MIDDLE))
		return false;
	put_be32(bth + BTH_BYTES, srq[1]->qpn);
	return true;
}

static bool as_uc(uint8_t *bth)
{
	bth[0] = SERVICE_UC | OP_SEND_ONLY; /* the XRCETH is payload then */
	return true;
}

/* A message that changes its SRQ, and packets of the wrong kind. */
static void test_tampered(void)
{
	const struct roce_counters *c;

	setup();
	s.sim->filter = tamper;
	change = other_srq;
	for (int i = 0; i < 2; i++)
		sim_post_recv(srq[i], i, 0, 8192, ALL + i);
	post_xrc(ROCE_WR_SEND, LENGTH, srq[0]->qpn, 0, 0);
	sim_run(s.sim, SIM_LONG);
	CHECK(s.a->num_send_wcs == 1 &&
		      s.a->send_wcs[0].status == ROCE_WC_REM_INV_REQ_ERR &&
		      srq[0]->num_recv_wcs == 1 &&
		      srq[0]->recv_wcs[0].status == ROCE_WC_REM_INV_REQ_ERR &&
		      !srq[1]->next_recv,
	      "another SRQ");
	sim_destroy(s.sim);

	setup();
	s.sim->filter = tamper;
	change = as_uc;
	c = roce_counters(s.sim->nodes[1].engine);
	sim_post_recv(srq[0], 0, 0, 8192, ALL);
	post_xrc(ROCE_WR_SEND, 64, srq[0]->qpn, 0, 0);
	sim_run(s.sim, SIM_LONG);
	CHECK(s.a->send_wcs[0].status == ROCE_WC_RETRY_EXC_ERR &&
		      c->rx_no_qp == 8 && !srq[0]->next_recv,
	      "UC");
	sim_destroy(s.sim);
}

/* Each end is one half of a QP: two initiators, or a target that posts. */
static void test_halves(void)
{
	const struct roce_counters *c;

	setup();
	s.b = sim_qp(&s.sim->nodes[1], ROCE_QPT_XRC_SEND, NULL);
	s.a = sim_qp(&s.sim->nodes[0], ROCE_QPT_XRC_SEND, NULL);
	sim_connect(s.a, s.b, &s.attr);
	c = roce_counters(s.sim->nodes[1].engine);
	post_xrc(ROCE_WR_RDMA_WRITE, 64, srq[0]->qpn, 0, ALL);
	sim_run(s.sim, SIM_LONG);
	CHECK(s.a->num_send_wcs == 1 &&
		      s.a->send_wcs[0].status == ROCE_WC_RETRY_EXC_ERR &&
		      c->rx_no_qp == 8,
	      "two initiators");
	sim_destroy(s.sim);

	setup();
	post(s.b, ROCE_WR_SEND, 64);
	sim_run(s.sim, SIM_LONG);
	CHECK(!s.b->next_send && !s.sim->frames, "target sends");
	sim_destroy(s.sim);
}

int main(void)
{
	test_traffic(0);
	test_traffic(0.1);
	test_errors();
	test_rnr();
	test_flush(false);
	test_flush(true);
	test_packets();
	test_tampered();
	test_halves();
	return check_result();
}
