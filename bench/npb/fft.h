/* SPDX-License-Identifier: GPL-2.0 */
/* Discrete Fourier transforms of many lines of the same length. */
#ifndef NPB_FFT_H
#define NPB_FFT_H

#include <complex.h>
#include <stdbool.h>
#include <stddef.h>

struct fft;

/* For lines of n elements, a power of two; NULL if there is no memory. */
struct fft *fft_new(size_t n);
void fft_free(struct fft *f);

/*
 * Transforms each of so many lines in place: element j of line l is
 * data[j * step + l * line_step]. The inverse is not divided by n.
 */
void fft_lines(struct fft *f, bool inverse, double complex *data, size_t step,
	       size_t lines, size_t line_step);

#endif
