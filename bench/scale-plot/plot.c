// SPDX-License-Identifier: GPL-2.0
/*
 * Milliseconds over QPs as SVG, both logarithmic: dots are medians, lines the
 * fits, which bend because their fixed part does not grow; rings are the medians
 * of QPs with an SRQ.
 */
#include "scale.h"

#include <math.h>

#define WIDTH 780
#define HEIGHT 480
#define LEFT 70
#define RIGHT 560
#define TOP 50
#define BOTTOM 420

static const struct {
	enum step step;
	const char *colour;
} curves[] = {
	{ STEP_blackout, "#a03a20" },
	{ STEP_restore, "#3367a8" },
	{ STEP_stop, "#8a6fb0" },
	{ STEP_dump, "#2b8a57" },
};

#define CURVES (sizeof(curves) / sizeof(curves[0]))

/* powers of ten around all values */
struct view {
	double max_qps, low, high;
};

static double x_of(const struct view *v, double qps)
{
	return LEFT + 10 + log(qps) / log(v->max_qps) * (RIGHT - LEFT - 20);
}

static double y_of(const struct view *v, double ms)
{
	return BOTTOM -
	       log(ms / v->low) / log(v->high / v->low) * (BOTTOM - TOP);
}

static void widen(struct view *v, const struct scale *s)
{
	for (unsigned int i = 0; i < s->sizes; i++)
		for (size_t k = 0; k < CURVES; k++) {
			double ms = s->size[i].ms[curves[k].step];

			v->low = fmin(v->low, ms);
			v->high = fmax(v->high, ms);
		}
}

static struct view view_of(const struct scale *s, const struct scale *srq)
{
	struct view v = { s->size[s->sizes - 1].qps, 1e9, 0 };

	widen(&v, s);
	widen(&v, srq);
	if (v.max_qps < 2)
		v.max_qps = 2;
	v.low = pow(10, floor(log10(fmax(v.low, 1e-3))));
	v.high = pow(10, ceil(log10(fmax(v.high, v.low * 10))));
	return v;
}

static void axes(FILE *out, const struct view *v, const struct scale *s)
{
	for (double ms = v->low; ms <= v->high * 1.01; ms *= 10) {
		double y = y_of(v, ms);

		fprintf(out,
			"<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>\n"
			"<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
			LEFT, y, RIGHT, LEFT - 8, y + 4, ms);
	}
	for (unsigned int i = 0; i < s->sizes; i++) {
		double x = x_of(v, s->size[i].qps);

		fprintf(out,
			"<path d=\"M%.1f %dv5\" stroke=\"#333\"/>\n"
			"<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%u</text>\n",
			x, BOTTOM, x, BOTTOM + 20, s->size[i].qps);
	}
	fprintf(out,
		"<path d=\"M%d %dV%dH%d\" stroke=\"#333\" fill=\"none\"/>\n"
		"<text x=\"%d\" y=\"%d\">milliseconds</text>\n"
		"<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">QPs of the "
		"context</text>\n",
		LEFT, TOP, BOTTOM, RIGHT, 12, TOP - 16, (LEFT + RIGHT) / 2,
		BOTTOM + 42);
}

static void curve(FILE *out, const struct view *v, const struct scale *s,
		  const struct scale *srq, size_t k)
{
	enum step step = curves[k].step;
	struct line l = runs_fit(s, step);
	const char *how = "M";
	double y = TOP + 20 + 44 * (double)k;

	fprintf(out, "<g stroke=\"%s\" fill=\"%s\">\n<path fill=\"none\" d=\"",
		curves[k].colour, curves[k].colour);
	for (double n = 1; n <= v->max_qps * 1.001; n *= pow(2, .25)) {
		double ms = l.fixed + l.per_qp * n;

		if (ms < v->low || ms > v->high)
			continue;
		fprintf(out, "%s%.1f %.1f", how, x_of(v, n), y_of(v, ms));
		how = "L";
	}
	fputs("\"/>\n", out);
	for (unsigned int i = 0; i < s->sizes; i++)
		fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n",
			x_of(v, s->size[i].qps),
			y_of(v, fmax(s->size[i].ms[step], v->low)));
	for (unsigned int i = 0; i < srq->sizes; i++)
		if (srq->size[i].qps <= v->max_qps)
			fprintf(out,
				"<circle cx=\"%.1f\" cy=\"%.1f\" r=\"6\" "
				"fill=\"none\"/>\n",
				x_of(v, srq->size[i].qps),
				y_of(v, fmax(srq->size[i].ms[step], v->low)));
	fprintf(out,
		"<g stroke=\"none\"><text x=\"%d\" y=\"%.1f\" "
		"font-weight=\"bold\">%s</text>\n"
		"<text x=\"%d\" y=\"%.1f\">%.1f ms + %.3f ms per QP</text>"
		"</g>\n</g>\n",
		RIGHT + 16, y, step_names[step], RIGHT + 16, y + 17, l.fixed,
		l.per_qp);
}

void plot(FILE *out, const struct results *r)
{
	const struct scale *own = &r->kind[OWN_QUEUE];
	const struct scale *srq = &r->kind[FROM_SRQ];
	const struct scale *s = own->sizes ? own : srq;
	struct view v = view_of(s, srq);

	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
		"height=\"%d\" viewBox=\"0 0 %d %d\" "
		"font-family=\"sans-serif\" font-size=\"13\">\n"
		"<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n"
		"<text x=\"%d\" y=\"24\" text-anchor=\"middle\" "
		"font-size=\"15\">Dump and restore of a verbs context</text>\n",
		WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH / 2);
	axes(out, &v, s);
	for (size_t k = 0; k < CURVES; k++)
		curve(out, &v, s, srq, k);
	if (srq->sizes)
		fprintf(out,
			"<text x=\"%d\" y=\"%d\">rings: QPs with an SRQ</text>\n",
			RIGHT + 16, BOTTOM);
	fputs("</svg>\n", out);
}
