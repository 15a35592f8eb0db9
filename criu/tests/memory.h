/* SPDX-License-Identifier: GPL-2.0 */
/* The memory that memory.c registers, and what it holds */
#ifndef MEMORY_H
#define MEMORY_H

#include "loop.h"

#define PAGE 4096UL
#define HUGE (2UL << 20)
#define MOST (2 * HUGE) /* bytes of an area */

enum area {
	PRIVATE,
	TRANSPARENT, /* huge pages */
	HUGETLB,
	ANONYMOUS, /* from here on to NAMED: shared with the child */
	SYSV,
	UNLINKED,  /* POSIX shared memory without a name */
	NAMED,	   /* the same with a name, NAME */
	COPIED,	   /* a file's, private */
	READ_ONLY, /* a file's */
	MIXED,	   /* one region, two mappings of different kinds */
	AREAS
};

#define NAME "/memory-test"

extern char *at[AREAS];
extern const size_t length[AREAS];

/* fills them, and makes the file of two areas */
void map_areas(const char *file);
/* if the kernel makes huge pages, TRANSPARENT must have some, all over */
void check_transparent(void);

/* `size` bytes of an area's content, from byte `from` on, in its life number `life` */
void fill(char *to, int area, int life, size_t from, size_t size);
int holds(const char *p, int area, int life, size_t from, size_t size);

#endif /* MEMORY_H */
