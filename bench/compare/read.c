// SPDX-License-Identifier: GPL-2.0
#include "report.h"

#include <string.h>

const struct way ways[] = {
	{ "protocol", "rxe", "protocol, rdma_rxe", "#3367a8" },
	{ "none", "null", "no layer", "#bbbbbb" },
	{ "layer", "null", "layer", "#777777" },
	{ "moved", "null", "layer, after a migration", "#333333" },
	{ "none", "rxe", "librxe, no layer", "#e8c9a8" },
	{ "layer", "rxe", "layer, stock rdma_rxe", "#b5651d" },
	{ "moved", "rxe", "the same, after a migration", "#6e3c10" },
	{ "none", "mlx5", "libmlx5, no layer", "#a9d8bf" },
	{ "layer", "mlx5", "layer, mlx5soft", "#2b8a57" },
	{ "moved", "mlx5", "the same, after a migration", "#134a2c" },
};
const unsigned int n_ways = sizeof(ways) / sizeof(ways[0]);

const char *text_of(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

double number_of(const json_t *object, const char *name)
{
	return json_number_value(json_object_get(object, name));
}

static bool has(const json_t *object, const char *const *names,
		bool (*is)(const json_t *))
{
	for (; *names; names++)
		if (!is(json_object_get(object, *names))) {
			fprintf(stderr,
				"compare-report: no %s, or a wrong one, in: ",
				*names);
			json_dumpf(object, stderr,
				   JSON_COMPACT | JSON_ENCODE_ANY);
			fputc('\n', stderr);
			return false;
		}
	return true;
}

static bool is_text(const json_t *j)
{
	return json_is_string(j);
}

static bool is_number(const json_t *j)
{
	return json_is_number(j);
}

static bool is_array(const json_t *j)
{
	return json_is_array(j);
}

static bool is_object(const json_t *j)
{
	return json_is_object(j);
}

static bool all_have(const json_t *array, const char *const *texts,
		     const char *const *numbers)
{
	size_t i;
	json_t *o;

	json_array_foreach (array, i, o)
		if (!has(o, texts, is_text) || !has(o, numbers, is_number))
			return false;
	return true;
}

#define NAMES(...) ((const char *const[]){ __VA_ARGS__, NULL })

static bool is_report(const json_t *r)
{
	const json_t *t, *tests = json_object_get(r, "tests");
	size_t i;

	if (!has(r, NAMES("tests", "timelines", "omitted"), is_array) ||
	    !has(r, NAMES("link", "origin"), is_object) ||
	    !has(r, NAMES("command"), is_text) ||
	    !has(r, NAMES("rounds"), is_number))
		return false;
	json_array_foreach (tests, i, t) {
		if (!strcmp(text_of(t, "unit") ? text_of(t, "unit") : "",
			    "ms") &&
		    !has(t, NAMES("link_kib"), is_number))
			return false;
	}
	json_array_foreach (json_object_get(r, "timelines"), i, t)
		if (!has(t, NAMES("bytes"), is_array))
			return false;
	return has(json_object_get(r, "link"), NAMES("bits_per_s", "delay_us"),
		   is_number) &&
	       has(json_object_get(r, "origin"),
		   NAMES("date", "commit", "machine", "host_kernel",
			 "accelerator"),
		   is_text) &&
	       has(json_object_get(r, "origin"),
		   NAMES("processors", "memory_mib", "busy"), is_number) &&
	       all_have(tests,
			NAMES("name", "figure", "way", "device", "series",
			      "part", "unit"),
			NAMES("x", "value", "low", "high", "runs",
			      "failed_runs", "spread")) &&
	       all_have(json_object_get(r, "timelines"),
			NAMES("way", "device", "series"),
			NAMES("slot_ms", "slots_before")) &&
	       all_have(json_object_get(r, "omitted"),
			NAMES("figure", "way", "device", "reason"),
			NAMES(NULL));
}

json_t *report_read(const char *file)
{
	json_error_t error;
	json_t *r = json_load_file(file, 0, &error);

	if (!r) {
		fprintf(stderr, "compare-report: %s: line %d: %s\n", file,
			error.line, error.text);
		return NULL;
	}
	if (!is_report(r)) {
		json_decref(r);
		return NULL;
	}
	return r;
}

static bool member_is(const json_t *t, const char *name, const char *value)
{
	return !strcmp(text_of(t, name), value);
}

const json_t *find_test(const json_t *report, const char *figure,
			const struct way *w, const char *series, double x,
			const char *part)
{
	size_t i;
	json_t *t;

	json_array_foreach (json_object_get(report, "tests"), i, t)
		if (member_is(t, "figure", figure) &&
		    member_is(t, "way", w->way) &&
		    member_is(t, "device", w->device) &&
		    member_is(t, "series", series) && number_of(t, "x") == x &&
		    member_is(t, "part", part))
			return t;
	return NULL;
}

static void add_series(struct axes *a, const char *series)
{
	for (unsigned int i = 0; i < a->n_series; i++)
		if (!strcmp(a->series[i], series))
			return;
	if (a->n_series < MOST)
		a->series[a->n_series++] = series;
}

static void add_x(struct axes *a, double x)
{
	unsigned int i;

	for (i = 0; i < a->n_x && a->x[i] < x; i++)
		;
	if ((i < a->n_x && a->x[i] == x) || a->n_x == MOST)
		return;
	memmove(&a->x[i + 1], &a->x[i], (a->n_x++ - i) * sizeof(a->x[0]));
	a->x[i] = x;
}

bool axes_of(const json_t *report, const char *figure, struct axes *a)
{
	size_t i;
	json_t *t;

	*a = (struct axes){ 0 };
	json_array_foreach (json_object_get(report, "tests"), i, t)
		if (member_is(t, "figure", figure)) {
			add_series(a, text_of(t, "series"));
			add_x(a, number_of(t, "x"));
		}
	return a->n_x;
}

double link_ms(const json_t *report, double bytes)
{
	const json_t *link = json_object_get(report, "link");

	return bytes * 8000 / number_of(link, "bits_per_s");
}
