/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef MIGRRDMA_RANDOM_H
#define MIGRRDMA_RANDOM_H

#include <stdint.h>
#include <sys/random.h>

#include "clock.h"

/** random_bits - so many, not all 0: what ids of ours begin with, and no application's */
static inline uint64_t random_bits(unsigned int bits)
{
	uint64_t r;

	do {
		if (getrandom(&r, sizeof(r), 0) != sizeof(r))
			r = clock_ns();
		r >>= 64 - bits;
	} while (!r);
	return r;
}

#endif
