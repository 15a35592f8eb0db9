// SPDX-License-Identifier: GPL-2.0
#include "answer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "note.h"

/* @all becomes ours */
static bool answer(struct conn *c, json_t *all)
{
	char *text =
		all ? json_dumps(all, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
	size_t bytes = text ? strlen(text) : 0;
	bool sent = false;

	if (text) {
		text[bytes++] = '\n'; /* in the place of the 0 */
		sent = conn_send(c, text, bytes, now_ms() + SEND_MS);
	} else {
		snprintf(c->reason, sizeof(c->reason), "no memory");
	}
	free(text);
	json_decref(all);
	return sent;
}

bool answer_hello(struct conn *c, const char *host)
{
	return answer(c, json_pack("{s:b, s:i, s:s}", "ok", 1, "migrd", 1,
				   "host", host));
}

bool answer_ok(struct conn *c)
{
	return answer(c, json_pack("{s:b}", "ok", 1));
}

static json_t *of(const struct process *p)
{
	return json_pack("{s:s, s:i, s:s}", "id", p->id, "pid", (int)p->pid,
			 "socket", p->path);
}

bool answer_processes(struct conn *c, const struct processes *p)
{
	json_t *list = json_array();

	for (size_t i = 0; i < p->n; i++)
		if (json_array_append_new(list, of(&p->all[i]))) {
			json_decref(list);
			list = NULL;
			break;
		}
	return answer(c, json_pack("{s:b, s:o, s:o*}", "ok", 1, "processes",
				   list, "left_out",
				   p->left_out ? json_integer(p->left_out)
					       : NULL));
}

bool answer_process(struct conn *c, const struct process *p)
{
	return answer(c, json_pack("{s:b, s:o}", "ok", 1, "process", of(p)));
}

bool answer_gids(struct conn *c, const struct gid_entry *all, size_t n)
{
	char text[INET6_ADDRSTRLEN];
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		if (json_array_append_new(
			    list, json_pack("{s:s, s:I, s:s}", "gid",
					    inet_ntop(AF_INET6, &all[i].gid,
						      text, sizeof(text)),
					    "index", (json_int_t)all[i].index,
					    "type", all[i].type))) {
			json_decref(list);
			list = NULL;
			break;
		}
	return answer(c, json_pack("{s:b, s:o}", "ok", 1, "gids", list));
}

bool answer_refuse(struct conn *c, int err, const char *fmt, ...)
{
	char reason[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(reason, sizeof(reason), fmt, args);
	va_end(args);
	note_clean(reason);
	return answer(c, json_pack("{s:b, s:i, s:s}", "ok", 0, "errno", err,
				   "reason", reason));
}
