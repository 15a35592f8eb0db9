// SPDX-License-Identifier: GPL-2.0
/* Ethernet frames from send queues to the wire. */

#include "cq.h"
#include "eq.h"
#include "ethernet/frame.h"
#include "mkey.h"
#include "nic.h"

#define MAX_PIECES 32
#define MIN_FRAME 60U
#define FRAME_MAX 65536U

#define OP_NOP 0x00
#define OP_SEND 0x0a
#define OP_LSO 0x0e
#define CS_L3 (1 << 6)
#define CS_L4 (1 << 7)
#define INLINE_SEGMENT 0x80000000U
#define SIGNALED 0x08 /* of the two bits 0x0c */
#define SYND_LOCAL_QP_OP 0x02
#define SYND_LOCAL_PROT 0x04
#define SYND_FLUSH 0x05
#define UNFINISHED (-1) /* no syndrome: the rest of a large send waits */

/*
 * What is sent before others have their turn, in bytes: a send queue, and all
 * of them together in one nic_tick(). A frame costs something besides its
 * bytes. A large send of 64 KiB in ordinary frames is one slice.
 */
#define SLICE (128 << 10)
#define BUDGET (4 * SLICE)
#define FRAME_COST 1024

static bool is_own(struct nic *nic, const uint8_t *mac)
{
	const uint8_t *own =
		AT_RO(nic_vport_context, nic->nic_vport, permanent_address);

	return !memcmp(own + 2, mac, 6);
}

bool eth_transmit(struct nic *nic, const uint8_t *frame, uint32_t len)
{
	uint8_t padded[MIN_FRAME] = { 0 };

	if (nic->wire.fd < 0 || nic->port_down || len < ETH_BYTES) {
		nic->port.tx_down += nic->port_down;
		nic->port.tx_discards++;
		return true;
	}
	if (len < MIN_FRAME) {
		memcpy(padded, frame, len);
		frame = padded;
		len = MIN_FRAME;
	}
	if (!wire_write(&nic->wire, frame, len)) {
		nic->tx_blocked = true;
		return false;
	}
	nic->eth_first = false;
	count_tx(nic, frame, len);
	return true;
}

/*
 * The guest's own frame to itself comes back if the TIR wants it, one to a
 * group does so too.
 */
static bool transmit(struct nic *nic, const struct wq *sq, uint8_t *frame,
		     uint32_t len)
{
	const struct tis *tis =
		(struct tis *)obj_find(nic, OBJ_TIS,
				       GET(sqc, sq->ctx, tis_num_0));
	uint32_t td = tis ? GET(tisc, tis->ctx, transport_domain) : 0;

	if (len >= ETH_BYTES && is_own(nic, frame) &&
	    eth_receive(nic, frame, len, true, td))
		return true;
	if (!eth_transmit(nic, frame, len))
		return false;
	count_traffic(&nic->port.vport_tx, frame, len);
	if (len >= ETH_BYTES && frame[0] & 1)
		eth_receive(nic, frame, len, true, td);
	return true;
}

/* The frame a WQE describes, or the syndrome of an error */
static int gather(struct nic *nic, const struct wq *sq, const uint8_t *wqe,
		  uint32_t size, uint32_t *len, uint32_t *hdr)
{
	struct iovec iov[MAX_PIECES];
	uint8_t *frame = nic->tx_frame;
	uint32_t at, n, inl, step;
	int count, i;

	if (!wqe_headers(wqe, size, hdr, &at))
		return SYND_LOCAL_QP_OP;
	memcpy(frame, wqe + WQE_INLINE, *hdr);
	*len = *hdr;
	for (; at + 16 <= size; at += step) {
		step = 16;
		n = get_be32(wqe + at);
		inl = n & INLINE_SEGMENT;
		n &= ~INLINE_SEGMENT;
		if (n > SEND_MAX - *len || (inl && n > size - at - 4))
			return SYND_LOCAL_QP_OP;
		if (inl) {
			memcpy(frame + *len, wqe + at + 4, n);
			*len += n;
			step = (4 + n + 15) & ~15U;
			continue;
		}
		if (!n)
			continue;
		count = mkey_translate(nic, sq->pd, get_be32(wqe + at + 4),
				       get_be64(wqe + at + 8), n,
				       MKEY_LOCAL_READ, sq->rlky, iov,
				       MAX_PIECES);
		if (count < 0)
			return SYND_LOCAL_PROT;
		for (i = 0; i < count; i++) {
			memcpy(frame + *len, iov[i].iov_base, iov[i].iov_len);
			*len += iov[i].iov_len;
		}
	}
	return 0;
}

