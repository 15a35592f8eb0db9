// SPDX-License-Identifier: GPL-2.0
/*
 * The operators of MG have 27 points, with a coefficient each for the point
 * itself, its 6 neighbours, the 12 across an edge and the 8 across a corner. In
 * a row of points, those beside x are found in the planes x - 1, x and x + 1. In
 * each of these there are a point of the row, 4 near it and 4 far from it, at
 * the corners. So, with the sums of the near and of the far ones,
 *
 *	neighbours	v[x - 1] + v[x + 1] + near[x]
 *	across edges	near[x - 1] + near[x + 1] + far[x]
 *	across corners	far[x - 1] + far[x + 1]
 *
 * and both sums are used three times.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "mg.h"

/* Room for a row from -1 to n, whose point 0 is aligned. */
#define MAX_N 1024
#define PAD 8

struct line {
	double v[MAX_N + 2 * PAD] __attribute__((aligned(64)));
};

static size_t plane_size(const struct grid *g)
{
	return (g->n + 2) * (g->n + 2);
}

static double *plane(const struct grid *g, ptrdiff_t z)
{
	return g->v + (z + 1) * plane_size(g);
}

void grid_create(struct grid *g, const struct npb_job *job, size_t n,
		 bool whole)
{
	g->job = job;
	g->n = n;
	g->planes = whole ? n : n / job->ranks;
	g->first = whole ? 0 : g->planes * job->rank;
	g->v = npb_alloc((g->planes + 2) * plane_size(g), sizeof(*g->v));
}

void grid_destroy(struct grid *g)
{
	free(g->v);
}

void grid_clear(struct grid *g)
{
	memset(g->v, 0, (g->planes + 2) * plane_size(g) * sizeof(*g->v));
}

/* Sends a plane one way, and gets one from the other side. */
static void pass_plane(struct grid *g, double *from, double *to, int way)
{
	const int ranks = g->job->ranks, rank = g->job->rank;
	const int next = (rank + way + ranks) % ranks;
	const int before = (rank - way + ranks) % ranks;
	const size_t size = plane_size(g);

	if (grid_is_whole(g))
		memcpy(to, from, size * sizeof(*to));
	else
		MPI_Sendrecv(from, size, MPI_DOUBLE, next, 0, to, size,
			     MPI_DOUBLE, before, 0, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
}

void grid_update(struct grid *g)
{
	const ptrdiff_t n = g->n, planes = g->planes;
	const size_t row_size = (n + 2) * sizeof(double);
	ptrdiff_t z, y;
	double *row;

	for (z = 0; z < planes; z++) {
		for (y = 0; y < n; y++) {
			row = grid_row(g, z, y);
			row[-1] = row[n - 1];
			row[n] = row[0];
		}
		memcpy(grid_row(g, z, -1) - 1, grid_row(g, z, n - 1) - 1,
		       row_size);
		memcpy(grid_row(g, z, n) - 1, grid_row(g, z, 0) - 1, row_size);
	}
	pass_plane(g, plane(g, planes - 1), plane(g, -1), 1);
	pass_plane(g, plane(g, 0), plane(g, planes), -1);
}

void grid_share(struct grid *g)
{
	MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, plane(g, 0),
		      g->planes / g->job->ranks * plane_size(g), MPI_DOUBLE,
		      MPI_COMM_WORLD);
}

/* The sums, for -1 to n, of the row at (z, y). */
static void add_around(const struct grid *g, ptrdiff_t z, ptrdiff_t y,
		       double *restrict near, double *restrict far)
{
	const double *restrict north = grid_row(g, z, y - 1);
	const double *restrict south = grid_row(g, z, y + 1);
	const double *restrict below = grid_row(g, z - 1, y);
	const double *restrict above = grid_row(g, z + 1, y);
	const double *restrict north_below = grid_row(g, z - 1, y - 1);
	const double *restrict south_below = grid_row(g, z - 1, y + 1);
	const double *restrict north_above = grid_row(g, z + 1, y - 1);
	const double *restrict south_above = grid_row(g, z + 1, y + 1);
	const ptrdiff_t n = g->n;
	ptrdiff_t x;

	for (x = -1; x <= n; x++) {
		near[x] = north[x] + south[x] + below[x] + above[x];
		far[x] = north_below[x] + south_below[x] + north_above[x] +
			 south_above[x];
	}
}

