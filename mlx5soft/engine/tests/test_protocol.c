// SPDX-License-Identifier: GPL-2.0
/*
 * Packets that no correct peer would send, and duplicates.
 */
#include <string.h>

#include "craft.h"

static void inject(int to, const struct crafted *c)
{
	uint8_t frame[8192];
	size_t len = craft(frame, to, c);

	CHECK(roce_rx(sim->nodes[to].engine, sim->now, frame, len),
	      "not taken");
	sim_run(sim, 1000);
}

static bool answered(uint8_t op, uint8_t syndrome, uint32_t psn)
{
	struct packet pkt;

	return parse(&pkt, last[1], last_len[1]) == PARSE_OK && pkt.op == op &&
	       pkt.psn == (psn & PSN_MASK) && pkt.ext[0] == syndrome;
}

/* The last one of each row is an invalid request. */
static const struct {
	const char *name;
	struct crafted packets[3];
} invalid[] = {
	{ "SEND without first",
	  { { .opcode = OP_SEND_MIDDLE, .psn = PSN, .payload = MTU } } },
	{ "last without first",
	  { { .opcode = OP_WRITE_LAST, .psn = PSN, .payload = 4 } } },
	{ "WRITE in a SEND",
	  { { .opcode = OP_SEND_FIRST, .psn = PSN, .payload = MTU },
	    { .opcode = OP_WRITE_MIDDLE, .psn = PSN + 1, .payload = MTU } } },
	{ "READ in a SEND",
	  { { .opcode = OP_SEND_FIRST, .psn = PSN, .payload = MTU },
	    { .opcode = OP_READ_REQUEST, .psn = PSN + 1, RETH(0, 8) } } },
	{ "atomic in a WRITE",
	  { { .opcode = OP_WRITE_FIRST,
	      .psn = PSN,
	      RETH(0, 4000),
	      .payload = MTU },
	    { .opcode = OP_FETCH_ADD, .psn = PSN + 1, RETH(0, 8) } } },
	{ "first after first",
	  { { .opcode = OP_SEND_FIRST, .psn = PSN, .payload = MTU },
	    { .opcode = OP_SEND_FIRST, .psn = PSN + 1, .payload = MTU } } },
	{ "only after first",
	  { { .opcode = OP_WRITE_FIRST,
	      .psn = PSN,
	      RETH(0, 4000),
	      .payload = MTU },
	    { .opcode = OP_WRITE_ONLY,
	      .psn = PSN + 1,
	      RETH(0, 4),
	      .payload = 4 } } },
	{ "first too short",
	  { { .opcode = OP_SEND_FIRST, .psn = PSN, .payload = MTU - 4 } } },
	{ "first too long",
	  { { .opcode = OP_SEND_FIRST, .psn = PSN, .payload = MTU + 4 } } },
	{ "middle too short",
	  { { .opcode = OP_SEND_FIRST, .psn = PSN, .payload = MTU },
	    { .opcode = OP_SEND_MIDDLE, .psn = PSN + 1, .payload = MTU - 1 } } },
	{ "last of nothing",
	  { { .opcode = OP_SEND_FIRST, .psn = PSN, .payload = MTU },
	    { .opcode = OP_SEND_LAST, .psn = PSN + 1 } } },
	{ "only too long",
	  { { .opcode = OP_SEND_ONLY, .psn = PSN, .payload = MTU + 1 } } },
	{ "WRITE, more than said",
	  { { .opcode = OP_WRITE_ONLY, .psn = PSN, RETH(0, 8), .payload = 9 } } },
	{ "WRITE, less than said",
	  { { .opcode = OP_WRITE_ONLY, .psn = PSN, RETH(0, 8), .payload = 7 } } },
	{ "WRITE, first has it all",
	  { { .opcode = OP_WRITE_FIRST,
	      .psn = PSN,
	      RETH(0, MTU),
	      .payload = MTU } } },
	{ "WRITE, last too long",
	  { { .opcode = OP_WRITE_FIRST,
	      .psn = PSN,
	      RETH(0, MTU + 4),
	      .payload = MTU },
	    { .opcode = OP_WRITE_LAST, .psn = PSN + 1, .payload = 8 } } },
	{ "WRITE of too much",
	  { { .opcode = OP_WRITE_FIRST,
	      .psn = PSN,
	      RETH(0, 0x80000001),
	      .payload = MTU } } },
	{ "READ of too much",
	  { { .opcode = OP_READ_REQUEST, .psn = PSN, RETH(0, 0x80000001) } } },
};