static int send_large(struct nic *nic, struct wq *sq, uint32_t len,
		      uint32_t hdr, uint32_t mss, int *budget)
{
	uint8_t f[LSO_MAX_SEGMENT];
	struct lso lso;
	uint32_t n;

	if (!lso_init(&lso, nic->tx_frame, len, hdr, mss & LSO_MAX_MSS))
		return SYND_LOCAL_QP_OP;
	for (; sq->sent < lso.segments; sq->sent++) {
		n = lso_segment(&lso, sq->sent, f);
		if (*budget <= 0 || !transmit(nic, sq, f, n))
			return UNFINISHED;
		*budget -= n + FRAME_COST;
	}
	return 0;
}

static int send_one(struct nic *nic, struct wq *sq, const uint8_t *wqe,
		    uint32_t size, int *budget)
{
	struct frame h;
	uint32_t len, hdr;
	int ret;

	if (wqe[3] == OP_NOP) {
		*budget -= FRAME_COST;
		return 0;
	}
	if (wqe[3] != OP_SEND && wqe[3] != OP_LSO)
		return SYND_LOCAL_QP_OP;
	ret = gather(nic, sq, wqe, size, &len, &hdr);
	if (ret)
		return ret;
	if (wqe[3] == OP_LSO)
		return send_large(nic, sq, len, hdr, get_be16(wqe + 22),
				  budget);
	if (len > FRAME_MAX)
		return SYND_LOCAL_QP_OP;
	if (wqe[20] & (CS_L3 | CS_L4)) {
		frame_parse(nic->tx_frame, len, false, &h);
		if (wqe[20] & CS_L3)
			frame_fill_l3(nic->tx_frame, &h);
		if (wqe[20] & CS_L4)
			frame_fill_l4(nic->tx_frame, &h);
	}
	*budget -= len + FRAME_COST;
	return transmit(nic, sq, nic->tx_frame, len) ? 0 : UNFINISHED;
}

/* How many basic blocks are posted; false: nobody knows. */
static bool posted(struct nic *nic, const struct wq *sq, uint16_t *blocks)
{
	uint32_t pi;

	if (!dma_read_be32(nic, sq->db + 4, &pi))
		return false;
	*blocks = pi - sq->ci;
	return *blocks <= 1U << sq->log_size;
}

static void complete(struct nic *nic, struct wq *sq, const uint8_t *wqe,
		     uint8_t syndrome)
{
	uint8_t cqe[64] = { 0 };

	cqe_set_user_index(cqe, GET(sqc, sq->ctx, user_index));
	put_be32(cqe + CQE_AT_QPN, (uint32_t)wqe[3] << 24 | sq->obj.id);
	put_be16(cqe + CQE_AT_WQE_COUNTER, sq->ci);
	cqe[CQE_AT_SYNDROME] = syndrome;
	cq_post(nic, sq->cq, cqe, syndrome ? CQE_REQ_ERR : CQE_REQ, false);
}

static void fail(struct nic *nic, struct wq *sq, const uint8_t *wqe,
		 uint8_t syndrome)
{
	nic_log(nic, "SQ %u: error 0x%x", sq->obj.id, syndrome);
	complete(nic, sq, wqe, syndrome);
	sq->state = WQ_ERR;
}

/*
 * Nobody knows what is posted: an event tells, and no CQE of what perhaps is no
 * WQE. Drivers have it for raw packet QPs. mlx5e recovers with what is flushed
 * when the record is right again, or with a time-out of its own.
 */
static void lost(struct nic *nic, struct wq *sq)
{
	nic_log(nic, "SQ %u: doorbell record", sq->obj.id);
	sq->state = WQ_ERR;
	event_queue(nic, EVENT_QP_FATAL, QUEUE_SQ, sq->obj.id);
}

