// SPDX-License-Identifier: GPL-2.0
/*
 * Requests of the peer: IBA 9.7.4, 9.7.5.2 and 9.8.2. What goes back stands in
 * reply.c.
 */
#include "impl.h"

void resp_acknowledge(struct roce_qp *qp, uint8_t syndrome, uint32_t psn)
{
	struct responder *resp = &qp->resp;

	resp->ack_pending = true;
	resp->ack_syndrome = syndrome;
	resp->ack_psn = psn;
	engine_queue_ack(qp);
}

/*
 * A request cannot be executed: classes A and C of IBA 9.9.3.1 for RC. The QP
 * goes to ERR when the NAK is sent, behind the responses that are due. With UC
 * only errors of the own memory count; other messages disappear.
 * @status: of the receive WQE, if there is one
 * @event: if there is none; or 0
 */
void resp_fatal(struct roce_qp *qp, uint8_t syndrome,
		enum roce_wc_status status, enum roce_event event)
{
	struct responder *resp = &qp->resp;
	bool local = syndrome == AETH_NAK_REMOTE_OPERATION;

	if (status == ROCE_WC_LOC_LEN_ERR)
		qp->counters.resp_local_length_error++;
	if (syndrome == AETH_NAK_REMOTE_ACCESS)
		qp->counters.resp_remote_access_errors++;
	resp->message = 0;
	if (!is_reliable(qp) && !local) {
		qp->counters.rx_dropped++;
		resp->dropping = true;
		return;
	}
	resp->fatal_event = resp->have_wqe ? 0 : event;
	qp_recv_error(qp, status);
	if (qp->attr.state == ROCE_QPS_ERR)
		return;
	if (!is_reliable(qp)) {
		if (resp->fatal_event)
			qp_event(qp, resp->fatal_event);
		qp_error(qp);
		return;
	}
	resp->fatal = true;
	resp_acknowledge(qp, syndrome, resp->psn);
}

static void invalid_request(struct roce_qp *qp)
{
	resp_fatal(qp, AETH_NAK_INVALID_REQUEST, ROCE_WC_REM_INV_REQ_ERR,
		   ROCE_EVENT_QP_REQ_ERR);
}

/* Returns 1 if there is a WQE, 0 if there is none, < 0: it, or all, is bad. */
int resp_get_wqe(struct roce_qp *qp)
{
	const struct roce_config *c = &qp->engine->config;
	struct responder *resp = &qp->resp;
	int ret;

	if (resp->have_wqe)
		return 1;
	resp->wqe = (struct roce_recv_wqe){ .pd = resp->pd,
					    .srqn = resp->srqn,
					    .sge = resp->sges };
	ret = c->ops->fetch_recv(c->ctx, qp->init.ctx, &resp->wqe);
	if (!ret || ret == -EIO)
		return ret;
	resp->have_wqe = true;
	resp->wqe.sge = resp->sges;
	resp->wqe_len = 0;
	if (ret < 0 || resp->wqe.num_sge > qp->init.max_recv_sge)
		return -EINVAL;
	for (uint32_t i = 0; i < resp->wqe.num_sge; i++)
		resp->wqe_len += resp->sges[i].length;
	return 1;
}

/* A receive WQE for a message of RC or UC; false: the packet is dealt with. */
static bool need_wqe(struct roce_qp *qp)
{
	int ret = resp_get_wqe(qp);

	if (ret > 0)
		return true;
	if (ret < 0) {
		resp_fatal(qp, AETH_NAK_REMOTE_OPERATION, ROCE_WC_LOC_QP_OP_ERR,
			   ROCE_EVENT_QP_FATAL);
		return false;
	}
	qp->counters.out_of_buffer++;
	if (is_reliable(qp)) {
		/* What follows is dropped until this one comes again. */
		qp->resp.nak_sent = true;
		resp_acknowledge(qp, AETH_RNR_NAK | qp->attr.min_rnr_timer,
				 qp->resp.psn);
	} else {
		qp->resp.message = 0;
		qp->resp.dropping = true;
	}
	return false;
}

/* IBA C9-88 to C9-91: all but the last packet are full, none is longer */
static bool length_fits(const struct roce_qp *qp, const struct packet *pkt)
{
	if (!(pkt->flags & PKT_END))
		return pkt->payload_len == qp->mtu;
	return pkt->payload_len <= qp->mtu &&
	       (pkt->flags & PKT_START || pkt->payload_len);
}