static void test_invalid(void)
{
	for (size_t i = 0; i < sizeof(invalid) / sizeof(*invalid); i++) {
		int j = 0;

		setup(ROCE_QPT_RC, i & 1);
		sim_post_recv(b, 0, 0, 8192, 1000);
		for (; j < 3 && (!j || invalid[i].packets[j].psn); j++) {
			CHECK(!j || answered(OP_ACKNOWLEDGE, AETH_ACK,
					     PSN + j - 1),
			      "%s: packet %d", invalid[i].name, j - 1);
			inject(1, &invalid[i].packets[j]);
		}
		CHECK(answered(OP_ACKNOWLEDGE, AETH_NAK_INVALID_REQUEST,
			       PSN + j - 1) &&
			      roce_qp_state(b->qp) == ROCE_QPS_ERR,
		      "%s", invalid[i].name);
		CHECK(b->num_recv_wcs == 1 && b->recv_wcs[0].status, "%s",
		      invalid[i].name);
		sim_destroy(sim);
	}
	printf("%zu invalid requests\n", sizeof(invalid) / sizeof(*invalid));
}

static void test_sequence(void)
{
	const struct roce_qp_counters *c;

	setup(ROCE_QPT_RC, false);
	c = roce_qp_counters(b->qp);
	for (int i = 0; i < 5; i++)
		sim_post_recv(b, i, 0, 64, 1000);
	inject(1, &(struct crafted){
			  .opcode = OP_SEND_ONLY, .psn = PSN, .payload = 8 });
	CHECK(answered(OP_ACKNOWLEDGE, AETH_ACK, PSN), "ack");
	inject(1, &(struct crafted){ .opcode = OP_SEND_ONLY,
				     .psn = PSN + 3,
				     .payload = 8 });
	CHECK(answered(OP_ACKNOWLEDGE, AETH_NAK_SEQUENCE, PSN + 1), "nak");
	inject(1, &(struct crafted){ .opcode = OP_SEND_ONLY,
				     .psn = PSN + 2,
				     .payload = 8 });
	CHECK(count[1] == 2 && c->out_of_sequence == 2, "one NAK only");
	inject(1, &(struct crafted){ .opcode = OP_SEND_ONLY,
				     .psn = PSN + 1,
				     .payload = 8 });
	CHECK(answered(OP_ACKNOWLEDGE, AETH_ACK, PSN + 1), "ack");
	inject(1, &(struct crafted){
			  .opcode = OP_SEND_ONLY, .psn = PSN, .payload = 8 });
	CHECK(answered(OP_ACKNOWLEDGE, AETH_ACK, PSN + 1) &&
		      c->duplicate_request == 1 && b->num_recv_wcs == 2,
	      "duplicate");
	inject(1, &(struct crafted){ .opcode = OP_SEND_ONLY,
				     .psn = PSN + 4,
				     .payload = 8 });
	CHECK(answered(OP_ACKNOWLEDGE, AETH_NAK_SEQUENCE, PSN + 2), "again");
	CHECK(count[1] == 5, "%u answers", count[1]);
	sim_destroy(sim);
}

