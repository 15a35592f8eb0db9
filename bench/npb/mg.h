/* SPDX-License-Identifier: GPL-2.0 */
#ifndef NPB_MG_H
#define NPB_MG_H

#include <stdbool.h>
#include <stddef.h>

#include "npb.h"

/*
 * A cube of n points along each axis, periodic, cut into slabs of planes. A slab
 * has copies of its neighbours' planes around it, and each plane has copies of
 * its own edges. Coarse cubes are whole on each process.
 */
struct grid {
	const struct npb_job *job;
	size_t n;
	size_t planes, first;
	double *v;
};

static inline bool grid_is_whole(const struct grid *g)
{
	return g->planes == g->n;
}

/* A row of points, from -1 to n. z counts from the first plane here: -1 ... */
static inline double *grid_row(const struct grid *g, ptrdiff_t z, ptrdiff_t y)
{
	const ptrdiff_t side = g->n + 2;

	return g->v + ((z + 1) * side + y + 1) * side + 1;
}

void grid_create(struct grid *g, const struct npb_job *job, size_t n,
		 bool whole);
void grid_destroy(struct grid *g);
void grid_clear(struct grid *g);

/* Once inner points have changed: all copies of them. */
void grid_update(struct grid *g);

/* Each process has done its share of planes: now all have all. */
void grid_share(struct grid *g);

/* The four operators; all leave the copies right. r and v may be the same. */
void grid_residual(struct grid *r, const struct grid *v, const struct grid *u);
void grid_smooth(struct grid *u, const struct grid *r, const double c[3]);
void grid_restrict(struct grid *coarse, const struct grid *fine);
void grid_interpolate(struct grid *fine, const struct grid *coarse);

#endif
