// SPDX-License-Identifier: GPL-2.0
#include "report.h"

#include <math.h>

FILE *svg_begin(const char *folder, const char *figure, int width, int height,
		const char *title)
{
	char name[4096];
	FILE *f;

	snprintf(name, sizeof(name), "%s/compare-%s.svg", folder, figure);
	f = fopen(name, "w");
	if (!f) {
		perror(name);
		return NULL;
	}
	fprintf(f,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" "
		"height=\"%d\" viewBox=\"0 0 %d %d\" "
		"font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
		"<g font-size=\"16\">",
		width, height, width, height);
	svg_text(f, 20, 26, "start", title);
	fputs("</g>\n", f);
	return f;
}

int svg_end(FILE *f)
{
	fputs("</svg>\n", f);
	if (!fclose(f))
		return 0;
	perror("compare-report");
	return -1;
}

void svg_text(FILE *f, double x, double y, const char *anchor, const char *s)
{
	fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y,
		anchor);
	for (; *s; s++) {
		if (*s == '<')
			fputs("&lt;", f);
		else if (*s == '&')
			fputs("&amp;", f);
		else
			fputc(*s, f);
	}
	fputs("</text>\n", f);
}

void svg_box(FILE *f, double x, double y, double width, double height,
	     const char *colour)
{
	fprintf(f,
		"<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
		"fill=\"%s\"/>\n",
		x, y, width, height, colour);
}

void svg_line(FILE *f, double x1, double y1, double x2, double y2,
	      const char *colour, const char *dashes)
{
	fprintf(f,
		"<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"%s\" "
		"stroke-dasharray=\"%s\" fill=\"none\"/>\n",
		x1, y1, x2, y2, colour, dashes);
}

double svg_step(double range)
{
	double raw = range / 5, power = pow(10, floor(log10(raw)));
	double m = raw / power;

	return (m <= 1 ? 1 : m <= 2 ? 2 : m <= 5 ? 5 : 10) * power;
}
