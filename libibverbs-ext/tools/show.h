/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * An image in words. Tables say which fields there are and how their values
 * look; one walk over an image serves both text and JSON.
 */
#ifndef SHOW_H
#define SHOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "migr_cmd.h"

/* ---- tables (show_form.c, show_layout.c, show_slot.c) ---- */

struct show_layout;

struct show_name {
	uint32_t value;
	const char *name;
};

enum show_as {
	SHOW_DECIMAL,
	SHOW_HEX,
	SHOW_HEX24, /* QPNs and PSNs: six digits */
	SHOW_BE32,  /* hexadecimal, in network order */
	SHOW_BYTES,
	SHOW_STRING,
	SHOW_GID,
	SHOW_ETHER,
	SHOW_GROUP, /* a structure; an array if there is room for several */
};

/* How values of a kind look to a reader */
struct show_form {
	enum show_as as;
	bool quiet;  /* text says it elsewhere, or does not need it */
	bool always; /* text says it even if it is 0 */
	bool flags;  /* the names are those of bits */
	bool type;   /* of a record, which its layout names */
	const struct show_name *names;
	/* SHOW_GROUP: what is in it */
	const struct show_layout *group;
	/* a ring: what its slots hold, and what they are to be called */
	const struct show_layout *slot;
	const char *used;
	bool packed; /* only those slots are in the image */
};

struct show_field {
	const char *name;
	uint16_t offset;
	uint16_t size;
	const struct show_form *form;
};

/* A structure of the image */
struct show_layout {
	const char *name;
	const char *section; /* that describes it, as its first line begins */
	uint32_t type;	     /* of records */
	bool no_handle;
	bool sparse; /* text leaves out what is 0 and has no name */
	const struct show_field *field;
	unsigned int fields;
	size_t size;
	/* what follows, before the slots; the u32 at items_at says how many */
	const char *items_name;
	const struct show_layout *items;
	size_t items_at;
};

extern const struct show_form show_decimal, show_hex, show_hex24, show_be32,
	show_bytes, show_id, show_string, show_gid, show_ether, show_reserved,
	show_reserved_bytes, show_magic, show_record_type, show_record_handle,
	show_handle, show_access, show_notify, show_qp_type, show_qp_state,
	show_mw_state, show_mtu, show_network, show_bth, show_wc_status,
	show_wc_opcode, show_wc_flags, show_wr_opcode, show_send_flags,
	show_wqe_state, show_event_type, show_res_kind;

#define SHOW_FIELD(type, label, member, how)                \
	{                                                   \
		.name = (label),                            \
		.offset = offsetof(struct type, member),    \
		.size = sizeof(((struct type *)0)->member), \
		.form = &show_##how,                        \
	}

#define SHOW_FIELDS(...)                                               \
	.field = (const struct show_field[]){ __VA_ARGS__ },           \
	.fields = sizeof((const struct show_field[]){ __VA_ARGS__ }) / \
		  sizeof(struct show_field)

/* In the order of docs/image-format.md; NULL ends them */
extern const struct show_layout *const show_layouts[];
extern const struct show_layout show_header, show_record, show_sge;

/* NULL: no known record */
const struct show_layout *show_layout_of(uint32_t type);

/* What is in the slots of rings */
extern const struct show_layout show_wc, show_send, show_recv;

/* ---- output (show_value.c) ---- */

/* an element of a list in a slot of a record of a file, and one more */
#define SHOW_DEPTH 10

struct show {
	FILE *f;
	bool json;
	bool slots; /* of rings, too */
	bool raw;   /* the bytes, too */
	/* text: what is inside of this many objects is a line each */
	unsigned int lines;
	/* what is open, '{' or '['; and whether something is in it */
	unsigned int depth, objects;
	char open[SHOW_DEPTH];
	bool filled[SHOW_DEPTH];
};

/* `name` is ignored by JSON in arrays, as it must be */
void show_open(struct show *s, const char *name, char bracket);
void show_close(struct show *s);
void show_value(struct show *s, const char *name, const struct show_form *form,
		const void *at, size_t size);
void show_number(struct show *s, const char *name, uint64_t value);
void show_text(struct show *s, const char *name, const char *value);

/* Bytes as they are; in text as lines with their offsets */
void show_raw(struct show *s, const void *at, size_t size);

/* An integer of the image */
uint64_t show_load(const void *at, size_t size);

/* ---- images (show_image.c, show_slot.c, show_summary.c) ---- */

/* One checked image, whole or as a summary, for which memory may lack: -errno */
void show_image(struct show *s, const char *file, const struct migr_image *img);
int show_summary(struct show *s, const char *file,
		 const struct migr_image *img);

/* Open the file's object, and its header */
void show_begin(struct show *s, const char *file, const struct migr_image *img);

void show_fields(struct show *s, const struct show_layout *layout,
		 const void *base);

/* The record behind `rec`, unknown ones too; NULL: there is no more */
const struct rxe_migr_rec *show_next(const struct migr_image *img,
				     const struct rxe_migr_rec *rec);

/* One slot that holds what `layout` says, of `size` bytes */
void show_slot(struct show *s, const struct show_layout *layout, const void *at,
	       size_t size);

/* An array of structures */
void show_array(struct show *s, const char *name,
		const struct show_layout *layout, const void *at, size_t count);

static inline uint32_t show_ring_used(const struct rxe_migr_ring *ring)
{
	return (ring->producer - ring->consumer) & ring->index_mask;
}

#endif /* SHOW_H */
