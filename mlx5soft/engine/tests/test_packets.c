// SPDX-License-Identifier: GPL-2.0
/*
 * Packets byte by byte, and packets that no correct peer would send.
 */
#include <stdlib.h>
#include <string.h>

#include "packet.h"
#include "sim.h"

#define MTU 1024
#define PSN 0xfffff0

/* CRC-32 as the specification draws it, and not as zlib computes it. */
static uint32_t crc32_bits(uint32_t crc, const uint8_t *p, size_t n)
{
	while (n--) {
		crc ^= *p++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return crc;
}

static uint32_t icrc(const uint8_t *frame, size_t len)
{
	static const uint8_t ones[8] = { 0xff, 0xff, 0xff, 0xff,
					 0xff, 0xff, 0xff, 0xff };
	uint8_t m[8192], *ip = m + 14, *udp;

	memcpy(m, frame, len);
	if (ip[0] >> 4 == 4) {
		udp = ip + 20;
		ip[1] = ip[8] = ip[10] = ip[11] = 0xff;
	} else {
		udp = ip + 40;
		ip[0] |= 0xf;
		ip[1] = ip[2] = ip[3] = ip[7] = 0xff;
	}
	udp[6] = udp[7] = 0xff;
	udp[8 + 4] = 0xff;
	return ~crc32_bits(crc32_bits(~0U, ones, 8), ip, len - 14);
}

static size_t from_hex(const char *hex, uint8_t *out)
{
	size_t n = 0;

	for (unsigned int v; sscanf(hex, " %2x", &v) == 1; n++) {
		out[n] = v;
		hex += strspn(hex, " ");
		hex += 2;
	}
	return n;
}

static enum parse_result parse(struct packet *pkt, const uint8_t *data,
			       size_t len)
{
	enum parse_result res = packet_parse_network(pkt, data, len);

	return res == PARSE_OK ? packet_parse_transport(pkt) : res;
}

/*
 * From dissector/test/roce-pcap, that has its own ICRC, and is what tshark
 * reads and rdma_rxe accepts.
 */
static const struct {
	const char *hex;
	uint8_t op;
	uint32_t qpn, psn, len;
} golden[] = {
	{ "52 54 00 00 00 02 52 54 00 00 00 01 08 00 45 00 00 3c 00 00 40 00"
	  "40 11 26 af 0a 00 00 01 0a 00 00 02 c0 01 12 b7 00 28 00 00 04 00"
	  "ff ff 00 00 00 12 80 00 00 64 00 01 02 03 04 05 06 07 08 09 0a 0b"
	  "0c 0d 0e 0f 6b 66 b2 06",
	  OP_SEND_ONLY, 0x12, 100, 16 },
	{ "52 54 00 00 00 02 52 54 00 00 00 01 08 00 45 00 00 30 00 00 40 00"
	  "40 11 26 bb 0a 00 00 02 0a 00 00 01 c0 01 12 b7 00 1c 00 00 11 00"
	  "ff ff 00 00 00 11 00 00 00 64 1f 00 00 00 67 da 7d 20",
	  OP_ACKNOWLEDGE, 0x11, 100, 0 },
	{ "52 54 00 00 00 02 52 54 00 00 00 01 86 dd 60 00 00 00 00 28 11 40"
	  "fd 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01 fd 00 00 00 00 00"
	  "00 00 00 00 00 00 00 00 00 02 c0 01 12 b7 00 28 00 00 04 00 ff ff"
	  "00 00 00 77 80 ff ff f0 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d"
	  "0e 0f 9d c2 84 29",
	  OP_SEND_ONLY, 0x77, 0xfffff0, 16 },
};

static void test_golden(void)
{
	for (int i = 0; i < 3; i++) {
		uint8_t good[256], *data;
		size_t len = from_hex(golden[i].hex, good);
		struct packet pkt;
		int bad = 0;

		CHECK(parse(&pkt, good, len) == PARSE_OK &&
			      pkt.op == golden[i].op &&
			      pkt.dest_qpn == golden[i].qpn &&
			      pkt.psn == golden[i].psn &&
			      pkt.payload_len == golden[i].len,
		      "golden packet %d", i);
		/* each bit matters, but for those that routers may change */
		for (size_t bit = 14 * 8; bit < len * 8; bit++) {
			good[bit / 8] ^= 1 << bit % 8;
			bad += parse(&pkt, good, len) != PARSE_OK;
			good[bit / 8] ^= 1 << bit % 8;
		}
		/* UDP checksum, reserved byte; IPv6: class, label, hops */
		CHECK((size_t)bad == (len - 14) * 8 - 24 - (i == 2 ? 36 : 0),
		      "%d bits of %zu", bad, (len - 14) * 8);
		/* shorter ones: an address sanitizer looks at the ends */
		for (size_t n = 0; n < len; n++) {
			data = malloc(n + !n);
			memcpy(data, good, n);
			CHECK(parse(&pkt, data, n) != PARSE_OK, "%zu bytes", n);
			free(data);
		}
	}
}

/* ---- what the engine sends ---- */

static struct sim *sim;
static struct sim_qp *a, *b;
static uint8_t last[2][8192];
static size_t last_len[2];
static uint32_t count[2];
static bool swallow[2];

static bool capture(struct sim *s, int from, uint8_t *data, size_t len)
{
	uint32_t crc = icrc(data, len - 4);
	uint8_t want[4] = { crc, crc >> 8, crc >> 16, crc >> 24 };

	(void)s;
	CHECK(!memcmp(want, data + len - 4, 4), "ICRC");
	memcpy(last[from], data, len);
	last_len[from] = len;
	count[from]++;
	return swallow[from];
}

static void setup(enum roce_qp_type type, bool ipv6)
{
	struct roce_qp_attr attr;

	sim = sim_create(1 << 20, NULL);
	sim->ipv6 = ipv6;
	sim->filter = capture;
	a = sim_qp(&sim->nodes[0], type, NULL);
	b = sim_qp(&sim->nodes[1], type, NULL);
	sim_attributes(sim, &attr, 0, 0);
	attr.timeout = 0;
	sim_connect(a, b, &attr);
	for (int i = 0; i < 65536; i++)
		sim->nodes[0].mem[i] = i;
	last_len[0] = last_len[1] = 0;
	count[0] = count[1] = 0;
	swallow[0] = swallow[1] = false;
}

static void expect_frame(const char *name, int from, const char *hex)
{
	uint8_t want[256];
	size_t len = from_hex(hex, want);

	if (len == last_len[from] && !memcmp(want, last[from], len))
		return;
	CHECK(false, "%s: another frame:", name);
	for (size_t i = 0; i < last_len[from]; i++)
		fprintf(stderr, "%02x%s", last[from][i],
			i % 22 == 21 ? "\n" : " ");
	fprintf(stderr, "\n");
}

/* checked with tshark */
#define SEND_FRAME                                                          \
	"52 54 00 00 00 02 52 54 00 00 00 01 08 00 45 00 00 38 00 00 40 00" \
	"40 11 26 b3 0a 00 00 01 0a 00 00 02 c8 d5 12 b7 00 24 00 00 05 f0" \
	"ff ff 00 00 00 77 80 ff ff f0 11 22 33 44 00 01 02 03 04 00 00 00" \
	"17 ec 10 11"
#define ACK_FRAME                                                           \
	"52 54 00 00 00 01 52 54 00 00 00 02 08 00 45 00 00 30 00 00 40 00" \
	"40 11 26 bb 0a 00 00 02 0a 00 00 01 c8 d5 12 b7 00 1c 00 00 11 40" \
	"ff ff 00 00 00 13 00 ff ff f0 1f 00 00 01 17 e9 7e 3c"
#define SWAP_FRAME                                                          \
	"52 54 00 00 00 02 52 54 00 00 00 01 08 00 45 00 00 48 00 00 40 00" \
	"40 11 26 a3 0a 00 00 01 0a 00 00 02 c8 d5 12 b7 00 34 00 00 13 40" \
	"ff ff 00 00 00 77 80 ff ff f1 00 00 00 00 00 00 10 00 00 00 03 e8" \
	"11 12 13 14 15 16 17 18 01 02 03 04 05 06 07 08 fd eb 13 aa"
#define ATOMIC_ACK_FRAME                                                    \
	"52 54 00 00 00 01 52 54 00 00 00 02 08 00 45 00 00 38 00 00 40 00" \
	"40 11 26 b3 0a 00 00 02 0a 00 00 01 c8 d5 12 b7 00 24 00 00 12 40" \
	"ff ff 00 00 00 13 00 ff ff f1 1f 00 00 02 01 02 03 04 05 06 07 08" \
	"06 60 88 b7"
#define WRITE_FRAME                                                         \
	"52 54 00 00 00 02 52 54 00 00 00 01 86 dd 60 00 00 00 00 30 11 40" \
	"fd 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01 fd 00 00 00 00 00" \
	"00 00 00 00 00 00 00 00 00 02 c8 d5 12 b7 00 30 00 00 0a 40 ff ff" \
	"00 00 00 77 80 ff ff f0 00 00 00 00 00 00 10 00 00 00 03 e8 00 00" \
	"00 08 00 01 02 03 04 05 06 07 66 85 19 cf"
#define UD_FRAME                                                            \
	"52 54 00 00 00 02 52 54 00 00 00 01 08 00 45 6a 00 3c 00 00 40 00" \
	"03 11 63 45 0a 00 00 01 0a 00 00 02 d0 00 12 b7 00 28 00 00 64 60" \
	"ff ff 00 00 00 77 00 ff ff f0 01 02 03 04 00 00 00 13 00 01 02 03" \
	"04 05 00 00 24 d4 4d 2e"

static void test_frames(void)
{
	struct roce_send_wqe wqe;

	setup(ROCE_QPT_RC, false);
	wqe = sim_wqe(a, ROCE_WR_SEND_WITH_IMM, 0, 5, 0);
	memcpy(&wqe.imm_data, "\x11\x22\x33\x44", 4);
	wqe.flags |= ROCE_SEND_SOLICITED;
	sim_post_recv(b, 0, 0, 64, 1000);
	sim_post_send(a, &wqe);
	sim_run(sim, SIM_LONG);
	expect_frame("SEND", 0, SEND_FRAME);
	expect_frame("ACK", 1, ACK_FRAME);
	wqe = sim_wqe(a, ROCE_WR_ATOMIC_CMP_AND_SWP, 0, 8, 0x1000);
	wqe.compare_add = 0x0102030405060708;
	wqe.swap = 0x1112131415161718;
	memcpy(sim->nodes[1].mem + 0x1000, &wqe.compare_add, 8);
	sim_post_send(a, &wqe);
	sim_run(sim, SIM_LONG);
	expect_frame("swap", 0, SWAP_FRAME);
	expect_frame("atomic ACK", 1, ATOMIC_ACK_FRAME);
	sim_destroy(sim);

	setup(ROCE_QPT_RC, true);
	wqe = sim_wqe(a, ROCE_WR_RDMA_WRITE, 0, 8, 0x1000);
	sim_post_send(a, &wqe);
	sim_run(sim, SIM_LONG);
	expect_frame("WRITE", 0, WRITE_FRAME);
	sim_destroy(sim);

	setup(ROCE_QPT_UD, false);
	wqe = sim_wqe(a, ROCE_WR_SEND, 0, 6, 0);
	wqe.remote_qpn = b->qpn;
	wqe.remote_qkey = 0x01020304;
	sim_address(sim, 1, &wqe.av);
	wqe.av.udp_sport = 0xd000;
	wqe.av.tclass = 0x6a;
	wqe.av.hop_limit = 3;
	sim_post_send(a, &wqe);
	sim_run(sim, SIM_LONG);
	expect_frame("UD", 0, UD_FRAME);
	sim_destroy(sim);
}

/* ---- what others send ---- */

struct crafted {
	uint8_t opcode;
	uint32_t psn;
	uint64_t addr;
	uint32_t rkey, len; /* of the RETH */
	uint32_t payload;
	uint8_t syndrome;
	uint64_t add, compare;
};

#define RETH(a, n) .addr = (a), .rkey = 1000, .len = (n)

static size_t craft(uint8_t *frame, int to, const struct crafted *c)
{
	static uint8_t zeros[8192];
	uint32_t flags = packet_flags(c->opcode), head, tail_len;
	struct iovec iov = { zeros, c->payload };
	struct roce_av src, dst;
	uint8_t ext[64] = { 0 }, tail[8];
	struct header h = { .ext = ext };

	sim_address(sim, !to, &src);
	sim_address(sim, to, &dst);
	h.smac = src.dmac;
	h.sgid = src.dgid;
	h.dmac = dst.dmac;
	h.dgid = dst.dgid;
	h.opcode = c->opcode;
	h.ack_req = true;
	h.psn = c->psn & PSN_MASK;
	h.dest_qpn = to ? b->qpn : a->qpn;
	if (flags & PKT_RETH || flags & PKT_ATOMICETH) {
		put64(ext, c->addr);
		put32(ext + 8, c->rkey);
		put32(ext + 12, c->len);
		h.ext_len = RETH_BYTES;
	}
	if (flags & PKT_ATOMICETH) {
		put64(ext + 12, c->add);
		put64(ext + 20, c->compare);
		h.ext_len = ATOMICETH_BYTES;
	}
	if (flags & PKT_AETH) {
		ext[0] = c->syndrome;
		h.ext_len = AETH_BYTES;
	}
	if (flags & PKT_ATOMICACKETH)
		h.ext_len += ATOMICACKETH_BYTES;
	if (flags & (PKT_IMM | PKT_INV))
		h.ext_len += IMM_BYTES;
	packet_build(&h, &iov, 1, c->payload, frame, &head, tail, &tail_len);
	memcpy(frame + head, zeros, c->payload);
	memcpy(frame + head + c->payload, tail, tail_len);
	return head + c->payload + tail_len;
}

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
		      answered(OP_READ_RESPONSE_ONLY, AETH_ACK, PSN + 4),
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
	/* more at once than there are resources for */
	sim->nodes[1].room = 0;
	for (int i = 0; i < 5; i++)
		inject(1, &(struct crafted){ .opcode = OP_READ_REQUEST,
					     .psn = PSN + 6 + i,
					     RETH(0, 8) });
	sim->nodes[1].room = -1;
	sim_run(sim, 1000);
	CHECK(count[1] == 20 && roce_qp_state(b->qp) == ROCE_QPS_ERR &&
		      answered(OP_ACKNOWLEDGE, AETH_NAK_INVALID_REQUEST,
			       PSN + 10),
	      "too many");
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

/* ---- the checks before those of a QP ---- */

static void test_drops(void)
{
	const struct crafted good = { .opcode = OP_SEND_ONLY,
				      .psn = PSN,
				      .payload = 8 };
	const struct roce_counters *c;
	uint8_t frame[8192];
	size_t len;

	setup(ROCE_QPT_RC, false);
	c = roce_counters(sim->nodes[1].engine);
	len = craft(frame, 1, &good);
#define RX() roce_rx(sim->nodes[1].engine, sim->now, frame, len)
#define FIX()                                              \
	do {                                               \
		uint32_t crc = icrc(frame, len - 4);       \
                                                           \
		for (int i = 0; i < 4; i++)                \
			frame[len - 4 + i] = crc >> 8 * i; \
	} while (0)
	frame[len - 1] ^= 1;
	CHECK(RX() && c->rx_bad_icrc == 1, "ICRC");
	frame[43] ^= 1; /* MigReq, pad and version: a version of 1 */
	FIX();
	CHECK(RX() && c->rx_malformed == 1, "version");
	frame[43] ^= 1;
	frame[42] = 0xe4; /* a service that does not exist */
	FIX();
	CHECK(RX() && c->rx_malformed == 2, "opcode");
	frame[42] = SERVICE_UC | OP_SEND_ONLY;
	FIX();
	CHECK(RX() && c->rx_no_qp == 1, "service");
	frame[42] = OP_SEND_ONLY;
	frame[45] = 0;
	FIX();
	CHECK(RX() && c->rx_bad_pkey == 1, "partition");
	frame[45] = 0xff;
	frame[47]++;
	FIX();
	CHECK(RX() && c->rx_no_qp == 2, "QPN");
	frame[47]--;
	frame[29]++; /* source address */
	frame[25]--; /* its checksum */
	FIX();
	CHECK(RX() && c->rx_bad_address == 1, "address");
	frame[29]--;
	frame[25]++;
	frame[33]++; /* destination address */
	CHECK(!RX(), "for someone else");
	frame[33]--;
	frame[37]++; /* UDP port */
	CHECK(!RX(), "another port");
	frame[37]--;
	frame[20] |= 0x20; /* more fragments */
	CHECK(!RX(), "fragment");
	frame[20] &= ~0x20;
	frame[22]--; /* time to live, with the checksum it had */
	CHECK(RX() && c->rx_malformed == 3, "IP checksum");
	frame[22]++;
	frame[15] = 3; /* congestion experienced */
	frame[25] -= 3;
	FIX();
	CHECK(RX() && c->rx_ecn_marked == 1 &&
		      roce_qp_counters(b->qp)->out_of_buffer == 1,
	      "a good one");
	sim_destroy(sim);
}

int main(void)
{
	test_golden();
	test_frames();
	test_invalid();
	test_sequence();
	test_duplicates();
	test_answers();
	test_drops();
	return check_result();
}
