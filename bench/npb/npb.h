/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the kernels share. Each of them defines npb_kernel and struct
 * npb_state; main.c does the rest.
 */
#ifndef NPB_H
#define NPB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
	NPB_S,
	NPB_W,
	NPB_A,
	NPB_B,
	NPB_CLASSES
};

/* What is to be done, the same on all ranks but for the rank. */
struct npb_job {
	unsigned int class; /* NPB_S ... */
	unsigned int rank, ranks;
	unsigned int iterations;
	unsigned int official; /* as many as the specification wants */
};

/*
 * Numbers by which two runs are compared bit by bit, and with the
 * specification's. On all ranks the same.
 */
struct npb_value {
	bool whole;
	union {
		double real;
		int64_t integer;
	};
};

struct npb_result {
	struct npb_value *value;
	size_t count, room;
};

enum npb_verdict {
	NPB_RIGHT,
	NPB_WRONG,
	NPB_UNKNOWN, /* The specification says nothing of so few iterations. */
};

struct npb_state;

struct npb_kernel {
	const char *name;
	const char *about;
	unsigned int iterations[NPB_CLASSES];
	unsigned int max_ranks[NPB_CLASSES];
	bool any_ranks; /* not only powers of two */

	struct npb_state *(*create)(const struct npb_job *job);
	void (*destroy)(struct npb_state *s);

	/*
	 * A repetition: prepare and finish are not timed, all but iterate may
	 * be missing. Iterations count from 1.
	 */
	void (*prepare)(struct npb_state *s);
	void (*begin)(struct npb_state *s);
	void (*iterate)(struct npb_state *s, unsigned int i,
			struct npb_result *r);
	void (*finish)(struct npb_state *s, struct npb_result *r);

	/* Only of the numbers; says on stderr what is wrong. */
	enum npb_verdict (*verify)(const struct npb_job *job,
				   const struct npb_result *r);
	/* In a repetition, as they are counted in the literature. */
	double (*operations)(const struct npb_job *job);
};

extern const struct npb_kernel npb_kernel;

/* Is this an iteration after which there is a result? */
static inline bool npb_due(const struct npb_job *job, unsigned int i)
{
	return i == job->official || i == job->iterations;
}

/*
 * Adds up n numbers over all ranks, in the order of ranks: MPI_Allreduce may
 * take another order when ranks are neighbours that were not before.
 */
void npb_sum(const struct npb_job *job, double *v, unsigned int n);

/* Zeroed, aligned to cache lines; ends the job when there is no memory. */
void *npb_alloc(size_t n, size_t size);

/* What no rank can go on with: says so and ends all of them. */
void npb_fatal(const char *fmt, ...) __attribute__((format(printf, 1, 2)))
__attribute__((noreturn));

void npb_add_real(struct npb_result *r, double value);
void npb_add_integer(struct npb_result *r, int64_t value);
void npb_copy(struct npb_result *to, const struct npb_result *from);
bool npb_same(const struct npb_result *a, const struct npb_result *b);
void npb_print(FILE *f, const struct npb_result *r);

/* Is value i the official one, within a relative error? If not, says so. */
bool npb_is_real(const struct npb_result *r, size_t i, const char *what,
		 double official, double error);
bool npb_is_integer(const struct npb_result *r, size_t i, const char *what,
		    int64_t official);

/*
 * One repetition; after() is asked after each iteration whether to stop there.
 * Returns whether it was completed.
 */
typedef bool npb_after(void *arg, unsigned int iteration);
bool npb_repeat(const struct npb_job *job, struct npb_state *s,
		struct npb_result *r, double *seconds, npb_after *after,
		void *arg);

#endif
