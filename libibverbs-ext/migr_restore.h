/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The steps of restoring a context, one object at a time. Internal to this
 * folder: the whole is migr_restore_context().
 */
#ifndef MIGR_RESTORE_H
#define MIGR_RESTORE_H

#include <stdbool.h>

#include "migr_cmd.h"
#include "migr_qp.h"
#include "migr_uverbs.h"

struct migr_restore {
	int fd;
	uint32_t comp_vectors; /* of this device; 0: not known */
	struct migr_gids gids; /* of this device, asked for once */
	/* of QPs and AHs, by handle; NULL: as the records say */
	const struct migr_address **address;
	const struct migr_files *files; /* channels for CQs; NULL: none */
	struct migr_error *err;
};

void migr_restore_init(struct migr_restore *r, int fd, struct migr_error *err);
void migr_restore_release(struct migr_restore *r);

/*
 * Create one object with the identities of its record, which is one of the
 * image that the context has been given (LOAD). The context's lowest free
 * handle must be the object's (migr_place_object() sees to that).
 */
int migr_create_object(struct migr_restore *r, const struct rxe_migr_rec *rec);

/*
 * The same, wherever the lowest free handle is. Takes time as handles are low
 */
int migr_place_object(struct migr_restore *r, const struct rxe_migr_rec *rec);

/* Fill a CQ or an SRQ, or take a QP to its state and fill it; else nothing */
int migr_refill_object(struct migr_restore *r, const struct rxe_migr_rec *rec);

/* Say "QP 5: doing: reason" and return ret */
int migr_restore_error(struct migr_restore *r, const struct rxe_migr_rec *rec,
		       const char *doing, int ret);

/* PDs need no identity but the handle, and hold the place of others */
int migr_alloc_pd(int fd, uint32_t *handle);
int migr_free_pd(int fd, uint32_t handle);

/* ---- states of QPs (migr_restore_qp.c) ---- */

int migr_connect_qp(struct migr_restore *r, const struct rxe_migr_rec *rec);

/* Where the record leads on this host: the peer's GID, and our own one */
int migr_find_way(struct migr_restore *r, const struct rxe_migr_rec *rec,
		  const uint8_t **dgid, const struct ib_uverbs_gid_entry **own);

/* ---- GIDs (migr_gid.c) ---- */

/* The RoCEv2 entry of a GID, if several at `index`; NULL: there is none */
const struct ib_uverbs_gid_entry *
migr_find_gid(const struct migr_gids *gids, const uint8_t *gid, uint8_t index);

/*
 * The GID of this device for a connected QP or an AH. That is the one that it had, if
 * the device has it. Else it is a RoCEv2 GID of the same address family and
 * scope from which the peer can be reached: first of all the one that the host
 * would choose itself for that peer, then one at the same index. If
 * `peer_moves`, the peer will be on this host, and no route is needed; nor is it
 * to a multicast group. An AH may have no route: its GID is the one at the same index
 * then, or any.
 *
 * -EADDRNOTAVAIL: there is none of the kind; -EHOSTUNREACH: none has a route.
 */
int migr_pick_gid(const struct migr_gids *gids, const struct migr_path *path,
		  bool peer_moves, const struct ib_uverbs_gid_entry **picked);

/* What migr_check_mtu() says of one record */
int migr_check_qp_mtu(const struct rxe_migr_rec *rec,
		      const struct migr_gids *gids, struct migr_error *err);

/* Say so, naming the object and its peer; returns `ret` */
int migr_gid_error(const struct migr_path *path, int ret,
		   struct migr_error *err);

/* ---- routes (migr_route.c) ---- */

/* the larger the better */
enum migr_reach {
	MIGR_REACH_NONE,
	MIGR_REACH_UNKNOWN, /* this network namespace cannot tell */
	MIGR_REACH_ROUTE,
	MIGR_REACH_BEST, /* and the host would choose that address itself */
};

/* From an address of this host, through its netdev, to a peer */
enum migr_reach migr_route(const uint8_t *dgid, const uint8_t *sgid,
			   uint32_t ifindex);

#endif /* MIGR_RESTORE_H */
