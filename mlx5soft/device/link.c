// SPDX-License-Identifier: GPL-2.0
/* A serial link: when frames leave it, and when they arrive. */

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "link.h"

#define SECOND 1000000000ULL
#define MIN_FRAME 60U
#define AROUND 24U /* preamble 8, FCS 4, gap 12 */

static uint64_t one(uint32_t len)
{
	return (len < MIN_FRAME ? MIN_FRAME : len) + AROUND;
}

uint64_t link_bytes(uint32_t len, uint32_t headers, uint32_t segment)
{
	uint32_t payload = len - headers, rest;

	if (!segment || payload <= segment)
		return one(len);
	rest = payload % segment;
	return payload / segment * one(headers + segment) +
	       (rest ? one(headers + rest) : 0);
}

/*
 * What a division leaves is carried on: however many frames there are, they
 * take as long as all of their bits. None is there before its last bit is.
 */
uint64_t link_send(struct link *link, uint64_t now, uint64_t bytes)
{
	uint64_t time;

	if (link->free < now) {
		link->free = now;
		link->rest = 0;
	}
	if (link->rate) {
		time = bytes * 8 * SECOND + link->rest;
		link->free += time / link->rate;
		link->rest = time % link->rate;
	}
	return link->free + !!link->rest + link->delay;
}

/* ---- words ---- */

/* Digits, perhaps a point and more of them. Returns what follows, or NULL. */
static const char *number(const char *text, double *n)
{
	char *end;

	if (*text < '0' || *text > '9')
		return NULL;
	*n = strtod(text, &end);
	/* strtod() also knows exponents and hexadecimal ones */
	return text + strspn(text, "0123456789.") == end ? end : NULL;
}

struct unit {
	const char *name;
	double value;
};

static bool measure(const char *text, const struct unit *units, double least,
		    double most, uint64_t *out)
{
	double n;

	text = number(text, &n);
	if (!text)
		return false;
	while (units->name && strcasecmp(text, units->name))
		units++;
	n *= units->value; /* 0 at the end of the list */
	if (!units->name || n < least || n > most)
		return false;
	*out = n + 0.5;
	return true;
}

bool link_parse_rate(const char *text, uint64_t *rate)
{
	static const struct unit units[] = {
		{ "", 1 },	 { "k", 1e3 },	  { "M", 1e6 },
		{ "G", 1e9 },	 { "bit", 1 },	  { "kbit", 1e3 },
		{ "Mbit", 1e6 }, { "Gbit", 1e9 }, { 0 },
	};

	return measure(text, units, LINK_MIN_RATE, LINK_MAX_RATE, rate);
}

bool link_parse_time(const char *text, uint64_t *ns)
{
	static const struct unit units[] = {
		{ "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { 0 },
	};

	return measure(text, units, 0, LINK_MAX_DELAY, ns);
}
