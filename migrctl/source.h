/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The end of a move that the container leaves: its begin is source.c, and whatever ends it
 * source_end.c
 */
#ifndef MIGRCTL_SOURCE_H
#define MIGRCTL_SOURCE_H

#include "move.h"
#include "rounds.h"
#include "timing.h"

struct source {
	struct move m;
	struct talk *asker; /* may be gone: the move goes on */
	struct timing timing;
	json_t *about; /* what the runtime has said */
	struct rounds rounds;
	bool was_stopped; /* by a process that has died */
	bool by_layer;
	json_t *layer;	/* how long it took, as the layer tells, or NULL */
	double resumed; /* when it runs there, by the layer */
};

/* what is being done, for who has asked; @more, which is given back, says more, or is NULL */
void source_tell(struct source *s, const char *phase, json_t *more);

/**
 * source_commit - all is ready at the target: from now on it has the right to run it
 *
 * Return: false, with the reason, if it could not be given away; else all is over
 */
bool source_commit(struct source *s);

/* Whatever was begun, here and there, is undone; the container runs on. */
void source_back(struct source *s);

/* Tell what has become of it, and leave nothing. */
void source_finish(struct source *s);

#endif
