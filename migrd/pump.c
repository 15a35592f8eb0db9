// SPDX-License-Identifier: GPL-2.0
#include "pump.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
	ROOM = 65536,	    /* for what comes from the peer */
	SENT_ROOM = 262144, /* to wake somebody up costs more than many bytes */
	LAST_MS = 30000,
};

/* what has come from the socket */
struct buffer {
	char data[SENT_ROOM];
	size_t at, len;
	bool more; /* the peer has said more, which is here */
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
	ssize_t n;

	do {
		n = conn_put(c, b->data + b->at, b->len);
		if (n < 0)
			return false;
		b->at += (size_t)n;
		b->len -= (size_t)n;
	} while (n && b->len);
	return true;
}

/* as many records as are here, and as there is room for */
static bool gather(struct buffer *b, struct conn *c)
{
	enum conn_read got;

	do
		got = conn_read(c);
	while (got == CONN_MORE && c->len < c->room);
	b->more = got == CONN_MORE;
	return got != CONN_END;
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

/* whichever end is there still has all that the other one has said, which may be in the socket */
static void finish(struct buffer *b, struct conn *c, int fd)
{
	long long until = now_ms() + LAST_MS;
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	char why[sizeof(c->reason)];

	memcpy(why, c->reason, sizeof(why));
	do {
		if (b->len && !conn_send(c, b->data + b->at, b->len, until))
			break;
		b->len = 0;
	} while (now_ms() < until && fill(b, c, fd) && b->len);
	memcpy(c->reason, why, sizeof(why));
	while (c->len && now_ms() < until && pass(c, fd) && c->len)
		poll(&p, 1, 100);
}

/*
 * TLS may have to write before it can read, and the other way round: so it is tried once more
 * at whatever happens. What it has read already, poll(2) does not tell of.
 */
static bool step(struct buffer *b, struct conn *c, int fd)
{
	struct pollfd p[] = {
		{ .fd = c->fd, .events = b->len ? POLLIN | POLLOUT : POLLIN },
		{ .fd = fd,
		  .events = (short)((b->len ? 0 : POLLIN) |
				    (c->len ? POLLOUT : 0)) },
	};

	/* nobody reads more than the other end takes */
	if (c->len)
		p[0].events &= ~POLLIN;
	if (!p[0].events)
		p[0].fd = -1;
	/* its end is not of interest before what it has said has gone */
	if (!p[1].events)
		p[1].fd = -1;
	poll(p, 2, b->more && !c->len ? 0 : -1);
	if (!c->len && !gather(b, c))
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
	struct buffer *b = malloc(sizeof(*b));

	if (!b) {
		snprintf(c->reason, sizeof(c->reason), "no memory");
		return;
	}
	b->at = b->len = 0;
	b->more = true; /* it may have read some already */
	SSL_set_read_ahead(c->ssl, 1);
	/* more may be here than that */
	if (c->room < ROOM)
		conn_grow(c, ROOM);
	while (step(b, c, fd))
		;
	finish(b, c, fd);
	free(b);
}
