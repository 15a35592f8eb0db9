// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ahead.h"
#include "armed.h"
#include "build.h"
#include "clock.h"
#include "events.h"
#include "gate.h"
#include "gid.h"
#include "groups.h"
#include "here.h"
#include "meet.h"
#include "names.h"
#include "presetup.h"
#include "rebind.h"
#include "section.h"
#include "sign.h"
#include "slots.h"
#include "stop.h"
#include "suspend.h"
#include "taken.h"
#include "unplug.h"

enum {
	GIVE_UP_MS = 10000,
	MOST_TRIES = 10,
};

/* seconds that are left; 0: it is not held */
static atomic_uint held;
static unsigned int tries; /* when none was left */

int swap_refuse(struct swap *s, int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(s->reason, sizeof(s->reason), format, args);
	va_end(args);
	return err;
}

struct shadow_qp *swap_find(uint32_t qpn, struct swap *s)
{
	struct shadow_qp *qp, *found = NULL;
	struct shadow_context *c;

	EACH (c, qp, qps)
		if (qp->qp.qp_num == qpn) {
			if (found) { /* of another device */
				swap_refuse(s, EINVAL, "two QPs are 0x%06x",
					    qpn);
				return NULL;
			}
			found = qp;
		}
	if (!found)
		swap_refuse(s, EINVAL, "no QP is 0x%06x", qpn);
	return found;
}

/* --- which --- */

static int choose(const uint32_t *qpns, unsigned int n, struct swap *s)
{
	struct shadow_context *c;
	struct shadow_qp *qp;

	if (!n && !suspend_is_whole())
		return swap_refuse(s, EINVAL, "only some QPs are suspended");
	EACH (c, qp, qps)
		qp->swap.chosen = !n;
	for (unsigned int i = 0; i < n; i++) {
		qp = swap_find(qpns[i], s);
		if (!qp)
			return EINVAL;
		if (!qp->suspended)
			return swap_refuse(s, EINVAL,
					   "QP 0x%06x is not suspended",
					   qp->qp.qp_num);
		qp->swap.chosen = true;
	}
	EACH (c, qp, qps) {
		if (qp->swap.moved && !qp->swap.chosen)
			return swap_refuse(s, EINVAL,
					   "QP 0x%06x is not replaced yet",
					   qp->qp.qp_num);
		s->qps += qp->swap.chosen;
	}
	return 0;
}

/* --- names --- */

/* Tables of numbers get the new ones already: until then nobody has them. */
static int number_qps(void)
{
	struct shadow_context *c;
	struct shadow_qp *qp;
	int err = 0;

	EACH_CHOSEN (c, qp) {
		err = err ? err : names_qpns(c);
		err = err ? err
			  : names_set(c->qpns, qp->other->qp_num,
				      qp->qp.qp_num);
	}
	return err;
}

/* Numbers of those that are destroyed are nobody's, or, on another host, another one's. */
static void unnumber_qps(void)
{
	struct shadow_context *c;
	struct shadow_qp *qp;

	EACH (c, qp, qps)
		if (qp->other && c->qpns)
			names_set(c->qpns, qp->other->qp_num, 0);
	/* for these there is a place */
	EACH (c, qp, qps)
		if (qp->other && c->qpns)
			names_set(c->qpns, qp->real->qp_num, qp->qp.qp_num);
}

/* keys, as they are when regions are replaced */
static struct names *new_keys(struct shadow_context *c)
{
	struct names *n = names_new();
	struct shadow_mr *mr;
	int err = n ? 0 : ENOMEM;

	TAILQ_FOREACH (mr, &c->mrs, entry)
		err = err ? err : names_rename_mr(n, mr, mr->other);
	err = err ? err : rebind_prepare(c, n);
	if (!err)
		return n;
	names_free(n);
	return NULL;
}

static void drop_keys(void)
{
	struct shadow_context *c;

	TAILQ_FOREACH (c, &contexts, entry) {
		names_free(c->other_keys);
		names_free(c->other_windows_at);
		c->other_keys = c->other_windows_at = NULL;
	}
	names_drop_told();
}

