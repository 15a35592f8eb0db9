// SPDX-License-Identifier: GPL-2.0
/*
 * Lines from standard input go to a daemon, its answers to standard output.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "client.h"

enum {
	PATIENCE_MS = 30000
};

static int complain(const char *what, const char *why)
{
	fprintf(stderr, "migrd-say: %s: %s\n", what, why);
	return 1;
}

/* 1: it was done; 0: it was refused; -1: that was no answer */
static int is_ok(const char *line, size_t bytes)
{
	json_error_t error;
	json_t *all = json_loadb(line, bytes, JSON_REJECT_DUPLICATES, &error);
	json_t *ok = json_object_get(all, "ok");
	int result = !json_is_boolean(ok) ? -1 : json_is_true(ok);

	json_decref(all);
	return result;
}

/* What is no JSON may be anything, and is not for a terminal. */
static int tell(const char *line, size_t bytes)
{
	int ok = is_ok(line, bytes);

	if (ok < 0)
		return complain("an answer", "no JSON with \"ok\"");
	fwrite(line, 1, bytes, stdout);
	putchar('\n');
	fflush(stdout);
	return !ok;
}

/* Nothing is asked: until there is a line, or the end of either side. */
static bool wait_for_line(struct conn *c, char **line, size_t *room,
			  ssize_t *bytes)
{
	struct pollfd p[] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = c->fd, .events = POLLIN },
	};

	for (;;) {
		if (poll(p, 2, -1) < 0)
			continue;
		if (p[1].revents && conn_read(c) != CONN_NOTHING) {
			*bytes = -2;
			return false;
		}
		if (p[0].revents) {
			*bytes = getline(line, room, stdin);
			return *bytes > 0;
		}
	}
}

static int talk(struct conn *c)
{
	size_t room = 0, length;
	char *line = NULL, *answer;
	ssize_t bytes = 0;
	int bad = 0;

	while (wait_for_line(c, &line, &room, &bytes)) {
		answer = NULL;
		if (conn_send(c, line, (size_t)bytes, now_ms() + PATIENCE_MS) &&
		    (line[bytes - 1] == '\n' ||
		     conn_send(c, "\n", 1, now_ms() + PATIENCE_MS)))
			answer = client_hear(c, &length, 0);
		if (!answer) {
			bad = complain("the connection", c->reason);
			break;
		}
		bad |= tell(answer, length);
	}
	if (bytes == -2)
		bad = complain("the connection",
			       c->reason[0] ? c->reason
					    : "an answer that nobody wanted");
	free(line);
	return bad;
}

static int say(SSL_CTX *ctx, const char *host, const char *port,
	       const char *name)
{
	char reason[256];
	struct conn c;
	int bad;

	/* As each line is waited for, none must be read ahead of poll(). */
	setvbuf(stdin, NULL, _IONBF, 0);
	if (!client_open(&c, ctx, host, port, name, now_ms() + PATIENCE_MS,
			 reason, sizeof(reason)))
		return complain(host, reason);
	bad = talk(&c);
	conn_free(&c);
	return bad;
}

static int usage(FILE *f, int code)
{
	fprintf(f,
		"usage: migrd-say -k KEY -c CERT -a CA [-n NAME] HOST [PORT]\n");
	return code;
}

int main(int argc, char **argv)
{
	struct tls_files files = { NULL, NULL, NULL };
	const char *name = NULL, *host, *port;
	int option, bad;
	char reason[256];
	SSL_CTX *ctx;

	while ((option = getopt(argc, argv, "hk:c:a:n:")) != -1) {
		switch (option) {
		case 'h':
			return usage(stdout, 0);
		case 'k':
		case 'c':
		case 'a':
			tls_file(&files, option, optarg);
			break;
		case 'n':
			name = optarg;
			break;
		default:
			return usage(stderr, 2);
		}
	}
	if (!tls_has_all(&files) || argc - optind < 1 || argc - optind > 2)
		return usage(stderr, 2);
	host = argv[optind];
	port = argc - optind > 1 ? argv[optind + 1] : "18620";
	signal(SIGPIPE, SIG_IGN);
	ctx = tls_context(false, &files, reason, sizeof(reason));
	if (!ctx) {
		fprintf(stderr, "migrd-say: %s\n", reason);
		return 1;
	}
	bad = say(ctx, host, port, name ? name : host);
	SSL_CTX_free(ctx);
	return bad;
}