static bool deliver_message(struct roce_qp *qp, const struct packet *pkt)
{
	const struct roce_config *c = &qp->engine->config;
	struct roce_recv_wc wc = {
		.byte_len = qp->resp.offset,
		.src_qpn = qp->attr.dest_qpn,
		.tclass = pkt->tclass,
		.flags = (pkt->solicited ? ROCE_WC_SOLICITED : 0) |
			 (pkt->v6 ? ROCE_WC_IPV6 : 0) |
			 (pkt->flags & PKT_WRITE ? ROCE_WC_RDMA : 0),
	};
	const uint8_t *last = pkt->payload - IMM_BYTES;

	if (pkt->flags & PKT_IMM) {
		wc.flags |= ROCE_WC_WITH_IMM;
		memcpy(&wc.imm_data, last, IMM_BYTES);
	}
	if (pkt->flags & PKT_INV) {
		wc.flags |= ROCE_WC_WITH_INV;
		wc.invalidated_key = get_be32(last);
		if (!c->ops->invalidate ||
		    c->ops->invalidate(c->ctx, qp->init.ctx, qp->resp.pd,
				       wc.invalidated_key, true)) {
			/* class J: nothing tells the peer why */
			qp_recv_error(qp, ROCE_WC_REM_INV_REQ_ERR);
			return false;
		}
	}
	qp_complete_recv(qp, &wc);
	return true;
}

/* Returns false if the packet was not executed. */
static bool receive_send(struct roce_qp *qp, const struct packet *pkt)
{
	struct responder *resp = &qp->resp;

	if (!need_wqe(qp))
		return false;
	if (resp->offset + (uint64_t)pkt->payload_len > resp->wqe_len ||
	    resp->offset + pkt->payload_len > ROCE_MAX_MESSAGE) {
		resp_fatal(qp, AETH_NAK_INVALID_REQUEST, ROCE_WC_LOC_LEN_ERR,
			   0);
		return false;
	}
	if (mem_scatter(qp, resp->wqe.pd, resp->wqe.sge, resp->wqe.num_sge,
			resp->offset, pkt->payload, pkt->payload_len)) {
		resp_fatal(qp, AETH_NAK_REMOTE_OPERATION, ROCE_WC_LOC_PROT_ERR,
			   0);
		return false;
	}
	resp->offset += pkt->payload_len;
	return true;
}

static void remote_access(struct roce_qp *qp)
{
	resp_fatal(qp, AETH_NAK_REMOTE_ACCESS, ROCE_WC_REM_ACCESS_ERR,
		   ROCE_EVENT_QP_ACCESS_ERR);
}

static bool start_write(struct roce_qp *qp, const struct packet *pkt)
{
	struct responder *resp = &qp->resp;

	resp->addr = get_be64(pkt->ext);
	resp->rkey = get_be32(pkt->ext + 8);
	resp->length = get_be32(pkt->ext + 12);
	if (!(qp->attr.access & ROCE_ACCESS_REMOTE_WRITE) ||
	    resp->length > ROCE_MAX_MESSAGE) {
		invalid_request(qp);
		return false;
	}
	if (mem_remote(qp, resp->pd, resp->rkey, resp->addr, resp->length,
		       ROCE_ACCESS_REMOTE_WRITE, NULL, 0) < 0) {
		remote_access(qp);
		return false;
	}
	return true;
}

static bool receive_write(struct roce_qp *qp, const struct packet *pkt)
{
	struct responder *resp = &qp->resp;
	uint32_t left;

	if (pkt->flags & PKT_START && !start_write(qp, pkt))
		return false;
	left = resp->length - resp->offset;
	if (pkt->flags & PKT_END ? pkt->payload_len != left
				 : pkt->payload_len >= left) {
		invalid_request(qp);
		return false;
	}
	if (pkt->flags & PKT_IMM && !need_wqe(qp))
		return false;
	if (mem_remote_write(qp, resp->rkey, resp->addr + resp->offset,
			     pkt->payload, pkt->payload_len)) {
		remote_access(qp);
		return false;
	}
	resp->offset += pkt->payload_len;
	return true;
}

static bool nak_pending(const struct responder *resp)
{
	return resp->ack_pending && resp->ack_syndrome != AETH_ACK;
}

static void receive_data(struct roce_qp *qp, const struct packet *pkt)
{
	struct responder *resp = &qp->resp;
	bool ok = true;

	if (pkt->flags & PKT_START)
		resp->offset = 0;
	if (!length_fits(qp, pkt)) {
		invalid_request(qp);
		return;
	}
	if (pkt->flags & PKT_SEND ? !receive_send(qp, pkt)
				  : !receive_write(qp, pkt))
		return;
	if (pkt->flags & PKT_START && pkt->flags & PKT_WRITE)
		qp->counters.rx_write_requests++;
	resp->psn = psn_add(resp->psn, 1);
	resp->message = pkt->flags & (PKT_SEND | PKT_WRITE);
	if (pkt->flags & PKT_END) {
		resp->message = 0;
		resp->msn = (resp->msn + 1) & PSN_MASK;
		if (pkt->flags & (PKT_SEND | PKT_IMM))
			ok = deliver_message(qp, pkt);
	}
	if (qp->attr.state == ROCE_QPS_ERR || !is_reliable(qp))
		return;
	/* a NAK of what came now is none any more */
	if (pkt->ack_req || nak_pending(resp))
		resp_acknowledge(qp, AETH_ACK, pkt->psn);
	if (!ok) {
		resp_acknowledge(qp, AETH_ACK, pkt->psn);
		resp->fatal = true;
		resp->fatal_event = 0;
	}
}

