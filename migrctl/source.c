// SPDX-License-Identifier: GPL-2.0
#include "source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "checks.h"
#include "hurry.h"
#include "layer.h"
#include "peer.h"
#include "runtime.h"

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
	else if (!strcmp(talk_text(hello, "boot"), journal_boot()))
		met = move_fails(m, "%s runs on %s already", m->name, m->other);
	else if (record)
		/* from now on it knows of the move, perhaps */
		met = (!json_object_set(record, "peer_boot",
					json_object_get(hello, "boot")) &&
		       journal_write(&m->journal)) ||
		      move_fails(m, "the journal: %s", strerror(errno));
	json_decref(hello);
	return met;
}

static json_t *reservation(const struct source *s)
{
	return json_pack("{sssssssssssOso}", "do", "reserve", "id",
			 journal_text(&s->m.journal, "id"), "name", s->m.name,
			 "runtime", s->m.runtime, "boot", journal_boot(),
			 "spec", json_object_get(s->about, "spec"), "needs",
			 checks_needs(s->about));
}

/* Would it take it? */
static bool ask_there(struct source *s)
{
	return told(s, json_pack("{sssssssOso}", "do", "would", "name",
				 s->m.name, "runtime", s->m.runtime, "spec",
				 json_object_get(s->about, "spec"), "needs",
				 checks_needs(s->about))) &&
	       answered(s, READY_MS);
}

static bool reserve(struct source *s)
{
	return told(s, reservation(s)) && answered(s, READY_MS);
}

static bool open_doors(struct source *s)
{
	char parent[32] = "";
	struct move *m = &s->m;

	if (s->rounds.n)
		snprintf(parent, sizeof(parent), "../rounds/%d", s->rounds.n);
	return move_open_doors(m, &m->doors, m->journal.folder, "checkpoint",
			       *parent ? parent : NULL) &&
	       (doors_said(&m->doors, "ready", READY_MS) ||
		move_fails_by_doors(m, "runc and CRIU do not start"));
}

/* ---- streams --------------------------------------------------------------- */

static bool begin_giving(struct source *s, const char *what)
{
	return told(s, json_pack("{ssss}", "do", "take", "what", what));
}

static bool give_image(struct source *s, const char *folder)
{
	char *const argv[] = { "tar",	    TAR_BLOCKS,	    "-C",
			       s->m.images, "-S",	    "-cf",
			       "-",	    (char *)folder, NULL };

	return begin_giving(s, "image") && move_give(&s->m, argv) &&
	       answered(s, WORK_MS);
}

static bool give_files(struct source *s)
{
	return begin_giving(s, "files") &&
	       move_give_files(&s->m, json_object_get(s->about, "files")) &&
	       answered(s, WORK_MS);
}

/* ---- its connections, if it moves by the layer ------------------------------- */

/*
 * Whom it is connected to is asked before anything is done, here or there; and before the other
 * end is met, which is to be told soon what it is to do.
 */
static bool meet_peers(struct source *s)
{
	struct move *m = &s->m;

	return !s->by_layer ||
	       layer_open(m, "connections", m->other, "recorded");
}

/* Would they? */
static bool ask_peers(struct source *s)
{
	return !s->by_layer ||
	       move_drive(&s->m, "follow", s->m.other, NULL, NULL);
}

/* What its processes will need is made there, and connected, while it runs. */
static bool make_ahead(struct source *s)
{
	struct move *m = &s->m;

	return !s->by_layer ||
	       (give_image(s, LAYER_AHEAD) &&
		told(s, json_pack("{ss}", "do", "ahead")) &&
		answered(s, WORK_MS) && layer_take(m, LAYER_MADE) &&
		layer_does(m, "lead", "led"));
}

/* Partners that could make nothing ahead have done so now. */
static bool tell_late(struct source *s)
{
	return !layer_has(&s->m, LAYER_LATE) ||
	       (give_image(s, LAYER_AHEAD) &&
		told(s, json_pack("{ss}", "do", "connect")) &&
		answered(s, WORK_MS));
}

/* From now on its connections stand still; it runs on. */
static bool suspend(struct source *s)
{
	if (!s->by_layer)
		return true;
	if (!layer_does(&s->m, "suspend", "suspended") || !tell_late(s))
		return false;
	timing_mark(&s->timing, "suspend");
	return true;
}

/* ---- rounds ---------------------------------------------------------------- */

static bool make_round(struct source *s)
{
	struct rounds *r = &s->rounds;
	double began = steps_now();
	char folder[32];

	return rounds_make(r, &s->m, folder, sizeof(folder)) &&
	       give_image(s, folder) &&
	       rounds_sent(r, &s->m, steps_now() - began);
}

static bool copy(struct source *s)
{
	struct rounds *r = &s->rounds;

	if (!r->most)
		return true;
	if (!move_set(&s->m, MOVE_COPYING))
		return false;
	while (rounds_go_on(r)) {
		if (!make_round(s))
			return false;
		source_tell(s, "copy",
			    json_pack("{sisIsfsf}", "round", r->n, "bytes",
				      (json_int_t)r->bytes, "rate", r->rate,
				      "estimate_ms", rounds_estimate(r)));
	}
	return true;
}

/* ---- stopped --------------------------------------------------------------- */

