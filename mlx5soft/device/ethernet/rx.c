// SPDX-License-Identifier: GPL-2.0
/* Ethernet frames from the wire to receive queues. */

#include <poll.h>
#include <stdlib.h>

#include "cq.h"
#include "eq.h"
#include "ethernet/flow.h"
#include "ethernet/frame.h"
#include "ethernet/rss.h"
#include "mkey.h"
#include "nic.h"
#include "rdma/rdma.h"
#include "rdma/wqe.h"
#include "record.h"

#define BURST 64
#define MAX_PIECES 32
#define HOLD_NS 500000000ULL   /* how long a frame waits for a buffer */
#define HOLD_BYTES (16U << 20) /* of memory for frames that wait */
#define HOLD_QUEUE (4U << 20)  /* ...for one queue */
#define HELD_BUDGET 256	  /* frames that waited, and looks at their queues */
#define FLUSH_BUDGET 1024 /* flushed WQEs, and looks, in a turn of the loop */
/* of a TIR's self_lb_block, which permits */
#define LB_UNICAST 1
#define LB_MULTICAST 2

#define CQE_OK_L2 (1 << 0)
#define CQE_OK_L3 (1 << 1)
#define CQE_OK_L4 (1 << 2)
#define CQE_VLAN (1 << 0)
#define SYND_LOCAL_LENGTH 0x01
#define SYND_LOCAL_PROT 0x04
#define SYND_FLUSH 0x05

static bool in_list(uint8_t (*list)[6], uint32_t count, const uint8_t *mac)
{
	while (count--)
		if (!memcmp(list[count], mac, 6))
			return true;
	return false;
}

/* what the vport's context lets in */
static bool wanted(struct nic *nic, const uint8_t *dst)
{
	static const uint8_t broadcast[6] = { 255, 255, 255, 255, 255, 255 };
	const uint8_t *ctx = nic->nic_vport;

	if (GET(nic_vport_context, ctx, promisc_all) ||
	    !memcmp(dst, broadcast, 6))
		return true;
	if (dst[0] & 1)
		return GET(nic_vport_context, ctx, promisc_mc) ||
		       in_list(nic->mc_list, nic->mc_count, dst);
	return GET(nic_vport_context, ctx, promisc_uc) ||
	       !memcmp((const uint8_t *)AT_RO(nic_vport_context, ctx,
					      permanent_address) +
			       2,
		       dst, 6) ||
	       in_list(nic->uc_list, nic->uc_count, dst);
}

static int scatter(struct nic *nic, const struct wq *rq, const uint8_t *wqe,
		   const uint8_t *frame, uint32_t len)
{
	uint32_t stride = 1U << rq->log_stride, at, n, key;
	struct iovec iov[MAX_PIECES];
	int count, i;

	for (at = 0; len && at + 16 <= stride; at += 16) {
		n = get_be32(wqe + at) & 0x7fffffff;
		key = get_be32(wqe + at + 4);
		if (key == END_LKEY)
			break;
		if (n > len)
			n = len;
		if (!n)
			continue;
		count = mkey_translate(nic, rq->pd, key, get_be64(wqe + at + 8),
				       n, MKEY_LOCAL_WRITE, rq->rlky, iov,
				       MAX_PIECES);
		if (count < 0)
			return SYND_LOCAL_PROT;
		for (i = 0; i < count; i++) {
			memcpy(iov[i].iov_base, frame, iov[i].iov_len);
			frame += iov[i].iov_len;
		}
		len -= n;
	}
	return len ? SYND_LOCAL_LENGTH : 0;
}

/* What the CQE says about headers, which are at `f` as they came */
static void describe(uint8_t *cqe, const uint8_t *f, const struct frame *h)
{
	uint8_t flags, l4 = 0;

	cqe[28] = CQE_OK_L2;
	if (frame_l3_ok(f, h))
		cqe[28] |= CQE_OK_L3;
	if (frame_l4_ok(f, h))
		cqe[28] |= CQE_OK_L4;
	if (h->l4_type == PROTOCOL_UDP) {
		l4 = 2;
	} else if (h->l4_type == PROTOCOL_TCP) {
		flags = f[h->l4 + 13];
		l4 = !(flags & 0x10)				     ? 1
		     : h->l4_end - h->l4 > (f[h->l4 + 12] >> 4) * 4U ? 4
								     : 3;
	}
	cqe[29] = l4 << 4;
	if (h->version)
		cqe[29] |= (h->version == 4 ? 2 : 1) << 2;
}

