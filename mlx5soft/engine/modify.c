// SPDX-License-Identifier: GPL-2.0
/*
 * Changes of a QP's state and attributes: IBA 10.3.1 and 11.2.5.3.
 */
#include <stdlib.h>

#include "impl.h"

#define STATE (ROCE_QP_STATE | ROCE_QP_CUR_STATE)
#define RC_PATH                                                              \
	(ROCE_QP_AV | ROCE_QP_TIMEOUT | ROCE_QP_RETRY_CNT |                  \
	 ROCE_QP_RNR_RETRY | ROCE_QP_MAX_QP_RD_ATOMIC | ROCE_QP_PKEY_INDEX | \
	 ROCE_QP_MAX_DEST_RD_ATOMIC)

enum {
	RC,
	UC,
	UD,
	SERVICES
};

struct transition {
	uint8_t from, to;
	uint32_t required[SERVICES];
	uint32_t optional[SERVICES];
};

static const struct transition transitions[] = {
	{ ROCE_QPS_RESET,
	  ROCE_QPS_INIT,
	  { ROCE_QP_PKEY_INDEX | ROCE_QP_PORT | ROCE_QP_ACCESS_FLAGS,
	    ROCE_QP_PKEY_INDEX | ROCE_QP_PORT | ROCE_QP_ACCESS_FLAGS,
	    ROCE_QP_PKEY_INDEX | ROCE_QP_QKEY },
	  { 0, 0, ROCE_QP_PORT } },
	{ ROCE_QPS_INIT,
	  ROCE_QPS_INIT,
	  { 0, 0, 0 },
	  { ROCE_QP_PKEY_INDEX | ROCE_QP_PORT | ROCE_QP_ACCESS_FLAGS,
	    ROCE_QP_PKEY_INDEX | ROCE_QP_PORT | ROCE_QP_ACCESS_FLAGS,
	    ROCE_QP_PKEY_INDEX | ROCE_QP_PORT | ROCE_QP_QKEY } },
	{ ROCE_QPS_INIT,
	  ROCE_QPS_RTR,
	  { ROCE_QP_AV | ROCE_QP_PATH_MTU | ROCE_QP_DEST_QPN | ROCE_QP_RQ_PSN |
		    ROCE_QP_MAX_DEST_RD_ATOMIC | ROCE_QP_MIN_RNR_TIMER,
	    ROCE_QP_AV | ROCE_QP_PATH_MTU | ROCE_QP_DEST_QPN | ROCE_QP_RQ_PSN,
	    0 },
	  { ROCE_QP_ACCESS_FLAGS | ROCE_QP_PKEY_INDEX,
	    ROCE_QP_ACCESS_FLAGS | ROCE_QP_PKEY_INDEX,
	    ROCE_QP_PKEY_INDEX | ROCE_QP_QKEY } },
	{ ROCE_QPS_RTR,
	  ROCE_QPS_RTS,
	  { ROCE_QP_TIMEOUT | ROCE_QP_RETRY_CNT | ROCE_QP_RNR_RETRY |
		    ROCE_QP_SQ_PSN | ROCE_QP_MAX_QP_RD_ATOMIC,
	    ROCE_QP_SQ_PSN, ROCE_QP_SQ_PSN },
	  { ROCE_QP_ACCESS_FLAGS | ROCE_QP_MIN_RNR_TIMER, ROCE_QP_ACCESS_FLAGS,
	    ROCE_QP_QKEY } },
	{ ROCE_QPS_RTS,
	  ROCE_QPS_RTS,
	  { 0, 0, 0 },
	  { ROCE_QP_ACCESS_FLAGS | ROCE_QP_MIN_RNR_TIMER, ROCE_QP_ACCESS_FLAGS,
	    ROCE_QP_QKEY } },
	{ ROCE_QPS_RTS,
	  ROCE_QPS_SQD,
	  { 0, 0, 0 },
	  { ROCE_QP_EN_SQD_ASYNC_NOTIFY, ROCE_QP_EN_SQD_ASYNC_NOTIFY,
	    ROCE_QP_EN_SQD_ASYNC_NOTIFY } },
	{ ROCE_QPS_SQD,
	  ROCE_QPS_SQD,
	  { 0, 0, 0 },
	  { RC_PATH | ROCE_QP_ACCESS_FLAGS | ROCE_QP_MIN_RNR_TIMER,
	    ROCE_QP_AV | ROCE_QP_PKEY_INDEX | ROCE_QP_ACCESS_FLAGS,
	    ROCE_QP_PKEY_INDEX | ROCE_QP_QKEY } },
	{ ROCE_QPS_SQD,
	  ROCE_QPS_RTS,
	  { 0, 0, 0 },
	  { ROCE_QP_ACCESS_FLAGS | ROCE_QP_MIN_RNR_TIMER, ROCE_QP_ACCESS_FLAGS,
	    ROCE_QP_QKEY } },
	{ ROCE_QPS_SQE,
	  ROCE_QPS_RTS,
	  { 0, 0, 0 },
	  { 0, ROCE_QP_ACCESS_FLAGS, ROCE_QP_QKEY } },
};

