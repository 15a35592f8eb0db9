// SPDX-License-Identifier: GPL-2.0
/*
 * The send queue: from WQEs to request packets. IBA 9.7.3, 9.7.5.1, 10.8.3.
 */
#include "impl.h"

/* Ask for an ACK so often within a message, that the window does not close. */
#define PACKETS_PER_ACK 32
/* until the front end has memory for a WQE, ns */
#define MEMORY_WAIT 2000000ULL

bool req_fetch(struct roce_qp *qp)
{
	const struct roce_config *c = &qp->engine->config;
	struct roce_sge *sge;
	struct slot *slot;
	int ret;

	if (qp->init.type == ROCE_QPT_XRC_RECV)
		return false;
	slot = slots_next(qp);
	if (!slot)
		return false;
	sge = slot->wqe.sge;
	slot->wqe.flush = qp->attr.state == ROCE_QPS_ERR ||
			  qp->attr.state == ROCE_QPS_SQE;
	ret = c->ops->fetch_send(c->ctx, qp->init.ctx, &slot->wqe);
	if (ret == -EAGAIN)
		qp->look_deadline = qp->engine->now + MEMORY_WAIT;
	if (ret == -EIO)
		qp_fatal(qp);
	if (!ret || ret == -EAGAIN || ret == -EIO)
		return false;
	slot->wqe.sge = sge;
	if (ret < 0 || slot->wqe.num_sge > qp->init.max_send_sge) {
		slot->status = ROCE_WC_LOC_QP_OP_ERR;
		slot->wqe.num_sge = 0;
	}
	slots_push(qp, slot);
	return true;
}

static bool opcode_valid(const struct roce_qp *qp, uint32_t opcode)
{
	switch (opcode) {
	case ROCE_WR_SEND:
	case ROCE_WR_SEND_WITH_IMM:
	case ROCE_WR_LOCAL_INV:
	case ROCE_WR_LOCAL:
		return true;
	case ROCE_WR_RDMA_WRITE:
	case ROCE_WR_RDMA_WRITE_WITH_IMM:
		return !is_datagram(qp);
	case ROCE_WR_RDMA_READ:
	case ROCE_WR_ATOMIC_CMP_AND_SWP:
	case ROCE_WR_ATOMIC_FETCH_AND_ADD:
		return is_reliable(qp) && qp->attr.max_rd_atomic;
	case ROCE_WR_SEND_WITH_INV:
		return is_reliable(qp);
	}
	return false;
}

static bool is_local(const struct slot *slot)
{
	return slot->wqe.opcode == ROCE_WR_LOCAL ||
	       slot->wqe.opcode == ROCE_WR_LOCAL_INV;
}

/* IBA 9.9.2.2: what is wrong with a WQE before a packet of it is sent */
static enum roce_wc_status check(struct roce_qp *qp, struct slot *slot)
{
	const struct roce_send_wqe *wqe = &slot->wqe;
	bool to_memory = is_read(slot) || is_atomic(slot);
	uint64_t length = 0;

	if (!opcode_valid(qp, wqe->opcode))
		return ROCE_WC_LOC_QP_OP_ERR;
	if (is_local(slot))
		return ROCE_WC_SUCCESS;
	if (to_memory && wqe->flags & ROCE_SEND_INLINE)
		return ROCE_WC_LOC_QP_OP_ERR;
	for (uint32_t i = 0; i < wqe->num_sge; i++)
		length += wqe->sge[i].length;
	if (is_atomic(slot)) {
		if (length < 8)
			return ROCE_WC_LOC_LEN_ERR;
		length = 8;
	}
	slot->psns = length ? (length + qp->mtu - 1) / qp->mtu : 1;
	if (length > ROCE_MAX_MESSAGE || slot->psns >= MAX_PSNS)
		return ROCE_WC_LOC_LEN_ERR;
	slot->length = length;
	if (!(wqe->flags & ROCE_SEND_INLINE) &&
	    mem_check_list(qp, wqe->sge, wqe->num_sge,
			   to_memory ? ROCE_ACCESS_LOCAL_WRITE : 0))
		return ROCE_WC_LOC_PROT_ERR;
	return ROCE_WC_SUCCESS;
}

