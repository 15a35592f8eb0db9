// SPDX-License-Identifier: GPL-2.0
/*
 * READ and atomics at the responder, and everything that it sends. Responses
 * leave in the order of their PSNs. IBA 9.4.4, 9.4.5, 9.7.5.1.3.
 */
#include "impl.h"

static struct resource *nth_oldest(struct responder *resp, uint32_t n)
{
	uint32_t at = resp->res_head + resp->res_size - resp->res_count + n;

	return &resp->resources[at % resp->res_size];
}

/* Where the bit of a resource is */
static uint64_t *pending_word(struct responder *resp, const struct resource *r)
{
	return &resp->res_pending[(r - resp->resources) / 64];
}

static uint64_t pending_bit(const struct responder *resp,
			    const struct resource *r)
{
	return 1ULL << (r - resp->resources) % 64;
}

static bool is_pending(struct responder *resp, const struct resource *r)
{
	return *pending_word(resp, r) & pending_bit(resp, r);
}

/* the first one of the array, from @at on */
static struct resource *pending_from(struct responder *resp, uint32_t at)
{
	uint64_t mask = ~0ULL << at % 64;

	for (uint32_t i = at / 64; i < ROCE_MAX_RD_ATOMIC / 64; i++) {
		uint64_t bits = resp->res_pending[i] & mask;

		if (bits)
			return &resp->resources[64 * i + __builtin_ctzll(bits)];
		mask = ~0ULL;
	}
	return NULL;
}

static struct resource *first_pending(struct responder *resp)
{
	bool full = resp->res_count == resp->res_size;
	struct resource *r = pending_from(resp, full ? resp->res_head : 0);

	return r || !full ? r : pending_from(resp, 0);
}

static void make_pending(struct roce_qp *qp, const struct resource *r)
{
	*pending_word(&qp->resp, r) |= pending_bit(&qp->resp, r);
	engine_make_runnable(qp);
}

/*
 * NULL: the peer has more under way than it may. Who asks for more has got the
 * response of the oldest, if it was sent: what a late duplicate of it still
 * waits for is of no use.
 */
static struct resource *new_resource(struct roce_qp *qp, uint32_t psns)
{
	struct responder *resp = &qp->resp;
	struct resource *r;

	if (!resp->res_size)
		return NULL;
	r = &resp->resources[resp->res_head];
	if (is_pending(resp, r) && !r->answered)
		return NULL;
	*pending_word(resp, r) &= ~pending_bit(resp, r);
	memset(r, 0, sizeof(*r));
	resp->res_head = (resp->res_head + 1) % resp->res_size;
	resp->res_count += resp->res_count < resp->res_size;
	resp->msn = (resp->msn + 1) & PSN_MASK;
	r->msn = resp->msn;
	r->pd = resp->pd;
	r->psn = resp->psn;
	r->psns = psns;
	resp->psn = psn_add(resp->psn, psns);
	/* The response acknowledges all before it. */
	resp->ack_pending = false;
	make_pending(qp, r);
	return r;
}

static void invalid_request(struct roce_qp *qp)
{
	resp_fatal(qp, AETH_NAK_INVALID_REQUEST, ROCE_WC_REM_INV_REQ_ERR,
		   ROCE_EVENT_QP_REQ_ERR);
}

static void remote_access(struct roce_qp *qp)
{
	resp_fatal(qp, AETH_NAK_REMOTE_ACCESS, ROCE_WC_REM_ACCESS_ERR,
		   ROCE_EVENT_QP_ACCESS_ERR);
}

