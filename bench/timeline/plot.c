// SPDX-License-Identifier: GPL-2.0
/*
 * The throughput over time as SVG, readable without any program of ours.
 */
#include "timeline.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* the picture, and the plot in it */
#define WIDTH 960
#define HEIGHT 420
#define LEFT 76
#define RIGHT 930
#define TOP 84
#define BOTTOM 330
#define PHASE_Y 372

static const char *const colour[SIDES] = { "#3367a8", "#2b8a57" };
static const char *const phase_colour[] = { "#b5651d", "#8a6fb0", "#4a8fa0" };

struct scale {
	const struct flow *f;
	double seconds; /* shown in all */
	double top;	/* bytes per second at the upper end */
};

static double x_of(const struct scale *s, uint64_t ns)
{
	double t = ((double)ns - (double)s->f->begin) / 1e9;

	return LEFT + t / s->seconds * (RIGHT - LEFT);
}

static double y_of(const struct scale *s, double rate)
{
	return BOTTOM - rate / s->top * (BOTTOM - TOP);
}

/* 1, 2 or 5 times a power of ten, so that about n steps cover the range */
static double step_for(double range, int n)
{
	double raw = range / n, power = pow(10, floor(log10(raw)));
	double m = raw / power;

	return (m <= 1 ? 1 : m <= 2 ? 2 : m <= 5 ? 5 : 10) * power;
}

static void text(FILE *out, double x, double y, const char *how, const char *s)
{
	fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, how);
	for (; *s; s++) {
		if (*s == '<')
			fputs("&lt;", out);
		else if (*s == '&')
			fputs("&amp;", out);
		else
			fputc(*s, out);
	}
	fputs("</text>\n", out);
}

static double peak(const struct flow *f)
{
	double max = 0;

	for (unsigned int i = 0; i < f->slots; i++) {
		double sum = (double)(f->slot[OLD][i] + f->slot[NEW][i]);

		max = sum > max ? sum : max;
	}
	return max * 1e9 / (double)f->slot_ns;
}

static void axes(FILE *out, const struct scale *s, const char *unit,
		 double divisor)
{
	double dy = step_for(s->top, 5), dx = step_for(s->seconds, 10);
	char label[64];

	for (double v = 0; v <= s->top * 1.0001; v += dy) {
		fprintf(out,
			"<path d=\"M%d %.1fH%d\" stroke=\"#ddd\" "
			"fill=\"none\"/>\n",
			LEFT, y_of(s, v), RIGHT);
		snprintf(label, sizeof(label), "%g", v / divisor);
		text(out, LEFT - 8, y_of(s, v) + 4, "text-anchor=\"end\"",
		     label);
	}
	for (double t = 0; t <= s->seconds; t += dx) {
		double x = LEFT + t / s->seconds * (RIGHT - LEFT);

		fprintf(out,
			"<path d=\"M%.1f %dv5\" stroke=\"#333\" "
			"fill=\"none\"/>\n",
			x, BOTTOM);
		snprintf(label, sizeof(label), "%g", t);
		text(out, x, BOTTOM + 19, "text-anchor=\"middle\"", label);
	}
	fprintf(out,
		"<path d=\"M%d %dV%dH%d\" stroke=\"#333\" fill=\"none\"/>\n",
		LEFT, TOP, BOTTOM, RIGHT);
	text(out, RIGHT, BOTTOM + 36, "text-anchor=\"end\"",
	     "seconds since the first packet");
	snprintf(label, sizeof(label), "%s on the wire", unit);
	text(out, LEFT, TOP - 10, "", label);
}