static uint16_t basic_blocks(const uint8_t *wqe)
{
	uint32_t size = (get_be32(wqe + 4) & 0x3f) * 16;

	return size ? (size + 63) / 64 : 1;
}

/* How many of the blocks that are left it takes: of what is broken, not more */
static uint16_t blocks_of(const uint8_t *wqe, uint16_t left)
{
	uint16_t n = basic_blocks(wqe);

	return n < left ? n : left;
}

/* In the error state: WQEs end with an error. Returns whether there are more. */
static bool flush(struct nic *nic, struct wq *sq, int budget)
{
	uint32_t mask = (1U << sq->log_size) - 1;
	uint16_t left, n;
	uint8_t wqe[64];

	if (!GET(sqc, sq->ctx, flush_in_error_en) || !posted(nic, sq, &left))
		return false;
	for (; left; left -= n, budget -= FRAME_COST) {
		if (budget <= 0)
			return true;
		if (!pas_read(nic, &sq->pas, (uint64_t)(sq->ci & mask) * 64,
			      wqe, 64))
			memset(wqe, 0, 64);
		complete(nic, sq, wqe, SYND_FLUSH);
		n = blocks_of(wqe, left);
		sq->ci += n;
	}
	return false;
}

/* The WQE at ci in one piece; false: it is not in memory, or not all posted. */
static bool read_wqe(struct nic *nic, const struct wq *sq, uint16_t left,
		     uint8_t wqe[MAX_WQE])
{
	uint32_t mask = (1U << sq->log_size) - 1, i = 0;

	memset(wqe, 0, 64);
	do {
		if (i == left)
			return false;
		if (!pas_read(nic, &sq->pas,
			      (uint64_t)((sq->ci + i) & mask) * 64,
			      wqe + 64 * i, 64))
			return false;
	} while (++i < basic_blocks(wqe));
	return true;
}

/* Send what there is. Returns whether there is more. */
static bool run(struct nic *nic, struct wq *sq, int budget)
{
	uint8_t wqe[MAX_WQE];
	uint16_t left, n;
	int ret;

	if (sq->state == WQ_ERR)
		return flush(nic, sq, budget);
	if (sq->state != WQ_RDY)
		return false;
	if (!posted(nic, sq, &left)) {
		lost(nic, sq);
		return false;
	}
	for (; left; left -= n) {
		if (budget <= 0)
			return true;
		ret = SYND_LOCAL_QP_OP;
		if (read_wqe(nic, sq, left, wqe))
			ret = send_one(nic, sq, wqe,
				       (get_be32(wqe + 4) & 0x3f) * 16,
				       &budget);
		if (ret == UNFINISHED)
			return true;
		if (ret)
			fail(nic, sq, wqe, ret);
		else if ((wqe[11] & 0x0c) == SIGNALED)
			complete(nic, sq, wqe, 0);
		n = blocks_of(wqe, left);
		sq->ci += n;
		sq->sent = 0;
		if (ret)
			return true;
	}
	return false;
}

void sq_kick(struct nic *nic, struct wq *sq)
{
	if (!sq->runnable)
		TAILQ_INSERT_TAIL(&nic->tx_run, sq, next_run);
	sq->runnable = true;
}

void sq_stop(struct nic *nic, struct wq *sq)
{
	if (sq->runnable)
		TAILQ_REMOVE(&nic->tx_run, sq, next_run);
	sq->runnable = false;
}

/*
 * Queues take turns; a turn is over when its slice is, or the wire is full. Who
 * could send nothing of it is still the next.
 */
bool eth_tick(struct nic *nic)
{
	int budget = BUDGET;
	struct wq *sq;
	uint32_t sent;
	uint16_t ci;
	bool more;

	for (; !nic->tx_blocked && (sq = TAILQ_FIRST(&nic->tx_run));
	     budget -= SLICE) {
		if (!budget)
			return true;
		ci = sq->ci;
		sent = sq->sent;
		more = run(nic, sq, SLICE);
		if (nic->tx_blocked && sq->ci == ci && sq->sent == sent)
			break;
		sq_stop(nic, sq);
		if (more)
			sq_kick(nic, sq);
	}
	return false;
}
