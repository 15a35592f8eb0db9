// SPDX-License-Identifier: GPL-2.0
/*
 * A capture made by hand: one QP moves, with a packet every millisecond.
 */
#include "../../tests/check.h"
#include "rxe_migr_wire.h"
#include "timeline.h"

#include <stdlib.h>
#include <string.h>

#define HOST(n) (0x0a0a0000u + (n))
#define MAC(n) (0x525400100000u + (n))
#define MS 1000000ull
#define EPOCH (1700000000000ull * MS)

static uint8_t capture[1 << 20];
static size_t bytes;
static bool by_mac;	   /* for the QP takes its IPv4 address along */
static uint8_t qpn = 0x11; /* of whichever end */
static uint8_t kind = MIGR_METH_KIND_RESUME; /* of what has a METH */

static void put(const void *data, size_t len)
{
	memcpy(capture + bytes, data, len);
	bytes += len;
}

static void put32(uint32_t v)
{
	put(&v, sizeof(v));
}

static void section(void)
{
	static const uint8_t options[] = { 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0 };

	put32(0x0a0d0d0a);
	put32(28);
	put32(0x1a2b3c4d);
	put32(1);
	put32(-1);
	put32(-1);
	put32(28);

	/* an interface that counts nanoseconds */
	put32(1);
	put32(20 + sizeof(options));
	put32(1);
	put32(0);
	put(options, sizeof(options));
	put32(20 + sizeof(options));
}

static void address(uint8_t *mac, uint8_t *ip, int host)
{
	memcpy(mac, (uint8_t[]){ 0x52, 0x54, 0, 0x10, 0, (uint8_t)host }, 6);
	if (by_mac && host == 3)
		host = 1;
	memcpy(ip, (uint8_t[]){ 10, 10, 0, (uint8_t)host }, 4);
}

static void packet(uint64_t ms, int from, int to, uint8_t opcode,
		   uint8_t syndrome)
{
	uint8_t f[60] = { 0 };
	uint64_t ns = EPOCH + ms * MS;

	f[12] = 8; /* IPv4 */
	f[14] = 0x45;
	f[23] = 17;
	address(f + 6, f + 26, from);
	address(f, f + 30, to);
	f[36] = 4791 >> 8;
	f[37] = 4791 & 255;
	f[42] = opcode;
	f[49] = qpn;
	f[54] = syndrome;
	f[58] = MIGR_METH_VERSION << 4 | kind;

	put32(6);
	put32(32 + sizeof(f));
	put32(0);
	put32((uint32_t)(ns >> 32));
	put32((uint32_t)ns);
	put32(sizeof(f));
	put32(1000);
	put(f, sizeof(f));
	put32(32 + sizeof(f));
}

/* what dumpcap says in the end; a comment is before it, and must be passed over */
static void statistics(uint64_t ifdrop, uint64_t osdrop)
{
	put32(5);
	put32(24 + 8 + 2 * 12 + 4);
	put32(0);
	put32(0);
	put32(0);
	put32(1 | 3 << 16);
	put("abc", 4);
	put32(5 | 8 << 16);
	put(&ifdrop, 8);
	put32(7 | 8 << 16);
	put(&osdrop, 8);
	put32(0);
	put32(24 + 8 + 2 * 12 + 4);
}

static struct flow *read_capture(size_t len, int expect)
{
	struct flow *f = calloc(1, sizeof(*f));
	FILE *file = fmemopen(capture, len, "r");

	MUST(f && file);
	f->mac = by_mac;
	f->partner = by_mac ? MAC(2) : HOST(2);
	f->host[OLD] = by_mac ? MAC(1) : HOST(1);
	f->host[NEW] = by_mac ? MAC(3) : HOST(3);
	MUST(flow_read(f, file) == expect);
	fclose(file);
	return f;
}

static void forget(struct flow *f)
{
	free(f->slot[OLD]);
	free(f->slot[NEW]);
	free(f);
}

