/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Folders in which others may write. No symbolic link is followed, whatever it is
 * part of, and nothing is opened but folders.
 */
#ifndef MIGRD_FOLDERS_H
#define MIGRD_FOLDERS_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/* PID.sock in a folder; whether it is a socket is not known */
struct candidate {
	int dir;
	char name[NAME_MAX + 1];
	pid_t inner; /* the PID */
	char path[PATH_MAX];
	char container[NAME_MAX + 1]; /* what the first wildcard stands for */
};

/* true if no more are wanted */
typedef bool (*found_fn)(const struct candidate *c, void *arg);

/* Is it an absolute path without . and .. in it? */
bool folders_is_pattern(const char *pattern);

/**
 * folders_each - whatever may be a control socket
 * @pattern: of folders; a component with *, ? or [ stands for all that match it
 */
bool folders_each(const char *pattern, found_fn found, void *arg);

/* Open a component of @dir, which is no symbolic link. */
int folders_open(int dir, const char *name, int flags);

#endif
