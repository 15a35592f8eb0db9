// SPDX-License-Identifier: GPL-2.0
/*
 * TRACK makes soft-dirty what the device has written: every page that it writes in
 * whatever way, no other, and each once.
 */
#define _GNU_SOURCE /* memfd_create(), mremap() */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz_dirty.h"

/* ---- the process's own view -------------------------------------------- */

void clear_soft_dirty(void)
{
	int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);

	MUST(fd >= 0 && write(fd, "4", 1) == 1);
	close(fd);
}

static void read_pagemap(const char *at, uint64_t *entries, size_t n)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	const size_t bytes = n * sizeof(*entries);

	MUST(fd >= 0 && pread(fd, entries, bytes,
			      (off_t)((uintptr_t)at / PAGE *
				      sizeof(*entries))) == (ssize_t)bytes);
	close(fd);
}

bool is_soft_dirty(const void *at)
{
	uint64_t entry;

	read_pagemap(at, &entry, 1);
	return entry >> 55 & 1;
}

void read_soft_dirty(const char *mem, bool dirty[PAGES])
{
	uint64_t entries[PAGES];

	read_pagemap(mem, entries, PAGES);
	for (size_t i = 0; i < PAGES; i++)
		dirty[i] = entries[i] >> 55 & 1;
}

size_t soft_dirty_pages(const char *mem)
{
	bool dirty[PAGES];
	size_t n = 0;

	read_soft_dirty(mem, dirty);
	for (size_t i = 0; i < PAGES; i++)
		n += dirty[i];
	return n;
}

/* ---- memory ------------------------------------------------------------ */

char *map_bytes(enum kind kind, size_t bytes)
{
	int flags = kind == SHARED ? MAP_SHARED : MAP_PRIVATE;
	char *at = mmap(NULL, bytes + HUGE, PROT_READ | PROT_WRITE,
			flags | MAP_ANONYMOUS, -1, 0);

	MUST(at != MAP_FAILED);
	at = (char *)(((uintptr_t)at + HUGE - 1) & ~(HUGE - 1));
	MUST(!madvise(at, bytes,
		      kind == HUGE_PAGES ? MADV_HUGEPAGE : MADV_NOHUGEPAGE));
	memset(at, 1, bytes);
	return at;
}

char *map(enum kind kind)
{
	return map_bytes(kind, PAGES * PAGE);
}

void take_memory(struct pair *p, enum kind kind)
{
	p->mem = map(kind);
	MUST(p->mr = ibv_reg_mr(p->b.pd, p->mem, PAGES * PAGE, ALL_ACCESS));
}

/* ---- what is written --------------------------------------------------- */

void post(struct side *s, enum ibv_wr_opcode opcode, struct ibv_sge sge,
	  const struct ibv_mr *to, uint64_t offset)
{
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcode };
	struct ibv_send_wr *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
	    opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = (uintptr_t)to->addr + offset;
		wr.wr.atomic.rkey = to->rkey;
		wr.wr.atomic.compare_add = 0x0101010101010101;
		wr.wr.atomic.swap = 7;
	} else if (opcode != IBV_WR_SEND) {
		wr.wr.rdma.remote_addr = (uintptr_t)to->addr + offset;
		wr.wr.rdma.rkey = to->rkey;
	}
	MUST(!ibv_post_send(s->qp[0], &wr, &bad));
	side_wait(s, 1);
}

struct ibv_sge of(const struct ibv_mr *mr, uint64_t offset, uint32_t bytes)
{
	return (struct ibv_sge){ (uintptr_t)mr->addr + offset, bytes,
				 mr->lkey };
}

void write_page(struct pair *p, size_t i)
{
	post(&p->a, IBV_WR_RDMA_WRITE, of(p->a.mr, 0, 8), p->mr, i * PAGE);
}

static void receive(struct pair *p, uint64_t offset, uint32_t bytes)
{
	struct ibv_sge sge = of(p->mr, offset, bytes);
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	MUST(!ibv_post_recv(p->b.qp[0], &wr, &bad));
	post(&p->a, IBV_WR_SEND, of(p->a.mr, 0, bytes), NULL, 0);
	side_wait(&p->b, 1);
}