static enum roce_wc_status do_local(struct roce_qp *qp, struct slot *slot)
{
	const struct roce_config *c = &qp->engine->config;

	if (slot->wqe.opcode == ROCE_WR_LOCAL)
		return c->ops->local_op ? c->ops->local_op(c->ctx, qp->init.ctx,
							   &slot->wqe)
					: ROCE_WC_SUCCESS;
	if (c->ops->invalidate &&
	    !c->ops->invalidate(c->ctx, qp->init.ctx, qp->init.pd,
				slot->wqe.invalidate_key, false))
		return ROCE_WC_SUCCESS;
	return ROCE_WC_LOC_QP_OP_ERR;
}

/* how many packets are on their way to the peer, without READ responses */
static bool window_open(const struct roce_qp *qp, uint32_t psn)
{
	int32_t used = psn_sub(psn, qp->req.una) - qp->req.rd_psns;

	return used < (int32_t)qp->engine->config.max_unacked;
}

static void append_rd_atomic(struct requester *req, struct slot *slot)
{
	slot->rd_atomic = true;
	if (req->rd_atomic++)
		req->slots[req->rd_last & req->mask].rd_next = req->cur;
	else
		req->rd_first = req->cur;
	req->rd_last = req->cur;
}

/* Give a WQE its PSNs, if it may start already. */
static bool start(struct roce_qp *qp, struct slot *slot)
{
	struct requester *req = &qp->req;
	bool rd_atomic = is_read(slot) || is_atomic(slot);

	if (slot->wqe.flags & ROCE_SEND_FENCE && req->rd_atomic)
		return false;
	slot->status = check(qp, slot);
	if (slot->status)
		return true;
	if (is_local(slot)) {
		slot->status = do_local(qp, slot);
		slot->done = !slot->status;
		return true;
	}
	if (is_reliable(qp)) {
		if (!window_open(qp, req->psn) ||
		    psn_sub(req->psn, req->una) + slot->psns >= MAX_PSNS ||
		    (rd_atomic && req->rd_atomic >= qp->attr.max_rd_atomic))
			return false;
	}
	slot->psn = req->psn;
	slot->started = true;
	if (rd_atomic)
		append_rd_atomic(req, slot);
	req->rd_psns += is_read(slot) ? slot->psns : 0;
	req->psn = psn_add(req->psn, slot->psns);
	return true;
}

static void put_reth(struct tx *tx, uint64_t addr, uint32_t rkey,
		     uint32_t length)
{
	put_be64(tx->ext, addr);
	put_be32(tx->ext + 8, rkey);
	put_be32(tx->ext + 12, length);
	tx->ext_len = RETH_BYTES;
}

static void make_read(const struct roce_qp *qp, const struct slot *slot,
		      struct tx *tx)
{
	uint32_t offset = qp->req.pkt * qp->mtu;

	tx->op = OP_READ_REQUEST;
	tx->ack_req = true;
	put_reth(tx, slot->wqe.remote_addr + offset, slot->wqe.rkey,
		 slot->length - offset);
}

static void make_atomic(const struct slot *slot, struct tx *tx)
{
	const struct roce_send_wqe *wqe = &slot->wqe;
	bool swap = wqe->opcode == ROCE_WR_ATOMIC_CMP_AND_SWP;

	tx->op = swap ? OP_COMPARE_SWAP : OP_FETCH_ADD;
	tx->ack_req = true;
	put_be64(tx->ext, wqe->remote_addr);
	put_be32(tx->ext + 8, wqe->rkey);
	put_be64(tx->ext + 12, swap ? wqe->swap : wqe->compare_add);
	put_be64(tx->ext + 20, swap ? wqe->compare_add : 0);
	tx->ext_len = ATOMICETH_BYTES;
}