void reply_read(struct roce_qp *qp, const struct packet *pkt)
{
	uint64_t addr = get_be64(pkt->ext);
	uint32_t rkey = get_be32(pkt->ext + 8);
	uint32_t length = get_be32(pkt->ext + 12);
	struct resource *r;

	if (!(qp->attr.access & ROCE_ACCESS_REMOTE_READ) ||
	    length > ROCE_MAX_MESSAGE) {
		invalid_request(qp);
		return;
	}
	if (mem_remote(qp, qp->resp.pd, rkey, addr, length,
		       ROCE_ACCESS_REMOTE_READ, NULL, 0) < 0) {
		remote_access(qp);
		return;
	}
	r = new_resource(qp, length ? (length + qp->mtu - 1) / qp->mtu : 1);
	if (!r) {
		invalid_request(qp);
		return;
	}
	r->addr = addr;
	r->rkey = rkey;
	r->length = length;
	qp->counters.rx_read_requests++;
}

static uint64_t execute(uint64_t *at, const struct packet *pkt)
{
	uint64_t swap_add = get_be64(pkt->ext + 12);
	uint64_t compare = get_be64(pkt->ext + 20);

	if (pkt->op == OP_FETCH_ADD)
		return __atomic_fetch_add(at, swap_add, __ATOMIC_SEQ_CST);
	/* leaves the present value in compare if it was another */
	__atomic_compare_exchange_n(at, &compare, swap_add, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return compare;
}

void reply_atomic(struct roce_qp *qp, const struct packet *pkt)
{
	uint64_t addr = get_be64(pkt->ext);
	uint32_t rkey = get_be32(pkt->ext + 8);
	struct iovec iov[2];
	struct resource *r;
	int n;

	if (!(qp->attr.access & ROCE_ACCESS_REMOTE_ATOMIC) || addr & 7) {
		invalid_request(qp);
		return;
	}
	n = mem_remote(qp, qp->resp.pd, rkey, addr, sizeof(uint64_t),
		       ROCE_ACCESS_REMOTE_ATOMIC, iov, 2);
	if (n < 0) {
		remote_access(qp);
		return;
	}
	if (n != 1 || (uintptr_t)iov[0].iov_base & 7) {
		resp_fatal(qp, AETH_NAK_REMOTE_OPERATION, ROCE_WC_LOC_QP_OP_ERR,
			   ROCE_EVENT_QP_FATAL);
		return;
	}
	r = new_resource(qp, 1);
	if (!r) {
		invalid_request(qp);
		return;
	}
	r->atomic = true;
	r->original = execute(iov[0].iov_base, pkt);
	qp->counters.rx_atomic_requests++;
}

/* The newest one that has it: PSNs come again, old resources may stay. */
static struct resource *find_resource(struct responder *resp, uint32_t psn)
{
	for (uint32_t i = resp->res_count; i--;) {
		struct resource *r = nth_oldest(resp, i);

		if (psn_sub(psn, r->psn) < r->psns)
			return r;
	}
	return NULL;
}

/* IBA 9.4.4 ff., C9-105 to C9-107 */
void reply_duplicate(struct roce_qp *qp, const struct packet *pkt)
{
	struct responder *resp = &qp->resp;
	struct resource *r;
	uint32_t at;

	if (!(pkt->flags & (PKT_READ | PKT_ATOMIC))) {
		if (!resp->ack_pending)
			resp_acknowledge(qp, AETH_ACK, psn_sub(resp->psn, 1));
		return;
	}
	r = find_resource(resp, pkt->psn);
	if (!r || r->atomic != !!(pkt->flags & PKT_ATOMIC)) {
		qp->counters.rx_dropped++;
		return;
	}
	at = psn_sub(pkt->psn, r->psn);
	if (!r->atomic) {
		uint64_t offset = (uint64_t)at * qp->mtu;

		if (get_be64(pkt->ext) != r->addr + offset ||
		    get_be32(pkt->ext + 8) != r->rkey ||
		    get_be32(pkt->ext + 12) != r->length - offset) {
			qp->counters.rx_dropped++;
			return;
		}
	}
	if (is_pending(resp, r) && r->next <= at)
		return; /* on its way already */
	r->next = at;
	make_pending(qp, r);
}

static void init_tx(const struct roce_qp *qp, struct tx *tx, uint32_t psn)
{
	tx->psn = psn;
	tx->solicited = false;
	tx->ack_req = false;
	tx->dest_qpn = qp->attr.dest_qpn;
	tx->ext_len = 0;
	tx->payload_len = 0;
}

static void put_aeth(struct tx *tx, uint8_t syndrome, uint32_t msn)
{
	put_be32(tx->ext, (uint32_t)syndrome << 24 | msn);
	tx->ext_len = AETH_BYTES;
}

static enum step send_ack(struct roce_qp *qp)
{
	struct responder *resp = &qp->resp;
	enum roce_event event = resp->fatal_event;
	struct tx tx;

	init_tx(qp, &tx, resp->ack_psn);
	tx.op = OP_ACKNOWLEDGE;
	put_aeth(&tx, resp->ack_syndrome, resp->msn);
	if (engine_send(qp, &qp->attr.av, &tx))
		return STEP_BLOCKED;
	resp->ack_pending = false;
	if (resp->fatal) {
		qp_error(qp);
		if (event)
			qp_event(qp, event);
	}
	return STEP_SENT;
}

/*
 * A READ that is repeated from its middle goes on with MIDDLE or LAST, as
 * rdma_rxe answers it and, as requester, wants it. Own requests take FIRST and
 * ONLY as well.
 */
static uint8_t read_operation(bool first, bool last)
{
	if (first)
		return last ? OP_READ_RESPONSE_ONLY : OP_READ_RESPONSE_FIRST;
	return last ? OP_READ_RESPONSE_LAST : OP_READ_RESPONSE_MIDDLE;
}

static int make_read_response(struct roce_qp *qp, struct resource *r,
			      struct tx *tx)
{
	uint32_t offset = r->next * qp->mtu, len = r->length - offset;

	tx->op = read_operation(!r->next, r->next == r->psns - 1);
	if (tx->op != OP_READ_RESPONSE_MIDDLE)
		put_aeth(tx, AETH_ACK, r->msn);
	tx->payload_len = len < qp->mtu ? len : qp->mtu;
	return mem_remote_read(qp, r->pd, r->rkey, r->addr + offset,
			       tx->payload_len);
}

static enum step send_response(struct roce_qp *qp, struct resource *r)
{
	struct responder *resp = &qp->resp;
	uint32_t psn = psn_add(r->psn, r->next);
	struct tx tx;

	init_tx(qp, &tx, psn);
	if (r->atomic) {
		tx.op = OP_ATOMIC_ACKNOWLEDGE;
		put_aeth(&tx, AETH_ACK, r->msn);
		put_be64(tx.ext + AETH_BYTES, r->original);
		tx.ext_len += ATOMICACKETH_BYTES;
	} else if (make_read_response(qp, r, &tx)) {
		/* The key went away: what came later is not answered. */
		memset(resp->res_pending, 0, sizeof(resp->res_pending));
		remote_access(qp);
		resp->ack_psn = psn;
		return STEP_IDLE;
	}
	if (engine_send(qp, &qp->attr.av, &tx))
		return STEP_BLOCKED;
	if (++r->next >= r->psns) {
		r->answered = true;
		*pending_word(resp, r) &= ~pending_bit(resp, r);
	}
	return STEP_SENT;
}

enum step reply_ack(struct roce_qp *qp)
{
	struct responder *resp = &qp->resp;

	return resp->ack_pending && !first_pending(resp) ? send_ack(qp)
							 : STEP_IDLE;
}

enum step reply_step(struct roce_qp *qp)
{
	struct responder *resp = &qp->resp;
	struct resource *r = first_pending(resp);

	if (!r && (!resp->ack_pending || qp->ack_waits))
		return STEP_IDLE;
	if (!engine_has_room(qp, &qp->attr.av))
		return STEP_BLOCKED;
	return r ? send_response(qp, r) : send_ack(qp);
}
