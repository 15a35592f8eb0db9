// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The walk over an image: header, records, what follows their fields. All of it
 * has been checked by migr_image_parse().
 */

#include <string.h>

#include "show.h"

static bool is_zero(const void *at, size_t size)
{
	const char *p = at;

	while (size && !*p) {
		p++;
		size--;
	}
	return !size;
}

const struct rxe_migr_rec *show_next(const struct migr_image *img,
				     const struct rxe_migr_rec *rec)
{
	const char *next = (const char *)rec + rec->length;

	return next < (const char *)img->data + img->length ? (const void *)next
							    : NULL;
}

void show_array(struct show *s, const char *name,
		const struct show_layout *layout, const void *at, size_t count)
{
	const char *p = at;

	show_open(s, name, '[');
	for (; count; count--, p += layout->size) {
		show_open(s, layout->name, '{');
		show_fields(s, layout, p);
		show_close(s);
	}
	show_close(s);
}

static void show_group(struct show *s, const struct show_field *field,
		       const char *at)
{
	const struct show_form *form = field->form;
	const size_t each = form->group->size;
	size_t count = field->size / each;

	if (count > 1) {
		while (count && is_zero(at + (count - 1) * each, each))
			count--;
		show_array(s, field->name, form->group, at, count);
		return;
	}
	show_open(s, field->name, '{');
	show_fields(s, form->group, at);
	if (form->used)
		show_number(s, form->used, show_ring_used((const void *)at));
	show_close(s);
}

void show_fields(struct show *s, const struct show_layout *layout,
		 const void *base)
{
	const struct show_field *field;
	unsigned int i;
	const char *at;

	for (i = 0; i < layout->fields; i++) {
		field = &layout->field[i];
		at = (const char *)base + field->offset;
		if (!s->json && field->form->quiet)
			continue;
		if (!s->json && layout->sparse && !field->form->names &&
		    !field->form->always && is_zero(at, field->size))
			continue;
		if (field->form->as == SHOW_GROUP)
			show_group(s, field, at);
		else
			show_value(s, field->name, field->form, at,
				   field->size);
	}
}

/* ---- what follows the fields ---- */

static const char *show_items(struct show *s, const struct show_layout *layout,
			      const struct rxe_migr_rec *rec)
{
	const char *at = (const char *)rec + layout->size;
	uint32_t count, i;
	char name[32];

	if (!layout->items)
		return at;
	count = show_load((const char *)rec + layout->items_at, sizeof(count));
	show_open(s, layout->items_name, '[');
	for (i = 0; i < count; i++, at += layout->items->size) {
		/* one of all zeros is there, but has nothing to say */
		if (!s->json && layout->items->sparse &&
		    is_zero(at, layout->items->size))
			continue;
		snprintf(name, sizeof(name), "%s %u", layout->items->name, i);
		show_open(s, name, '{');
		show_fields(s, layout->items, at);
		show_close(s);
	}
	show_close(s);
	return at;
}

static void show_slots(struct show *s, const struct show_field *field,
		       const struct rxe_migr_ring *ring, const char *data)
{
	const uint32_t used = show_ring_used(ring);
	uint32_t i, slot, place;
	char name[32];

	snprintf(name, sizeof(name), "%s_slots", field->name);
	show_open(s, name, '[');
	for (i = 0; i < used; i++) {
		slot = (ring->consumer + i) & ring->index_mask;
		place = field->form->packed ? i : slot;
		if (place >= ring->slots) {
			/* not in the image: all zero, up to the ring's end */
			i += ring->index_mask - slot;
			continue;
		}
		snprintf(name, sizeof(name), "%s slot %u", field->name, slot);
		show_open(s, name, '{');
		if (s->json)
			show_number(s, "slot", slot);
		show_slot(s, field->form->slot,
			  data + ((size_t)place << ring->log2_elem),
			  (size_t)1 << ring->log2_elem);
		show_close(s);
	}
	show_close(s);
}

static void show_all_slots(struct show *s, const struct show_layout *layout,
			   const struct rxe_migr_rec *rec, const char *data)
{
	const struct show_field *field;
	const struct rxe_migr_ring *ring;
	unsigned int i;

	for (i = 0; i < layout->fields; i++) {
		field = &layout->field[i];
		if (!field->form->slot)
			continue;
		ring = (const void *)((const char *)rec + field->offset);
		show_slots(s, field, ring, data);
		data += (size_t)ring->slots << ring->log2_elem;
	}
}

/* ---- records ---- */

static void show_heading(struct show *s, const struct show_layout *layout,
			 const struct rxe_migr_rec *rec)
{
	if (!layout)
		fprintf(s->f, "\ntype 0x%x (not known, skipped) %u\n",
			rec->type, rec->handle);
	else if (layout->no_handle)
		fprintf(s->f, "\n%s\n", layout->name);
	else
		fprintf(s->f, "\n%s %u\n", layout->name, rec->handle);
}

/* in JSON apart: some of its names are those of records' fields, too */
static void show_common(struct show *s, const struct rxe_migr_rec *rec)
{
	if (s->json)
		show_open(s, "rec", '{');
	show_fields(s, &show_record, rec);
	if (s->json)
		show_close(s);
}

static void show_one(struct show *s, const struct rxe_migr_rec *rec, size_t at)
{
	const struct show_layout *layout = show_layout_of(rec->type);
	const char *data;

	if (!s->json)
		show_heading(s, layout, rec);
	show_open(s, NULL, '{');
	show_number(s, "at", at);
	show_common(s, rec);
	if (layout) {
		show_fields(s, layout, rec);
		data = show_items(s, layout, rec);
		if (s->slots)
			show_all_slots(s, layout, rec, data);
	}
	if (s->raw)
		show_raw(s, rec, rec->length);
	show_close(s);
}

void show_begin(struct show *s, const char *file, const struct migr_image *img)
{
	const struct rxe_migr_image_hdr *hdr = img->data;

	s->lines = 2;
	show_open(s, NULL, '{');
	if (s->json) {
		show_text(s, "file", file);
		show_open(s, "header", '{');
		show_fields(s, &show_header, hdr);
		if (s->raw)
			show_raw(s, hdr, hdr->hdr_length);
		show_close(s);
		return;
	}
	/* a line of its own, that begins with the file's name */
	fprintf(s->f, "%s%s: ", s->filled[0] ? "\n" : "", file);
	s->filled[0] = true;
	s->lines = 0;
	show_fields(s, &show_header, hdr);
	fputc('\n', s->f);
	if (s->raw)
		show_raw(s, hdr, hdr->hdr_length);
}

void show_image(struct show *s, const char *file, const struct migr_image *img)
{
	const struct rxe_migr_rec *rec = &img->context->rec;

	show_begin(s, file, img);
	s->lines = 2;
	show_open(s, "records", '[');
	for (; rec; rec = show_next(img, rec))
		show_one(s, rec, (const char *)rec - (const char *)img->data);
	show_close(s);
	show_close(s);
}
