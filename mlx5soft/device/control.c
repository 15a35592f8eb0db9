// SPDX-License-Identifier: GPL-2.0
/* What a running device is told and asked from outside. */

#define _GNU_SOURCE /* accept4 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "commands/cmd.h"
#include "control.h"
#include "nic.h"

#define WORDS 6

/* ---- answers ---- */

struct text {
	char *at;
	size_t left;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *t,
						      const char *fmt, ...)
{
	va_list ap;
	size_t n;

	va_start(ap, fmt);
	n = vsnprintf(t->at, t->left, fmt, ap);
	va_end(ap);
	if (n >= t->left)
		n = t->left - 1;
	t->at += n;
	t->left -= n;
}

static void add_commands(struct text *t, const struct nic *nic)
{
	const struct cmd_desc *desc;
	const char *comma = "";
	size_t i;

	add(t, "\"commands\": {");
	for (i = 0; (desc = cmd_row(i)); i++) {
		const struct cmd_count *c = &nic->cmd_count[desc->op];

		if (!c->count)
			continue;
		add(t,
		    "%s\"%s\": {\"count\": %" PRIu64 ", \"ns\": %" PRIu64 "}",
		    comma, desc->name, c->count, c->ns);
		comma = ", ";
	}
	add(t, "}, \"unknown_commands\": %" PRIu64, nic->cmd_count[0].count);
}

static void add_load(struct text *t, const struct nic *nic)
{
	struct roce_load load = roce_load(nic->roce);

	add(t,
	    "\"qps\": %" PRIu64 ", \"in_flight\": {\"packets\": %" PRIu64
	    ", \"bytes\": %" PRIu64 ", \"read_bytes\": %" PRIu64
	    "}, \"unsent_bytes\": %" PRIu64,
	    load.qps, load.packets, load.bytes, load.read_bytes,
	    load.unsent_bytes);
}

static void add_limit(struct text *t, const struct nic *nic)
{
	const struct limit *l = nic->wire.limit;

	/* A struct limit of zeros to look at would be 32 MiB of them. */
	add(t,
	    "\"rate\": %" PRIu64 ", \"delay_ns\": %" PRIu64
	    ", \"packets\": %" PRIu64 ", \"bytes\": %" PRIu64,
	    l ? l->link.rate : 0, l ? l->link.delay : 0, l ? l->packets : 0,
	    l ? l->bytes : 0);
}

/* ---- requests ---- */

/* NULL, or what is wrong with it */
static const char *set_limit(struct nic *nic, char **words)
{
	uint64_t rate = 0, delay = 0;
	bool rated = false, delayed = false;

	if (!strcmp(words[0], "off")) {
		if (words[1])
			return "nothing goes with off";
		return nic_limit(nic, 0, 0) ? "it cannot be" : NULL;
	}
	for (; *words; words += 2) {
		bool *twice = !strcmp(words[0], "rate") ? &rated : &delayed;

		if (twice == &delayed && strcmp(words[0], "delay"))
			return "limit [rate RATE] [delay TIME] | off";
		if (*twice || !words[1])
			return "one RATE and one TIME, as 200M and 50us";
		*twice = true;
		if (twice == &rated ? !link_parse_rate(words[1], &rate)
				    : !link_parse_time(words[1], &delay))
			return twice == &rated ? "a rate is 1k to 1000G"
					       : "a delay is 0us to 60s";
	}
	switch (nic_limit(nic, rate, delay)) {
	case 0:
		return NULL;
	case -ERANGE:
		return "more would be on its way than can be kept: 16 MiB";
	default:
		return "no memory";
	}
}

static const char *answer_limit(struct nic *nic, char **words, struct text *t)
{
	const char *wrong = words[0] ? set_limit(nic, words) : NULL;

	if (wrong)
		return wrong;
	add(t, "{");
	add_limit(t, nic);
	add(t, "}\n");
	return NULL;
}

#define MOST_COMMAND_TIME 1000000000 /* ns: drivers wait 60 s for 32 of them */

static const char *answer_commands(struct nic *nic, char **words,
				   struct text *t)
{
	uint64_t ns = 0;

