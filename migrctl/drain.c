// SPDX-License-Identifier: GPL-2.0
#include "drain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "note.h"

enum {
	MOST_HOSTS = 64,
	HOST_NAME = 253, /* characters of one, as DNS has them */
	NAME = 64,	 /* and of a container's, with some to spare */
};

struct drain {
	const struct options *o;
	char *text; /* of which the hosts are parts */
	const char *hosts[MOST_HOSTS];
	size_t n_hosts, turn; /* whose it is to take the next one */
	json_t *told;	      /* of each container what has become of it */
	size_t n, of;
	char ended[256]; /* why no other one is moved; "" if they are */
};

/* ---- what is wanted ---------------------------------------------------------- */

static bool is_host(const char *host)
{
	size_t n = strspn(host, "abcdefghijklmnopqrstuvwxyz"
				"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.:_-");

	return n && n <= HOST_NAME && !host[n] && *host != '-';
}

static bool read_hosts(struct drain *d)
{
	char *rest = d->text, *host;

	while ((host = strsep(&rest, ","))) {
		if (d->n_hosts == MOST_HOSTS || !is_host(host))
			return false;
		d->hosts[d->n_hosts++] = host;
	}
	return d->n_hosts;
}

/* what runs there, or is not said not to */
static bool runs(const json_t *entry)
{
	return !json_is_null(json_object_get(entry, "pid"));
}

/* False if it cannot be one; what is there in its place is fit for a terminal. */
static bool name_of(const json_t *entry, char name[NAME])
{
	const char *t = talk_text(entry, "name");

	snprintf(name, NAME, "%s", *t ? t : "?");
	note_clean(name);
	return !strcmp(name, t);
}

/* ---- what is told ------------------------------------------------------------ */

static json_t *begun(const struct drain *d, const char *name, const char *to,
		     const char *refused)
{
	json_t *o = json_pack("{sIsIss}", "n", (json_int_t)d->n, "of",
			      (json_int_t)d->of, "name", name);

	if (to)
		json_object_set_new(o, "to", json_string(to));
	if (refused)
		json_object_set_new(o, "error", json_string(refused));
	return o;
}

/* @to: the host whose turn it is, or NULL; @refused: why it does not go there, or NULL */
static void tell(const struct drain *d, const char *name, const char *to,
		 const char *refused)
{
	json_t *o = begun(d, name, to, refused);

	if (d->o->json) {
		print_json(o);
	} else {
		printf("%zu of %zu: %s", d->n, d->of, name);
		if (to)
			printf("%s to %s", refused ? " not" : "", to);
		printf("%s%s\n", refused ? ": " : "", refused ? refused : "");
		fflush(stdout);
	}
	json_decref(o);
}

/* @to: where it has gone, or was to go when it was stopped; or NULL */
static void note_outcome(struct drain *d, const char *name, const char *to,
			 const struct outcome *r)
{
	json_t *o = json_pack("{sssi}", "name", name, "code", r->code);

	if (to)
		json_object_set_new(o, "to", json_string(to));
	if (r->code != DONE)
		json_object_set_new(o,
				    r->code == NOT_WHOLE ? "warning" : "error",
				    json_string(r->why));
	json_array_append_new(d->told, o);
}

static int code_of(const json_t *o)
{
	return (int)json_integer_value(json_object_get(o, "code"));
}

/* of all: what leaves nothing there is better than what does */
static int worst(const json_t *told)
{
	static const int rank[] = {
		[DONE] = 0,   [NOT_WHOLE] = 1, [REFUSED] = 2,
		[FAILED] = 3, [DOUBT] = 4,
	};
	int code = DONE;
	const json_t *o;
	size_t i;

	json_array_foreach (told, i, o)
		if (rank[code_of(o)] > rank[code])
			code = code_of(o);
	return code;
}

static void show_left(const json_t *o)
{
	static const char *const what[] = {
		[FAILED] = "was stopped, and is left",
		[REFUSED] = "is left",
		[NOT_WHOLE] = "has moved, but not all is as it should be",
		[DOUBT] = "may have moved, or not",
	};
	char line[NAME + 64];
	int code = code_of(o);

	snprintf(line, sizeof(line), "%s %s", talk_text(o, "name"), what[code]);
	complain(line, talk_text(o, code == NOT_WHOLE ? "warning" : "error"));
}

static void show_end(const struct drain *d)
{
	const json_t *o;
	size_t i, moved = 0;

	json_array_foreach (d->told, i, o)
		moved += code_of(o) == DONE || code_of(o) == NOT_WHOLE;
	if (d->of)
		printf("%zu of %zu have moved\n", moved, d->of);
	else
		puts("nothing runs there");
	fflush(stdout);
	json_array_foreach (d->told, i, o)
		if (code_of(o) != DONE)
			show_left(o);
}