static void test_duplicates(void)
{
	struct crafted read = { .opcode = OP_READ_REQUEST,
				.psn = PSN,
				RETH(4096, 5000) };
	struct crafted add = {
		.opcode = OP_FETCH_ADD, .psn = PSN + 5, RETH(8, 0), .add = 5
	};
	const struct roce_qp_counters *c;
	uint64_t value = 100;

	setup(ROCE_QPT_RC, false);
	c = roce_qp_counters(b->qp);
	memcpy(sim->nodes[1].mem + 8, &value, 8);
	inject(1, &read);
	CHECK(count[1] == 5 &&
		      answered(OP_READ_RESPONSE_LAST, AETH_ACK, PSN + 4),
	      "READ");
	inject(1, &add);
	CHECK(answered(OP_ATOMIC_ACKNOWLEDGE, AETH_ACK, PSN + 5), "add");
	/* from the beginning, from the middle, the last one */
	inject(1, &read);
	CHECK(count[1] == 11, "all again");
	read.psn += 3;
	read.addr += 3 * MTU;
	read.len -= 3 * MTU;
	inject(1, &read);
	CHECK(count[1] == 13 &&
		      answered(OP_READ_RESPONSE_LAST, AETH_ACK, PSN + 4),
	      "the rest");
	read.psn++;
	read.addr += MTU;
	read.len -= MTU;
	inject(1, &read);
	CHECK(count[1] == 14 &&
		      answered(OP_READ_RESPONSE_LAST, AETH_ACK, PSN + 4),
	      "the last");
	/* not what was asked for then */
	read.len++;
	inject(1, &read);
	read.len--;
	read.addr++;
	inject(1, &read);
	read.addr--;
	read.rkey++;
	inject(1, &read);
	CHECK(count[1] == 14 && c->rx_dropped == 3, "another one");
	/* the atomic is answered again, and not done again */
	add.add = 1000;
	inject(1, &add);
	memcpy(&value, sim->nodes[1].mem + 8, 8);
	CHECK(count[1] == 15 &&
		      answered(OP_ATOMIC_ACKNOWLEDGE, AETH_ACK, PSN + 5) &&
		      last[1][last_len[1] - 5] == 100 && value == 105,
	      "value %d", (int)value);
	add.opcode = OP_READ_REQUEST;
	inject(1, &add);
	add.opcode = OP_FETCH_ADD;
	add.psn = PSN - 1;
	inject(1, &add);
	CHECK(count[1] == 15 && c->rx_dropped == 5 &&
		      c->duplicate_request == 9 && c->rx_read_requests == 1 &&
		      c->rx_atomic_requests == 1,
	      "%d dropped", (int)c->rx_dropped);
	/* a late duplicate of the oldest: who asks for more has its answer */
	read = (struct crafted){ .opcode = OP_READ_REQUEST, RETH(0, 8) };
	for (read.psn = PSN + 6; read.psn < PSN + 10; read.psn++)
		inject(1, &read);
	CHECK(count[1] == 19, "%u answers", count[1]);
	sim->nodes[1].room = 0;
	read.psn = PSN + 6;
	inject(1, &read);
	read.psn = PSN + 10;
	inject(1, &read);
	sim->nodes[1].room = -1;
	sim_run(sim, 1000);
	CHECK(count[1] == 20 && roce_qp_state(b->qp) == ROCE_QPS_RTS &&
		      answered(OP_READ_RESPONSE_ONLY, AETH_ACK, PSN + 10),
	      "%u answers", count[1]);
	/* more at once than there are resources for */
	sim->nodes[1].room = 0;
	for (read.psn = PSN + 11; read.psn < PSN + 16; read.psn++)
		inject(1, &read);
	sim->nodes[1].room = -1;
	sim_run(sim, 1000);
	CHECK(count[1] == 25 && roce_qp_state(b->qp) == ROCE_QPS_ERR &&
		      answered(OP_ACKNOWLEDGE, AETH_NAK_INVALID_REQUEST,
			       PSN + 15),
	      "too many");
	sim_destroy(sim);
}