static uint8_t operation(uint32_t opcode, bool first, bool last)
{
	bool write = opcode == ROCE_WR_RDMA_WRITE ||
		     opcode == ROCE_WR_RDMA_WRITE_WITH_IMM;
	uint8_t op = write ? OP_WRITE_FIRST : OP_SEND_FIRST;

	if (!last)
		return first ? op : op + OP_SEND_MIDDLE;
	if (opcode == ROCE_WR_SEND_WITH_INV)
		return first ? OP_SEND_ONLY_INV : OP_SEND_LAST_INV;
	op += first ? OP_SEND_ONLY : OP_SEND_LAST;
	/* with immediate is always the next one */
	return op + (opcode == ROCE_WR_SEND_WITH_IMM ||
		     opcode == ROCE_WR_RDMA_WRITE_WITH_IMM);
}

static int make_data(struct roce_qp *qp, const struct slot *slot, struct tx *tx)
{
	const struct roce_send_wqe *wqe = &slot->wqe;
	uint32_t pkt = qp->req.pkt, offset = pkt * qp->mtu, flags;
	bool last = pkt == slot->psns - 1;

	tx->op = operation(wqe->opcode, !pkt, last);
	flags = packet_flags(tx->op);
	tx->ack_req =
		is_reliable(qp) && (last || (pkt + 1) % PACKETS_PER_ACK == 0 ||
				    !window_open(qp, psn_add(tx->psn, 1)));
	tx->solicited = last && wqe->flags & ROCE_SEND_SOLICITED &&
			(!(flags & PKT_WRITE) || flags & PKT_IMM);
	if (flags & PKT_RETH)
		put_reth(tx, wqe->remote_addr, wqe->rkey, slot->length);
	if (flags & PKT_IMM) {
		memcpy(tx->ext + tx->ext_len, &wqe->imm_data, IMM_BYTES);
		tx->ext_len += IMM_BYTES;
	}
	if (flags & PKT_INV) {
		put_be32(tx->ext + tx->ext_len, wqe->invalidate_key);
		tx->ext_len += IMM_BYTES;
	}
	tx->payload_len = slot->length - offset;
	if (tx->payload_len > qp->mtu)
		tx->payload_len = qp->mtu;
	return mem_gather(qp, slot, offset, tx->payload_len);
}

/*
 * IBA 9.7.6.1.3 leaves us between one and four times the time-out. The first
 * comes soon, as a packet may be lost; but who does not answer then may be a
 * guest that stands still for a while, and gets the longest.
 */
void req_arm(struct roce_qp *qp)
{
	struct requester *req = &qp->req;
	uint32_t again = 0;

	if (req->retries < qp->attr.retry_cnt)
		again = qp->attr.retry_cnt - req->retries;
	if (again > 2)
		again = 2;
	if (req->una == req->high || !qp->attr.timeout)
		req->ack_deadline = NEVER;
	else
		req->ack_deadline = qp->engine->now +
				    (4096ULL << (qp->attr.timeout + again));
}

/* The packet at the present place was sent. */
static void sent(struct roce_qp *qp, struct slot *slot, uint32_t psn)
{
	struct requester *req = &qp->req;
	uint32_t high = psn_sub(req->high, req->una), n = 1;

	if (psn_sub(psn, req->una) < high)
		qp->counters.retransmits++;
	if (is_read(slot))
		n = slot->psns - req->pkt;
	if (psn_sub(psn, req->una) + n > high)
		req->high = psn_add(psn, n);
	req->pkt += n;
	if (req->pkt == slot->psns) {
		req->pkt = 0;
		req->cur++;
	}
	if (is_reliable(qp)) {
		if (req->ack_deadline == NEVER)
			req_arm(qp);
		return;
	}
	/* no ACK will come */
	req->una = req->high;
	if (!req->pkt) {
		slot->done = true;
		comp_retire(qp);
	}
}

