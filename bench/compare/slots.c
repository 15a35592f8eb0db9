// SPDX-License-Identifier: GPL-2.0
/* The throughput at the partner: a panel for each way and end that moves, on one scale */
#include "report.h"

#include <math.h>
#include <string.h>

#define LEFT 70
#define RIGHT 930
#define TOP 60
#define HEIGHT 90
#define APART 44

struct scale {
	double before_ms,
		ms;  /* until the last packet of the old host, and in all */
	double bits; /* a second, at the upper end */
};

static double slot_bits(const json_t *t, size_t i)
{
	return json_number_value(
		       json_array_get(json_object_get(t, "bytes"), i)) *
	       8000 / number_of(t, "slot_ms");
}

static size_t n_slots(const json_t *t)
{
	return json_array_size(json_object_get(t, "bytes"));
}

static struct scale scale_of(const json_t *all, double rate)
{
	struct scale s = { .bits = rate };
	double after = 0;
	const json_t *t;
	size_t i;

	json_array_foreach (all, i, t) {
		double ms = number_of(t, "slot_ms");
		double before = ms * number_of(t, "slots_before");

		s.before_ms = fmax(s.before_ms, before);
		after = fmax(after, ms * (double)n_slots(t) - before);
		for (size_t k = 0; k < n_slots(t); k++)
			s.bits = fmax(s.bits, slot_bits(t, k));
	}
	s.ms = s.before_ms + after;
	return s;
}

static double x_of(const struct scale *s, double ms)
{
	return LEFT + (s->before_ms + ms) / s->ms * (RIGHT - LEFT);
}

static void panel(FILE *f, const json_t *t, const struct scale *s, double top,
		  double rate)
{
	double slot = number_of(t, "slot_ms"), bottom = top + HEIGHT;
	double before = slot * number_of(t, "slots_before");
	const char *label = text_of(t, "way"), *colour = "#333";
	char title[128], number[32];

	for (unsigned int w = 0; w < n_ways; w++)
		if (!strcmp(ways[w].way, label) &&
		    !strcmp(ways[w].device, text_of(t, "device"))) {
			label = ways[w].label;
			colour = ways[w].colour;
			break;
		}
	snprintf(title, sizeof(title), "%s: the %s moves", label,
		 text_of(t, "series"));
	svg_text(f, LEFT, top - 6, "start", title);
	fprintf(f, "<path fill=\"%s\" d=\"M%.1f %.1f", colour, x_of(s, -before),
		bottom);
	for (size_t i = 0; i < n_slots(t); i++)
		fprintf(f, "V%.1fH%.1f",
			bottom - slot_bits(t, i) / s->bits * HEIGHT,
			x_of(s, slot * (double)(i + 1) - before));
	fprintf(f, "V%.1fZ\"/>\n", bottom);
	svg_line(f, LEFT, bottom, RIGHT, bottom, "#333", "none");
	svg_line(f, LEFT, bottom - rate / s->bits * HEIGHT, RIGHT,
		 bottom - rate / s->bits * HEIGHT, "#888", "4 4");
	snprintf(number, sizeof(number), "%g", rate / 1e6);
	svg_text(f, LEFT - 6, bottom - rate / s->bits * HEIGHT + 4, "end",
		 number);
}

int slots(const json_t *r, const char *folder)
{
	const json_t *t, *all = json_object_get(r, "timelines");
	double rate = number_of(json_object_get(r, "link"), "bits_per_s");
	double bottom = TOP + (double)json_array_size(all) * (HEIGHT + APART);
	struct scale s = scale_of(all, rate);
	char label[32];
	size_t i;
	FILE *f;

	if (!json_array_size(all))
		return 0;
	f = svg_begin(
		folder, "throughput", RIGHT + 30, (int)bottom + 40,
		"throughput at the partner, Mbit/s on the wire in slots of 5 ms");
	if (!f)
		return -1;
	json_array_foreach (all, i, t)
		panel(f, t, &s, TOP + (double)i * (HEIGHT + APART) + 14, rate);
	for (double ms = 0; ms <= s.ms - s.before_ms; ms += svg_step(s.ms)) {
		snprintf(label, sizeof(label), "%g", ms / 1000);
		svg_line(f, x_of(&s, ms), TOP, x_of(&s, ms),
			 bottom - APART + 14, "#bbb", "2 3");
		svg_text(f, x_of(&s, ms), bottom - 14, "middle", label);
	}
	svg_text(f, RIGHT, bottom + 6, "end",
		 "seconds since the last packet of the old host");
	return svg_end(f);
}
