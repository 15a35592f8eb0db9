// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What is in the slots of rings: rdma_rxe's user ABI, so these tables follow its
 * header and not the text of our format.
 */

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>

#include "show.h"

#define WC(m, how) SHOW_FIELD(ib_uverbs_wc, #m, m, how)
#define RECV(m, how) SHOW_FIELD(rxe_recv_wqe, #m, m, how)
#define SEND(m, how) SHOW_FIELD(rxe_send_wqe, #m, m, how)
/* members of members, by their own names */
#define WR(m, how) SHOW_FIELD(rxe_send_wqe, #m, wr.m, how)
#define RDMA(m, how) SHOW_FIELD(rxe_send_wqe, #m, wr.wr.rdma.m, how)
#define ATOMIC(m, how) SHOW_FIELD(rxe_send_wqe, #m, wr.wr.atomic.m, how)
#define FLUSH(m, how) SHOW_FIELD(rxe_send_wqe, #m, wr.wr.flush.m, how)
#define MW(m, how) SHOW_FIELD(rxe_send_wqe, #m, wr.wr.mw.m, how)
#define UD(m, how) SHOW_FIELD(rxe_send_wqe, #m, wr.wr.ud.m, how)
#define DMA(type, m, how) SHOW_FIELD(type, #m, dma.m, how)

#define N_ELEM(a) (sizeof(a) / sizeof((a)[0]))

/* clang-format off */
const struct show_layout show_wc = {
	.name = "completion",
	.sparse = true,
	.size = sizeof(struct ib_uverbs_wc),
	SHOW_FIELDS(
		WC(wr_id, id),
		WC(status, wc_status),
		WC(opcode, wc_opcode),
		WC(vendor_err, hex),
		WC(byte_len, decimal),
		WC(qp_num, hex24),
		WC(src_qp, hex24),
		WC(wc_flags, wc_flags),
		WC(pkey_index, decimal),
		WC(slid, decimal),
		WC(sl, decimal),
		WC(dlid_path_bits, decimal),
		WC(port_num, decimal))
};

const struct show_layout show_recv = {
	.name = "receive",
	.sparse = true,
	.size = sizeof(struct rxe_recv_wqe),
	SHOW_FIELDS(
		RECV(wr_id, id),
		DMA(rxe_recv_wqe, length, decimal),
		DMA(rxe_recv_wqe, resid, decimal),
		DMA(rxe_recv_wqe, cur_sge, decimal),
		DMA(rxe_recv_wqe, num_sge, decimal),
		DMA(rxe_recv_wqe, sge_offset, decimal))
};

const struct show_layout show_send = {
	.name = "send",
	.sparse = true,
	.size = sizeof(struct rxe_send_wqe),
	SHOW_FIELDS(
		WR(wr_id, id),
		WR(opcode, wr_opcode),
		WR(send_flags, send_flags),
		SEND(state, wqe_state),
		SEND(status, wc_status),
		SEND(iova, hex),
		SEND(mask, hex),
		SEND(first_psn, hex24),
		SEND(last_psn, hex24),
		SEND(ack_length, decimal),
		SEND(ssn, decimal),
		SEND(has_rd_atomic, decimal),
		DMA(rxe_send_wqe, length, decimal),
		DMA(rxe_send_wqe, resid, decimal),
		DMA(rxe_send_wqe, cur_sge, decimal),
		DMA(rxe_send_wqe, num_sge, decimal),
		DMA(rxe_send_wqe, sge_offset, decimal))
};

/* what else there is: in requests with some opcodes, completions with some flags */
#define OPCODE(name) (1U << IB_UVERBS_WR_##name)
#define HAS_IMM 2U
#define HAS_INVALIDATE 4U