/* Answers that are still to be sent when more requests come. */
static void test_pending(void)
{
	struct crafted read = { .opcode = OP_READ_REQUEST,
				.psn = PSN + 1,
				RETH(4096, 3000) };
	struct crafted write = {
		.opcode = OP_WRITE_ONLY, .psn = PSN, RETH(0, 8), .payload = 8
	};

	/* The READ response acknowledges the WRITE. */
	setup(ROCE_QPT_RC, false);
	sim->nodes[1].room = 0;
	inject(1, &write);
	inject(1, &read);
	inject(1, &read); /* its response is on its way */
	sim->nodes[1].room = 1;
	sim_run(sim, 1000);
	CHECK(answered(OP_READ_RESPONSE_FIRST, AETH_ACK, PSN + 1), "first");
	read.psn += 2;
	read.addr += 2 * MTU;
	read.len -= 2 * MTU;
	inject(1, &read); /* not sent yet */
	sim->nodes[1].room = -1;
	sim_run(sim, 1000);
	CHECK(count[1] == 3, "%u answers", count[1]);
	/* several requests, one ACK; a duplicate among them changes nothing */
	sim->nodes[1].room = 0;
	for (uint32_t i = 4; i < 8; i++) {
		write.psn = PSN + i;
		inject(1, &write);
	}
	write.psn = PSN + 5;
	inject(1, &write);
	sim->nodes[1].room = -1;
	sim_run(sim, 1000);
	CHECK(count[1] == 4 && answered(OP_ACKNOWLEDGE, AETH_ACK, PSN + 7),
	      "%u answers", count[1]);
	sim_destroy(sim);
}

/*
 * What was missing comes before the NAK is away. The peer hears of what was
 * dropped behind it all the same; when that has come as well, of an ACK.
 */
static void test_missing_comes(void)
{
	static const struct {
		const char *psns; /* which come, in this order */
		uint8_t syndrome;
		uint32_t psn;
	} rows[] = {
		{ "10", AETH_NAK_SEQUENCE, 1 },
		{ "3210", AETH_NAK_SEQUENCE, 1 },
		{ "201", AETH_NAK_SEQUENCE, 2 },
		{ "1021", AETH_NAK_SEQUENCE, 2 },
		{ "101", AETH_ACK, 1 },
		{ "21012", AETH_ACK, 2 },
	};

	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(*rows); i++) {
		struct crafted write = { .opcode = OP_WRITE_ONLY,
					 RETH(0, 8),
					 .payload = 8,
					 .quiet = i & 1 };

		setup(ROCE_QPT_RC, false);
		sim->nodes[1].room = 0;
		for (const char *n = rows[i / 2].psns; *n; n++) {
			write.psn = PSN + *n - '0';
			inject(1, &write);
		}
		sim->nodes[1].room = -1;
		sim_run(sim, 1000);
		CHECK(count[1] == 1 &&
			      answered(OP_ACKNOWLEDGE, rows[i / 2].syndrome,
				       PSN + rows[i / 2].psn),
		      "%s, quiet %d: %u answers", rows[i / 2].psns, write.quiet,
		      count[1]);
		sim_destroy(sim);
	}
}

/* ...and so it is when it was a READ, or what had found no receive WQE. */
static void test_missing_read(void)
{
	struct crafted read = { .opcode = OP_READ_REQUEST,
				.psn = PSN,
				RETH(0, 2 * MTU) };
	struct crafted send = { .opcode = OP_SEND_ONLY,
				.psn = PSN + 2,
				.payload = 8 };

	setup(ROCE_QPT_RC, false);
	sim->nodes[1].room = 0;
	inject(1, &send);
	inject(1, &read);
	sim->nodes[1].room = 2;
	sim_run(sim, 1000);
	CHECK(answered(OP_READ_RESPONSE_LAST, AETH_ACK, PSN + 1), "READ");
	sim->nodes[1].room = -1;
	sim_run(sim, 1000);
	CHECK(answered(OP_ACKNOWLEDGE, AETH_NAK_SEQUENCE, PSN + 2), "READ");
	sim->nodes[1].room = 0;
	inject(1, &send);
	send.psn++;
	inject(1, &send);
	sim_post_recv(b, 0, 0, 64, 1000);
	send.psn--;
	inject(1, &send);
	sim->nodes[1].room = -1;
	sim_run(sim, 1000);
	CHECK(answered(OP_ACKNOWLEDGE, AETH_NAK_SEQUENCE, PSN + 3) &&
		      count[1] == 4,
	      "RNR: %u answers", count[1]);
	sim_destroy(sim);
}

