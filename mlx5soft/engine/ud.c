// SPDX-License-Identifier: GPL-2.0
/*
 * Datagrams, and the general services of QP 1: IBA 9.8.3, 10.2.5.
 */
#include "impl.h"

static uint32_t own_qkey(const struct roce_qp *qp)
{
	return qp->init.type == ROCE_QPT_GSI ? ROCE_GSI_QKEY : qp->attr.qkey;
}

static void put_deth(const struct roce_qp *qp, const struct slot *slot,
		     struct tx *tx)
{
	uint32_t qkey = slot->wqe.remote_qkey;

	if (qkey & 0x80000000U)
		qkey = own_qkey(qp);
	put_be32(tx->ext, qkey);
	put_be32(tx->ext + 4, qp->wire_qpn);
	tx->ext_len = DETH_BYTES;
}

static int make_datagram(struct roce_qp *qp, const struct slot *slot,
			 struct tx *tx)
{
	const struct roce_send_wqe *wqe = &slot->wqe;
	bool imm = wqe->opcode == ROCE_WR_SEND_WITH_IMM;

	tx->op = imm ? OP_SEND_ONLY_IMM : OP_SEND_ONLY;
	tx->psn = slot->psn;
	tx->solicited = wqe->flags & ROCE_SEND_SOLICITED;
	tx->ack_req = false;
	tx->dest_qpn = wqe->remote_qpn & QPN_MASK;
	put_deth(qp, slot, tx);
	if (imm) {
		memcpy(tx->ext + DETH_BYTES, &wqe->imm_data, IMM_BYTES);
		tx->ext_len += IMM_BYTES;
	}
	tx->payload_len = slot->length;
	return mem_gather(qp, slot, 0, slot->length);
}

enum step ud_send(struct roce_qp *qp, struct slot *slot)
{
	struct requester *req = &qp->req;
	struct tx tx;

	/* C10-93.1.1: too long ones complete, and are not sent */
	if (slot->length <= qp->mtu) {
		if (!engine_has_room(qp, &slot->wqe.av))
			return STEP_BLOCKED;
		if (make_datagram(qp, slot, &tx)) {
			slot->status = ROCE_WC_LOC_PROT_ERR;
			comp_retire(qp);
			return STEP_IDLE;
		}
		if (engine_send(qp, &slot->wqe.av, &tx))
			return STEP_BLOCKED;
	}
	slot->done = true;
	/* One number each, also for what would have taken more. */
	req->psn = psn_add(slot->psn, 1);
	req->una = req->high = req->psn;
	req->cur++;
	comp_retire(qp);
	return STEP_SENT;
}

/* What stands in front of the payload: IBA 8.3, for IPv4 its last 20 bytes. */
static int scatter_grh(struct roce_qp *qp, const struct packet *pkt)
{
	const struct roce_recv_wqe *wqe = &qp->resp.wqe;
	uint8_t grh[ROCE_GRH_BYTES] = { 0 };

	if (pkt->v6)
		memcpy(grh, pkt->ip, IPV6_BYTES);
	else
		memcpy(grh + IPV6_BYTES - IPV4_BYTES, pkt->ip, IPV4_BYTES);
	return mem_scatter(qp, wqe->pd, wqe->sge, wqe->num_sge, 0, grh,
			   sizeof(grh));
}

static void drop(struct roce_qp *qp)
{
	qp->counters.rx_dropped++;
}

void ud_receive(struct roce_qp *qp, const struct packet *pkt)
{
	struct roce_recv_wc wc = {
		.byte_len = ROCE_GRH_BYTES + pkt->payload_len,
		.src_qpn = get_be24(pkt->ext + 5),
		.tclass = pkt->tclass,
		.flags = ROCE_WC_GRH |
			 (pkt->solicited ? ROCE_WC_SOLICITED : 0) |
			 (pkt->v6 ? ROCE_WC_IPV6 : 0),
	};
	int ret;

	if (get_be32(pkt->ext) != own_qkey(qp)) {
		qp->engine->counters.rx_bad_qkey++;
		return;
	}
	if (pkt->payload_len > qp->mtu) {
		drop(qp);
		return;
	}
	ret = resp_get_wqe(qp);
	if (!ret) {
		qp->counters.out_of_buffer++;
		drop(qp);
		return;
	}
	if (ret > 0 && qp->resp.wqe_len < wc.byte_len) {
		/* Nobody may use up receive WQEs with what does not fit. */
		qp->counters.resp_local_length_error++;
		drop(qp);
		return;
	}
	if (ret < 0) {
		if (!qp->resp.have_wqe)
			qp_event(qp, ROCE_EVENT_QP_FATAL);
		qp_recv_error(qp, ROCE_WC_LOC_QP_OP_ERR);
		qp_error(qp);
		return;
	}
	if (scatter_grh(qp, pkt) ||
	    mem_scatter(qp, qp->resp.wqe.pd, qp->resp.wqe.sge,
			qp->resp.wqe.num_sge, ROCE_GRH_BYTES, pkt->payload,
			pkt->payload_len)) {
		qp_recv_error(qp, ROCE_WC_LOC_PROT_ERR);
		qp_error(qp);
		return;
	}
	if (pkt->flags & PKT_IMM) {
		wc.flags |= ROCE_WC_WITH_IMM;
		memcpy(&wc.imm_data, pkt->payload - IMM_BYTES, IMM_BYTES);
	}
	memcpy(wc.smac, pkt->eth + 6, sizeof(wc.smac));
	qp_complete_recv(qp, &wc);
}
