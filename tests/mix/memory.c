// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "memory.h"
#include "pattern.h"
#include "verdict.h"

#define HUGE_PAGE (2UL << 20)

static const int region_access[REGIONS] = {
	[REGION_LOCAL] = IBV_ACCESS_LOCAL_WRITE,
	[REGION_SLOTS] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			 IBV_ACCESS_REMOTE_READ,
	[REGION_PATTERN] = IBV_ACCESS_REMOTE_READ,
	[REGION_CELLS] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			 IBV_ACCESS_REMOTE_ATOMIC,
};

static size_t region_size(const struct shape *s, enum region_kind k)
{
	size_t slots = (size_t)s->qps * s->window * slot_size(s);

	switch (k) {
	case REGION_LOCAL:
		return 2 * slots;
	case REGION_SLOTS:
		return slots;
	case REGION_PATTERN:
		return pattern_size(s);
	default:
		return off_cells(s->qps);
	}
}

uint64_t off_slot(const struct shape *s, unsigned int qp, uint64_t seq)
{
	uint64_t slot = (uint64_t)qp * s->window + (seq & (s->window - 1));

	return slot * slot_size(s);
}

uint64_t off_cells(unsigned int qp)
{
	return (1 + (uint64_t)qp) * sizeof(struct cells);
}

void *region_at(const struct memory *m, enum region_kind k, uint64_t off)
{
	return (char *)m->region[k].base + off;
}

void *local_slot(const struct memory *m, unsigned int qp, uint64_t seq)
{
	return region_at(m, REGION_LOCAL, off_slot(m->shape, qp, seq));
}

void *local_recv(const struct memory *m, unsigned int qp, uint64_t index)
{
	qp += m->shape->qps; /* the second half of the region */
	return region_at(m, REGION_LOCAL, off_slot(m->shape, qp, index));
}

uint64_t credit_sum(const struct credit *c)
{
	uint64_t h = key_of(key_of(c->verified + 1, c->final), c->rests);

	return key_of(key_of(key_of(h, c->offer), c->back), c->back_seq);
}

static int map_region(struct region *r, size_t size, enum page_kind pages)
{
	uintptr_t at;

	r->size = size;
	r->map_size = size;
	if (pages == PAGES_THP) {
		r->size = (size + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
		r->map_size = r->size + HUGE_PAGE;
	}
	r->map = mmap(NULL, r->map_size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (r->map == MAP_FAILED) {
		r->map = NULL;
		return -1;
	}
	at = (uintptr_t)r->map;
	if (pages == PAGES_THP)
		at = (at + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
	r->base = (void *)at;
	if (pages == PAGES_THP)
		return madvise(r->base, r->size, MADV_HUGEPAGE);
	if (pages == PAGES_4K)
		return madvise(r->base, r->size, MADV_NOHUGEPAGE);
	return 0;
}

int memory_alloc(struct memory *m, const struct shape *s, unsigned int side,
		 enum page_kind pages)
{
	struct credit *credit;
	struct cells *cells;
	struct stream st;
	unsigned int k, qp;

	memset(m, 0, sizeof(*m));
	m->shape = s;
	for (k = 0; k < REGIONS; k++)
		if (map_region(&m->region[k], region_size(s, k), pages)) {
			fprintf(stderr, "memory: %s\n", strerror(errno));
			memory_free(m);
			return -1;
		}
	memset(m->region[REGION_LOCAL].base, GUARD_BYTE,
	       m->region[REGION_LOCAL].size);
	memset(m->region[REGION_SLOTS].base, GUARD_BYTE,
	       m->region[REGION_SLOTS].size);
	pattern_fill(m->region[REGION_PATTERN].base, pattern_key(s, side), 0,
		     pattern_size(s));
	for (qp = 0; qp < s->qps; qp++) {
		stream_init(&st, s, qp, !side);
		cells = region_at(m, REGION_CELLS, off_cells(qp));
		cells->swap = stream_cas(&st, 0);
		credit = &cells->credit;
		credit->final = NO_FINAL;
		credit->check = credit_sum(credit);
	}
	return 0;
}

int memory_register(struct memory *m, struct ibv_pd *pd, bool windows)
{
	struct region *r;
	unsigned int k;
	int access;

	for (k = 0; k < REGIONS; k++) {
		r = &m->region[k];
		access = region_access[k];
		if (windows && k == REGION_SLOTS)
			access |= IBV_ACCESS_MW_BIND;
		r->mr = ibv_reg_mr(pd, r->base, r->size, access);
		if (!r->mr) {
			fprintf(stderr, "ibv_reg_mr of %zu bytes: %s\n",
				r->size, strerror(errno));
			return -1;
		}
	}
	return 0;
}

void memory_deregister(struct memory *m, struct verdict *verdict)
{
	unsigned int k;
	int rc;

	for (k = 0; k < REGIONS; k++) {
		rc = ibv_dereg_mr(m->region[k].mr);
		if (rc)
			violation(verdict, "ibv_dereg_mr %u: %s", k,
				  strerror(rc));
		m->region[k].mr = NULL;
	}
}

void memory_free(struct memory *m)
{
	struct region *r;
	unsigned int k;

	for (k = 0; k < REGIONS; k++) {
		r = &m->region[k];
		if (r->map)
			munmap(r->map, r->map_size);
		memset(r, 0, sizeof(*r));
	}
}

ssize_t guard_check(const void *guard, size_t len)
{
	const uint8_t *p = guard;
	size_t i;

	/* all bytes equal their successor: one pass of memcmp() */
	if (!len || (p[0] == GUARD_BYTE && !memcmp(p, p + 1, len - 1)))
		return -1;
	for (i = 0; p[i] == GUARD_BYTE; i++)
		;
	return i;
}

void slot_wrote(struct slot *slot, uint64_t seq, uint32_t len)
{
	while (slot->n && slot->writer[slot->n - 1].len <= len)
		slot->n--;
	if (!len)
		return;
	/* ever shorter, that often in a row: the odds are about 2^-60 */
	if (slot->n == SLOT_WRITERS)
		abort();
	slot->writer[slot->n].seq = seq;
	slot->writer[slot->n++].len = len;
}