static int name_all(bool all, struct swap *s)
{
	struct shadow_context *c;
	int err = number_qps();

	TAILQ_FOREACH (c, &contexts, entry)
		if (all && !err) {
			c->other_keys = new_keys(c);
			err = c->other_keys ? 0 : ENOMEM;
		}
	if (all && !err)
		err = names_note_told();
	return err ? swap_refuse(s, err, "no memory for names") : 0;
}

static void undo_build(void)
{
	unnumber_qps();
	drop_keys();
	build_unmake();
}

/* --- stop --- */

/* all there are, to be locked */
static struct shadow_cq *all_cqs(void)
{
	struct shadow_cq *cq, *all = NULL;
	struct shadow_context *c;

	EACH (c, cq, cqs) {
		cq->also = all;
		all = cq;
	}
	return all;
}

/* Events of flushes are not the application's, nor wake it up. */
static void hold_events(bool hold)
{
	struct shadow_channel *ch;
	struct shadow_context *c;
	struct shadow_cq *cq;

	EACH (c, ch, channels) {
		relay_mute(&ch->relay, ch->real->fd, hold);
		if (hold && !held) /* that somebody may have been told of */
			events_carry(ch->real, true);
		atomic_store(&ch->held, hold);
	}
	EACH (c, cq, cqs)
		if (!hold && atomic_exchange(&cq->unarmed, false))
			armed_rearm(cq);
}

/* All that is posted to them waits; those that do not send are not suspended yet. */
static int hold_posts(bool all, uint64_t deadline, struct swap *s)
{
	const unsigned char flags = SLOW_SUSPENDED | SLOW_RECVS;
	struct shadow_context *c;
	struct shadow_srq *srq;
	struct shadow_qp *qp;

	EACH_CHOSEN (c, qp) {
		atomic_fetch_or(&qp->slow, flags);
		/*
		 * of an attempt before, which has stopped it, or nothing; of one that
		 * is held the device may be gone, and is not asked again
		 */
		qp->swap.stopped &= qp->swap.moved || held;
		qp->swap.was_err &= qp->swap.moved;
		/* or has replaced it by one that is not what it was */
		qp->swap.dead &= qp->swap.moved || qp->swap.apart;
	}
	if (all)
		hold_events(true);
	if (!sections_wait(deadline))
		return swap_refuse(s, ETIMEDOUT, "a thread is within a verb");
	EACH_CHOSEN (c, qp)
		atomic_fetch_or(&qp->slow, SLOW_BATCHES);
	EACH (c, srq, srqs)
		if (all)
			slots_hold(srq->slots);
	return 0;
}

/* those of channels that are replaced; others stay where they are */
static void carry_events(bool all, bool keep)
{
	struct shadow_channel *ch;
	struct shadow_context *c;

	if (!all)
		return;
	EACH (c, ch, channels)
		events_carry(ch->real, keep);
}

static int stopped(int err, const struct shadow_qp *bad, struct swap *s)
{
	return err ? swap_refuse(s, err, "QP 0x%06x is not flushed: %s",
				 bad->qp.qp_num, strerror(err))
		   : 0;
}

static int stop(struct shadow_qp *const *qps, unsigned int n, uint64_t deadline,
		struct swap *s)
{
	struct shadow_qp *bad = NULL;
	int err = n ? stop_qps(qps, n, deadline, &bad) : 0;

	return stopped(err, bad, s);
}

static int stop_chosen(bool moved_only, uint64_t deadline, struct swap *s)
{
	struct shadow_qp *qp, *some[STOP_AT_ONCE];
	struct shadow_context *c;
	unsigned int n = 0;
	int err = 0;

	EACH_CHOSEN (c, qp)
		if (!err && (!moved_only || qp->swap.moved)) {
			some[n++] = qp;
			if (n == STOP_AT_ONCE) {
				err = stop(some, n, deadline, s);
				n = 0;
			}
		}
	return err ? err : stop(some, n, deadline, s);
}

