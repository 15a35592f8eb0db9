// SPDX-License-Identifier: GPL-2.0
/* vfu_seeds DIR: inputs for fuzz_vfu that get far */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/vfio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <stdio.h>

#include "fuzz_ops.h"
#include "vfu_priv.h"

#define TRIGGER VFIO_IRQ_SET_ACTION_TRIGGER

static uint8_t seed[4096];
static size_t len;

static void put(const void *bytes, size_t n)
{
	memcpy(seed + len, bytes, n);
	len += n;
}

static void put8(uint8_t value)
{
	put(&value, 1);
}

static void message(uint8_t op, uint8_t cmd, const void *body, uint8_t n)
{
	put8(op);
	put8(cmd);
	put8(n);
	put(body, n);
}

static void map(uint8_t op, uint64_t off, uint64_t iova, uint64_t size,
		uint32_t flags)
{
	struct vfu_msg_map m = { sizeof(m), flags, off, iova, size };

	message(op, VFU_CMD_DMA_MAP, &m, sizeof(m));
}

static void unmap(uint64_t iova, uint64_t size, uint32_t flags)
{
	struct vfu_msg_unmap m = { sizeof(m), flags, iova, size };

	message(FUZZ_MESSAGE, VFU_CMD_DMA_UNMAP, &m, sizeof(m));
}

static void dma(uint64_t iova, uint16_t n)
{
	put8(FUZZ_DMA);
	put(&iova, 8);
	put(&n, 2);
}

static void region(uint8_t cmd, uint32_t index, uint64_t off, uint32_t count,
		   uint64_t value)
{
	struct {
		uint64_t off;
		uint32_t index, count;
		uint64_t value;
	} m = { off, index, count, value };

	message(FUZZ_MESSAGE, cmd, &m,
		16 + (cmd == VFU_CMD_REGION_WRITE ? count : 0));
}

static void irqs(uint8_t op, uint32_t flags, uint32_t start, uint32_t count,
		 uint32_t extra)
{
	uint32_t m[7] = { 20 + extra, flags, VFIO_PCI_MSIX_IRQ_INDEX,
			  start,      count, 0x01010001,
			  0x01010101 };

	message(op, VFU_CMD_SET_IRQS, m, m[0]);
}

static void info(uint8_t cmd, uint32_t argsz, uint32_t index)
{
	uint32_t m[8] = { argsz, 0, index };

	message(FUZZ_MESSAGE, cmd, m, argsz);
}

static void make_info(void)
{
	info(VFU_CMD_GET_INFO, 16, 0);
	for (uint32_t i = 0; i <= 9; i++)
		info(VFU_CMD_GET_REGION_INFO, 32, i);
	for (uint32_t i = 0; i <= 5; i++)
		info(VFU_CMD_GET_IRQ_INFO, 16, i);
	put8(FUZZ_REPLIES);
	message(FUZZ_MESSAGE, VFU_CMD_RESET, "", 0);
	message(FUZZ_OP(FUZZ_MESSAGE, 1, FUZZ_SOCKET), VFU_CMD_RESET, "", 0);
	message(FUZZ_MESSAGE, 15, "", 0);
	put8(FUZZ_REPLIES);
}

static void make_dma(void)
{
	const uint8_t op = FUZZ_OP(FUZZ_MESSAGE, 1, FUZZ_SEALED);

	map(op, 0, 0, 0x4000, 3);
	map(op, 0x8000, 0x4000, 0x4000, 3);
	map(op, 0, 0x2000, 0x1000, 3);
	map(op, 0, 0x10000, 0x1000, 1);
	map(op, 0, -0x1000ULL, 0x1000, 2);
	map(FUZZ_MESSAGE, 0, 0x20000, 0x1000, 3);
	map(FUZZ_OP(FUZZ_MESSAGE, 1, FUZZ_UNSEALED), 0, 0x30000, 0x1000, 3);
	map(op, 0x10000, 0x30000, 0x1000, 3);
	dma(0x3f00, 0x300);
	dma(-8ULL, 8);
	dma(0x10000, 0x1000);
	dma(0x20000, 1);
	unmap(0, 0x4000, 0);
	unmap(0x4000, 0x2000, 0);
	dma(0x3f00, 0x300);
	put8(FUZZ_REPLIES);
	unmap(0, 0, VFU_UNMAP_ALL);
	put8(FUZZ_OP(FUZZ_HANGUP, 1, 0));
	map(op, 0, 0, 0x4000, 3);
}

