// SPDX-License-Identifier: GPL-2.0
#include "gate.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	ORPHAN_MS = 100, /* so often somebody is looked for who goes on */
};

static int open_in(const char *folder, const char *name, int flags)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return open(path, flags | O_CLOEXEC);
}

bool gate_is_granted(const char *folder)
{
	static const char granted[] = "granted\n";
	char word[sizeof(granted)];
	int fd = open_in(folder, "state", O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, word, sizeof(word));

	if (fd >= 0)
		close(fd);
	return n == sizeof(granted) - 1 && !memcmp(word, granted, (size_t)n);
}

/* Only after somebody could write has a pipe an end. */
static int open_go(const char *folder)
{
	int any = open_in(folder, "go", O_RDWR),
	    go = open_in(folder, "go", O_RDONLY | O_NONBLOCK);

	if (any >= 0)
		close(any);
	return go;
}

static bool tell(const char *folder, const char *what)
{
	/* for reading, too: who listens may be gone, and that must not end us */
	int says = open_in(folder, "says", O_RDWR);
	bool told = says >= 0 && dprintf(says, "%s\n", what) > 0;

	if (says >= 0)
		close(says);
	return told;
}

/*
 * A word is one write of a few bytes, and so one read. 0: nobody is there; -1: nothing yet.
 * (Somebody may have come to give one since poll() told of an end, and is waited for then.)
 */
static ssize_t hear(int go, int other, char *word, size_t bytes)
{
	struct pollfd p[] = { { .fd = go, .events = POLLIN }, { .fd = other } };
	ssize_t n;

	if (poll(p, 2, -1) < 0)
		return -1;
	if (p[1].revents) {
		snprintf(word, bytes, "gone");
		return 4;
	}
	n = read(go, word, bytes - 1);
	if (n > 0)
		word[n - 1] = 0; /* its end */
	return n < 0 && errno != EAGAIN && errno != EINTR ? 0 : n;
}

static bool is_decided(const char *folder, int go, const char *word,
		       bool granted, int other)
{
	char heard[32];
	ssize_t n;

	for (;;) {
		n = hear(go, other, heard, sizeof(heard));
		if (n > 0)
			return !strcmp(heard, word);
		if (n < 0)
			continue;
		/* After who decides has ended: nothing is decided any more by it. */
		if (!gate_is_granted(folder))
			return false;
		if (granted)
			return true;
		poll(NULL, 0, ORPHAN_MS);
	}
}

bool gate_wait(const char *folder, const char *says, const char *word,
	       bool granted, int other)
{
	int go = open_go(folder);
	bool goes_on = go >= 0 && tell(folder, says) &&
		       is_decided(folder, go, word, granted, other);

	if (go >= 0)
		close(go);
	return goes_on;
}
