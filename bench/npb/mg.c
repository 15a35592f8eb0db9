// SPDX-License-Identifier: GPL-2.0
/*
 * MG: some V-cycles of a multigrid method for Poisson's equation on a periodic
 * cube, with +1 at ten points, -1 at ten others, and 0 elsewhere.
 *
 * Grids are cut into slabs, one for each process, down to two planes each. What
 * is coarser has fewer points than a message is worth: everybody gets all of
 * the residual and computes all of the correction.
 */
#include <inttypes.h>
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "mg.h"
#include "prng.h"

#define CHARGES 10 /* of each sign */
#define MAX_LEVEL 8
#define MG_ERROR 1e-8

static const double coarse_smoother[] = { -3. / 8, 1. / 32, -1. / 64 };
static const double fine_smoother[] = { -3. / 17, 1. / 33, -1. / 61 };

static const struct {
	unsigned int level; /* 2^level points along each axis */
	const double *smoother;
	double norm; /* of the residual */
} problems[NPB_CLASSES] = {
	[NPB_S] = { 5, coarse_smoother, 0.5307707005734e-04 },
	[NPB_W] = { 7, coarse_smoother, 0.6467329375339e-05 },
	[NPB_A] = { 8, coarse_smoother, 0.2433365309069e-05 },
	[NPB_B] = { 8, fine_smoother, 0.1800564401355e-05 },
};

struct npb_state {
	const struct npb_job *job;
	unsigned int top;
	const double *smoother;
	struct grid u[MAX_LEVEL + 1], r[MAX_LEVEL + 1]; /* from level 1 */
	struct grid v; /* the right hand side */
};

/* A point and its random number; no number comes twice. */
struct spot {
	uint64_t number, at;
};

/* Keeps the largest CHARGES of all that were offered, the largest first. */
static void offer(struct spot *kept, struct spot new)
{
	unsigned int k = CHARGES - 1;

	if (new.number <= kept[k].number)
		return;
	for (; k && new.number > kept[k - 1].number; k--)
		kept[k] = kept[k - 1];
	kept[k] = new;
}

/* The largest of all processes' numbers become charges. */
static void place(struct grid *v, const struct spot *mine, double charge)
{
	struct spot best[CHARGES] = { 0 }, *all;
	uint64_t z, y;
	unsigned int i;

	all = npb_alloc(v->job->ranks, sizeof(best));
	MPI_Allgather(mine, sizeof(best), MPI_BYTE, all, sizeof(best), MPI_BYTE,
		      MPI_COMM_WORLD);
	for (i = 0; i < CHARGES * v->job->ranks; i++)
		offer(best, all[i]);
	free(all);
	for (i = 0; i < CHARGES; i++) {
		z = best[i].at / (v->n * v->n) - v->first;
		y = best[i].at / v->n % v->n;
		if (z < v->planes)
			grid_row(v, z, y)[best[i].at % v->n] = charge;
	}
}

/* Random numbers on all points; positive charges at the largest ones. */
static void charge(struct grid *v)
{
	uint64_t i = v->first * v->n * v->n;
	uint64_t end = i + v->planes * v->n * v->n;
	uint64_t seed = prng_skip(PRNG_SEED, i), number;
	struct spot large[CHARGES] = { 0 }, small[CHARGES] = { 0 };

	for (; i < end; i++) {
		number = prng_next(&seed);
		offer(large, (struct spot){ number, i });
		offer(small, (struct spot){ PRNG_MASK - number, i });
	}
	place(v, large, 1);
	place(v, small, -1);
	grid_update(v);
}

static struct npb_state *create(const struct npb_job *job)
{
	struct npb_state *s = npb_alloc(1, sizeof(*s));
	unsigned int k;

	s->job = job;
	s->top = problems[job->class].level;
	s->smoother = problems[job->class].smoother;
	for (k = 1; k <= s->top; k++) {
		size_t n = (size_t)1 << k;
		bool whole = job->ranks == 1 || n <= job->ranks;

		grid_create(&s->u[k], job, n, whole);
		grid_create(&s->r[k], job, n, whole);
	}
	grid_create(&s->v, job, (size_t)1 << s->top, job->ranks == 1);
	charge(&s->v);
	return s;
}

static void destroy(struct npb_state *s)
{
	unsigned int k;

	for (k = 1; k <= s->top; k++) {
		grid_destroy(&s->u[k]);
		grid_destroy(&s->r[k]);
	}
	grid_destroy(&s->v);
	free(s);
}

static void begin(struct npb_state *s)
{
	grid_clear(&s->u[s->top]);
	grid_residual(&s->r[s->top], &s->v, &s->u[s->top]);
}

/* Down to 2^3 points with the residual, and up again with the correction */
static void cycle(struct npb_state *s)
{
	struct grid *u = s->u, *r = s->r;
	unsigned int k;

	for (k = s->top; k > 1; k--)
		grid_restrict(&r[k - 1], &r[k]);
	grid_clear(&u[1]);
	grid_smooth(&u[1], &r[1], s->smoother);
	for (k = 2; k < s->top; k++) {
		grid_clear(&u[k]);
		grid_interpolate(&u[k], &u[k - 1]);
		grid_residual(&r[k], &r[k], &u[k]);
		grid_smooth(&u[k], &r[k], s->smoother);
	}
	grid_interpolate(&u[k], &u[k - 1]);
	grid_residual(&r[k], &s->v, &u[k]);
	grid_smooth(&u[k], &r[k], s->smoother);
}

/* The root of the mean square */
static double norm(const struct grid *g)
{
	const ptrdiff_t n = g->n, planes = g->planes;
	double sum = 0, of_row;
	const double *row;
	ptrdiff_t z, y, x;

	for (z = 0; z < planes; z++) {
		for (y = 0; y < n; y++) {
			row = grid_row(g, z, y);
			of_row = 0;
			for (x = 0; x < n; x++)
				of_row += row[x] * row[x];
			sum += of_row;
		}
	}
	npb_sum(g->job, &sum, 1);
	return sqrt(sum / ((double)n * n * n));
}

static void iterate(struct npb_state *s, unsigned int i, struct npb_result *r)
{
	cycle(s);
	grid_residual(&s->r[s->top], &s->v, &s->u[s->top]);
	if (npb_due(s->job, i))
		npb_add_real(r, norm(&s->r[s->top]));
}

static enum npb_verdict verify(const struct npb_job *job,
			       const struct npb_result *r)
{
	if (job->iterations < job->official)
		return NPB_UNKNOWN;
	if (npb_is_real(r, 0, "MG: the residual's norm",
			problems[job->class].norm, MG_ERROR))
		return NPB_RIGHT;
	return NPB_WRONG;
}

/* 58 for each point of the finest grid, on the way down and up in all */
static double operations(const struct npb_job *job)
{
	return 58 * ldexp(1, 3 * problems[job->class].level) * job->iterations;
}

const struct npb_kernel npb_kernel = {
	.name = "MG",
	.about = "Poisson's equation by a multigrid method: planes go to both\n"
		 "neighbours, from large ones to small ones and back.",
	.iterations = { 4, 4, 4, 20 },
	.max_ranks = { 16, 64, 128, 128 },
	.create = create,
	.destroy = destroy,
	.begin = begin,
	.iterate = iterate,
	.verify = verify,
	.operations = operations,
};
