/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef MIGRRDMA_CLOCK_H
#define MIGRRDMA_CLOCK_H

#include <stdint.h>
#include <time.h>

/** clock_ns - of CLOCK_MONOTONIC, for deadlines */
static inline uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

#endif
