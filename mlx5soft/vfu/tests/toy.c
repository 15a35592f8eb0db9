// SPDX-License-Identifier: GPL-2.0
/*
 * The smallest device, to look at with a real QEMU:
 *
 *	vfu_toy SOCKET &
 *	qemu-system-x86_64 -machine q35,memory-backend=mem \
 *		-object memory-backend-memfd,id=mem,size=256M,share=on \
 *		-device '{"driver":"vfio-user-pci",
 *			  "socket":{"type":"unix","path":"SOCKET"}}'
 *
 * BAR 0 is memory. BAR 2 takes commands, 4 bytes each: writing n to offset 0
 * raises vector n, writing to offset 8 reads 8 bytes of guest memory at that
 * address, which offset 16 then shows. It prints what happens and ends when its
 * first client does.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "vfu.h"

#define VECTORS 16

static struct {
	struct vfu *vfu;
	uint8_t bar0[1 << 16];
	uint64_t found;
	unsigned long reads, writes, config, resets[3];
} toy;

static int toy_read(void *priv, unsigned int bar, uint64_t off, void *buf,
		    size_t len)
{
	(void)priv;
	toy.reads++;
	if (bar == 0)
		memcpy(buf, toy.bar0 + off, len);
	else if (off >= 16 && off + len <= 24)
		memcpy(buf, (uint8_t *)&toy.found + (off - 16), len);
	return 0;
}

static int toy_write(void *priv, unsigned int bar, uint64_t off,
		     const void *buf, size_t len)
{
	uint32_t value = 0;

	(void)priv;
	toy.writes++;
	if (bar == 0) {
		memcpy(toy.bar0 + off, buf, len);
		return 0;
	}
	if (len != sizeof(value))
		return 0;
	memcpy(&value, buf, len);
	if (off == 0)
		printf("vector %u: %d\n", value, vfu_irq(toy.vfu, value));
	if (off == 8)
		printf("read %#x: %d\n", value,
		       vfu_dma_read(toy.vfu, value, &toy.found,
				    sizeof(toy.found)));
	return 0;
}

static void toy_config(void *priv, unsigned int off, size_t len)
{
	(void)priv;
	toy.config++;
	printf("config %#x = %#x\n", off, vfu_pci_read(toy.vfu, off, len));
}

static void toy_reset(void *priv, enum vfu_reset why)
{
	(void)priv;
	toy.resets[why]++;
	printf("reset %d\n", why);
	memset(toy.bar0, 0, sizeof(toy.bar0));
}

static void toy_log(void *priv, const char *line)
{
	(void)priv;
	printf("%s\n", line);
}

static const struct vfu_ops ops = {
	.bar_read = toy_read,
	.bar_write = toy_write,
	.config_written = toy_config,
	.reset = toy_reset,
	.log = toy_log,
};

int main(int argc, char **argv)
{
	struct vfu_config cfg = {
		.name = "toy",
		.path = argv[1],
		.vendor = 0x1af4,
		.device = 0x10ff,
		.class_code = 0xff0000,
		.bar = { [0] = { sizeof(toy.bar0),
				 VFU_BAR_64 | VFU_BAR_PREFETCH },
			 [2] = { 1 << 14, VFU_BAR_64 } },
		.vectors = VECTORS,
		.msix_bar = 2,
		.msix_table = 0x2000,
		.msix_pba = 0x3000,
		.ops = &ops,
	};
	struct pollfd p = { .events = POLLIN };
	uint64_t maps = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 2 || vfu_create(&cfg, &toy.vfu))
		return 1;
	p.fd = vfu_fd(toy.vfu);
	while (!toy.resets[VFU_RESET_DISCONNECT] && poll(&p, 1, -1) >= 0) {
		vfu_process(toy.vfu);
		if (vfu_dma_generation(toy.vfu) != maps) {
			maps = vfu_dma_generation(toy.vfu);
			printf("maps: generation %llu, reset vector %s\n",
			       (unsigned long long)maps,
			       vfu_dma_ptr_ro(toy.vfu, 0xfffffff0, 16)
				       ? "there"
				       : "not accessible");
		}
	}
	printf("%lu reads, %lu writes, %lu config writes, %lu resets, %lu FLR\n",
	       toy.reads, toy.writes, toy.config, toy.resets[VFU_RESET_DEVICE],
	       toy.resets[VFU_RESET_FLR]);
	vfu_destroy(toy.vfu);
	return 0;
}
