// SPDX-License-Identifier: GPL-2.0
/* Stacked bars: for each number one of each way, in their order */
#include "report.h"

#include <math.h>

#define LEFT 70
#define TOP 60
#define HEIGHT 240
#define BAR 16
#define GAP 26
#define LEGEND 230

static double bar_sum(const json_t *r, const char *figure, const struct way *w,
		      const char *series, double x, const struct part *parts)
{
	double sum = 0;

	for (; parts->name; parts++)
		sum += number_of(find_test(r, figure, w, series, x,
					   parts->name),
				 "value");
	return sum;
}

/* the ways that a figure has, as bits */
static unsigned int ways_of(const json_t *r, const char *figure,
			    const struct axes *a, const struct part *parts,
			    double *top)
{
	unsigned int found = 0;
	double sum;

	*top = 0;
	for (unsigned int w = 0; w < n_ways; w++)
		for (unsigned int s = 0; s < a->n_series; s++)
			for (unsigned int i = 0; i < a->n_x; i++) {
				sum = bar_sum(r, figure, &ways[w], a->series[s],
					      a->x[i], parts);
				*top = fmax(*top, sum);
				if (sum > 0)
					found |= 1u << w;
			}
	return found;
}

static void bar(FILE *f, const json_t *r, const char *figure,
		const struct way *w, const char *series, double n, double x,
		double bottom, double scale, const struct part *parts,
		const char *mark)
{
	const json_t *marked =
		mark ? find_test(r, figure, w, series, n, mark) : NULL;
	double y = bottom, height;

	for (; parts->name; parts++) {
		height = scale * number_of(find_test(r, figure, w, series, n,
						     parts->name),
					   "value");
		if (height <= 0)
			continue;
		y -= height;
		svg_box(f, x, y, BAR - 2, height, parts->colour);
	}
	/* whose bar it is */
	svg_box(f, x, bottom + 2, BAR - 2, 4, w->colour);
	if (marked) {
		y = bottom - scale * number_of(marked, "value");
		svg_line(f, x - 2, y, x + BAR, y, "#000", "none");
	}
}

static void axis(FILE *f, double bottom, double right, double top,
		 const char *unit)
{
	double step = svg_step(top);
	char label[32];

	for (double v = 0; v <= top; v += step) {
		double y = bottom - v / top * HEIGHT;

		snprintf(label, sizeof(label), "%g", v);
		svg_line(f, LEFT, y, right, y, "#ddd", "none");
		svg_text(f, LEFT - 6, y + 4, "end", label);
	}
	svg_text(f, 20, bottom - HEIGHT - 12, "start", unit);
}

static void legend(FILE *f, double x, unsigned int found,
		   const struct part *parts, const char *mark)
{
	double y = TOP;

	for (; parts->name; parts++, y += 18) {
		svg_box(f, x, y, 12, 12, parts->colour);
		svg_text(f, x + 18, y + 11, "start", parts->label);
	}
	if (mark) {
		svg_line(f, x - 2, y + 6, x + 14, y + 6, "#000", "none");
		svg_text(f, x + 18, y + 11, "start", "as the partner saw it");
		y += 18;
	}
	y += 12;
	for (unsigned int w = 0; w < n_ways; w++) {
		if (!(found & 1u << w))
			continue;
		svg_box(f, x, y + 4, 12, 4, ways[w].colour);
		svg_text(f, x + 18, y + 11, "start", ways[w].label);
		y += 18;
	}
}

int bars(const json_t *r, const char *folder, const char *figure,
	 const char *title, const struct part *parts, const char *mark)
{
	double top, scale, x, bottom = TOP + HEIGHT, right;
	unsigned int found, n = 0;
	struct axes a;
	char label[32];
	FILE *f;

	if (!axes_of(r, figure, &a))
		return 0;
	found = ways_of(r, figure, &a, parts, &top);
	if (!found)
		return 0;
	for (unsigned int w = 0; w < n_ways; w++)
		n += found >> w & 1;
	top *= 1.05;
	scale = HEIGHT / top;
	right = LEFT + a.n_series * (a.n_x * (n * BAR + GAP) + GAP);
	f = svg_begin(folder, figure, (int)right + LEGEND, TOP + HEIGHT + 60,
		      title);
	if (!f)
		return -1;
	axis(f, bottom, right, top,
	     parts == datapath_parts ? "instructions" : "ms");
	if (a.n_x > 1)
		svg_text(f, LEFT - 6, bottom + 22, "end", "QPs");
	x = LEFT + GAP;
	for (unsigned int s = 0; s < a.n_series; s++) {
		svg_text(f, x, bottom + 44, "start", a.series[s]);
		for (unsigned int i = 0; i < a.n_x; i++) {
			snprintf(label, sizeof(label), "%g", a.x[i]);
			if (a.n_x > 1)
				svg_text(f, x + n * BAR / 2.0, bottom + 22,
					 "middle", label);
			for (unsigned int w = 0; w < n_ways; w++) {
				if (!(found & 1u << w))
					continue;
				bar(f, r, figure, &ways[w], a.series[s], a.x[i],
				    x, bottom, scale, parts, mark);
				x += BAR;
			}
			x += GAP;
		}
		x += GAP;
	}
	legend(f, right + 20, found, parts, mark);
	return svg_end(f);
}
