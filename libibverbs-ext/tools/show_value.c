// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Output: objects, arrays and values, as JSON or as lines of text. In text, what
 * is an object in JSON is a line; one in it is in parentheses.
 */

#include <arpa/inet.h>
#include <endian.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <string.h>

#include "show.h"

#define TEXT_COLUMN 24
#define RAW_LINE 16
#define JSON_PRETTY 4 /* what is in deeper objects is written in a line */

uint64_t show_load(const void *at, size_t size)
{
	uint64_t value = 0;

	memcpy(&value, at, size); /* little-endian */
	return value;
}

/* ---- values ---- */

/*
 * What an image calls something may be anything: it does no harm on a terminal,
 * and is valid JSON, in which what is not ASCII counts as Latin-1.
 */
static void put_string(struct show *s, const char *p, size_t max)
{
	const char *escape = s->json ? "\\u%04x" : "\\x%02x";

	for (; max && *p; p++, max--)
		if (*p == '"' || *p == '\\')
			fprintf(s->f, "\\%c", *p);
		else if (*p >= ' ' && *p <= '~')
			fputc(*p, s->f);
		else
			fprintf(s->f, escape, (unsigned char)*p);
}

static void put_bytes(struct show *s, const unsigned char *p, size_t size,
		      const char *between)
{
	static const char digits[] = "0123456789abcdef";
	size_t i;

	for (i = 0; i < size; i++) {
		if (i)
			fputs(between, s->f);
		fputc(digits[p[i] >> 4], s->f);
		fputc(digits[p[i] & 15], s->f);
	}
}

static void put_gid(struct show *s, const unsigned char *gid)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr addr;

	memcpy(&addr, gid, sizeof(addr));
	if (IN6_IS_ADDR_V4MAPPED(&addr))
		inet_ntop(AF_INET, gid + 12, text, sizeof(text));
	else
		inet_ntop(AF_INET6, gid, text, sizeof(text));
	fputs(text, s->f);
}

static void put_flags(struct show *s, const struct show_name *names,
		      uint64_t value)
{
	const char *between = "";

	if (!value)
		fputs("none", s->f);
	for (; names->name; names++)
		if (value & names->value) {
			fprintf(s->f, "%s%s", between, names->name);
			value &= ~(uint64_t)names->value;
			between = "|";
		}
	if (value)
		fprintf(s->f, "%s%#" PRIx64, between, value);
}

/* NULL: it is a number and no more */
static const char *name_of(const struct show_form *form, uint64_t value)
{
	const struct show_layout *layout =
		form->type ? show_layout_of(value) : NULL;
	const struct show_name *names = form->names;

	for (; names && names->name; names++)
		if (names->value == value)
			return names->name;
	return layout ? layout->name : NULL;
}

static void put_integer(struct show *s, const struct show_form *form,
			uint64_t value)
{
	const char *name = form->flags ? NULL : name_of(form, value);

	if (form->flags)
		put_flags(s, form->names, value);
	else if (name)
		fputs(name, s->f);
	else if (form->as == SHOW_DECIMAL)
		fprintf(s->f, "%" PRIu64, value);
	else if (form->as == SHOW_HEX24)
		fprintf(s->f, "0x%06" PRIx64, value);
	else
		fprintf(s->f, "0x%" PRIx64, value);
}

static uint64_t load(const struct show_form *form, const void *at, size_t size)
{
	uint64_t value = show_load(at, size);

	return form->as == SHOW_BE32 ? be32toh((uint32_t)value) : value;
}

/* for who reads it */
static void put_text(struct show *s, const struct show_form *form,
		     const void *at, size_t size)
{
	switch (form->as) {
	case SHOW_BYTES:
		put_bytes(s, at, size, "");
		break;
	case SHOW_STRING:
		put_string(s, at, size);
		break;
	case SHOW_GID:
		put_gid(s, at);
		break;
	case SHOW_ETHER:
		put_bytes(s, at, size, ":");
		break;
	default:
		put_integer(s, form, load(form, at, size));
	}
}

/* ---- JSON ---- */

static bool json_lines(const struct show *s)
{
	return s->depth <= JSON_PRETTY + (s->open[s->depth] == '[');
}

static void json_next(struct show *s)
{
	if (!s->depth)
		return;
	if (s->filled[s->depth])
		fputc(',', s->f);
	if (json_lines(s))
		fprintf(s->f, "\n%*s", 2 * (int)s->depth, "");
	else if (s->filled[s->depth])
		fputc(' ', s->f);
	s->filled[s->depth] = true;
}