/* How many buffers are posted; false: nobody knows. */
static bool posted(struct nic *nic, const struct wq *rq, uint16_t *count)
{
	uint32_t pi;

	if (!dma_read_be32(nic, rq->db, &pi))
		return false;
	*count = pi - rq->ci;
	return *count <= 1U << rq->log_size;
}

static bool next_wqe(struct nic *nic, const struct wq *rq, uint8_t *wqe)
{
	uint64_t index = rq->ci & ((1U << rq->log_size) - 1);

	return pas_read(nic, &rq->pas, index << rq->log_stride, wqe,
			1U << rq->log_stride);
}

static int flush(struct nic *nic, struct wq *rq, int budget)
{
	uint8_t cqe[64];
	uint16_t left;

	for (; budget && posted(nic, rq, &left) && left; budget--) {
		memset(cqe, 0, sizeof(cqe));
		cqe[CQE_AT_SYNDROME] = SYND_FLUSH;
		cqe_set_user_index(cqe, GET(rqc, rq->ctx, user_index));
		put_be32(cqe + CQE_AT_QPN, rq->obj.id);
		put_be16(cqe + CQE_AT_WQE_COUNTER, rq->ci++);
		cq_post(nic, rq->cq, cqe, CQE_RESP_ERR, false);
	}
	return budget;
}

static void flush_by(struct nic *nic, const struct wq *rq)
{
	if (!nic->flush_due || rq->look_at < nic->flush_due)
		nic->flush_due = rq->look_at;
}

/* The first look, or one at a queue that has more, is due at once. */
static void look_again(struct nic *nic, struct wq *rq, unsigned int looks)
{
	rq->looks = looks;
	rq->look_at = nic_now() + (looks ? IDLE_RECV_NS << (looks - 1) : 0);
	TAILQ_INSERT_TAIL(&nic->rx_flush[looks], rq, next_run);
	flush_by(nic, rq);
}

void rq_flush(struct nic *nic, struct wq *rq)
{
	rq_stop(nic, rq);
	if (!GET(rqc, rq->ctx, flush_in_error_en))
		return;
	rq->runnable = true;
	look_again(nic, rq, 0);
}

/* Frames are lost. */
static void out_of_buffer(struct nic *nic, const struct wq *rq, uint32_t count)
{
	struct q_counter *counter =
		(struct q_counter *)obj_find(nic, OBJ_Q_COUNTER,
					     GET(rqc, rq->ctx, counter_set_id));

	if (counter)
		counter->out_of_buffer += count;
}

/* The queue ends in the error state, and with it what waits for its buffers. */
static void fail(struct nic *nic, struct wq *rq)
{
	rq->state = WQ_ERR;
	out_of_buffer(nic, rq, rq->held_count);
	rq_flush(nic, rq);
}

/*
 * Is there a buffer? When nobody knows, a queue whose driver has it flushed ends,
 * and an event tells: mlx5_ib hands it on, for raw packet QPs and work queues.
 * mlx5e does neither, and recovers from nothing but an error CQE, of which there
 * can be none: its queue has no buffer until the record is right again.
 */
static bool has_buffer(struct nic *nic, struct wq *rq)
{
	uint16_t left;

	if (posted(nic, rq, &left)) {
		rq->bad_record = false;
		return left;
	}
	if (!rq->bad_record)
		nic_log(nic, "RQ %u: doorbell record", rq->obj.id);
	rq->bad_record = true;
	if (!GET(rqc, rq->ctx, flush_in_error_en))
		return false;
	fail(nic, rq);
	event_queue(nic, EVENT_QP_FATAL, QUEUE_RQ, rq->obj.id);
	return false;
}

/* Returns what is left of the budget. */
static int look(struct nic *nic, struct wq *rq, int budget)
{
	int left = flush(nic, rq, budget);
	unsigned int looks = 1;

	TAILQ_REMOVE(&nic->rx_flush[rq->looks], rq, next_run);
	if (!left)
		looks = 0;
	else if (left == budget)
		looks = rq->looks < MAX_LOOKS ? rq->looks + 1 : MAX_LOOKS;
	look_again(nic, rq, looks);
	return left - 1; /* a look costs as well */
}

void eth_flush(struct nic *nic)
{
	int budget = FLUSH_BUDGET, i;
	uint64_t now = nic_now();
	struct wq *rq;

	nic->flush_due = 0;
	for (i = MAX_LOOKS; i >= 0; i--) { /* those that have more come last */
		while ((rq = TAILQ_FIRST(&nic->rx_flush[i])) &&
		       rq->look_at <= now && budget > 0)
			budget = look(nic, rq, budget);
		if (rq)
			flush_by(nic, rq);
	}
}

