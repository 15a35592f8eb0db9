/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a move by the layer has besides: at each end a program of the runtime, behind a door of
 * its own (doors.h), for as long as the move takes. At the source it has the container's
 * connections stopped before it is dumped, and go on where it runs then; at the target it makes,
 * before that, what its processes will need. What they tell each other is in a folder of the
 * images. They have no say in who may run the container. When the process of a move dies they
 * wait for the one that goes on with it.
 */
#ifndef MIGRCTL_LAYER_H
#define MIGRCTL_LAYER_H

#include <string.h>

#include "move.h"

#define LAYER_AHEAD "ahead" /* the folder */
#define LAYER_MADE LAYER_AHEAD "/made"
#define LAYER_LATE LAYER_AHEAD "/late"

enum {
	/* A source that does not know where it runs lets its partners go after that. */
	LAYER_DOUBT_MS = 600000,
};

/* by what the runtime says of it */
static inline bool layer_moves(const json_t *about)
{
	return !strcmp(talk_text(about, "by"), "layer");
}

/**
 * layer_open - start that program, and wait until it has begun
 * @verb: of the runtime
 * @arg: or NULL
 * @done: what it says then
 */
bool layer_open(struct move *m, const char *verb, const char *arg,
		const char *done);

/* that of a move that has lost its process; there need not be one */
void layer_reopen(struct move *m);

/* Is it there, and waits? If not, the reason. */
bool layer_waits(struct move *m);

void layer_tell(struct move *m, const char *word);

/* a word, and what it says when that is done; the reason if it is not */
bool layer_does(struct move *m, const char *word, const char *done);

/**
 * layer_leave - a last word, and wait until it has done that and ended
 *
 * Return: false, with the reason, if connections are lost; true also if there is none
 */
bool layer_leave(struct move *m, const char *word);

/* how long it took, as the layer tells; NULL if it does not */
json_t *layer_timing(const struct move *m);

/* Is there such a file, and so something in it? */
bool layer_has(const struct move *m, const char *file);

/* a file there to the other end, or from it */
bool layer_give(struct move *m, const char *file);
bool layer_take(struct move *m, const char *file);

#endif
