// SPDX-License-Identifier: GPL-2.0
#include "meet_rig.h"

#include <limits.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct fake peer;
int own;

void come_under_the_layer(const char *container)
{
	static const char *const folders[] = { "", "/run", "/run/migrrdma" };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char path[PATH_MAX];

	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s%s", dir, container,
			 folders[i]);
		MUST(!mkdir(path, 0755));
	}
	snprintf(addr.sun_path, sizeof(addr.sun_path),
		 "%s/%s/run/migrrdma/%d.sock", dir, container, getpid());
	MUST(sock >= 0 && !bind(sock, (struct sockaddr *)&addr, sizeof(addr)) &&
	     !listen(sock, 64));
	own = sock;
}

int call(void)
{
	const struct timeval most = { .tv_sec = 30 };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/n2.meet", dir);
	MUST(fd >= 0 && !connect(fd, (struct sockaddr *)&addr, sizeof(addr)));
	MUST(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)));
	return fd;
}

const char *answer_of(int fd)
{
	static char text[1024];
	size_t n = 0;
	ssize_t got;

	while (n < sizeof(text) - 1 &&
	       (got = read(fd, text + n, sizeof(text) - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = 0;
	close(fd);
	return strncmp(text, "wait\n", 5) ? text : text + 5;
}

const char *meets(const char *text)
{
	const char *answer = "";
	int fd;

	for (int i = 0; i < 200 && !*answer; i++) {
		usleep(i ? 50000 : 0);
		fd = call();
		send(fd, text, strlen(text), MSG_NOSIGNAL);
		answer = answer_of(fd);
	}
	return answer;
}

void meet_begin(void)
{
	char text[128];

	rig_begin();
	daemon_start("*/run/migrrdma", "none");
	fake_start(&peer, LAYER, "other/run/migrrdma");
	come_under_the_layer("box");
	snprintf(text, sizeof(text), "17 %d\n37 %d\n27 %d\n", getpid(),
		 peer.pid, peer.pid);
	qps(text);
}
