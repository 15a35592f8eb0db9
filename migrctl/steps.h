/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the time of a move went into: steps, of which CRIU's are found in its log
 */
#ifndef MIGRCTL_STEPS_H
#define MIGRCTL_STEPS_H

#include <stdbool.h>

#include <jansson.h>

enum {
	STEPS_MOST = 4096, /* what comes then is taken for the last one */
};

struct steps {
	struct step {
		const char *
			what; /* a literal; those of RDMA begin with STEPS_RDMA,
				 and of the layer with STEPS_LAYER */
		double at, end; /* s */
	} *list;
	int n;
};

#define STEPS_RDMA "RDMA: "
#define STEPS_LAYER "layer: "
#define STEPS_FREEZE "freeze"	/* before its first one all runs */
#define STEPS_AFTER "CRIU ends" /* all runs */

double steps_now(void); /* s, CLOCK_BOOTTIME */

/* One that follows the same one goes on. */
void steps_add(struct steps *s, const char *what, double at, double end);

/**
 * steps_of_dump - those of a dump, from its log, up to where all is dumped
 * @log: of CRIU, which counts from its own start
 * @held: when that end was, in s
 * @from: what was before that is left out
 *
 * Return: false if the log does not say where that end is
 */
bool steps_of_dump(struct steps *s, const char *log, double from, double held);

/* the same of a restore, to its end; @restored is when all was there, and waited to be resumed */
bool steps_of_restore(struct steps *s, const char *log, double from,
		      double restored);

/* [{ "step", "at_ms", "ms" }], counted from @from */
json_t *steps_told(const struct steps *s, double from);

void steps_free(struct steps *s);

#endif