static int service(const struct roce_qp *qp)
{
	if (is_reliable(qp))
		return RC;
	return qp->init.type == ROCE_QPT_UC ? UC : UD;
}

static bool allowed(const struct roce_qp *qp, enum roce_qp_state to,
		    uint32_t mask)
{
	int s = service(qp);

	mask &= ~STATE;
	if (to == ROCE_QPS_RESET || to == ROCE_QPS_ERR)
		return !mask;
	for (size_t i = 0; i < sizeof(transitions) / sizeof(*transitions);
	     i++) {
		const struct transition *t = &transitions[i];

		if (t->from != qp->attr.state || t->to != to)
			continue;
		if (s == RC && t->from == ROCE_QPS_SQE)
			return false;
		return (mask & t->required[s]) == t->required[s] &&
		       !(mask & ~(t->required[s] | t->optional[s]));
	}
	return false;
}

static bool values_valid(const struct roce_qp *qp, const struct roce_qp_attr *a,
			 uint32_t mask)
{
	const unsigned int remote =
		ROCE_ACCESS_LOCAL_WRITE | ROCE_ACCESS_REMOTE_WRITE |
		ROCE_ACCESS_REMOTE_READ | ROCE_ACCESS_REMOTE_ATOMIC;

	if (mask & ROCE_QP_CUR_STATE && a->cur_state != qp->attr.state)
		return false;
	if (mask & ROCE_QP_ACCESS_FLAGS && a->access & ~remote)
		return false;
	if ((mask & ROCE_QP_PKEY_INDEX && a->pkey_index) ||
	    (mask & ROCE_QP_PORT && a->port != 1))
		return false;
	if (mask & ROCE_QP_PATH_MTU &&
	    (a->path_mtu < ROCE_MTU_256 ||
	     a->path_mtu > qp->engine->config.port_mtu))
		return false;
	if ((mask & ROCE_QP_TIMEOUT && a->timeout > 31) ||
	    (mask & ROCE_QP_RETRY_CNT && a->retry_cnt > 7) ||
	    (mask & ROCE_QP_RNR_RETRY && a->rnr_retry > 7) ||
	    (mask & ROCE_QP_MIN_RNR_TIMER && a->min_rnr_timer > 31))
		return false;
	if ((mask & ROCE_QP_RQ_PSN && a->rq_psn > PSN_MASK) ||
	    (mask & ROCE_QP_SQ_PSN && a->sq_psn > PSN_MASK) ||
	    (mask & ROCE_QP_DEST_QPN && a->dest_qpn > QPN_MASK))
		return false;
	return !(mask & ROCE_QP_MAX_QP_RD_ATOMIC &&
		 a->max_rd_atomic > ROCE_MAX_RD_ATOMIC) &&
	       !(mask & ROCE_QP_MAX_DEST_RD_ATOMIC &&
		 a->max_dest_rd_atomic > ROCE_MAX_RD_ATOMIC);
}

