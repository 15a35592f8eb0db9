// SPDX-License-Identifier: GPL-2.0
/*
 * The end of lossy_mix. Neither side waits for the other: sends complete without it,
 * and in ERR nothing comes in any more.
 */
#include <inttypes.h>
#include <time.h>

#include "check.h"
#include "lossy.h"

#define END_SECONDS 10

static bool all_sent(const struct lossy *l)
{
	for (uint32_t i = 0; i < l->lanes; i++)
		if (l->lane[i].done != l->lane[i].next)
			return false;
	return true;
}

static bool none_posted(const struct lossy *l)
{
	for (uint32_t i = 0; i < l->lanes && !l->srq; i++)
		if (l->lane[i].completed != l->lane[i].posted)
			return false;
	return true;
}

static void wait_for(struct lossy *l, bool (*is_so)(const struct lossy *))
{
	const struct timespec pause = { .tv_nsec = 500000 };
	double until = now() + END_SECONDS;

	while (!is_so(l) && !verdict_fatal(&l->verdict) && now() < until)
		if (!messages_poll(l))
			nanosleep(&pause, NULL);
}

static void missing(struct lossy *l, const struct lane *lane, const char *what,
		    uint64_t done, uint64_t posted)
{
	if (done != posted && !verdict_fatal(&l->verdict))
		violation(&l->verdict,
			  "QP 0x%x: %s completions missing: %" PRIu64
			  " of %" PRIu64,
			  lane->qpn, what, posted - done, posted);
}

void lossy_end(struct lossy *l)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };

	wait_for(l, all_sent);
	for (uint32_t i = 0; i < l->lanes; i++)
		missing(l, &l->lane[i], "send", l->lane[i].done,
			l->lane[i].next);
	if (verdict_fatal(&l->verdict))
		return;

	/* each receive that no message has come to is flushed once */
	l->ending = true;
	for (uint32_t i = 0; i < l->lanes; i++)
		MUST(!(errno = ibv_modify_qp(l->lane[i].qp, &error,
					     IBV_QP_STATE)));
	wait_for(l, none_posted);
	while (messages_poll(l) && !verdict_fatal(&l->verdict))
		; /* what comes beyond these */
	for (uint32_t i = 0; i < l->lanes && !l->srq; i++)
		missing(l, &l->lane[i], "receive", l->lane[i].completed,
			l->lane[i].posted);
}
