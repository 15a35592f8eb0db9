/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The other side of door.c: a runc that is started, and CRIU with it, and waits for a word
 * before it does something. Its pipes are in the folder of the move, and so it is found again
 * by whoever goes on with a move.
 */
#ifndef MIGRCTL_DOORS_H
#define MIGRCTL_DOORS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct doors {
	const char *folder;
	int go, says;
	pid_t runc; /* of this process; 0: it is not, or has ended */
	char said[512];
	size_t len;
};

/**
 * doors_open - start a program that ends as runc
 * @argv: it has the folder as MIGR_CTR_DOOR; what it writes is said, and what it complains of is
 * in the file "complaints"
 */
bool doors_open(struct doors *d, const char *folder, char *const argv[]);

/* the same with one that was opened by a process that is dead */
bool doors_reopen(struct doors *d, const char *folder);

void doors_tell(struct doors *d, const char *word);

/* Is this line what is said next? "": all who may say something have ended. */
bool doors_said(struct doors *d, const char *line, int ms);

/* Has somebody ended, or said something, though nothing was to be said? */
bool doors_broken(const struct doors *d);

/* what has been complained of */
void doors_reason(const struct doors *d, char *reason, size_t bytes);

/* until all have ended who may say something. False if that takes longer. */
bool doors_end(struct doors *d, int ms);

/* Has runc done what it was started for, whoever has seen it end? */
bool doors_succeeded(const struct doors *d);

/* Who waits for a word has lost us, then. */
void doors_close(struct doors *d);

#endif