static void json_name(struct show *s, const char *name, const char *more)
{
	json_next(s);
	if (s->depth && s->open[s->depth] == '{')
		fprintf(s->f, "\"%s%s\": ", name, more);
}

static void json_value(struct show *s, const char *name,
		       const struct show_form *form, const void *at,
		       size_t size)
{
	json_name(s, name, "");
	switch (form->as) {
	case SHOW_STRING:
		fputc('"', s->f);
		put_string(s, at, size);
		fputc('"', s->f);
		return;
	case SHOW_BYTES:
	case SHOW_GID:
	case SHOW_ETHER:
		fputc('"', s->f);
		put_bytes(s, at, size, "");
		fputc('"', s->f);
		if (form->as == SHOW_BYTES)
			return;
		break;
	default:
		fprintf(s->f, "%" PRIu64, load(form, at, size));
		if (!form->names && !form->type)
			return;
	}
	json_name(s, name, "_text");
	fputc('"', s->f);
	put_text(s, form, at, size);
	fputc('"', s->f);
}

/* ---- both ---- */

/* begins a line, or goes on in it */
static void text_name(struct show *s, const char *name)
{
	if (s->objects == s->lines)
		fprintf(s->f, "\t%-*s", TEXT_COLUMN, name);
	else
		fprintf(s->f, "%s%s ", s->filled[s->depth] ? ", " : "", name);
	s->filled[s->depth] = true;
}

static void text_open(struct show *s, const char *name)
{
	if (s->objects < s->lines)
		return;
	text_name(s, name);
	if (s->objects > s->lines)
		fputc('(', s->f);
}

static void text_close(struct show *s)
{
	if (s->objects == s->lines)
		fputc('\n', s->f);
	else if (s->objects > s->lines)
		fputc(')', s->f);
}

void show_open(struct show *s, const char *name, char bracket)
{
	bool filled = s->filled[s->depth];

	if (s->json) {
		json_name(s, name, "");
		fputc(bracket, s->f);
	} else if (bracket == '{') {
		text_open(s, name);
	}
	s->depth++;
	s->open[s->depth] = bracket;
	/* an array does not show in text: its first goes on with the line */
	s->filled[s->depth] = !s->json && bracket == '[' && filled;
	s->objects += bracket == '{';
}

void show_close(struct show *s)
{
	const char bracket = s->open[s->depth];
	const bool filled = s->filled[s->depth];
	const bool lines = filled && json_lines(s);

	s->depth--;
	s->objects -= bracket == '{';
	if (!s->json) {
		if (bracket == '{')
			text_close(s);
		else
			s->filled[s->depth] = filled;
		return;
	}
	if (lines)
		fprintf(s->f, "\n%*s", 2 * (int)s->depth, "");
	fputc(bracket == '{' ? '}' : ']', s->f);
}

void show_value(struct show *s, const char *name, const struct show_form *form,
		const void *at, size_t size)
{
	if (s->json) {
		json_value(s, name, form, at, size);
		return;
	}
	text_name(s, name);
	put_text(s, form, at, size);
	if (s->objects == s->lines)
		fputc('\n', s->f);
}

void show_number(struct show *s, const char *name, uint64_t value)
{
	show_value(s, name, &show_decimal, &value, sizeof(value));
}

void show_raw(struct show *s, const void *at, size_t size)
{
	const unsigned char *p = at;
	bool again = false;
	size_t i, n;

	if (s->json) {
		show_value(s, "raw", &show_bytes, at, size);
		return;
	}
	for (i = 0; i < size; i += n) {
		n = size - i < RAW_LINE ? size - i : RAW_LINE;
		/* as hexdump: a star for lines that are as the one before */
		if (i && n == RAW_LINE && !memcmp(p + i, p + i - n, n)) {
			fputs(again ? "" : "\t*\n", s->f);
			again = true;
			continue;
		}
		again = false;
		fprintf(s->f, "\t%06zx  ", i);
		put_bytes(s, p + i, n, " ");
		fputc('\n', s->f);
	}
	if (again)
		fprintf(s->f, "\t%06zx\n", size);
}

void show_text(struct show *s, const char *name, const char *value)
{
	show_value(s, name, &show_string, value, strlen(value));
}
