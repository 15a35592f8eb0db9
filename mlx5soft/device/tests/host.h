/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A host for a device in the same process: memory, BAR accesses, interrupts
 * and resets, over the real protocol. Each call returns when the device has
 * done its part.
 */
#ifndef HOST_H
#define HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOST_MEMORY (48U << 20) /* mapped at 0 */
#define HOST_VECTORS 16

struct vfu;
struct host;

/* Connect to the device, which becomes bus master */
struct host *host_start(struct vfu *vfu);
/* Goes away without a word, as a QEMU that is killed */
void host_stop(struct host *h);

/* The host's own view of its memory; NULL: not all of it is memory */
uint8_t *host_mem(struct host *h, uint64_t at, size_t len);
/* Take a part of the memory, which was mapped as one, from the device */
void host_unmap(struct host *h, uint64_t at, uint64_t size);
/* ...and give memory from `from` on to it at `at` */
void host_map(struct host *h, uint64_t from, uint64_t at, uint64_t size);
/* ...that it may only read */
void host_map_ro(struct host *h, uint64_t from, uint64_t at, uint64_t size);

void host_read(struct host *h, uint64_t off, void *buf, size_t len);
void host_write(struct host *h, uint64_t off, const void *buf, size_t len);
/* of 4 bytes, big-endian as the device's registers are */
uint32_t host_read32(struct host *h, uint64_t off);
void host_write32(struct host *h, uint64_t off, uint32_t value);
void host_write64(struct host *h, uint64_t off, uint64_t value);

void host_bus_master(struct host *h, bool on);
void host_flr(struct host *h);	 /* then not bus master any more */
void host_reset(struct host *h); /* the same as a reset of the machine */

/* how often the vector was raised since the last call */
unsigned int host_irqs(struct host *h, unsigned int vector);

#endif /* HOST_H */
