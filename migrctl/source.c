// SPDX-License-Identifier: GPL-2.0
/*
 * The end of a move that the container leaves
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "checks.h"
#include "history.h"
#include "move.h"
#include "note.h"
#include "peer.h"
#include "rounds.h"
#include "timing.h"

enum {
	FORGET_TIMES = 60,
};

struct source {
	struct move m;
	struct talk *asker; /* may be gone: the move goes on */
	struct timing timing;
	json_t *about; /* what the runtime has said */
	int rounds;    /* that are wanted: ROUNDS_AUTO, or a number */
	int made;      /* so many were */
	bool has_left_rdma;
};

/* what is being done, for who has asked; nobody has to listen */
static void tell(struct source *s, const char *phase, json_t *more)
{
	json_t *o = more ? more : json_object();

	json_object_set_new(o, "phase", json_string(phase));
	if (s->asker && !talk_say(s->asker, o))
		s->asker = NULL;
	else if (!s->asker)
		json_decref(o);
}

static const char *text(const json_t *o, const char *key)
{
	const char *t = json_string_value(json_object_get(o, key));

	return t ? t : "";
}

/* an answer of the other end, to what it was told last */
static bool answered(struct source *s, int ms)
{
	json_t *o = talk_answered(&s->m.peer, ms);

	json_decref(o);
	return o || move_fails(&s->m, "%s: %s", s->m.other, s->m.peer.reason);
}

static bool told(struct source *s, json_t *o)
{
	return talk_say(&s->m.peer, o) ||
	       move_fails(&s->m, "%s: %s", s->m.other, s->m.peer.reason);
}

/* ---- before it is stopped ------------------------------------------------ */

static bool meet(struct source *s)
{
	struct move *m = &s->m;
	json_t *hello, *record = m->journal.record;
	bool met = peer_dial(&m->peer, m->other, &hello);

	if (!met)
		move_fails(m, "%s", m->peer.reason);
	else if (!strcmp(text(hello, "boot"), journal_boot()))
		met = move_fails(m, "%s runs on %s already", m->name, m->other);
	if (record)
		json_object_set(record, "peer_boot",
				json_object_get(hello, "boot"));
	json_decref(hello);
	return met && (!record || journal_write(&m->journal) ||
		       move_fails(m, "the journal: %s", strerror(errno)));
}

static json_t *reservation(const struct source *s)
{
	return json_pack("{sssssssssOso}", "do", "reserve", "id",
			 journal_text(&s->m.journal, "id"), "name", s->m.name,
			 "boot", journal_boot(), "spec",
			 json_object_get(s->about, "spec"), "needs",
			 checks_needs(s->about));
}

/* Would it take it? */
static bool ask_there(struct source *s)
{
	return told(s, json_pack("{ssssso}", "do", "would", "name", s->m.name,
				 "needs", checks_needs(s->about))) &&
	       answered(s, DIAL_MS);
}

static bool reserve(struct source *s)
{
	return told(s, reservation(s)) && answered(s, READY_MS);
}

static bool open_doors(struct source *s)
{
	char parent[32] = "";
	struct move *m = &s->m;

	if (s->made)
		snprintf(parent, sizeof(parent), "../rounds/%d", s->made);
	return move_open_doors(m, "checkpoint", s->made ? parent : NULL) &&
	       (doors_said(&m->doors, "ready", READY_MS) ||
		move_fails(m, "%s cannot be checkpointed", m->name));
}

/* ---- streams --------------------------------------------------------------- */

static bool give(struct source *s, const char *what, char *const argv[])
{
	return told(s, json_pack("{ssss}", "do", "take", "what", what)) &&
	       move_give(&s->m, argv) && answered(s, WORK_MS);
}

static bool give_image(struct source *s, const char *folder)
{
	char *const argv[] = { "tar", "-C", s->m.images,    "-S",
			       "-cf", "-",  (char *)folder, NULL };

	return give(s, "image", argv);
}

static bool give_folders(struct source *s)
{
	char *const argv[] = { "migr-ctr", "driver", (char *)s->m.name, "pack",
			       NULL };

	return give(s, "folders", argv);
}

/* ---- rounds ---------------------------------------------------------------- */

static bool make_round(struct source *s, int n)
{
	char number[16], folder[32];
	struct move *m = &s->m;

	snprintf(number, sizeof(number), "%d", n);
	snprintf(folder, sizeof(folder), "rounds/%d", n);
	if (!rounds_make(m, number))
		return false;
	s->made = n;
	return give_image(s, folder);
}