static const struct {
	const struct show_layout *slot;
	uint32_t when;
	struct show_layout layout;
} more[] = {
	{ &show_send,
	  OPCODE(RDMA_WRITE) | OPCODE(RDMA_WRITE_WITH_IMM) | OPCODE(RDMA_READ) |
		OPCODE(RDMA_READ_WITH_INV) | OPCODE(ATOMIC_WRITE),
	  { .sparse = true,
	    SHOW_FIELDS(
		RDMA(remote_addr, hex),
		RDMA(rkey, hex)) } },
	{ &show_send, OPCODE(ATOMIC_CMP_AND_SWP) | OPCODE(ATOMIC_FETCH_AND_ADD),
	  { .sparse = true,
	    SHOW_FIELDS(
		ATOMIC(remote_addr, hex),
		ATOMIC(compare_add, hex),
		ATOMIC(swap, hex),
		ATOMIC(rkey, hex)) } },
	/* the request has a length of its own, which is 0 */
	{ &show_send, OPCODE(FLUSH),
	  { .sparse = true,
	    SHOW_FIELDS(
		FLUSH(remote_addr, hex),
		SHOW_FIELD(rxe_send_wqe, "flush_length", wr.wr.flush.length,
			   decimal),
		FLUSH(rkey, hex),
		FLUSH(type, hex),
		FLUSH(level, hex)) } },
	{ &show_send, OPCODE(BIND_MW),
	  { .sparse = true,
	    SHOW_FIELDS(
		MW(addr, hex),
		SHOW_FIELD(rxe_send_wqe, "mw_length", wr.wr.mw.length, decimal),
		MW(mr_lkey, hex),
		MW(mw_rkey, hex),
		MW(rkey, hex),
		MW(access, access)) } },
	/* a datagram's; of others they are 0 */
	{ &show_send,
	  OPCODE(SEND) | OPCODE(SEND_WITH_IMM) | OPCODE(SEND_WITH_INV),
	  { .sparse = true,
	    SHOW_FIELDS(
		UD(remote_qpn, hex24),
		UD(remote_qkey, hex),
		UD(ah_num, decimal)) } },
	{ &show_send, OPCODE(SEND_WITH_IMM) | OPCODE(RDMA_WRITE_WITH_IMM),
	  { SHOW_FIELDS(
		SHOW_FIELD(rxe_send_wqe, "imm_data", wr.ex.imm_data, be32)) } },
	{ &show_send,
	  OPCODE(LOCAL_INV) | OPCODE(SEND_WITH_INV) |
		OPCODE(RDMA_READ_WITH_INV),
	  { SHOW_FIELDS(
		SHOW_FIELD(rxe_send_wqe, "invalidate_rkey",
			   wr.ex.invalidate_rkey, hex)) } },
	{ &show_wc, HAS_IMM,
	  { SHOW_FIELDS(
		SHOW_FIELD(ib_uverbs_wc, "imm_data", ex.imm_data, be32)) } },
	{ &show_wc, HAS_INVALIDATE,
	  { SHOW_FIELDS(
		SHOW_FIELD(ib_uverbs_wc, "invalidate_rkey", ex.invalidate_rkey,
			   hex)) } },
};
/* clang-format on */

/* the request's data is in the slot, in the place of a list of where it is */
static bool has_data(const struct rxe_send_wqe *wqe)
{
	return wqe->wr.send_flags & IBV_SEND_INLINE ||
	       wqe->wr.opcode == IB_UVERBS_WR_ATOMIC_WRITE;
}

/* what follows a request in its slot, in `room` bytes */
static void show_data(struct show *s, const struct rxe_dma_info *dma,
		      bool is_data, size_t room)
{
	size_t count = room / sizeof(struct rxe_sge);

	if (is_data)
		show_value(s, "data", &show_bytes, dma->inline_data,
			   dma->length < room ? dma->length : room);
	else
		show_array(s, "sge", &show_sge, dma->sge,
			   dma->num_sge < count ? dma->num_sge : count);
}

/* of a request, or of a completion: which entries of `more` it wants */
static uint32_t more_of(const struct show_layout *layout, const void *at)
{
	const struct rxe_send_wqe *send = at;
	const struct ib_uverbs_wc *wc = at;

	if (layout == &show_wc)
		return wc->wc_flags;
	if (layout == &show_send && send->wr.opcode < 32)
		return 1U << send->wr.opcode;
	return 0;
}

void show_slot(struct show *s, const struct show_layout *layout, const void *at,
	       size_t size)
{
	const uint32_t has = more_of(layout, at);
	const struct rxe_send_wqe *send = at;
	const struct rxe_recv_wqe *recv = at;
	size_t i;

	show_fields(s, layout, at);
	for (i = 0; i < N_ELEM(more); i++)
		if (more[i].slot == layout && more[i].when & has)
			show_fields(s, &more[i].layout, at);
	if (layout == &show_send)
		show_data(s, &send->dma, has_data(send), size - sizeof(*send));
	else if (layout == &show_recv)
		show_data(s, &recv->dma, false, size - sizeof(*recv));
}
