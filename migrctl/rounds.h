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
	BUDGET_MOST = 600000, /* ms */
};

struct rounds {
	int most;	/* or ROUNDS_AUTO; 0: none */
	int budget;	/* ms; 0: none */
	int n;		/* that were made */
	uint64_t bytes; /* of pages in the last one, and in that before */
	uint64_t before;
	double rate; /* bytes in a second, of the round that had most of them */
};

/*
 * "pre_copy" and "budget" of what was asked for. Return: false if that is no number of rounds, or
 * a budget with a number of them, or none at all
 */
bool rounds_wanted(struct rounds *r, const json_t *asked);

/* Is there to be another one? */
bool rounds_go_on(const struct rounds *r);

/* how long what the last one had would stop it, in ms, as fast as the best of them was */
double rounds_estimate(const struct rounds *r);

/* the runtime makes one more, into a folder of the images; and which that is */
bool rounds_make(struct rounds *r, struct move *m, char *folder, size_t bytes);

/**
 * rounds_sent - the last one is at the other end
 * @s: seconds that it has taken, with that
 *
 * Its pages are not kept here: of a parent CRIU wants to know only which these are.
 */
bool rounds_sent(struct rounds *r, struct move *m, double s);

#endif