/* Responses leave in the order of their PSNs, wherever in the ring they are. */
static void test_order(uint32_t size)
{
	struct roce_qp_attr attr = { .state = ROCE_QPS_SQD,
				     .max_dest_rd_atomic = size };
	struct crafted read = { .opcode = OP_READ_REQUEST, RETH(0, 8) };

	setup(ROCE_QPT_RC, false);
	CHECK(!roce_qp_modify(b->qp, &attr, ROCE_QP_STATE) &&
		      !roce_qp_modify(b->qp, &attr, ROCE_QP_MAX_DEST_RD_ATOMIC),
	      "modify");
	/* round once, to the second */
	for (read.psn = PSN; read.psn < PSN + size + 1; read.psn++)
		inject(1, &read);
	CHECK(count[1] == size + 1, "%u of %u", count[1], size + 1);
	/* all but the oldest, then that, too */
	sim->nodes[1].room = 0;
	for (uint32_t n = 1; n < size; n++, read.psn++)
		inject(1, &read);
	read.psn = PSN + size;
	inject(1, &read);
	for (uint32_t n = 0; n < size; n++, read.psn++) {
		sim->nodes[1].room = 1;
		sim_run(sim, 1000);
		CHECK(answered(OP_READ_RESPONSE_ONLY, AETH_ACK,
			       read.psn & PSN_MASK),
		      "%u of %u", n, size);
	}
	sim->nodes[1].room = -1;
	sim_run(sim, 1000);
	CHECK(count[1] == 2 * size + 1, "%u of %u", count[1], 2 * size + 1);
	sim_destroy(sim);
}

/* Answers that the requester did not ask for; a READ and a WRITE are out. */
static const struct {
	const char *name;
	struct crafted packet;
	enum roce_wc_status status; /* of the first WQE; success: no effect */
} answers[] = {
	{ "ACK of what is not sent",
	  { .opcode = OP_ACKNOWLEDGE, .psn = PSN + 4, .syndrome = 31 },
	  0 },
	{ "ACK of the past",
	  { .opcode = OP_ACKNOWLEDGE, .psn = PSN - 1, .syndrome = 31 },
	  0 },
	{ "ACK within a READ",
	  { .opcode = OP_ACKNOWLEDGE, .psn = PSN, .syndrome = 31 },
	  0 },
	{ "NAK of what is not sent",
	  { .opcode = OP_ACKNOWLEDGE, .psn = PSN + 4, .syndrome = 0x62 },
	  0 },
	{ "NAK behind a READ",
	  { .opcode = OP_ACKNOWLEDGE, .psn = PSN + 1, .syndrome = 0x62 },
	  0 },
	{ "reserved type",
	  { .opcode = OP_ACKNOWLEDGE, .psn = PSN, .syndrome = 0x40 },
	  0 },
	{ "atomic response",
	  { .opcode = OP_ATOMIC_ACKNOWLEDGE, .psn = PSN, .syndrome = 31 },
	  0 },
	{ "READ response of a WRITE",
	  { .opcode = OP_READ_RESPONSE_ONLY,
	    .psn = PSN + 3,
	    .syndrome = 31,
	    .payload = 64 },
	  0 },
	{ "READ response with NAK",
	  { .opcode = OP_READ_RESPONSE_FIRST,
	    .psn = PSN,
	    .syndrome = 0x61,
	    .payload = MTU },
	  0 },
	{ "reserved NAK",
	  { .opcode = OP_ACKNOWLEDGE, .psn = PSN, .syndrome = 0x65 },
	  ROCE_WC_BAD_RESP_ERR },
	{ "invalid request",
	  { .opcode = OP_ACKNOWLEDGE, .psn = PSN, .syndrome = 0x61 },
	  ROCE_WC_REM_INV_REQ_ERR },
	{ "remote access",
	  { .opcode = OP_ACKNOWLEDGE, .psn = PSN, .syndrome = 0x62 },
	  ROCE_WC_REM_ACCESS_ERR },
	{ "remote operation",
	  { .opcode = OP_ACKNOWLEDGE, .psn = PSN, .syndrome = 0x63 },
	  ROCE_WC_REM_OP_ERR },
	{ "response too early its end",
	  { .opcode = OP_READ_RESPONSE_LAST,
	    .psn = PSN,
	    .syndrome = 31,
	    .payload = MTU },
	  ROCE_WC_BAD_RESP_ERR },
	{ "response too short",
	  { .opcode = OP_READ_RESPONSE_FIRST,
	    .psn = PSN,
	    .syndrome = 31,
	    .payload = 4 },
	  ROCE_WC_LOC_LEN_ERR },
	{ "response too long",
	  { .opcode = OP_READ_RESPONSE_FIRST,
	    .psn = PSN,
	    .syndrome = 31,
	    .payload = 4096 },
	  ROCE_WC_LOC_LEN_ERR },
};

