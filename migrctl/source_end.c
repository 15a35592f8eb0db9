// SPDX-License-Identifier: GPL-2.0
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "checks.h"
#include "history.h"
#include "hurry.h"
#include "layer.h"
#include "note.h"
#include "peer.h"

enum {
	FORGET_TIMES = 60,
	DROP_MS = 30000, /* in which the other end has dropped what it has */
};

void source_tell(struct source *s, const char *phase, json_t *more)
{
	json_t *o = more ? more : json_object();

	json_object_set_new(o, "phase", json_string(phase));
	if (!s->asker)
		json_decref(o);
	else if (!talk_say(s->asker, o))
		s->asker = NULL; /* nobody has to listen */
}

/* What is frozen does not run here, whatever becomes of CRIU. */
static bool freeze(struct source *s, bool frozen)
{
	char path[512];
	int fd;
	bool done;

	snprintf(path, sizeof(path), "%s/cgroup.freeze",
		 journal_text(&s->m.journal, "cgroup"));
	fd = open(path, O_WRONLY | O_CLOEXEC);
	done = fd >= 0 && write(fd, frozen ? "1" : "0", 1) == 1;
	if (fd >= 0)
		close(fd);
	return done || move_fails(&s->m, "%s: %s", path, strerror(errno));
}

/* It may still answer what it was asked before. False: it is heard, or will not be. */
static bool hear_dropped(struct move *m)
{
	bool dropped = false;
	json_t *o;

	while (!dropped && (o = talk_hear(&m->peer, DROP_MS))) {
		dropped = !strcmp(talk_text(o, "state"), "dropped");
		json_decref(o);
	}
	return false;
}

/*
 * In the middle of a dump it has no ear for a word, but comes to its end; unless it waits for a
 * trap that was lost. Whose parasite is not heard any more goes on by itself.
 */
static void stop_criu(struct source *s)
{
	struct move *m = &s->m;

	if (m->doors.says < 0)
		return;
	doors_tell(&m->doors, "stop");
	if (doors_end(&m->doors, CLEAN_MS))
		return;
	note("%s: CRIU does not come to its end, and is killed", m->name);
	checks_kill_tracers(s->about);
}

/* It is back, and not as it was. */
static void is_not_whole(struct move *m, const char *why)
{
	char lost[sizeof(m->reason)];

	memcpy(lost, m->reason, sizeof(lost));
	move_fails(m, "%s; and its %s", why, lost);
}

/*
 * What is over is written down when all is done: who goes on from there does it again.
 */
void source_back(struct source *s)
{
	char why[sizeof(s->m.reason)];
	struct move *m = &s->m;
	bool drops;

	talk_never_ends();
	memcpy(why, m->reason, sizeof(why));
	drops = m->peer.fd >= 0 &&
		talk_say(&m->peer, json_pack("{ss}", "do", "drop"));
	/* An address is dropped there before it is here again; nothing else has to wait. */
	if (drops && *journal_text(&m->journal, "rdma"))
		drops = hear_dropped(m);
	/* before that it is CRIU that has it frozen */
	if (m->journal.state >= MOVE_HELD && !freeze(s, false))
		move_warns(m);
	memcpy(m->reason, why, sizeof(why));
	stop_criu(s);
	move_leave_doors(m, "stop");
	memcpy(why, m->reason, sizeof(why));
	if (!move_drive(m, "back", journal_text(&m->journal, "rdma"), NULL,
			NULL))
		move_warns(m);
	/* Only now it has all addresses that it had. */
	if (layer_leave(m, "back"))
		memcpy(m->reason, why, sizeof(why));
	else
		is_not_whole(m, why);
	if (drops)
		hear_dropped(m);
	move_drop_images(m);
	move_is_over(m, MOVE_BACK);
}

/* Its log is with the images. Whoever goes on with a move that lost its process knows no times. */
static void look_back(struct source *s)
{
	char log[sizeof(s->m.images) + 32];

	snprintf(log, sizeof(log), "%s/logs/dump.log", s->m.images);
	if (s->timing.dumped > 0 &&
	    !steps_of_dump(&s->timing.dump, log, s->timing.dumped,
			   s->timing.held))
		note("%s: %s does not say what took how long", s->m.name, log);
}

static void look_at_layer(struct source *s)
{
	s->layer = layer_timing(&s->m);
	timing_layer(&s->timing, s->layer, s->resumed);
	timing_mark(&s->timing, "connect");
}

static void leave(struct source *s)
{
	struct move *m = &s->m;

	move_leave_doors(m, "leave");
	look_back(s);
	if (!layer_leave(m, "arrived"))
		move_warns(m);
	if (s->by_layer)
		look_at_layer(s);
	if (!move_drive(m, "gone", m->other, NULL, NULL))
		move_warns(m);
	move_drop_images(m);
	timing_mark(&s->timing, "finish");
	*m->reason = 0;
	move_is_over(m, MOVE_LEFT);
}

/* what the target says of itself; if it says nothing, or is not there, that is not known */
static enum move_state grant(struct source *s)
{
	enum move_state next = MOVE_GRANTED;
	struct move *m = &s->m;
	json_t *o = NULL;

