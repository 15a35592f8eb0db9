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
 * layer_met - a QP that is connected to this peer, or will be, leads to the process @id
 * @qpn: number of the QP, which is not suspended
 * @peer_num: of its peer, as the application has been told
 * @real_num: and the real one
 * @gid: of its peer
 *
 * It counts until the QP is in RESET, or another one is told. Requests name keys of that
 * process from then on, of which layer_set_key() has told.
 *
 * Context: the thread that is told of peers; no gate, since a verb of ours may wait for a
 * peer that waits for this
 * Return: 0, EINVAL, EBUSY or ENOMEM, with a reason
 */
int layer_met(uint32_t qpn, uint32_t peer_num, uint32_t real_num,
	      const union ibv_gid *gid, const char *id, struct swap *s);

/* The following are of the thread that modifies the QP, with its context's lock. */

/** met_lead - what the QP is to be connected to in reality, if that has been told */
void met_lead(const struct shadow_qp *qp, struct ibv_qp_attr *attr, int mask);

/** met_adopt - it is connected now, or not: as its record says */
void met_adopt(struct shadow_qp *qp);

/** met_forget - nobody has told */
void met_forget(struct shadow_qp *qp);

#endif
