/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SCALE_H
#define SCALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define MAX_SIZES 16
#define MAX_RUNS 64

/* in the order of a migration; the last one is the sum of all others */
#define STEPS(X) \
	X(stop) X(dump) X(restore) X(attach) X(resume) X(flow) X(blackout)

enum step {
#define X(name) STEP_##name,
	STEPS(X)
#undef X
	N_STEPS
};

extern const char *const step_names[N_STEPS];

/* of an object type: how many, bytes each */
struct object {
	unsigned int count;
	size_t fixed, contents;
};

enum object_type {
	PD,
	MR,
	CQ,
	QP,
	N_TYPES
};

extern const char *const type_names[N_TYPES];

/* all runs with the same number of QPs; after runs_finish() medians */
struct size {
	unsigned int qps, runs;
	double run[N_STEPS][MAX_RUNS];
	double ms[N_STEPS];
	double spread[N_STEPS]; /* of the runs, as a share of the median */
	size_t image_bytes;
	struct object object[N_TYPES];
};

struct scale {
	struct size size[MAX_SIZES]; /* ascending */
	unsigned int sizes;
};

/* milliseconds = fixed + per_qp * QPs */
struct line {
	double fixed, per_qp;
};

/* runs.c */
int runs_read(struct scale *s, FILE *in);
struct line runs_fit(const struct scale *s, enum step step);
bool runs_linear(const struct scale *s, enum step step);

/* plot.c */
void plot(FILE *out, const struct scale *s);

#endif /* SCALE_H */
