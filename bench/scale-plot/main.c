// SPDX-License-Identifier: GPL-2.0
/*
 * scale-plot JSON SVG COMMAND < RUNS
 *
 * Reads what runs of live_restore -j have printed, with -r and without, prints
 * how sizes and times grow with the number of QPs, and writes that as JSON and
 * as a plot. COMMAND is noted in the JSON. Exit code 1 if something grows faster
 * than linearly, as runs_linear() says, or if a run has failed: of that there is
 * only a line with "qps", "srq" and "failed": 1.
 */
#include "scale.h"

#include <stdlib.h>

/* RESUME only as a part of all: the first QPs already run, on the same processors */
static const enum step judged[] = { STEP_stop, STEP_dump,   STEP_restore,
				    STEP_map,  STEP_attach, STEP_blackout };

#define JUDGED (sizeof(judged) / sizeof(judged[0]))

static const enum step shown_per_qp[] = { STEP_dump, STEP_restore,
					  STEP_blackout };

#define SHOWN (sizeof(shown_per_qp) / sizeof(shown_per_qp[0]))

static void print_times(const struct scale *s, enum kind kind)
{
	printf("\nQPs with %s\n%6s %10s", kind_names[kind], "QPs", "bytes");
	for (int k = 0; k < N_STEPS; k++)
		printf(" %9s", step_names[k]);
	printf("   per QP: bytes     dump  restore blackout\n");
	for (unsigned int i = 0; i < s->sizes; i++) {
		const struct size *z = &s->size[i];

		printf("%6u %10zu", z->qps, z->image_bytes);
		for (int k = 0; k < N_STEPS; k++)
			printf(" %9.2f", z->ms[k]);
		printf("     %10.0f", (double)z->image_bytes / z->qps);
		for (size_t k = 0; k < SHOWN; k++)
			printf(" %8.3f", z->ms[shown_per_qp[k]] / z->qps);
		printf("\n");
	}
	printf("milliseconds, medians of %u runs, judged by the fastest; flow: until every peer has an answer\n\n",
	       s->size[0].runs);
}

/* Returns whether anything grows faster */
static bool judge(const struct scale *s)
{
	bool bad = !runs_bytes_linear(s);

	printf("%-9s %35s\n", "bytes",
	       bad ? "grow FASTER than linearly" : "linear");
	for (size_t k = 0; k < JUDGED; k++) {
		struct line l = runs_fit(s, judged[k]);
		bool linear = runs_linear(s, judged[k]);

		printf("%-9s %8.2f ms + %.4f ms per QP: %s\n",
		       step_names[judged[k]], l.fixed, l.per_qp,
		       linear ? "linear" : "grows FASTER than linearly");
		bad |= !linear;
	}
	return bad;
}

/* Returns whether there are any */
static bool failures(const struct scale *s, enum kind kind)
{
	if (s->failed)
		printf("\n%u runs FAILED of QPs with %s\n", s->failed,
		       kind_names[kind]);
	if (s->lacks)
		printf("there is no run of %u QPs with %s\n", s->lacks,
		       kind_names[kind]);
	return s->failed;
}

static void sizes_json(FILE *out, const struct scale *s, enum kind kind,
		       const char **comma)
{
	for (unsigned int i = 0; i < s->sizes; i++) {
		const struct size *z = &s->size[i];

		fprintf(out,
			"%s\n    {\"qps\": %u, \"srq\": %s, \"runs\": %u, "
			"\"failed_runs\": %u, \"image_bytes\": %zu",
			*comma, z->qps, kind == FROM_SRQ ? "true" : "false",
			z->runs, z->failed, z->image_bytes);
		for (int k = 0; k < N_STEPS; k++)
			fprintf(out,
				", \"%s_ms\": %.3f, \"%s_fastest\": %.3f, "
				"\"%s_spread\": %.3f",
				step_names[k], z->ms[k], step_names[k],
				z->run[k][0], step_names[k], z->spread[k]);
		fprintf(out, "}");
		*comma = ",";
	}
}

static void fits_json(FILE *out, const struct scale *s, enum kind kind,
		      const char **comma)
{
	for (int k = 0; k < N_STEPS && s->sizes; k++) {
		struct line l = runs_fit(s, (enum step)k);

		fprintf(out,
			"%s\n    {\"step\": \"%s\", \"srq\": %s, "
			"\"fixed_ms\": %.3f, \"per_qp_ms\": %.4f, "
			"\"linear\": %s}",
			*comma, step_names[k],
			kind == FROM_SRQ ? "true" : "false", l.fixed, l.per_qp,
			runs_linear(s, (enum step)k) ? "true" : "false");
		*comma = ",";
	}
}

static void write_json(FILE *out, const struct results *r, const char *command)
{
	const char *comma = "";

	fprintf(out, "{\n  \"command\": \"%s\",\n", command);
	fprintf(out, "  \"failed_runs\": %u,\n  \"limit\": %g,\n",
		r->kind[OWN_QUEUE].failed + r->kind[FROM_SRQ].failed, FASTER);
	objects_json(out, r);
	fprintf(out, "  \"sizes\": [");
	for (int kind = 0; kind < N_KINDS; kind++)
		sizes_json(out, &r->kind[kind], (enum kind)kind, &comma);
	fprintf(out, "\n  ],\n  \"fits\": [");
	comma = "";
	for (int kind = 0; kind < N_KINDS; kind++)
		fits_json(out, &r->kind[kind], (enum kind)kind, &comma);
	fprintf(out, "\n  ]\n}\n");
}

static FILE *create(const char *name)
{
	FILE *f = fopen(name, "w");

	if (!f) {
		perror(name);
		exit(2);
	}
	return f;
}

int main(int argc, char **argv)
{
	static struct results r;
	bool bad = false;
	int sizes;
	FILE *f;

	if (argc != 4) {
		fprintf(stderr, "usage: scale-plot JSON SVG COMMAND < RUNS\n");
		return 2;
	}
	sizes = runs_read(&r, stdin);
	if (sizes <= 0) {
		fprintf(stderr, "scale-plot: no results\n");
		return 2;
	}

	objects_print(&r);
	for (int kind = 0; kind < N_KINDS; kind++) {
		bad |= failures(&r.kind[kind], (enum kind)kind);
		if (!r.kind[kind].sizes)
			continue;
		print_times(&r.kind[kind], (enum kind)kind);
		bad |= judge(&r.kind[kind]);
	}

	f = create(argv[1]);
	write_json(f, &r, argv[3]);
	fclose(f);
	f = create(argv[2]);
	plot(f, &r);
	fclose(f);
	return bad;
}
