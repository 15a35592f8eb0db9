// SPDX-License-Identifier: GPL-2.0
/* Transforms against the definition, without MPI. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "fft.h"
#include "prng.h"

#define PI 3.14159265358979323846

static int failures;

static double complex *random_numbers(size_t n)
{
	double complex *v = malloc(n * sizeof(*v));
	uint64_t seed = PRNG_SEED;
	double re, im;
	size_t i;

	for (i = 0; v && i < n; i++) {
		re = prng_unit(prng_next(&seed));
		im = prng_unit(prng_next(&seed));
		v[i] = CMPLX(re, im);
	}
	if (!v)
		abort();
	return v;
}

static double complex by_definition(const double complex *line, size_t n,
				    size_t step, size_t k, double sign)
{
	double complex sum = 0;
	size_t j;

	for (j = 0; j < n; j++)
		sum += line[j * step] * cexp(sign * 2 * PI * I *
					     (double)(j * k % n) / (double)n);
	return sum;
}

static void test(size_t n, size_t lines, size_t step, size_t line_step,
		 bool inverse)
{
	double complex *before = random_numbers(n * lines);
	double complex *after = random_numbers(n * lines);
	struct fft *f = fft_new(n);
	double error = 0, e;
	size_t l, k;

	fft_lines(f, inverse, after, step, lines, line_step);
	for (l = 0; l < lines; l++) {
		for (k = 0; k < n; k++) {
			e = cabs(after[l * line_step + k * step] -
				 by_definition(before + l * line_step, n, step,
					       k, inverse ? 1 : -1));
			error = fmax(error, e);
		}
	}
	if (error > 1e-11) {
		printf("FAILED: %zu lines of %zu, step %zu%s: error %g\n",
		       lines, n, step, inverse ? ", inverse" : "", error);
		failures++;
	}
	fft_lines(f, !inverse, after, step, lines, line_step);
	for (error = 0, k = 0; k < n * lines; k++)
		error = fmax(error, cabs(after[k] / n - before[k]));
	if (error > 1e-14) {
		printf("FAILED: there and back, %zu lines of %zu: error %g\n",
		       lines, n, error);
		failures++;
	}
	fft_free(f);
	free(before);
	free(after);
}

int main(void)
{
	const size_t lines[] = { 1, 3, 16, 21 };
	size_t n, i;

	for (n = 1; n <= 256; n *= 2) {
		for (i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
			test(n, lines[i], 1, n, false);
			test(n, lines[i], lines[i], 1, true);
		}
	}
	puts(failures ? "failed" : "ok");
	return !!failures;
}
