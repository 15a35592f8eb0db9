/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Which GID of another host takes the place of one: the process and its shadow agree on it. */
#ifndef MIGRRDMA_SUCCESSOR_H
#define MIGRRDMA_SUCCESSOR_H

#include <stddef.h>

#include <infiniband/verbs.h>

enum {
	MOST_GIDS = 1024 /* of all ports: an ioctl takes no more than 64 KiB */
};

/** successor_family - of addresses that a GID belongs to, as a word */
const char *successor_family(const union ibv_gid *gid);

/**
 * successor_of - the same GID; else, one of the same type, port and family: that at the index
 *		  that there was, or the first
 * @all: @n of the other host
 * @was: the one there was, at @index
 *
 * Return: one of them, or NULL
 */
const struct ibv_gid_entry *successor_of(const struct ibv_gid_entry *all,
					 size_t n,
					 const struct ibv_gid_entry *was,
					 uint32_t index);

#endif
