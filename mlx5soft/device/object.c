// SPDX-License-Identifier: GPL-2.0
/* Objects, their numbers, and who needs whom. */

#include <stdlib.h>

#include "nic.h"
#include "object.h"

/* Kinds that share a name space: events and CQEs have only the number. */
static const uint8_t space_of[OBJ_KINDS] = {
	[OBJ_XRC_SRQ] = OBJ_SRQ,
	[OBJ_RMP] = OBJ_SRQ,
	[OBJ_SQ] = OBJ_QP,
	[OBJ_RQ] = OBJ_QP,
};

static const struct {
	uint32_t first, limit;
} range[OBJ_KINDS] = {
	[OBJ_PD] = { 1, 1 << 15 },
	[OBJ_UAR] = { FIRST_UAR, BAR_SIZE / UAR_PAGE },
	[OBJ_XRCD] = { 1, 1 << 8 },
	[OBJ_TD] = { 1, 1 << 8 },
	[OBJ_EQ] = { 1, 1 << 4 },
	[OBJ_CQ] = { 1, 1 << 15 },
	[OBJ_MKEY] = { 16, 1 << 15 },
	[OBJ_SRQ] = { 1, 1 << 15 },
	[OBJ_QP] = { 64, 1 << 15 },
	[OBJ_Q_COUNTER] = { 1, 1 << 8 },
	[OBJ_TIR] = { 1, 1 << 10 },
	[OBJ_TIS] = { 1, 1 << 10 },
	[OBJ_RQT] = { 1, 1 << 10 },
	[OBJ_FT] = { 1, 1 << 8 },
};

void objs_init(struct nic *nic)
{
	int kind;

	for (kind = 0; kind < OBJ_KINDS; kind++) {
		nic->table[kind].first = range[kind].first;
		nic->table[kind].limit = range[kind].limit;
		nic->table[kind].next = range[kind].first;
	}
}

struct id_table *obj_table(struct nic *nic, enum obj_kind kind)
{
	return &nic->table[space_of[kind] ? space_of[kind] : kind];
}

struct obj *obj_find(struct nic *nic, enum obj_kind kind, uint32_t id)
{
	struct id_table *t = obj_table(nic, kind);

	if (id >= t->size || !t->slot[id] || t->slot[id]->kind != kind)
		return NULL;
	return t->slot[id];
}

static bool grow(struct id_table *t)
{
	uint32_t size = t->size ? t->size * 2 : 64;
	struct obj **slot;

	while (size <= t->first)
		size *= 2;
	if (size > t->limit)
		size = t->limit;
	if (size <= t->size)
		return false;
	slot = realloc(t->slot, size * sizeof(*slot));
	if (!slot)
		return false;
	memset(slot + t->size, 0, (size - t->size) * sizeof(*slot));
	t->slot = slot;
	t->size = size;
	return true;
}

bool obj_add(struct nic *nic, struct obj *obj, enum obj_kind kind)
{
	struct id_table *t = obj_table(nic, kind);
	uint32_t i, id;

	/* Round, so that a number does not come again at once */
	if (t->count + t->first >= t->size)
		if (!grow(t))
			return false;
	for (i = t->first, id = t->next; i < t->size; i++, id++) {
		if (id >= t->size)
			id = t->first;
		if (!t->slot[id])
			break;
	}
	if (i >= t->size)
		return false;
	t->slot[id] = obj;
	t->next = id + 1;
	t->count++;
	obj->kind = kind;
	obj->id = id;
	return true;
}

bool obj_hold(struct obj *obj, struct obj *dep)
{
	if (!dep || obj->ndeps == MAX_DEPS)
		return false;
	obj->dep[obj->ndeps++] = dep;
	dep->users++;
	return true;
}

void obj_drop_deps(struct obj *obj)
{
	while (obj->ndeps)
		obj->dep[--obj->ndeps]->users--;
}

void obj_destroy(struct nic *nic, struct obj *obj)
{
	struct id_table *t;

	obj_drop_deps(obj);
	if (obj->kind != OBJ_NONE) {
		t = obj_table(nic, obj->kind);
		t->slot[obj->id] = NULL;
		t->count--;
	}
	if (obj->free)
		obj->free(nic, obj);
	else
		free(obj);
}

void obj_destroy_all(struct nic *nic)
{
	struct id_table *t;
	int kind;
	uint32_t i;

	/* First nobody needs anybody, then the order does not matter. */
	for (kind = 0; kind < OBJ_KINDS; kind++) {
		t = &nic->table[kind];
		for (i = 0; i < t->size; i++)
			if (t->slot[i])
				obj_drop_deps(t->slot[i]);
	}
	for (kind = 0; kind < OBJ_KINDS; kind++) {
		t = &nic->table[kind];
		for (i = 0; i < t->size; i++)
			if (t->slot[i])
				obj_destroy(nic, t->slot[i]);
		free(t->slot);
		memset(t, 0, sizeof(*t));
	}
	objs_init(nic);
}
