/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The guest's memory, and lists of its pages. Reading and writing are told
 * apart: what the device only reads may lie where it must not write. The guest
 * can write at any time: read a value once, then check it.
 *
 * Pointers are good until the next vfu_process().
 */
#ifndef MLX5SOFT_DMA_H
#define MLX5SOFT_DMA_H

#include <stdbool.h>

#include "bits.h"

struct nic;

/* False: not all of it is memory that may be read, or written. */
bool dma_read(struct nic *nic, uint64_t addr, void *buf, uint32_t len);
bool dma_write(struct nic *nic, uint64_t addr, const void *buf, uint32_t len);
/* a big-endian number, such as a doorbell record has */
bool dma_read_be32(struct nic *nic, uint64_t addr, uint32_t *value);

/* In place; NULL: as above, or not in one piece. */
const void *dma_ptr_read(struct nic *nic, uint64_t addr, uint32_t len);
void *dma_ptr_write(struct nic *nic, uint64_t addr, uint32_t len);

#define PAGE_SHIFT_MIN 12U
/* of a list: more than there are address bits left */
#define MAX_PAGE_SHIFT 43U
#define MAX_LOG_MR 62U /* bytes that a list describes */

/* A list of pages */
struct pas {
	uint64_t *page;
	uint32_t count;
	uint8_t shift;
	uint64_t offset; /* in the first page */
};

/*
 * Take `size` bytes' worth of page addresses at `list`, of which `avail` bytes
 * are there. -EINVAL: too few, or numbers that cannot be; -ENOMEM.
 */
int pas_init(struct pas *pas, const uint8_t *list, size_t avail,
	     unsigned int shift, uint64_t offset, uint64_t size);
void pas_free(struct pas *pas);
bool pas_read(struct nic *nic, const struct pas *pas, uint64_t at, void *buf,
	      uint32_t len);
/* `len` bytes that lie in one page; NULL: outside, or not to be written */
void *pas_ptr_write(struct nic *nic, const struct pas *pas, uint64_t at,
		    uint32_t len);

#endif /* MLX5SOFT_DMA_H */
