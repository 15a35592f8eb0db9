// SPDX-License-Identifier: GPL-2.0
/*
 * Lines for many, at the same time. Whatever one of them does, or does not do, takes no
 * time from another one.
 */
#include "layer.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

enum {
	AT_ONCE = 64, /* lines whose answers nobody has heard yet */
};

/* where a process is in its lines, and how long it has for the next one, and for all */
struct cursor {
	const char *heard, *sent; /* the next line to be answered, or sent */
	const char *end;	  /* of those that are sent now */
	long long until, deadline;
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

static unsigned int patience(const struct layer *l, const struct layer_proc *p)
{
	return l->hurry ? l->hurry : layer_limit(l, p) + PATIENCE_MS;
}

/* A line takes no longer. */
static long long line_until(const struct layer *l, const struct layer_proc *p,
			    const struct cursor *c)
{
	long long until = now_ms() + patience(l, p);

	return until < c->deadline ? until : c->deadline;
}

/* if all are answered that were sent */
static void next_lines(const struct layer *l, const struct layer_proc *p,
		       struct cursor *c)
{
	if (!p->open || p->failed || c->heard < c->end)
		return;
	for (int i = 0; i < AT_ONCE && c->end < p->text + p->bytes; i++)
		c->end = behind(c->end);
	c->until = line_until(l, p, c);
}

static void send_some(struct layer *l, struct layer_proc *p, struct cursor *c)
{
	ssize_t sent = 1;

	while (c->sent < c->end && sent > 0) {
		sent = conn_put(&p->conn, c->sent, (size_t)(c->end - c->sent));
		if (sent < 0)
			broken(l, p, c->heard);
		else
			c->sent += sent;
	}
}

/* of whom there is much, here or on its way */
static bool says_too_much(const struct layer *l, const struct layer_proc *p)
{
	size_t all = 0;

	if (p->said + p->conn.room <= MOST_SAID / l->n)
		return false;
	for (size_t i = 0; i < l->n; i++)
		if (l->procs[i]->open)
			all += l->procs[i]->said + l->procs[i]->conn.room;
	return all > MOST_SAID;
}

static void forget(struct layer_proc *p)
{
	json_decref(p->answer);
	p->answer = NULL;
	p->said = 0;
}

/* Also if one of them is a refusal: who says it goes on with the next line. */
static void hear_some(struct layer *l, struct layer_proc *p, struct cursor *c)
{
	enum conn_read got = CONN_MORE;
	char *answer, reason[512];
	size_t length;

	while (p->open && c->heard < c->end) {
		got = client_try(&p->conn, &answer, &length);
		if (got == CONN_MORE) {
			forget(p);
			/* the length is in its room */
			p->said = layer_weight(answer, length) - length;
		}
		if (got != CONN_END && says_too_much(l, p)) {
			strcpy(p->conn.reason, "all together say too much");
			got = CONN_END;
		}
		if (got != CONN_MORE)
			break;
		p->said += length;
		p->answer = layer_parse(answer, length, reason, sizeof(reason));
		if (!p->answer) {
			failed(l, p, c->heard, reason);
			p->said = 0;
		}
		c->heard = behind(c->heard);
		c->until = line_until(l, p, c);
	}
	/* it is only late if it has not answered by now: we may look late */
	if (got == CONN_NOTHING && now_ms() >= c->until) {
		conn_late(&p->conn);
		got = CONN_END;
	}
	if (got == CONN_END)
		broken(l, p, c->heard);
}

/* true if something is still to come */
static bool step(struct layer *l, struct layer_proc *p, struct cursor *c)
{
	if (p->open)
		send_some(l, p, c);
	if (p->open)
		hear_some(l, p, c);
	next_lines(l, p, c);
	return p->open && c->heard < c->end;
}

/* until one of them has something to do, or is late */
static void wait_for_any(const struct layer *l, const struct cursor *cursors)
{
	struct pollfd fds[MOST_PROCS];
	long long first = -1, left;
	nfds_t n = 0;

	for (size_t i = 0; i < l->n; i++) {
		const struct cursor *c = &cursors[i];

		if (!l->procs[i]->open || c->heard == c->end)
			continue;
		fds[n++] = (struct pollfd){
			.fd = l->procs[i]->conn.fd,
			.events = c->sent < c->end ? POLLIN | POLLOUT : POLLIN,
		};
		if (first < 0 || c->until < first)
			first = c->until;
	}
	left = first - now_ms();
	poll(fds, n, left > 0 ? (int)left : 0);
}

/* Who has more to hear has time for that. */
static void begins(struct layer *l, struct cursor *cursors)
{
	long long now = now_ms();

	for (size_t i = 0; i < l->n; i++) {
		struct layer_proc *p = l->procs[i];

		cursors[i] = (struct cursor){
			p->text, p->text, p->text, 0,
			now + patience(l, p) + (long long)p->lines * LINE_MS
		};
		forget(p);
		if (p->no_memory)
			layer_proc_fails(l, p, "no memory");
		else if (p->lines && !p->open)
			failed(l, p, p->text, "there is no connection");
		next_lines(l, p, &cursors[i]);
	}
}

static bool ends(struct layer *l)
{
	bool good = true;

	for (size_t i = 0; i < l->n; i++) {
		good = good && !l->procs[i]->failed;
		layer_unsay(l->procs[i]);
	}
	return good;
}

bool layer_round(struct layer *l)
{
	struct cursor cursors[MOST_PROCS];
	bool more = true;

	begins(l, cursors);
	while (more) {
		more = false;
		for (size_t i = 0; i < l->n; i++)
			more |= step(l, l->procs[i], &cursors[i]);
		if (more)
			wait_for_any(l, cursors);
	}
	return ends(l);
}
