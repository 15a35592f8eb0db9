// SPDX-License-Identifier: GPL-2.0
#include "prng.h"

/* 5^13 to the power of steps, by the binary digits of steps. */
uint64_t prng_skip(uint64_t x, uint64_t steps)
{
	uint64_t power = PRNG_FACTOR;

	for (; steps; steps >>= 1) {
		if (steps & 1)
			x = x * power & PRNG_MASK;
		power = power * power & PRNG_MASK;
	}
	return x;
}
