// SPDX-License-Identifier: GPL-2.0
/*
 * Two ends of one TCP connection that count together.
 *
 * tcpcount [-6] PORT      echo every number to the one peer that connects, by IPv6
 * tcpcount ADDRESS PORT   send 1, 2, 3 ... and want each one back
 *
 * The counting end prints each number that came back, so its output tells
 * whether it lives on, and it ends with a message and exit code 1 as soon as a
 * number is lost, repeated or wrong. It is what a container migrates with to
 * prove that its connection survives.
 */
#include <err.h>
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void all(ssize_t done)
{
	if (done < 0)
		err(1, "connection");
	if (done != sizeof(uint32_t))
		errx(1, "connection closed");
}

static int echo(const struct addrinfo *at)
{
	int listener = socket(at->ai_family, SOCK_STREAM, 0);
	int one = 1;
	uint32_t n;
	int peer;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, at->ai_addr, at->ai_addrlen) || listen(listener, 1))
		err(1, "listen");
	peer = accept(listener, NULL, NULL);
	if (peer < 0)
		err(1, "accept");
	for (;;) {
		all(recv(peer, &n, sizeof(n), MSG_WAITALL));
		all(send(peer, &n, sizeof(n), MSG_NOSIGNAL));
	}
}

static int count(const struct addrinfo *at)
{
	const struct timespec pause = { .tv_nsec = 20 * 1000 * 1000 };
	int s = socket(at->ai_family, SOCK_STREAM, 0);
	uint32_t n, back;

	if (connect(s, at->ai_addr, at->ai_addrlen))
		err(1, "connect");
	for (n = 1;; n++) {
		all(send(s, &n, sizeof(n), MSG_NOSIGNAL));
		all(recv(s, &back, sizeof(back), MSG_WAITALL));
		if (back != n)
			errx(1, "sent %u, got %u", n, back);
		printf("%u\n", n);
		fflush(stdout);
		nanosleep(&pause, NULL);
	}
}

int main(int argc, char **argv)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV |
					      AI_PASSIVE,
				  .ai_family = AF_INET,
				  .ai_socktype = SOCK_STREAM },
			*at;
	const char *host = argc == 3 ? argv[1] : NULL;
	int code;

	if (argc < 2 || argc > 3)
		errx(2, "usage: tcpcount [-6 | ADDRESS] PORT");
	if (host && (!strcmp(host, "-6") || strchr(host, ':')))
		hints.ai_family = AF_INET6;
	if (host && !strcmp(host, "-6"))
		host = NULL;
	code = getaddrinfo(host, argv[argc - 1], &hints, &at);
	if (code)
		errx(2, "%s %s: %s", host ? host : "", argv[argc - 1],
		     gai_strerror(code));
	return host ? count(at) : echo(at);
}
