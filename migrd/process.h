/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Processes under the layer. Who is behind a socket is what the kernel says, not what
 * its name or the process says.
 */
#ifndef MIGRD_PROCESS_H
#define MIGRD_PROCESS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	ID_BYTES = 64, /* with the 0 behind it; more is no ID for the library */
	MOST_PROCESSES = 512,
	MOST_OF_FOLDER = 64, /* of those */
};

struct process {
	char id[ID_BYTES];
	pid_t pid;
	unsigned long long start;
	int socket; /* O_PATH */
	char *path;
	uint64_t container; /* which one it is in, or which folder that has no name */
};

/* none, or all that there are, or the one that is wanted */
struct processes {
	struct process *all;
	size_t n;
	pid_t pid;	/* 0: any */
	const char *id; /* NULL: any */
	const char *
		container; /* what a folder's first pattern stands for; NULL: any */

	pid_t inner; /* of the one that is wanted, in its namespace */

	/* if any are wanted: sockets that nobody has looked at, as there were too many */
	unsigned int left_out;
	char *folder; /* the last one, and how many of its processes there are */
	size_t in_folder;
};

/* of this host, the first part of IDs: letters, digits, - and _ only */
void process_set_host(const char *name);

/**
 * processes_get - add those who are there, and wanted, ordered by their numbers
 * @patterns: of folders, ends with NULL
 */
void processes_get(struct processes *p, char *const *patterns);
void processes_free(struct processes *p);

/**
 * process_caller - who has connected to a Unix socket of ours, if that is under the layer
 * @p: empty; receives him
 */
bool process_caller(int fd, char *const *patterns, struct processes *p);

/**
 * process_dial - connect to one; it still has to answer
 * @pidfd: readable when it ends
 *
 * Return: a socket that does not block, or a negative errno
 */
int process_dial(const struct process *p, int *pidfd);

#endif
