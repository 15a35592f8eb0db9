// SPDX-License-Identifier: GPL-2.0
/* Ethernet frames: send queues to the wire, the wire to receive queues. */

#include <errno.h>
#include <unistd.h>

#include "nic.h"
#include "wqe.h"

#define FRAME_MAX 65536U
#define BURST 64
#define MAX_PIECES 32

#define OP_NOP 0x00
#define OP_SEND 0x0a
#define OP_LSO 0x0e
#define CS_L3 (1 << 6)
#define CS_L4 (1 << 7)
#define SIGNALED 0x08 /* of the two bits 0x0c */
#define CQE_OK_L3 (1 << 1)
#define CQE_OK_L4 (1 << 2)
#define SYND_LOCAL_PROT 0x04
#define SYND_LOCAL_QP_OP 0x02

/* ---- checksums ---- */

static u32 sum(u32 s, const u8 *p, u32 len)
{
	for (; len > 1; p += 2, len -= 2)
		s += get_be16(p);
	if (len)
		s += *p << 8;
	/* room for the next call */
	return (s & 0xffff) + (s >> 16);
}

static u16 fold(u32 s)
{
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return s;
}

struct headers {
	u32 l3, l4, end; /* places; end of the IP packet */
	u8 version, proto;
};

static bool parse(const u8 *f, u32 len, struct headers *h)
{
	u16 type = get_be16(f + 12);

	h->l3 = 14;
	if (type == 0x8100 && len >= 18) {
		type = get_be16(f + 16);
		h->l3 = 18;
	}
	if (type == 0x0800 && len >= h->l3 + 20) {
		h->version = 4;
		h->proto = f[h->l3 + 9];
		h->l4 = h->l3 + (f[h->l3] & 15) * 4;
		h->end = h->l3 + get_be16(f + h->l3 + 2);
	} else if (type == 0x86dd && len >= h->l3 + 40) {
		h->version = 6;
		h->proto = f[h->l3 + 6];
		h->l4 = h->l3 + 40;
		h->end = h->l4 + get_be16(f + h->l3 + 4);
	} else {
		return false;
	}
	return h->l4 >= h->l3 + 20 && h->end >= h->l4 && h->end <= len;
}

static void fill_checksums(u8 *f, u32 len, u8 flags)
{
	struct headers h;
	u32 at, s;
	u16 c;

	if (!(flags & (CS_L3 | CS_L4)) || !parse(f, len, &h))
		return;
	if (flags & CS_L3 && h.version == 4) {
		put_be16(f + h.l3 + 10, 0);
		put_be16(f + h.l3 + 10, ~fold(sum(0, f + h.l3, h.l4 - h.l3)));
	}
	at = h.l4 + (h.proto == 6 ? 16 : 6);
	if (!(flags & CS_L4) || (h.proto != 6 && h.proto != 17) ||
	    at + 2 > h.end)
		return;
	put_be16(f + at, 0);
	s = h.version == 4 ? sum(0, f + h.l3 + 12, 8)
			   : sum(0, f + h.l3 + 8, 32);
	c = ~fold(sum(s + h.proto + (h.end - h.l4), f + h.l4, h.end - h.l4));
	put_be16(f + at, c || h.proto == 6 ? c : 0xffff);
}

/* ---- sending ---- */

static void transmit(struct nic *nic, const u8 *frame, u32 len)
{
	if (nic->cfg.wire < 0 || nic->port_down || len < 14)
		return;
	if (write(nic->cfg.wire, frame, len) < 0) {
		nic->port.tx_errors++; /* full: lost, as on any wire */
		return;
	}
	nic->port.tx_frames++;
	nic->port.tx_bytes += len;
}

