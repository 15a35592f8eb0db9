// SPDX-License-Identifier: GPL-2.0
/* Ethernet frames from send queues to the wire. */

#include "frame.h"
#include "nic.h"

#define MAX_PIECES 32
#define MIN_FRAME 60U

#define OP_NOP 0x00
#define OP_SEND 0x0a
#define OP_LSO 0x0e
#define CS_L3 (1 << 6)
#define CS_L4 (1 << 7)
#define SIGNALED 0x08 /* of the two bits 0x0c */
#define SYND_LOCAL_QP_OP 0x02
#define SYND_LOCAL_PROT 0x04
#define SYND_FLUSH 0x05
#define BLOCKED (-1)

static bool is_own(struct nic *nic, const u8 *mac)
{
	const u8 *own =
		AT_RO(nic_vport_context, nic->nic_vport, permanent_address);

	return !memcmp(own + 2, mac, 6);
}

bool eth_transmit(struct nic *nic, const u8 *frame, u32 len)
{
	u8 padded[MIN_FRAME] = { 0 };

	if (nic->wire.fd < 0 || nic->port_down || len < ETH_HEADER) {
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
	count_tx(nic, frame, len);
	return true;
}

/*
 * The guest's own frame to itself comes back if the TIR wants it, one to a
 * group does so too.
 */
static bool transmit(struct nic *nic, const struct wq *sq, u8 *frame, u32 len)
{
	const struct tis *tis =
		(struct tis *)obj_find(nic, OBJ_TIS,
				       GET(sqc, sq->ctx, tis_num_0));
	u32 td = tis ? GET(tisc, tis->ctx, transport_domain) : 0;

	if (len >= ETH_HEADER && is_own(nic, frame) &&
	    eth_receive(nic, frame, len, RX_LOOPBACK, td))
		return true;
	if (!eth_transmit(nic, frame, len))
		return false;
	count_traffic(&nic->port.vport_tx, frame, len);
	if (len >= ETH_HEADER && frame[0] & 1)
		eth_receive(nic, frame, len, RX_LOOPBACK, td);
	return true;
}

/* The frame a WQE describes, or the syndrome of an error */
static int gather(struct nic *nic, const struct wq *sq, const u8 *wqe, u32 size,
		  u32 *len, u32 *hdr)
{
	struct iovec iov[MAX_PIECES];
	u8 *frame = nic->tx_frame;
	u32 at, n;
	int count, i;

	if (!wqe_headers(wqe, size, hdr, &at))
		return SYND_LOCAL_QP_OP;
	memcpy(frame, wqe + WQE_INLINE, *hdr);
	*len = *hdr;
	for (; at + 16 <= size; at += 16) {
		n = get_be32(wqe + at);
		if (n > SEND_MAX - *len)
			return SYND_LOCAL_QP_OP;
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

static int send_large(struct nic *nic, struct wq *sq, u32 len, u32 hdr, u32 mss)
{
	u8 f[LSO_MAX_SEGMENT];
	struct lso lso;
	u32 n;

	if (!lso_init(&lso, nic->tx_frame, len, hdr, mss & LSO_MAX_MSS))
		return SYND_LOCAL_QP_OP;
	for (; sq->sent < lso.segments; sq->sent++) {
		n = lso_segment(&lso, sq->sent, f);
		if (!transmit(nic, sq, f, n))
			return BLOCKED;
	}
	sq->sent = 0;
	return 0;
}

static int send_one(struct nic *nic, struct wq *sq, const u8 *wqe, u32 size)
{
	struct frame h;
	u32 len, hdr;
	int ret;

	if (wqe[3] == OP_NOP)
		return 0;
	if (wqe[3] != OP_SEND && wqe[3] != OP_LSO)
		return SYND_LOCAL_QP_OP;
	ret = gather(nic, sq, wqe, size, &len, &hdr);
	if (ret)
		return ret;
	if (wqe[3] == OP_LSO)
		return send_large(nic, sq, len, hdr, get_be16(wqe + 22));
	if (len > FRAME_MAX)
		return SYND_LOCAL_QP_OP;
	if (wqe[20] & (CS_L3 | CS_L4)) {
		frame_parse(nic->tx_frame, len, false, &h);
		if (wqe[20] & CS_L3)
			frame_fill_l3(nic->tx_frame, &h);
		if (wqe[20] & CS_L4)
			frame_fill_l4(nic->tx_frame, &h);
	}
	return transmit(nic, sq, nic->tx_frame, len) ? 0 : BLOCKED;
}

static bool read_pi(struct nic *nic, const struct wq *sq, u16 *pi)
{
	u8 db[4];

	if (vfu_dma_read(nic->vfu, sq->db + 4, db, sizeof(db)))
		return false;
	*pi = get_be32(db);
	return true;
}

static void complete(struct nic *nic, struct wq *sq, const u8 *wqe, u8 syndrome)
{
	u8 cqe[64] = { 0 };

	cqe_set_user_index(cqe, GET(sqc, sq->ctx, user_index));
	put_be32(cqe + CQE_AT_QPN, (u32)wqe[3] << 24 | sq->obj.id);
	put_be16(cqe + CQE_AT_WQE_COUNTER, sq->ci);
	cqe[CQE_AT_SYNDROME] = syndrome;
	cq_post(nic, sq->cq, cqe, syndrome ? CQE_REQ_ERR : CQE_REQ, false);
}

void sq_flush(struct nic *nic, struct wq *sq)
{
	u32 mask = (1U << sq->log_size) - 1, size, budget = mask + 1;
	u8 wqe[64];
	u16 pi;

	if (!GET(sqc, sq->ctx, flush_in_error_en) || !read_pi(nic, sq, &pi))
		return;
	while (sq->ci != pi && budget--) {
		if (!pas_read(nic, &sq->pas, (u64)(sq->ci & mask) * 64, wqe,
			      64))
			return;
		complete(nic, sq, wqe, SYND_FLUSH);
		size = (get_be32(wqe + 4) & 0x3f) * 16;
		sq->ci += size ? (size + 63) / 64 : 1;
	}
}

void wq_doorbell(struct nic *nic, struct wq *sq)
{
	u32 mask = (1U << sq->log_size) - 1, size, i, budget = mask + 1;
	u8 wqe[MAX_WQE];
	int ret = 0;
	u16 pi;

	if (sq->state == WQ_ERR)
		sq_flush(nic, sq);
	if (sq->state != WQ_RDY || nic->tx_blocked || !read_pi(nic, sq, &pi))
		return;
	while (sq->ci != pi && budget--) {
		if (!pas_read(nic, &sq->pas, (u64)(sq->ci & mask) * 64, wqe,
			      64))
			return;
		size = (get_be32(wqe + 4) & 0x3f) * 16;
		for (i = 64; i < size; i += 64)
			if (!pas_read(nic, &sq->pas,
				      (u64)((sq->ci + i / 64) & mask) * 64,
				      wqe + i, 64))
				return;
		ret = send_one(nic, sq, wqe, size);
		if (ret == BLOCKED)
			return;
		if (ret || (wqe[11] & 0x0c) == SIGNALED)
			complete(nic, sq, wqe, ret);
		sq->ci += size ? (size + 63) / 64 : 1;
		if (ret) {
			nic_log(nic, "SQ %u: error 0x%x", sq->obj.id, ret);
			sq->state = WQ_ERR;
			sq_flush(nic, sq);
			return;
		}
	}
}

void eth_resume(struct nic *nic)
{
	const struct id_table *t = obj_table(nic, OBJ_SQ);
	u32 i;

	nic->tx_blocked = false;
	for (i = 0; i < t->size && !nic->tx_blocked; i++)
		if (t->slot[i] && t->slot[i]->kind == OBJ_SQ)
			wq_doorbell(nic, (struct wq *)t->slot[i]);
}
