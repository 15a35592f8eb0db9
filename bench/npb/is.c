// SPDX-License-Identifier: GPL-2.0
/*
 * IS, integer sort: the rank of each of many small integers, that is how many
 * are less. Keys go to the process that has their range (all to all), and are
 * counted there. Two keys change before each iteration.
 */
#include <inttypes.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "npb.h"
#include "prng.h"

#define ITERATIONS 10 /* also how far apart the two changed keys are */
#define PROBES 5
#define LOG_BUCKETS 10
#define BUCKETS (1 << LOG_BUCKETS)

static const struct {
	unsigned int log_keys, log_max;
} sizes[NPB_CLASSES] = {
	[NPB_S] = { 16, 11 },
	[NPB_W] = { 20, 16 },
	[NPB_A] = { 23, 19 },
	[NPB_B] = { 25, 21 },
};

/*
 * Of five keys the ranks are known. Each iteration makes one more key small and
 * one large: ranks of small keys go up by one, those of large keys down.
 */
static const struct probe {
	int64_t place, rank;
	int drift, since;
} probes[NPB_CLASSES][PROBES] = {
	[NPB_S] = {
		{ 48427, 0, 1, 0 },
		{ 17148, 18, 1, 0 },
		{ 23627, 346, 1, 0 },
		{ 62548, 64917, -1, 0 },
		{ 4431, 65463, -1, 0 },
	},
	[NPB_W] = {
		{ 357773, 1249, 1, 2 },
		{ 934767, 11698, 1, 2 },
		{ 875723, 1039987, -1, 0 },
		{ 898999, 1043896, -1, 0 },
		{ 404505, 1048018, -1, 0 },
	},
	[NPB_A] = {
		{ 2112377, 104, 1, 1 },
		{ 662041, 17523, 1, 1 },
		{ 5336171, 123928, 1, 1 },
		{ 3642833, 8288932, -1, 1 },
		{ 4250760, 8388264, -1, 1 },
	},
	[NPB_B] = {
		{ 41869, 33422937, -1, 0 },
		{ 812306, 10244, 1, 0 },
		{ 5102857, 59149, 1, 0 },
		{ 18232239, 33135281, -1, 0 },
		{ 26860214, 99, 1, 0 },
	},
};

struct npb_state {
	const struct npb_job *job;
	int64_t first, keys;	   /* of all keys, those here */
	unsigned int bucket_shift; /* a key's bucket is key >> this */
	int32_t *key, *sorted; /* sorted by bucket, thus by rank they go to */
	int *to_count, *to_start, *from_count, *from_start; /* by rank */

	/* What this process counts: keys [low, high), and how many are less. */
	int32_t *mine;
	int64_t mine_count, mine_room, less;
	int32_t low, high;
	int32_t *below; /* [key - low]: how many keys are <= key */

	int64_t (*found)[PROBES]; /* by iteration; on the rank that has it */

	/* in all iterations: prints of keys that went, less of those that came; how many
	   came to the wrong rank */
	uint64_t lost;
	int64_t strange;
};

static struct npb_state *create(const struct npb_job *job)
{
	struct npb_state *s = npb_alloc(1, sizeof(*s));
	int64_t all = INT64_C(1) << sizes[job->class].log_keys;
	unsigned int log_max = sizes[job->class].log_max;

	s->job = job;
	s->first = all * job->rank / job->ranks;
	s->keys = all * (job->rank + 1) / job->ranks - s->first;
	s->bucket_shift = log_max - LOG_BUCKETS;
	s->key = npb_alloc(s->keys, sizeof(*s->key));
	s->sorted = npb_alloc(s->keys, sizeof(*s->sorted));
	s->to_count = npb_alloc(job->ranks, sizeof(int));
	s->to_start = npb_alloc(job->ranks, sizeof(int));
	s->from_count = npb_alloc(job->ranks, sizeof(int));
	s->from_start = npb_alloc(job->ranks, sizeof(int));
	s->below = npb_alloc((size_t)1 << log_max, sizeof(*s->below));
	s->found = npb_alloc(job->iterations, sizeof(*s->found));
	return s;
}

static void destroy(struct npb_state *s)
{
	free(s->key);
	free(s->sorted);
	free(s->to_count);
	free(s->to_start);
	free(s->from_count);
	free(s->from_start);
	free(s->mine);
	free(s->below);
	free(s->found);
	free(s);
}

