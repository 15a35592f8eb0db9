// SPDX-License-Identifier: GPL-2.0
/* Random numbers against arithmetic done in another way, without MPI. */
#include <inttypes.h>
#include <stdio.h>

#include "prng.h"

static int failures;

static void expect(const char *what, uint64_t seen, uint64_t wanted)
{
	if (seen == wanted)
		return;
	printf("FAILED: %s is %" PRIu64 ", not %" PRIu64 "\n", what, seen,
	       wanted);
	failures++;
}

/* The definition, in 128 bits and with a division. */
static uint64_t step(uint64_t x)
{
	return (unsigned __int128)x * 1220703125 % ((uint64_t)1 << 46);
}

int main(void)
{
	const uint64_t far[] = { 0,	1,     2,	1023,
				 65536, 99999, 1 << 20, (1 << 20) + 1 };
	const uint64_t order = UINT64_C(1) << 44;
	uint64_t x = PRNG_SEED, y = PRNG_SEED, i;
	unsigned int k;

	/* From a calculator */
	expect("the first number", prng_next(&x), UINT64_C(55909509111989));
	expect("the second number", prng_next(&x), UINT64_C(61155031930969));

	x = PRNG_SEED;
	k = 0;
	for (i = 0; k < sizeof(far) / sizeof(*far); i++) {
		while (k < sizeof(far) / sizeof(*far) && far[k] == i) {
			expect("a number", x, y);
			expect("a skip", prng_skip(PRNG_SEED, far[k++]), y);
		}
		prng_next(&x);
		y = step(y);
	}

	/* A multiplier that is 5 mod 8 has this order modulo 2^46. */
	expect("a full turn", prng_skip(PRNG_SEED, order), PRNG_SEED);
	if (prng_skip(PRNG_SEED, order / 2) == PRNG_SEED)
		expect("half a turn", PRNG_SEED, 0);
	expect("two skips", prng_skip(prng_skip(271828183, 1 << 30), 12345),
	       prng_skip(271828183, (1 << 30) + 12345));

	if (prng_unit(1) != 0x1p-46 || prng_unit(PRNG_MASK) >= 1 ||
	    prng_unit(UINT64_C(1) << 45) != 0.5)
		expect("a unit", 0, 1);
	puts(failures ? "failed" : "ok");
	return !!failures;
}
