/* SPDX-License-Identifier: GPL-2.0 */
/*
 * When the phases of a move have ended, as its source sees it, and what the time in which the
 * container stood still went into, at both ends
 */
#ifndef MIGRCTL_TIMING_H
#define MIGRCTL_TIMING_H

#include <jansson.h>

#include "steps.h"

enum {
	TIMING_MOST = 16,
};

struct timing {
	double begun;  /* s, CLOCK_BOOTTIME, as are all that are no ms */
	double stop;   /* it was told to stop; 0: not yet */
	double dumped; /* CRIU was told to dump it; the same by the protocol */
	double held;   /* all is dumped */
	struct {
		const char *phase;
		double at;
	} marks[TIMING_MOST];
	int n;
	struct steps dump, sent;	   /* here */
	struct steps suspended, connected; /* here, by the layer */
	json_t *there;	 /* what the target says of its own, or NULL */
	double there_at; /* from when on it counts */
};

void timing_begin(struct timing *t);
void timing_free(struct timing *t);
void timing_mark(struct timing *t, const char *phase); /* that ends now */

/* what began then at this end has ended */
void timing_step(struct timing *t, const char *what, double began);

/**
 * timing_there - the target was told to restore, and has answered
 * @told, @answered: by the clock of this host; that of the other one is not known, so what
 * it did is in the middle of that
 * @ms: that it says it took
 */
void timing_there(struct timing *t, double told, double answered, double ms);

/**
 * timing_layer - what a move by the layer has besides
 * @said: { "suspend_ms", ... }, as migr-layer(8) tells; or NULL
 * @resumed: when its connections were to go on there; 0: that is not known
 */
void timing_layer(struct timing *t, const json_t *said, double resumed);

/* how long its connections stood still, in ms; 0 if that is not known */
double timing_suspended(const struct timing *t);

/* [{ "phase", "ms" }], in their order */
json_t *timing_told(const struct timing *t);

/**
 * timing_steps - [{ "host", "step", "at_ms", "ms" }], from when it was told to stop
 * @here, @there: the hosts
 * @stopped_ms: how long it stood still; 0 if that is not known
 */
json_t *timing_steps(const struct timing *t, const char *here,
		     const char *there, double *stopped_ms);

#endif
