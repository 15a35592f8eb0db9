/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Whether CQs are armed, and whose the events are that come of that: what the layer itself
 * has posted, or flushed, wakes nobody, as some programs poll once for each event, and take
 * it for a completion.
 *
 * A device has one event for each time that a CQ is armed, of the first completion after
 * that. Where completions are taken, the layer sees whose that is; before, and behind that
 * all are the application's.
 */
#ifndef MIGRRDMA_ARMED_H
#define MIGRRDMA_ARMED_H

#include "shadow.h"

/*
 * whose the first completion is since a CQ was armed; with the CQ's lock, or a section where
 * none is taken
 */
enum cause {
	CAUSE_NONE, /* none has been taken */
	CAUSE_OURS,
	CAUSE_THEIRS,
};

/* was it armed, and no event has come since? The context's lock is held. */
bool armed_is(const struct shadow_cq *cq);

/** armed_notify - ibv_req_notify_cq() of who has a section; nothing was taken */
int armed_notify(struct shadow_cq *cq, bool solicited_only);

/** armed_notify_slow - the same where something may be taken; the CQ's lock is held */
int armed_notify_slow(struct shadow_cq *cq, bool solicited_only);

/**
 * armed_wake - an event of it comes, if it is armed: there may be none on its way
 * @before: it is of what was there when it was armed; armed_polled() takes it back
 */
void armed_wake(struct shadow_cq *cq, bool before);

/**
 * armed_rearm - the application waits for an event, and the real one may not be armed: now
 *	it is, or there is one
 *
 * Return: 0, or what the provider says
 */
int armed_rearm(struct shadow_cq *cq);

/** armed_took - this was taken, and is the layer's; the CQ's lock is held */
void armed_took(struct shadow_cq *cq, const struct ibv_wc *wc);

/**
 * armed_is_own - is an event that was read of the layer's completions only, or one more than
 *	the application has asked for?
 * @real: the CQ that it came of: the CQ may have another one now, or none
 * @was_slow: had it CQ_SLOW, in the section in which the event was read? Else that is from
 *	before the layer has posted anything.
 *
 * Then the application waits for another one, and armed_rearm() is to be called; until then
 * completions are taken.
 */
bool armed_is_own(struct shadow_cq *cq, const struct ibv_cq *real,
		  bool was_slow);

/**
 * armed_polled - all that was taken is polled; the CQ's lock is held
 *
 * An event that the application got for what was there when it armed the CQ is taken back,
 * if it has not read it: devices have none, or one that tells the same.
 */
void armed_polled(struct shadow_cq *cq);

#endif
