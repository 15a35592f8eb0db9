/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * GIDs of QPs and address handles that come to another host: there the index of before may be
 * that of a GID of another kind. With the gate closed.
 */
#ifndef MIGRRDMA_GID_H
#define MIGRRDMA_GID_H

#include "swap.h"

/* those of a device, of all its ports */
struct gids {
	size_t n;
	struct ibv_gid_entry all[];
};

/** gids_get - as they are now, to be freed; or NULL and errno */
struct gids *gids_get(struct ibv_context *real);

/**
 * gids_note - remember which GIDs of a device its QPs and AHs have, while it is there
 *
 * Return: 0, EADDRNOTAVAIL if one of them is there no more, or what the device says; with a
 * reason
 */
int gids_note(struct shadow_context *c, struct swap *s);

/** gids_any - one of a port, of RoCE v2 if there is such; or NULL */
const struct ibv_gid_entry *gids_any(const struct gids *gids, uint32_t port);

/**
 * gid_find - take the index of the same GID in the context's new table; else, of one of the
 *	      same type, port and address family: the index that there was, or the first
 * @what: has it, and @which is its name
 *
 * Return: 0, EADDRNOTAVAIL and a reason if there is none
 */
int gid_find(struct source_gid *source, const struct shadow_context *c,
	     struct swap *s, const char *what, uint32_t which);

#endif
