// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"

#define MAX_NUMBER 1000000ul

static const char letters[NPB_CLASSES + 1] = "SWAB";

static const char usage[] =
	"usage: npb_%s -c CLASS [options], one for all ranks\n"
	"  -c CLASS	how large: S, W, A or B\n"
	"  -n N		iterations (%u, %u, %u, %u); fewer than that may have no\n"
	"		official result, which is not verified then: null\n"
	"  -l N		repetitions, each verified (1; 0: until rank 0 gets SIGTERM,\n"
	"		which ends all after the iteration)\n"
	"  -P FILE	rank 0 replaces it with the number of iterations done\n"
	"  -o FILE	the result, also printed\n"
	"  -v		tell of each iteration\n"
	"Exit code 0: all repetitions are verified, 1: not, 2: wrong usage.\n";

static const char more[] =
	"\n%s\n\n"
	"The last line is JSON. \"result\" lists, exactly, numbers by which two\n"
	"runs on as many ranks can be compared: they are equal bit by bit.\n"
	"\"seconds\" is the time of all repetitions that were completed, \"mops\"\n"
	"are the operations of the literature per microsecond of that.\n";

char class_letter(unsigned int class)
{
	return letters[class];
}

static void help(FILE *f)
{
	const unsigned int *n = npb_kernel.iterations;
	char name[8];
	size_t i;

	for (i = 0; npb_kernel.name[i] && i < sizeof(name) - 1; i++)
		name[i] = npb_kernel.name[i] | 0x20;
	name[i] = '\0';
	fprintf(f, usage, name, n[NPB_S], n[NPB_W], n[NPB_A], n[NPB_B]);
}

static int wrong(const struct npb_job *job, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static int wrong(const struct npb_job *job, const char *fmt, ...)
{
	va_list ap;

	if (!job->rank) {
		va_start(ap, fmt);
		vfprintf(stderr, fmt, ap);
		va_end(ap);
		fputc('\n', stderr);
		help(stderr);
	}
	return 2;
}

static bool number(unsigned int *n, const char *s, unsigned long min)
{
	unsigned long v;
	char *end;

	errno = 0;
	v = strtoul(s, &end, 10);
	*n = v;
	return *s >= '0' && *s <= '9' && !*end && !errno && v >= min &&
	       v <= MAX_NUMBER;
}

static int check_ranks(const struct npb_job *job)
{
	unsigned int max = npb_kernel.max_ranks[job->class];

	if (job->ranks > max)
		return wrong(job, "%u ranks are too many for class %c: %u",
			     job->ranks, class_letter(job->class), max);
	if (!npb_kernel.any_ranks && job->ranks & (job->ranks - 1))
		return wrong(job, "%u ranks are no power of two", job->ranks);
	return -1;
}

static bool class_number(unsigned int *class, const char *s)
{
	const char *at = strlen(s) == 1 ? strchr(letters, *s) : NULL;

	*class = at ? at - letters : NPB_CLASSES;
	return at;
}

int options_parse(struct npb_options *o, struct npb_job *job, int argc,
		  char **argv)
{
	int c;

	*o = (struct npb_options){ .repetitions = 1 };
	job->class = NPB_CLASSES;
	job->iterations = 0;
	opterr = 0;
	while ((c = getopt(argc, argv, "c:n:l:P:o:vh")) != -1) {
		switch (c) {
		case 'c':
			if (!class_number(&job->class, optarg))
				return wrong(job, "no such class: %s", optarg);
			break;
		case 'n':
			if (!number(&job->iterations, optarg, 1))
				return wrong(job, "-n %s: not 1 to %lu", optarg,
					     MAX_NUMBER);
			break;
		case 'l':
			if (!number(&o->repetitions, optarg, 0))
				return wrong(job, "-l %s: not 0 to %lu", optarg,
					     MAX_NUMBER);
			break;
		case 'P':
			o->progress = optarg;
			break;
		case 'o':
			o->result = optarg;
			break;
		case 'v':
			o->verbose = true;
			break;
		case 'h':
			if (!job->rank) {
				help(stdout);
				printf(more, npb_kernel.about);
			}
			return 0;
		default:
			return wrong(job, "-%c is unknown, or lacks its value",
				     optopt);
		}
	}
	if (optind < argc)
		return wrong(job, "not an option: %s", argv[optind]);
	if (job->class == NPB_CLASSES)
		return wrong(job, "which class? (-c)");
	job->official = npb_kernel.iterations[job->class];
	if (!job->iterations)
		job->iterations = job->official;
	return check_ranks(job);
}
