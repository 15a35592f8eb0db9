// SPDX-License-Identifier: GPL-2.0
/*
 * What each object takes in the image, next to Table 1 of MigrOS (USENIX
 * ATC'21).
 *
 * Ours are of the smallest context. Of a record the fixed part is what its type
 * always has; the contents are slots of its rings, and of a QP the resources
 * for what its peer may ask for again. In the paper a QP with an SRQ is larger
 * by the receive WQE that is being filled; here each QP has a place for it.
 */
#include "scale.h"

static const struct row {
	const char *name;
	enum object_type type;
	enum kind kind;
	int paper;
} rows[] = {
	{ "PD", PD, OWN_QUEUE, 12 },  { "MR", MR, OWN_QUEUE, 48 },
	{ "CQ", CQ, OWN_QUEUE, 64 },  { "SRQ", SRQ, FROM_SRQ, 68 },
	{ "QP", QP, OWN_QUEUE, 271 }, { "QP with SRQ", QP, FROM_SRQ, 823 },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* NULL: no run had such an object */
static const struct object *object_of(const struct results *r,
				      const struct row *row)
{
	const struct scale *s = &r->kind[row->kind];
	const struct object *o = &s->size[0].object[row->type];

	return s->sizes && o->count ? o : NULL;
}

static size_t wqe_bytes(const struct results *r)
{
	return r->kind[r->kind[OWN_QUEUE].sizes ? OWN_QUEUE : FROM_SRQ]
		.size[0]
		.wqe_bytes;
}

void objects_print(const struct results *r)
{
	printf("bytes in the image      fixed    contents  MigrOS\n");
	for (size_t i = 0; i < ROWS; i++) {
		const struct object *o = object_of(r, &rows[i]);

		printf("%-20s ", rows[i].name);
		if (o)
			printf("%8zu %11zu", o->fixed, o->contents);
		else
			printf("%8s %11s", "-", "-");
		printf(" %7d\n", rows[i].paper);
	}
	printf("contents: of rings, and what a QP's peer may ask for again; %zu bytes of each\n"
	       "QP are for a receive WQE that is being filled, in MigrOS of those with an SRQ\n",
	       wqe_bytes(r));
}

void objects_json(FILE *out, const struct results *r)
{
	const char *comma = "";

	fprintf(out, "  \"objects\": [");
	for (size_t i = 0; i < ROWS; i++) {
		const struct object *o = object_of(r, &rows[i]);

		if (!o)
			continue;
		fprintf(out,
			"%s\n    {\"type\": \"%s\", \"fixed_bytes\": %zu, "
			"\"content_bytes\": %zu, \"migros_bytes\": %d}",
			comma, rows[i].name, o->fixed, o->contents,
			rows[i].paper);
		comma = ",";
	}
	fprintf(out, "\n  ],\n  \"receive_wqe_in_qp_bytes\": %zu,\n",
		wqe_bytes(r));
}
