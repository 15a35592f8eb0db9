// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* ibv_wr_*() */
#include "inner.h"

/* calls that begin a request, of which the QP says the id and the flags */
#define BEGIN(ex, ...)                                               \
	do {                                                         \
		OWN(QP, ex);                                         \
		ENTER(ex, (ex)->wr_id, (ex)->wr_flags, __VA_ARGS__); \
	} while (0)

/* calls that do not */
#define GO_ON(...)                  \
	do {                        \
		OWN(QP, ex);        \
		ENTER(__VA_ARGS__); \
	} while (0)

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey,
			      uint64_t remote_addr, uint64_t compare,
			      uint64_t swap)
{
	BEGIN(ex, rkey, remote_addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey,
				uint64_t remote_addr, uint64_t add)
{
	BEGIN(ex, rkey, remote_addr, add);
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	OWN(MW, mw);
	OWN_OR_NULL(MR, info->mr);
	KEEP(info, *info);
	KEEP(mw_rkey, mw->rkey);
	BEGIN(ex, mw, rkey);
	if (fake_binds)
		add_to_batch(ex, &(struct ibv_send_wr){
					 .opcode = IBV_WR_BIND_MW,
					 .bind_mw = { mw, rkey, *info } });
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	BEGIN(ex, invalidate_rkey);
	if (fake_binds)
		add_to_batch(ex, &(struct ibv_send_wr){
					 .opcode = IBV_WR_LOCAL_INV,
					 .invalidate_rkey = invalidate_rkey });
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey,
			 uint64_t remote_addr)
{
	BEGIN(ex, rkey, remote_addr);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey,
			  uint64_t remote_addr)
{
	BEGIN(ex, rkey, remote_addr);
	add_to_batch(ex,
		     &(struct ibv_send_wr){ .opcode = IBV_WR_RDMA_WRITE,
					    .wr.rdma = { remote_addr, rkey } });
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey,
			      uint64_t remote_addr, __be32 imm_data)
{
	BEGIN(ex, rkey, remote_addr, imm_data);
}

static void wr_send(struct ibv_qp_ex *ex)
{
	BEGIN(ex, 0);
	add_to_batch(ex, &(struct ibv_send_wr){ .opcode = IBV_WR_SEND });
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
	BEGIN(ex, imm_data);
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	BEGIN(ex, invalidate_rkey);
}

static void wr_send_tso(struct ibv_qp_ex *ex, void *hdr, uint16_t hdr_sz,
			uint16_t mss)
{
	BEGIN(ex, hdr, hdr_sz, mss);
}

static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey,
			    uint64_t remote_addr, const void *atomic_wr)
{
	BEGIN(ex, rkey, remote_addr, atomic_wr);
}

static void wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
		     size_t len, uint8_t type, uint8_t level)
{
	BEGIN(ex, rkey, remote_addr, len, type, level);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah,
			   uint32_t remote_qpn, uint32_t remote_qkey)
{
	OWN(AH, ah);
	GO_ON(ex, ah, remote_qpn, remote_qkey);
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	GO_ON(ex, remote_srqn);
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	GO_ON(ex, addr, length);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf,
				    const struct ibv_data_buf *buf_list)
{
	GO_ON(ex, num_buf, buf_list);
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr,
		       uint32_t length)
{
	GO_ON(ex, lkey, addr, length);
	set_batch_sge(ex, &(struct ibv_sge){ addr, length, lkey });
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge,
			    const struct ibv_sge *sg_list)
{
	GO_ON(ex, num_sge, sg_list);
}

static void wr_start(struct ibv_qp_ex *ex)
{
	GO_ON(ex);
	start_batch(ex);
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	int err, failure;

	OWN(QP, ex);
	failure = ENTER(ex);
	err = end_batch(ex, !failure);
	return failure ? failure : err;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	GO_ON(ex);
	end_batch(ex, false);
}

void wr_ops(struct ibv_qp_ex *ex, uint64_t flags)
{
	ex->comp_mask = 0x90;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_xrc_srqn = wr_set_xrc_srqn;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
#define FOR(flag, op)                              \
	do {                                       \
		if (flags & IBV_QP_EX_WITH_##flag) \
			ex->op = op;               \
	} while (0)
	FOR(RDMA_WRITE, wr_rdma_write);
	FOR(RDMA_WRITE_WITH_IMM, wr_rdma_write_imm);
	FOR(SEND, wr_send);
	FOR(SEND_WITH_IMM, wr_send_imm);
	FOR(RDMA_READ, wr_rdma_read);
	FOR(ATOMIC_CMP_AND_SWP, wr_atomic_cmp_swp);
	FOR(ATOMIC_FETCH_AND_ADD, wr_atomic_fetch_add);
	FOR(LOCAL_INV, wr_local_inv);
	FOR(BIND_MW, wr_bind_mw);
	FOR(SEND_WITH_INV, wr_send_inv);
	FOR(TSO, wr_send_tso);
	FOR(FLUSH, wr_flush);
	FOR(ATOMIC_WRITE, wr_atomic_write);
#undef FOR
}
