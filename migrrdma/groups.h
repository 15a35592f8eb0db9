/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Multicast groups of QPs of datagrams: another real QP is in the same ones.
 */
#ifndef MIGRRDMA_GROUPS_H
#define MIGRRDMA_GROUPS_H

#include "shadow.h"

/* that a QP is in; with the context's lock of groups, or the gate closed */
struct group {
	union ibv_gid gid;
	uint16_t lid;

	SLIST_ENTRY(group) entry;
};

/**
 * groups_join - what is to take its place joins all groups. It gets nothing of them before
 * it is in RTR. With the gate closed. Return: 0 or an errno, with some joined
 */
int groups_join(struct shadow_qp *s);

/** groups_leave - what is to be destroyed leaves those that it is in. With the gate closed */
void groups_leave(struct shadow_qp *s);

/** groups_free - the QP is gone */
void groups_free(struct shadow_qp *s);

#endif
