/* SPDX-License-Identifier: GPL-2.0 */
/* Progress and result, as JSON on one line each. */
#ifndef MIX_REPORT_H
#define MIX_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "traffic.h"

/*
 * Time as the run feels it. Steps back, as between hosts, count as nothing;
 * @active leaves out what is longer than a second in which we did not run,
 * so that being stopped makes no time-out expire.
 */
struct run_clock {
	uint64_t raw;	  /* CLOCK_MONOTONIC, ns */
	uint64_t elapsed; /* ns since the start */
	uint64_t active;
	uint64_t last_done;   /* elapsed, at the last completion */
	uint64_t last_active; /* active, at the last completion */
	uint64_t max_gap;     /* elapsed, between completions */
};

void run_clock_start(struct run_clock *c);
/* Nothing has to complete: this time makes no time-out expire either. */
static inline void run_clock_rests(struct run_clock *c)
{
	c->last_active = c->active;
}
/* @completed: something has completed since the last tick. */
void run_clock_tick(struct run_clock *c, bool completed);

/*
 * Replaces the file at @path. It is opened, written and renamed in one go, so
 * that a reader sees a whole line and no descriptor stays open.
 */
int report_progress(const char *path, struct traffic *t,
		    const struct run_clock *c);

/* The whole result as one JSON object, without a newline. */
void report_result(FILE *f, struct traffic *t, const struct run_clock *c);

#endif
