/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Connections that are made after a move. Who was replaced tells the process at the other
 * end what its keys are in reality, before its own QP is in RTR (meet.h); here is who hears
 * of it.
 */
#ifndef MIGRRDMA_MET_H
#define MIGRRDMA_MET_H

#include "shadow.h"
#include "swap.h"

/**
 * layer_met - if a QP is, or will be, connected to this peer it leads to the process @id
 * @qpn: number of the QP, which is not suspended
 * @peer_num: of its peer
 * @gid: of its peer
 *
 * Requests name keys of that process then, of which layer_set_key() has told. Several processes
 * may say so of a QP that is not connected yet, each of one peer. Of one that is connected to a
 * peer that has moved it is heard only if that is at this address now.
 *
 * Context: the thread that is told of peers; no gate, since a verb of ours may wait for a
 * peer that waits for this
 * Return: 0, EINVAL, EBUSY or ENOMEM, with a reason
 */
int layer_met(uint32_t qpn, uint32_t peer_num, const union ibv_gid *gid,
	      const char *id, struct swap *s);

/**
 * met_drop_turns - forget what that process has said in other turns than this one
 *
 * Its QPs of then, which nobody is connected to yet, have other numbers now.
 *
 * Context: as layer_met()
 */
void met_drop_turns(const char *id);

/**
 * met_make_room - forget what one has said who makes room for this one: see peer_makes_room()
 *
 * Context: as layer_met()
 */
void met_make_room(const char *id);

/* The following are of the thread that modifies the QP, with its context's lock. */

/** met_adopt - it is connected now, or not: as its record says */
void met_adopt(struct shadow_qp *qp);

/** met_keep - it is connected no more, but may come to be again, to the same peer */
void met_keep(struct shadow_qp *qp);

/** met_forget - it is destroyed */
void met_forget(struct shadow_qp *qp);

#endif
