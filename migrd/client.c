// SPDX-License-Identifier: GPL-2.0
#include "client.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <jansson.h>

/* 0 or an errno */
static int wait_connected(int fd, long long deadline)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	socklen_t bytes = sizeof(int);
	long long left;
	int err = 0;

	do {
		left = deadline - now_ms();
		if (left <= 0)
			return ETIMEDOUT;
	} while (poll(&p, 1, (int)left) <= 0);
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &bytes) ? errno : err;
}

/* a socket, or a negative errno */
static int dial_one(const struct addrinfo *a, long long deadline)
{
	int fd = socket(a->ai_family,
			SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (connect(fd, a->ai_addr, a->ai_addrlen))
		err = errno == EINPROGRESS ? wait_connected(fd, deadline)
					   : errno;
	if (!err)
		return fd;
	close(fd);
	return -err;
}

static int dial(const char *host, const char *port, long long deadline,
		char *reason, size_t bytes)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	int ret, fd = -ENOENT;
	struct addrinfo *all;

	ret = getaddrinfo(host, port, &hints, &all);
	if (ret) {
		snprintf(reason, bytes, "%s", gai_strerror(ret));
		return -1;
	}
	for (struct addrinfo *a = all; a && fd < 0; a = a->ai_next)
		fd = dial_one(a, deadline);
	freeaddrinfo(all);
	if (fd < 0)
		snprintf(reason, bytes, "%s", strerror(-fd));
	else
		conn_keep_alive(fd);
	return fd;
}

/* without a deadline for as long as it takes; false if it has passed */
static bool wait_readable(struct conn *c, long long deadline)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };
	long long left = -1;

	if (deadline) {
		left = deadline - now_ms();
		if (left <= 0) {
			conn_late(c);
			return false;
		}
	}
	poll(&p, 1, (int)left);
	return true;
}

enum conn_read client_try(struct conn *c, char **line, size_t *bytes)
{
	enum conn_read got;

	while (!(*line = conn_line(c, bytes))) {
		got = conn_read(c);
		if (got == CONN_FULL) {
			strcpy(c->reason, "an answer is too long");
			return CONN_END;
		}
		if (got != CONN_MORE)
			return got;
	}
	return CONN_MORE;
}

char *client_hear(struct conn *c, size_t *bytes, long long deadline)
{
	enum conn_read got;
	char *line;

	while ((got = client_try(c, &line, bytes)) == CONN_NOTHING)
		if (!wait_readable(c, deadline))
			return NULL;
	return got == CONN_MORE ? line : NULL;
}

static bool greet(struct conn *c, long long deadline)
{
	json_error_t error;
	size_t bytes;
	char *line = client_hear(c, &bytes, deadline);
	json_t *all = line ? json_loadb(line, bytes, 0, &error) : NULL;
	bool is_it = json_integer_value(json_object_get(all, "migrd")) == 1;

	if (line && !is_it)
		strcpy(c->reason, "this is no migrd of version 1");
	json_decref(all);
	return is_it;
}

bool client_open(struct conn *c, SSL_CTX *ctx, const char *host,
		 const char *port, const char *name, long long deadline,
		 char *reason, size_t bytes)
{
	int fd = dial(host, port, deadline, reason, bytes);

	if (fd < 0)
		return false;
	if (!conn_init(c, ctx, fd, ANSWER_BYTES) ||
	    (name && !tls_expect(c->ssl, name))) {
		snprintf(reason, bytes, "'%s' is not a name", name);
	} else if (conn_handshake(c, false, deadline) && greet(c, deadline)) {
		return true;
	} else {
		snprintf(reason, bytes, "%s", c->reason);
	}
	conn_free(c);
	return false;
}