/* A14: in front of all other headers behind the BTH */
static void put_xrceth(struct tx *tx, uint32_t srqn)
{
	memmove(tx->ext + XRCETH_BYTES, tx->ext, tx->ext_len);
	put_be32(tx->ext, srqn & QPN_MASK);
	tx->ext_len += XRCETH_BYTES;
}

static enum step send_packet(struct roce_qp *qp, struct slot *slot)
{
	struct tx tx;
	int ret = 0;

	tx.psn = psn_add(slot->psn, qp->req.pkt);
	if (is_reliable(qp) && !window_open(qp, tx.psn))
		return STEP_IDLE;
	if (!engine_has_room(qp, &qp->attr.av))
		return STEP_BLOCKED;
	tx.solicited = false;
	tx.dest_qpn = qp->attr.dest_qpn;
	tx.ext_len = 0;
	tx.payload_len = 0;
	if (is_read(slot))
		make_read(qp, slot, &tx);
	else if (is_atomic(slot))
		make_atomic(slot, &tx);
	else
		ret = make_data(qp, slot, &tx);
	if (ret) {
		/* a key went away meanwhile */
		slot->status = ROCE_WC_LOC_PROT_ERR;
		comp_retire(qp);
		return STEP_IDLE;
	}
	if (is_xrc(qp))
		put_xrceth(&tx, slot->wqe.srqn);
	if (engine_send(qp, &qp->attr.av, &tx))
		return STEP_BLOCKED;
	sent(qp, slot, tx.psn);
	return STEP_SENT;
}

enum step req_step(struct roce_qp *qp)
{
	struct requester *req = &qp->req;
	struct slot *slot;

	if ((qp->attr.state != ROCE_QPS_RTS &&
	     qp->attr.state != ROCE_QPS_SQD) ||
	    req->rnr_deadline != NEVER)
		return STEP_IDLE;
	if (req->cur == req->tail) {
		if (qp->attr.state == ROCE_QPS_SQD || !req_fetch(qp))
			return STEP_IDLE;
	}
	slot = qp_slot(qp, req->cur);
	if (!slot->status && !slot->started && !slot->done) {
		if (qp->attr.state == ROCE_QPS_SQD || !start(qp, slot))
			return STEP_IDLE;
	}
	if (slot->status) {
		comp_retire(qp);
		return STEP_IDLE;
	}
	if (slot->done) { /* counts as a packet: it costs time as well */
		req->cur++;
		comp_retire(qp);
		return STEP_SENT;
	}
	return is_datagram(qp) ? ud_send(qp, slot) : send_packet(qp, slot);
}

void req_go_back(struct roce_qp *qp, uint32_t psn)
{
	struct requester *req = &qp->req;
	uint32_t i;

	req->pkt = 0;
	for (i = req->head; i != req->tail; i++) {
		const struct slot *slot = qp_slot(qp, i);

		if (!slot->started && !slot->done)
			break;
		if (psn_sub(psn, slot->psn) < slot->psns) {
			req->pkt = psn_sub(psn, slot->psn);
			break;
		}
	}
	req->cur = i;
	engine_make_runnable(qp);
}

/* IBA 10.3.1.5: in SQD, all that was started has completed */
void req_check_drained(struct roce_qp *qp)
{
	struct requester *req = &qp->req;

	if (qp->attr.state != ROCE_QPS_SQD || !qp->sq_draining ||
	    req->head != req->cur ||
	    (req->cur != req->tail && qp_slot(qp, req->cur)->started))
		return;
	qp->sq_draining = false;
	if (qp->attr.en_sqd_async_notify)
		qp_event(qp, ROCE_EVENT_SQ_DRAINED);
}