/* There is a buffer for it; the frame is changed. */
static void deliver(struct nic *nic, struct wq *rq, uint8_t *frame,
		    uint32_t len, const struct rx_hash *hash)
{
	uint8_t wqe[1U << 11], cqe[64] = { 0 };
	struct frame h;
	int syndrome;

	frame_parse(frame, len, false, &h);
	describe(cqe, frame, &h);
	put_be32(cqe + 12, hash->value); /* rss_hash_result */
	cqe[16] = hash->type;
	if (get_be16(frame + 12) == ETHERTYPE_CVLAN && len >= 18 &&
	    !GET(rqc, rq->ctx, vsd)) {
		memcpy(cqe + 30, frame + 14, 2);
		cqe[29] |= CQE_VLAN;
		memmove(frame + VLAN_BYTES, frame, 12);
		frame += VLAN_BYTES;
		len -= VLAN_BYTES;
	}
	/* cqe_checksum_full: all behind the Ethernet header */
	put_be16(cqe + 20,
		 csum_fold(csum_add(0, frame + ETH_BYTES, len - ETH_BYTES)));
	cqe_set_user_index(cqe, GET(rqc, rq->ctx, user_index));
	put_be32(cqe + CQE_AT_BYTE_CNT, len);
	put_be32(cqe + CQE_AT_QPN, rq->obj.id);
	put_be16(cqe + CQE_AT_WQE_COUNTER, rq->ci);
	syndrome = next_wqe(nic, rq, wqe) ? scatter(nic, rq, wqe, frame, len)
					  : SYND_LOCAL_PROT;
	rq->ci++;
	rq->starved = false;
	if (!syndrome) {
		cq_post(nic, rq->cq, cqe, CQE_RESP_SEND, false);
		return;
	}
	nic_log(nic, "RQ %u: cannot scatter %u bytes: 0x%x", rq->obj.id, len,
		syndrome);
	cqe[CQE_AT_SYNDROME] = syndrome;
	cq_post(nic, rq->cq, cqe, CQE_RESP_ERR, false);
	fail(nic, rq);
}

/* What another transport domain sent comes back in any case. */
static bool wants_back(const struct tir *tir, const uint8_t *frame, uint32_t td)
{
	uint8_t cast = frame[0] & 1 ? LB_MULTICAST : LB_UNICAST;

	return (td && td != GET(tirc, tir->ctx, transport_domain)) ||
	       GET(tirc, tir->ctx, self_lb_block) & cast;
}

/* ---- frames that wait for a buffer ---- */

/* Each queue has its own: one without buffers holds up nobody else. */
struct held {
	TAILQ_ENTRY(held) next;
	uint64_t until;
	uint32_t len;
	struct rx_hash hash;
	uint8_t frame[];
};

/* It waits no more, and is the caller's to free. */
static struct held *take_first(struct nic *nic, struct wq *rq)
{
	struct held *h = TAILQ_FIRST(&rq->held);

	TAILQ_REMOVE(&rq->held, h, next);
	rq->held_count--;
	rq->held_bytes -= sizeof(*h) + h->len;
	nic->held_bytes -= sizeof(*h) + h->len;
	if (TAILQ_EMPTY(&rq->held))
		TAILQ_REMOVE(&nic->holding, rq, next_holding);
	return h;
}

void rq_stop(struct nic *nic, struct wq *rq)
{
	while (!TAILQ_EMPTY(&rq->held))
		free(take_first(nic, rq));
	if (rq->runnable)
		TAILQ_REMOVE(&nic->rx_flush[rq->looks], rq, next_run);
	rq->runnable = false;
}

/*
 * In their order, as far as there are buffers. Returns what is left of the
 * budget.
 */
static int retry(struct nic *nic, struct wq *rq, int budget)
{
	struct held *h;

	/* one that cannot be delivered stops the queue */
	while (budget > 0 && !TAILQ_EMPTY(&rq->held) && has_buffer(nic, rq)) {
		h = take_first(nic, rq);
		deliver(nic, rq, h->frame, h->len, &h->hash);
		free(h);
		budget--;
	}
	return budget;
}

/*
 * After the first frame whose time is up the others wait for nothing, too.
 * Returns what is left of the budget.
 */
static int give_up(struct nic *nic, struct wq *rq, int budget)
{
	struct held *h;

	rq->starved = true;
	for (; budget > 0 && !TAILQ_EMPTY(&rq->held); budget--) {
		out_of_buffer(nic, rq, 1);
		free(take_first(nic, rq));
	}
	h = TAILQ_FIRST(&rq->held);
	if (h)
		h->until = 0;
	return budget;
}

