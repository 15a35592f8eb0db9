// SPDX-License-Identifier: GPL-2.0
/*
 * migr_hold - stop the verbs contexts of a process for a while
 *
 *   migr_hold [-c] [-d FILE] [-f] [-t TIMEOUT] PID MILLISECONDS
 *
 *   -c       only check whether they could be stopped
 *   -d FILE  dump while they are stopped: images go to FILE.0, FILE.1, ...
 *   -f       freeze the process meanwhile (SIGSTOP), as CRIU would
 *   -t       milliseconds that peers have to answer (the driver's default)
 *
 * Then lets go (UNSTOP), so the process goes on. The first half of a migration
 * without the second, for tests of abort, of long blackouts and of refusals.
 * Exit code: 0, 1 if a context could not be stopped, 2 for bad arguments.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <time.h>
#include <unistd.h>

#include "migr_cmd.h"

#define MAX_CONTEXTS 16

static int contexts[MAX_CONTEXTS];
static int n_contexts;
static uint32_t timeout_ms;

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e3 + ts.tv_nsec / 1e6;
}

/* take the uverbs files out of the process's table */
static int take_contexts(int pid)
{
	char dir[64], path[320], link[64];
	struct dirent *e;
	int pidfd = pidfd_open(pid, 0);
	DIR *d;

	snprintf(dir, sizeof(dir), "/proc/%d/fd", pid);
	d = opendir(dir);
	if (!d || pidfd < 0) {
		fprintf(stderr, "migr_hold: process %d: %m\n", pid);
		return -1;
	}
	while ((e = readdir(d)) && n_contexts < MAX_CONTEXTS) {
		ssize_t n;
		int fd;

		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		n = readlink(path, link, sizeof(link) - 1);
		if (n < 0)
			continue;
		link[n] = '\0';
		if (strncmp(link, "/dev/infiniband/uverbs", 22))
			continue;
		fd = pidfd_getfd(pidfd, atoi(e->d_name), 0);
		if (fd < 0) {
			fprintf(stderr, "migr_hold: fd %s: %m\n", e->d_name);
			return -1;
		}
		contexts[n_contexts++] = fd;
	}
	closedir(d);
	close(pidfd);
	return 0;
}

static int dump(int i, const char *file)
{
	struct migr_error err;
	char path[256];
	size_t length;
	void *image;
	int fd, rc;

	rc = migr_cmd_dump(contexts[i], &image, &length, &err);
	if (rc) {
		fprintf(stderr, "migr_hold: dump: %s\n", err.text);
		return rc;
	}
	printf("dumped context %d: %zu bytes\n", i, length);
	snprintf(path, sizeof(path), "%s.%d", file, i);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, image, length) != (ssize_t)length)
		rc = -errno;
	close(fd);
	free(image);
	return rc;
}

static int hold(bool check, const char *file, int ms)
{
	uint32_t flags = check ? RXE_MIGR_STOP_CHECK_ONLY : 0;
	int guards[MAX_CONTEXTS];
	double start;
	int i, rc;

	for (i = 0; i < n_contexts; i++) {
		struct rxe_migr_status st;
		struct migr_error err;

		start = now_ms();
		rc = migr_cmd_stop(contexts[i], flags, timeout_ms, &st);
		if (rc) {
			migr_status_text(&st, rc, &err);
			fprintf(stderr, "migr_hold: context %d: %s\n", i,
				err.text);
			return 1;
		}
		guards[i] = st.guard_fd;
		printf("%s context %d: %u QPs, %.1f ms\n",
		       check ? "checked" : "stopped", i, st.objects,
		       now_ms() - start);
	}
	if (check)
		return 0;

	for (i = 0; file && i < n_contexts; i++) {
		if (dump(i, file))
			return 1;
	}
	fflush(stdout);
	usleep(ms * 1000);
	for (i = 0; i < n_contexts; i++)
		close(guards[i]);
	return 0;
}

int main(int argc, char **argv)
{
	const char *file = NULL;
	bool check = false, freeze = false;
	int c, pid, rc;

	while ((c = getopt(argc, argv, "cd:ft:")) != -1) {
		switch (c) {
		case 'c':
			check = true;
			break;
		case 'd':
			file = optarg;
			break;
		case 'f':
			freeze = true;
			break;
		case 't':
			timeout_ms = (uint32_t)atoi(optarg);
			break;
		default:
			return 2;
		}
	}
	if (argc - optind != 2) {
		fprintf(stderr, "usage: migr_hold [-c] [-d FILE] [-f] "
				"[-t TIMEOUT] PID MILLISECONDS\n");
		return 2;
	}

	pid = atoi(argv[optind]);
	if (pid <= 0 || take_contexts(pid))
		return 2;
	if (!n_contexts) {
		fprintf(stderr, "migr_hold: process %d has no verbs context\n",
			pid);
		return 2;
	}

	if (freeze)
		kill(pid, SIGSTOP);
	rc = hold(check, file, atoi(argv[optind + 1]));
	if (freeze)
		kill(pid, SIGCONT);
	return rc;
}
