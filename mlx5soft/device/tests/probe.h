/* SPDX-License-Identifier: GPL-2.0 */
#ifndef PROBE_H
#define PROBE_H

#include "rig.h"

/* what the drivers have after their probe */
struct probe {
	struct rig_ring cmd_eq, async_eq, comp_eq, rx_cq, tx_cq;
	uint32_t td, mkey, tis, rq, sq, rqt, tir, ft, group, xrcd, rmp, xrc_srq,
		qp;
	uint64_t rq_buf, rq_db, sq_buf, sq_db, qp_buf, qp_db;
};

/*
 * The commands of mlx5_core, mlx5e and mlx5_ib in their order, without
 * repetitions. Every one must succeed.
 */
void probe_run(struct rig *r, struct probe *p);
/* ...and of their removal, as far as TEARDOWN_HCA and DISABLE_HCA */
void probe_remove(struct rig *r, const struct probe *p);

#endif /* PROBE_H */
