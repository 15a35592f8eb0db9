/* SPDX-License-Identifier: GPL-2.0 */
#ifndef NPB_OPTIONS_H
#define NPB_OPTIONS_H

#include "npb.h"

struct npb_options {
	const char *result; /* a file to write */
	const char *progress;
	unsigned int repetitions; /* 0: until SIGTERM */
	bool verbose;
};

/*
 * The whole command line; rank and ranks of the job are known already. Only
 * rank 0 speaks. Returns -1, or with what code to end.
 */
int options_parse(struct npb_options *o, struct npb_job *job, int argc,
		  char **argv);

/* S, W, A or B */
char class_letter(unsigned int class);

#endif
