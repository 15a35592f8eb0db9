// SPDX-License-Identifier: GPL-2.0
#include "flame.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
	LEFT = 90, /* px, for the names of lanes */
	WIDE = 1000,
	TOP = 60,
	LANE = 34,
	LANES = 3,
	LETTER = 7, /* a little more than the width of most */
	MOST_MS = 1000000000,
};

struct picture {
	FILE *f;
	double px_per_ms;
};

static double number(const json_t *o, const char *key)
{
	double n = json_number_value(json_object_get(o, key));

	return fabs(n) <= MOST_MS ? n : 0;
}

/* what a host calls its things is no part of our picture */
static void text(FILE *f, const char *s, size_t most)
{
	for (size_t i = 0; s && s[i] && i < most; i++)
		if (strchr("<>&\"'", s[i]) || s[i] < ' ' || s[i] > '~')
			fputc('?', f);
		else
			fputc(s[i], f);
}

/* what is of RDMA, what of moving bytes, and what plain CRIU would do as well */
static const char *colour(const char *step)
{
	if (!strncmp(step, "RDMA: ", 6) || !strncmp(step, "layer: ", 7))
		return "#e8833a";
	if (!strncmp(step, "send ", 5) || !strcmp(step, "transfer"))
		return "#6aa84f";
	if (!strcmp(step, "memory"))
		return "#8e7cc3";
	return "#9fc5e8";
}

static void label(const struct picture *p, double x, int lane, const char *s)
{
	fprintf(p->f, "<text x=\"%.1f\" y=\"%d\">", x,
		TOP + lane * LANE + LANE / 2 + 2);
	text(p->f, s, 60);
	fputs("</text>\n", p->f);
}

static void box(const struct picture *p, int lane, const char *step,
		double at_ms, double ms)
{
	double x = LEFT + at_ms * p->px_per_ms, w = ms * p->px_per_ms;

	if (!step || x < LEFT || !(w > 0) || x + w > LEFT + WIDE + 1)
		return;
	fprintf(p->f, "<g><title>%.1f ms: ", ms);
	text(p->f, step, 60);
	fprintf(p->f,
		"</title><rect x=\"%.1f\" y=\"%d\" width=\"%.2f\" height=\"%d\" "
		"fill=\"%s\" stroke=\"#fff\" stroke-width=\"0.3\"/>",
		x, TOP + lane * LANE, w, LANE - 8, colour(step));
	if (strlen(step) * LETTER < w)
		label(p, x + 3, lane, step);
	fputs("</g>\n", p->f);
}

/* phases come one after the other; those before the stop are not in the picture */
static void phases(const struct picture *p, const json_t *said)
{
	const char *phase;
	double at = 0, ms;
	const json_t *o;
	size_t i;

	json_array_foreach (json_object_get(said, "timing"), i, o) {
		phase = json_string_value(json_object_get(o, "phase"));
		ms = number(o, "ms");
		if (!phase || !strcmp(phase, "prepare"))
			continue;
		box(p, 0, phase, at, ms);
		at += ms;
	}
}

static void steps(const struct picture *p, const json_t *said)
{
	const char *from = json_string_value(json_object_get(said, "from")),
		   *host;
	const json_t *o;
	size_t i;

	json_array_foreach (json_object_get(said, "steps"), i, o) {
		host = json_string_value(json_object_get(o, "host"));
		box(p, host && from && !strcmp(host, from) ? 1 : 2,
		    json_string_value(json_object_get(o, "step")),
		    number(o, "at_ms"), number(o, "ms"));
	}
}

static double end_ms(const json_t *said)
{
	double end = 1, at;
	const json_t *o;
	size_t i;

	json_array_foreach (json_object_get(said, "steps"), i, o) {
		at = number(o, "at_ms") + number(o, "ms");
		if (at > end)
			end = at;
	}
	return end;
}

static void axis(const struct picture *p, double end)
{
	double step = pow(10, floor(log10(end)));

	if (end / step < 3)
		step /= 5;
	for (double at = 0; at <= end; at += step) {
		fprintf(p->f, "<path d=\"M%.1f %dV%d\" stroke=\"#ddd\"/>\n",
			LEFT + at * p->px_per_ms, TOP - 4, TOP + LANES * LANE);
		fprintf(p->f, "<text x=\"%.1f\" y=\"%d\">%.0f ms</text>\n",
			LEFT + at * p->px_per_ms, TOP + LANES * LANE + 16, at);
	}
}

static void title(const struct picture *p, const json_t *said)
{
	fputs("<text x=\"8\" y=\"24\" font-size=\"16\">", p->f);
	text(p->f, json_string_value(json_object_get(said, "name")), 40);
	fputs(" from ", p->f);
	text(p->f, json_string_value(json_object_get(said, "from")), 40);
	fputs(" to ", p->f);
	text(p->f, json_string_value(json_object_get(said, "to")), 40);
	fprintf(p->f, ": it stood still for %.0f ms</text>\n",
		number(said, "stopped_ms"));
}

bool flame_draw(const char *file, const json_t *said)
{
	double end = end_ms(said);
	struct picture p = {
		.f = fopen(file, "we"),
		.px_per_ms = WIDE / end,
	};
	bool bad;

	if (!p.f)
		return false;
	fprintf(p.f,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
		LEFT + WIDE + 40, TOP + LANES * LANE + 30);
	title(&p, said);
	axis(&p, end);
	label(&p, 8, 0, "phases");
	label(&p, 8, 1, json_string_value(json_object_get(said, "from")));
	label(&p, 8, 2, json_string_value(json_object_get(said, "to")));
	phases(&p, said);
	steps(&p, said);
	fputs("</svg>\n", p.f);
	bad = ferror(p.f);
	return !fclose(p.f) && !bad;
}
