// SPDX-License-Identifier: GPL-2.0
/* The program itself: what its loop does when the wire goes away; and its control */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
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

/* What mlx5soft_ctl says; the words end with NULL. Returns its exit code. */
static int ctl(char *program, const char *path, const char *word,
	       const char *more, char said[4096])
{
	int out[2], status;
	ssize_t n, len = 0;
	pid_t pid;

	if (pipe(out))
		abort();
	pid = fork();
	if (!pid) {
		dup2(out[1], 1);
		execl(program, program, path, word, more, NULL);
		_exit(127);
	}
	close(out[1]);
	while ((n = read(out[0], said + len, 4095 - len)) > 0)
		len += n;
	said[len] = '\0';
	close(out[0]);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* It starts with a limit, answers, takes another one, and leaves no socket behind. */
static void test_control(char *program, char *ctl_program)
{
	char dir[] = "/tmp/mlx5soft-XXXXXX", path[64], control[64], said[4096];
	int status;
	pid_t pid;

	if (!mkdtemp(dir))
		abort();
	snprintf(path, sizeof(path), "%s/nic", dir);
	snprintf(control, sizeof(control), "%s/ctl", dir);
	pid = fork();
	if (!pid) {
		execl(program, program, "-s", path, "-c", control, "--rate",
		      "20M", "--delay", "50us", NULL);
		_exit(127);
	}
	for (int i = 0; access(control, F_OK) && i < 10000; i++)
		usleep(1000);
	CHECK(!ctl(ctl_program, control, "limit", NULL, said) &&
		      strstr(said, "{\"rate\": 20000000, \"delay_ns\": 50000,"),
	      "%s", said);
	CHECK(!ctl(ctl_program, control, "limit", "off", said) &&
		      strstr(said, "{\"rate\": 0, \"delay_ns\": 0,"),
	      "%s", said);
	CHECK(!ctl(ctl_program, control, "counters", "reset", said) &&
		      strstr(said, "\"commands\": {}"),
	      "%s", said);
	CHECK(ctl(ctl_program, control, "limit", "on", said) == 1 &&
		      strstr(said, "error"),
	      "%s", said);
	kill(pid, SIGTERM);
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
		      !WEXITSTATUS(status),
	      "status 0x%x", status);
	CHECK(access(control, F_OK), "the socket is left");
	CHECK(ctl(ctl_program, control, "limit", NULL, said) == 1, "%s", said);
	unlink(path);
	rmdir(dir);
}

/* A limit that is none ends it, instead of being none. */
static void test_refused(char *program, const char *option, const char *value)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		execl(program, program, "-s", "/nowhere/nic", option, value,
		      NULL);
		_exit(127);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
		      WEXITSTATUS(status) == 1,
	      "%s %s: status 0x%x", option, value, status);
}

/* What a limit needs is made with it, and no part of the program. */
static void test_size(const char *program)
{
	struct stat st;

	CHECK(!stat(program, &st) && st.st_size < 16 << 20, "%ld MiB",
	      (long)st.st_size >> 20);
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: %s MLX5SOFT MLX5SOFT_CTL\n", argv[0]);
		return 2;
	}
	test_size(argv[1]);
	test_wire_closed(argv[1], CLOSE);
	test_wire_closed(argv[1], RESET);
	test_wire_closed(argv[1], SHUT);
	test_control(argv[1], argv[2]);
	test_refused(argv[1], "--rate", "20");
	test_refused(argv[1], "--delay", "50");
	return check_result();
}
