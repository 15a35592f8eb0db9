// SPDX-License-Identifier: GPL-2.0
/*
 * Two ends of one TCP connection that count together.
 *
 * tcpcount PORT           echo every number to the one peer that connects
 * tcpcount ADDRESS PORT   send 1, 2, 3 ... and want each one back
 *
 * The counting end prints each number that came back, so its output tells
 * whether it lives on, and it ends with a message and exit code 1 as soon as a
 * number is lost, repeated or wrong. It is what a container migrates with to
 * prove that its connection survives.
 */
#include <arpa/inet.h>
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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

static int echo(struct sockaddr_in *addr)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	int one = 1;
	uint32_t n;
	int peer;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)addr, sizeof(*addr)) ||
	    listen(listener, 1))
		err(1, "listen");
	peer = accept(listener, NULL, NULL);
	if (peer < 0)
		err(1, "accept");
	for (;;) {
		all(recv(peer, &n, sizeof(n), MSG_WAITALL));
		all(send(peer, &n, sizeof(n), MSG_NOSIGNAL));
	}
}

static int count(struct sockaddr_in *addr)
{
	const struct timespec pause = { .tv_nsec = 20 * 1000 * 1000 };
	int s = socket(AF_INET, SOCK_STREAM, 0);
	uint32_t n, back;

	if (connect(s, (struct sockaddr *)addr, sizeof(*addr)))
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
	struct sockaddr_in addr = { .sin_family = AF_INET };

	if (argc < 2 || argc > 3)
		errx(2, "usage: tcpcount [ADDRESS] PORT");
	addr.sin_port = htons(atoi(argv[argc - 1]));
	if (argc == 2)
		return echo(&addr);
	if (inet_pton(AF_INET, argv[1], &addr.sin_addr) != 1)
		errx(2, "not an address: %s", argv[1]);
	return count(&addr);
}
