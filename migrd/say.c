// SPDX-License-Identifier: GPL-2.0
/*
 * Lines from standard input go to a daemon, its answers to standard output.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <jansson.h>

#include "conn.h"

enum {
	PATIENCE_MS = 30000
};

static int complain(const char *what, const char *why)
{
	fprintf(stderr, "migrd-say: %s: %s\n", what, why);
	return 1;
}

static int dial(const char *host, const char *port)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *all;
	int fd = -1, ret = getaddrinfo(host, port, &hints, &all);

	if (ret) {
		complain(host, gai_strerror(ret));
		return -1;
	}
	for (struct addrinfo *a = all; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen)) {
			ret = errno;
			close(fd);
			fd = -1;
			errno = ret;
		}
	}
	if (fd < 0)
		complain(host, strerror(errno));
	else
		conn_keep_alive(fd);
	freeaddrinfo(all);
	return fd;
}

/* An answer without end, or the end; there is no time limit but @deadline. */
static char *hear(struct conn *c, size_t *bytes, long long deadline)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };
	char *line;

	while (!(line = conn_line(c, bytes))) {
		switch (conn_read(c)) {
		case CONN_MORE:
			break;
		case CONN_NOTHING:
			if (deadline && now_ms() >= deadline) {
				strcpy(c->reason, "the peer takes too long");
				return NULL;
			}
			poll(&p, 1, deadline ? (int)(deadline - now_ms()) : -1);
			break;
		case CONN_FULL:
			strcpy(c->reason, "an answer is too long");
			return NULL;
		case CONN_END:
			return NULL;
		}
	}
	return line;
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

static bool greet(struct conn *c)
{
	json_error_t error;
	size_t bytes;
	char *line = hear(c, &bytes, now_ms() + PATIENCE_MS);
	json_t *all = line ? json_loadb(line, bytes, 0, &error) : NULL;
	bool is_it = json_integer_value(json_object_get(all, "migrd")) == 1;

	if (line && !is_it)
		strcpy(c->reason, "this is no migrd of version 1");
	json_decref(all);
	return is_it;
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
			answer = hear(c, &length, 0);
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
	int fd = dial(host, port), bad;
	struct conn c;

	if (fd < 0)
		return 1;
	/* As each line is waited for, none must be read ahead of poll(). */
	setvbuf(stdin, NULL, _IONBF, 0);
	if (!conn_init(&c, ctx, fd, ANSWER_BYTES) || !tls_expect(c.ssl, name))
		bad = complain(name, "not a name");
	else if (!conn_handshake(&c, false, now_ms() + PATIENCE_MS) ||
		 !greet(&c))
		bad = complain(host, c.reason);
	else
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
			files.key = optarg;
			break;
		case 'c':
			files.cert = optarg;
			break;
		case 'a':
			files.ca = optarg;
			break;
		case 'n':
			name = optarg;
			break;
		default:
			return usage(stderr, 2);
		}
	}
	if (!files.key || !files.cert || !files.ca || argc - optind < 1 ||
	    argc - optind > 2)
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
