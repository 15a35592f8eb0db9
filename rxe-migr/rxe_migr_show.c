// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What "rdma resource show" tells of migration, with -dd.
 */
#include <rdma/restrack.h>

#include "rxe.h"

static const char *const states[RXE_MIGR_STATES] = {
	[RXE_MIGR_RUNNING]	= "running",
	[RXE_MIGR_ASKING]	= "asking",
	[RXE_MIGR_TRYING]	= "trying",
	[RXE_MIGR_PAUSED]	= "paused",
	[RXE_MIGR_RESUMING]	= "resuming",
	[RXE_MIGR_HELD]		= "held",
	[RXE_MIGR_STOPPED]	= "stopped",
};

/**
 * rxe_migr_fill_res_qp - ops.fill_res_qp_entry
 * @msg: the netlink message
 * @ibqp: a QP
 *
 * What changes meanwhile may be told as it was, or as it is.
 *
 * Return: 0 or -EMSGSIZE
 */
int rxe_migr_fill_res_qp(struct sk_buff *msg, struct ib_qp *ibqp)
{
	struct rxe_qp *qp = to_rqp(ibqp);
	struct rxe_migr_qp *m = to_migr_qp(qp);
	struct nlattr *table;

	if (!rxe_migr_can_move(qp))
		return 0;

	table = nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
	if (!table)
		return -EMSGSIZE;

	if (rdma_nl_put_driver_string(msg, "migr_state",
				      states[READ_ONCE(qp->migr)]) ||
	    rdma_nl_put_driver_u32(msg, "migr_epoch", READ_ONCE(m->epoch)) ||
	    rdma_nl_put_driver_u64(msg, "migr_life", READ_ONCE(m->life)) ||
	    rdma_nl_put_driver_u64(msg, "migr_peer_life",
				   READ_ONCE(m->peer_life)) ||
	    rdma_nl_put_driver_u32(msg, "migr_peer_epoch",
				   READ_ONCE(m->peer_epoch))) {
		nla_nest_cancel(msg, table);
		return -EMSGSIZE;
	}
	nla_nest_end(msg, table);

	return 0;
}
