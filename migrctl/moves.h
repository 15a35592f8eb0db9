/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the daemon is asked about moves that there are
 */
#ifndef MIGRCTL_MOVES_H
#define MIGRCTL_MOVES_H

#include "talk.h"

/* who asks, and what for */
struct caller {
	struct talk talk;
	const char *from;
	bool is_host; /* or root here; else somebody who moves containers */
};

/* one that is not over, of a container: to its end, or by somebody's word for the other end */
void moves_abort(struct caller *c, const json_t *asked);
void moves_recover(struct caller *c, const json_t *asked);

/* for the other end of one: what has become of it, and that nobody will ask that again */
void moves_outcome(struct caller *c, const json_t *asked);
void moves_forget(struct caller *c, const json_t *asked);

#endif
