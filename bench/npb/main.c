// SPDX-License-Identifier: GPL-2.0
/*
 * npb_is, npb_ep, npb_cg, npb_mg, npb_ft: the parallel kernels of the NAS
 * benchmarks, for migration in mid-run. All that is not of one kernel: rounds,
 * progress, and what is told of them.
 */
#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"

struct run {
	struct npb_options options;
	struct npb_job job;
	struct npb_result first, now; /* of repetitions */
	unsigned int repetitions;     /* completed */
	uint64_t iterations;	      /* of all repetitions */
	double seconds;
	bool stopped;
	enum npb_verdict verdict;
};

static volatile sig_atomic_t stop_signal;

static void on_signal(int sig)
{
	stop_signal = sig;
}

/* Whoever reads the file sees a whole number, and later ones only grow. */
static void write_progress(const struct run *r)
{
	const char *path = r->options.progress;
	char tmp[PATH_MAX];
	FILE *f;

	if (!path || r->job.rank)
		return;
	if (snprintf(tmp, sizeof(tmp), "%s.tmp", path) >= (int)sizeof(tmp))
		npb_fatal("%s: too long a name", path);
	f = fopen(tmp, "we");
	if (!f)
		npb_fatal("%s: %s", tmp, strerror(errno));
	fprintf(f, "%llu\n", (unsigned long long)r->iterations);
	if (fclose(f) || rename(tmp, path))
		npb_fatal("%s: %s", path, strerror(errno));
}

/* Whether to stop is rank 0's to say, or they would not stop together. */
static bool after_iteration(void *arg, unsigned int i)
{
	struct run *r = arg;
	int stop;

	r->iterations++;
	write_progress(r);
	if (r->options.verbose && !r->job.rank) {
		printf("%s: iteration %u of %u", npb_kernel.name, i,
		       r->job.iterations);
		if (r->options.repetitions != 1)
			printf(", repetition %u", r->repetitions + 1);
		putchar('\n');
		fflush(stdout);
	}
	if (r->options.repetitions)
		return false;
	stop = stop_signal;
	MPI_Bcast(&stop, 1, MPI_INT, 0, MPI_COMM_WORLD);
	r->stopped = stop;
	return stop;
}

/* Pages, connections: what is there only after the first time is not timed. */
static void warm_up(const struct run *r, struct npb_state *s)
{
	struct npb_job one = r->job;
	struct npb_result none = { 0 };
	double seconds = 0;

	one.iterations = 1;
	npb_repeat(&one, s, &none, &seconds, NULL, NULL);
	free(none.value);
}

/* Each rank has computed the result, of what it got. Is it rank 0's? */
static bool same_as_rank_0(const struct run *r)
{
	struct npb_result theirs = { .count = r->now.count };
	bool same;

	MPI_Bcast(&theirs.count, sizeof(theirs.count), MPI_BYTE, 0,
		  MPI_COMM_WORLD);
	theirs.value = npb_alloc(theirs.count, sizeof(*theirs.value));
	if (!r->job.rank)
		memcpy(theirs.value, r->now.value,
		       theirs.count * sizeof(*theirs.value));
	MPI_Bcast(theirs.value, theirs.count * sizeof(*theirs.value), MPI_BYTE,
		  0, MPI_COMM_WORLD);
	same = npb_same(&theirs, &r->now);
	free(theirs.value);
	return same;
}

/*
 * What has just ended is as good as the specification, and the first
 * repetition, and the other ranks say.
 */
static void judge(struct run *r)
{
	int wrong = 0;

	if (!same_as_rank_0(r)) {
		fprintf(stderr,
			"%s: repetition %u has another result on rank %u: ",
			npb_kernel.name, r->repetitions, r->job.rank);
		wrong = 1;
	} else if (!npb_same(&r->first, &r->now)) {
		fprintf(stderr, "%s: repetition %u is not as the first: ",
			npb_kernel.name, r->repetitions);
		wrong = 1;
	}
	if (wrong) {
		npb_print(stderr, &r->now);
		fputc('\n', stderr);
	}
	MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_MAX,
		      MPI_COMM_WORLD);
	if (wrong)
		r->verdict = NPB_WRONG;
	else if (!r->job.rank && r->verdict != NPB_WRONG)
		r->verdict = npb_kernel.verify(&r->job, &r->now);
}

static void run(struct run *r, struct npb_state *s)
{
	unsigned int wanted = r->options.repetitions;

	warm_up(r, s);
	write_progress(r);
	while (!r->stopped && (!wanted || r->repetitions < wanted)) {
		if (!npb_repeat(&r->job, s, &r->now, &r->seconds,
				after_iteration, r))
			break;
		if (!r->repetitions++)
			npb_copy(&r->first, &r->now);
		judge(r);
	}
	MPI_Bcast(&r->verdict, 1, MPI_INT, 0, MPI_COMM_WORLD);
}

static void tell(FILE *f, const struct run *r)
{
	static const char *const verdicts[] = {
		[NPB_RIGHT] = "true",
		[NPB_WRONG] = "false",
		[NPB_UNKNOWN] = "null",
	};
	double mops = npb_kernel.operations(&r->job) * r->repetitions * 1e-6;

	fprintf(f,
		"{\"kernel\":\"%s\",\"class\":\"%c\",\"ranks\":%u,"
		"\"iterations\":%u,\"repetitions\":%u,\"verified\":%s,"
		"\"seconds\":%.6f,\"mops\":%.3f,\"result\":",
		npb_kernel.name, class_letter(r->job.class), r->job.ranks,
		r->job.iterations, r->repetitions, verdicts[r->verdict],
		r->seconds, r->seconds > 0 ? mops / r->seconds : 0);
	npb_print(f, &r->first);
	fputs("}\n", f);
}

/* Returns whether everybody who wants the result has it. */
static bool give_result(const struct run *r)
{
	const char *path = r->options.result;
	bool failed;
	FILE *f;

	if (r->verdict == NPB_UNKNOWN)
		fprintf(stderr, "%s: no official result was reached\n",
			npb_kernel.name);
	tell(stdout, r);
	failed = fflush(stdout);
	if (!path)
		return !failed;
	f = fopen(path, "we");
	if (f) {
		tell(f, r);
		failed |= ferror(f);
		failed |= !!fclose(f);
	}
	if (!f || failed)
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
	return f && !failed;
}

int main(int argc, char **argv)
{
	const struct sigaction act = { .sa_handler = on_signal,
				       .sa_flags = SA_RESTART };
	struct run r = { .verdict = NPB_UNKNOWN };
	struct npb_state *s;
	int rank, ranks, code;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	r.job.rank = rank;
	r.job.ranks = ranks;
	code = options_parse(&r.options, &r.job, argc, argv);
	if (code < 0) {
		if (!rank && !r.options.repetitions)
			sigaction(SIGTERM, &act, NULL);
		s = npb_kernel.create(&r.job);
		run(&r, s);
		npb_kernel.destroy(s);
		code = r.verdict != NPB_RIGHT;
		if (!rank && !give_result(&r))
			code = 1;
	}
	free(r.first.value);
	free(r.now.value);
	MPI_Finalize();
	return code;
}
