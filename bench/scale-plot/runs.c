// SPDX-License-Identifier: GPL-2.0
/*
 * What live_restore -j has printed, as medians for each number of QPs.
 */
#include "scale.h"

#include <stdlib.h>
#include <string.h>

const char *const step_names[N_STEPS] = {
#define X(name) #name,
	STEPS(X)
#undef X
};

const char *const type_names[N_TYPES] = { "PD", "MR", "CQ", "SRQ", "QP" };

const char *const kind_names[N_KINDS] = { "receive queues", "an SRQ" };

/* the number after "NAME": in a flat JSON object; -1 if there is none */
static double number(const char *json, const char *name, const char *suffix)
{
	char key[64];
	const char *at;

	snprintf(key, sizeof(key), "\"%s%s\":", name, suffix);
	at = strstr(json, key);
	return at ? atof(at + strlen(key)) : -1;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, unsigned int n)
{
	qsort(v, n, sizeof(*v), compare);
	return (v[n / 2] + v[(n - 1) / 2]) / 2;
}

static struct size *size_for(struct scale *s, unsigned int qps)
{
	unsigned int i;

	for (i = 0; i < s->sizes && s->size[i].qps < qps; i++)
		;
	if (i < s->sizes && s->size[i].qps == qps)
		return &s->size[i];
	if (s->sizes == MAX_SIZES)
		return NULL;
	memmove(&s->size[i + 1], &s->size[i],
		(s->sizes - i) * sizeof(s->size[0]));
	memset(&s->size[i], 0, sizeof(s->size[i]));
	s->size[i].qps = qps;
	s->sizes++;
	return &s->size[i];
}

/* Returns 0, or -1 if there are too many */
static int add(struct results *r, const char *json)
{
	struct scale *s =
		&r->kind[number(json, "srq", "") > 0 ? FROM_SRQ : OWN_QUEUE];
	struct size *z = size_for(s, (unsigned int)number(json, "qps", ""));
	double sum = 0;

	if (!z || z->runs == MAX_RUNS)
		return -1;
	if (number(json, "failed", "") > 0) {
		z->failed++;
		return 0;
	}
	for (int i = 0; i < STEP_blackout; i++) {
		z->run[i][z->runs] = number(json, step_names[i], "_ms");
		sum += z->run[i][z->runs];
	}
	z->run[STEP_blackout][z->runs++] = sum;
	z->image_bytes = (size_t)number(json, "image_bytes", "");
	z->wqe_bytes = (size_t)number(json, "wqe_bytes", "");
	for (int i = 0; i < N_TYPES; i++) {
		struct object *o = &z->object[i];

		o->count = (unsigned int)number(json, type_names[i], "_count");
		o->fixed = (size_t)number(json, type_names[i], "_fixed");
		o->contents = (size_t)number(json, type_names[i], "_contents");
	}
	return 0;
}

/* A size none of whose runs has succeeded has no numbers. */
static void leave_out(struct scale *s)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < s->sizes; i++) {
		s->failed += s->size[i].failed;
		if (s->size[i].runs)
			s->size[n++] = s->size[i];
		else
			s->lacks = s->size[i].qps;
	}
	s->sizes = n;
}

static void finish(struct size *z, int step)
{
	double *v = z->run[step];

	z->ms[step] = median(v, z->runs);
	if (z->ms[step] > 0)
		z->spread[step] = (v[z->runs - 1] - v[0]) / z->ms[step];
}

/* Returns how many sizes there are, or -1 */
int runs_read(struct results *r, FILE *in)
{
	unsigned int sizes = 0;
	char *text = NULL;
	size_t room = 0;

	memset(r, 0, sizeof(*r));
	while (getline(&text, &room, in) > 0) {
		if (number(text, "qps", "") <= 0 || !add(r, text))
			continue;
		fprintf(stderr, "scale-plot: more than %d sizes, or %d runs\n",
			MAX_SIZES, MAX_RUNS);
		free(text);
		return -1;
	}
	free(text);
	for (int kind = 0; kind < N_KINDS; kind++) {
		struct scale *s = &r->kind[kind];

		leave_out(s);
		for (unsigned int i = 0; i < s->sizes; i++)
			for (int k = 0; k < N_STEPS; k++)
				finish(&s->size[i], k);
		sizes += s->sizes;
	}
	return (int)sizes;
}

/* Least squares of the relative error, so that small sizes count as well */
struct line runs_fit(const struct scale *s, enum step step)
{
	double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0, d;
	struct line l;

	for (unsigned int i = 0; i < s->sizes; i++) {
		double x = s->size[i].qps, y = s->size[i].ms[step];
		double weight = y > 0 ? 1 / (y * y) : 0;

		w += weight;
		wx += weight * x;
		wy += weight * y;
		wxx += weight * x * x;
		wxy += weight * x * y;
	}
	d = w * wxx - wx * wx;
	l.per_qp = d > 0 ? (w * wxy - wx * wy) / d : 0;
	l.fixed = w > 0 ? (wy - l.per_qp * wx) / w : 0;
	return l;
}

/* the largest size that has at most a quarter of these QPs; NULL if there is none */
static const struct size *quarter(const struct scale *s, const struct size *big)
{
	const struct size *small = big;

	while (small >= s->size && small->qps > big->qps / 4)
		small--;
	return small >= s->size ? small : NULL;
}

/*
 * Does a QP cost no more among many than among a quarter of them? The two largest
 * sizes that have such a quarter are asked: 4096 of 1024, and 1024 of 256. A part
 * that grows as the square may be a twelfth of the smaller one's time, or more if
 * another part is fixed. The clock counts instructions, and what else the node does
 * only ever adds to a time, so the fastest runs are compared: it would have to hit
 * all of one size.
 */
bool runs_linear(const struct scale *s, enum step step)
{
	for (unsigned int i = s->sizes, asked = 0; i-- && asked < 2;) {
		const struct size *big = &s->size[i], *small = quarter(s, big);

		if (!small)
			continue;
		if (big->run[step][0] / big->qps >
		    FASTER * small->run[step][0] / small->qps)
			return false;
		asked++;
	}
	return true;
}

/* In bytes there is no noise, but not every QP has used as many slots */
bool runs_bytes_linear(const struct scale *s)
{
	const struct size *big = &s->size[s->sizes - 1];
	const struct size *small = quarter(s, big);

	return !small || (double)big->image_bytes / big->qps <=
				 1.05 * (double)small->image_bytes / small->qps;
}
