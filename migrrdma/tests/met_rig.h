/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What tests share of who is told of peers
 */
#ifndef MET_RIG_H
#define MET_RIG_H

#include "meet_rig.h"

extern int told; /* the connection by which it is */

/* the key of a request that a QP is given now, and which names this one */
uint32_t posted(struct ibv_qp *qp, struct ibv_qp *real, uint32_t rkey);

/* an ID of a process of this number, in a turn */
const char *id_of(unsigned int process, unsigned int turn);

/* of a process: that its key 0x7701 is this one in reality */
bool tells_keys(const char *id, uint32_t real);

/* that it has the peer of this QP */
bool is_met(const struct ibv_qp *qp, unsigned int peer, const char *id);

#endif