/*
 * Events of flushes are not the application's. Those that were begun with before come first.
 */
static int stop_all(bool all, uint64_t deadline, struct swap *s)
{
	struct shadow_qp **empty, *qp, *bad;
	struct shadow_context *c;
	struct shadow_cq *cq;
	size_t n;
	int err;

	lock_cqs(all_cqs());
	EACH (c, cq, cqs)
		taken_fill(cq);
	empty = stop_find_empty(s->qps, &n);
	unlock_cqs(all_cqs());
	if (!empty)
		return swap_refuse(s, ENOMEM, "no memory to ask QPs");
	err = stop_ask(empty, n, &bad);
	free(empty);
	if (err)
		return stopped(err, bad, s);
	carry_events(all, true);
	err = stop_chosen(true, deadline, s);
	EACH_CHOSEN (c, qp)
		if (!all && !err && !qp->swap.moved)
			err = rebind_unbind(qp, deadline, s);
	if (!err)
		err = stop_chosen(false, deadline, s);
	return all && !err && !held ? swap_note_limits(s) : err;
}

/* Has a QP been moved to ERR, or is the device let go of? Then there is no way back. */
static bool is_begun(void)
{
	struct shadow_context *c;
	struct shadow_qp *qp;

	if (held)
		return true;
	EACH_CHOSEN (c, qp)
		if (qp->swap.moved)
			return true;
	return false;
}

/* --- all of it --- */

static void undo_stop(bool all)
{
	struct shadow_context *c;
	struct shadow_srq *srq;
	struct swap undone = {};

	if (is_begun()) {
		carry_events(all, !held);
		return;
	}
	rebind_all(&undone);
	swap_post_held(&undone);
	EACH (c, srq, srqs)
		srq->limit = 0; /* it is armed as it was */
}

static int stop_and_swap(bool all, uint64_t deadline, struct swap *s)
{
	uint64_t begin = clock_ns();
	int err;

	if (!all)
		events_sort_begin();
	err = hold_posts(all, deadline, s);
	if (!err)
		err = stop_all(all, deadline, s);
	if (!all)
		events_sort_end();
	s->stop_ns = clock_ns() - begin;
	if (!err) {
		lock_cqs(all_cqs());
		sign_hide(); /* what is between the old and the new cannot move */
		s->swapped = true;
		err = swap_objects(all, s);
		unlock_cqs(all_cqs());
		s->swap_ns = clock_ns() - begin - s->stop_ns;
	} else {
		undo_stop(all);
	}
	hold_events(err && held);
	return err;
}

/* They are in nobody's way, but those that may be in multicast groups. */
static void leave_old(void)
{
	struct shadow_context *c;
	struct shadow_qp *qp;

	EACH_CHOSEN (c, qp)
		if (!qp_has_peer(qp)) {
			groups_leave(qp);
			build_drop(qp);
		}
	ahead_left();
}

static int replace(bool all, uint64_t deadline, struct swap *s)
{
	uint64_t begin = clock_ns();
	int err = all ? presetup_make(s) : build_make(false, s);

	s->build_ns = clock_ns() - begin;
	if (!err && all)
		err = build_regions(s);
	s->regions_ns = clock_ns() - begin - s->build_ns;
	if (!err)
		err = name_all(all, s);
	if (!err)
		err = stop_and_swap(all, deadline, s);
	begin = clock_ns();
	if (suspend_is_whole() || !s->swapped)
		undo_build(); /* of old ones, or of the new */
	else
		leave_old();
	s->destroy_ns = clock_ns() - begin;
	presetup_end(s->swapped);
	return err;
}

int layer_replace(const uint32_t *qpns, unsigned int n, unsigned int timeout_ms,
		  struct swap *s)
{
	uint64_t deadline = clock_ns() + (uint64_t)timeout_ms * 1000000;
	int err = 0;