static void test_answers(void)
{
	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
		struct roce_send_wqe wqe;

		setup(ROCE_QPT_RC, false);
		swallow[0] = true;
		wqe = sim_wqe(a, ROCE_WR_RDMA_READ, 0, 3 * MTU, 0);
		sim_post_send(a, &wqe);
		wqe = sim_wqe(a, ROCE_WR_RDMA_WRITE, 0, 64, 0);
		sim_post_send(a, &wqe);
		sim_run(sim, 1000);
		inject(0, &answers[i].packet);
		if (answers[i].status)
			CHECK(a->num_send_wcs == 2 &&
				      a->send_wcs[0].status ==
					      answers[i].status &&
				      roce_qp_state(a->qp) == ROCE_QPS_ERR,
			      "%s", answers[i].name);
		else
			CHECK(!a->num_send_wcs &&
				      roce_qp_state(a->qp) == ROCE_QPS_RTS,
			      "%s", answers[i].name);
		sim_destroy(sim);
	}
	printf("%zu answers\n", sizeof(answers) / sizeof(*answers));
}

/* ---- what the requester sends, and when ---- */

static void post(enum roce_wr_opcode opcode, uint32_t len, uint32_t flags)
{
	struct roce_send_wqe wqe = sim_wqe(a, opcode, 0, len, 0);

	wqe.flags |= flags;
	sim_post_send(a, &wqe);
	sim_run(sim, 1000);
}

static void acknowledge(uint8_t syndrome, uint32_t psn)
{
	inject(0, &(struct crafted){ .opcode = OP_ACKNOWLEDGE,
				     .psn = psn,
				     .syndrome = syndrome });
}

static void test_limits(void)
{
	/* 4 READs at once, and a fence waits for all of them */
	setup(ROCE_QPT_RC, false);
	swallow[0] = true;
	for (int i = 0; i < 6; i++)
		post(ROCE_WR_RDMA_READ, 8, 0);
	CHECK(count[0] == 4, "%u READs", count[0]);
	sim_destroy(sim);
	for (int fence = 0; fence < 2; fence++) {
		setup(ROCE_QPT_RC, false);
		swallow[0] = true;
		post(ROCE_WR_RDMA_READ, 8, 0);
		post(ROCE_WR_RDMA_WRITE, 8, fence ? ROCE_SEND_FENCE : 0);
		CHECK(count[0] == 2U - fence, "fence %d: %u", fence, count[0]);
		inject(0, &(struct crafted){ .opcode = OP_READ_RESPONSE_ONLY,
					     .psn = PSN,
					     .syndrome = 31,
					     .payload = 8 });
		CHECK(count[0] == 2 && a->num_send_wcs == 1, "after it");
		sim_destroy(sim);
	}

	/* 128 packets without ACK, however many a READ has had */
	setup(ROCE_QPT_RC, false);
	post(ROCE_WR_RDMA_READ, 100 * MTU, 0);
	sim_run(sim, SIM_LONG);
	CHECK(a->num_send_wcs == 1, "READ");
	swallow[0] = true;
	post(ROCE_WR_RDMA_WRITE, 500 * MTU, 0);
	CHECK(count[0] == 1 + 128, "%u packets", count[0]);
	acknowledge(31, PSN + 100 + 9);
	CHECK(count[0] == 1 + 138, "%u packets", count[0]);
	sim_destroy(sim);

	/* and a READ that is under way does not count */
	setup(ROCE_QPT_RC, false);
	swallow[0] = true;
	post(ROCE_WR_RDMA_READ, 400 * MTU, 0);
	post(ROCE_WR_RDMA_WRITE, 500 * MTU, 0);
	CHECK(count[0] == 1 + 128, "%u packets", count[0]);
	sim_destroy(sim);
}

