// SPDX-License-Identifier: GPL-2.0
/*
 * FT: a partial differential equation (heat, in three dimensions, periodic)
 * solved in Fourier space. Random numbers are transformed once, and for each
 * time step multiplied by what that time does to each frequency, and
 * transformed back.
 *
 * Space is cut into slabs along z, frequencies into slabs along y: lines along
 * each axis are whole in one of the two, and everybody sends to everybody on
 * the way from one to the other.
 */
#include <complex.h>
#include <inttypes.h>
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "fft.h"
#include "npb.h"
#include "prng.h"

#define ALPHA 1e-6
#define PI 3.14159265358979323846
#define SAMPLES 1024 /* in a checksum */
#define FT_ERROR 1e-12
#define MAX_STEPS 20

static const struct {
	size_t nx, ny, nz;
} sizes[NPB_CLASSES] = {
	[NPB_S] = { 64, 64, 64 },
	[NPB_W] = { 128, 128, 32 },
	[NPB_A] = { 256, 256, 128 },
	[NPB_B] = { 512, 256, 256 },
};

/* Checksums after each step */
static const double sums[NPB_CLASSES][MAX_STEPS][2] = {
	[NPB_S] = {
		{ 5.546087004964e+02, 4.845363331978e+02 },
		{ 5.546385409189e+02, 4.865304269511e+02 },
		{ 5.546148406171e+02, 4.883910722336e+02 },
		{ 5.545423607415e+02, 4.901273169046e+02 },
		{ 5.544255039624e+02, 4.917475857993e+02 },
		{ 5.542683411902e+02, 4.932597244941e+02 },
	},
	[NPB_W] = {
		{ 5.673612178944e+02, 5.293246849175e+02 },
		{ 5.631436885271e+02, 5.282149986629e+02 },
		{ 5.594024089970e+02, 5.270996558037e+02 },
		{ 5.560698047020e+02, 5.260027904925e+02 },
		{ 5.530898991250e+02, 5.249400845633e+02 },
		{ 5.504159734538e+02, 5.239212247086e+02 },
	},
	[NPB_A] = {
		{ 5.046735008193e+02, 5.114047905510e+02 },
		{ 5.059412319734e+02, 5.098809666433e+02 },
		{ 5.069376896287e+02, 5.098144042213e+02 },
		{ 5.077892868474e+02, 5.101336130759e+02 },
		{ 5.085233095391e+02, 5.104914655194e+02 },
		{ 5.091487099959e+02, 5.107917842803e+02 },
	},
	[NPB_B] = {
		{ 5.177643571579e+02, 5.077803458597e+02 },
		{ 5.154521291263e+02, 5.088249431599e+02 },
		{ 5.146409228649e+02, 5.096208912659e+02 },
		{ 5.142378756213e+02, 5.101023387619e+02 },
		{ 5.139626667737e+02, 5.103976610617e+02 },
		{ 5.137423460082e+02, 5.105948019802e+02 },
		{ 5.135547056878e+02, 5.107404165783e+02 },
		{ 5.133910925466e+02, 5.108576573661e+02 },
		{ 5.132470705390e+02, 5.109577278523e+02 },
		{ 5.131197729984e+02, 5.110460304483e+02 },
		{ 5.130070319283e+02, 5.111252433800e+02 },
		{ 5.129070537032e+02, 5.111968077718e+02 },
		{ 5.128182883502e+02, 5.112616233064e+02 },
		{ 5.127393733383e+02, 5.113203605551e+02 },
		{ 5.126691062020e+02, 5.113735928093e+02 },
		{ 5.126064276004e+02, 5.114218460548e+02 },
		{ 5.125504076570e+02, 5.114656139760e+02 },
		{ 5.125002331720e+02, 5.115053595966e+02 },
		{ 5.124551951846e+02, 5.115415130407e+02 },
		{ 5.124146770029e+02, 5.115744692211e+02 },
	},
};

struct npb_state {
	const struct npb_job *job;
	size_t nx, ny, nz;
	size_t my_ny, my_nz; /* of a slab */
	struct fft *along_x, *along_y, *along_z;
	double *decay_x, *decay_y, *decay_z; /* of frequencies at a time */
	double complex *frequency;	     /* [nz][my_ny][nx], at time 0 */
	double complex *space;	/* [my_nz][ny][nx], and frequencies as above */
	double complex *packed; /* [ranks][my_nz][my_ny][nx], on its way */
};