/* Cut a TCP packet of `len` bytes, of which `hdr` are headers, for `mss`. */
static void segment(struct nic *nic, const u8 *whole, u32 len, u32 hdr, u32 mss,
		    u8 flags)
{
	u8 f[FRAME_MAX];
	struct headers h;
	u32 at, n, seq;
	u16 id = 0;

	memcpy(f, whole, hdr);
	/* The lengths in the headers are those of no packet: parse() must not
	 * look at them.
	 */
	h.l3 = get_be16(f + 12) == 0x8100 ? 18 : 14;
	if (!mss || hdr < h.l3 + 40)
		return;
	h.version = f[h.l3] >> 4;
	h.l4 = h.l3 + (h.version == 4 ? (f[h.l3] & 15) * 4 : 40);
	if (hdr < h.l4 + 20)
		return;
	if (h.version == 4)
		id = get_be16(f + h.l3 + 4);
	seq = get_be32(f + h.l4 + 4);
	for (at = hdr; at < len; at += n) {
		n = len - at < mss ? len - at : mss;
		memcpy(f + hdr, whole + at, n);
		if (h.version == 4) {
			put_be16(f + h.l3 + 2, hdr + n - h.l3);
			put_be16(f + h.l3 + 4, id++);
		} else {
			put_be16(f + h.l3 + 4, hdr + n - h.l4);
		}
		put_be32(f + h.l4 + 4, seq + (at - hdr));
		f[h.l4 + 13] = whole[h.l4 + 13];
		if (at + n < len)
			f[h.l4 + 13] &= ~0x09; /* FIN, PSH: only the last */
		fill_checksums(f, hdr + n, flags | CS_L3 | CS_L4);
		transmit(nic, f, hdr + n);
	}
}

