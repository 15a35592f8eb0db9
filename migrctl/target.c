// SPDX-License-Identifier: GPL-2.0
/*
 * The end of a move where the container comes to
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "checks.h"
#include "hurry.h"
#include "layer.h"
#include "move.h"
#include "note.h"
#include "peer.h"
#include "runtime.h"
#include "steps.h"

struct target {
	struct move m;
	const json_t *spec; /* what is asked for */
	json_t *files;	    /* what the runtime has for it here */
	double asked;	    /* to restore it, in s */
	double restored;
	struct steps steps;
};

static bool say(struct move *m, json_t *o)
{
	return talk_say(&m->peer, o) ||
	       move_fails(m, "%s: %s", m->other, m->peer.reason);
}

static bool say_ok(struct move *m)
{
	return say(m, json_pack("{sb}", "ok", 1));
}

static void say_dropped(struct move *m)
{
	talk_say(&m->peer, json_pack("{sbssss}", "ok", 0, "state", "dropped",
				     "error", m->reason));
}

/* Could the runtime make that here? Nothing is touched. */
static bool is_vacant(struct move *m, const json_t *spec)
{
	return move_drive(m, "vacant", NULL, json_incref((json_t *)spec), NULL);
}

/*
 * Of a name that is somebody else's here nothing may be touched, not even to clean up. From
 * then on it is this move's.
 */
static bool claim(struct move *m, const json_t *spec)
{
	json_t *record = m->journal.record;

	return is_vacant(m, spec) &&
	       ((!json_object_set_new(record, "claimed", json_true()) &&
		 journal_write(&m->journal)) ||
		move_fails(m, "the journal of this move: %s", strerror(errno)));
}

static bool make(struct target *t)
{
	struct move *m = &t->m;

	return claim(m, t->spec) &&
	       move_drive(m, "make", NULL, json_incref((json_t *)t->spec),
			  &t->files) &&
	       move_open_doors(m, &m->doors, m->journal.folder, "restore",
			       NULL) &&
	       (doors_said(&m->doors, "ready", READY_MS) ||
		move_fails_by_doors(m, "runc and CRIU do not start here"));
}

static bool take(struct target *t, const json_t *asked)
{
	struct move *m = &t->m;
	char *const image[] = { "tar", TAR_BLOCKS, "-C", m->images,
				"-xf", "-",	   NULL };

	return (strcmp(talk_text(asked, "what"), "files")
			? move_take(m, image)
			: move_take_files(m, t->files)) &&
	       say_ok(m);
}

/* ---- by the layer ---------------------------------------------------------- */

/* What comes of it is told to those that it will be connected to. */
static bool make_ahead(struct move *m)
{
	return layer_open(m, "ahead", NULL, "made") && say_ok(m) &&
	       layer_give(m, LAYER_MADE);
}

/* One with an address for RDMA is connected by that, when it has it here. */
static bool connect_ahead(struct target *t)
{
	if (!move_has_address(t->spec))
		layer_tell(&t->m, "connect");
	return say_ok(&t->m);
}

/* It runs, and gets what was made. Whether it needs that is its own business. */
static void hand_over(struct target *t)
{
	double began = steps_now();
	struct move *m = &t->m;

	if (m->layer.says < 0)
		return;
	if (!layer_leave(m, "hand"))
		note("%s: %s", m->name, m->reason);
	steps_add(&t->steps, STEPS_LAYER "hand over", began, steps_now());
	talk_say(&m->peer, json_pack("{sbss}", "ok", 1, "state", "resumed"));
}

/* ---- restored -------------------------------------------------------------- */

/* All is there again, and nothing has been resumed. */
static bool restore(struct target *t)
{
	struct move *m = &t->m;

	t->asked = steps_now();
	hurry(true);
	if (move_has_address(t->spec) &&
	    !move_drive(m, "arrive", NULL, NULL, NULL))
		return false;
	steps_add(&t->steps, "address", t->asked, steps_now());
	if (move_has_address(t->spec))
		layer_tell(m, "connect");
	doors_tell(&m->doors, "restore");
	if (!doors_said(&m->doors, "restored", WORK_MS))
		return move_fails_by_doors(m, "CRIU cannot restore it here");
	t->restored = steps_now();
	return move_set(m, MOVE_READY) &&
	       say(m, json_pack("{sbsf}", "ok", 1, "ms",
				(steps_now() - t->asked) * 1000));
}

