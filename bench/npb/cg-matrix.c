// SPDX-License-Identifier: GPL-2.0
/*
 * CG's matrix: the sum of n outer products w_i x_i x_i^T of sparse vectors, and
 * a multiple of the identity. w_i falls from 1 to RCOND, so that this is about
 * the reciprocal of the condition number. x_i has random numbers at random
 * places, and 1/2 at i.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "cg.h"
#include "npb.h"
#include "prng.h"

#define RCOND 0.1

struct element {
	uint32_t at; /* its place in the vector */
	double value;
};

/* All vectors, one after the other */
struct vectors {
	size_t *start;
	struct element *e;
};

/* Element i of a vector; it has one there already, or gets one. */
static size_t put(struct element *e, size_t count, uint32_t at, double value)
{
	size_t k;

	for (k = 0; k < count && e[k].at != at; k++)
		;
	e[k] = (struct element){ at, value };
	return k < count ? count : count + 1;
}

static bool has(const struct element *e, size_t count, uint32_t at)
{
	while (count--)
		if (e[count].at == at)
			return true;
	return false;
}

/*
 * A value and a place are drawn together, and dropped together if the place is
 * taken, or not in the vector: places are drawn from a power of two.
 */
static struct vectors make_vectors(const struct cg_matrix *m)
{
	uint64_t seed = prng_skip(PRNG_SEED, 1), value, place;
	unsigned int shift = PRNG_BITS;
	struct vectors v;
	size_t count;
	uint32_t i;

	while (UINT64_C(1) << (PRNG_BITS - shift) < m->n)
		shift--;
	v.start = npb_alloc(m->n + 1, sizeof(*v.start));
	v.e = npb_alloc((size_t)m->n * (m->nonzeros + 1), sizeof(*v.e));
	for (i = 0; i < m->n; i++) {
		struct element *e = v.e + v.start[i];

		for (count = 0; count < m->nonzeros;) {
			value = prng_next(&seed);
			place = prng_next(&seed) >> shift;
			if (place < m->n && !has(e, count, place))
				count = put(e, count, place, prng_unit(value));
		}
		v.start[i + 1] = v.start[i] + put(e, count, i, 0.5);
	}
	return v;
}

/* The other way round: which vectors have an element at a place, and what? */
static struct vectors transpose(const struct vectors *v, uint32_t n,
				uint32_t row, uint32_t rows)
{
	struct vectors t;
	size_t *next, k;
	uint32_t i;

	t.start = npb_alloc((size_t)rows + 1, sizeof(*t.start));
	next = npb_alloc((size_t)rows + 1, sizeof(*next));
	for (k = 0; k < v->start[n]; k++)
		if (v->e[k].at - row < rows)
			t.start[v->e[k].at - row + 1]++;
	for (i = 0; i < rows; i++) {
		t.start[i + 1] += t.start[i];
		next[i] = t.start[i];
	}
	t.e = npb_alloc(t.start[rows], sizeof(*t.e));
	for (i = 0; i < n; i++)
		for (k = v->start[i]; k < v->start[i + 1]; k++)
			if (v->e[k].at - row < rows)
				t.e[next[v->e[k].at - row]++] =
					(struct element){ i, v->e[k].value };
	free(next);
	return t;
}

static void free_vectors(struct vectors *v)
{
	free(v->start);
	free(v->e);
}

/* No more non-zeros than these, as places may coincide */
static size_t most(const struct vectors *v, const struct vectors *t,
		   uint32_t rows)
{
	size_t n = 0, k;

	for (k = 0; k < t->start[rows]; k++)
		n += v->start[t->e[k].at + 1] - v->start[t->e[k].at];
	return n + rows;
}

/* A row as it grows: values by column, and which columns there are. */
struct row {
	double *value;
	bool *there;
	uint32_t *column;
	uint32_t count, first, columns;
};

static void add(struct row *r, uint32_t column, double value)
{
	column -= r->first;
	if (column >= r->columns)
		return;
	if (!r->there[column]) {
		r->there[column] = true;
		r->column[r->count++] = column;
	}
	r->value[column] += value;
}

static int compare(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Appends the row to the block, and leaves it empty. */
static void finish_row(struct row *r, struct cg_block *b, size_t at)
{
	uint32_t k, column;

	qsort(r->column, r->count, sizeof(*r->column), compare);
	for (k = 0; k < r->count; k++) {
		column = r->column[k];
		b->column[at + k] = column;
		b->value[at + k] = r->value[column];
		r->value[column] = 0;
		r->there[column] = false;
	}
	r->count = 0;
}

void cg_make_block(struct cg_block *b, const struct cg_matrix *m, uint32_t row,
		   uint32_t rows, uint32_t column, uint32_t columns)
{
	struct vectors v = make_vectors(m);
	struct vectors t = transpose(&v, m->n, row, rows);
	struct row r = { .first = column, .columns = columns };
	size_t room = most(&v, &t, rows), k, l;
	double weight;
	uint32_t i;

	b->rows = rows;
	b->start = npb_alloc((size_t)rows + 1, sizeof(*b->start));
	b->column = npb_alloc(room, sizeof(*b->column));
	b->value = npb_alloc(room, sizeof(*b->value));
	r.value = npb_alloc(columns, sizeof(*r.value));
	r.there = npb_alloc(columns, sizeof(*r.there));
	r.column = npb_alloc(columns, sizeof(*r.column));
	for (i = 0; i < rows; i++) {
		for (k = t.start[i]; k < t.start[i + 1]; k++) {
			uint32_t of = t.e[k].at;

			weight = t.e[k].value * pow(RCOND, (double)of / m->n);
			for (l = v.start[of]; l < v.start[of + 1]; l++)
				add(&r, v.e[l].at, weight * v.e[l].value);
		}
		if (row + i < m->n)
			add(&r, row + i, RCOND - m->shift);
		b->start[i + 1] = b->start[i] + r.count;
		finish_row(&r, b, b->start[i]);
	}
	free(r.value);
	free(r.there);
	free(r.column);
	free_vectors(&t);
	free_vectors(&v);
}

void cg_free_block(struct cg_block *b)
{
	free(b->start);
	free(b->column);
	free(b->value);
}
