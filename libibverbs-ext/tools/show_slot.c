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
#define DMA(type, m, how) SHOW_FIELD(type, #m, dma.m, how)

/* clang-format off */
static const struct show_field wc_fields[] = {
	WC(wr_id, hex),
	WC(status, wc_status),
	WC(opcode, wc_opcode),
	WC(vendor_err, hex),
	WC(byte_len, decimal),
	SHOW_FIELD(ib_uverbs_wc, "imm_data", ex.imm_data, be32),
	WC(qp_num, hex24),
	WC(src_qp, hex24),
	WC(wc_flags, wc_flags),
	WC(pkey_index, decimal),
	WC(slid, decimal),
	WC(sl, decimal),
	WC(dlid_path_bits, decimal),
	WC(port_num, decimal),
};

static const struct show_field recv_fields[] = {
	RECV(wr_id, hex),
	DMA(rxe_recv_wqe, length, decimal),
	DMA(rxe_recv_wqe, resid, decimal),
	DMA(rxe_recv_wqe, cur_sge, decimal),
	DMA(rxe_recv_wqe, num_sge, decimal),
	DMA(rxe_recv_wqe, sge_offset, decimal),
};

static const struct show_field send_fields[] = {
	WR(wr_id, hex),
	WR(opcode, wr_opcode),
	WR(send_flags, send_flags),
	SHOW_FIELD(rxe_send_wqe, "imm_data", wr.ex.imm_data, be32),
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
	DMA(rxe_send_wqe, sge_offset, decimal),
};

static const struct show_field rdma_fields[] = {
	RDMA(remote_addr, hex),
	RDMA(rkey, hex),
};

static const struct show_field atomic_fields[] = {
	ATOMIC(remote_addr, hex),
	ATOMIC(compare_add, hex),
	ATOMIC(swap, hex),
	ATOMIC(rkey, hex),
};

/* the request has a length of its own, which is 0 */
static const struct show_field flush_fields[] = {
	FLUSH(remote_addr, hex),
	SHOW_FIELD(rxe_send_wqe, "flush_length", wr.wr.flush.length, decimal),
	FLUSH(rkey, hex),
	FLUSH(type, hex),
	FLUSH(level, hex),
};
/* clang-format on */

const struct show_layout show_wc = {
	.name = "completion",
	.sparse = true,
	SHOW_FIELDS(wc_fields),
	.size = sizeof(struct ib_uverbs_wc),
};

const struct show_layout show_recv = {
	.name = "receive",
	.sparse = true,
	SHOW_FIELDS(recv_fields),
	.size = sizeof(struct rxe_recv_wqe),
};

const struct show_layout show_send = {
	.name = "send",
	.sparse = true,
	SHOW_FIELDS(send_fields),
	.size = sizeof(struct rxe_send_wqe),
};

static const struct show_layout rdma = { .name = "rdma",
					 .sparse = true,
					 SHOW_FIELDS(rdma_fields) };
static const struct show_layout atomic = { .name = "atomic",
					   .sparse = true,
					   SHOW_FIELDS(atomic_fields) };
static const struct show_layout flush = { .name = "flush",
					  .sparse = true,
					  SHOW_FIELDS(flush_fields) };

const struct show_layout *show_send_more(uint32_t opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_WRITE:
		return &rdma;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return &atomic;
	case IBV_WR_FLUSH:
		return &flush;
	default:
		return NULL;
	}
}
