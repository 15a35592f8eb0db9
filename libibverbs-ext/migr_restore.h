/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The steps of restoring a context, one object at a time. Internal to this
 * folder: the whole is migr_restore_context().
 */
#ifndef MIGR_RESTORE_H
#define MIGR_RESTORE_H

#include "migr_cmd.h"
#include "migr_uverbs.h"

struct migr_restore {
	int fd;
	uint32_t comp_vectors;		  /* of this device; 0: not known */
	struct ib_uverbs_gid_entry *gids; /* of this device, asked for once */
	size_t gid_count;
	struct migr_error *err;
};

void migr_restore_init(struct migr_restore *r, int fd, struct migr_error *err);
void migr_restore_release(struct migr_restore *r);

/*
 * Create one object with the identities of its record. The context's lowest
 * free handle must be the object's (migr_place_object() sees to that).
 */
int migr_create_object(struct migr_restore *r, const struct rxe_migr_rec *rec);

/* The same, wherever the lowest free handle is. Takes time as handles are low */
int migr_place_object(struct migr_restore *r, const struct rxe_migr_rec *rec);

/* Fill a CQ, or take a QP to its state and fill it; nothing for others */
int migr_refill_object(struct migr_restore *r, const struct rxe_migr_rec *rec);

/* Say "QP 5: doing: reason" and return ret */
int migr_restore_error(struct migr_restore *r, const struct rxe_migr_rec *rec,
		       const char *doing, int ret);

/* PDs need no identity but the handle, and hold the place of others */
int migr_alloc_pd(int fd, uint32_t *handle);
int migr_free_pd(int fd, uint32_t handle);

/* ---- states of QPs (migr_restore_qp.c) ---- */

int migr_connect_qp(struct migr_restore *r, const struct rxe_migr_rec *rec);

/* ---- GIDs (migr_gid.c) ---- */

/*
 * The index of this device's GID for a connection that used `sgid` at index
 * `preferred`: RoCEv2, same address family and scope, the same index if that
 * one fits. -EADDRNOTAVAIL if there is none.
 */
int migr_pick_gid(const struct ib_uverbs_gid_entry *gids, size_t count,
		  const uint8_t *sgid, unsigned int preferred);

/* Fill r->gids unless they are there already */
int migr_query_gids(struct migr_restore *r);

#endif /* MIGR_RESTORE_H */
