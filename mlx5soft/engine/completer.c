// SPDX-License-Identifier: GPL-2.0
/*
 * Responses to our requests, and their absence: IBA 9.7.5.1, 9.7.5.2, 9.9.2.
 */
#include "impl.h"

/* IBA table 45, in units of 10 us */
static const uint32_t rnr_timer[32] = {
	65536, 1,    2,	   3,	 4,    6,     8,     12,    16,	   24,	  32,
	48,    64,   96,   128,	 192,  256,   384,   512,   768,   1024,  1536,
	2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

/* The WQE at the head has failed. */
static void fail(struct roce_qp *qp, enum roce_wc_status status,
		 uint8_t syndrome)
{
	struct requester *req = &qp->req;

	/* First the state: who sees the completion may look at it. */
	if (is_reliable(qp))
		qp_error(qp);
	else if (qp->attr.state != ROCE_QPS_ERR)
		qp->attr.state = ROCE_QPS_SQE;
	qp_complete_send(qp, slots_pop(qp), status, syndrome);
	if (req->cur - req->head > req->tail - req->head)
		req->cur = req->head;
	req->pkt = 0;
	engine_make_runnable(qp);
}

void comp_retire(struct roce_qp *qp)
{
	struct requester *req = &qp->req;

	while (req->head != req->tail && qp->attr.state != ROCE_QPS_ERR) {
		struct slot *slot = qp_slot(qp, req->head);

		if (slot->status) {
			fail(qp, slot->status, 0);
			return;
		}
		if (!slot->done && (!slot->started ||
				    psn_sub(req->una, slot->psn) < slot->psns))
			break;
		if (slot->done && req->cur == req->head)
			req->cur++;
		slots_pop(qp);
		if (slot->rd_atomic) {
			req->rd_atomic--;
			req->rd_first = slot->rd_next;
		}
		qp_complete_send(qp, slot, ROCE_WC_SUCCESS, 0);
	}
	req_check_drained(qp);
}

/* All PSNs before @una have their response. */
static void advance(struct roce_qp *qp, uint32_t una)
{
	struct requester *req = &qp->req;
	uint32_t at = req->psn, i = req->cur;

	if (una == req->una)
		return;
	req->una = una;
	req->retries = qp->attr.retry_cnt;
	req->rnr_retries = qp->attr.rnr_retry;
	req_arm(qp);
	/*
	 * While it sends again, a late ACK may be ahead of it, and of the local
	 * operations that it has come to: those have no PSN.
	 */
	while (i != req->tail && qp_slot(qp, i)->done)
		i++;
	if (i != req->tail && qp_slot(qp, i)->started)
		at = psn_add(qp_slot(qp, i)->psn, req->pkt);
	if (psn_before(at, una))
		req_go_back(qp, una);
	comp_retire(qp);
}

/* the READ or atomic that has @psn; mostly the oldest */
static struct slot *find_rd_atomic(struct roce_qp *qp, uint32_t psn)
{
	uint32_t i = qp->req.rd_first;

	for (uint32_t n = qp->req.rd_atomic; n; n--) {
		struct slot *slot = qp_slot(qp, i);

		if (psn_sub(psn, slot->psn) < slot->psns)
			return slot;
		i = slot->rd_next;
	}
	return NULL;
}

/*
 * The first READ or atomic before @end whose response is not complete. An
 * acknowledgement of something behind it does not acknowledge it, C9-150.
 */
static struct slot *open_response(struct roce_qp *qp, uint32_t end)
{
	struct requester *req = &qp->req;
	struct slot *slot = qp_slot(qp, req->rd_first);

	if (!req->rd_atomic)
		return NULL;
	if (req->rd_first == req->head) /* may have begun before una */
		return slot;
	if (psn_sub(slot->psn, req->una) < psn_sub(end, req->una))
		return slot;
	return NULL;
}

/* Send again from the oldest PSN without response; once for each reason. */
static void step_back(struct roce_qp *qp)
{
	struct requester *req = &qp->req;

	if (req->nak_valid && req->nak_una == req->una)
		return;
	if (!req->retries) {
		fail(qp, ROCE_WC_RETRY_EXC_ERR, 0);
		return;
	}
	req->retries--;
	req->nak_valid = true;
	req->nak_una = req->una;
	req->ack_deadline = NEVER;
	req_go_back(qp, req->una);
}

/*
 * Take all before @end as acknowledged. Returns false if there is a READ or an
 * atomic without response among it.
 */
static bool acknowledge(struct roce_qp *qp, uint32_t end)
{
	struct requester *req = &qp->req;
	struct slot *open;

	if (end == req->una)
		return true;
	open = open_response(qp, end);
	if (!open) {
		advance(qp, end);
		return qp->attr.state != ROCE_QPS_ERR;
	}
	if (psn_sub(req->una, open->psn) >= open->psns)
		advance(qp, open->psn);
	if (qp->attr.state == ROCE_QPS_ERR)
		return false;
	if (psn_sub(end, open->psn) >= open->psns) {
		qp->counters.implied_nak_seq_err++;
		step_back(qp);
	}
	return false;
}

static void rnr_nak(struct roce_qp *qp, uint8_t syndrome)
{
	struct requester *req = &qp->req;

	if (req->rnr_deadline != NEVER)
		return;
	if (qp->attr.rnr_retry != 7) {
		if (!req->rnr_retries) {
			fail(qp, ROCE_WC_RNR_RETRY_EXC_ERR, syndrome);
			return;
		}
		req->rnr_retries--;
	}
	qp->counters.rnr_nak_retry_err++;
	req->rnr_deadline = qp->engine->now +
			    rnr_timer[syndrome & AETH_VALUE_MASK] * 10000ULL;
	req->ack_deadline = NEVER;
	req_go_back(qp, req->una);
}

static void nak(struct roce_qp *qp, uint8_t syndrome)
{
	switch (syndrome) {
	case AETH_NAK_SEQUENCE:
		qp->counters.packet_seq_err++;
		step_back(qp);
		break;
	case AETH_NAK_INVALID_REQUEST:
		qp->counters.req_remote_invalid_request++;
		fail(qp, ROCE_WC_REM_INV_REQ_ERR, syndrome);
		break;
	case AETH_NAK_REMOTE_ACCESS:
		qp->counters.req_remote_access_errors++;
		fail(qp, ROCE_WC_REM_ACCESS_ERR, syndrome);
		break;
	case AETH_NAK_REMOTE_OPERATION:
		fail(qp, ROCE_WC_REM_OP_ERR, syndrome);
		break;
	default:
		fail(qp, ROCE_WC_BAD_RESP_ERR, syndrome);
	}
}

/* All before its PSN is acknowledged, also by a NAK: IBA 9.7.5.1.1 f. */
static void ack(struct roce_qp *qp, const struct packet *pkt)
{
	uint8_t syndrome = pkt->ext[0];

	switch (syndrome & AETH_TYPE_MASK) {
	case AETH_ACK &AETH_TYPE_MASK:
		acknowledge(qp, psn_add(pkt->psn, 1));
		break;
	case AETH_RNR_NAK:
		if (acknowledge(qp, pkt->psn))
			rnr_nak(qp, syndrome);
		break;
	case AETH_NAK_SEQUENCE &AETH_TYPE_MASK:
		if (acknowledge(qp, pkt->psn))
			nak(qp, syndrome);
		break;
	default: /* reserved */
		qp->counters.rx_dropped++;
	}
}

static void read_response(struct roce_qp *qp, struct slot *slot,
			  const struct packet *pkt)
{
	uint32_t offset = psn_sub(pkt->psn, slot->psn) * qp->mtu;
	uint32_t len = slot->length - offset;
	bool last = psn_sub(pkt->psn, slot->psn) == slot->psns - 1;

	if (len > qp->mtu)
		len = qp->mtu;
	if (last != !!(pkt->flags & PKT_END)) {
		fail(qp, ROCE_WC_BAD_RESP_ERR, 0);
		return;
	}
	if (pkt->payload_len != len) {
		fail(qp, ROCE_WC_LOC_LEN_ERR, 0);
		return;
	}
	if (mem_scatter(qp, qp->init.pd, slot->wqe.sge, slot->wqe.num_sge,
			offset, pkt->payload, len)) {
		fail(qp, ROCE_WC_LOC_PROT_ERR, 0);
		return;
	}
	qp->req.rd_psns--;
	advance(qp, psn_add(pkt->psn, 1));
}

static void atomic_response(struct roce_qp *qp, struct slot *slot,
			    const struct packet *pkt)
{
	uint64_t original = get_be64(pkt->ext + AETH_BYTES);

	if (mem_scatter(qp, qp->init.pd, slot->wqe.sge, slot->wqe.num_sge, 0,
			&original, sizeof(original)))
		fail(qp, ROCE_WC_LOC_PROT_ERR, 0);
	else
		advance(qp, psn_add(pkt->psn, 1));
}

static void data_response(struct roce_qp *qp, const struct packet *pkt)
{
	struct slot *slot = find_rd_atomic(qp, pkt->psn);
	bool read = pkt->flags & PKT_READ;

	if (!slot || (read ? !is_read(slot) : !is_atomic(slot)) ||
	    (pkt->flags & PKT_AETH && pkt->ext[0] & AETH_TYPE_MASK)) {
		qp->counters.rx_dropped++;
		return;
	}
	/* It acknowledges all before the request that it answers. */
	if (psn_sub(qp->req.una, slot->psn) >= slot->psns &&
	    !acknowledge(qp, slot->psn))
		return;
	if (pkt->psn != qp->req.una) {
		qp->counters.implied_nak_seq_err++;
		step_back(qp);
		return;
	}
	if (read)
		read_response(qp, slot, pkt);
	else
		atomic_response(qp, slot, pkt);
}

void comp_receive(struct roce_qp *qp, const struct packet *pkt)
{
	struct requester *req = &qp->req;

	/* ghosts and duplicates, IBA 9.7.5.1.4 */
	if (psn_sub(pkt->psn, req->una) >= psn_sub(req->high, req->una) ||
	    qp->attr.state == ROCE_QPS_SQE) {
		qp->counters.rx_dropped++;
		return;
	}
	if (pkt->op == OP_ACKNOWLEDGE)
		ack(qp, pkt);
	else
		data_response(qp, pkt);
	engine_make_runnable(qp);
}

void comp_timeout(struct roce_qp *qp)
{
	struct requester *req = &qp->req;
	uint64_t now = qp->engine->now;

	if (qp->look_deadline <= now) {
		qp_look_again(qp);
	} else if (req->rnr_deadline <= now) {
		req->rnr_deadline = NEVER;
		engine_make_runnable(qp);
	} else if (req->ack_deadline <= now) {
		qp->counters.local_ack_timeout_err++;
		req->nak_valid = false;
		step_back(qp);
		req->nak_valid = false;
	}
	timer_update(qp);
}
