// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/vfio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client.h"
#include "host.h"

#define CONFIG VFIO_PCI_CONFIG_REGION_INDEX
#define COMMAND 4
#define COMMAND_ON 6 /* memory, bus master */
#define DEVCTL 0x48  /* the PCIe capability is the first one */
#define FLR (1 << 15)
#define RW (VFU_DMA_READ | VFU_DMA_WRITE)
#define EVENTFDS (VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER)

struct host {
	struct fixture f;
	int mem;
	uint8_t *ptr;
	int irq[HOST_VECTORS];
};

struct host *host_start(struct vfu *vfu)
{
	struct host *h = calloc(1, sizeof(*h));

	h->f.vfu = vfu;
	fixture_connect(&h->f);
	CHECK(!handshake(&h->f), "handshake");
	h->mem = memory(HOST_MEMORY, MFD_ALLOW_SEALING);
	h->ptr = mmap(NULL, HOST_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED,
		      h->mem, 0);
	for (int i = 0; i < HOST_VECTORS; i++)
		h->irq[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (h->ptr == MAP_FAILED || h->irq[HOST_VECTORS - 1] < 0)
		abort();
	host_map(h, 0, 0, HOST_MEMORY);
	CHECK(!set_irqs(&h->f, EVENTFDS, VFIO_PCI_MSIX_IRQ_INDEX, 0,
			HOST_VECTORS, NULL, 0, h->irq, HOST_VECTORS),
	      "eventfds");
	host_bus_master(h, true);
	return h;
}

void host_stop(struct host *h)
{
	for (int i = 0; i < HOST_VECTORS; i++)
		close(h->irq[i]);
	munmap(h->ptr, HOST_MEMORY);
	close(h->mem);
	close(h->f.fd);
	run(&h->f);
	free(h);
}

uint8_t *host_mem(struct host *h, uint64_t at, size_t len)
{
	if (at > HOST_MEMORY || len > HOST_MEMORY - at)
		return NULL;
	return h->ptr + at;
}

void host_map(struct host *h, uint64_t from, uint64_t at, uint64_t size)
{
	dma_map(&h->f, h->mem, from, at, size, RW);
}

void host_map_ro(struct host *h, uint64_t from, uint64_t at, uint64_t size)
{
	dma_map(&h->f, h->mem, from, at, size, VFU_DMA_READ);
}

void host_unmap(struct host *h, uint64_t at, uint64_t size)
{
	struct vfu_msg_unmap m = { sizeof(m), 0, at, size };

	call(&h->f, VFU_CMD_DMA_UNMAP, &m, sizeof(m));
}

void host_read(struct host *h, uint64_t off, void *buf, size_t len)
{
	CHECK(!region_read(&h->f, 0, off, buf, len), "%#lx", off);
}

void host_write(struct host *h, uint64_t off, const void *buf, size_t len)
{
	CHECK(!region_write(&h->f, 0, off, buf, len), "%#lx", off);
}

uint32_t host_read32(struct host *h, uint64_t off)
{
	uint32_t value;

	host_read(h, off, &value, sizeof(value));
	return be32toh(value);
}

void host_write32(struct host *h, uint64_t off, uint32_t value)
{
	value = htobe32(value);
	host_write(h, off, &value, sizeof(value));
}

void host_write64(struct host *h, uint64_t off, uint64_t value)
{
	value = htobe64(value);
	host_write(h, off, &value, sizeof(value));
}

void host_bus_master(struct host *h, bool on)
{
	uint16_t value = on ? COMMAND_ON : 0;

	CHECK(!region_write(&h->f, CONFIG, COMMAND, &value, 2), "command");
}

void host_flr(struct host *h)
{
	uint16_t value = FLR;

	CHECK(!region_write(&h->f, CONFIG, DEVCTL, &value, 2), "FLR");
	CHECK(!vfu_bus_master(h->f.vfu), "no FLR");
}

void host_reset(struct host *h)
{
	CHECK(!call(&h->f, VFU_CMD_RESET, NULL, 0), "reset");
}

unsigned int host_irqs(struct host *h, unsigned int vector)
{
	uint64_t count = 0;

	if (read(h->irq[vector], &count, sizeof(count)) < 0)
		return 0;
	return count;
}
