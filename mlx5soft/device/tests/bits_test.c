// SPDX-License-Identifier: GPL-2.0
/* bits.h: against known places, and fast against slow */

#include <stdlib.h>

#include "bits.h"
#include "../../../tests/check.h"

static void known(void)
{
	uint8_t eqc[BYTES(eqc)] = { 0 }, mkc[BYTES(mkc)] = { 0 };

	SET(eqc, eqc, log_eq_size, 0x15);
	SET(eqc, eqc, uar_page, 0x123456);
	CHECK(get_be32(eqc + 12) == 0x15123456);
	SET(eqc, eqc, log_eq_size, 0x3f); /* cut to 5 bits */
	CHECK(get_be32(eqc + 12) == 0x1f123456);
	CHECK(GET(eqc, eqc, uar_page) == 0x123456);

	SET(mkc, mkc, start_addr, 0x1122334455667788ULL);
	CHECK(get_be64(mkc + 16) == 0x1122334455667788ULL);
	CHECK(GET(mkc, mkc, start_addr) == 0x1122334455667788ULL);
	SET(mkc, mkc, free, 1);
	CHECK(mkc[0] == 0x40);
	CHECK(BYTES(mkc) == 64 && BYTES(qpc) == 232);
}

static void fast_and_slow(void)
{
	uint8_t a[16], b[16];
	size_t at, len, i;
	uint64_t v;

	for (at = 0; at < 64; at++)
		for (len = 1; len <= 64; len++) {
			for (i = 0; i < sizeof(a); i++)
				a[i] = b[i] = rand();
			v = (uint64_t)rand() << 33 ^ (uint64_t)rand() << 11 ^
			    rand();
			bits_set(a, at, len, v);
			bits_set_slow(b, at, len, v);
			MUST(!memcmp(a, b, sizeof(a)));
			v &= ~0ULL >> (64 - len);
			MUST(bits_get(a, at, len) == v);
			MUST(bits_get_slow(a, at, len) == v);
		}
}

int main(void)
{
	known();
	fast_and_slow();
	return check_result();
}
