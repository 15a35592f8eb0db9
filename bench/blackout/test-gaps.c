// SPDX-License-Identifier: GPL-2.0
#include "check.h"
#include "gaps.h"

enum {
	MS = 1000000,
};

int main(void)
{
	struct gaps g;

	MUST(gaps_init(&g, 2));
	gaps_begin(&g, 100 * MS);
	gaps_completed(&g, 0, 101 * MS);
	gaps_completed(&g, 1, 103 * MS); /* 2 ms */
	gaps_completed(&g, 0, 104 * MS);
	CHECK(gaps_ms(&g, 104 * MS) == 2);
	CHECK(gaps_all_ms(&g) == 3);
	/* one that has no end yet */
	CHECK(gaps_ms(&g, 154 * MS) == 50);
	gaps_completed(&g, 1, 154 * MS);
	CHECK(gaps_ms(&g, 155 * MS) == 50);
	CHECK(gaps_all_ms(&g) == 0); /* one has not gone on */
	gaps_completed(&g, 1, 160 * MS);
	gaps_completed(&g, 0, 174 * MS);
	CHECK(gaps_all_ms(&g) == 70);
	CHECK(g.messages == 6);
	gaps_begin(&g, 200 * MS);
	CHECK(gaps_ms(&g, 200 * MS) == 0 && gaps_all_ms(&g) == 0);
	gaps_free(&g);
	return check_result();
}
