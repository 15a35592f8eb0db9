// SPDX-License-Identifier: GPL-2.0
/*
 * Stockham's form: each pass reads one buffer and writes the other, in an order
 * that needs no reversal of bits. Some lines are transformed together, element
 * by element, so that the innermost loop is over neighbours from the first pass
 * on: a vector unit's delight. Their buffers stay in the cache.
 */
#include <math.h>
#include <stdlib.h>

#include "fft.h"

#define TOGETHER 16 /* lines; of two buffers 256 KiB for 512 elements */
#define PI 3.14159265358979323846

/* Real and imaginary parts apart: complex products need no shuffling. */
struct split {
	double *re, *im;
};

struct fft {
	size_t n;
	struct split root; /* e^(-2 pi i k / n) */
	struct split a, b;
	double *memory;
};

struct fft *fft_new(size_t n)
{
	const size_t line = n * TOGETHER;
	struct fft *f = malloc(sizeof(*f));
	size_t k;

	if (!f)
		return NULL;
	f->n = n;
	f->memory = malloc((4 * line + 2 * n) * sizeof(double));
	if (!f->memory) {
		free(f);
		return NULL;
	}
	f->a = (struct split){ f->memory, f->memory + line };
	f->b = (struct split){ f->memory + 2 * line, f->memory + 3 * line };
	f->root.re = f->memory + 4 * line;
	f->root.im = f->root.re + n;
	for (k = 0; k < n; k++) {
		f->root.re[k] = cos(2 * PI * k / n);
		f->root.im[k] = -sin(2 * PI * k / n);
	}
	return f;
}

void fft_free(struct fft *f)
{
	if (f)
		free(f->memory);
	free(f);
}

/*
 * One pass of radix 4: left elements are still to be combined, and each stands
 * for s neighbours that are treated alike: lines, and what is done already.
 */
static void pass4(const struct fft *f, size_t left, size_t s, struct split in,
		  struct split out)
{
	const size_t quarter = left / 4, step = f->n / left;
	size_t p, q;

	for (p = 0; p < quarter; p++) {
		const double w1r = f->root.re[p * step];
		const double w1i = f->root.im[p * step];
		const double w2r = f->root.re[2 * p * step];
		const double w2i = f->root.im[2 * p * step];
		const double w3r = f->root.re[3 * p * step];
		const double w3i = f->root.im[3 * p * step];
		const double *restrict xr = in.re + p * s;
		const double *restrict xi = in.im + p * s;
		double *restrict yr = out.re + 4 * p * s;
		double *restrict yi = out.im + 4 * p * s;
		const size_t h = quarter * s;

		/* Not seen by the compiler: what is written is apart, too. */
#pragma GCC ivdep
		for (q = 0; q < s; q++) {
			double pr = xr[q] + xr[q + 2 * h];
			double pi = xi[q] + xi[q + 2 * h];
			double mr = xr[q] - xr[q + 2 * h];
			double mi = xi[q] - xi[q + 2 * h];
			double sr = xr[q + h] + xr[q + 3 * h];
			double si = xi[q + h] + xi[q + 3 * h];
			/* -i times the other difference */
			double tr = xi[q + h] - xi[q + 3 * h];
			double ti = xr[q + 3 * h] - xr[q + h];
			double ur = mr + tr, ui = mi + ti;
			double vr = pr - sr, vi = pi - si;
			double zr = mr - tr, zi = mi - ti;

			yr[q] = pr + sr;
			yi[q] = pi + si;
			yr[q + s] = ur * w1r - ui * w1i;
			yi[q + s] = ur * w1i + ui * w1r;
			yr[q + 2 * s] = vr * w2r - vi * w2i;
			yi[q + 2 * s] = vr * w2i + vi * w2r;
			yr[q + 3 * s] = zr * w3r - zi * w3i;
			yi[q + 3 * s] = zr * w3i + zi * w3r;
		}
	}
}

/* The last pass, when the logarithm of n is odd: no roots but 1 */
static void pass2(size_t s, struct split in, struct split out)
{
	const double *restrict xr = in.re, *restrict xi = in.im;
	double *restrict yr = out.re, *restrict yi = out.im;
	size_t q;

#pragma GCC ivdep
	for (q = 0; q < s; q++) {
		yr[q] = xr[q] + xr[q + s];
		yi[q] = xi[q] + xi[q + s];
		yr[q + s] = xr[q] - xr[q + s];
		yi[q + s] = xi[q] - xi[q + s];
	}
}

/* Where lines are contiguous, whole lines; else, what is contiguous. */
static void gather(struct split to, const double complex *data, size_t n,
		   size_t step, size_t lines, size_t line_step)
{
	size_t j, l;

	if (step < line_step) {
		for (l = 0; l < lines; l++) {
			for (j = 0; j < n; j++) {
				to.re[j * lines + l] =
					creal(data[j * step + l * line_step]);
				to.im[j * lines + l] =
					cimag(data[j * step + l * line_step]);
			}
		}
		return;
	}
	for (j = 0; j < n; j++) {
		for (l = 0; l < lines; l++) {
			to.re[j * lines + l] =
				creal(data[j * step + l * line_step]);
			to.im[j * lines + l] =
				cimag(data[j * step + l * line_step]);
		}
	}
}

static void scatter(double complex *data, struct split from, size_t n,
		    size_t step, size_t lines, size_t line_step)
{
	size_t j, l;

	if (step < line_step) {
		for (l = 0; l < lines; l++)
			for (j = 0; j < n; j++)
				data[j * step + l * line_step] =
					CMPLX(from.re[j * lines + l],
					      from.im[j * lines + l]);
		return;
	}
	for (j = 0; j < n; j++)
		for (l = 0; l < lines; l++)
			data[j * step + l * line_step] =
				CMPLX(from.re[j * lines + l],
				      from.im[j * lines + l]);
}

static struct split swapped(struct split x)
{
	return (struct split){ x.im, x.re };
}

/* With both parts swapped before and after, it is the inverse. */
void fft_lines(struct fft *f, bool inverse, double complex *data, size_t step,
	       size_t lines, size_t line_step)
{
	size_t first, together, left, s;
	struct split in, out, t;

	for (first = 0; first < lines; first += together) {
		together = lines - first;
		if (together > TOGETHER)
			together = TOGETHER;
		in = f->a;
		out = f->b;
		gather(inverse ? swapped(in) : in, data + first * line_step,
		       f->n, step, together, line_step);
		for (left = f->n, s = together; left > 1;) {
			if (left == 2)
				pass2(s, in, out);
			else
				pass4(f, left, s, in, out);
			s *= left == 2 ? 2 : 4;
			left /= left == 2 ? 2 : 4;
			t = in;
			in = out;
			out = t;
		}
		scatter(data + first * line_step, inverse ? swapped(in) : in,
			f->n, step, together, line_step);
	}
}