	if (words[0] && words[1])
		return "commands [TIME] | off";
	if (words[0] && strcmp(words[0], "off") &&
	    (!link_parse_time(words[0], &ns) || ns > MOST_COMMAND_TIME))
		return "a command takes 0us to 1s";
	if (words[0])
		nic->cmd_time = ns;
	add(t, "{\"command_ns\": %" PRIu64 "}\n", nic->cmd_time);
	return NULL;
}

static const char *answer_counters(struct nic *nic, char **words,
				   struct text *t)
{
	bool reset = words[0] && !strcmp(words[0], "reset");
	uint64_t now = nic_now();

	if (words[reset])
		return "counters [reset]";
	add(t, "{\"ns\": %" PRIu64 ", ", now - nic->counted_from);
	add_commands(t, nic);
	add(t, ", ");
	add_load(t, nic);
	add(t, ", \"limit\": {");
	add_limit(t, nic);
	add(t, "}}\n");
	if (reset) {
		memset(nic->cmd_count, 0, sizeof(nic->cmd_count));
		nic->counted_from = now;
	}
	return NULL;
}

/* Letters, digits and points, between single spaces. False: it is not that. */
static bool split(char *text, size_t len, char **words)
{
	static const char known[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.";
	size_t n, i;

	for (i = 0; i < WORDS; i++) {
		n = strspn(text, known);
		if (!n)
			return false;
		words[i] = text;
		words[i + 1] = NULL;
		if (n == len)
			return true;
		if (text[n] != ' ')
			return false;
		text[n++] = '\0';
		text += n;
		len -= n;
	}
	return false;
}

void control_request(struct nic *nic, const char *request, size_t len,
		     char answer[CONTROL_ANSWER])
{
	char copy[CONTROL_REQUEST + 1], *words[WORDS + 1];
	struct text t = { answer, CONTROL_ANSWER };
	const char *wrong = "not understood: limit, commands or counters?";

	if (len <= CONTROL_REQUEST) {
		memcpy(copy, request, len);
		copy[len] = '\0';
		if (!split(copy, len, words))
			;
		else if (!strcmp(words[0], "limit"))
			wrong = answer_limit(nic, words + 1, &t);
		else if (!strcmp(words[0], "commands"))
			wrong = answer_commands(nic, words + 1, &t);
		else if (!strcmp(words[0], "counters"))
			wrong = answer_counters(nic, words + 1, &t);
	}
	if (wrong)
		add(&t, "{\"error\": \"%s\"}\n", wrong);
}

/* ---- the socket ---- */

int control_open(struct control *c, const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct stat st;
	mode_t mask;
	int ret;

	c->listener = c->client = -1;
	if (strlen(path) >= sizeof(addr.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(addr.sun_path, path);
	if (!lstat(path, &st) && S_ISSOCK(st.st_mode))
		unlink(path);
	c->listener = socket(AF_UNIX,
			     SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->listener < 0)
		return -1;
	mask = umask(077);
	ret = bind(c->listener, (struct sockaddr *)&addr, sizeof(addr));
	umask(mask);
	if (!ret && !listen(c->listener, 8))
		return 0;
	close(c->listener);
	c->listener = -1;
	return -1;
}

int control_fd(const struct control *c)
{
	return c->client >= 0 ? c->client : c->listener;
}

/* What a client does not take at once it does not get: the device never waits. */
static bool serve_client(int fd, struct nic *nic)
{
	char request[CONTROL_REQUEST + 1], answer[CONTROL_ANSWER];
	ssize_t n = recv(fd, request, sizeof(request), 0);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (!n)
		return false;
	control_request(nic, request, n, answer);
	n = strlen(answer);
	return send(fd, answer, n, MSG_NOSIGNAL) == n;
}

void control_serve(struct control *c, struct nic *nic)
{
	if (c->client < 0) {
		c->client = accept4(c->listener, NULL, NULL,
				    SOCK_CLOEXEC | SOCK_NONBLOCK);
	} else if (!serve_client(c->client, nic)) {
		close(c->client);
		c->client = -1;
	}
}

void control_close(struct control *c, const char *path)
{
	if (c->client >= 0)
		close(c->client);
	close(c->listener);
	unlink(path);
}
