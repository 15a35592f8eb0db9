// SPDX-License-Identifier: GPL-2.0
/*
 * Send WQE: a control segment, by opcode and service an address vector or the
 * number of an XRC SRQ, a remote address and operands of an atomic, then data
 * segments or inline data. All are multiples of 16 bytes.
 */

#include <errno.h>

#include "rdma/wqe.h"

/* control segment, byte 11 */
#define FENCE_MODE 0xe0
#define COMPLETION 0x0c
#define COMPLETION_ALWAYS 0x08
#define SOLICITED 0x02

#define INLINE_SEGMENT 0x80000000U
#define EXTENDED_AV 0x80000000U
#define AV_BYTES 48U

struct cursor {
	const uint8_t *at, *end;
};

static const uint8_t *take(struct cursor *c, uint32_t len)
{
	const uint8_t *p = c->at;

	if ((size_t)(c->end - c->at) < len)
		return NULL;
	c->at += len;
	return p;
}

static int remote_address(struct cursor *c, struct roce_send_wqe *out)
{
	const uint8_t *seg = take(c, 16);

	if (!seg)
		return -EINVAL;
	out->remote_addr = get_be64(seg);
	out->rkey = get_be32(seg + 8);
	return 0;
}

static int atomic(struct cursor *c, struct roce_send_wqe *out)
{
	const uint8_t *seg = take(c, 16);

	if (!seg)
		return -EINVAL;
	if (out->opcode == ROCE_WR_ATOMIC_CMP_AND_SWP) {
		out->swap = get_be64(seg);
		out->compare_add = get_be64(seg + 8);
	} else {
		out->compare_add = get_be64(seg);
	}
	return 0;
}

static int xrc_srq(struct cursor *c, struct roce_send_wqe *out)
{
	const uint8_t *seg = take(c, 16);

	if (!seg)
		return -EINVAL;
	out->srqn = get_be32(seg) & 0xffffff;
	return 0;
}

static int address_vector(struct cursor *c, struct roce_send_wqe *out)
{
	const uint8_t *seg = take(c, AV_BYTES);
	struct roce_av *av = &out->av;
	uint32_t grh;

	if (!seg || !(get_be32(seg + 8) & EXTENDED_AV))
		return -EINVAL;
	out->remote_qkey = get_be32(seg);
	out->remote_qpn = get_be32(seg + 8) & 0xffffff;
	av->udp_sport = get_be16(seg + 14);
	memcpy(av->dmac, seg + 20, 6);
	av->tclass = seg[26];
	av->hop_limit = seg[27];
	grh = get_be32(seg + 28); /* bit 30, a GRH is there, is InfiniBand's */
	av->sgid_index = grh >> 20 & 0xff;
	av->flow_label = grh & 0xfffff;
	memcpy(av->dgid, seg + 32, 16);
	return 0;
}

/* A data segment of `len` bytes; those without any say nothing. */
static int element(const uint8_t *seg, uint32_t len, struct roce_sge *sge,
		   uint32_t *count)
{
	if (!len)
		return 0;
	if (*count == WQE_MAX_SGE)
		return -EINVAL;
	sge[(*count)++] = (struct roce_sge){
		.length = len,
		.key = get_be32(seg + 4),
		.addr = get_be64(seg + 8),
	};
	return 0;
}

/* Elements, or else inline data: a mixture is not understood. */
static int data_segments(struct cursor *c, struct roce_send_wqe *out,
			 uint8_t *data, uint32_t *data_len)
{
	uint32_t n, total = 0;
	const uint8_t *seg;

	while (c->at < c->end) {
		seg = c->at;
		n = get_be32(seg);
		if (n & INLINE_SEGMENT) {
			n &= ~INLINE_SEGMENT;
			/* first against what could be, that the sum fits */
			if (out->num_sge || n > WQE_MAX ||
			    !take(c, (4 + n + 15) & ~15U))
				return -EINVAL;
			memcpy(data + total, seg + 4, n);
			total += n;
			out->flags |= ROCE_SEND_INLINE;
			continue;
		}
		if (!take(c, 16) || out->flags & ROCE_SEND_INLINE ||
		    element(seg, n, out->sge, &out->num_sge))
			return -EINVAL;
	}
	*data_len = total;
	return 0;
}

static const struct {
	uint8_t opcode, to;
} opcodes[] = {
	{ WQE_NOP, ROCE_WR_LOCAL },
	{ WQE_SEND_INVAL, ROCE_WR_SEND_WITH_INV },
	{ WQE_WRITE, ROCE_WR_RDMA_WRITE },
	{ WQE_WRITE_IMM, ROCE_WR_RDMA_WRITE_WITH_IMM },
	{ WQE_SEND, ROCE_WR_SEND },
	{ WQE_SEND_IMM, ROCE_WR_SEND_WITH_IMM },
	{ WQE_READ, ROCE_WR_RDMA_READ },
	{ WQE_ATOMIC_CS, ROCE_WR_ATOMIC_CMP_AND_SWP },
	{ WQE_ATOMIC_FA, ROCE_WR_ATOMIC_FETCH_AND_ADD },
	{ WQE_UMR, ROCE_WR_LOCAL },
};

int wqe_decode_send(const uint8_t *wqe, uint32_t len, enum roce_qp_type type,
		    struct roce_send_wqe *out, uint8_t *data,
		    uint32_t *data_len)
{
	struct cursor c = { wqe + 16, wqe + len };
	bool datagram = type == ROCE_QPT_UD || type == ROCE_QPT_GSI;
	size_t i;

	*data_len = 0;
	if (len < 16)
		return -EINVAL;
	if ((wqe[11] & COMPLETION) == COMPLETION_ALWAYS)
		out->flags |= ROCE_SEND_SIGNALED;
	for (i = 0; opcodes[i].opcode != wqe_opcode(wqe);)
		if (++i == sizeof(opcodes) / sizeof(opcodes[0]))
			return -EINVAL;
	out->opcode = opcodes[i].to;
	if (wqe[11] & FENCE_MODE)
		out->flags |= ROCE_SEND_FENCE;
	if (wqe[11] & SOLICITED)
		out->flags |= ROCE_SEND_SOLICITED;
	memcpy(&out->imm_data, wqe + 12, 4);
	out->invalidate_key = get_be32(wqe + 12);
	if (out->opcode == ROCE_WR_LOCAL)
		return 0;
	if (datagram && address_vector(&c, out))
		return -EINVAL;
	if (type == ROCE_QPT_XRC_SEND && xrc_srq(&c, out))
		return -EINVAL;
	switch (wqe_opcode(wqe)) {
	case WQE_ATOMIC_CS:
	case WQE_ATOMIC_FA:
		if (remote_address(&c, out) || atomic(&c, out))
			return -EINVAL;
		break;
	case WQE_WRITE:
	case WQE_WRITE_IMM:
	case WQE_READ:
		if (remote_address(&c, out))
			return -EINVAL;
		break;
	}
	return data_segments(&c, out, data, data_len);
}

int wqe_decode_recv(const uint8_t *list, uint32_t len,
		    struct roce_recv_wqe *out)
{
	const uint8_t *seg = list;

	for (; seg + 16 <= list + len; seg += 16) {
		if (get_be32(seg + 4) == END_LKEY)
			break;
		if (element(seg, get_be32(seg) & 0x7fffffff, out->sge,
			    &out->num_sge))
			return -EINVAL;
	}
	return 0;
}