/* some pages, in every way; @written has a byte for each of them */
void write_all(struct pair *p, char *written)
{
	struct side *a = &p->a, *b = &p->b;

	memset(written, 0, PAGES);
	/* up to the end of a page, from its beginning, and across */
	post(a, IBV_WR_RDMA_WRITE, of(a->mr, 0, 1), p->mr, 4 * PAGE - 1);
	written[3] = 1;
	post(a, IBV_WR_RDMA_WRITE, of(a->mr, 0, 1), p->mr, 8 * PAGE);
	written[8] = 1;
	post(a, IBV_WR_RDMA_WRITE, of(a->mr, 0, 4096), p->mr, 20 * PAGE - 1);
	written[19] = written[20] = 1;
	post(a, IBV_WR_RDMA_WRITE, of(a->mr, 0, 1), p->mr, 0);
	post(a, IBV_WR_RDMA_WRITE, of(a->mr, 0, 1), p->mr, PAGES * PAGE - 1);
	written[0] = written[PAGES - 1] = 1;
	post(a, IBV_WR_ATOMIC_FETCH_AND_ADD, of(a->mr, 0, 8), p->mr, 30 * PAGE);
	written[30] = 1;
	post(a, IBV_WR_ATOMIC_CMP_AND_SWP, of(a->mr, 0, 8), p->mr,
	     33 * PAGE - 8);
	written[32] = 1;
	/* what its own requests bring, of which only that is written */
	post(b, IBV_WR_RDMA_READ, of(p->mr, 41 * PAGE, 4096), a->mr, 0);
	written[41] = 1;
	post(b, IBV_WR_ATOMIC_FETCH_AND_ADD, of(p->mr, 44 * PAGE, 8), a->mr, 0);
	written[44] = 1;
	receive(p, 50 * PAGE - 8, 16);
	written[49] = written[50] = 1;
	/* and what is only read */
	post(a, IBV_WR_RDMA_READ, of(a->mr, 0, 4096), p->mr, 60 * PAGE);
}

static size_t count(const char *written)
{
	size_t n = 0;

	for (size_t i = 0; i < PAGES; i++)
		n += written[i];
	return n;
}

/* ---- TRACK ------------------------------------------------------------- */

/* how many pages it has made soft-dirty */
size_t track(const struct pair *p, bool lost)
{
	struct rxe_migr_track_resp resp;

	MUST(!migr_cmd_track(p->b.ctx->cmd_fd, 0, 0, &resp));
	EXPECT((int)resp.flags, lost ? RXE_MIGR_TRACK_LOST : 0);
	return resp.pages;
}

void expect_marked(const struct pair *p, const char *written)
{
	for (size_t i = 0; i < PAGES; i++)
		if (written[i])
			EXPECT(is_soft_dirty(p->mem + i * PAGE), true);
}

static void rounds(struct pair *p, enum kind kind)
{
	size_t clean = kind == SMALL ? PAGES : 0;
	char written[PAGES];

	take_memory(p, kind);
	EXPECT((int)track(p, false), 0);
	EXPECT(soft_dirty_pages(p->mem) == PAGES, true);
	for (int i = 0; i < 3; i++) {
		clear_soft_dirty();
		write_all(p, written);
		/* or this tests nothing */
		EXPECT(soft_dirty_pages(p->mem) == clean, true);
		EXPECT((int)track(p, false), (int)count(written));
		expect_marked(p, written);
		if (kind == SHARED)
			EXPECT(soft_dirty_pages(p->mem) == count(written),
			       true);
		EXPECT((int)track(p, false), 0);
	}
	/* an MR that goes before anybody has looked */
	clear_soft_dirty();
	write_all(p, written);
	MUST(!ibv_dereg_mr(p->mr));
	expect_marked(p, written);
	EXPECT((int)track(p, false), 0);
	munmap(p->mem, PAGES * PAGE);
}

/* an MR that comes and goes between two TRACKs, and the bits are cleared meanwhile */
static void unasked(struct pair *p, enum kind kind)
{
	const size_t clean = kind == SMALL ? PAGES : 0;
	char written[PAGES];

	take_memory(p, kind);
	clear_soft_dirty();
	write_all(p, written);
	/* or this tests nothing */
	EXPECT(soft_dirty_pages(p->mem) == clean, true);
	MUST(!ibv_dereg_mr(p->mr));
	expect_marked(p, written);
	EXPECT((int)track(p, false), 0);
	munmap(p->mem, PAGES * PAGE);
}

/* memory that is no more where it was registered: of an MR that is there, and goes */
static void lost(struct pair *p, enum kind kind)
{
	char *other = map(kind), written[PAGES];

	take_memory(p, kind);
	track(p, false);
	MUST(mremap(p->mem, PAGES * PAGE, PAGES * PAGE,
		    MREMAP_MAYMOVE | MREMAP_FIXED, other) == other);
	EXPECT((int)track(p, false), 0);
	write_all(p, written);
	EXPECT((int)track(p, true), 0);
	EXPECT((int)track(p, false), 0);
	write_all(p, written);
	MUST(!ibv_dereg_mr(p->mr));
	track(p, true);
	track(p, false);
	munmap(other, PAGES * PAGE);
}

/* what was pinned to be read is not looked at, for it gets no other rights */
static void other_rights(struct pair *p)
{
	char *mem = map(SMALL);
	struct ibv_mr *mr;

	MUST(mr = ibv_reg_mr(p->b.pd, mem, PAGES * PAGE,
			     IBV_ACCESS_REMOTE_READ));
	EXPECT((int)track(p, false), 0);
	EXPECT(raw_rereg_mr(p->b.ctx->cmd_fd, mr->handle,
			    IBV_REREG_MR_CHANGE_ACCESS, p->b.pd->handle,
			    IBV_ACCESS_LOCAL_WRITE),
	       -EACCES);
	EXPECT((int)track(p, false), 0);
	MUST(!ibv_dereg_mr(mr));
	munmap(mem, PAGES * PAGE);
}