static void moves(void)
{
	uint64_t stop, go;
	struct flow *f;

	bytes = 0;
	section();
	for (uint64_t t = 0; t < 1000; t++)
		packet(t, t & 1 ? 1 : 2, t & 1 ? 2 : 1, 0x11, 0x1f);
	packet(1000, 2, 1, 0x04, 0);
	packet(1001, 1, 2, 0x11, MIGR_AETH_NAK_STOPPED);
	packet(1100, 2, 1, 0x04, 0);
	packet(1101, 1, 2, 0x11, MIGR_AETH_NAK_STOPPED);
	/* what STOP wants to know: neither traffic nor a RESUME_ACK */
	kind = MIGR_METH_KIND_ASK;
	packet(1102, 1, 2, MIGR_OPCODE_ASK, 0);
	packet(1103, 2, 1, MIGR_OPCODE_RESUME_ACK, 0);
	kind = MIGR_METH_KIND_NOBODY;
	packet(1104, 1, 2, MIGR_OPCODE_RESUME_ACK, 0);
	kind = MIGR_METH_KIND_RESUME;
	packet(1500, 3, 2, MIGR_OPCODE_RESUME, 0);
	packet(1501, 2, 3, MIGR_OPCODE_RESUME_ACK, 0);
	packet(1501, 4, 5, MIGR_OPCODE_RESUME, 0); /* not ours */
	for (uint64_t t = 1510; t < 2000; t++)
		packet(t, t & 1 ? 2 : 3, t & 1 ? 3 : 2, 0x11, 0x1f);

	f = read_capture(bytes, 0);
	CHECK(f->nak_stopped == 2 && f->resume == 1 && f->resume_ack == 1);
	CHECK(!f->fatal && f->qps == 1);
	CHECK(f->begin == EPOCH && f->end == EPOCH + 1999 * MS);
	CHECK(flow_blackout(f, &stop, &go) == 1);
	CHECK(stop == EPOCH + 999 * MS && go == EPOCH + 1510 * MS);
	CHECK(f->first_nak == EPOCH + 1001 * MS);
	CHECK(f->first_resume == EPOCH + 1500 * MS);
	/* 1000 bytes a millisecond */
	CHECK(flow_rate(f, OLD, EPOCH, EPOCH + 1000 * MS) == 1e6);
	CHECK(flow_rate(f, NEW, EPOCH + 1510 * MS, f->end) == 1e6);
	CHECK(flow_rate(f, NEW, EPOCH, EPOCH + 1000 * MS) == 0);
	CHECK(f->slots == 200);
	flow_resample(f, 50);
	CHECK(f->slots == 40 && f->slot_ns == 50 * MS);
	CHECK(flow_rate(f, OLD, EPOCH, EPOCH + 1000 * MS) == 1e6);
	forget(f);
}

/* the partner's QPs, by others: as many count as have gone on */
static void are_replaced(void)
{
	uint64_t stop, go;
	struct flow *f;
	size_t old;

	bytes = 0;
	section();
	for (qpn = 0x11; qpn < 0x14; qpn++)
		packet(qpn, 1, 2, 0x11, 0x1f);
	old = bytes;
	for (qpn = 0x21; qpn < 0x24; qpn++)
		packet(1000 + qpn, 3, 2, 0x11, 0x1f);
	qpn = 0x11;

	f = read_capture(bytes, 0);
	CHECK(!flow_blackout(f, &stop, &go));
	f->replaced = true;
	CHECK(flow_blackout(f, &stop, &go) == 3);
	CHECK(stop == EPOCH + 0x13 * MS && go == EPOCH + 1000 * MS + 0x23 * MS);
	forget(f);

	f = read_capture(old, 0);
	f->replaced = true;
	CHECK(!flow_blackout(f, &stop, &go));
	forget(f);
}

int main(void)
{
	uint64_t stop, go;
	struct flow *f;
	size_t whole;

	are_replaced();
	by_mac = true;
	moves();
	by_mac = false;
	moves();
	whole = bytes;

	/* a connection that failed */
	packet(2000, 3, 2, 0x11, 0x62);
	f = read_capture(bytes, 0);
	CHECK(f->fatal == 1);
	CHECK(f->lost == -1);
	forget(f);

	/* packets that were not captured: as was said last */
	statistics(1, 0);
	f = read_capture(bytes, 0);
	CHECK(f->lost == 1 && f->fatal == 1);
	forget(f);
	statistics(4, 3);
	f = read_capture(bytes, 0);
	CHECK(f->lost == 7 && f->qps == 1);
	forget(f);

	/* cut off anywhere: what is there counts, and nothing is made up */
	for (size_t len = 1; len < 4000; len += 29) {
		f = read_capture(len, 0);
		CHECK(!flow_blackout(f, &stop, &go));
		forget(f);
	}
	capture[8] ^= 1;
	forget(read_capture(whole, -1));
	return check_result();
}
