// SPDX-License-Identifier: GPL-2.0
#include "doors.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "journal.h"
#include "run.h"
#include "talk.h"

static int open_in(const struct doors *d, const char *file, int flags)
{
	char path[JOURNAL_PATH + 32];

	snprintf(path, sizeof(path), "%s/%s", d->folder, file);
	return open(path, flags | O_CLOEXEC, 0600);
}

static bool make(const struct doors *d, const char *pipe)
{
	char path[JOURNAL_PATH + 32];

	snprintf(path, sizeof(path), "%s/%s", d->folder, pipe);
	unlink(path);
	return !mkfifo(path, 0600);
}

/*
 * "go" has an end when we have; it is for reading, too, so that a word is not lost that is said
 * before somebody listens. "says" has one when there was somebody who could write, and there is
 * nobody any more.
 */
static bool open_pipes(struct doors *d, int *writer)
{
	d->go = open_in(d, "go", O_RDWR);
	d->says = open_in(d, "says", O_RDONLY | O_NONBLOCK);
	*writer = open_in(d, "says", O_RDWR);
	return d->go >= 0 && d->says >= 0 && *writer >= 0;
}

static void close_all(int go, int says)
{
	if (go >= 0)
		close(go);
	if (says >= 0)
		close(says);
}

bool doors_open(struct doors *d, const char *folder, char *const argv[])
{
	char complaints[JOURNAL_PATH + 32], door[JOURNAL_PATH + 32];
	char *env[] = { door, NULL };
	struct run r = { .out = -1 };
	bool started = false;

	*d = (struct doors){ .folder = folder, .go = -1, .says = -1 };
	snprintf(complaints, sizeof(complaints), "%s/complaints", folder);
	snprintf(door, sizeof(door), "MIGR_CTR_DOOR=%s", folder);
	if (make(d, "go") && make(d, "says") && open_pipes(d, &r.out)) {
		int writer = r.out;

		/* it has that from the first moment on, so that its end is one */
		started = run_start(&r, argv, env, complaints,
				    RUN_DETACHED | RUN_TO);
		close(writer);
	}
	d->runc = r.pid;
	if (!started)
		doors_close(d);
	return started;
}

bool doors_reopen(struct doors *d, const char *folder)
{
	int writer = -1;
	bool there;

	*d = (struct doors){ .folder = folder, .go = -1, .says = -1 };
	there = open_pipes(d, &writer);
	if (writer >= 0)
		close(writer);
	if (!there)
		doors_close(d);
	return there;
}

void doors_tell(struct doors *d, const char *word)
{
	char line[32];
	int n = snprintf(line, sizeof(line), "%s\n", word);

	/* a pipe that nobody reads any more takes it, too */
	if (d->go >= 0 && write(d->go, line, (size_t)n) < 0)
		return;
}

/* 1: more; 0: the end; -1: not in time, or all is to end */
static int fill(struct doors *d, int ms)
{
	ssize_t n;

	if (d->len == sizeof(d->said))
		return 0;
	do {
		if (!talk_wait(d->says, POLLIN, ms))
			return -1;
		n = read(d->says, d->said + d->len, sizeof(d->said) - d->len);
	} while (n < 0 && (errno == EAGAIN || errno == EINTR));
	if (n <= 0)
		return 0;
	d->len += (size_t)n;
	return 1;
}

bool doors_said(struct doors *d, const char *line, int ms)
{
	char *end;
	size_t bytes;
	bool is;
	int got;

	while (!(end = memchr(d->said, '\n', d->len))) {
		got = fill(d, ms);
		if (got <= 0)
			return !got && !d->len && !*line;
	}
	bytes = (size_t)(end - d->said);
	is = bytes == strlen(line) && !memcmp(d->said, line, bytes);
	d->len -= bytes + 1;
	memmove(d->said, end + 1, d->len);
	return is;
}

bool doors_broken(const struct doors *d)
{
	struct pollfd p = { .fd = d->says, .events = POLLIN };

	return d->says < 0 || d->len || poll(&p, 1, 0) != 0;
}

void doors_reason(const struct doors *d, char *reason, size_t bytes)
{
	char path[JOURNAL_PATH + 32];

	snprintf(path, sizeof(path), "%s/complaints", d->folder);
	run_reason(path, 0, reason, bytes);
}

bool doors_end(struct doors *d, int ms)
{
	int got = 1;

	while (d->says >= 0 && got > 0) {
		d->len = 0;
		got = fill(d, ms);
	}
	if (got < 0)
		return false;
	if (d->runc)
		waitpid(d->runc, NULL, 0);
	d->runc = 0;
	return true;
}

bool doors_succeeded(const struct doors *d)
{
	int fd = open_in(d, "runc", O_RDONLY);
	char code[8];
	bool zero = fd >= 0 && read(fd, code, sizeof(code)) == 2 &&
		    !memcmp(code, "0\n", 2);

	if (fd >= 0)
		close(fd);
	return zero;
}

void doors_close(struct doors *d)
{
	close_all(d->go, d->says);
	d->go = d->says = -1;
}
