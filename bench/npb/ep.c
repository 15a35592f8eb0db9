// SPDX-License-Identifier: GPL-2.0
/*
 * EP, embarrassingly parallel: pairs of random numbers become pairs of Gaussian
 * deviates by Marsaglia's polar method, which are added up, and counted by the
 * square ring around the origin that they fall into. Ranks talk at the end only.
 */
#include <inttypes.h>
#include <math.h>
#include <mpi.h>
#include <stdlib.h>

#include "npb.h"
#include "prng.h"

#define EP_SEED UINT64_C(271828183)
#define EP_ERROR 1e-8
#define RINGS 12  /* x and y are odd by 2^-46: t is at least 2^-89 */
#define SLICES 64 /* a repetition in as many iterations */

static const struct {
	unsigned int log_pairs;
	double x, y; /* the sums */
} problems[NPB_CLASSES] = {
	[NPB_S] = { 24, -3.247834652034740e3, -6.958407078382297e3 },
	[NPB_W] = { 25, -2.863319731645753e3, -6.320053679109499e3 },
	[NPB_A] = { 28, -4.295875165629892e3, -1.580732573678431e4 },
	[NPB_B] = { 30, 4.033815542441498e4, -2.660669192809235e4 },
};

struct npb_state {
	const struct npb_job *job;
	double x, y;
	int64_t ring[RINGS];
};

static struct npb_state *create(const struct npb_job *job)
{
	struct npb_state *s = npb_alloc(1, sizeof(*s));

	s->job = job;
	return s;
}

static void prepare(struct npb_state *s)
{
	*s = (struct npb_state){ .job = s->job };
}

static void add_pairs(struct npb_state *s, uint64_t first, uint64_t n)
{
	uint64_t seed = prng_skip(EP_SEED, 2 * first);
	double x, y, t, factor;

	while (n--) {
		x = 2 * prng_unit(prng_next(&seed)) - 1;
		y = 2 * prng_unit(prng_next(&seed)) - 1;
		t = x * x + y * y;
		if (t > 1)
			continue;
		factor = sqrt(-2 * log(t) / t);
		x *= factor;
		y *= factor;
		s->x += x;
		s->y += y;
		s->ring[(int)fmax(fabs(x), fabs(y))]++;
	}
}

static void add_up(const struct npb_state *s, struct npb_result *r)
{
	double sum[2] = { s->x, s->y };
	int64_t ring[RINGS];
	unsigned int i;

	npb_sum(s->job, sum, 2);
	MPI_Allreduce(s->ring, ring, RINGS, MPI_INT64_T, MPI_SUM,
		      MPI_COMM_WORLD);
	npb_add_real(r, sum[0]);
	npb_add_real(r, sum[1]);
	for (i = 0; i < RINGS; i++)
		npb_add_integer(r, ring[i]);
}

static void iterate(struct npb_state *s, unsigned int i, struct npb_result *r)
{
	const struct npb_job *job = s->job;
	uint64_t slice =
		(UINT64_C(1) << problems[job->class].log_pairs) / SLICES;
	uint64_t first = slice * job->rank / job->ranks;
	uint64_t end = slice * (job->rank + 1) / job->ranks;

	add_pairs(s, slice * (i - 1) + first, end - first);
	if (npb_due(job, i))
		add_up(s, r);
}

static enum npb_verdict verify(const struct npb_job *job,
			       const struct npb_result *r)
{
	bool right;

	if (job->iterations < job->official)
		return NPB_UNKNOWN;
	right = npb_is_real(r, 0, "EP: the sum of x", problems[job->class].x,
			    EP_ERROR);
	right &= npb_is_real(r, 1, "EP: the sum of y", problems[job->class].y,
			     EP_ERROR);
	return right ? NPB_RIGHT : NPB_WRONG;
}

/* One for each random number */
static double operations(const struct npb_job *job)
{
	return ldexp(2, problems[job->class].log_pairs) / SLICES *
	       job->iterations;
}

static void destroy(struct npb_state *s)
{
	free(s);
}

const struct npb_kernel npb_kernel = {
	.name = "EP",
	.about =
		"Gaussian deviates, added up and counted: arithmetic only. An\n"
		"iteration is a part of 1/64, ranks meet after the last one.",
	.iterations = { SLICES, SLICES, SLICES, SLICES },
	.max_ranks = { 1024, 1024, 1024, 1024 },
	.any_ranks = true,
	.create = create,
	.destroy = destroy,
	.prepare = prepare,
	.iterate = iterate,
	.verify = verify,
	.operations = operations,
};
