// SPDX-License-Identifier: GPL-2.0
/* The numbers of a figure: a row for each series, number and way */
#include "report.h"

#include <stdlib.h>
#include <string.h>

static const char *unit_of(const json_t *r, const char *figure,
			   const char *part)
{
	size_t i;
	json_t *t;

	json_array_foreach (json_object_get(r, "tests"), i, t) {
		if (!strcmp(text_of(t, "figure"), figure) &&
		    !strcmp(text_of(t, "part"), part))
			return text_of(t, "unit");
	}
	return NULL;
}

static const json_t *part_of(const struct row *row, const char *part)
{
	return find_test(row->report, row->figure->name, row->way, row->series,
			 row->x, part);
}

static void cell(FILE *out, const json_t *t)
{
	double value = number_of(t, "value");
	bool small = value < 10 && value > -10;

	if (!t) {
		fputs(" |", out);
		return;
	}
	fprintf(out, small ? " %.1f" : " %.0f", value);
	if (number_of(t, "high") > number_of(t, "low"))
		fprintf(out, small ? " (%.1f..%.1f)" : " (%.0f..%.0f)",
			number_of(t, "low"), number_of(t, "high"));
	fputs(" |", out);
}

/* --- what is made of them: a column more, or two --- */

void more_instructions(FILE *out, const struct row *row)
{
	const struct way none = { "none", row ? row->way->device : "", NULL,
				  NULL };
	double with, without;

	if (!row) {
		fputs(" more instructions than without the layer |", out);
		return;
	}
	with = number_of(part_of(row, "instructions"), "value");
	without = number_of(find_test(row->report, row->figure->name, &none,
				      row->series, row->x, "instructions"),
			    "value");
	if (without <= 0 || !strcmp(row->way->way, "none"))
		fputs(" |", out);
	else if (!strcmp(row->way->device, "null"))
		fprintf(out, " %.0f |", with - without);
	else
		fprintf(out, " %.0f, %.1f %% |", with - without,
			100 * (with / without - 1));
}

void times_link(FILE *out, const struct row *row)
{
	double waited, ms;

	if (!row) {
		fputs(" the link takes for these, ms | times that |", out);
		return;
	}
	waited = number_of(part_of(row, "waited"), "value");
	ms = link_ms(row->report,
		     number_of(part_of(row, "queues_had"), "value"));
	if (ms > 0)
		fprintf(out, " %.0f | %.2f |", ms, waited / ms);
	else
		fputs(" | |", out);
}

/* Ranges that do not meet tell which takes longer, if there is more than one run. */
void times_protocol(FILE *out, const struct row *row)
{
	const json_t *t, *of_protocol;
	const char *what = "";

	if (!row) {
		fputs(" MiB of link | times the protocol's |", out);
		return;
	}
	t = part_of(row, row->figure->judged);
	of_protocol = find_test(row->report, row->figure->name, &ways[0],
				row->series, row->x, row->figure->judged);
	if (t)
		fprintf(out, " %.1f |", number_of(t, "link_kib") / 1024);
	else
		fputs(" |", out);
	if (!t || t == of_protocol || number_of(of_protocol, "value") <= 0) {
		fputs(" |", out);
		return;
	}
	if (number_of(t, "runs") < 2 || number_of(of_protocol, "runs") < 2)
		what = ", of one run";
	else if (number_of(t, "low") <= number_of(of_protocol, "high") &&
		 number_of(t, "high") >= number_of(of_protocol, "low"))
		what = ", not told apart";
	fprintf(out, " %.2f%s |",
		number_of(t, "value") / number_of(of_protocol, "value"), what);
}

/* --- the table --- */

static void write_row(FILE *out, const struct row *row)
{
	const struct figure *g = row->figure;
	double failed = 0, n;
	bool any = false;

	for (const char *const *p = g->parts; *p; p++) {
		any |= !!part_of(row, *p);
		n = number_of(part_of(row, *p), "failed_runs");
		failed = n > failed ? n : failed;
	}
	if (!any)
		return;
	fprintf(out, "| %s | ", row->series);
	if (*g->x)
		fprintf(out, "%g | ", row->x);
	fputs(row->way->label, out);
	if (failed > 0)
		fprintf(out, " (%.0f failed)", failed);
	fputs(" |", out);
	for (const char *const *p = g->parts; *p; p++)
		if (unit_of(row->report, g->name, *p))
			cell(out, part_of(row, *p));
	g->extra(out, row);
	fputc('\n', out);
}

