// SPDX-License-Identifier: GPL-2.0
/*
 * CG: the smallest eigenvalue of a sparse matrix, by inverse iteration, each
 * step of which solves a system of equations with 25 steps of the method of
 * conjugate gradients.
 *
 * Processes form a grid of rows and columns, each of which has a block of the
 * matrix. Vectors are cut into as many pieces as there are processes. To
 * multiply, the pieces of a block's columns are gathered within the grid's
 * column, and what the blocks of a row contribute is exchanged and added within
 * its row: of a vector, each process sees 1 / sqrt(processes) only.
 */
#include <math.h>
#include <mpi.h>
#include <stdlib.h>

#include "cg.h"
#include "npb.h"

#define STEPS 25
#define CG_ERROR 1e-10

static const struct {
	struct cg_matrix matrix;
	double zeta;
} problems[NPB_CLASSES] = {
	[NPB_S] = { { 1400, 7, 10 }, 8.5971775078648 },
	[NPB_W] = { { 7000, 8, 12 }, 10.362595087124 },
	[NPB_A] = { { 14000, 11, 20 }, 17.130235054029 },
	[NPB_B] = { { 75000, 13, 60 }, 22.712745482631 },
};

struct npb_state {
	const struct npb_job *job;
	const struct cg_matrix *matrix;
	struct cg_block block;

	unsigned int grid_rows, grid_columns;
	MPI_Comm along_row, along_column;
	int piece_to, piece_from; /* a piece's way into its grid column */

	uint32_t piece; /* elements of a vector here; the last may be padding */
	double *x, *z, *p, *q, *r;
	double *moved, *in, *out, *parts; /* for multiply() */
};

static double *new_pieces(const struct npb_state *s, size_t count)
{
	return npb_alloc(count * s->piece, sizeof(double));
}

/*
 * Rank k has piece k, and the block in row k / columns, column k % columns. A
 * grid row's result are the pieces of its own processes. A grid column needs as
 * many pieces as it has processes, which others have: these are moved first.
 */
static struct npb_state *create(const struct npb_job *job)
{
	const struct cg_matrix *m = &problems[job->class].matrix;
	struct npb_state *s = npb_alloc(1, sizeof(*s));
	unsigned int row, column;

	s->job = job;
	s->matrix = m;
	s->grid_rows = 1;
	while (s->grid_rows * s->grid_rows * 4 <= job->ranks)
		s->grid_rows *= 2;
	s->grid_columns = job->ranks / s->grid_rows;
	s->piece = (m->n + job->ranks - 1) / job->ranks;

	row = job->rank / s->grid_columns;
	column = job->rank % s->grid_columns;
	MPI_Comm_split(MPI_COMM_WORLD, row, column, &s->along_row);
	MPI_Comm_split(MPI_COMM_WORLD, column, row, &s->along_column);
	s->piece_to = job->rank % s->grid_rows * s->grid_columns +
		      job->rank / s->grid_rows;
	s->piece_from = column * s->grid_rows + row;

	s->x = new_pieces(s, 1);
	s->z = new_pieces(s, 1);
	s->p = new_pieces(s, 1);
	s->q = new_pieces(s, 1);
	s->r = new_pieces(s, 1);
	s->moved = new_pieces(s, 1);
	s->in = new_pieces(s, s->grid_rows);
	s->out = new_pieces(s, s->grid_columns);
	s->parts = new_pieces(s, s->grid_columns);
	cg_make_block(&s->block, m, row * s->grid_columns * s->piece,
		      s->grid_columns * s->piece,
		      column * s->grid_rows * s->piece,
		      s->grid_rows * s->piece);
	return s;
}

static void destroy(struct npb_state *s)
{
	free(s->x);
	free(s->z);
	free(s->p);
	free(s->q);
	free(s->r);
	free(s->moved);
	free(s->in);
	free(s->out);
	free(s->parts);
	cg_free_block(&s->block);
	MPI_Comm_free(&s->along_row);
	MPI_Comm_free(&s->along_column);
	free(s);
}

static void multiply_block(const struct cg_block *b, const double *v,
			   double *out)
{
	size_t k;
	uint32_t i;
	double sum;

	for (i = 0; i < b->rows; i++) {
		sum = 0;
		for (k = b->start[i]; k < b->start[i + 1]; k++)
			sum += b->value[k] * v[b->column[k]];
		out[i] = sum;
	}
}

