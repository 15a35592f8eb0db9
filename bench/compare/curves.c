// SPDX-License-Identifier: GPL-2.0
/*
 * How long the layer waits, over what is in flight: both logarithmic, a panel for each
 * thing that is varied. Dashed: what the link needs for all that queues had.
 */
#include "report.h"

#include <math.h>

#define FIGURE "wait"
#define LEFT 70
#define TOP 70
#define WIDTH 220
#define HEIGHT 220
#define APART 60

struct view {
	double x0, x_low, x_high, y_low, y_high;
};

static double x_of(const struct view *v, double x)
{
	return v->x0 + 12 +
	       (WIDTH - 24) * log(x / v->x_low) / log(v->x_high / v->x_low);
}

static double y_of(const struct view *v, double ms)
{
	return TOP + HEIGHT -
	       HEIGHT * log(fmax(ms, v->y_low) / v->y_low) /
		       log(v->y_high / v->y_low);
}

/* of what was measured, or what the link takes for it: 0 if nobody knows */
static double ms_of(const json_t *r, const struct way *w, const char *series,
		    double x, const char *part)
{
	const json_t *t = find_test(r, FIGURE, w, series, x, part);
	double v = number_of(t, "value");

	return !t || part[0] == 'w' ? v : link_ms(r, v);
}

static void widen(struct view *v, double ms)
{
	if (ms <= 0)
		return;
	v->y_low = fmin(v->y_low, pow(10, floor(log10(ms))));
	v->y_high = fmax(v->y_high, pow(10, ceil(log10(ms * 1.01))));
}

static void curve(FILE *f, const json_t *r, const struct view *v,
		  const struct axes *a, const struct way *w, const char *series,
		  const char *part, const char *colour, const char *dashes)
{
	double x, y, last_x = 0, last_y = 0, ms;
	bool begun = false;

	for (unsigned int i = 0; i < a->n_x; i++) {
		ms = ms_of(r, w, series, a->x[i], part);
		if (ms <= 0)
			continue;
		x = x_of(v, a->x[i]);
		y = y_of(v, ms);
		if (begun)
			svg_line(f, last_x, last_y, x, y, colour, dashes);
		if (part[0] == 'w')
			fprintf(f,
				"<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" "
				"fill=\"%s\"/>\n",
				x, y, colour);
		begun = true;
		last_x = x;
		last_y = y;
	}
}

static void frame(FILE *f, const json_t *r, const struct view *v,
		  const struct axes *a, const char *series)
{
	char label[32];
	bool any;

	for (double ms = v->y_low; ms <= v->y_high * 1.01; ms *= 10) {
		svg_line(f, v->x0, y_of(v, ms), v->x0 + WIDTH, y_of(v, ms),
			 "#ddd", "none");
		snprintf(label, sizeof(label), "%g", ms);
		svg_text(f, v->x0 - 6, y_of(v, ms) + 4, "end", label);
	}
	for (unsigned int i = 0; i < a->n_x; i++) {
		any = false;
		for (unsigned int w = 0; w < n_ways; w++)
			any |= ms_of(r, &ways[w], series, a->x[i], "waited") >
			       0;
		if (!any)
			continue;
		snprintf(label, sizeof(label), "%g", a->x[i]);
		svg_text(f, x_of(v, a->x[i]), TOP + HEIGHT + 16, "middle",
			 label);
	}
	svg_text(f, v->x0 + WIDTH / 2.0, TOP + HEIGHT + 36, "middle", series);
	svg_text(f, v->x0 - 6, TOP - 12, "end", "ms");
}

/* the numbers that this series has, and the milliseconds of all of them */
static struct view view_of(const json_t *r, const struct axes *a,
			   const char *series)
{
	struct view v = { .x_low = 1e9, .y_low = 1e9 };

	for (unsigned int w = 0; w < n_ways; w++)
		for (unsigned int s = 0; s < a->n_series; s++)
			for (unsigned int i = 0; i < a->n_x; i++) {
				const char *of = a->series[s];
				double ms = ms_of(r, &ways[w], of, a->x[i],
						  "waited");

				widen(&v, ms);
				widen(&v, ms_of(r, &ways[w], of, a->x[i],
						"queues_had"));
				if (of != series || ms <= 0)
					continue;
				v.x_low = fmin(v.x_low, a->x[i]);
				v.x_high = fmax(v.x_high, a->x[i]);
			}
	v.x_high = fmax(v.x_high, v.x_low * 2);
	v.y_high = fmax(v.y_high, v.y_low * 10);
	return v;
}

static bool waits(const json_t *r, const struct axes *a, const struct way *w)
{
	bool any = false;

	for (unsigned int s = 0; s < a->n_series; s++)
		for (unsigned int i = 0; i < a->n_x; i++)
			any |= ms_of(r, w, a->series[s], a->x[i], "waited") > 0;
	return any;
}

int curves(const json_t *r, const char *folder)
{
	struct axes a;
	struct view v;
	double y = TOP + HEIGHT + 62;
	FILE *f;

	if (!axes_of(r, FIGURE, &a))
		return 0;
	f = svg_begin(folder, FIGURE, LEFT + (int)a.n_series * (WIDTH + APART),
		      TOP + HEIGHT + 110,
		      "how long the layer waits for what is in flight");
	if (!f)
		return -1;
	for (unsigned int s = 0; s < a.n_series; s++) {
		v = view_of(r, &a, a.series[s]);
		v.x0 = LEFT + s * (WIDTH + APART);
		frame(f, r, &v, &a, a.series[s]);
		for (unsigned int w = 0; w < n_ways; w++) {
			curve(f, r, &v, &a, &ways[w], a.series[s], "queues_had",
			      "#888", "6 4");
			curve(f, r, &v, &a, &ways[w], a.series[s], "waited",
			      ways[w].colour, "none");
		}
	}
	for (unsigned int w = 0; w < n_ways; w++) {
		if (!waits(r, &a, &ways[w]))
			continue;
		svg_line(f, LEFT, y - 4, LEFT + 24, y - 4, ways[w].colour,
			 "none");
		svg_text(f, LEFT + 30, y, "start", ways[w].label);
		y += 16;
	}
	svg_line(f, LEFT, y - 4, LEFT + 24, y - 4, "#888", "6 4");
	svg_text(f, LEFT + 30, y, "start",
		 "what the link takes for 64 messages of each QP");
	return svg_end(f);
}
