/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What tests of connections after a move share
 */
#ifndef MEET_RIG_H
#define MEET_RIG_H

#include "client.h"

#define PEER_GID "fe00::9" /* as to_rtr() has it */

static inline struct ibv_qp *make(struct ibv_qp **real)
{
	struct ibv_qp_init_attr attr = { .send_cq = w.cq,
					 .recv_cq = w.cq,
					 .cap = { 6, 1, 2, 1, 14 },
					 .qp_type = IBV_QPT_RC };
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);

	MUST(qp);
	*real = fake_newest(FAKE_QP);
	return qp;
}

static inline void reset(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	MUST(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
}

#endif
