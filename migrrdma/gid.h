/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * GIDs of QPs that come to another host: there the index of before may be that of a GID of
 * another kind. With the gate closed.
 */
#ifndef MIGRRDMA_GID_H
#define MIGRRDMA_GID_H

#include "swap.h"

/** gid_note - remember which GID the QP has, while its device is there */
void gid_note(struct shadow_qp *qp);

/**
 * gid_find - take the index of the same GID in the table of another device; else, of one of
 *	      the same type, port and address family: the index that there was, or the first
 *
 * Return: 0, EADDRNOTAVAIL and a reason if there is none, or what the device says
 */
int gid_find(struct shadow_qp *qp, struct ibv_context *real, struct swap *s);

#endif