static bool copy(struct source *s)
{
	struct rounds r = { .most = s->rounds };
	struct move *m = &s->m;

	if (!s->rounds)
		return true;
	if (!move_set(m, MOVE_COPYING))
		return false;
	while (rounds_go_on(&r)) {
		if (!make_round(s, r.n + 1) || !rounds_measure(&r, m))
			return false;
		tell(s, "copy",
		     json_pack("{sisI}", "round", r.n, "bytes",
			       (json_int_t)r.bytes));
	}
	return true;
}

/* ---- stopped --------------------------------------------------------------- */

static bool stop(struct source *s)
{
	struct move *m = &s->m;

	if (!move_set(m, MOVE_STOPPING))
		return false;
	timing_mark(&s->timing, "prepare");
	doors_tell(&m->doors, "dump");
	if (!doors_said(&m->doors, "held", WORK_MS))
		return move_fails(m, "%s cannot be dumped%s", m->name,
				  talk_is_ended() ? ": it was to end" : "");
	timing_mark(&s->timing, "dump");
	return move_set(m, MOVE_HELD);
}

static bool send_all(struct source *s)
{
	s->has_left_rdma = true;
	if (!move_drive(&s->m, "leave", NULL, NULL, NULL) || !give_folders(s) ||
	    !give_image(s, "image"))
		return false;
	timing_mark(&s->timing, "transfer");
	return true;
}

static bool restore(struct source *s)
{
	if (!told(s, json_pack("{ss}", "do", "restore")) ||
	    !answered(s, WORK_MS))
		return false;
	timing_mark(&s->timing, "restore");
	return true;
}

/* It does not run here any more, whatever becomes of CRIU. */
static bool freeze(struct source *s, const char *word)
{
	char line[256], path[320] = "";
	struct move *m = &s->m;
	FILE *f;
	int fd, pid = (int)json_integer_value(
			json_object_get(m->journal.record, "pid"));
	bool done;

	snprintf(line, sizeof(line), "/proc/%d/cgroup", pid);
	f = fopen(line, "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "0::/", 4)) {
			line[strcspn(line, "\n")] = 0;
			snprintf(path, sizeof(path),
				 "/sys/fs/cgroup%s/cgroup.freeze", line + 3);
		}
	if (f)
		fclose(f);
	fd = *path ? open(path, O_WRONLY | O_CLOEXEC) : -1;
	done = fd >= 0 && write(fd, word, 1) == 1;
	if (fd >= 0)
		close(fd);
	return done ||
	       move_fails(m, "%s cannot be held: %s", m->name, strerror(errno));
}

/* ---- its ends -------------------------------------------------------------- */

/* whatever was begun here and there; the container runs on */
static void roll_back(struct source *s)
{
	const char *gid = journal_text(&s->m.journal, "rdma");
	char why[sizeof(s->m.reason)];
	struct move *m = &s->m;

	memcpy(why, m->reason, sizeof(why));
	talk_never_ends();
	/* The other end has its address back, and drops what it has, before this one has it. */
	if (m->peer.fd >= 0 &&
	    talk_say(&m->peer, json_pack("{ss}", "do", "drop")))
		json_decref(talk_answered(&m->peer, CLEAN_MS));
	doors_tell(&m->doors, "stop");
	if (!doors_end(&m->doors, CLEAN_MS))
		note("%s: CRIU does not come to its end", m->name);
	if (!move_drive(m, "back", s->has_left_rdma && *gid ? gid : NULL, NULL,
			NULL))
		note("%s: %s", m->name, m->reason);
	memcpy(m->reason, why, sizeof(why));
	move_set(m, MOVE_BACK);
}

/* It runs there. */
static void leave(struct source *s)
{
	struct move *m = &s->m;

	move_set(m, MOVE_LEFT);
	doors_tell(&m->doors, "leave");
	if (!doors_end(&m->doors, CLEAN_MS))
		note("%s: CRIU does not come to its end", m->name);
	if (!move_drive(m, "gone", m->other, NULL, NULL))
		note("%s: %s", m->name, m->reason);
}

/* from here on only the other end knows */
static void come_back(struct source *s)
{
	freeze(s, "0");
	roll_back(s);
}

static void decide(struct source *s)
{
	if (s->m.journal.state == MOVE_GRANTED)
		move_ask(&s->m);
	if (s->m.journal.state == MOVE_LEFT)
		leave(s);
	else
		come_back(s);
}

/* true: it runs there. False: it has said that it does not, or nothing. */
static bool granted(struct source *s)
{
	struct move *m = &s->m;
	json_t *o = NULL;
	bool runs;

	if (talk_say(&m->peer, json_pack("{ss}", "do", "grant")))
		o = talk_hear(&m->peer, WORK_MS);
	runs = json_is_true(json_object_get(o, "ok"));
	if (runs)
		timing_mark(&s->timing, "resume");
	else if (o && !strcmp(text(o, "state"), "dropped"))
		move_fails(m, "%s: %s", m->other, text(o, "error"));
	if (o && !runs && !strcmp(text(o, "state"), "dropped"))
		move_set(m, MOVE_BACK);
	json_decref(o);
	return runs;
}

