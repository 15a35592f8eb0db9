// SPDX-License-Identifier: GPL-2.0
#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "conn.h"

static int fail(const char *what)
{
	fprintf(stderr, "control connection: %s: %s\n", what, strerror(errno));
	return -1;
}

static int resolve(const char *host, const char *port, struct addrinfo **ai)
{
	const struct addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = host ? 0 : AI_PASSIVE,
	};
	int rc = getaddrinfo(host, port, &hints, ai);

	if (rc)
		fprintf(stderr, "%s: %s\n", host ? host : port,
			gai_strerror(rc));
	return rc ? -1 : 0;
}

static int tune(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	return fd;
}

int conn_listen(const char *port)
{
	struct addrinfo *ai;
	int one = 1, lfd, fd = -1;

	if (resolve(NULL, port, &ai))
		return -1;
	lfd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (lfd < 0)
		goto out;
	setsockopt(lfd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!bind(lfd, ai->ai_addr, ai->ai_addrlen) && !listen(lfd, 1))
		fd = accept4(lfd, NULL, NULL, SOCK_CLOEXEC);
	close(lfd);
out:
	freeaddrinfo(ai);
	return fd < 0 ? fail("listen") : tune(fd);
}

int conn_connect(const char *host, const char *port)
{
	struct addrinfo *list, *ai;
	int fd = -1;

	if (resolve(host, port, &list))
		return -1;
	for (ai = list; ai && fd < 0; ai = ai->ai_next) {
		fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0 && connect(fd, ai->ai_addr, ai->ai_addrlen)) {
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(list);
	return fd < 0 ? fail(host) : tune(fd);
}

int conn_send(int fd, const uint64_t *word, size_t n)
{
	uint64_t be;
	ssize_t sent;
	size_t i, at;

	for (i = 0; i < n; i++) {
		be = htobe64(word[i]);
		for (at = 0; at < sizeof(be); at += sent) {
			sent = send(fd, (char *)&be + at, sizeof(be) - at,
				    MSG_NOSIGNAL | (i + 1 < n ? MSG_MORE : 0));
			if (sent < 0 && errno == EINTR)
				sent = 0;
			if (sent < 0)
				return fail("send");
		}
	}
	return 0;
}

int conn_recv(int fd, uint64_t *word, size_t n, unsigned int seconds)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char *buf = (char *)word;
	size_t at = 0, i;
	ssize_t got;

	while (at < n * sizeof(*word)) {
		got = poll(&p, 1, seconds ? (int)seconds * 1000 : -1);
		if (!got) {
			errno = ETIMEDOUT;
			return fail("receive");
		}
		if (got > 0)
			got = recv(fd, buf + at, n * sizeof(*word) - at, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return fail("receive");
		if (!got) {
			fprintf(stderr, "control connection: peer left\n");
			return -1;
		}
		at += got;
	}
	for (i = 0; i < n; i++)
		word[i] = be64toh(word[i]);
	return 0;
}