/* Sums of four random numbers, scaled so that all keys are less than max. */
static void prepare(struct npb_state *s)
{
	unsigned int shift = PRNG_BITS + 2 - sizes[s->job->class].log_max;
	uint64_t seed = prng_skip(PRNG_SEED, 4 * s->first), sum;
	int64_t i;
	int k;

	for (i = 0; i < s->keys; i++) {
		sum = 0;
		for (k = 0; k < 4; k++)
			sum += prng_next(&seed);
		s->key[i] = sum >> shift;
	}
	memset(s->found, 0, s->job->iterations * sizeof(*s->found));
	s->lost = s->strange = 0;
}

static uint64_t print_of(int32_t key)
{
	uint64_t k = (uint64_t)key + 1;

	return k * k * PRNG_FACTOR;
}

static void change(struct npb_state *s, int64_t place, int32_t key)
{
	place -= s->first;
	if (place >= 0 && place < s->keys)
		s->key[place] = key;
}

/*
 * How many keys are in each bucket, here and everywhere. The five keys that are
 * looked for travel with the latter: elsewhere they are 0.
 */
static void count_buckets(const struct npb_state *s, int64_t *here,
			  int64_t *everywhere)
{
	int64_t place, i;
	unsigned int k;

	memset(here, 0, (BUCKETS + PROBES) * sizeof(*here));
	for (i = 0; i < s->keys; i++)
		here[s->key[i] >> s->bucket_shift]++;
	for (k = 0; k < PROBES; k++) {
		place = probes[s->job->class][k].place - s->first;
		if (place >= 0 && place < s->keys)
			here[BUCKETS + k] = s->key[place];
	}
	MPI_Allreduce(here, everywhere, BUCKETS + PROBES, MPI_INT64_T, MPI_SUM,
		      MPI_COMM_WORLD);
}

/*
 * Each rank gets whole buckets, about as many keys as the others. Fills in what
 * goes where, and which keys are counted here.
 */
static void share_buckets(struct npb_state *s, const int64_t *here,
			  const int64_t *everywhere)
{
	const struct npb_job *job = s->job;
	int64_t all = INT64_C(1) << sizes[job->class].log_keys;
	int64_t before = 0, start = 0;
	unsigned int b = 0, k;

	for (k = 0; k < job->ranks; k++) {
		if (k == job->rank) {
			s->less = before;
			s->low = b << s->bucket_shift;
		}
		s->to_start[k] = start;
		while (b < BUCKETS && (k == job->ranks - 1 ||
				       before < all * (k + 1) / job->ranks)) {
			start += here[b];
			before += everywhere[b++];
		}
		s->to_count[k] = start - s->to_start[k];
		if (k == job->rank) {
			s->high = b << s->bucket_shift;
			s->mine_count = before - s->less;
		}
	}
	if (s->mine_count > s->mine_room) {
		free(s->mine);
		s->mine_room = s->mine_count + s->mine_count / 8;
		s->mine = npb_alloc(s->mine_room, sizeof(*s->mine));
	}
}

static void exchange(struct npb_state *s, const int64_t *here)
{
	int64_t next[BUCKETS], i, at = 0;
	unsigned int k;

	for (k = 0; k < BUCKETS; k++) {
		next[k] = at;
		at += here[k];
	}
	for (i = 0; i < s->keys; i++) {
		s->sorted[next[s->key[i] >> s->bucket_shift]++] = s->key[i];
		s->lost += print_of(s->key[i]);
	}

	MPI_Alltoall(s->to_count, 1, MPI_INT, s->from_count, 1, MPI_INT,
		     MPI_COMM_WORLD);
	for (k = 0, at = 0; k < s->job->ranks; k++) {
		s->from_start[k] = at;
		at += s->from_count[k];
	}
	if (at != s->mine_count)
		npb_fatal("IS: %" PRId64 " keys came, not %" PRId64, at,
			  s->mine_count);
	/* Most keys are those of the last time: what does not come is not to be these. */
	memset(s->mine, -1, s->mine_count * sizeof(*s->mine));
	MPI_Alltoallv(s->sorted, s->to_count, s->to_start, MPI_INT32_T, s->mine,
		      s->from_count, s->from_start, MPI_INT32_T,
		      MPI_COMM_WORLD);
}

static bool is_mine(const struct npb_state *s, int32_t key)
{
	return key >= s->low && key < s->high;
}

static void count_keys(struct npb_state *s)
{
	int32_t sum = s->less, i;
	int32_t range = s->high - s->low;

	memset(s->below, 0, range * sizeof(*s->below));
	for (i = 0; i < s->mine_count; i++) {
		s->lost -= print_of(s->mine[i]);
		if (is_mine(s, s->mine[i]))
			s->below[s->mine[i] - s->low]++;
		else
			s->strange++;
	}
	for (i = 0; i < range; i++) {
		sum += s->below[i];
		s->below[i] = sum;
	}
}