static int tell_end(const struct drain *d)
{
	int code = worst(d->told);
	json_t *o;

	if (d->o->json) {
		o = json_pack("{sbsO}", "ok", code == DONE, "containers",
			      d->told);
		print_json(o);
		json_decref(o);
	} else {
		show_end(d);
	}
	return code;
}

/* ---- one container ----------------------------------------------------------- */

static void end(struct drain *d, const char *why)
{
	snprintf(d->ended, sizeof(d->ended), "%s",
		 *why ? why : "it was to end");
}

/* Would that host take it? An agent that cannot be asked about one will move no other. */
static bool would_go(struct drain *d, const char *name, const char *to,
		     char *why, size_t bytes)
{
	json_t *said = NULL;
	struct talk t;
	bool reached = agent_reach(&t, d->o);

	if (reached && talk_say(&t, json_pack("{ssssss}", "do", "check", "name",
					      name, "to", to)))
		said = talk_answered(&t, -1);
	json_decref(said);
	snprintf(why, bytes, "%s", t.reason);
	if (!reached || talk_is_ended())
		end(d, why);
	talk_free(&t);
	return said && !*d->ended;
}

/* The hosts may all have the same reason: it is the container's then. */
static void add_reason(struct outcome *r, const char *why)
{
	size_t n = strlen(r->why);

	if (!strstr(r->why, why))
		snprintf(r->why + n, sizeof(r->why) - n, "%s%s", n ? "; " : "",
			 why);
}

/* True: there is no need to try another host. */
static bool moved(struct drain *d, const char *name, const char *to,
		  struct outcome *r)
{
	struct outcome now;

	agent_move(d->o, name, to, &now);
	if (now.aborted || talk_is_ended())
		end(d, "it was to end");
	if (now.code == REFUSED) {
		add_reason(r, now.why);
		return false;
	}
	*r = now;
	return true;
}

/* One that was stopped for a host in vain is not stopped again for the next one. */
static void move_one(struct drain *d, const char *name)
{
	struct outcome r = { .code = REFUSED };
	const char *host, *to = NULL;
	char why[256];

	for (size_t i = 0; i < d->n_hosts && !to && !*d->ended; i++) {
		host = d->hosts[(d->turn + i) % d->n_hosts];
		if (!would_go(d, name, host, why, sizeof(why))) {
			tell(d, name, host, why);
			add_reason(&r, why);
			continue;
		}
		tell(d, name, host, NULL);
		if (moved(d, name, host, &r)) {
			to = host;
			d->turn = (d->turn + i + 1) % d->n_hosts;
		}
	}
	if (!*r.why && !to)
		add_reason(&r, d->ended);
	note_outcome(d, name, to, &r);
}

/* ---- all of them ------------------------------------------------------------- */

static void leave_nameless(struct drain *d, const char *name)
{
	const struct outcome r = {
		.code = REFUSED,
		.why = "that is no name of a container",
	};

	tell(d, name, NULL, r.why);
	note_outcome(d, name, NULL, &r);
}

static void move_all(struct drain *d, const json_t *containers)
{
	const json_t *entry;
	char name[NAME];
	size_t i;

	json_array_foreach (containers, i, entry)
		d->of += runs(entry);
	json_array_foreach (containers, i, entry) {
		if (!runs(entry))
			continue;
		d->n++;
		if (name_of(entry, name))
			move_one(d, name);
		else
			leave_nameless(d, name);
	}
}

static int drain_all(struct drain *d)
{
	const json_t *containers;
	struct talk t;
	json_t *said = agent_ask(&t, d->o, json_pack("{ss}", "do", "list"));
	int code;

	containers = json_object_get(said, "containers");
	if (!said) {
		code = complain(agent_host(d->o), t.reason);
	} else if (!json_is_array(containers)) {
		code = complain(agent_host(d->o),
				"it does not tell its containers");
	} else {
		move_all(d, containers);
		code = tell_end(d);
	}
	json_decref(said);
	talk_free(&t);
	return code;
}

int drain(const struct options *o)
{
	struct drain d = { .o = o,
			   .text = strdup(o->to),
			   .told = json_array() };
	int code = USAGE;

	talk_hold_signals();
	if (d.text && read_hosts(&d))
		code = drain_all(&d);
	else
		complain("that is no list of hosts", o->to);
	json_decref(d.told);
	free(d.text);
	return code;
}
