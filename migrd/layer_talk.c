// SPDX-License-Identifier: GPL-2.0
#include "layer.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "note.h"

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

bool layer_is_waited_for(int ms)
{
	struct pollfd p = { .fd = STDIN_FILENO };

	return poll(&p, 1, ms) <= 0;
}

unsigned int layer_replaced(const struct layer_proc *p)
{
	unsigned int n = 0;

	for (size_t i = 0; i < p->names.n_qps; i++)
		n += p->names.qps[i].to != NULL;
	return n;
}

/* A partner's other queue pairs are not meant, and their number is what it says. */
unsigned int layer_limit(const struct layer *l, const struct layer_proc *p)
{
	size_t n = p->is_mover ? p->names.n_qps : layer_replaced(p);
	size_t ms = l->budget + n / QPS_A_SECOND * 1000;

	return ms < MOST_BUDGET_MS ? (unsigned int)ms : MOST_BUDGET_MS;
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

enum {
	/* bytes of the smallest that the layer says: a key, and a number with its name */
	GROUP_BYTES = 24,
	VALUE_BYTES = 8,
};

size_t layer_weight(const char *line, size_t length)
{
	size_t groups = 0, values = 1, most = length;
	bool in_string = false;

	for (size_t i = 0; i < length; i++) {
		if (line[i] == '"')
			in_string = !in_string;
		else if (in_string)
			i += line[i] == '\\';
		else if (line[i] == '{' || line[i] == '[')
			groups++;
		else if (line[i] == ',')
			values++;
	}
	values += groups;
	if (most < groups * GROUP_BYTES)
		most = groups * GROUP_BYTES;
	if (most < values * VALUE_BYTES)
		most = values * VALUE_BYTES;
	return most;
}

/* *@err: of a refusal, or 0 */
static json_t *parse(const char *line, size_t length, int *err, char *reason,
		     size_t bytes)
{
	bool fits = layer_weight(line, length) <= ANSWER_BYTES;
	json_error_t error;
	json_t *all =
		fits ? json_loadb(line, length, JSON_REJECT_DUPLICATES, &error)
		     : NULL;
	const json_t *ok = json_object_get(all, "ok");
	const char *why = json_string_value(json_object_get(all, "reason"));

	if (json_is_true(ok))
		return all;
	if (json_is_false(ok)) {
		*err = (int)json_integer_value(json_object_get(all, "errno"));
		snprintf(reason, bytes, "%s", why ? why : "without a reason");
	} else {
		snprintf(reason, bytes, "an answer %s",
			 fits ? "that is none" : "of too many parts");
	}
	json_decref(all);
	return NULL;
}

json_t *layer_parse(const char *line, size_t length, char *reason, size_t bytes)
{
	int err;

	return parse(line, length, &err, reason, bytes);
}

json_t *layer_ask_err(struct conn *c, const char *line, long long deadline,
		      int *err, char *reason, size_t bytes)
{
	char *answer = NULL;
	size_t length;

	*err = 0;
	if (conn_send(c, line, strlen(line), deadline) &&
	    conn_send(c, "\n", 1, deadline))
		answer = client_hear(c, &length, deadline);
	if (answer)
		return parse(answer, length, err, reason, bytes);
	snprintf(reason, bytes, "%s", c->reason);
	return NULL;
}

json_t *layer_ask(struct conn *c, const char *line, long long deadline,
		  char *reason, size_t bytes)
{
	int err;

	return layer_ask_err(c, line, deadline, &err, reason, bytes);
}

static bool bind_to(struct layer *l, struct layer_proc *p, long long deadline,
		    char *reason, size_t bytes)
{
	char line[MOST_ID + 16];
	json_t *answer;
	int err;

	snprintf(line, sizeof(line), "%s %s", p->is_lent ? "borrow" : "open",
		 p->id);
	answer = layer_ask_err(&p->conn, line, deadline, &err, reason, bytes);
	/* who is lent may be taken, and those who have it may not answer */
	if (err == EBUSY || (p->is_lent && *p->conn.reason))
		l->is_busy = true;
	p->open = answer;
	if (!answer)
		conn_free(&p->conn);
	json_decref(answer);
	return p->open;
}

bool layer_open(struct layer *l, struct layer_proc *p, long long deadline,
		char *reason, size_t bytes)
{
	return client_open(&p->conn, l->ctx, p->host, l->port,
			   p->by_gid ? NULL : p->host, deadline, reason,
			   bytes) &&
	       bind_to(l, p, deadline, reason, bytes);
}

void layer_close(struct layer_proc *p)
{
	if (p->open)
		conn_free(&p->conn);
	p->open = false;
}

void layer_unsay(struct layer_proc *p)
{
	p->bytes = p->lines = 0;
	p->no_memory = false;
}
