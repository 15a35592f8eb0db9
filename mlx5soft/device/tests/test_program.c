// SPDX-License-Identifier: GPL-2.0
/* The program itself: what its loop does when the wire goes away */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../../tests/check.h"

static uint64_t cpu_ns(pid_t pid)
{
	struct timespec t = { 0 };
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
		abort();
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* The other end sends a frame and closes: the device waits for the rest. */
static void test_wire_closed(char *program)
{
	char dir[] = "/tmp/mlx5soft-XXXXXX", path[64], fd[16];
	int wire[2], status;
	uint64_t used;
	pid_t pid;

	if (!mkdtemp(dir) || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, wire))
		abort();
	snprintf(path, sizeof(path), "%s/nic", dir);
	snprintf(fd, sizeof(fd), "%d", wire[0]);
	pid = fork();
	if (!pid) {
		close(wire[1]);
		execl(program, program, "-s", path, "-f", fd, NULL);
		_exit(127);
	}
	close(wire[0]);
	for (int i = 0; access(path, F_OK) && i < 10000; i++)
		usleep(1000);
	CHECK(write(wire[1], path, sizeof(path)) > 0, "frame");
	close(wire[1]);
	usleep(100000);
	used = cpu_ns(pid);
	usleep(300000);
	used = cpu_ns(pid) - used;
	CHECK(used < 50000000, "%lu ms of 300", used / 1000000);
	kill(pid, SIGTERM);
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
		      !WEXITSTATUS(status),
	      "status 0x%x", status);
	unlink(path);
	rmdir(dir);
}

int main(int argc, char **argv)
{
	CHECK(argc == 2, "usage: %s PROGRAM", argv[0]);
	test_wire_closed(argv[1]);
	return check_result();
}
