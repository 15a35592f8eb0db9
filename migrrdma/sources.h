/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Whom datagrams are from: QPs of UD that are elsewhere, as they are known. Changed with the
 * gate closed; who polls looks without.
 */
#ifndef MIGRRDMA_SOURCES_H
#define MIGRRDMA_SOURCES_H

#include "names.h"

/** sources_known_as - how a QP is known that is there; itself, if nobody has told of it */
void sources_known_as(union ibv_gid *gid, uint32_t *qpn);

/**
 * sources_add - a QP is there, and known as another one
 *
 * Return: 0, or ENOMEM
 */
int sources_add(const union ibv_gid *at, uint32_t real,
		const union ibv_gid *gid, uint32_t name);

/** sources_drop - who has this number there is known by that */
void sources_drop(const union ibv_gid *at, uint32_t real);

/**
 * sources_set_destination - what came before a datagram says that it was sent to this GID
 *
 * Return: false if that is of another family, or it was sent to a multicast group
 */
bool sources_set_destination(void *grh, const union ibv_gid *gid);

#endif
