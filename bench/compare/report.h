/* SPDX-License-Identifier: GPL-2.0 */
#ifndef COMPARE_REPORT_H
#define COMPARE_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* What is compared, in this order wherever it appears */
struct way {
	const char *way, *device; /* as the JSON has it */
	const char *label, *colour;
};
extern const struct way ways[];
extern const unsigned int n_ways;

/* A part of a test, and a piece of a bar */
struct part {
	const char *name, *label, *colour;
};

enum {
	MOST = 64 /* series or numbers of a figure */
};

/* The series of a figure in the order of their first test, and the numbers, sorted */
struct axes {
	const char *series[MOST];
	unsigned int n_series;
	double x[MOST];
	unsigned int n_x;
};

/* --- read.c --- */

/**
 * report_read - a JSON file of compare.awk, with its origin
 *
 * Return: the object, all of whose tests have the members that they must have; or NULL,
 * and standard error has the reason.
 */
json_t *report_read(const char *file);

/** text_of, number_of - a member, which is there */
const char *text_of(const json_t *object, const char *name);
double number_of(const json_t *object, const char *name);

/** find_test - the test of this; NULL if it was not measured */
const json_t *find_test(const json_t *report, const char *figure,
			const struct way *w, const char *series, double x,
			const char *part);

/** axes_of - what tests of a figure there are; false if there are none */
bool axes_of(const json_t *report, const char *figure, struct axes *a);

/** link_ms - how long the link of this run takes for so many bytes */
double link_ms(const json_t *report, double bytes);

/* --- svg.c --- */

/** svg_begin - the file compare-FIGURE.svg in a folder, with a title; or NULL */
FILE *svg_begin(const char *folder, const char *figure, int width, int height,
		const char *title);
int svg_end(FILE *f);
void svg_text(FILE *f, double x, double y, const char *anchor, const char *s);
void svg_box(FILE *f, double x, double y, double width, double height,
	     const char *colour);
void svg_line(FILE *f, double x1, double y1, double x2, double y2,
	      const char *colour, const char *dashes);

/** svg_step - 1, 2 or 5 times a power of ten, of which about five cover a range */
double svg_step(double range);

/* --- bars.c, curves.c, slots.c: each draws a file; 0, or -1 --- */

/**
 * bars - a group of bars for each number, a panel for each series
 * @parts: what a bar consists of, from the bottom; up to one without a name
 * @mark: a part that is shown as a line beside it, or NULL
 */
int bars(const json_t *report, const char *folder, const char *figure,
	 const char *title, const struct part *parts, const char *mark);
int curves(const json_t *report, const char *folder);
int slots(const json_t *report, const char *folder);

/* --- table.c --- */

struct row;

struct figure {
	const char *name, *title;
	const char *series,
		*x; /* what these columns are called; "": there is none */
	const char *parts[10]; /* the columns, and NULL */
	const char *judged; /* the part by which ways are compared, or NULL */
	const char *apart;  /* one that is not in that, or NULL */
	/* writes what is made of a row, or if that is NULL what that is called */
	void (*extra)(FILE *out, const struct row *row);
	const char *shows, *not;
	const char *why; /* if the parts tell why one is slower: what they are */
};

struct row {
	const json_t *report;
	const struct figure *figure;
	const struct way *way;
	const char *series;
	double x;
};

/** more_instructions - than without the layer, with the same provider */
void more_instructions(FILE *out, const struct row *row);
/** times_link - how long the link takes for what was in flight */
void times_link(FILE *out, const struct row *row);
/** times_protocol - how much longer than by the protocol the judged part is */
void times_protocol(FILE *out, const struct row *row);

/** write_table - 0, or -1 if there is no memory */
int write_table(FILE *out, const json_t *report, const struct figure *g,
		const struct axes *a);

/** write_why - how much longer than by the protocol, and which parts that is most of all */
void write_why(FILE *out, const json_t *report, const struct figure *g,
	       const struct axes *a);

/* --- text.c --- */

extern const struct part blackout_parts[], stop_parts[], datapath_parts[],
	jobs_parts[];

/** write_page - 0, or -1 if there is no memory */
int write_page(FILE *out, const json_t *report);

#endif
