// SPDX-License-Identifier: GPL-2.0
/*
 * Packets byte by byte, and those that reach no QP.
 */
#include <stdlib.h>
#include <string.h>

#include "craft.h"

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

/*
 * Made by dissector/test/roce-pcap, that has an ICRC of its own; not captured
 * from another implementation.
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

/* fields as tshark shows them; the ICRC is computed again in capture() */
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
	"52 54 00 00 00 02 52 54 00 00 00 01 08 00 45 00 00 48 00 01 40 00" \
	"40 11 26 a2 0a 00 00 01 0a 00 00 02 c8 d5 12 b7 00 34 00 00 13 40" \
	"ff ff 00 00 00 77 80 ff ff f1 00 00 00 00 00 00 10 00 00 00 03 e8" \
	"11 12 13 14 15 16 17 18 01 02 03 04 05 06 07 08 21 81 a0 fa"
#define ATOMIC_ACK_FRAME                                                    \
	"52 54 00 00 00 01 52 54 00 00 00 02 08 00 45 00 00 38 00 01 40 00" \
	"40 11 26 b2 0a 00 00 02 0a 00 00 01 c8 d5 12 b7 00 24 00 00 12 40" \
	"ff ff 00 00 00 13 00 ff ff f1 1f 00 00 02 01 02 03 04 05 06 07 08" \
	"63 6b f1 de"
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
	test_drops();
	return check_result();
}