/* y = A v */
static void multiply(struct npb_state *s, const double *v, double *y)
{
	const uint32_t n = s->piece;
	unsigned int k;
	uint32_t i;

	MPI_Sendrecv(v, n, MPI_DOUBLE, s->piece_to, 0, s->moved, n, MPI_DOUBLE,
		     s->piece_from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Allgather(s->moved, n, MPI_DOUBLE, s->in, n, MPI_DOUBLE,
		      s->along_column);
	multiply_block(&s->block, s->in, s->out);
	MPI_Alltoall(s->out, n, MPI_DOUBLE, s->parts, n, MPI_DOUBLE,
		     s->along_row);
	for (i = 0; i < n; i++)
		y[i] = s->parts[i];
	for (k = 1; k < s->grid_columns; k++)
		for (i = 0; i < n; i++)
			y[i] += s->parts[(size_t)k * n + i];
}

static double dot_here(const struct npb_state *s, const double *v,
		       const double *w)
{
	double sum = 0;
	uint32_t i;

	for (i = 0; i < s->piece; i++)
		sum += v[i] * w[i];
	return sum;
}

static double dot(const struct npb_state *s, const double *v, const double *w)
{
	double sum = dot_here(s, v, w);

	npb_sum(s->job, &sum, 1);
	return sum;
}

/* Az = x, about; returns how far off that is. */
static double solve(struct npb_state *s)
{
	double rho, old, alpha, beta;
	const uint32_t n = s->piece;
	unsigned int step;
	uint32_t i;

	for (i = 0; i < n; i++) {
		s->z[i] = 0;
		s->r[i] = s->p[i] = s->x[i];
	}
	rho = dot(s, s->r, s->r);
	for (step = 0; step < STEPS; step++) {
		multiply(s, s->p, s->q);
		alpha = rho / dot(s, s->p, s->q);
		for (i = 0; i < n; i++) {
			s->z[i] += alpha * s->p[i];
			s->r[i] -= alpha * s->q[i];
		}
		old = rho;
		rho = dot(s, s->r, s->r);
		beta = rho / old;
		for (i = 0; i < n; i++)
			s->p[i] = s->r[i] + beta * s->p[i];
	}
	multiply(s, s->z, s->r);
	for (i = 0; i < n; i++)
		s->r[i] = s->x[i] - s->r[i];
	return sqrt(dot(s, s->r, s->r));
}

/* All ones; what is only there to make pieces equal remains 0. */
static void prepare(struct npb_state *s)
{
	size_t first = (size_t)s->job->rank * s->piece;
	uint32_t i;

	for (i = 0; i < s->piece; i++)
		s->x[i] = first + i < s->matrix->n;
}

static void iterate(struct npb_state *s, unsigned int i, struct npb_result *r)
{
	double residual = solve(s), sum[2], scale;
	uint32_t k;

	(void)i;
	sum[0] = dot_here(s, s->x, s->z);
	sum[1] = dot_here(s, s->z, s->z);
	npb_sum(s->job, sum, 2);
	scale = 1 / sqrt(sum[1]);
	for (k = 0; k < s->piece; k++)
		s->x[k] = scale * s->z[k];
	npb_add_real(r, s->matrix->shift + 1 / sum[0]);
	npb_add_real(r, residual);
}

static enum npb_verdict verify(const struct npb_job *job,
			       const struct npb_result *r)
{
	if (job->iterations < job->official)
		return NPB_UNKNOWN;
	if (npb_is_real(r, 2 * (job->official - 1), "CG: zeta",
			problems[job->class].zeta, CG_ERROR))
		return NPB_RIGHT;
	return NPB_WRONG;
}

/* Those of 25 steps and of what is around them, for so many non-zeros a row */
static double operations(const struct npb_job *job)
{
	const struct cg_matrix *m = &problems[job->class].matrix;
	double row = m->nonzeros * (m->nonzeros + 1);

	return 2.0 * job->iterations * m->n * (3 + row + STEPS * (5 + row) + 3);
}

const struct npb_kernel npb_kernel = {
	.name = "CG",
	.about =
		"The smallest eigenvalue of a sparse matrix: many messages of\n"
		"some KiB, and sums of single numbers.",
	.iterations = { 15, 15, 15, 75 },
	.max_ranks = { 256, 1024, 1024, 1024 },
	.create = create,
	.destroy = destroy,
	.prepare = prepare,
	.iterate = iterate,
	.verify = verify,
	.operations = operations,
};
