/* SPDX-License-Identifier: GPL-2.0 */
/*
 * When the phases of a move have ended, as its source sees it
 */
#ifndef MIGRCTL_TIMING_H
#define MIGRCTL_TIMING_H

#include <jansson.h>

enum {
	TIMING_MOST = 16,
};

struct timing {
	double begun; /* s, CLOCK_BOOTTIME */
	struct {
		const char *phase;
		double at;
	} marks[TIMING_MOST];
	int n;
};

void timing_begin(struct timing *t);
void timing_mark(struct timing *t, const char *phase); /* that ends now */

/* [{ "phase", "ms" }], in their order */
json_t *timing_told(const struct timing *t);

#endif
