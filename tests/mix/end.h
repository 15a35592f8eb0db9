/* SPDX-License-Identifier: GPL-2.0 */
/* How a run ends, and what is looked at only then. */
#ifndef MIX_END_H
#define MIX_END_H

#include "options.h"
#include "traffic.h"
#include "verbs.h"

/* The first word of whatever crosses the control connection @fd. */
#define MAGIC 0x72635f6d69780004ULL /* "rc_mix", version 4 */

/*
 * Drained, the sides compare their totals, and try what must not work any more. Then
 * all objects are destroyed: only then the run is a good one. If a CQ cannot be, it is
 * still in @v, and so is what would come after it.
 */
void end_run(struct traffic *t, struct verbs *v, const struct options *o,
	     int fd);

#endif
