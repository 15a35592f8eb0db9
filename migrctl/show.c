// SPDX-License-Identifier: GPL-2.0
#include "show.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "note.h"

/* What others have said is not for a terminal as it is. */
static const char *text(const json_t *o, const char *key)
{
	static char clean[8][512];
	static int next;
	const char *t = json_string_value(json_object_get(o, key));
	char *c = clean[next = (next + 1) % 8];

	snprintf(c, sizeof(clean[0]), "%s", t ? t : "");
	note_clean(c);
	return c;
}

static long long number(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

static double real(const json_t *o, const char *key)
{
	return json_number_value(json_object_get(o, key));
}

void show_nothing(const json_t *said)
{
	(void)said;
}

void show_list(const json_t *said)
{
	const json_t *o;
	size_t i;

	json_array_foreach (json_object_get(said, "containers"), i, o) {
		if (number(o, "pid"))
			printf("%-14s runs, pid %lld\n", text(o, "name"),
			       number(o, "pid"));
		else
			printf("%-14s does not run here\n", text(o, "name"));
	}
}

void show_status(const json_t *said)
{
	const json_t *o;
	size_t i;

	json_array_foreach (json_object_get(said, "moves"), i, o)
		printf("%-14s %s %s: %s%s%s%s\n", text(o, "name"),
		       !strcmp(text(o, "role"), "source") ? "to" : "from",
		       text(o, "peer"), text(o, "state"),
		       json_is_false(json_object_get(o, "works"))
			       ? ", nobody works at it"
			       : "",
		       *text(o, "reason") ? ": " : "", text(o, "reason"));
}

/* as this host's clock has it; a log can have been written by whatever there is */
static void show_time(time_t at)
{
	struct tm *t = localtime(&at);
	char when[64];

	if (t && strftime(when, sizeof(when), "%F %T", t))
		printf("%s", when);
	else
		printf("?");
}

void show_log(const json_t *said)
{
	const json_t *o;
	size_t i;

	json_array_foreach (json_object_get(said, "moves"), i, o) {
		show_time((time_t)number(o, "time"));
		printf(" %s %s to %s: runs on %s%s%s\n", text(o, "name"),
		       text(o, "from"), text(o, "to"), text(o, "runs_on"),
		       *text(o, "error") ? ": " : "", text(o, "error"));
	}
}

void show_phase(const json_t *said)
{
	printf("%s", text(said, "phase"));
	if (json_object_get(said, "round"))
		printf(" %lld: %.1f MiB, at %.1f MiB/s: as much again would stop it for %.0f ms",
		       number(said, "round"),
		       (double)number(said, "bytes") / (1 << 20),
		       real(said, "rate") / (1 << 20),
		       real(said, "estimate_ms"));
	if (*text(said, "error"))
		printf(": %s", text(said, "error"));
	putchar('\n');
	fflush(stdout);
}

static void show_phases(const json_t *marks)
{
	const json_t *o;
	size_t i;

	json_array_foreach (marks, i, o)
		printf("  %-24s %8.0f ms\n", text(o, "phase"), real(o, "ms"));
}

static bool same(const json_t *a, const json_t *b)
{
	return json_equal(json_object_get(a, "host"),
			  json_object_get(b, "host")) &&
	       json_equal(json_object_get(a, "step"),
			  json_object_get(b, "step"));
}

/* Each once, where it comes first: CRIU goes from one to the other for each process. */
static void show_steps(const json_t *steps)
{
	const json_t *o, *other;
	size_t i, k;
	double ms;

	json_array_foreach (steps, i, o) {
		for (k = 0; k < i && !same(json_array_get(steps, k), o); k++)
			;
		if (k < i)
			continue;
		ms = 0;
		json_array_foreach (steps, k, other)
			if (same(o, other))
				ms += real(other, "ms");
		printf("    %-6s %-23s %8.0f ms\n", text(o, "host"),
		       text(o, "step"), ms);
	}
}

void show_moved(const json_t *said, bool timing)
{
	printf("%s runs on %s\n", text(said, "name"), text(said, "runs_on"));
	if (timing) {
		show_phases(json_object_get(said, "timing"));
		show_steps(json_object_get(said, "steps"));
		if (json_object_get(said, "stopped_ms"))
			printf("  %-24s %8.0f ms\n", "stood still",
			       real(said, "stopped_ms"));
		if (json_object_get(said, "suspended_ms"))
			printf("  %-24s %8.0f ms\n", "connections stood still",
			       real(said, "suspended_ms"));
	}
	fflush(stdout);
}