/* How many keys are less: those that are not more than the key before. */
static int64_t rank_of(const struct npb_state *s, int32_t key)
{
	if (key == s->low)
		return s->less;
	return s->below[key - s->low - 1];
}

static void probe(struct npb_state *s, unsigned int i, const int64_t *key)
{
	unsigned int k;

	for (k = 0; k < PROBES; k++)
		if (is_mine(s, key[k]))
			s->found[i - 1][k] = rank_of(s, key[k]);
}

static void iterate(struct npb_state *s, unsigned int i, struct npb_result *r)
{
	int64_t here[BUCKETS + PROBES], everywhere[BUCKETS + PROBES];
	const unsigned int max = 1u << sizes[s->job->class].log_max;

	(void)r;
	change(s, i, i % max);
	change(s, i + ITERATIONS, max - 1 - (i - 1) % max);
	count_buckets(s, here, everywhere);
	share_buckets(s, here, everywhere);
	exchange(s, here);
	count_keys(s);
	probe(s, i, everywhere + BUCKETS);
}

/*
 * Puts each key where its rank says. How many are out of order then, and a
 * fingerprint of keys and places that does not depend on who had which.
 */
static int64_t place_keys(struct npb_state *s, uint64_t *fingerprint)
{
	int32_t *placed = npb_alloc(s->mine_count, sizeof(*placed));
	int64_t wrong = 0, i, at;

	memset(placed, -1, s->mine_count * sizeof(*placed));
	for (i = 0; i < s->mine_count; i++) {
		if (!is_mine(s, s->mine[i]))
			continue; /* it has been counted */
		at = --s->below[s->mine[i] - s->low] - s->less;
		if (at < 0 || at >= s->mine_count || placed[at] != -1)
			wrong++;
		else
			placed[at] = s->mine[i];
	}
	*fingerprint = 0;
	for (i = 0; i < s->mine_count; i++) {
		wrong += placed[i] < (i ? placed[i - 1] : s->low);
		*fingerprint += (2 * (uint64_t)(s->less + i) + 1) *
				PRNG_FACTOR * (placed[i] + 1);
	}
	wrong += s->mine_count && placed[s->mine_count - 1] >= s->high;
	free(placed);
	return wrong;
}

static void finish(struct npb_state *s, struct npb_result *r)
{
	const unsigned int n = s->job->iterations;
	uint64_t print, prints;
	int64_t wrong = s->strange + place_keys(s, &print);
	unsigned int i, k;

	MPI_Allreduce(MPI_IN_PLACE, s->found, n * PROBES, MPI_INT64_T, MPI_SUM,
		      MPI_COMM_WORLD);
	MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT64_T, MPI_SUM,
		      MPI_COMM_WORLD);
	MPI_Allreduce(&print, &prints, 1, MPI_UINT64_T, MPI_SUM,
		      MPI_COMM_WORLD);
	MPI_Allreduce(MPI_IN_PLACE, &s->lost, 1, MPI_UINT64_T, MPI_SUM,
		      MPI_COMM_WORLD);
	npb_add_integer(r, wrong + (s->lost != 0));
	npb_add_integer(r, prints);
	for (i = 0; i < n; i++)
		for (k = 0; k < PROBES; k++)
			npb_add_integer(r, s->found[i][k]);
}

static enum npb_verdict verify(const struct npb_job *job,
			       const struct npb_result *r)
{
	bool right = npb_is_integer(r, 0, "IS: keys lost, or out of order", 0);
	const struct probe *p;
	unsigned int i, k;
	char what[64];

	for (i = 1; i <= job->iterations && i <= ITERATIONS; i++) {
		for (k = 0; k < PROBES; k++) {
			p = &probes[job->class][k];
			snprintf(what, sizeof(what),
				 "IS: iteration %u, rank of key %u", i, k);
			right &= npb_is_integer(
				r, 2 + (i - 1) * PROBES + k, what,
				p->rank + p->drift * ((int)i - p->since));
		}
	}
	return right ? NPB_RIGHT : NPB_WRONG;
}

static double operations(const struct npb_job *job)
{
	return (double)(INT64_C(1) << sizes[job->class].log_keys) *
	       job->iterations;
}

const struct npb_kernel npb_kernel = {
	.name = "IS",
	.about =
		"Integers sorted by counting: all ranks send to all, some more\n"
		"than others.",
	.iterations = { ITERATIONS, ITERATIONS, ITERATIONS, ITERATIONS },
	.max_ranks = { 1024, 1024, 1024, 1024 },
	.any_ranks = true,
	.create = create,
	.destroy = destroy,
	.prepare = prepare,
	.iterate = iterate,
	.finish = finish,
	.verify = verify,
	.operations = operations,
};
