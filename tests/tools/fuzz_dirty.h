/* SPDX-License-Identifier: GPL-2.0 */
/* What the attacks on TRACK have in common (fuzz_dirty.c) */
#ifndef FUZZ_DIRTY_H
#define FUZZ_DIRTY_H

#include "migr_fuzz.h"

#define PAGE 4096UL
#define PAGES 1024UL /* two huge ones */
#define HUGE (512 * PAGE)
#define FEW 16 /* pages */
#define ALL_ACCESS                                          \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

enum kind {
	HUGE_PAGES,
	SHARED,
	SMALL, /* their soft-dirty bits are never cleared while they are pinned */
};

/* @b has the memory that is looked at */
struct pair {
	struct rig *rig;
	struct side a, b;
	char *mem;
	struct ibv_mr *mr;
};

/* two connected sides; b is tracked */
void pair_open(struct rig *rig, struct pair *p);
void pair_close(struct pair *p);

/* of this process */
void clear_soft_dirty(void);
bool is_soft_dirty(const void *at);
void read_soft_dirty(const char *mem, bool dirty[PAGES]);
size_t soft_dirty_pages(const char *mem); /* of PAGES */

/* pages that are written, on a huge page's boundary; PAGES of them */
char *map_bytes(enum kind kind, size_t bytes);
char *map(enum kind kind);
/* such memory, and an MR of b */
void take_memory(struct pair *p, enum kind kind);

/* one work request, until it is complete */
void post(struct side *s, enum ibv_wr_opcode opcode, struct ibv_sge sge,
	  const struct ibv_mr *to, uint64_t offset);
struct ibv_sge of(const struct ibv_mr *mr, uint64_t offset, uint32_t bytes);
/* page i of p->mr */
void write_page(struct pair *p, size_t i);
/* some pages, in every way; @written has a byte for each of them */
void write_all(struct pair *p, char *written);
/* how many pages the device has written; must it say LOST? */
size_t track(const struct pair *p, bool lost);
void expect_marked(const struct pair *p, const char *written);

/* ---- the parts that are other files ---- */

void dirty_ways(struct pair *p);			/* fuzz_ways.c */
void tracked_meanwhile(struct pair *p, enum kind kind); /* fuzz_meanwhile.c */
void tracked_rounds(struct rig *rig);			/* fuzz_rounds.c */

#endif /* FUZZ_DIRTY_H */
