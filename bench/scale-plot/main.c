// SPDX-License-Identifier: GPL-2.0
/*
 * scale-plot JSON SVG COMMAND < RUNS
 *
 * Reads what runs of live_restore -j have printed, prints how sizes and times
 * grow with the number of QPs, and writes that as JSON and as a plot. COMMAND
 * is noted in the JSON. Exit code 1 if something grows faster than linearly.
 */
#include "scale.h"

#include <stdlib.h>

#include "rxe_migr_image.h"

static const enum step judged[] = { STEP_dump, STEP_restore, STEP_blackout };

#define JUDGED (sizeof(judged) / sizeof(judged[0]))

/* the receive WQE that is being filled has its place in every QP record */
static size_t wqe_bytes(void)
{
	return sizeof(struct rxe_migr_recv_wqe);
}

/* MigrOS (USENIX ATC'21), Table 1 */
static void print_objects(const struct size *z)
{
	static const int paper[N_TYPES] = { 12, 48, 64, 271 };

	printf("bytes in the image      fixed  contents of rings  MigrOS\n");
	for (int i = 0; i < N_TYPES; i++) {
		size_t fixed = z->object[i].fixed;

		if (i == QP)
			fixed -= wqe_bytes();
		printf("%-20s %8zu %18zu %7d\n", type_names[i], fixed,
		       z->object[i].contents, paper[i]);
	}
	printf("%-20s %8zu %18s %7d\n", "QP and receive WQE",
	       z->object[QP].fixed, "", 823);
	printf("%-20s %8s %18s %7d\n", "SRQ", "-", "", 68);
}

static void print_times(const struct scale *s)
{
	printf("\n%6s %10s", "QPs", "bytes");
	for (int k = 0; k < N_STEPS; k++)
		printf(" %9s", step_names[k]);
	printf("   per QP: dump  restore blackout\n");
	for (unsigned int i = 0; i < s->sizes; i++) {
		const struct size *z = &s->size[i];

		printf("%6u %10zu", z->qps, z->image_bytes);
		for (int k = 0; k < N_STEPS; k++)
			printf(" %9.2f", z->ms[k]);
		printf("       ");
		for (size_t k = 0; k < JUDGED; k++)
			printf(" %8.3f", z->ms[judged[k]] / z->qps);
		printf("\n");
	}
	printf("milliseconds, medians of %u runs; flow: until every peer has an answer\n\n",
	       s->size[0].runs);
}

static void write_json(FILE *out, const struct scale *s, const char *command)
{
	fprintf(out, "{\n  \"command\": \"%s\",\n  \"objects\": [\n", command);
	for (int i = 0; i < N_TYPES; i++) {
		const struct object *o = &s->size[0].object[i];

		fprintf(out,
			"    {\"type\": \"%s\", \"fixed_bytes\": %zu, "
			"\"content_bytes\": %zu}%s\n",
			type_names[i], o->fixed, o->contents,
			i + 1 < N_TYPES ? "," : "");
	}
	fprintf(out,
		"  ],\n  \"receive_wqe_in_qp_bytes\": %zu,\n  \"sizes\": [\n",
		wqe_bytes());
	for (unsigned int i = 0; i < s->sizes; i++) {
		const struct size *z = &s->size[i];

		fprintf(out,
			"    {\"qps\": %u, \"runs\": %u, \"image_bytes\": %zu",
			z->qps, z->runs, z->image_bytes);
		for (int k = 0; k < N_STEPS; k++)
			fprintf(out, ", \"%s_ms\": %.3f, \"%s_spread\": %.3f",
				step_names[k], z->ms[k], step_names[k],
				z->spread[k]);
		fprintf(out, "}%s\n", i + 1 < s->sizes ? "," : "");
	}
	fprintf(out, "  ],\n  \"fits\": [\n");
	for (int k = 0; k < N_STEPS; k++) {
		struct line l = runs_fit(s, (enum step)k);

		fprintf(out,
			"    {\"step\": \"%s\", \"fixed_ms\": %.3f, "
			"\"per_qp_ms\": %.4f, \"linear\": %s}%s\n",
			step_names[k], l.fixed, l.per_qp,
			runs_linear(s, (enum step)k) ? "true" : "false",
			k + 1 < N_STEPS ? "," : "");
	}
	fprintf(out, "  ]\n}\n");
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
	static struct scale s;
	int bad = 0;
	FILE *f;

	if (argc != 4) {
		fprintf(stderr, "usage: scale-plot JSON SVG COMMAND < RUNS\n");
		return 2;
	}
	if (!runs_read(&s, stdin)) {
		fprintf(stderr, "scale-plot: no results\n");
		return 2;
	}

	print_objects(&s.size[0]);
	print_times(&s);
	for (size_t k = 0; k < JUDGED; k++) {
		struct line l = runs_fit(&s, judged[k]);
		bool linear = runs_linear(&s, judged[k]);

		printf("%-9s %8.2f ms + %.4f ms per QP: %s\n",
		       step_names[judged[k]], l.fixed, l.per_qp,
		       linear ? "linear" : "grows FASTER than linearly");
		bad |= !linear;
	}

	f = create(argv[1]);
	write_json(f, &s, argv[3]);
	fclose(f);
	f = create(argv[2]);
	plot(f, &s);
	fclose(f);
	return bad;
}
