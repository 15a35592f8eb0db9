/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Programs that do a part of a move. What they complain of is in a file, whose last line is
 * the reason if one fails.
 */
#ifndef MIGRCTL_RUN_H
#define MIGRCTL_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <jansson.h>

struct run {
	pid_t pid; /* 0: nobody */
	int in;	   /* written to, or -1 */
	int out;   /* read from, or -1 */
};

enum run_how {
	RUN_IN = 1,  /* with run.in as its standard input, or there is none */
	RUN_OUT = 2, /* the same with its output */
	RUN_TO = 4,  /* run.out is given: its output, and stays the caller's */
	RUN_DETACHED = 8, /* no signal of a terminal is for it */
};

/**
 * run_start - start a program
 * @argv: found in PATH
 * @env: "NAME=value", ..., NULL, beside what this program has; or NULL
 * @errors: the file
 *
 * Return: false with errno
 */
bool run_start(struct run *r, char *const argv[], char *const env[],
	       const char *errors, int how);

/* false if all is to end, or in so many ms it has not ended, which it has then by SIGKILL */
bool run_wait(struct run *r, int ms, int *status);

/* a file for that, of this process alone, which removes it */
void run_errors(char *path, size_t bytes);

/* what was complained of: by our plug-in, or at last; or what @status means */
void run_reason(const char *errors, int status, char *reason, size_t bytes);

/**
 * run_json - run a program to its end, which must not be interrupted
 * @input: what it gets; given back; NULL: nothing
 * @output: the object that it tells; NULL: it tells nothing
 */
bool run_json(char *const argv[], const char *errors, json_t *input,
	      json_t **output, char *reason, size_t bytes);

#endif
