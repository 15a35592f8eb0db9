// SPDX-License-Identifier: GPL-2.0
/*
 * A kernel that computes nothing, for npb_fake: is what goes wrong between
 * repetitions and ranks noticed? With class S nothing does, with W the second
 * repetition has another result, with A rank 1, with B the specification.
 */
#include <stdlib.h>

#include "npb.h"

struct npb_state {
	const struct npb_job *job;
	int repetition; /* the first one is not timed */
};

static struct npb_state *create(const struct npb_job *job)
{
	struct npb_state *s = npb_alloc(1, sizeof(*s));

	s->job = job;
	return s;
}

static void destroy(struct npb_state *s)
{
	free(s);
}

static void begin(struct npb_state *s)
{
	s->repetition++;
}

static void iterate(struct npb_state *s, unsigned int i, struct npb_result *r)
{
	bool off = (s->job->class == NPB_W && s->repetition == 3) ||
		   (s->job->class == NPB_A && s->job->rank == 1);

	npb_add_real(r, off && i == 2 ? 0x1.0000000000001p0 : 1);
}

static enum npb_verdict verify(const struct npb_job *job,
			       const struct npb_result *r)
{
	if (npb_is_real(r, 0, "fake: it", job->class == NPB_B ? 2 : 1, 1e-9))
		return NPB_RIGHT;
	return NPB_WRONG;
}

static double operations(const struct npb_job *job)
{
	return job->iterations;
}

const struct npb_kernel npb_kernel = {
	.name = "FAKE",
	.about = "Nothing, and not always right.",
	.iterations = { 2, 2, 2, 2 },
	.max_ranks = { 4, 4, 4, 4 },
	.create = create,
	.destroy = destroy,
	.begin = begin,
	.iterate = iterate,
	.verify = verify,
	.operations = operations,
};
