/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The largest time in which nothing came to an end, and how long after its begin each queue
 * pair went on
 */
#ifndef BLACKOUT_GAPS_H
#define BLACKOUT_GAPS_H

#include <stdbool.h>
#include <stdint.h>

struct gaps {
	unsigned int n; /* queue pairs */
	uint64_t *after; /* ns: the first completion of each after the gap; 0: none */
	uint64_t last, begin, end; /* ns; begin and end are of the largest */
	uint64_t messages;
};

bool gaps_init(struct gaps *g, unsigned int n);
void gaps_free(struct gaps *g);
void gaps_begin(struct gaps *g, uint64_t now); /* anew */
void gaps_completed(struct gaps *g, unsigned int i, uint64_t now);

double gaps_ms(const struct gaps *g, uint64_t now);

/* from its begin until all queue pairs have gone on; 0 if some have not */
double gaps_all_ms(const struct gaps *g);

#endif
