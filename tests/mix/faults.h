/* SPDX-License-Identifier: GPL-2.0 */
/* What test-faults tries. */
#ifndef MIX_FAULTS_H
#define MIX_FAULTS_H

#include <stdint.h>

#include "fakenic.h"

/* How the sides run, and a word for it. */
struct mode {
	const char *name;
	unsigned int how;      /* EVENTS_... */
	unsigned int cqs, srq; /* srq: of as many QPs; 0: none */
	unsigned int windows;  /* sides that offer some, a bit for each */
	uint32_t without;
};

struct fault_case {
	const char *name, *expected;
	const struct mode *mode; /* NULL: plain */
	unsigned int after;
};

struct again {
	enum fault fault;
	const char *mode; /* of modes[] */
};

extern const struct mode plain, modes[];
extern const unsigned int mode_count, again_count;
extern const struct fault_case faults[FAULTS];
extern const struct again again[];

#endif
