// SPDX-License-Identifier: GPL-2.0
/*
 * migr-untrack PID...: what the devices write for these processes is not tracked any more.
 *
 * For rounds (criu pre-dump) that nobody goes on with: a dump ends them, but one that is refused
 * before it has come to a process leaves them, as does who gives up without one, or CRIU if it is
 * killed. The next dump is a whole one.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rdma_plugin.h"

void print_on_level(unsigned int level, const char *format, ...)
{
	va_list args;

	(void)level;
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
}

/* Files of other drivers, and those without a context, have nothing that could end */
static int end(pid_t pid, int number)
{
	struct rxe_migr_track_resp resp;
	int fd = rp_take_fd(pid, number), err = -errno;

	if (fd >= 0) {
		err = migr_cmd_track(fd, RXE_MIGR_TRACK_END, 0, &resp);
		close(fd);
	}
	if (err == -EOPNOTSUPP || err == -EINVAL || rp_is_gone(err))
		return 0;
	if (err)
		rp_err("pid %d, fd %d: %s", pid, number, migr_errno_text(err));
	else if (resp.since)
		printf("pid %d, fd %d: not tracked any more\n", pid, number);
	return err;
}

static int end_all(pid_t pid)
{
	struct rp_task task;
	int ret = rp_task_scan_files(pid, &task);

	if (rp_is_gone(ret)) /* so is what was tracked */
		return 0;
	if (ret) {
		rp_err("pid %d: %s", pid, strerror(-ret));
		return ret;
	}
	for (size_t i = 0; i < task.nr_fds; i++)
		if (task.fds[i].kind == RP_UVERBS)
			ret = end(pid, task.fds[i].fd) ?: ret;
	rp_task_free(&task);
	return ret;
}

int main(int argc, char **argv)
{
	static const char usage[] = "usage: migr-untrack PID...\n";
	int failed = argc < 2;

	if (argc == 2 && !strcmp(argv[1], "-h"))
		return fputs(usage, stdout) < 0;
	if (failed)
		fputs(usage, stderr);
	for (int i = 1; i < argc; i++) {
		char *rest;
		long pid = strtol(argv[i], &rest, 10);

		if (*rest || pid <= 0 || pid > INT32_MAX) {
			fprintf(stderr, "%s: not a pid\n", argv[i]);
			failed = 1;
		} else {
			failed |= end_all((pid_t)pid) != 0;
		}
	}
	return failed;
}