static struct fft *new_fft(size_t n)
{
	struct fft *f = fft_new(n);

	if (!f)
		npb_fatal("no memory for transforms of %zu", n);
	return f;
}

static struct npb_state *create(const struct npb_job *job)
{
	struct npb_state *s = npb_alloc(1, sizeof(*s));
	size_t points;

	s->job = job;
	s->nx = sizes[job->class].nx;
	s->ny = sizes[job->class].ny;
	s->nz = sizes[job->class].nz;
	s->my_ny = s->ny / job->ranks;
	s->my_nz = s->nz / job->ranks;
	s->along_x = new_fft(s->nx);
	s->along_y = new_fft(s->ny);
	s->along_z = new_fft(s->nz);
	s->decay_x = npb_alloc(s->nx, sizeof(*s->decay_x));
	s->decay_y = npb_alloc(s->ny, sizeof(*s->decay_y));
	s->decay_z = npb_alloc(s->nz, sizeof(*s->decay_z));
	points = s->nx * s->ny * s->my_nz;
	s->frequency = npb_alloc(points, sizeof(*s->frequency));
	s->space = npb_alloc(points, sizeof(*s->space));
	if (job->ranks > 1)
		s->packed = npb_alloc(points, sizeof(*s->packed));
	return s;
}

static void destroy(struct npb_state *s)
{
	fft_free(s->along_x);
	fft_free(s->along_y);
	fft_free(s->along_z);
	free(s->decay_x);
	free(s->decay_y);
	free(s->decay_z);
	free(s->frequency);
	free(s->space);
	free(s->packed);
	free(s);
}

/* Real and imaginary parts alternate in the sequence. */
static void fill(struct npb_state *s)
{
	size_t points = s->nx * s->ny * s->my_nz, i;
	uint64_t seed = prng_skip(PRNG_SEED, 2 * points * s->job->rank);
	double re, im;

	for (i = 0; i < points; i++) {
		re = prng_unit(prng_next(&seed));
		im = prng_unit(prng_next(&seed));
		s->space[i] = CMPLX(re, im);
	}
}

/* Between [my_nz][ny][nx] and a block of [my_nz][my_ny][nx] for each rank. */
static void pack(struct npb_state *s, bool back)
{
	const size_t run = s->my_ny * s->nx;
	double complex *in_slab, *in_block;
	size_t k, z;

	for (k = 0; k < s->job->ranks; k++) {
		for (z = 0; z < s->my_nz; z++) {
			in_slab = s->space + (z * s->job->ranks + k) * run;
			in_block = s->packed + (k * s->my_nz + z) * run;
			memcpy(back ? in_slab : in_block,
			       back ? in_block : in_slab,
			       run * sizeof(*s->space));
		}
	}
}

/*
 * The blocks that come, in the order of ranks, are [nz][my_ny][nx] as they are,
 * and go back as they are. Where one process has all, both layouts are the same.
 */
static void exchange(const struct npb_state *s, const double complex *from,
		     double complex *to)
{
	const size_t block = s->my_nz * s->my_ny * s->nx;

	MPI_Alltoall(from, block, MPI_C_DOUBLE_COMPLEX, to, block,
		     MPI_C_DOUBLE_COMPLEX, MPI_COMM_WORLD);
}

static void to_frequency(struct npb_state *s)
{
	double complex *only = s->space;

	if (s->job->ranks > 1) {
		pack(s, false);
		exchange(s, s->packed, s->frequency);
	} else {
		s->space = s->frequency;
		s->frequency = only;
	}
}

static void to_space(struct npb_state *s)
{
	if (s->job->ranks > 1) {
		exchange(s, s->space, s->packed);
		pack(s, true);
	}
}

static void transform_xy(struct npb_state *s, bool inverse)
{
	const size_t plane = s->nx * s->ny;
	size_t z;

	for (z = 0; z < s->my_nz; z++) {
		fft_lines(s->along_x, inverse, s->space + z * plane, 1, s->ny,
			  s->nx);
		fft_lines(s->along_y, inverse, s->space + z * plane, s->nx,
			  s->nx, 1);
	}
}

