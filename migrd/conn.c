// SPDX-License-Identifier: GPL-2.0
#include "conn.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <openssl/err.h>

enum {
	FIRST_ROOM = 4096,
	KEPT_ROOM = 65536, /* when nothing is in it */
	IDLE_S = 3,
	PROBE_S = 2,
	PROBES = 3,
	SILENCE_MS = (IDLE_S + PROBE_S * PROBES) * 1000,
};

long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

bool conn_init(struct conn *c, SSL_CTX *ctx, int fd, size_t most)
{
	int flags = fcntl(fd, F_GETFL);

	*c = (struct conn){ .fd = fd, .most = most, .room = FIRST_ROOM };
	c->buf = malloc(c->room);
	c->ssl = SSL_new(ctx);
	return c->buf && c->ssl && SSL_set_fd(c->ssl, fd) == 1 && flags >= 0 &&
	       !fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

void conn_free(struct conn *c)
{
	/* without waiting for anybody: who is there learns that this was the end */
	if (c->ssl && SSL_is_init_finished(c->ssl))
		SSL_shutdown(c->ssl);
	SSL_free(c->ssl);
	ERR_clear_error();
	close(c->fd);
	free(c->buf);
}

void conn_late(struct conn *c)
{
	c->is_late = true;
	snprintf(c->reason, sizeof(c->reason), "the peer takes too long");
}

/* for what the function that has returned @ret wants */
static bool wait_for(struct conn *c, int ret, long long deadline)
{
	struct pollfd p = { .fd = c->fd };
	long long left;

	switch (SSL_get_error(c->ssl, ret)) {
	case SSL_ERROR_WANT_READ:
		p.events = POLLIN;
		break;
	case SSL_ERROR_WANT_WRITE:
		p.events = POLLOUT;
		break;
	default:
		tls_reason(c->ssl, ret, c->reason, sizeof(c->reason));
		return false;
	}
	do {
		left = deadline - now_ms();
		if (left > 0 && poll(&p, 1, (int)left) > 0)
			return true;
	} while (left > 0);
	conn_late(c);
	return false;
}

bool conn_handshake(struct conn *c, bool server, long long deadline)
{
	int ret;

	for (;;) {
		errno = 0;
		ret = server ? SSL_accept(c->ssl) : SSL_connect(c->ssl);
		if (ret == 1)
			return true;
		if (!wait_for(c, ret, deadline))
			return false;
	}
}

bool conn_grow(struct conn *c, size_t room)
{
	char *buf;

	if (room < c->at + c->len)
		return false;
	buf = realloc(c->buf, room);
	if (!buf)
		return false;
	c->buf = buf;
	c->room = room;
	return true;
}

static bool make_room(struct conn *c)
{
	size_t room;

	if (c->at) {
		memmove(c->buf, c->buf + c->at, c->len);
		c->at = 0;
	}
	/* A line may have been long, and another one will hardly be. */
	if (!c->len && c->room > KEPT_ROOM)
		conn_grow(c, KEPT_ROOM);
	room = c->room * 2 < c->most ? c->room * 2 : c->most;
	if (c->len < c->room)
		return true;
	return room != c->room && conn_grow(c, room);
}

enum conn_read conn_read(struct conn *c)
{
	int ret;

	if (!make_room(c))
		return CONN_FULL;
	errno = 0;
	ret = SSL_read(c->ssl, c->buf + c->len, (int)(c->room - c->len));
	if (ret > 0) {
		c->len += (size_t)ret;
		return CONN_MORE;
	}
	switch (SSL_get_error(c->ssl, ret)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return CONN_NOTHING;
	default:
		tls_reason(c->ssl, ret, c->reason, sizeof(c->reason));
		return CONN_END;
	}
}

char *conn_line(struct conn *c, size_t *bytes)
{
	char *line = c->buf + c->at, *end;

	end = memchr(line + c->seen, '\n', c->len - c->seen);
	if (!end) {
		c->seen = c->len;
		return NULL;
	}
	c->seen = 0;
	*end = 0;
	*bytes = (size_t)(end - line);
	c->at += *bytes + 1;
	c->len -= *bytes + 1;
	return line;
}

bool conn_send(struct conn *c, const char *text, size_t bytes,
	       long long deadline)
{
	int ret;

	while (bytes) {
		errno = 0;
		ret = SSL_write(c->ssl, text, (int)bytes);
		if (ret > 0) {
			text += ret;
			bytes -= (size_t)ret;
		} else if (!wait_for(c, ret, deadline)) {
			return false;
		}
	}
	return true;
}

ssize_t conn_put(struct conn *c, const char *text, size_t bytes)
{
	int ret;

	errno = 0;
	ret = SSL_write(c->ssl, text, (int)bytes);
	if (ret > 0)
		return ret;
	switch (SSL_get_error(c->ssl, ret)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return 0;
	default:
		tls_reason(c->ssl, ret, c->reason, sizeof(c->reason));
		return -1;
	}
}

void conn_keep_alive(int fd)
{
	const struct {
		int level, name, value;
	} all[] = {
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, IDLE_S },
		{ IPPROTO_TCP, TCP_KEEPINTVL, PROBE_S },
		{ IPPROTO_TCP, TCP_KEEPCNT, PROBES },
		{ IPPROTO_TCP, TCP_USER_TIMEOUT, SILENCE_MS },
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		setsockopt(fd, all[i].level, all[i].name, &all[i].value,
			   sizeof(all[i].value));
}
