// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The text, the header file and the tables of migr-image say the same: every
 * field is described once, at its offset, with its size.
 *
 *	test_format image-format.md
 */

#include <string.h>

#include "../../tests/check.h"
#include "migr_check.h"
#include "show.h"

/* the tables of migr-image, one behind the other */
struct row {
	const char *section; /* a heading, or a line in the place of one */
	char field[64];
	size_t offset;
	size_t size;
};

static struct row rows[256];
static size_t n_rows;

/* a group without a section is described where it lies, as "wqe.valid" */
static void add_rows(const struct show_layout *layout, const char *section,
		     const char *prefix, size_t base)
{
	const struct show_layout *group;
	const struct show_field *f;
	unsigned int i;
	char inner[32];

	for (i = 0; i < layout->fields; i++) {
		f = &layout->field[i];
		group = f->form->group;
		if (group && !group->section && group->size == f->size) {
			snprintf(inner, sizeof(inner), "%s.", f->name);
			add_rows(group, section, inner, base + f->offset);
			continue;
		}
		MUST(n_rows < sizeof(rows) / sizeof(rows[0]));
		rows[n_rows].section = section;
		snprintf(rows[n_rows].field, sizeof(rows[n_rows].field), "%s%s",
			 prefix, f->name);
		rows[n_rows].offset = base + f->offset;
		rows[n_rows].size = f->size;
		n_rows++;
	}
}

/* no byte of the structure without a field */
static void check_whole(const struct show_layout *layout)
{
	size_t at = layout->type ? sizeof(struct rxe_migr_rec) : 0;
	const struct show_field *f;
	unsigned int i;

	for (i = 0; i < layout->fields; i++) {
		f = &layout->field[i];
		CHECK(f->offset == at, "%s.%s is at %u, not %zu", layout->name,
		      f->name, f->offset, at);
		at = f->offset + f->size;
		if (f->form->group && !f->form->group->section)
			check_whole(f->form->group);
	}
	CHECK(at == layout->size, "%s: %zu of %zu bytes", layout->name, at,
	      layout->size);
}

/* "u32", "16 bytes", "32 × 16 bytes", "Ring" */
static size_t size_of(const char *type)
{
	unsigned int n, each;

	if (sscanf(type, "u%u", &n) == 1)
		return n / 8;
	if (sscanf(type, "%u × %u bytes", &n, &each) == 2)
		return (size_t)n * each;
	if (sscanf(type, "%u bytes", &n) == 1)
		return n;
	return strncmp(type, "Ring", 4) ? 0 : sizeof(struct rxe_migr_ring);
}

/* the next field that is described must be the next one of the table */
static void check_line(const char *section, const char *line, size_t *next)
{
	const struct row *row = &rows[*next];
	char field[64], type[64];
	size_t offset;

	if (sscanf(line, "| %zu | %63[a-z0-9_.] | %63[^|]", &offset, field,
		   type) != 3)
		return;
	if (!strcmp(field, "resources")) /* not a member, but behind them */
		return;
	CHECK(*next < n_rows, "%s is one too many", field);
	if (*next >= n_rows)
		return;
	CHECK(!strcmp(field, row->field), "%s where %s should be", field,
	      row->field);
	CHECK(offset == row->offset, "%s is at %zu", field, row->offset);
	CHECK(size_of(type) == row->size, "%s has %zu bytes", field, row->size);
	CHECK(!strncmp(section, row->section, strlen(row->section)),
	      "%s is not in \"%s\"", field, row->section);
	(*next)++;
}

/* how long a record is at least: "| 3 | CQ | any number | 80 bytes" */
static void check_size(const char *line, unsigned int *sizes)
{
	const struct show_layout *layout;
	unsigned int type;
	char name[32];
	size_t bytes;

	if (sscanf(line, "| %u | %31[A-Z_] | %*[^|] | %zu bytes", &type, name,
		   &bytes) != 3)
		return;
	layout = show_layout_of(type);
	CHECK(layout, "type %u is not known", type);
	if (!layout)
		return;
	CHECK(bytes == layout->size, "type %u has %zu bytes", type,
	      layout->size);
	CHECK(!strcmp(name, layout->name), "%s is called %s", name,
	      layout->name);
	(*sizes)++;
}

/* what the library takes for a record, migr-image has a table of */
static void check_types(void)
{
	uint32_t type;
	bool known;

	for (type = 0; type < 64; type++) {
		known = type == RXE_MIGR_CONTEXT || migr_type_known(type);
		CHECK(!!show_layout_of(type) == known, "type %u", type);
	}
}

int main(int argc, char **argv)
{
	char line[1024], section[1024] = "";
	unsigned int sizes = 0, types = 0, i;
	size_t next = 0;
	FILE *f = argc == 2 ? fopen(argv[1], "r") : NULL;

	if (!f) {
		fprintf(stderr, "usage: test_format image-format.md\n");
		return 2;
	}
	for (i = 0; show_layouts[i]; i++) {
		add_rows(show_layouts[i], show_layouts[i]->section, "", 0);
		check_whole(show_layouts[i]);
		types += !!show_layouts[i]->type;
	}
	check_types();
	while (fgets(line, sizeof(line), f)) {
		if (line[0] == '#' || !strncmp(line, "A responder", 11) ||
		    !strncmp(line, "A group", 7) ||
		    !strncmp(line, "An event", 8))
			strcpy(section, line);
		check_line(section, line, &next);
		check_size(line, &sizes);
	}
	fclose(f);
	CHECK(next == n_rows, "%zu of %zu fields described", next, n_rows);
	CHECK(sizes == types, "the sizes of %u types", sizes);
	CHECK(sizeof(struct rxe_migr_image_hdr) == 72, "header");
	CHECK(sizeof(struct rxe_migr_rec_context) == 96, "CONTEXT");
	CHECK(sizeof(struct rxe_migr_rec_pd) == 24, "PD");
	CHECK(sizeof(struct rxe_migr_rec_cq) == 80, "CQ");
	CHECK(sizeof(struct rxe_migr_rec_mr) == 64, "MR");
	CHECK(sizeof(struct rxe_migr_rec_mw) == 72, "MW");
	CHECK(sizeof(struct rxe_migr_rec_ah) == 72, "AH");
	CHECK(sizeof(struct rxe_migr_rec_mcast) == 32, "MCAST");
	CHECK(sizeof(struct rxe_migr_rec_qp) == 928, "QP");
	CHECK(sizeof(struct rxe_migr_rec_srq) == 88, "SRQ");
	CHECK(sizeof(struct rxe_migr_res) == 40, "resource");
	return check_result();
}