static void transform_z(struct npb_state *s, bool inverse, double complex *data)
{
	const size_t plane = s->nx * s->my_ny;

	fft_lines(s->along_z, inverse, data, plane, plane, 1);
}

static void begin(struct npb_state *s)
{
	fill(s);
	transform_xy(s, false);
	to_frequency(s);
	transform_z(s, false, s->frequency);
}

/* From first of n frequencies: those from n / 2 on are negative. */
static void decay(double *to, size_t n, size_t first, size_t count,
		  unsigned int time)
{
	size_t i;
	double k;

	for (i = 0; i < count; i++) {
		k = first + i;
		if (first + i >= n / 2)
			k -= n;
		to[i] = exp(-4 * ALPHA * PI * PI * k * k * time);
	}
}

static void evolve(struct npb_state *s, unsigned int time)
{
	size_t x, y, z, at = 0;
	double yz;

	decay(s->decay_x, s->nx, 0, s->nx, time);
	decay(s->decay_y, s->ny, s->my_ny * s->job->rank, s->my_ny, time);
	decay(s->decay_z, s->nz, 0, s->nz, time);
	for (z = 0; z < s->nz; z++) {
		for (y = 0; y < s->my_ny; y++) {
			yz = s->decay_z[z] * s->decay_y[y];
			for (x = 0; x < s->nx; x++, at++)
				s->space[at] =
					s->decay_x[x] * yz * s->frequency[at];
		}
	}
}

static void checksum(const struct npb_state *s, struct npb_result *r)
{
	const double points = (double)s->nx * s->ny * s->nz;
	const size_t first = s->my_nz * s->job->rank;
	double sum[2] = { 0 };
	size_t j, x, y, z;

	for (j = 1; j <= SAMPLES; j++) {
		x = j % s->nx;
		y = 3 * j % s->ny;
		z = 5 * j % s->nz - first;
		if (z >= s->my_nz)
			continue;
		sum[0] += creal(s->space[(z * s->ny + y) * s->nx + x]);
		sum[1] += cimag(s->space[(z * s->ny + y) * s->nx + x]);
	}
	npb_sum(s->job, sum, 2);
	npb_add_real(r, sum[0] / points);
	npb_add_real(r, sum[1] / points);
}

static void iterate(struct npb_state *s, unsigned int i, struct npb_result *r)
{
	evolve(s, i);
	transform_z(s, true, s->space);
	to_space(s);
	transform_xy(s, true);
	checksum(s, r);
}

static bool is_sum(const struct npb_result *r, unsigned int step,
		   double complex official)
{
	double complex seen;

	if (r->count < 2 * step) {
		fprintf(stderr, "FT: checksum %u: there is none\n", step);
		return false;
	}
	seen = CMPLX(r->value[2 * step - 2].real, r->value[2 * step - 1].real);
	if (cabs(seen - official) <= FT_ERROR * cabs(official))
		return true;
	fprintf(stderr,
		"FT: checksum %u is %.15g + %.15gi, not %.15g + %.15gi\n", step,
		creal(seen), cimag(seen), creal(official), cimag(official));
	return false;
}

static enum npb_verdict verify(const struct npb_job *job,
			       const struct npb_result *r)
{
	const double(*sum)[2] = sums[job->class];
	bool right = true;
	unsigned int i;

	for (i = 1; i <= job->official && i <= job->iterations; i++)
		right &= is_sum(r, i, CMPLX(sum[i - 1][0], sum[i - 1][1]));
	return right ? NPB_RIGHT : NPB_WRONG;
}

/* What the literature found a transform to take; the first one counts, too. */
static double operations(const struct npb_job *job)
{
	double points = (double)sizes[job->class].nx * sizes[job->class].ny *
			sizes[job->class].nz;

	return points * (14.8157 + 7.19641 * log(points) +
			 (5.23518 + 7.21113 * log(points)) * job->iterations);
}

const struct npb_kernel npb_kernel = {
	.name = "FT",
	.about =
		"Fourier transforms in three dimensions: all ranks send to all,\n"
		"and much.",
	.iterations = { 6, 6, 6, MAX_STEPS },
	.max_ranks = { 64, 32, 128, 256 },
	.create = create,
	.destroy = destroy,
	.begin = begin,
	.iterate = iterate,
	.verify = verify,
	.operations = operations,
};