static void make_regions(void)
{
	region(VFU_CMD_REGION_READ, 0, 0x10, 8, 0);
	region(VFU_CMD_REGION_READ, 0, 8, 4, 0);
	region(VFU_CMD_REGION_READ, 4, 0xffc, 4, 0);
	region(VFU_CMD_REGION_READ, 4, 0xffd, 4, 0);
	region(VFU_CMD_REGION_READ, 0, -4ULL, 8, 0);
	region(VFU_CMD_REGION_WRITE, 0, 0x100, 8, 0x2000);
	region(VFU_CMD_REGION_READ, 7, 0, 4096, 0);
	region(VFU_CMD_REGION_WRITE, 7, 4, 2, 6);
	region(VFU_CMD_REGION_WRITE, 7, 0x10, 8, -1ULL);
	region(VFU_CMD_REGION_WRITE, 7, 0x48, 2, 0x8000);
	region(VFU_CMD_REGION_READ, 0, 0, VFU_MAX_XFER, 0);
	put8(FUZZ_REPLIES);
}

static void make_irqs(void)
{
	irqs(FUZZ_OP(FUZZ_MESSAGE, 3, FUZZ_EVENTFD),
	     VFIO_IRQ_SET_DATA_EVENTFD | TRIGGER, 2, 3, 0);
	put8(FUZZ_IRQ);
	put8(2);
	irqs(FUZZ_MESSAGE, VFIO_IRQ_SET_DATA_BOOL | TRIGGER, 2, 3, 3);
	irqs(FUZZ_MESSAGE, VFIO_IRQ_SET_DATA_NONE | TRIGGER, 0, 20, 0);
	irqs(FUZZ_MESSAGE, VFIO_IRQ_SET_DATA_EVENTFD | TRIGGER, 3, 1, 0);
	irqs(FUZZ_OP(FUZZ_MESSAGE, 1, FUZZ_SOCKET),
	     VFIO_IRQ_SET_DATA_EVENTFD | TRIGGER, 0, 1, 0);
	irqs(FUZZ_OP(FUZZ_MESSAGE, 2, FUZZ_EVENTFD),
	     VFIO_IRQ_SET_DATA_EVENTFD | TRIGGER, -1, 2, 0);
	irqs(FUZZ_OP(FUZZ_MESSAGE, 7, FUZZ_EVENTFD),
	     VFIO_IRQ_SET_DATA_EVENTFD | TRIGGER, 0, 20, 0);
	irqs(FUZZ_MESSAGE, VFIO_IRQ_SET_DATA_NONE | TRIGGER, 0, 0, 0);
	put8(FUZZ_REPLIES);
}

/* Half messages, too long ones, and the end of a client */
static void make_broken(void)
{
	static const struct vfu_hdr half = { 1, VFU_CMD_DMA_MAP, 48, 0, 0 };
	static const uint16_t cut = 20000;
	uint32_t size = 70000;

	put8(FUZZ_OP(FUZZ_RAW, 2, FUZZ_SEALED));
	put8(sizeof(half));
	put(&half, sizeof(half));
	put8(FUZZ_OP(FUZZ_HANGUP, 1, 0));
	put8(FUZZ_OP(FUZZ_LIE, 1, FUZZ_EVENTFD));
	put8(VFU_CMD_REGION_WRITE);
	put8(0);
	put(&size, 4);
	for (int i = 0; i < 4; i++) {
		put8(FUZZ_ZEROS);
		put(&cut, 2);
	}
	put8(FUZZ_REPLIES);
	put8(FUZZ_HANGUP);
	message(FUZZ_MESSAGE, VFU_CMD_RESET, "", 0);
	message(FUZZ_MESSAGE, VFU_CMD_VERSION, "\1\0\0\0", 4);
}

static const struct {
	const char *name;
	void (*make)(void);
} seeds[] = {
	{ "info", make_info },	     { "dma", make_dma },
	{ "regions", make_regions }, { "irqs", make_irqs },
	{ "broken", make_broken },
};

int main(int argc, char **argv)
{
	char path[4096];
	FILE *out;

	if (argc != 2 || (mkdir(argv[1], 0755) && errno != EEXIST)) {
		fprintf(stderr, "usage: vfu_seeds DIR\n");
		return 1;
	}
	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++) {
		len = 0;
		seeds[i].make();
		snprintf(path, sizeof(path), "%s/%s", argv[1], seeds[i].name);
		out = fopen(path, "we");
		if (!out || fwrite(seed, len, 1, out) != 1 || fclose(out)) {
			perror(path);
			return 1;
		}
	}
	return 0;
}
