/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The random numbers of all kernels: x' = 5^13 x mod 2^46, as a number between
 * 0 and 1 when divided by 2^46. Integers, so that nothing is ever rounded: what
 * overflows 64 bits is a multiple of 2^46 as well.
 */
#ifndef NPB_PRNG_H
#define NPB_PRNG_H

#include <stdint.h>

#define PRNG_BITS 46
#define PRNG_MASK ((UINT64_C(1) << PRNG_BITS) - 1)
#define PRNG_FACTOR UINT64_C(1220703125) /* 5^13 */
#define PRNG_SEED UINT64_C(314159265)	 /* of all kernels but EP */

static inline uint64_t prng_next(uint64_t *x)
{
	return *x = *x * PRNG_FACTOR & PRNG_MASK;
}

/* Exact: a double has 53 bits. */
static inline double prng_unit(uint64_t x)
{
	return (double)(int64_t)x * 0x1p-46;
}

/* x after so many steps: each rank starts in the middle of the sequence. */
uint64_t prng_skip(uint64_t x, uint64_t steps);

#endif
