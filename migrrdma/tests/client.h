/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Who asks for a suspension at the socket
 */
#ifndef CLIENT_H
#define CLIENT_H

#include <sys/socket.h>
#include <sys/un.h>

#include "replace_rig.h"

static inline int dial(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const struct timeval most = { .tv_sec = 20 };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%d.sock", dir,
		 getpid());
	MUST(fd >= 0 && !connect(fd, (struct sockaddr *)&addr, sizeof(addr)));
	MUST(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)));
	return fd;
}

/* the last one; weak: the files of a test share one */
__attribute__((weak)) char answer[4096];

static inline void put(int fd, const char *line)
{
	MUST(write(fd, line, strlen(line)) == (ssize_t)strlen(line));
}

static inline void hear(int fd)
{
	size_t n = 0;

	do {
		MUST(n < sizeof(answer) - 1 && read(fd, answer + n, 1) == 1);
	} while (answer[n++] != '\n');
	answer[n] = 0;
}

static inline void say(int fd, const char *line)
{
	put(fd, line);
	hear(fd);
}

static inline bool said(int f, const char *line, const char *start)
{
	say(f, line);
	return !strncmp(answer, start, strlen(start));
}

static inline bool does(int f, const char *line)
{
	return said(f, line, "{\"ok\": true");
}

static inline void hold_and_hang_up(int f, const char *hold)
{
	char end;

	CHECK(does(f, hold));
	CHECK(!read(f, &end, 1) && !close(f));
}

static inline void check_lease_ends(void)
{
	WAIT(!layer_is_held());
	WAIT(fake_newest(FAKE_QP) != w.real_srq);
	WAIT(fake_state(fake_newest(FAKE_QP)) == IBV_QPS_ERR);
	world_destroy();
}

/* the number of the layer's socket */
static inline int listening(void)
{
	int on = 0;

	for (int fd = 3; fd < 1000; fd++)
		if (!getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on,
				&(socklen_t){ sizeof(on) }) &&
		    on)
			return fd;
	return -1;
}

#endif
