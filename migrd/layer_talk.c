// SPDX-License-Identifier: GPL-2.0
#include "layer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "note.h"

enum {
	AT_ONCE = 64, /* lines whose answers nobody has heard yet */
};

/* What has failed first is the reason of all others. */
bool layer_fail(struct layer *l, const char *fmt, ...)
{
	va_list args;

	if (*l->reason)
		return false;
	va_start(args, fmt);
	vsnprintf(l->reason, sizeof(l->reason), fmt, args);
	va_end(args);
	note_clean(l->reason);
	return false;
}

bool layer_proc_fails(struct layer *l, struct layer_proc *p, const char *fmt,
		      ...)
{
	va_list args;

	if (p->failed)
		return false;
	p->failed = true;
	va_start(args, fmt);
	vsnprintf(p->reason, sizeof(p->reason), fmt, args);
	va_end(args);
	note_clean(p->reason);
	return layer_fail(l, "%s: process %s: %s", p->host, p->id, p->reason);
}

double layer_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1000 + (double)t.tv_nsec / 1000000;
}

void layer_tell(struct layer_proc *p, const char *fmt, ...)
{
	char line[LINE_BYTES];
	size_t room = p->room ? p->room : 4096;
	va_list args;
	char *text;
	int n;

	va_start(args, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof(line) - 1) {
		p->no_memory = true;
		return;
	}
	line[n++] = '\n';
	while (room < p->bytes + (size_t)n)
		room *= 2;
	text = room > p->room ? realloc(p->text, room) : p->text;
	if (!text) {
		p->no_memory = true;
		return;
	}
	p->text = text;
	p->room = room;
	memcpy(p->text + p->bytes, line, (size_t)n);
	p->bytes += (size_t)n;
	p->lines++;
}

static json_t *parse(const char *line, size_t length, char *reason,
		     size_t bytes)
{
	json_error_t error;
	json_t *all = json_loadb(line, length, JSON_REJECT_DUPLICATES, &error);
	const json_t *ok = json_object_get(all, "ok");
	const char *why = json_string_value(json_object_get(all, "reason"));

	if (json_is_true(ok))
		return all;
	if (json_is_false(ok))
		snprintf(reason, bytes, "%s", why ? why : "without a reason");
	else
		snprintf(reason, bytes, "an answer that is none");
	json_decref(all);
	return NULL;
}

json_t *layer_ask(struct conn *c, const char *line, long long deadline,
		  char *reason, size_t bytes)
{
	char *answer = NULL;
	size_t length;

	if (conn_send(c, line, strlen(line), deadline) &&
	    conn_send(c, "\n", 1, deadline))
		answer = client_hear(c, &length, deadline);
	if (answer)
		return parse(answer, length, reason, bytes);
	snprintf(reason, bytes, "%s", c->reason);
	return NULL;
}

bool layer_open(struct layer *l, struct layer_proc *p, long long deadline,
		char *reason, size_t bytes)
{
	char line[MOST_ID + 8];
	json_t *answer;

	if (!client_open(&p->conn, l->ctx, p->host, l->port,
			 p->by_gid ? NULL : p->host, deadline, reason, bytes))
		return false;
	snprintf(line, sizeof(line), "open %s", p->id);
	answer = layer_ask(&p->conn, line, deadline, reason, bytes);
	p->open = answer;
	if (!answer)
		conn_free(&p->conn);
	json_decref(answer);
	return p->open;
}

void layer_close(struct layer_proc *p)
{
	if (p->open)
		conn_free(&p->conn);
	p->open = false;
}

/* --- a round --- */

/* where a process is in its lines */
struct cursor {
	const char *sent, *heard; /* the next line to be sent, or answered */
};

static const char *behind(const char *line)
{
	return strchr(line, '\n') + 1;
}

static void failed(struct layer *l, struct layer_proc *p, const char *line,
		   const char *reason)
{
	int bytes = (int)strcspn(line, "\n");

	layer_proc_fails(l, p, "%.*s: %s", bytes < 40 ? bytes : 40, line,
			 reason);
}

/* What comes of it now would be taken for the answer to something else. */
static void broken(struct layer *l, struct layer_proc *p, const char *line)
{
	failed(l, p, line, p->conn.reason);
	layer_close(p);
}

/* true if there was something to be sent */
static bool send_some(struct layer *l, struct layer_proc *p, struct cursor *c,
		      long long deadline)
{
	const char *begin = c->sent;

	for (int i = 0; i < AT_ONCE && c->sent < p->text + p->bytes; i++)
		c->sent = behind(c->sent);
	if (c->sent == begin)
		return false;
	if (!conn_send(&p->conn, begin, (size_t)(c->sent - begin), deadline))
		broken(l, p, begin);
	return true;
}

/* A line takes no longer. */
static long long line_until(const struct layer *l, long long deadline)
{
	long long until = now_ms() + l->budget + PATIENCE_MS;

	return until < deadline ? until : deadline;
}

/* Also if one of them is a refusal: who says it goes on with the next line. */
static void hear_some(struct layer *l, struct layer_proc *p, struct cursor *c,
		      long long until, long long deadline)
{
	char *answer, reason[512];
	size_t length;

	while (p->open && c->heard < c->sent) {
		json_decref(p->answer);
		p->answer = NULL;
		answer = client_hear(&p->conn, &length, until);
		if (!answer) {
			broken(l, p, c->heard);
			return;
		}
		p->answer = parse(answer, length, reason, sizeof(reason));
		if (!p->answer)
			failed(l, p, c->heard, reason);
		c->heard = behind(c->heard);
		until = line_until(l, deadline);
	}
}

static void round_begins(struct layer *l, struct cursor *cursors)
{
	for (size_t i = 0; i < l->n; i++) {
		struct layer_proc *p = l->procs[i];

		cursors[i] = (struct cursor){ p->text, p->text };
		json_decref(p->answer);
		p->answer = NULL;
		if (p->no_memory)
			layer_proc_fails(l, p, "no memory");
		else if (p->lines && !p->open)
			failed(l, p, p->text, "there is no connection");
	}
}

static bool round_ends(struct layer *l)
{
	bool good = true;

	for (size_t i = 0; i < l->n; i++) {
		good = good && !l->procs[i]->failed;
		layer_unsay(l->procs[i]);
	}
	return good;
}

/* Whoever has most to hear has time for that. */
static long long round_until(const struct layer *l)
{
	size_t most = 0;

	for (size_t i = 0; i < l->n; i++)
		if (l->procs[i]->lines > most)
			most = l->procs[i]->lines;
	return now_ms() + l->budget + PATIENCE_MS + (long long)most * LINE_MS;
}

bool layer_round(struct layer *l)
{
	long long deadline = round_until(l), until;
	struct cursor cursors[MOST_PROCS];
	bool more = true;

	round_begins(l, cursors);
	while (more) {
		more = false;
		until = line_until(l, deadline);
		for (size_t i = 0; i < l->n; i++)
			if (l->procs[i]->lines && !l->procs[i]->failed)
				more |= send_some(l, l->procs[i], &cursors[i],
						  until);
		/* at the same time for all: what has come meanwhile is heard */
		until = line_until(l, deadline);
		for (size_t i = 0; i < l->n; i++)
			if (l->procs[i]->lines)
				hear_some(l, l->procs[i], &cursors[i], until,
					  deadline);
	}
	return round_ends(l);
}

void layer_unsay(struct layer_proc *p)
{
	p->bytes = p->lines = 0;
	p->no_memory = false;
}
