// SPDX-License-Identifier: GPL-2.0
/*
 * Completions, events, and what becomes of work when a QP fails: IBA 10.3.1.6,
 * 10.7.3 and 10.10.2.
 */
#include "impl.h"

/* between looks at a receive queue in ERR, ns: longer each time it is empty */
#define MIN_LOOK 2000000ULL
#define MAX_LOOK (128 * MIN_LOOK)

void qp_fatal(struct roce_qp *qp)
{
	if (qp->attr.state == ROCE_QPS_ERR)
		return;
	qp_event(qp, ROCE_EVENT_QP_FATAL);
	qp_error(qp);
}

void qp_event(struct roce_qp *qp, enum roce_event event)
{
	const struct roce_config *c = &qp->engine->config;

	if (c->ops->event)
		c->ops->event(c->ctx, qp->init.ctx, event);
}

void qp_complete_send(struct roce_qp *qp, struct slot *slot,
		      enum roce_wc_status status, uint8_t syndrome)
{
	const struct roce_config *c = &qp->engine->config;
	struct roce_send_wc wc = {
		.cookie = slot->wqe.cookie,
		.status = status,
		.opcode = slot->wqe.opcode,
		.signaled = slot->wqe.flags & ROCE_SEND_SIGNALED,
		.byte_len = status == ROCE_WC_SUCCESS ? slot->length : 0,
		.syndrome = syndrome,
	};

	if (status == ROCE_WC_WR_FLUSH_ERR)
		qp->counters.req_cqe_flush_error++;
	else if (status != ROCE_WC_SUCCESS)
		qp->counters.req_cqe_error++;
	if (c->ops->complete_send(c->ctx, qp->init.ctx, &wc))
		qp_fatal(qp);
}

void qp_complete_recv(struct roce_qp *qp, struct roce_recv_wc *wc)
{
	const struct roce_config *c = &qp->engine->config;

	wc->cookie = qp->resp.wqe.cookie;
	wc->srqn = qp->resp.srqn;
	qp->resp.have_wqe = false;
	if (wc->status == ROCE_WC_WR_FLUSH_ERR)
		qp->counters.resp_cqe_flush_error++;
	else if (wc->status != ROCE_WC_SUCCESS)
		qp->counters.resp_cqe_error++;
	if (c->ops->complete_recv(c->ctx, qp->init.ctx, wc))
		qp_fatal(qp);
}

void qp_recv_error(struct roce_qp *qp, enum roce_wc_status status)
{
	struct roce_recv_wc wc = { .status = status };

	if (!qp->resp.have_wqe)
		return;
	if (!is_datagram(qp))
		wc.src_qpn = qp->attr.dest_qpn;
	qp_complete_recv(qp, &wc);
}

void qp_error(struct roce_qp *qp)
{
	if (qp->attr.state == ROCE_QPS_ERR)
		return;
	qp->attr.state = ROCE_QPS_ERR;
	qp->sq_draining = false;
	qp->req.ack_deadline = NEVER;
	qp->req.rnr_deadline = NEVER;
	qp->resp.ack_pending = false;
	qp->resp.fatal = false;
	memset(qp->resp.res_pending, 0, sizeof(qp->resp.res_pending));
	qp->flush_recv = true;
	qp->look_wait = 0;
	timer_remove(qp);
	engine_make_runnable(qp);
}

/* Returns the number of completions. */
static uint32_t flush_send(struct roce_qp *qp, uint32_t max)
{
	struct requester *req = &qp->req;
	uint32_t n;

	for (n = 0; n < max; n++) {
		if (req->head == req->tail && !req_fetch(qp))
			break;
		qp_complete_send(qp, slots_pop(qp), ROCE_WC_WR_FLUSH_ERR, 0);
	}
	req->cur = req->head;
	req->pkt = 0;
	req->rd_atomic = 0;
	req->rd_psns = 0;
	return n;
}

static uint32_t flush_recv(struct roce_qp *qp, uint32_t max)
{
	uint32_t n = 0;

	if (qp->resp.have_wqe) {
		qp_recv_error(qp, ROCE_WC_WR_FLUSH_ERR);
		n++;
	}
	if (qp->init.type == ROCE_QPT_XRC_SEND)
		return n;
	if (qp->init.srq) {
		if (!qp->last_wqe)
			qp_event(qp, ROCE_EVENT_QP_LAST_WQE_REACHED);
		qp->last_wqe = true;
		return n;
	}
	for (; n < max && resp_get_wqe(qp) && qp->resp.have_wqe; n++)
		qp_recv_error(qp, ROCE_WC_WR_FLUSH_ERR);
	if (n)
		qp->look_wait = 0;
	if (n < max && qp->init.poll_recv) {
		qp->look_wait = qp->look_wait ? 2 * qp->look_wait : MIN_LOOK;
		if (qp->look_wait > MAX_LOOK)
			qp->look_wait = MAX_LOOK;
		qp->look_deadline = qp->engine->now + qp->look_wait;
	}
	return n;
}

uint32_t qp_flush(struct roce_qp *qp, uint32_t max)
{
	uint32_t n = flush_send(qp, max), received = 0;

	if (qp->attr.state == ROCE_QPS_ERR && qp->flush_recv) {
		received = flush_recv(qp, max);
		qp->flush_recv = received >= max;
	}
	if (n >= max || received >= max)
		engine_make_runnable(qp);
	return n + received;
}

/*
 * Sends waited for memory, and the QP has a turn; or in ERR something may have
 * been posted: no turn of the run list is lost with it, if there is nothing.
 */
void qp_look_again(struct roce_qp *qp)
{
	qp->look_deadline = NEVER;
	if (qp->attr.state != ROCE_QPS_ERR) {
		engine_make_runnable(qp);
		return;
	}
	qp->flush_recv = true;
	qp_flush(qp, 1);
}