/* steps, as each value stands for the whole of its slot */
static void series(FILE *out, const struct scale *s, enum side side)
{
	const struct flow *f = s->f;
	bool open = false;

	fprintf(out,
		"<path fill=\"%s\" fill-opacity=\".3\" stroke=\"%s\" "
		"stroke-width=\"1.2\" d=\"",
		colour[side], colour[side]);
	for (unsigned int i = 0; i <= f->slots; i++) {
		double x = x_of(s, f->begin + i * f->slot_ns);
		double rate = i < f->slots ? (double)f->slot[side][i] * 1e9 /
						     (double)f->slot_ns
					   : 0;

		if (rate > 0) {
			if (!open)
				fprintf(out, "M%.1f %d", x, BOTTOM);
			fprintf(out, "L%.1f %.1fH%.1f", x, y_of(s, rate),
				x_of(s, f->begin + (i + 1) * f->slot_ns));
		} else if (open) {
			fprintf(out, "V%d", BOTTOM);
		}
		open = rate > 0;
	}
	fputs("\"/>\n", out);
}

static void blackout(FILE *out, const struct scale *s)
{
	uint64_t stop, go;
	double x, w;
	char label[64];

	if (!flow_blackout(s->f, &stop, &go) || go <= stop)
		return;
	x = x_of(s, stop);
	w = x_of(s, go) - x;
	fprintf(out,
		"<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" "
		"fill=\"#f6ddd6\"/>\n",
		x, TOP, w, BOTTOM - TOP);
	snprintf(label, sizeof(label), "blackout %.2f s",
		 (double)(go - stop) / 1e9);
	text(out, x + w / 2, TOP + 18,
	     "text-anchor=\"middle\" fill=\"#a03a20\" font-weight=\"bold\"",
	     label);
}

static void phases_below(FILE *out, const struct scale *s,
			 const struct phase *phase, unsigned int n)
{
	char label[96];

	for (unsigned int i = 0; i < n; i++) {
		double x = x_of(s, phase[i].from);
		double w = x_of(s, phase[i].to) - x;
		const char *c = phase_colour[i % 3];

		fprintf(out,
			"<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" "
			"height=\"8\" fill=\"%s\"/>\n",
			x, PHASE_Y, w > 1 ? w : 1, c);
		snprintf(label, sizeof(label), "%s %.1f s", phase[i].name,
			 (double)(phase[i].to - phase[i].from) / 1e9);
		/* a short one's label goes below, out of its neighbours' way */
		fprintf(out, "<g fill=\"%s\" text-anchor=\"middle\">", c);
		text(out, x + w / 2, PHASE_Y + (i % 2 ? 36 : 22), "", label);
		fputs("</g>\n", out);
	}
}

void plot(FILE *out, const struct flow *f, const char *title,
	  const char *names[SIDES], const struct phase *phase,
	  unsigned int phases)
{
	struct scale s = { .f = f };
	double highest = peak(f), divisor;
	const char *unit;
	char label[96];

	s.seconds = (double)(f->slots * f->slot_ns) / 1e9;
	s.top = step_for(highest, 5) * ceil(highest / step_for(highest, 5));
	divisor = s.top >= 1e6 ? 1e6 : 1e3;
	unit = s.top >= 1e6 ? "MB/s" : "kB/s";

	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
		"height=\"%d\" viewBox=\"0 0 %d %d\" "
		"font-family=\"sans-serif\" font-size=\"13\" "
		"fill=\"#222\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
		WIDTH, HEIGHT, WIDTH, HEIGHT);
	text(out, LEFT, 30, "font-size=\"18\" font-weight=\"bold\"", title);
	snprintf(label, sizeof(label),
		 "throughput at the partner, in steps of %g ms",
		 (double)f->slot_ns / 1e6);
	text(out, LEFT, 50, "fill=\"#555\"", label);
	for (int side = 0; side < SIDES; side++) {
		double x = RIGHT - 250 + 130 * side;

		fprintf(out,
			"<rect x=\"%.1f\" y=\"%d\" width=\"14\" height=\"10\" "
			"fill=\"%s\" fill-opacity=\".5\"/>\n",
			x, TOP - 19, colour[side]);
		snprintf(label, sizeof(label), "with %s", names[side]);
		text(out, x + 20, TOP - 10, "", label);
	}
	blackout(out, &s);
	axes(out, &s, unit, divisor);
	for (int side = 0; side < SIDES; side++)
		series(out, &s, side);
	phases_below(out, &s, phase, phases);
	fputs("</svg>\n", out);
}
