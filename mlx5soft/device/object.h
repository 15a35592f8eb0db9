/* SPDX-License-Identifier: GPL-2.0 */
/* Objects, their numbers, and who needs whom. */
#ifndef MLX5SOFT_OBJECT_H
#define MLX5SOFT_OBJECT_H

#include <stdbool.h>

#include "bits.h"

struct nic;

enum obj_kind {
	OBJ_NONE,
	OBJ_PD,
	OBJ_UAR,
	OBJ_XRCD,
	OBJ_TD,
	OBJ_EQ,
	OBJ_CQ,
	OBJ_MKEY,
	OBJ_SRQ,
	OBJ_XRC_SRQ,
	OBJ_RMP,
	OBJ_QP,
	OBJ_SQ,
	OBJ_RQ,
	OBJ_Q_COUNTER,
	OBJ_TIR,
	OBJ_TIS,
	OBJ_RQT,
	OBJ_FT,
	OBJ_KINDS,
};

#define MAX_DEPS 8

/*
 * Anything with a number. It holds those it needs, which then cannot be
 * destroyed: RES_BUSY.
 */
struct obj {
	enum obj_kind kind;
	uint32_t id;
	uint32_t users;
	unsigned int ndeps;
	struct obj *dep[MAX_DEPS];
	void (*free)(struct nic *nic, struct obj *obj); /* NULL: free() */
};

/* Numbers of one name space; several kinds may share one. */
struct id_table {
	uint32_t first, limit; /* numbers in use are first <= id < limit */
	uint32_t size, next;
	uint32_t count;
	struct obj **slot;
};

struct obj *obj_find(struct nic *nic, enum obj_kind kind, uint32_t id);
/* Give it a number; false: none left. The object stays the caller's then. */
bool obj_add(struct nic *nic, struct obj *obj, enum obj_kind kind);
bool obj_hold(struct obj *obj, struct obj *dep);
void obj_drop_deps(struct obj *obj);
void obj_destroy(struct nic *nic, struct obj *obj);
void obj_destroy_all(struct nic *nic);
struct id_table *obj_table(struct nic *nic, enum obj_kind kind);
void objs_init(struct nic *nic);

#endif /* MLX5SOFT_OBJECT_H */
