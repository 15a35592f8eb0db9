// SPDX-License-Identifier: GPL-2.0
#include "gaps.h"

#include <stdlib.h>
#include <string.h>

bool gaps_init(struct gaps *g, unsigned int n)
{
	*g = (struct gaps){ .n = n, .after = calloc(n, sizeof(*g->after)) };
	return g->after;
}

void gaps_free(struct gaps *g)
{
	free(g->after);
	g->after = NULL;
}

void gaps_begin(struct gaps *g, uint64_t now)
{
	memset(g->after, 0, g->n * sizeof(*g->after));
	g->last = g->begin = g->end = now;
	g->messages = 0;
}

void gaps_completed(struct gaps *g, unsigned int i, uint64_t now)
{
	g->messages++;
	if (now - g->last > g->end - g->begin) {
		g->begin = g->last;
		g->end = now;
		memset(g->after, 0, g->n * sizeof(*g->after));
	}
	if (!g->after[i])
		g->after[i] = now;
	g->last = now;
}

/* one that goes on counts, too */
double gaps_ms(const struct gaps *g, uint64_t now)
{
	uint64_t gap = g->end - g->begin;

	if (now - g->last > gap)
		gap = now - g->last;
	return (double)gap / 1e6;
}

double gaps_all_ms(const struct gaps *g)
{
	uint64_t last = 0;

	for (unsigned int i = 0; i < g->n; i++) {
		if (!g->after[i])
			return 0;
		if (g->after[i] > last)
			last = g->after[i];
	}
	return (double)(last - g->begin) / 1e6;
}
