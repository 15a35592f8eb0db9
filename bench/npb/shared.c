// SPDX-License-Identifier: GPL-2.0
#include <inttypes.h>
#include <math.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "npb.h"

#define CACHE_LINE 64

void npb_fatal(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}

void *npb_alloc(size_t n, size_t size)
{
	size_t bytes;
	void *p = NULL;

	if (!__builtin_mul_overflow(n, size, &bytes) &&
	    !__builtin_add_overflow(bytes, CACHE_LINE, &bytes))
		p = aligned_alloc(CACHE_LINE, bytes & -(size_t)CACHE_LINE);
	if (!p)
		npb_fatal("no memory for %zu times %zu bytes", n, size);
	return memset(p, 0, n * size);
}

void npb_sum(const struct npb_job *job, double *v, unsigned int n)
{
	double *all = npb_alloc((size_t)job->ranks * n, sizeof(*all));
	unsigned int i, k;

	MPI_Allgather(v, n, MPI_DOUBLE, all, n, MPI_DOUBLE, MPI_COMM_WORLD);
	for (i = 0; i < n; i++) {
		v[i] = 0;
		for (k = 0; k < job->ranks; k++)
			v[i] += all[(size_t)k * n + i];
	}
	free(all);
}

static void add(struct npb_result *r, struct npb_value v)
{
	if (r->count == r->room) {
		r->room = r->room ? 2 * r->room : 64;
		r->value = realloc(r->value, r->room * sizeof(*r->value));
		if (!r->value)
			npb_fatal("no memory for %zu results", r->room);
	}
	r->value[r->count++] = v;
}

void npb_add_real(struct npb_result *r, double value)
{
	add(r, (struct npb_value){ .real = value });
}

void npb_add_integer(struct npb_result *r, int64_t value)
{
	add(r, (struct npb_value){ .whole = true, .integer = value });
}

void npb_copy(struct npb_result *to, const struct npb_result *from)
{
	size_t i;

	to->count = 0;
	for (i = 0; i < from->count; i++)
		add(to, from->value[i]);
}

/* By the bits: of two NaNs, or zeros, one may be wrong. */
bool npb_same(const struct npb_result *a, const struct npb_result *b)
{
	size_t i;

	if (a->count != b->count)
		return false;
	for (i = 0; i < a->count; i++)
		if (a->value[i].whole != b->value[i].whole ||
		    a->value[i].integer != b->value[i].integer)
			return false;
	return true;
}

/* JSON knows no hexadecimal numbers: strings. */
void npb_print(FILE *f, const struct npb_result *r)
{
	size_t i;

	fputc('[', f);
	for (i = 0; i < r->count; i++) {
		if (i)
			fputc(',', f);
		if (r->value[i].whole)
			fprintf(f, "%" PRId64, r->value[i].integer);
		else
			fprintf(f, "\"%a\"", r->value[i].real);
	}
	fputc(']', f);
}

/* Not "is greater": a NaN is wrong, too. */
bool npb_is_real(const struct npb_result *r, size_t i, const char *what,
		 double official, double error)
{
	double seen;

	if (i >= r->count || r->value[i].whole) {
		fprintf(stderr, "%s: there is none\n", what);
		return false;
	}
	seen = r->value[i].real;
	if (fabs(seen - official) <= error * fabs(official))
		return true;
	fprintf(stderr, "%s is %.15g, not %.15g\n", what, seen, official);
	return false;
}

bool npb_is_integer(const struct npb_result *r, size_t i, const char *what,
		    int64_t official)
{
	if (i >= r->count || !r->value[i].whole) {
		fprintf(stderr, "%s: there is none\n", what);
		return false;
	}
	if (r->value[i].integer == official)
		return true;
	fprintf(stderr, "%s is %" PRId64 ", not %" PRId64 "\n", what,
		r->value[i].integer, official);
	return false;
}

bool npb_repeat(const struct npb_job *job, struct npb_state *s,
		struct npb_result *r, double *seconds, npb_after *after,
		void *arg)
{
	unsigned int i;
	double start;

	r->count = 0;
	if (npb_kernel.prepare)
		npb_kernel.prepare(s);
	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	if (npb_kernel.begin)
		npb_kernel.begin(s);
	for (i = 1; i <= job->iterations; i++) {
		npb_kernel.iterate(s, i, r);
		if (after && after(arg, i) && i < job->iterations)
			return false;
	}
	MPI_Barrier(MPI_COMM_WORLD);
	*seconds += MPI_Wtime() - start;
	if (npb_kernel.finish)
		npb_kernel.finish(s, r);
	return true;
}
