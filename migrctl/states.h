/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How far a move is, at each of its ends, and who may run the container then. A move is a
 * two-phase commit: the target votes by a restore that is complete but not resumed, and the
 * source decides, by MOVE_GRANTED. Before that it alone has the right to run the container,
 * from then on the target has, until it says that it has dropped it. What was decided is in
 * a journal (journal.h), which outlives the processes of the move, and not the host; nothing
 * else outlives it either.
 */
#ifndef MIGRCTL_STATES_H
#define MIGRCTL_STATES_H

#include <stdbool.h>

enum move_role {
	MOVE_SOURCE,
	MOVE_TARGET,
};

enum move_state {
	MOVE_PREPARING, /* both ends make ready */
	MOVE_COPYING,	/* what is sent while it runs */
	MOVE_STOPPING,	/* source: it is dumped */
	MOVE_HELD,    /* source: it is dumped, stopped, and can still run on */
	MOVE_READY,   /* target: it is restored, and waits */
	MOVE_GRANTED, /* the target may run it; the source keeps it, stopped */
	MOVE_LEFT,    /* source: it runs there, and is gone here */
	MOVE_BACK,    /* source: it runs on here */
	MOVE_RUNNING, /* target: it runs here */
	MOVE_DROPPED, /* target: nothing is here */
	MOVE_STATES,
};

/* what an end says when the other one asks what has become of the move */
enum move_answer {
	ANSWER_WAIT,
	ANSWER_GO,	/* of the source: the target may run it */
	ANSWER_DROP,	/* of the source: it may not */
	ANSWER_RUNS,	/* of the target */
	ANSWER_DROPPED, /* of the target */
	ANSWER_UNKNOWN, /* it knows of no such move */
	ANSWER_DIED,	/* the same, and its host was started anew since */
	ANSWER_FENCED,	/* somebody vouches for it that nothing runs there */
	MOVE_ANSWERS,
};

const char *state_name(enum move_state state);
/* false if it is none */
bool state_of(const char *name, enum move_state *state);
const char *answer_name(enum move_answer answer);
bool answer_of(const char *name, enum move_answer *answer);

bool state_may_follow(enum move_role role, enum move_state from,
		      enum move_state to);
/* nothing comes after it */
bool state_is_last(enum move_state state);

enum move_answer state_answer(enum move_role role, enum move_state state);

/* What the other end's answer makes of it; the same if that decides nothing. */
enum move_state state_after(enum move_role role, enum move_state state,
			    enum move_answer answer);

/**
 * state_orphaned - what becomes of a move whose process here has died
 * @runs: whether the container runs here, when all that the move has started has ended
 *
 * Return: the same if only the other end knows
 */
enum move_state state_orphaned(enum move_role role, enum move_state state,
			       bool runs);

#endif
