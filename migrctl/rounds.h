/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory that is copied while the container runs, in rounds: each has what was written since
 * the one before (criu/README.md, Rounds)
 */
#ifndef MIGRCTL_ROUNDS_H
#define MIGRCTL_ROUNDS_H

#include <stdint.h>

#include "move.h"

enum {
	ROUNDS_AUTO = 99, /* as long as each is smaller than the one before */
	ROUNDS_MOST = 16,
};

struct rounds {
	int most;	/* or ROUNDS_AUTO */
	int n;		/* that were made */
	uint64_t bytes; /* of pages in the last one, and in that before */
	uint64_t before;
};

/* "pre_copy" of what was asked: 0 if there is none, and -1 if that is no number of rounds */
int rounds_wanted(const json_t *asked);

/* Is there to be another one? */
bool rounds_go_on(const struct rounds *r);

/* the runtime makes round @number, into a folder of the images */
bool rounds_make(struct move *m, const char *number);

/* a round more; how large is it? */
bool rounds_measure(struct rounds *r, struct move *m);

#endif
