/* SPDX-License-Identifier: GPL-2.0 */
#ifndef SCALE_H
#define SCALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define MAX_SIZES 16
#define MAX_RUNS 64
/* so much more a QP may cost among four times as many, and it is still linear */
#define FASTER 1.25

/* in the order of a migration; the last one is the sum of all others */
#define STEPS(X) \
	X(stop)  \
	X(dump) X(restore) X(map) X(attach) X(resume) X(flow) X(blackout)

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
	SRQ,
	QP,
	N_TYPES
};

extern const char *const type_names[N_TYPES];

/* all runs with the same number of QPs */
struct size {
	unsigned int qps, runs, failed;
	double run[N_STEPS][MAX_RUNS]; /* ascending */
	double ms[N_STEPS];	       /* medians */
	double spread[N_STEPS]; /* of the runs, as a share of the median */
	size_t image_bytes;
	size_t wqe_bytes; /* of a QP's record: the receive WQE being filled */
	struct object object[N_TYPES];
};

/* runs of one kind */
struct scale {
	struct size size[MAX_SIZES]; /* ascending */
	unsigned int sizes;
	unsigned int failed; /* runs of all sizes */
	unsigned int lacks;  /* a size of which there is no run; 0: none */
};

/* how QPs receive */
enum kind {
	OWN_QUEUE,
	FROM_SRQ,
	N_KINDS
};

extern const char *const kind_names[N_KINDS];

struct results {
	struct scale kind[N_KINDS]; /* no sizes: not measured */
};

/* milliseconds = fixed + per_qp * QPs */
struct line {
	double fixed, per_qp;
};

/* runs.c */
int runs_read(struct results *r, FILE *in);
struct line runs_fit(const struct scale *s, enum step step);
bool runs_linear(const struct scale *s, enum step step);
bool runs_bytes_linear(const struct scale *s);

/* objects.c: MigrOS (USENIX ATC'21), Table 1, and what it is here */
void objects_print(const struct results *r);
void objects_json(FILE *out, const struct results *r);

/* plot.c */
void plot(FILE *out, const struct results *r);

#endif /* SCALE_H */
