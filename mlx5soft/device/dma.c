// SPDX-License-Identifier: GPL-2.0
/* The guest's memory, and lists of its pages. */

#include <errno.h>
#include <stdlib.h>

#include "dma.h"
#include "nic.h"

bool dma_read(struct nic *nic, uint64_t addr, void *buf, uint32_t len)
{
	return !vfu_dma_read(nic->vfu, addr, buf, len);
}

bool dma_write(struct nic *nic, uint64_t addr, const void *buf, uint32_t len)
{
	return !vfu_dma_write(nic->vfu, addr, buf, len);
}

bool dma_read_be32(struct nic *nic, uint64_t addr, uint32_t *value)
{
	uint8_t bytes[4];

	if (!dma_read(nic, addr, bytes, sizeof(bytes)))
		return false;
	*value = get_be32(bytes);
	return true;
}

const void *dma_ptr_read(struct nic *nic, uint64_t addr, uint32_t len)
{
	return vfu_dma_ptr_ro(nic->vfu, addr, len);
}

void *dma_ptr_write(struct nic *nic, uint64_t addr, uint32_t len)
{
	return vfu_dma_ptr(nic->vfu, addr, len);
}

/* ---- lists of pages ---- */

int pas_init(struct pas *pas, const uint8_t *list, size_t avail,
	     unsigned int shift, uint64_t offset, uint64_t size)
{
	uint64_t count, i;

	/* the sum below must not wrap */
	if (shift < PAGE_SHIFT_MIN || shift > MAX_LOG_MR - 1 ||
	    offset >> MAX_LOG_MR || size > 1ULL << MAX_LOG_MR)
		return -EINVAL;
	count = (offset + size + (1ULL << shift) - 1) >> shift;
	if (count > avail / 8)
		return -EINVAL;
	pas->page = calloc(count ? count : 1, sizeof(*pas->page));
	if (!pas->page)
		return -ENOMEM;
	for (i = 0; i < count; i++) /* low bits are flags */
		pas->page[i] = get_be64(list + 8 * i) & ~0xfffULL;
	pas->count = count;
	pas->shift = shift;
	pas->offset = offset;
	return 0;
}

void pas_free(struct pas *pas)
{
	free(pas->page);
	memset(pas, 0, sizeof(*pas));
}

bool pas_read(struct nic *nic, const struct pas *pas, uint64_t at, void *buf,
	      uint32_t len)
{
	uint64_t in, index, n;

	for (at += pas->offset; len; at += n, len -= n) {
		index = at >> pas->shift;
		in = at & ((1ULL << pas->shift) - 1);
		n = (1ULL << pas->shift) - in;
		if (n > len)
			n = len;
		if (index >= pas->count ||
		    !dma_read(nic, pas->page[index] + in, buf, n))
			return false;
		buf = (uint8_t *)buf + n;
	}
	return true;
}

void *pas_ptr_write(struct nic *nic, const struct pas *pas, uint64_t at,
		    uint32_t len)
{
	uint64_t in, index;

	at += pas->offset;
	index = at >> pas->shift;
	in = at & ((1ULL << pas->shift) - 1);
	if (index >= pas->count || len > (1ULL << pas->shift) - in)
		return NULL;
	return dma_ptr_write(nic, pas->page[index] + in, len);
}