static void track_ends(const struct pair *p)
{
	struct rxe_migr_track_resp resp;

	MUST(!migr_cmd_track(p->b.ctx->cmd_fd, RXE_MIGR_TRACK_END, 0, &resp));
	EXPECT((int)resp.regions, 0);
	EXPECT(resp.since != 0, true);
}

/* with all there is: how many pages */
static size_t track_begins(const struct pair *p)
{
	struct rxe_migr_track_resp resp;

	MUST(!migr_cmd_track(p->b.ctx->cmd_fd, 0, 0, &resp));
	EXPECT((int)resp.flags, RXE_MIGR_TRACK_BEGUN);
	return resp.pages;
}

static void ends(struct pair *p)
{
	char written[PAGES];

	take_memory(p, SHARED);
	track(p, false);
	track_ends(p);
	clear_soft_dirty();
	write_all(p, written);
	EXPECT(soft_dirty_pages(p->mem) == 0, true);
	EXPECT(track_begins(p) >= PAGES, true);
	EXPECT(soft_dirty_pages(p->mem) == PAGES, true);
	MUST(!ibv_dereg_mr(p->mr));
	munmap(p->mem, PAGES * PAGE);
}

/* above 1 GiB, of which all parts are the same file */
static void large(struct pair *p)
{
	const size_t part = HUGE, parts = 640;
	int fd = memfd_create("large", MFD_CLOEXEC);
	char *mem = mmap(NULL, parts * part, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	MUST(fd >= 0 && !ftruncate(fd, (off_t)part) && mem != MAP_FAILED);
	for (size_t i = 0; i < parts; i++)
		MUST(mmap(mem + i * part, part, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_FIXED, fd, 0) == mem + i * part);
	close(fd);
	MUST(mr = ibv_reg_mr(p->b.pd, mem, parts * part, ALL_ACCESS));
	track_ends(p);
	EXPECT(track_begins(p) >= parts * part / PAGE, true);
	clear_soft_dirty();
	post(&p->a, IBV_WR_RDMA_WRITE, of(p->a.mr, 0, 1), mr, parts * part - 1);
	EXPECT((int)track(p, false), 1);
	EXPECT(is_soft_dirty(mem + parts * part - 1), true);
	EXPECT(is_soft_dirty(mem + parts * part - 1 - PAGE), false);
	MUST(!ibv_dereg_mr(mr));
	munmap(mem, parts * part);
}

static void bad_arguments(struct pair *p)
{
	struct rxe_migr_track_resp resp;
	int fd = p->b.ctx->cmd_fd;

	EXPECT(migr_cmd_track(fd, 2, 0, &resp), -EPROTO);
	EXPECT(migr_cmd_track(fd, ~0U, 0, &resp), -EPROTO);
	EXPECT(migr_cmd_track(fd, 0, -1, &resp), -ESRCH);
	EXPECT(migr_cmd_track(fd, 0, 2, &resp), -ESRCH); /* the kernel's */
	EXPECT(migr_cmd_track(fd, 0, getpid(), &resp), 0);
	EXPECT((int)resp.regions, 1);
	EXPECT((int)resp.flags, RXE_MIGR_TRACK_BEGUN);
	/* in the memory of another one there is nothing of it */
	post(&p->a, IBV_WR_RDMA_WRITE, of(p->a.mr, 0, 1), p->b.mr, 0);
	EXPECT(migr_cmd_track(fd, 0, 1, &resp), 0);
	EXPECT((int)resp.flags, RXE_MIGR_TRACK_LOST);
}

void pair_open(struct rig *rig, struct pair *p)
{
	*p = (struct pair){ .rig = rig };
	side_open(rig, &p->a);
	side_open(rig, &p->b);
	qp_connect(rig, p->a.qp[0], p->b.qp[0]->qp_num, 0, 0);
	qp_connect(rig, p->b.qp[0], p->a.qp[0]->qp_num, 0, 0);
}

void pair_close(struct pair *p)
{
	side_close(&p->a);
	side_close(&p->b);
}

void attack_dirty(struct rig *rig)
{
	struct pair p;

	pair_open(rig, &p);
	bad_arguments(&p);
	for (enum kind kind = HUGE_PAGES; kind <= SMALL; kind++)
		rounds(&p, kind);
	for (enum kind kind = HUGE_PAGES; kind <= SMALL; kind++)
		unasked(&p, kind);
	for (enum kind kind = HUGE_PAGES; kind <= SMALL; kind++)
		lost(&p, kind);
	dirty_ways(&p);
	other_rights(&p);
	ends(&p);
	large(&p);
	pair_close(&p);
}