static bool commit(struct source *s)
{
	struct move *m = &s->m;

	talk_never_ends();
	if (!freeze(s, "1"))
		return false;
	if (!move_set(m, MOVE_GRANTED)) {
		freeze(s, "0");
		return false;
	}
	if (granted(s))
		leave(s);
	else
		decide(s);
	return true;
}

/* ---- all of it ------------------------------------------------------------- */

static bool describe(struct source *s)
{
	struct move *m = &s->m;
	json_t *record = m->journal.record;

	if (!move_drive(m, "describe", NULL, NULL, &s->about))
		return false;
	if (record) {
		json_object_set(record, "pid",
				json_object_get(s->about, "pid"));
		json_object_set(record, "rdma",
				json_object_get(json_object_get(s->about,
								"spec"),
						"rdma"));
	}
	if (strcmp(text(s->about, "by"), "protocol") != 0)
		return move_fails(m,
				  "%s moves by the layer: migr-ctr move %s %s",
				  m->name, m->name, m->other);
	return checks_here(m, s->about);
}

static bool prepare(struct source *s)
{
	tell(s, "prepare", NULL);
	return describe(s) && meet(s) && reserve(s) && copy(s) && open_doors(s);
}

/* true: somebody has decided where it runs */
static bool run(struct source *s)
{
	if (!prepare(s))
		return false;
	tell(s, "stop", NULL);
	return stop(s) && send_all(s) && restore(s) && commit(s);
}

static json_t *result(struct source *s)
{
	struct move *m = &s->m;
	bool left = m->journal.state == MOVE_LEFT;
	json_t *o = json_pack("{sbsssssssssssb}", "ok", left, "name", m->name,
			      "id", journal_text(&m->journal, "id"), "from",
			      peer_self(), "to", m->other, "runs_on",
			      left ? m->other : peer_self(), "stopped",
			      s->timing.n > 0);

	if (!left)
		json_object_set_new(o, "error", json_string(m->reason));
	else
		json_object_set_new(o, "timing", timing_told(&s->timing));
	json_object_set_new(o, "bytes", json_integer((json_int_t)m->bytes));
	return o;
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

static void finish(struct source *s)
{
	json_t *told = result(s);

	history_add(told);
	if (s->asker)
		talk_say(s->asker, json_incref(told));
	json_decref(told);
	json_decref(s->about);
	move_end(&s->m);
	source_forget(&s->m);
}

void source_run(struct talk *asker, const json_t *asked)
{
	struct source s = { .asker = asker, .rounds = rounds_wanted(asked) };
	char id[JOURNAL_ID + 1];
	struct move *m = &s.m;

	m->name = text(asked, "name");
	m->other = text(asked, "to");
	m->peer.fd = m->doors.go = m->doors.says = m->journal.lock = -1;
	timing_begin(&s.timing);
	journal_make_id(id);
	talk_hold_signals();
	if (!move_is_name(m->name))
		move_fails(m, "'%.32s' is no name of a container", m->name);
	else if (!*m->other || s.rounds < 0)
		move_fails(m, "that is no host, or no number of rounds");
	else if (move_lock(m) &&
		 move_begin(m, MOVE_SOURCE,
			    json_pack("{ssssss}", "id", id, "name", m->name,
				      "peer", m->other))) {
		if (!run(&s))
			roll_back(&s);
		finish(&s);
		return;
	}
	talk_refuse(asker, "%s", m->reason);
	move_end(m);
}

void source_recover(struct move *m)
{
	struct source s = { .m = *m, .has_left_rdma = true };
	char why[] = "its process has died";

	talk_never_ends();
	doors_reopen(&s.m.doors, s.m.journal.folder);
	if (s.m.journal.state == MOVE_GRANTED) {
		decide(&s);
	} else {
		move_fails(&s.m, "%s", why);
		roll_back(&s);
	}
	finish(&s);
}

void source_check(struct talk *asker, const json_t *asked)
{
	struct source s = { .asker = asker };
	struct move *m = &s.m;

	m->name = text(asked, "name");
	m->other = text(asked, "to");
	m->peer.fd = m->doors.go = m->doors.says = m->journal.lock = -1;
	talk_hold_signals();
	if (!move_is_name(m->name))
		move_fails(m, "'%.32s' is no name of a container", m->name);
	else if (describe(&s) && meet(&s) && ask_there(&s))
		talk_say(asker, json_pack("{sb}", "ok", 1));
	if (*m->reason)
		talk_refuse(asker, "%s", m->reason);
	json_decref(s.about);
	move_end(m);
}
