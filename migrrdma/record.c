// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "record.h"

#include <string.h>

#include "met.h"
#include "peer.h"

/* F(bit of a mask without IBV_QP_, member of struct ibv_qp_attr) */
#define ATTRIBUTES(F)                               \
	F(EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify) \
	F(ACCESS_FLAGS, qp_access_flags)            \
	F(PKEY_INDEX, pkey_index)                   \
	F(PORT, port_num)                           \
	F(QKEY, qkey)                               \
	F(AV, ah_attr)                              \
	F(PATH_MTU, path_mtu)                       \
	F(TIMEOUT, timeout)                         \
	F(RETRY_CNT, retry_cnt)                     \
	F(RNR_RETRY, rnr_retry)                     \
	F(RQ_PSN, rq_psn)                           \
	F(MAX_QP_RD_ATOMIC, max_rd_atomic)          \
	F(MIN_RNR_TIMER, min_rnr_timer)             \
	F(SQ_PSN, sq_psn)                           \
	F(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic)   \
	F(PATH_MIG_STATE, path_mig_state)           \
	F(DEST_QPN, dest_qp_num)                    \
	F(RATE_LIMIT, rate_limit)

void record_modify(struct shadow_qp *qp, const struct ibv_qp_attr *attr,
		   int mask)
{
	struct ibv_qp_attr *to = &qp->attr;

	if (mask & IBV_QP_STATE && attr->qp_state == IBV_QPS_RESET) {
		met_keep(qp);
		memset(to, 0, sizeof(*to));
		qp->attr_mask = 0;
		peer_lead(&qp->peer, NULL);
		qp->swap.told = qp->swap.dead = false;
		return;
	}
#define COPY(bit, member)        \
	if (mask & IBV_QP_##bit) \
		to->member = attr->member;
	ATTRIBUTES(COPY)
#undef COPY
	if (mask & IBV_QP_AV)
		qp->source.index = attr->ah_attr.grh.sgid_index;
	qp->attr_mask |= mask;
}

void record_query(const struct shadow_qp *qp, struct ibv_qp_attr *attr)
{
	if (qp->real_num == qp->qp.qp_num && !qp->peer)
		return;
	if (qp->attr_mask & IBV_QP_DEST_QPN)
		attr->dest_qp_num = qp->attr.dest_qp_num;
	if (qp->attr_mask & IBV_QP_AV)
		attr->ah_attr = qp->attr.ah_attr;
}

int record_step(const struct shadow_qp *qp, enum ibv_qp_state state,
		struct ibv_qp_attr *attr)
{
	int mask = 0;

	switch (state) {
	case IBV_QPS_INIT:
		mask = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS |
		       IBV_QP_QKEY;
		break;
	case IBV_QPS_RTR:
		mask = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		       IBV_QP_MIN_RNR_TIMER;
		break;
	case IBV_QPS_RTS:
		mask = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
		break;
	default:
		break;
	}
	*attr = qp->attr;
	attr->qp_state = state;
	attr->ah_attr.grh.sgid_index = qp->source.index;
	if (qp_has_peer(qp)) /* peers' markers, as in modify_qp() */
		attr->qp_access_flags |= IBV_ACCESS_REMOTE_WRITE;
	return (mask & qp->attr_mask) | IBV_QP_STATE;
}

const char *record_unmakeable(const struct shadow_qp *qp)
{
	const int strange = IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_IND_TABLE |
			    IBV_QP_INIT_ATTR_RX_HASH;

	if (qp->foreign)
		return qp->foreign;
	if (!qp_has_sends(qp))
		return "is of a type that cannot";
	if (qp->extended && qp->init.comp_mask & strange)
		return "has what has no shadow";
	if (qp->attr_mask & IBV_QP_ALT_PATH)
		return "has an alternate path";
	if (qp->attr_mask & IBV_QP_RATE_LIMIT)
		return "has a rate limit";
	if (qp->qp.state == IBV_QPS_SQD || qp->qp.state == IBV_QPS_SQE)
		return "is in SQD or SQE";
	if (qp->attr_mask & IBV_QP_AV && !qp->attr.ah_attr.is_global)
		return "has a peer without a GID";
	return NULL;
}