/* r = v - Au; A has nothing for direct neighbours */
void grid_residual(struct grid *r, const struct grid *v, const struct grid *u)
{
	static const double a0 = -8. / 3, a2 = 1. / 6, a3 = 1. / 12;
	const ptrdiff_t n = r->n, planes = r->planes;
	struct line near_line, far_line;
	double *near = near_line.v + PAD, *far = far_line.v + PAD;
	const double *from, *at;
	ptrdiff_t z, y, x;
	double *to;

	for (z = 0; z < planes; z++) {
		for (y = 0; y < n; y++) {
			add_around(u, z, y, near, far);
			to = grid_row(r, z, y);
			from = grid_row(v, z, y);
			at = grid_row(u, z, y);
			for (x = 0; x < n; x++)
				to[x] = from[x] - a0 * at[x] -
					a2 * (far[x] + near[x - 1] +
					      near[x + 1]) -
					a3 * (far[x - 1] + far[x + 1]);
		}
	}
	grid_update(r);
}

/* u += Cr; C has nothing for corners */
void grid_smooth(struct grid *u, const struct grid *r, const double c[3])
{
	const ptrdiff_t n = u->n, planes = u->planes;
	struct line near_line, far_line;
	double *near = near_line.v + PAD, *far = far_line.v + PAD;
	const double *restrict at;
	double *restrict to;
	ptrdiff_t z, y, x;

	for (z = 0; z < planes; z++) {
		for (y = 0; y < n; y++) {
			add_around(r, z, y, near, far);
			to = grid_row(u, z, y);
			at = grid_row(r, z, y);
			for (x = 0; x < n; x++)
				to[x] += c[0] * at[x] +
					 c[1] * (at[x - 1] + at[x + 1] +
						 near[x]) +
					 c[2] * (far[x] + near[x - 1] +
						 near[x + 1]);
		}
	}
	grid_update(u);
}

/*
 * Point J of the coarse grid is point 2J + 1 of the fine one, and is the sum
 * of all around it, by how much they have in common.
 */
void grid_restrict(struct grid *coarse, const struct grid *fine)
{
	const ptrdiff_t n = coarse->n;
	struct line near_line, far_line;
	double *near = near_line.v + PAD, *far = far_line.v + PAD;
	ptrdiff_t first = fine->first / 2, z, y, x, k;
	const double *at;
	double *to;

	for (z = first; z < first + (ptrdiff_t)fine->planes / 2; z++) {
		for (y = 0; y < n; y++) {
			k = 2 * z + 1 - fine->first;
			add_around(fine, k, 2 * y + 1, near, far);
			at = grid_row(fine, k, 2 * y + 1);
			to = grid_row(coarse, z - coarse->first, y);
			for (x = 0; x < n; x++) {
				k = 2 * x + 1;
				to[x] = 0.5 * at[k] +
					0.25 * (at[k - 1] + at[k + 1] +
						near[k]) +
					0.125 * (far[k] + near[k - 1] +
						 near[k + 1]) +
					0.0625 * (far[k - 1] + far[k + 1]);
			}
		}
	}
	if (grid_is_whole(coarse) && !grid_is_whole(fine))
		grid_share(coarse);
	grid_update(coarse);
}

/*
 * Adds to each point of the fine grid the mean of the coarse points around it.
 * With an odd coordinate it is on one, else between two: then both the one
 * before and the one after differ, otherwise they are the same.
 */
void grid_interpolate(struct grid *fine, const struct grid *coarse)
{
	const ptrdiff_t n = coarse->n, planes = fine->planes;
	struct line mean_line;
	double *mean = mean_line.v + PAD, *to;
	ptrdiff_t z, y, x, z0, z1;

	for (z = 0; z < planes; z++) {
		z0 = (fine->first + z + 1) / 2 - 1 - coarse->first;
		z1 = (fine->first + z) / 2 - coarse->first;
		for (y = 0; y < 2 * n; y++) {
			const double *a = grid_row(coarse, z0, (y + 1) / 2 - 1);
			const double *b = grid_row(coarse, z0, y / 2);
			const double *c = grid_row(coarse, z1, (y + 1) / 2 - 1);
			const double *d = grid_row(coarse, z1, y / 2);

			for (x = -1; x < n; x++)
				mean[x] = 0.25 * (a[x] + b[x] + c[x] + d[x]);
			to = grid_row(fine, z, y);
			for (x = 0; x < n; x++) {
				to[2 * x] += 0.5 * (mean[x - 1] + mean[x]);
				to[2 * x + 1] += mean[x];
			}
		}
	}
	grid_update(fine);
}
