// SPDX-License-Identifier: GPL-2.0
#include "agent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flame.h"
#include "listen.h"
#include "note.h"
#include "peer.h"
#include "show.h"

int complain(const char *what, const char *why)
{
	char line[1024];

	snprintf(line, sizeof(line), "%s: %s", what, why);
	note_clean(line);
	fprintf(stderr, "migrctl: %s\n", line);
	return REFUSED;
}

void print_json(const json_t *o)
{
	json_dumpf(o, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
	putchar('\n');
	fflush(stdout);
}

const char *agent_host(const struct options *o)
{
	return o->on ? o->on : peer_self();
}

/* Over a Unix socket the first words are the mover's; over TLS they have been heard. */
bool agent_reach(struct talk *t, const struct options *o)
{
	int fd;

	if (o->on)
		return peer_dial(t, o->on, NULL);
	fd = dial_path(o->socket);
	if (fd >= 0)
		return talk_init(t, fd) && peer_greeted(t, NULL);
	*t = (struct talk){ .fd = -1 };
	snprintf(t->reason, sizeof(t->reason), "%s: %s", o->socket,
		 strerror(errno));
	return false;
}

json_t *agent_ask(struct talk *t, const struct options *o, json_t *asked)
{
	if (agent_reach(t, o))
		return talk_say(t, asked) ? talk_answered(t, -1) : NULL;
	json_decref(asked);
	return NULL;
}

/* ---- a move ----------------------------------------------------------------- */

/* What runs on where it was may not be whole either. */
static void add_warning(struct outcome *r, const char *warning)
{
	size_t n = strlen(r->why);

	snprintf(r->why + n, sizeof(r->why) - n,
		 "; and not all is as it was: %s", warning);
	note_clean(r->why);
}

static void over(const struct options *o, const json_t *said, struct outcome *r)
{
	bool ok = json_is_true(json_object_get(said, "ok"));
	const char *why = talk_text(said, ok ? "warning" : "error");
	const char *warning = talk_text(said, "warning");

	if (o->json)
		print_json(said);
	else if (ok)
		show_moved(said, o->timing);
	if (o->svg && json_object_get(said, "steps") &&
	    !flame_draw(o->svg, said))
		complain(o->svg, strerror(errno));
	snprintf(r->why, sizeof(r->why), "%s",
		 ok || *why ? why : "nobody says why");
	note_clean(r->why);
	if (!ok && *warning)
		add_warning(r, warning);
	if (ok)
		r->code = *why ? NOT_WHOLE : DONE;
	else
		r->code = json_is_true(json_object_get(said, "stopped"))
				  ? FAILED
				  : REFUSED;
	if (r->code != DONE && !o->json)
		complain(ok ? "not all is as it should be" : "not moved",
			 r->why);
}

/* What comes of it is told to who has asked for the move. */
static void give_up(const struct options *o, const char *name)
{
	struct talk t;
	json_t *said =
		agent_ask(&t, o,
			  json_pack("{ssss}", "do", "abort", "name", name));

	if (!said)
		complain(agent_host(o), t.reason);
	json_decref(said);
	talk_free(&t);
}

static void lose(struct talk *t, const char *name, struct outcome *r)
{
	r->code = DOUBT;
	snprintf(r->why, sizeof(r->why), "%s", t->reason);
	complain("the agent", t->reason);
	complain(name,
		 "whether it has moved is told by migrctl status, and log");
}

/* until it is over; ^C aborts it, if that can be done still */
static void follow(struct talk *t, const struct options *o, const char *name,
		   struct outcome *r)
{
	json_t *said;

	for (;;) {
		said = talk_hear(t, -1);
		if (said && json_object_get(said, "ok")) {
			over(o, said, r);
			json_decref(said);
			return;
		}
		if (said) {
			if (o->json)
				print_json(said);
			else
				show_phase(said);
			json_decref(said);
		} else if (talk_is_ended() && !r->aborted) {
			talk_hold_signals(); /* once more, and it is left alone */
			r->aborted = true;
			give_up(o, name);
		} else {
			lose(t, name, r);
			return;
		}
	}
}

/* a number if it is one; it is for the agent to say what it thinks of the rest */
static json_t *word(const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);
	json_t *o = *end || !*text ? json_string(text) : json_integer(n);

	return o ? o : json_string(""); /* it is not even text */
}

static json_t *migration(const struct options *o, const char *name,
			 const char *to)
{
	json_t *asked =
		json_pack("{ssssss}", "do", "migrate", "name", name, "to", to);

	if (o->pre_copy)
		json_object_set_new(asked, "pre_copy", word(o->pre_copy));
	if (o->budget)
		json_object_set_new(asked, "budget", word(o->budget));
	return asked;
}

void agent_move(const struct options *o, const char *name, const char *to,
		struct outcome *r)
{
	struct talk t;

	*r = (struct outcome){ .code = REFUSED };
	if (agent_reach(&t, o) && talk_say(&t, migration(o, name, to))) {
		follow(&t, o, name, r);
	} else {
		snprintf(r->why, sizeof(r->why), "%s", t.reason);
		complain(agent_host(o), r->why);
	}
	talk_free(&t);
}