/* ---- its ends -------------------------------------------------------------- */

/* What cannot be removed is not dropped: the source would go on with it. */
static void drop(struct move *m)
{
	bool claimed =
		json_is_true(json_object_get(m->journal.record, "claimed"));
	char why[sizeof(m->reason)];

	talk_never_ends();
	move_leave_doors(m, "stop");
	memcpy(why, m->reason, sizeof(why));
	layer_leave(m, "stop");
	while (claimed && !move_drive(m, "unmake", NULL, NULL, NULL)) {
		note("%s: %s", m->name, m->reason);
		talk_wait(-1, 0, AGAIN_MS);
	}
	memcpy(m->reason, why, sizeof(why));
	move_drop_images(m);
	move_is_over(m, MOVE_DROPPED);
}

/* Does it run, or has it, as runc says, or the runtime? It has to be known. */
static bool has_come(struct move *m)
{
	json_t *o = NULL;
	bool runs;

	if (doors_succeeded(&m->doors))
		return true;
	while (!move_drive(m, "runs", NULL, NULL, &o)) {
		note("%s: %s", m->name, m->reason);
		talk_wait(-1, 0, AGAIN_MS);
	}
	runs = json_is_true(json_object_get(o, "runs"));
	json_decref(o);
	return runs;
}

/* Its log is with the images; who goes on with a move that lost its process knows no times. */
static void attach(struct target *t)
{
	char log[sizeof(t->m.images) + 32];
	double began = steps_now();

	if (!move_drive(&t->m, "attach", NULL, NULL, NULL))
		move_warns(&t->m);
	snprintf(log, sizeof(log), "%s/logs/restore.log", t->m.images);
	if (t->restored > 0 &&
	    !steps_of_restore(&t->steps, log, t->asked, t->restored))
		note("%s: %s does not say what took how long", t->m.name, log);
	steps_add(&t->steps, "attach", began, steps_now());
}

/* It is this host's now: resumed by that word, if not before, when nobody was left to say it. */
static void go(struct target *t)
{
	struct move *m = &t->m;

	talk_never_ends();
	move_leave_doors(m, "resume");
	if (!has_come(m)) {
		move_fails(m, "%s could not be resumed here", m->name);
		drop(m);
		return;
	}
	hand_over(t);
	attach(t);
	move_drop_images(m);
	*m->reason = 0;
	move_is_over(m, MOVE_RUNNING);
}

/* until the source has decided; it may be dropped before by who is asked to */
static void ask(struct move *m)
{
	enum move_state next;

	hurry(false); /* that may last */
	while ((next = move_ask(m)) == MOVE_READY) {
		talk_wait(-1, 0, AGAIN_MS);
		if (talk_is_ended())
			return;
	}
	if (next == MOVE_GRANTED)
		move_set(m, next);
	else
		move_fails(m, "%s has given it up", m->other);
}

/* ---- all of it ------------------------------------------------------------- */

/* until it is ready, and then until it is to go, or not */
static bool obey(struct target *t, const json_t *asked)
{
	struct move *m = &t->m;
	const char *what = talk_text(asked, "do");
	bool is_ready = m->journal.state == MOVE_READY;

	if (!strcmp(what, "take") && !is_ready)
		return move_set(m, MOVE_COPYING) && take(t, asked);
	if (!strcmp(what, "ahead") && m->journal.state == MOVE_COPYING)
		return make_ahead(m);
	if (!strcmp(what, "connect") && m->journal.state == MOVE_COPYING)
		return connect_ahead(t);
	if (!strcmp(what, "restore") && m->journal.state == MOVE_COPYING)
		return restore(t);
	if (!strcmp(what, "grant") && is_ready)
		/* what was restored may be gone by now: it has not run here then */
		return doors_broken(&m->doors)
			       ? move_fails_by_doors(m, "CRIU has ended here")
			       : move_set(m, MOVE_GRANTED);
	if (!strcmp(what, "drop"))
		return move_fails(m, "%s has given it up", m->other);
	return move_fails(m, "%s asks for '%.32s' in the state %s", m->other,
			  what, state_name(m->journal.state));
}