	*s = (struct swap){};
	if (!suspend_hold())
		return swap_refuse(s, EINVAL, "it is not suspended");
	if (held && n)
		err = swap_refuse(s, EINVAL, "it is held");
	if (!err)
		err = choose(qpns, n, s);
	if (!err)
		err = build_check(!n, s);
	if (!err)
		err = replace(!n, deadline, s);
	if (!err)
		held = 0;
	suspend_release();
	return err;
}

/* --- hold --- */

static int stop_and_hold(uint64_t deadline, struct swap *s)
{
	uint64_t begin = clock_ns();
	int err = hold_posts(true, deadline, s);

	if (!err)
		err = stop_all(true, deadline, s);
	s->stop_ns = clock_ns() - begin;
	if (!err) {
		err = sign_show();
		if (err)
			swap_refuse(s, err, "the sign: %s", strerror(err));
	}
	if (!err) {
		err = presetup_let_go(s);
		if (err)
			sign_hide();
	}
	if (err) {
		undo_stop(true);
		hold_events(false);
	}
	return err;
}

static int note_gids(struct swap *s)
{
	struct shadow_context *c;
	int err = 0;

	TAILQ_FOREACH (c, &contexts, entry)
		err = err ? err : gids_note(c, s);
	return err;
}

int layer_check(struct swap *s)
{
	int err;

	*s = (struct swap){};
	if (!suspend_hold())
		return swap_refuse(s, EINVAL, "it is not suspended");
	err = choose(NULL, 0, s);
	if (!err)
		err = build_check(true, s);
	if (!err)
		err = here_check(s);
	if (!err)
		err = note_gids(s);
	suspend_release();
	return err;
}

int layer_hold(unsigned int timeout_ms, unsigned int seconds, struct swap *s)
{
	uint64_t deadline = clock_ns() + (uint64_t)timeout_ms * 1000000;
	int err;

	*s = (struct swap){};
	if (!suspend_hold())
		return swap_refuse(s, EINVAL, "it is not suspended");
	err = held ? swap_refuse(s, EBUSY, "it is held") : choose(NULL, 0, s);
	if (!err)
		err = build_check(true, s);
	if (!err)
		err = note_gids(s);
	if (!err)
		err = stop_and_hold(deadline, s);
	if (!err) {
		held = seconds;
		tries = 0;
		meet_hang_up();
	}
	suspend_release();
	return err;
}

bool layer_is_held(void)
{
	return held;
}

/* Nothing more is tried. What an attempt has let through waits again before. */
static int let_go(const char *reason)
{
	struct swap s;
	int err;

	if (!suspend_hold())
		return EINVAL;
	err = hold_posts(true, clock_ns() + (uint64_t)GIVE_UP_MS * 1000000, &s);
	if (!err) {
		fprintf(stderr,
			"libmigrrdma: nobody has gone on, and its objects cannot be made again: %s; "
			"they end as if their devices had been unplugged\n",
			reason);
		sign_hide();
		unplug_all();
		held = 0;
	}
	suspend_release();
	return err;
}

void layer_tick(void)
{
	struct swap s;
	int err;

	if (!held || --held)
		return;
	held = 1; /* until it is replaced */
	err = layer_replace(NULL, 0, GIVE_UP_MS, &s);
	if (err && ++tries >= MOST_TRIES)
		err = let_go(s.reason);
	if (!err)
		layer_give_up();
}

int swap_is_whole(char *reason, size_t bytes)
{
	struct shadow_context *c;
	struct shadow_qp *qp;

	if (held) {
		snprintf(reason, bytes, "it is held");
		return EBUSY;
	}
	EACH (c, qp, qps)
		if (qp->swap.apart || qp->swap.moved ||
		    (qp->recvq && atomic_load(&qp->slow) & SLOW_RECVS)) {
			snprintf(reason, bytes, "QP 0x%06x is not connected",
				 qp->qp.qp_num);
			return EBUSY;
		}
	TAILQ_FOREACH (c, &contexts, entry)
		if (c->unfinished) {
			snprintf(reason, bytes, "%s is not replaced yet",
				 c->verbs.context.device->name);
			return EBUSY;
		}
	return 0;
}