static void test_steps_back(void)
{
	const struct roce_qp_counters *c;

	/* The ACK of a WRITE behind a READ: its response was lost. */
	setup(ROCE_QPT_RC, false);
	c = roce_qp_counters(a->qp);
	swallow[0] = true;
	post(ROCE_WR_RDMA_WRITE, 8, 0);
	post(ROCE_WR_RDMA_READ, 8, 0);
	post(ROCE_WR_RDMA_WRITE, 8, 0);
	acknowledge(31, PSN + 2);
	CHECK(a->num_send_wcs == 1 && count[0] == 5 && c->retransmits == 2 &&
		      c->implied_nak_seq_err == 1,
	      "implied NAK: %u packets", count[0]);
	acknowledge(31, PSN + 2);
	CHECK(count[0] == 5, "only once");
	sim_destroy(sim);

	/* While it sends again, the late ACK of all comes. */
	setup(ROCE_QPT_RC, false);
	swallow[0] = true;
	post(ROCE_WR_RDMA_WRITE, 10 * MTU, 0);
	sim->nodes[0].room = 2;
	acknowledge(AETH_NAK_SEQUENCE, PSN + 3);
	CHECK(count[0] == 12, "%u packets", count[0]);
	acknowledge(31, PSN + 9);
	CHECK(a->num_send_wcs == 1, "completion");
	sim->nodes[0].room = -1;
	post(ROCE_WR_RDMA_WRITE, 8, 0);
	CHECK(count[0] == 13 && roce_qp_counters(a->qp)->retransmits == 2,
	      "%u packets", count[0]);
	acknowledge(31, PSN + 10);
	CHECK(a->num_send_wcs == 2, "completions");
	sim_destroy(sim);

	/* A NAK acknowledges what is before it; a duplicate of it nothing. */
	setup(ROCE_QPT_RC, false);
	swallow[0] = true;
	for (int i = 0; i < 4; i++)
		post(ROCE_WR_RDMA_WRITE, 8, 0);
	acknowledge(AETH_NAK_SEQUENCE, PSN + 2);
	CHECK(a->num_send_wcs == 2 && count[0] == 6, "%u packets", count[0]);
	acknowledge(AETH_NAK_SEQUENCE, PSN + 2);
	CHECK(a->num_send_wcs == 2 && count[0] == 6, "%u packets", count[0]);
	sim_destroy(sim);
}

/*
 * It sends again, and its turn ends in front of a NOP, when the late ACK of all
 * comes: what is behind the NOP is done as well.
 */
static void test_late_ack_at_nop(void)
{
	const struct crafted nak = { .opcode = OP_ACKNOWLEDGE,
				     .psn = PSN,
				     .syndrome = AETH_NAK_SEQUENCE };
	uint8_t frame[8192];
	size_t len;

	config.budget = 16;
	setup(ROCE_QPT_RC, false);
	config.budget = 0;
	swallow[0] = true;
	post(ROCE_WR_RDMA_WRITE, 16 * MTU, 0);
	post(ROCE_WR_LOCAL, 0, 0);
	post(ROCE_WR_RDMA_WRITE, 8, 0);
	len = craft(frame, 0, &nak);
	roce_rx(sim->nodes[0].engine, sim->now, frame, len);
	roce_tick(sim->nodes[0].engine, sim->now);
	CHECK(count[0] == 17 + 16, "%u packets", count[0]);
	acknowledge(31, PSN + 16);
	CHECK(a->num_send_wcs == 3, "%u completions", a->num_send_wcs);
	post(ROCE_WR_RDMA_WRITE, 8, 0);
	CHECK(count[0] == 17 + 16 + 1, "%u packets", count[0]);
	acknowledge(31, PSN + 17);
	CHECK(a->num_send_wcs == 4, "%u completions", a->num_send_wcs);
	sim_destroy(sim);
}

int main(void)
{
	test_invalid();
	test_sequence();
	test_duplicates();
	test_pending();
	test_missing_comes();
	test_missing_read();
	test_order(4);
	test_order(ROCE_MAX_RD_ATOMIC);
	test_answers();
	test_limits();
	test_steps_back();
	test_late_ack_at_nop();
	return check_result();
}
