// SPDX-License-Identifier: GPL-2.0
#include "pump.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum {
	ROOM = 65536,
	LAST_MS = 30000,
};

/* what has come from the socket */
struct buffer {
	char data[ROOM];
	size_t at, len;
};

/* true as long as the socket is there */
static bool fill(struct buffer *b, struct conn *c, int fd)
{
	ssize_t n = recv(fd, b->data, sizeof(b->data), MSG_DONTWAIT);

	if (n > 0) {
		b->at = 0;
		b->len = (size_t)n;
		return true;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	snprintf(c->reason, sizeof(c->reason), "%s",
		 n ? strerror(errno) : "it was closed here");
	return false;
}

static bool drain(struct buffer *b, struct conn *c)
{
	ssize_t n = conn_put(c, b->data + b->at, b->len);

	if (n < 0)
		return false;
	b->at += (size_t)n;
	b->len -= (size_t)n;
	return true;
}

/* what has come from the connection, to the socket */
static bool pass(struct conn *c, int fd)
{
	ssize_t n =
		send(fd, c->buf + c->at, c->len, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		snprintf(c->reason, sizeof(c->reason), "%s", strerror(errno));
		return false;
	}
	if (n > 0) {
		c->at += (size_t)n;
		c->len -= (size_t)n;
	}
	return true;
}

/* whichever end is there still has all that the other one has said */
static void finish(struct buffer *b, struct conn *c, int fd)
{
	long long until = now_ms() + LAST_MS;
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	if (b->len)
		conn_send(c, b->data + b->at, b->len, until);
	while (c->len && now_ms() < until && pass(c, fd) && c->len)
		poll(&p, 1, 100);
}

/*
 * TLS may have to write before it can read, and the other way round: so it is tried once more
 * at whatever happens. What it has decrypted already, poll(2) does not tell of.
 */
static bool step(struct buffer *b, struct conn *c, int fd)
{
	struct pollfd p[] = {
		{ .fd = c->fd, .events = b->len ? POLLIN | POLLOUT : POLLIN },
		{ .fd = fd,
		  .events = (short)((b->len ? 0 : POLLIN) |
				    (c->len ? POLLOUT : 0)) },
	};
	enum conn_read got = CONN_NOTHING;

	/* nobody reads more than the other end takes */
	if (c->len)
		p[0].events &= ~POLLIN;
	if (!p[0].events)
		p[0].fd = -1;
	/* its end is not of interest before what it has said has gone */
	if (!p[1].events)
		p[1].fd = -1;
	if (c->len || !SSL_pending(c->ssl))
		poll(p, 2, -1);
	if (!c->len)
		got = conn_read(c);
	if (got == CONN_END)
		return false;
	if (c->len && !pass(c, fd))
		return false;
	if (!b->len && p[1].revents & (POLLIN | POLLHUP | POLLERR) &&
	    !fill(b, c, fd))
		return false;
	return !b->len || drain(b, c);
}

void pump(struct conn *c, int fd)
{
	struct buffer b = { .len = 0 };

	conn_grow(c, ROOM);
	while (step(&b, c, fd))
		;
	finish(&b, c, fd);
}