/* IBA 9.7.4.1.2: which opcode may follow which */
static bool sequence_fits(const struct roce_qp *qp, const struct packet *pkt)
{
	uint32_t kind = pkt->flags & (PKT_SEND | PKT_WRITE);

	if (!qp->resp.message)
		return pkt->flags & PKT_START;
	return !(pkt->flags & PKT_START) && kind == qp->resp.message;
}

/*
 * A14: each request names an SRQ of the QP's XRC domain, also one that needs
 * no receive WQE: its PD is that of the memory. A message stays with one.
 */
static bool find_srq(struct roce_qp *qp, const struct packet *pkt)
{
	const struct roce_config *c = &qp->engine->config;
	struct responder *resp = &qp->resp;
	uint32_t pd;

	if ((resp->message && pkt->srqn != resp->srqn) || !c->ops->find_srq ||
	    c->ops->find_srq(c->ctx, qp->init.ctx, pkt->srqn, &pd))
		return false;
	resp->srqn = pkt->srqn;
	resp->pd = pd;
	return true;
}

/*
 * The packet that was missing at @psn came before the NAK had left. If others
 * behind it were dropped, the peer has to hear that all the same: nothing else
 * but its time-out may tell it.
 */
static void renew_nak(struct roce_qp *qp, uint32_t psn)
{
	struct responder *resp = &qp->resp;
	uint32_t n = psn_sub(resp->psn, psn);

	resp->dropped -= n < resp->dropped ? n : resp->dropped;
	if (!n || !resp->dropped || resp->fatal ||
	    qp->attr.state == ROCE_QPS_ERR)
		return;
	resp_acknowledge(qp, AETH_NAK_SEQUENCE, resp->psn);
	resp->nak_sent = true;
}

static void receive_rc(struct roce_qp *qp, const struct packet *pkt)
{
	struct responder *resp = &qp->resp;
	uint32_t ahead = psn_sub(pkt->psn, resp->psn);

	if (resp->fatal) {
		qp->counters.rx_dropped++;
		return;
	}
	if (ahead >= MAX_PSNS) {
		qp->counters.duplicate_request++;
		reply_duplicate(qp, pkt);
		return;
	}
	if (ahead) {
		qp->counters.out_of_sequence++;
		if (!resp->nak_sent)
			resp_acknowledge(qp, AETH_NAK_SEQUENCE, resp->psn);
		resp->nak_sent = true;
		if (resp->dropped <= ahead)
			resp->dropped = ahead + 1;
		return;
	}
	if (!nak_pending(resp)) /* it has left, or there was none */
		resp->dropped = 0;
	resp->nak_sent = false;
	if (!sequence_fits(qp, pkt) || (is_xrc(qp) && !find_srq(qp, pkt)))
		invalid_request(qp);
	else if (pkt->flags & PKT_READ)
		reply_read(qp, pkt);
	else if (pkt->flags & PKT_ATOMIC)
		reply_atomic(qp, pkt);
	else
		receive_data(qp, pkt);
	if (resp->dropped)
		renew_nak(qp, pkt->psn);
}

/* IBA 9.8.2.2: a message with a gap is as if it never was */
static void receive_uc(struct roce_qp *qp, const struct packet *pkt)
{
	struct responder *resp = &qp->resp;

	if (pkt->psn != resp->psn)
		qp->counters.out_of_sequence++;
	if (pkt->flags & PKT_START) {
		resp->dropping = false;
		resp->message = 0;
	} else if (pkt->psn != resp->psn || !sequence_fits(qp, pkt)) {
		resp->dropping = true;
		resp->message = 0;
	}
	resp->psn = pkt->psn;
	if (!resp->dropping)
		receive_data(qp, pkt);
	else
		qp->counters.rx_dropped++;
	resp->psn = psn_add(pkt->psn, 1);
}

void resp_receive(struct roce_qp *qp, const struct packet *pkt)
{
	if (is_reliable(qp))
		receive_rc(qp, pkt);
	else
		receive_uc(qp, pkt);
}
