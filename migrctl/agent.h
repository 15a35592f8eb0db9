/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What migrctl's commands share: the agent of a host is asked, and moves a container
 */
#ifndef MIGRCTL_AGENT_H
#define MIGRCTL_AGENT_H

#include <stdbool.h>

#include <jansson.h>

#include "talk.h"

/* exit codes */
enum {
	DONE = 0,
	FAILED = 1, /* it was stopped, and runs on where it was */
	USAGE = 2,
	REFUSED = 3, /* it was not stopped */
	NOT_WHOLE =
		4, /* it runs there, but something is missing, or left here */
	DOUBT = 5, /* nobody here knows where it runs */
};

struct options {
	const char *socket; /* of this host's agent */
	const char *on; /* the host whose agent is asked; NULL: this one's */
	const char *to, *fenced, *pre_copy, *budget;
	const char *svg; /* a file for a picture of the timing, or NULL */
	bool json, timing;
};

/* what has become of a container that was to move */
struct outcome {
	int code;
	bool aborted;  /* somebody wants all to end, and the agent was told */
	char why[512]; /* it is not DONE */
};

/* "migrctl: @what: @why", fit for a terminal. Return: REFUSED */
int complain(const char *what, const char *why);

/* a line of JSON */
void print_json(const json_t *o);

/* whose agent is asked */
const char *agent_host(const struct options *o);

/* a connection to it; false, and the talk's reason says why */
bool agent_reach(struct talk *t, const struct options *o);

/**
 * agent_ask - a question, and its answer, over a connection of their own
 * @asked: given back
 *
 * Return: what it says if all is well; else NULL, and the talk's reason says why
 */
json_t *agent_ask(struct talk *t, const struct options *o, json_t *asked);

/**
 * agent_move - have a container moved, and tell what is said until that is over
 *
 * Signals are held (talk.h): one that comes aborts it, if that can be done still.
 */
void agent_move(const struct options *o, const char *name, const char *to,
		struct outcome *r);

#endif