/* What has been remembered for duplicates is forgotten. */
static int set_resources(struct roce_qp *qp, uint32_t count)
{
	struct responder *resp = &qp->resp;
	struct resource *r = NULL;

	if (count) {
		r = calloc(count, sizeof(*r));
		if (!r)
			return -ENOMEM;
	}
	free(resp->resources);
	resp->resources = r;
	resp->res_size = count;
	resp->res_head = resp->res_count = 0;
	memset(resp->res_pending, 0, sizeof(resp->res_pending));
	return 0;
}

static void set_attributes(struct roce_qp *qp, const struct roce_qp_attr *a,
			   uint32_t mask)
{
	struct roce_qp_attr *to = &qp->attr;

#define SET(bit, field)                       \
	do {                                  \
		if (mask & (bit))             \
			to->field = a->field; \
	} while (0)
	SET(ROCE_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify);
	SET(ROCE_QP_ACCESS_FLAGS, access);
	SET(ROCE_QP_PKEY_INDEX, pkey_index);
	SET(ROCE_QP_PORT, port);
	SET(ROCE_QP_QKEY, qkey);
	SET(ROCE_QP_AV, av);
	SET(ROCE_QP_PATH_MTU, path_mtu);
	SET(ROCE_QP_TIMEOUT, timeout);
	SET(ROCE_QP_RETRY_CNT, retry_cnt);
	SET(ROCE_QP_RNR_RETRY, rnr_retry);
	SET(ROCE_QP_RQ_PSN, rq_psn);
	SET(ROCE_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	SET(ROCE_QP_MIN_RNR_TIMER, min_rnr_timer);
	SET(ROCE_QP_SQ_PSN, sq_psn);
	SET(ROCE_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	SET(ROCE_QP_DEST_QPN, dest_qpn);
#undef SET
	if (mask & ROCE_QP_PATH_MTU)
		qp->mtu = 128U << a->path_mtu;
	if (mask & ROCE_QP_RQ_PSN)
		qp->resp.psn = a->rq_psn;
	if (mask & ROCE_QP_SQ_PSN)
		qp->req.psn = qp->req.una = qp->req.high = a->sq_psn;
	if (mask & ROCE_QP_RETRY_CNT)
		qp->req.retries = a->retry_cnt;
	if (mask & ROCE_QP_RNR_RETRY)
		qp->req.rnr_retries = a->rnr_retry;
}

static void enter(struct roce_qp *qp, enum roce_qp_state from)
{
	switch (qp->attr.state) {
	case ROCE_QPS_SQD:
		qp->sq_draining |= from == ROCE_QPS_RTS;
		req_check_drained(qp);
		break;
	case ROCE_QPS_RTS:
		qp->sq_draining = false;
		if (from != ROCE_QPS_RTS)
			engine_make_runnable(qp);
		break;
	default:
		break;
	}
}

int roce_qp_modify(struct roce_qp *qp, const struct roce_qp_attr *attr,
		   uint32_t mask)
{
	enum roce_qp_state from = qp->attr.state;
	enum roce_qp_state to = mask & ROCE_QP_STATE ? attr->state : from;

	if (!allowed(qp, to, mask) || !values_valid(qp, attr, mask))
		return -EINVAL;
	if (to == ROCE_QPS_RESET) {
		qp_reset(qp);
		return 0;
	}
	if (to == ROCE_QPS_ERR) {
		qp_error(qp);
		return 0;
	}
	if (from == ROCE_QPS_SQE) {
		/*
		 * What is still posted has to be flushed, IBA 10.3.1.6, and
		 * would be sent from RTS on. It is no more than the queue has,
		 * however much comes meanwhile.
		 */
		qp_flush(qp, qp->init.max_send_wr);
		if (qp->attr.state != from) /* that broke it */
			return -EINVAL;
	}
	if (mask & ROCE_QP_MAX_DEST_RD_ATOMIC &&
	    attr->max_dest_rd_atomic != qp->resp.res_size &&
	    set_resources(qp, attr->max_dest_rd_atomic))
		return -ENOMEM;
	set_attributes(qp, attr, mask);
	qp->attr.state = to;
	enter(qp, from);
	return 0;
}
