// SPDX-License-Identifier: GPL-2.0
#include "states.h"

#include <stddef.h>
#include <string.h>

static const char *const states[] = {
	[MOVE_PREPARING] = "preparing", [MOVE_COPYING] = "copying",
	[MOVE_STOPPING] = "stopping",	[MOVE_HELD] = "held",
	[MOVE_READY] = "ready",		[MOVE_GRANTED] = "granted",
	[MOVE_LEFT] = "left",		[MOVE_BACK] = "back",
	[MOVE_RUNNING] = "running",	[MOVE_DROPPED] = "dropped",
};

static const char *const answers[] = {
	[ANSWER_WAIT] = "wait",	      [ANSWER_GO] = "go",
	[ANSWER_DROP] = "drop",	      [ANSWER_RUNS] = "runs",
	[ANSWER_DROPPED] = "dropped", [ANSWER_UNKNOWN] = "unknown",
	[ANSWER_DIED] = "died",	      [ANSWER_FENCED] = "fenced",
};

static bool find(const char *const all[], size_t n, const char *name, size_t *i)
{
	for (*i = 0; name && *i < n; ++*i)
		if (!strcmp(all[*i], name))
			return true;
	return false;
}

const char *state_name(enum move_state state)
{
	return states[state];
}

bool state_of(const char *name, enum move_state *state)
{
	size_t i;

	if (!find(states, MOVE_STATES, name, &i))
		return false;
	*state = (enum move_state)i;
	return true;
}

const char *answer_name(enum move_answer answer)
{
	return answers[answer];
}

bool answer_of(const char *name, enum move_answer *answer)
{
	size_t i;

	if (!find(answers, MOVE_ANSWERS, name, &i))
		return false;
	*answer = (enum move_answer)i;
	return true;
}

#define TO(state) (1u << (state))

bool state_may_follow(enum move_role role, enum move_state from,
		      enum move_state to)
{
	static const unsigned int next[][MOVE_STATES] = {
		[MOVE_SOURCE] = {
			[MOVE_PREPARING] = TO(MOVE_COPYING) |
					   TO(MOVE_STOPPING) | TO(MOVE_BACK),
			[MOVE_COPYING] = TO(MOVE_STOPPING) | TO(MOVE_BACK),
			[MOVE_STOPPING] = TO(MOVE_HELD) | TO(MOVE_BACK),
			[MOVE_HELD] = TO(MOVE_GRANTED) | TO(MOVE_BACK),
			[MOVE_GRANTED] = TO(MOVE_LEFT) | TO(MOVE_BACK),
		},
		[MOVE_TARGET] = {
			[MOVE_PREPARING] = TO(MOVE_COPYING) | TO(MOVE_DROPPED),
			[MOVE_COPYING] = TO(MOVE_READY) | TO(MOVE_DROPPED),
			[MOVE_READY] = TO(MOVE_GRANTED) | TO(MOVE_DROPPED),
			[MOVE_GRANTED] = TO(MOVE_RUNNING) | TO(MOVE_DROPPED),
		},
	};

	return next[role][from] & TO(to);
}

bool state_is_last(enum move_state state)
{
	return state >= MOVE_LEFT;
}

enum move_answer state_answer(enum move_role role, enum move_state state)
{
	switch (state) {
	case MOVE_GRANTED:
		return role == MOVE_SOURCE ? ANSWER_GO : ANSWER_WAIT;
	case MOVE_LEFT:
		return ANSWER_GO;
	case MOVE_BACK:
		return ANSWER_DROP;
	case MOVE_RUNNING:
		return ANSWER_RUNS;
	case MOVE_DROPPED:
		return ANSWER_DROPPED;
	default:
		return ANSWER_WAIT;
	}
}

enum move_state state_after(enum move_role role, enum move_state state,
			    enum move_answer answer)
{
	if (role == MOVE_SOURCE && state == MOVE_GRANTED) {
		if (answer == ANSWER_RUNS)
			return MOVE_LEFT;
		/* ANSWER_DIED does not tell whether it has run there before */
		if (answer == ANSWER_DROPPED || answer == ANSWER_FENCED)
			return MOVE_BACK;
	}
	if (role == MOVE_TARGET && state == MOVE_READY) {
		/* nor does it tell whether it was back there before, or went elsewhere */
		if (answer == ANSWER_GO || answer == ANSWER_FENCED)
			return MOVE_GRANTED;
		if (answer == ANSWER_DROP)
			return MOVE_DROPPED;
	}
	return state;
}

enum move_state state_orphaned(enum move_role role, enum move_state state,
			       bool runs)
{
	if (state_is_last(state))
		return state;
	if (role == MOVE_SOURCE)
		return state == MOVE_GRANTED ? state : MOVE_BACK;
	return state == MOVE_GRANTED && runs ? MOVE_RUNNING : MOVE_DROPPED;
}