/* The frame a WQE describes, or the syndrome of an error */
static int gather(struct nic *nic, const struct wq *sq, const u8 *wqe, u32 size,
		  u8 *frame, u32 *len, u32 *hdr)
{
	struct iovec iov[MAX_PIECES];
	u32 at = 32, n, inl = get_be16(wqe + 28);
	int count, i;

	if (size < 32 || (inl > 2 && 30 + inl > size) || inl > 1000)
		return SYND_LOCAL_QP_OP;
	memcpy(frame, wqe + 30, inl);
	*hdr = *len = inl;
	if (inl > 2)
		at += (inl - 2 + 15) & ~15U;
	for (; at + 16 <= size; at += 16) {
		n = get_be32(wqe + at);
		if (n > FRAME_MAX - *len)
			return SYND_LOCAL_QP_OP;
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

static int send_one(struct nic *nic, struct wq *sq, const u8 *wqe, u32 size)
{
	u8 frame[FRAME_MAX];
	u32 len, hdr;
	int ret;

	if (wqe[3] == OP_NOP)
		return 0;
	if (wqe[3] != OP_SEND && wqe[3] != OP_LSO)
		return SYND_LOCAL_QP_OP;
	ret = gather(nic, sq, wqe, size, frame, &len, &hdr);
	if (ret)
		return ret;
	if (wqe[3] == OP_LSO) {
		segment(nic, frame, len, hdr, get_be16(wqe + 22) & 0x3fff,
			wqe[20]);
	} else {
		fill_checksums(frame, len, wqe[20]);
		transmit(nic, frame, len);
	}
	return 0;
}

void wq_doorbell(struct nic *nic, struct wq *sq)
{
	u32 mask = (1U << sq->log_size) - 1, size, i;
	u8 db[4], wqe[MAX_WQE], cqe[64];
	int ret, budget = mask + 1;
	u16 pi;

	if (sq->state != WQ_RDY ||
	    vfu_dma_read(nic->vfu, sq->db + 4, db, sizeof(db)))
		return;
	pi = get_be32(db);
	while (sq->ci != pi && budget-- && sq->state == WQ_RDY) {
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
		memset(cqe, 0, sizeof(cqe));
		put_be32(cqe + 56, (u32)wqe[3] << 24 | sq->obj.id);
		put_be16(cqe + 60, sq->ci);
		if (ret) {
			cqe[55] = ret;
			sq->state = WQ_ERR;
			nic_log(nic, "SQ %u: error 0x%x", sq->obj.id, ret);
			cq_post(nic, sq->cq, cqe, CQE_REQ_ERR, false);
		} else if ((wqe[11] & 0x0c) == SIGNALED) {
			cq_post(nic, sq->cq, cqe, CQE_REQ, false);
		}
		sq->ci += size ? (size + 63) / 64 : 1;
	}
}

/* ---- receiving ---- */

static bool in_list(u8 (*list)[6], u32 count, const u8 *mac)
{
	while (count--)
		if (!memcmp(list[count], mac, 6))
			return true;
	return false;
}

/* what the vport's context lets in */
static bool wanted(struct nic *nic, const u8 *dst)
{
	static const u8 broadcast[6] = { 255, 255, 255, 255, 255, 255 };
	const u8 *ctx = nic->nic_vport;

	if (GET(nic_vport_context, ctx, promisc_all) ||
	    !memcmp(dst, broadcast, 6))
		return true;
	if (dst[0] & 1)
		return GET(nic_vport_context, ctx, promisc_mc) ||
		       in_list(nic->mc_list, nic->mc_count, dst);
	return GET(nic_vport_context, ctx, promisc_uc) ||
	       !memcmp((const u8 *)AT_RO(nic_vport_context, ctx,
					 permanent_address) +
			       2,
		       dst, 6) ||
	       in_list(nic->uc_list, nic->uc_count, dst);
}

static bool scatter(struct nic *nic, const struct wq *rq, const u8 *wqe,
		    u32 stride, const u8 *frame, u32 len)
{
	struct iovec iov[MAX_PIECES];
	u32 at, n, key;
	int count, i;

	for (at = 0; len && at + 16 <= stride; at += 16) {
		n = get_be32(wqe + at) & 0x7fffffff;
		key = get_be32(wqe + at + 4);
		if (key == END_LKEY)
			break;
		if (n > len)
			n = len;
		count = mkey_translate(nic, rq->pd, key, get_be64(wqe + at + 8),
				       n, MKEY_LOCAL_WRITE, rq->rlky, iov,
				       MAX_PIECES);
		if (count < 0)
			return false;
		for (i = 0; i < count; i++) {
			memcpy(iov[i].iov_base, frame, iov[i].iov_len);
			frame += iov[i].iov_len;
		}
		len -= n;
	}
	return !len;
}

/* Sum of the IP packet without padding behind it, as drivers expect it */
static void checksum_info(u8 *cqe, const u8 *f, u32 len)
{
	struct headers h;

	if (!parse(f, len, &h))
		return;
	put_be16(cqe + 20, fold(sum(0, f + h.l3, h.end - h.l3)));
	cqe[29] = (h.version == 4 ? 2 : 1) << 2;
	if (h.version == 6 || fold(sum(0, f + h.l3, h.l4 - h.l3)) == 0xffff)
		cqe[28] |= CQE_OK_L3;
}

void eth_receive(struct nic *nic, const u8 *frame, u32 len)
{
	u8 wqe[1U << 11], db[4], cqe[64] = { 0 };
	u32 rqn, hash, stride;
	struct wq *rq;

	if (len < 14 || nic->port_down || !wanted(nic, frame))
		return;
	nic->port.rx_frames++;
	nic->port.rx_bytes += len;
	nic->port.rx_bcast += frame[0] == 255;
	nic->port.rx_mcast += frame[0] & 1 && frame[0] != 255;
	nic->port.rx_dropped++; /* until it is delivered */
	if (!flow_lookup(nic, frame, len, &rqn, &hash))
		return;
	rq = (struct wq *)obj_find(nic, OBJ_RQ, rqn);
	if (!rq || rq->state != WQ_RDY ||
	    vfu_dma_read(nic->vfu, rq->db, db, sizeof(db)) ||
	    (u16)get_be32(db) == rq->ci)
		return;
	stride = 1U << rq->log_stride;
	if (!pas_read(nic, &rq->pas,
		      (u64)(rq->ci & ((1U << rq->log_size) - 1))
			      << rq->log_stride,
		      wqe, stride))
		return;
	put_be32(cqe + 56, rq->obj.id);
	put_be16(cqe + 60, rq->ci++);
	if (!scatter(nic, rq, wqe, stride, frame, len)) {
		cqe[55] = SYND_LOCAL_PROT;
		rq->state = WQ_ERR;
		nic_log(nic, "RQ %u: cannot scatter %u bytes", rqn, len);
		cq_post(nic, rq->cq, cqe, CQE_RESP_ERR, false);
		return;
	}
	nic->port.rx_dropped--;
	put_be32(cqe + 44, len);
	put_be32(cqe + 12, hash); /* rss_hash_result */
	checksum_info(cqe, frame, len);
	cq_post(nic, rq->cq, cqe, CQE_RESP_SEND, false);
}

void nic_wire(struct nic *nic)
{
	u8 frame[FRAME_MAX];
	ssize_t n;
	int i;

	for (i = 0; i < BURST; i++) {
		n = read(nic->cfg.wire, frame, sizeof(frame));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		if (vfu_bus_master(nic->vfu) && !rdma_receive(nic, frame, n))
			eth_receive(nic, frame, n);
	}
}
