/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Test programs bring RC QPs to RTS with this: rc_attr() has all that they need to
 * be told, but the PSNs and what the peer may access (qp_access_flags), which are 0;
 * then the caller changes what he likes.
 *
 *	struct ibv_qp_attr a = rc_attr(&gid, gid_index, peer->qp_num);
 *
 *	MUST(!rc_to_rtr(qp, &a) && !rc_to_rts(qp, &a));
 */
#ifndef CONNECT_H
#define CONNECT_H

#include <infiniband/verbs.h>

static inline struct ibv_qp_attr rc_attr(const union ibv_gid *peer,
					 int gid_index, uint32_t peer_qpn)
{
	struct ibv_qp_attr a = {
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer_qpn,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.timeout = 17,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1 },
	};

	a.ah_attr.grh.dgid = *peer;
	a.ah_attr.grh.sgid_index = (uint8_t)gid_index;
	a.ah_attr.grh.hop_limit = 64;
	return a;
}

/* through INIT; 0, or what ibv_modify_qp() said */
static inline int rc_to_rtr(struct ibv_qp *qp, struct ibv_qp_attr *a)
{
	int err;

	a->qp_state = IBV_QPS_INIT;
	err = ibv_modify_qp(qp, a,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS);
	if (err)
		return err;
	a->qp_state = IBV_QPS_RTR;
	return ibv_modify_qp(qp, a,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER);
}

static inline int rc_to_rts(struct ibv_qp *qp, struct ibv_qp_attr *a)
{
	a->qp_state = IBV_QPS_RTS;
	return ibv_modify_qp(qp, a,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				     IBV_QP_MAX_QP_RD_ATOMIC);
}

#endif /* CONNECT_H */