static bool comes_to(struct source *s, const char *word)
{
	struct move *m = &s->m;

	if (doors_said(&m->doors, word, WORK_MS))
		return true;
	return talk_is_ended() ? move_fails(m, "it was to end")
			       : move_fails_by_doors(m, "CRIU cannot dump it");
}

/* Its files are sent while its memory is dumped: it is frozen, and they stay as they are. */
static bool stop(struct source *s)
{
	struct move *m = &s->m;
	double began;

	if (!move_set(m, MOVE_STOPPING))
		return false;
	timing_mark(&s->timing, "prepare");
	s->timing.stop = steps_now();
	hurry(true);
	if (!suspend(s))
		return false;
	s->timing.dumped = steps_now();
	doors_tell(&m->doors, "dump");
	if (!comes_to(s, "frozen") || !checks_processes(m, s->about))
		return false;
	began = steps_now();
	if (!give_files(s))
		return false;
	timing_step(&s->timing, "send files", began);
	if (!comes_to(s, "held"))
		return false;
	s->timing.held = steps_now();
	timing_mark(&s->timing, "dump");
	return move_set(m, MOVE_HELD);
}

/*
 * Only one that has an address of its own for RDMA, or of which somebody has to be told: to ask
 * the runtime takes time.
 */
static bool leave_address(struct source *s)
{
	return (!move_has_address(json_object_get(s->about, "spec")) &&
		!json_is_true(json_object_get(s->about, "leaves"))) ||
	       move_drive(&s->m, "leave", NULL, NULL, NULL);
}

static bool send_all(struct source *s)
{
	double began = steps_now();

	if (!leave_address(s))
		return false;
	timing_step(&s->timing, "address", began);
	began = steps_now();
	if (!give_image(s, "image"))
		return false;
	timing_step(&s->timing, "send image", began);
	timing_mark(&s->timing, "transfer");
	return true;
}

static bool restore(struct source *s)
{
	double began = steps_now();
	json_t *o = NULL;

	if (told(s, json_pack("{ss}", "do", "restore"))) {
		o = talk_answered(&s->m.peer, WORK_MS);
		if (!o)
			move_fails(&s->m, "%s: %s", s->m.other,
				   s->m.peer.reason);
	}
	if (!o)
		return false;
	timing_there(&s->timing, began, steps_now(),
		     json_number_value(json_object_get(o, "ms")));
	json_decref(o);
	timing_mark(&s->timing, "restore");
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
		json_object_set(record, "cgroup",
				json_object_get(s->about, "cgroup"));
		json_object_set(record, "rdma",
				json_object_get(json_object_get(s->about,
								"spec"),
						"rdma"));
	}
	s->by_layer = layer_moves(s->about);
	if (s->by_layer && s->rounds.most)
		return move_fails(
			m,
			"the memory of %s cannot be copied before it stops: what its device writes meanwhile nobody can tell; move it without --pre-copy",
			m->name);
	return checks_here(m, s->about);
}

static bool prepare(struct source *s)
{
	source_tell(s, "prepare", NULL);
	return describe(s) && meet_peers(s) && meet(s) && reserve(s) &&
	       copy(s) && make_ahead(s) && open_doors(s);
}

/* true: somebody has decided where it runs */
static bool run(struct source *s)
{
	if (!prepare(s))
		return false;
	source_tell(s, "stop", NULL);
	return stop(s) && send_all(s) && restore(s) && source_commit(s);
}

/* what is wanted: of which container, and whose that is */
static bool is_container(struct move *m, const json_t *asked)
{
	m->name = talk_text(asked, "name");
	m->other = talk_text(asked, "to");
	if (!move_is_name(m->name))
		return move_fails(m, "'%.32s' is no name of a container",
				  m->name);
	m->runtime = runtime_of(m->name);
	return true;
}

static bool is_wanted(struct source *s, const json_t *asked)
{
	return (rounds_wanted(&s->rounds, asked) && *s->m.other) ||
	       move_fails(&s->m,
			  "that is no host, no number of rounds, or no budget");
}

void source_run(struct talk *asker, const json_t *asked)
{
	struct source s = { .asker = asker };
	char id[JOURNAL_ID + 1];
	struct move *m = &s.m;

	move_init(m);
	timing_begin(&s.timing);
	journal_make_id(id);
	talk_hold_signals();
	if (is_container(m, asked) && is_wanted(&s, asked) && move_lock(m) &&
	    move_begin(m, MOVE_SOURCE,
		       json_pack("{ssssss}", "id", id, "name", m->name, "peer",
				 m->other))) {
		if (!run(&s))
			source_back(&s);
		source_finish(&s);
		return;
	}
	talk_refuse(asker, "%s", m->reason);
	move_end(m);
}

void source_check(struct talk *asker, const json_t *asked)
{
	struct source s = { .asker = asker };
	struct move *m = &s.m;

	move_init(m);
	talk_hold_signals();
	if (is_container(m, asked) && describe(&s) && ask_peers(&s) &&
	    meet(&s) && ask_there(&s))
		talk_say(asker, json_pack("{sb}", "ok", 1));
	if (*m->reason)
		talk_refuse(asker, "%s", m->reason);
	json_decref(s.about);
	move_end(m);
}