	if (talk_say(&m->peer, json_pack("{ss}", "do", "grant")))
		o = talk_hear(&m->peer, WORK_MS);
	if (s->by_layer && !strcmp(talk_text(o, "state"), "resumed")) {
		/* its connections need not wait for the rest */
		layer_tell(m, "arrived");
		s->resumed = steps_now();
		timing_mark(&s->timing, "resume");
		json_decref(o);
		o = talk_hear(&m->peer, WORK_MS);
	}
	if (json_is_true(json_object_get(o, "ok"))) {
		timing_mark(&s->timing, s->resumed > 0 ? "attach" : "resume");
		s->timing.there = json_incref(json_object_get(o, "steps"));
		snprintf(m->warning, sizeof(m->warning), "%s",
			 talk_text(o, "warning"));
		next = MOVE_LEFT;
	} else if (!strcmp(talk_text(o, "state"), "dropped")) {
		move_fails(m, "%s: %s", m->other, talk_text(o, "error"));
		next = MOVE_BACK;
	}
	json_decref(o);
	/* it may not have heard that, and asks when the connection is lost */
	if (next == MOVE_GRANTED)
		talk_free(&m->peer);
	return next;
}

/* What its process has started that died may have it still. */
static void lock_if_free(struct move *m)
{
	char why[sizeof(m->reason)];

	memcpy(why, m->reason, sizeof(why));
	if (!m->lock)
		move_lock(m);
	memcpy(m->reason, why, sizeof(why));
}

static void decide(struct source *s, enum move_state next)
{
	double until = steps_now() + LAYER_DOUBT_MS / 1000;
	char told[sizeof(s->m.reason)] = "";
	struct move *m = &s->m;

	if (next == MOVE_GRANTED)
		hurry(false); /* that may last */
	while (next == MOVE_GRANTED) {
		lock_if_free(m);
		next = move_ask(m);
		if (steps_now() > until && m->layer.go >= 0) {
			note("%s: its partners are let go", m->name);
			doors_close(&m->layer);
		}
		if (next == MOVE_GRANTED && strcmp(told, m->reason) != 0) {
			memcpy(told, m->reason, sizeof(told));
			source_tell(s, "in doubt",
				    json_pack("{ss}", "error", m->reason));
		}
		if (next == MOVE_GRANTED)
			talk_wait(-1, 0, AGAIN_MS);
	}
	if (next == MOVE_LEFT)
		leave(s);
	else
		source_back(s);
}

bool source_commit(struct source *s)
{
	double began = steps_now();
	struct move *m = &s->m;

	talk_never_ends();
	if (!freeze(s, true))
		return false;
	/* It stands still; has it done so ever since it was dumped? */
	if (doors_broken(&m->doors))
		return move_fails_by_doors(m, "CRIU has ended");
	if (s->by_layer && !layer_waits(m))
		return false;
	if (!move_set(m, MOVE_GRANTED))
		return false;
	timing_step(&s->timing, "decide", began);
	decide(s, grant(s));
	return true;
}

/* ---- what is told --------------------------------------------------------------- */

static json_t *result(struct source *s)
{
	struct move *m = &s->m;
	bool left = m->journal.state == MOVE_LEFT;
	json_t *o = json_pack("{sbsssssssssssb}", "ok", left, "name", m->name,
			      "id", journal_text(&m->journal, "id"), "from",
			      peer_self(), "to", m->other, "runs_on",
			      left ? m->other : peer_self(), "stopped",
			      s->timing.n > 0 || s->was_stopped);

	if (!left)
		json_object_set_new(o, "error", json_string(m->reason));
	else
		json_object_set_new(o, "timing", timing_told(&s->timing));
	if (*m->warning)
		json_object_set_new(o, "warning", json_string(m->warning));
	json_object_set_new(o, "bytes", json_integer((json_int_t)m->bytes));
	return o;
}

static void add_steps(struct source *s, json_t *o)
{
	double stopped_ms;
	json_t *steps =
		timing_steps(&s->timing, peer_self(), s->m.other, &stopped_ms);

	json_object_set_new(o, "steps", steps);
	if (stopped_ms > 0)
		json_object_set_new(o, "stopped_ms", json_real(stopped_ms));
	if (!s->layer)
		return;
	json_object_set(o, "layer", s->layer);
	json_object_set_new(o, "suspended_ms",
			    json_real(timing_suspended(&s->timing)));
}

/* Nobody asks any more what has become of it: it is known there, or there is nothing. */
static bool forgotten(struct move *m)
{
	json_t *o = NULL;
	struct talk t;

	if (peer_dial(&t, m->other, NULL) &&
	    talk_say(&t, json_pack("{ssss}", "do", "forget", "id",
				   journal_text(&m->journal, "id"))))
		o = talk_answered(&t, DIAL_MS);
	talk_free(&t);
	json_decref(o);
	return o;
}

void source_forget(struct move *m)
{
	/* who was never met has nothing to forget */
	bool is = !*journal_text(&m->journal, "peer_boot");

	for (int i = 0; i < FORGET_TIMES && !is; i++) {
		is = forgotten(m);
		if (!is)
			talk_wait(-1, 0, AGAIN_MS);
	}
	if (is)
		journal_remove(&m->journal);
	else
		journal_close(&m->journal);
}

void source_finish(struct source *s)
{
	json_t *told = result(s);

	move_end(&s->m);
	history_add(told);
	if (s->m.journal.state == MOVE_LEFT)
		add_steps(s, told);
	if (s->asker)
		talk_say(s->asker, json_incref(told));
	json_decref(told);
	json_decref(s->about);
	json_decref(s->layer);
	timing_free(&s->timing);
	source_forget(&s->m);
}

void source_recover(struct move *m)
{
	struct source s = {
		.m = *m,
		.was_stopped = m->journal.state >= MOVE_STOPPING,
	};

	timing_begin(&s.timing);
	talk_never_ends();
	doors_reopen(&s.m.doors, s.m.journal.folder);
	layer_reopen(&s.m);
	if (s.m.journal.state == MOVE_GRANTED) {
		decide(&s, MOVE_GRANTED);
	} else {
		move_fails(&s.m, "its process has died");
		source_back(&s);
	}
	source_finish(&s);
}
