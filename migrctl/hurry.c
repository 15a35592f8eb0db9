// SPDX-License-Identifier: GPL-2.0
#include "hurry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "journal.h"
#include "note.h"

#ifndef KNOB /* a test has its own */
#define KNOB "/sys/kernel/rcu_expedited"
#endif

enum {
	TRIES = 3, /* against who ends at the same time */
};

static int held = -1; /* the file, with a lock that others share */

/*
 * What the knob was is in this file while somebody hurries; each who does has a lock, which ends
 * with its process. The last one makes it what it was, or the daemon if that was killed.
 */
static int open_file(int flags)
{
	char path[JOURNAL_PATH];

	snprintf(path, sizeof(path), "%s/.hurry", journal_moves);
	return open(path, flags | O_CLOEXEC, 0600);
}

static bool is_kept(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_size;
}

static bool set_knob(char to)
{
	int fd = open(KNOB, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, &to, 1) == 1;

	if (fd >= 0)
		close(fd);
	return done;
}

/* Only what is off is changed, and so what is kept is that. */
static bool keep(int fd)
{
	int knob = open(KNOB, O_RDONLY | O_CLOEXEC);
	char is = 0;
	bool off = knob >= 0 && read(knob, &is, 1) == 1 && is == '0';

	if (knob >= 0)
		close(knob);
	return off && pwrite(fd, "0", 1, 0) == 1;
}

/* by who has it alone */
static void restore(int fd)
{
	bool done = !is_kept(fd) || set_knob('0');

	if (!done)
		note(KNOB " cannot be made what it was: %s", strerror(errno));
	if (ftruncate(fd, 0))
		note("what " KNOB " was is still kept: %s", strerror(errno));
}

static bool join(int fd)
{
	for (int i = 0; i < TRIES; i++) {
		if (!flock(fd, LOCK_EX | LOCK_NB) && !is_kept(fd) && !keep(fd))
			return false;
		if (flock(fd, LOCK_SH))
			return false;
		if (is_kept(fd))
			return set_knob('1');
	}
	return false;
}

static void leave(int fd)
{
	if (!flock(fd, LOCK_EX | LOCK_NB))
		restore(fd);
	close(fd);
}

void hurry(bool on)
{
	if (on && held < 0) {
		held = open_file(O_RDWR | O_CREAT);
		if (held < 0 || join(held))
			return;
		leave(held);
		held = -1;
	} else if (!on && held >= 0) {
		leave(held);
		held = -1;
	}
}

void hurry_mend(void)
{
	int fd = open_file(O_RDWR);

	if (fd < 0)
		return;
	if (is_kept(fd))
		leave(fd);
	else
		close(fd);
}