/* Queues take turns. */
bool eth_retry_held(struct nic *nic)
{
	struct wq *rq, *last = TAILQ_LAST(&nic->holding, wq_list);
	uint64_t now = last ? nic_now() : 0;
	int budget = HELD_BUDGET;
	struct held *h;

	for (rq = NULL; rq != last && budget > 0; budget--) {
		rq = TAILQ_FIRST(&nic->holding);
		TAILQ_REMOVE(&nic->holding, rq, next_holding);
		TAILQ_INSERT_TAIL(&nic->holding, rq, next_holding);
		budget = retry(nic, rq, budget);
		if (budget <= 0)
			return true;
		h = TAILQ_FIRST(&rq->held);
		if (h && now >= h->until)
			budget = give_up(nic, rq, budget);
		if (budget <= 0)
			return true;
	}
	return false; /* others, if there are, can wait a while */
}

static bool hold(struct nic *nic, struct wq *rq, const uint8_t *frame,
		 uint32_t len, const struct rx_hash *hash)
{
	uint32_t size = sizeof(struct held) + len;
	struct held *h;

	if (rq->starved || size > HOLD_QUEUE - rq->held_bytes ||
	    size > HOLD_BYTES - nic->held_bytes)
		return false;
	h = malloc(size);
	if (!h)
		return false;
	h->until = nic_now() + HOLD_NS;
	h->len = len;
	h->hash = *hash;
	memcpy(h->frame, frame, len);
	if (TAILQ_EMPTY(&rq->held))
		TAILQ_INSERT_TAIL(&nic->holding, rq, next_holding);
	TAILQ_INSERT_TAIL(&rq->held, h, next);
	rq->held_count++;
	rq->held_bytes += size;
	nic->held_bytes += size;
	return true;
}

/* ---- one frame ---- */

bool eth_receive(struct nic *nic, uint8_t *frame, uint32_t len, bool back,
		 uint32_t td)
{
	struct rx_hash hash = { 0 };
	struct frame h;
	struct tir *tir;
	struct wq *rq;

	frame_parse(frame, len, false, &h);
	tir = flow_lookup(nic, frame, len, &h);
	if (back && (!tir || !wants_back(tir, frame, td)))
		return false;
	if (!tir) {
		nic->port.steer_missed++;
		return true;
	}
	hash.value = rss_hash(tir->ctx, frame, &h, &hash.type);
	rq = tir_to_rq(nic, tir, hash.value);
	if (!rq || rq->state != WQ_RDY)
		return true;
	if ((back || TAILQ_EMPTY(&rq->held)) && has_buffer(nic, rq)) {
		deliver(nic, rq, frame, len, &hash);
	} else if (back || rq->state != WQ_RDY) {
		out_of_buffer(nic, rq, 1);
	} else if (!hold(nic, rq, frame, len, &hash)) {
		rq->starved = true;
		out_of_buffer(nic, rq, 1);
	}
	return true;
}

/* A frame has come; false: it is not for a receive queue. */
static bool arrived(struct nic *nic, const uint8_t *frame, uint32_t len)
{
	if (len < ETH_BYTES || !vfu_bus_master(nic->vfu))
		return false;
	if (nic->port_down) {
		nic->port.rx_down++;
		return false;
	}
	count_rx(nic, frame, len);
	record_frame(nic, frame, len);
	if (rdma_receive(nic, frame, len))
		return false;
	if (len > nic->mtu) { /* with an FCS, which leaves room for a tag */
		nic->port.rx_oversize++;
		return false;
	}
	if (!wanted(nic, frame))
		return false;
	count_traffic(&nic->port.vport_rx, frame, len);
	return true;
}

/* ---- the wire ---- */

short nic_wire_events(const struct nic *nic)
{
	return POLLIN | (wire_polls(&nic->wire, nic->tx_blocked) ? POLLOUT : 0);
}

bool nic_wire(struct nic *nic, short events)
{
	struct wire *wire = &nic->wire;
	uint8_t *frame;
	uint32_t len;
	int i;

	/* room, or nobody takes anything any more; a limit sees to itself */
	if (events & ~POLLIN && nic->tx_blocked && !wire->limit &&
	    wire_flush(wire))
		nic->tx_blocked = false;
	if (vfu_bus_master(nic->vfu))
		eth_retry_held(nic);
	for (i = 0; i < BURST || wire_more(wire); i++) {
		frame = wire_get(wire, &len);
		if (!frame)
			return i > 0;
		if (!arrived(nic, frame, len))
			continue;
		wire_sum(wire, frame, len);
		eth_receive(nic, frame, len, false, 0);
	}
	return true;
}
