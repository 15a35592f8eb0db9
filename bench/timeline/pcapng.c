// SPDX-License-Identifier: GPL-2.0
/*
 * The little of pcapng that dumpcap writes: one section, one or more
 * interfaces, enhanced packet blocks, and what was lost. Other blocks are skipped.
 */
#include "pcapng.h"

#include <string.h>

#define SHB 0x0a0d0d0a
#define IDB 1
#define ISB 5
#define EPB 6
#define BYTE_ORDER_MAGIC 0x1a2b3c4d
#define OPT_TSRESOL 9
#define OPT_IFDROP 5
#define OPT_OSDROP 7
#define MAX_BLOCK (1 << 20)
#define MAX_IFS 16

static uint8_t block[MAX_BLOCK];
static uint64_t ticks_per_s[MAX_IFS];
static int64_t lost[MAX_IFS]; /* -1: nobody has said */
static unsigned int ifs;

static uint32_t u32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint16_t u16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* the resolution of an interface's time stamps: 10^-n, or 2^-n with bit 7 */
static int interface(uint32_t len)
{
	uint64_t ticks = 1000000;
	uint32_t at = 8;

	while (at + 4 <= len && u16(block + at)) {
		uint16_t opt = u16(block + at), size = u16(block + at + 2);

		if (opt == OPT_TSRESOL && at + 5 <= len) {
			uint8_t n = block[at + 4];

			if ((n & 0x7f) > (n & 0x80 ? 63 : 19))
				return -1;
			ticks = 1;
			for (int i = 0; i < (n & 0x7f); i++)
				ticks *= n & 0x80 ? 2 : 10;
		}
		at += 4 + ((size + 3) & ~3u);
	}
	if (ifs == MAX_IFS)
		return -1;
	lost[ifs] = -1;
	ticks_per_s[ifs++] = ticks;
	return 0;
}

/* Counts from the interface's beginning: the last one is right */
static int statistics(uint32_t len)
{
	uint32_t at = 12;
	int64_t sum = -1;

	if (len < 12 || u32(block) >= ifs)
		return -1;
	while (at + 4 <= len && u16(block + at)) {
		uint16_t opt = u16(block + at), size = u16(block + at + 2);

		if ((opt == OPT_IFDROP || opt == OPT_OSDROP) && size == 8 &&
		    at + 12 <= len) {
			int64_t n;

			memcpy(&n, block + at + 4, sizeof(n));
			sum = (sum < 0 ? 0 : sum) + n;
		}
		at += 4 + ((size + 3) & ~3u);
	}
	if (sum >= 0)
		lost[u32(block)] = sum;
	return 0;
}

static int packet(uint32_t len, struct frame *frame)
{
	uint64_t t, per_s;

	if (len < 20 || u32(block) >= ifs || u32(block + 12) > len - 20)
		return -1;
	per_s = ticks_per_s[u32(block)];
	t = (uint64_t)u32(block + 4) << 32 | u32(block + 8);
	frame->ns = t / per_s * 1000000000 +
		    (uint64_t)((double)(t % per_s) * 1e9 / (double)per_s);
	frame->len = u32(block + 12);
	frame->wire = u32(block + 16);
	frame->data = block + 20;
	return 1;
}

int pcapng_next(FILE *file, struct frame *frame)
{
	uint8_t head[8], trailer[4];
	uint32_t type, len;

	while (fread(head, sizeof(head), 1, file) == 1) {
		type = u32(head);
		len = u32(head + 4);
		if (len < 12 || len % 4 || len > MAX_BLOCK)
			return -1;
		len -= 12;
		if (len && fread(block, len, 1, file) != 1)
			return 0;
		if (fread(trailer, sizeof(trailer), 1, file) != 1)
			return 0;

		if (type == SHB) {
			if (len < 16 || u32(block) != BYTE_ORDER_MAGIC)
				return -1;
			ifs = 0;
		} else if (type == IDB) {
			if (len < 8 || interface(len))
				return -1;
		} else if (type == ISB) {
			if (statistics(len))
				return -1;
		} else if (type == EPB) {
			return packet(len, frame);
		}
	}
	return 0;
}

int64_t pcapng_lost(void)
{
	int64_t sum = -1;

	for (unsigned int i = 0; i < ifs; i++)
		if (lost[i] >= 0)
			sum = (sum < 0 ? 0 : sum) + lost[i];
	return sum;
}
