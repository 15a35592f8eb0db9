// SPDX-License-Identifier: GPL-2.0
#include "proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "note.h"

enum {
	FILE_BYTES = 8192,
	BEFORE_START = 19, /* fields behind the name */
};

static bool slurp(pid_t pid, const char *name, char *text)
{
	char path[64];
	ssize_t n = 0, got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while (n < FILE_BYTES - 1 &&
	       (got = read(fd, text + n, (size_t)(FILE_BYTES - 1 - n))) > 0)
		n += got;
	close(fd);
	text[n] = 0;
	return n > 0;
}

unsigned long long proc_start(pid_t pid)
{
	char text[FILE_BYTES], *at;

	if (!slurp(pid, "stat", text))
		return 0;
	/* The name may have anything in it. */
	at = strrchr(text, ')');
	for (int i = 0; at && i <= BEFORE_START; i++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

/* The name's line comes first, and has no end of a line in it. */
static char *status(pid_t pid, char *text, const char *what)
{
	return slurp(pid, "status", text) ? strstr(text, what) : NULL;
}

pid_t proc_of_thread(pid_t tid)
{
	char text[FILE_BYTES], *at = status(tid, text, "\nTgid:");

	return at ? (pid_t)strtol(at + 6, NULL, 10) : 0;
}

pid_t proc_inner(pid_t pid)
{
	char text[FILE_BYTES], *at = status(pid, text, "\nNSpid:"), *end;

	if (!at)
		return 0;
	end = strchr(at + 1, '\n');
	if (end)
		*end = 0;
	at = strrchr(at, '\t'); /* the innermost namespace is the last */
	return at ? (pid_t)strtol(at, NULL, 10) : 0;
}

void proc_comm(pid_t pid, char *comm, size_t bytes)
{
	char text[FILE_BYTES];

	if (!slurp(pid, "comm", text))
		strcpy(text, "gone");
	text[strcspn(text, "\n")] = 0;
	note_clean(text);
	snprintf(comm, bytes, "%s", text);
}
