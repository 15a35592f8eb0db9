// SPDX-License-Identifier: GPL-2.0
#include "timing.h"

#include <time.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void timing_begin(struct timing *t)
{
	t->n = 0;
	t->begun = now();
}

void timing_mark(struct timing *t, const char *phase)
{
	if (t->n == TIMING_MOST)
		return;
	t->marks[t->n].phase = phase;
	t->marks[t->n++].at = now();
}

json_t *timing_told(const struct timing *t)
{
	json_t *all = json_array();
	double from = t->begun;

	for (int i = 0; i < t->n; i++) {
		json_array_append_new(all, json_pack("{sssf}", "phase",
						     t->marks[i].phase, "ms",
						     (t->marks[i].at - from) *
							     1000));
		from = t->marks[i].at;
	}
	return all;
}