static void write_head(FILE *out, const json_t *r, const struct figure *g)
{
	const char *unit;

	fprintf(out, "| %s |", g->series);
	if (*g->x)
		fprintf(out, " %s |", g->x);
	fputs(" way |", out);
	for (const char *const *p = g->parts; *p; p++) {
		unit = unit_of(r, g->name, *p);
		if (unit)
			fprintf(out, strcmp(*p, unit) ? " %s, %s |" : " %s |",
				*p, unit);
	}
	g->extra(out, NULL);
	fputc('\n', out);
}

/* the line below the head has as many columns as it */
static void write_rule(FILE *out, const char *head)
{
	for (; *head; head++)
		if (*head == '|')
			fputs(head[1] == '\n' ? "|\n" : "| --- ", out);
}

int write_table(FILE *out, const json_t *r, const struct figure *g,
		const struct axes *a)
{
	char *head = NULL;
	size_t bytes;
	FILE *f = open_memstream(&head, &bytes);

	if (!f)
		return -1;
	write_head(f, r, g);
	if (fclose(f))
		return -1;
	fputs(head, out);
	write_rule(out, head);
	free(head);
	for (unsigned int s = 0; s < a->n_series; s++)
		for (unsigned int i = 0; i < a->n_x; i++)
			for (unsigned int w = 0; w < n_ways; w++)
				write_row(out, &(struct row){ r, g, &ways[w],
							      a->series[s],
							      a->x[i] });
	return 0;
}

/* --- why --- */

enum {
	MOST_NAMED = 2 /* parts */
};

static double more_than(const struct row *row, const struct row *protocol,
			const char *part)
{
	return number_of(part_of(row, part), "value") -
	       number_of(part_of(protocol, part), "value");
}

/* the part that has most of a difference, of those that were not named; NULL if none has */
static const char *most_of(const struct row *row, const struct row *protocol,
			   double sign, const char *const *named)
{
	const struct figure *g = row->figure;
	const char *most = NULL;
	double more, best = 0;

	for (const char *const *p = g->parts; *p; p++) {
		if (!strcmp(*p, g->judged) || !strcmp(*p, g->apart) ||
		    *p == named[0])
			continue;
		more = sign * more_than(row, protocol, *p);
		if (more > best) {
			best = more;
			most = *p;
		}
	}
	return most;
}

static void why_row(FILE *out, const struct row *row)
{
	struct row protocol = *row;
	const char *named[MOST_NAMED] = { NULL };
	double more, sign;

	protocol.way = &ways[0];
	if (row->way == &ways[0] || !part_of(row, row->figure->judged) ||
	    !part_of(&protocol, row->figure->judged))
		return;
	more = more_than(row, &protocol, row->figure->judged);
	sign = more < 0 ? -1 : 1;
	fprintf(out, "- %s, %g QPs: %s takes %.0f ms %s", row->series, row->x,
		row->way->label, sign * more, more < 0 ? "less" : "more");
	for (int i = 0; i < MOST_NAMED; i++) {
		named[i] = most_of(row, &protocol, sign, named);
		if (!named[i])
			break;
		fprintf(out, "%s%s %+.0f", i ? ", " : "; most of all by ",
			named[i], more_than(row, &protocol, named[i]));
	}
	fputs("\n", out);
}

void write_why(FILE *out, const json_t *r, const struct figure *g,
	       const struct axes *a)
{
	fprintf(out, "\n*Which is faster, and why*: %s\n\n", g->why);
	for (unsigned int s = 0; s < a->n_series; s++)
		for (unsigned int i = 0; i < a->n_x; i++)
			for (unsigned int w = 0; w < n_ways; w++)
				why_row(out,
					&(struct row){ r, g, &ways[w],
						       a->series[s], a->x[i] });
}
