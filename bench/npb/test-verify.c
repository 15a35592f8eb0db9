// SPDX-License-Identifier: GPL-2.0
/*
 * Is a wrong result refused? A right one is computed, class S on one rank, and
 * then made slightly wrong, number by number. What is said on stderr meanwhile
 * is what is wanted.
 */
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "npb.h"

static const struct expected {
	const char *name;
	size_t numbers; /* how many of the result are official */
	double error;	/* how far off they may be */
	bool prefix;	/* Fewer iterations have a result, too. */
} expected[] = {
	{ "EP", 2, 1e-8, false },  { "IS", 51, 0, true },
	{ "CG", 1, 1e-10, false }, { "MG", 1, 1e-8, false },
	{ "FT", 12, 1e-12, true },
};

static int failures;

static void expect(bool ok, const char *what)
{
	if (ok)
		return;
	printf("FAILED: %s\n", what);
	failures++;
}

/* Off by so much, relatively; at least by one for integers. */
static struct npb_value off_by(struct npb_value v, double error)
{
	if (v.whole)
		v.integer += error > 0 ? 1 : -1;
	else
		v.real += v.real * error;
	return v;
}

/* How many of the numbers are noticed when they are replaced? */
static size_t noticed(const struct npb_job *job, struct npb_result *r,
		      double error)
{
	struct npb_value right;
	size_t n = 0, i;

	for (i = 0; i < r->count; i++) {
		right = r->value[i];
		r->value[i] = off_by(right, error);
		n += npb_kernel.verify(job, r) == NPB_WRONG;
		r->value[i] = right;
	}
	return n;
}

/* One run differs from another by a bit. */
static void test_same(const struct npb_result *r)
{
	struct npb_result other = { 0 };
	size_t i;

	npb_copy(&other, r);
	expect(npb_same(r, &other), "a copy is the same");
	for (i = 0; i < r->count; i++) {
		other.value[i].integer ^= 1;
		expect(!npb_same(r, &other), "another bit is not the same");
		other.value[i].integer ^= 1;
	}
	other.count--;
	expect(!npb_same(r, &other), "one less is not the same");
	free(other.value);
}

static void test(const struct expected *e, struct npb_job job,
		 struct npb_result *r)
{
	const double far = e->error ? 4 * e->error : 1, near = e->error / 4;
	size_t count = r->count;
	unsigned int k;

	expect(npb_kernel.verify(&job, r) == NPB_RIGHT, "it is right");
	expect(noticed(&job, r, far) == e->numbers, "too large is noticed");
	expect(noticed(&job, r, -far) == e->numbers, "too small is noticed");
	if (e->error) {
		expect(noticed(&job, r, near) == 0, "nearly right is right");
		expect(noticed(&job, r, NAN) == e->numbers, "NaN is noticed");
		expect(noticed(&job, r, INFINITY) == e->numbers,
		       "infinity is noticed");
	}
	r->count = 0;
	expect(npb_kernel.verify(&job, r) == NPB_WRONG, "nothing is noticed");
	r->count = count;

	job.iterations--;
	expect(npb_kernel.verify(&job, r) ==
		       (e->prefix ? NPB_RIGHT : NPB_UNKNOWN),
	       "fewer iterations");
	for (k = NPB_W; k < NPB_CLASSES; k++) {
		job.class = k;
		job.official = npb_kernel.iterations[k];
		job.iterations = job.official;
		expect(npb_kernel.verify(&job, r) == NPB_WRONG,
		       "another class's result is noticed");
	}
}

int main(int argc, char **argv)
{
	struct npb_job job = {
		.class = NPB_S,
		.ranks = 1,
		.iterations = npb_kernel.iterations[NPB_S],
		.official = npb_kernel.iterations[NPB_S],
	};
	struct npb_result r = { 0 };
	struct npb_state *s;
	double seconds = 0;
	size_t i, found = 0;

	MPI_Init(&argc, &argv);
	s = npb_kernel.create(&job);
	npb_repeat(&job, s, &r, &seconds, NULL, NULL);
	for (i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		if (strcmp(expected[i].name, npb_kernel.name))
			continue;
		test(&expected[i], job, &r);
		found++;
	}
	expect(found == 1, "the kernel is known to the test");
	test_same(&r);
	npb_kernel.destroy(s);
	free(r.value);
	MPI_Finalize();
	puts(failures ? "failed" : "ok");
	return !!failures;
}