/* until it is granted, or not to be, or the connection is lost: then there is none any more */
static void listen_to(struct target *t)
{
	struct move *m = &t->m;
	bool goes_on = true;
	json_t *asked;

	while (goes_on && m->journal.state != MOVE_GRANTED) {
		asked = talk_hear(&m->peer, -1);
		goes_on = asked ? obey(t, asked)
				: move_fails(m, "%s: %s", m->other,
					     m->peer.reason);
		if (!asked && !talk_is_ended())
			talk_free(&m->peer); /* it is lost */
		json_decref(asked);
	}
}

static bool prepare(struct target *t, const json_t *asked)
{
	struct move *m = &t->m;

	t->spec = json_object_get(asked, "spec");
	return checks_there(m, json_object_get(asked, "needs")) && make(t) &&
	       say_ok(m);
}

/* Only who is ready has something that the other end may be about to give away. */
static void run(struct target *t, const json_t *asked)
{
	struct move *m = &t->m;

	if (prepare(t, asked))
		listen_to(t);
	if (m->journal.state == MOVE_READY && m->peer.fd < 0)
		ask(m);
	if (m->journal.state == MOVE_GRANTED)
		go(t);
	else
		drop(m);
	if (m->journal.state == MOVE_RUNNING)
		say(m, json_pack("{sbssso}", "ok", 1, "warning", m->warning,
				 "steps", steps_told(&t->steps, t->asked)));
	else
		say_dropped(m);
}

static bool is_container(struct move *m, const json_t *asked)
{
	const char *runtime = talk_text(asked, "runtime");

	if (!move_is_name(m->name))
		return move_fails(m, "'%.32s' is no name of a container",
				  m->name);
	m->runtime = runtime_named(runtime);
	return m->runtime ||
	       move_fails(m, "%s is of '%.32s', which is no runtime here",
			  m->name, runtime);
}

void target_run(struct talk *asker, const json_t *asked, const char *from)
{
	struct target t = {
		.m = { .name = talk_text(asked, "name"), .other = from },
	};
	struct move *m = &t.m;

	move_init(m);
	talk_hold_signals();
	if (is_container(m, asked) && move_lock(m) &&
	    move_begin(m, MOVE_TARGET,
		       json_pack("{ssssssss}", "id", talk_text(asked, "id"),
				 "name", m->name, "peer", from, "peer_boot",
				 talk_text(asked, "boot")))) {
		m->peer = *asker;
		asker->fd = -1;
		asker->buf = NULL;
		run(&t, asked);
		steps_free(&t.steps);
		json_decref(t.files);
		move_end(m);
		journal_close(&m->journal);
		return;
	}
	talk_refuse(asker, "%s", m->reason);
	move_end(m);
}

void target_would(struct talk *asker, const json_t *asked)
{
	const json_t *spec = json_object_get(asked, "spec");
	struct move m = { 0 };

	move_init(&m);
	m.name = talk_text(asked, "name");
	if (is_container(&m, asked) &&
	    checks_there(&m, json_object_get(asked, "needs")) &&
	    (!spec || is_vacant(&m, spec)))
		talk_say(asker, json_pack("{sb}", "ok", 1));
	else
		talk_refuse(asker, "%s", m.reason);
}

/* Its CRIU has lost who gives it a word: it goes on if it was granted, and else gives up. */
void target_recover(struct move *m)
{
	struct target t = { .m = *m };

	m = &t.m;
	doors_reopen(&m->doors, m->journal.folder);
	layer_reopen(m);
	if (m->journal.state == MOVE_GRANTED) {
		go(&t);
	} else {
		move_fails(m, "its process has died");
		drop(m);
	}
	steps_free(&t.steps);
	move_end(m);
}
