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

enum how {
	CLOSE,
	RESET,
	SHUT
};

/*
 * The other end sends frames and goes: they are read, and the device waits for
 * the rest of the world. A close with frames that nobody has read is told as an
 * error in front of those that came.
 */
static void test_wire_closed(char *program, enum how how)
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
	for (int i = 0; access(path, F_OK) && i < 10000; i++)
		usleep(1000);
	kill(pid, SIGSTOP);
	waitpid(pid, &status, WUNTRACED);
	for (int i = 0; i < 2; i++)
		CHECK(write(wire[1], path, sizeof(path)) > 0, "frame");
	if (how == RESET)
		CHECK(write(wire[0], path, sizeof(path)) > 0, "frame");
	if (how == SHUT)
		shutdown(wire[1], SHUT_WR);
	else
		close(wire[1]);
	kill(pid, SIGCONT);
	usleep(100000);
	used = cpu_ns(pid);
	usleep(300000);
	used = cpu_ns(pid) - used;
	CHECK(used < 50000000, "%d: %lu ms of 300", how, used / 1000000);
	CHECK(!recv(wire[0], path, 1, MSG_DONTWAIT), "%d: frames are left",
	      how);
	if (how == SHUT)
		close(wire[1]);
	close(wire[0]);
	kill(pid, SIGTERM);
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
		      !WEXITSTATUS(status),
	      "status 0x%x", status);
	snprintf(path, sizeof(path), "%s/nic", dir);
	unlink(path);
	rmdir(dir);
}

int main(int argc, char **argv)
{
	CHECK(argc == 2, "usage: %s PROGRAM", argv[0]);
	test_wire_closed(argv[1], CLOSE);
	test_wire_closed(argv[1], RESET);
	test_wire_closed(argv[1], SHUT);
	return check_result();
}
