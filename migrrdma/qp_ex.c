// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Work requests that are built call by call: ibv_wr_*()
 */
#include <sched.h>

#include "bound.h"
#include "control.h"
#include "elsewhere.h"
#include "post.h"
#include "section.h"
#include "sendq.h"

static struct ibv_qp_ex *real_ex(struct ibv_qp_ex *ex)
{
	return container_of(ex, struct shadow_qp, ex)->real_ex;
}

/* The calls that begin a request take its id and flags from the QP. */
static struct ibv_qp_ex *next_wr(struct ibv_qp_ex *ex)
{
	struct ibv_qp_ex *r = real_ex(ex);

	r->wr_id = ex->wr_id;
	r->wr_flags = ex->wr_flags;
	return r;
}

static bool has_names(struct ibv_qp_ex *ex)
{
	return unlikely(atomic_load_explicit(
				&container_of(ex, struct shadow_qp, ex)->slow,
				memory_order_relaxed) &
			SLOW_NAMES);
}

/* the real keys of the peer's memory, and of ours */
static uint32_t real_rkey(struct ibv_qp_ex *ex, uint32_t key)
{
	return has_names(ex)
		       ? post_rkey(container_of(ex, struct shadow_qp, ex), key)
		       : key;
}

static uint32_t real_lkey(struct ibv_qp_ex *ex, uint32_t key)
{
	return has_names(ex) ? post_lkey(ex->qp_base.context, key) : key;
}

/*
 * It counts when the batch is posted, for which there are other functions until then. Nobody
 * else is in one of this QP.
 */
static int complete_binds(struct ibv_qp_ex *ex);
static void abort_binds(struct ibv_qp_ex *ex);

static void note_bind(struct ibv_qp_ex *ex, const struct ibv_send_wr *wr)
{
	struct shadow_qp *qp = container_of(ex, struct shadow_qp, ex);

	if (!control_is_on())
		return;
	bound_in_batch(qp, wr);
	ex->wr_complete = complete_binds;
	ex->wr_abort = abort_binds;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey,
			      uint64_t remote_addr, uint64_t compare,
			      uint64_t swap)
{
	struct ibv_qp_ex *r = next_wr(ex);

	r->wr_atomic_cmp_swp(r, real_rkey(ex, rkey), remote_addr, compare,
			     swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey,
				uint64_t remote_addr, uint64_t add)
{
	struct ibv_qp_ex *r = next_wr(ex);

	r->wr_atomic_fetch_add(r, real_rkey(ex, rkey), remote_addr, add);
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct ibv_mw_bind_info real_info = real_bind_info(info);
	const struct ibv_send_wr wr = {
		.wr_id = ex->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = { mw, rkey, *info },
	};
	struct ibv_qp_ex *r = next_wr(ex);

	note_bind(ex, &wr);
	mw = real_mw_to_bind(mw, mw->rkey, &rkey);
	r->wr_bind_mw(r, mw, rkey, &real_info);
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	const struct ibv_send_wr wr = {
		.wr_id = ex->wr_id,
		.opcode = IBV_WR_LOCAL_INV,
		.invalidate_rkey = invalidate_rkey,
	};
	struct ibv_qp_ex *r = next_wr(ex);

	note_bind(ex, &wr);
	r->wr_local_inv(r, real_lkey(ex, invalidate_rkey));
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey,
			 uint64_t remote_addr)
{
	struct ibv_qp_ex *r = next_wr(ex);

	r->wr_rdma_read(r, real_rkey(ex, rkey), remote_addr);
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey,
			  uint64_t remote_addr)
{
	struct ibv_qp_ex *r = next_wr(ex);

	r->wr_rdma_write(r, real_rkey(ex, rkey), remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey,
			      uint64_t remote_addr, __be32 imm_data)
{
	struct ibv_qp_ex *r = next_wr(ex);

	r->wr_rdma_write_imm(r, real_rkey(ex, rkey), remote_addr, imm_data);
}

static void wr_send(struct ibv_qp_ex *ex)
{
	struct ibv_qp_ex *r = next_wr(ex);

	r->wr_send(r);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
	struct ibv_qp_ex *r = next_wr(ex);

	r->wr_send_imm(r, imm_data);
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	struct ibv_qp_ex *r = next_wr(ex);

	r->wr_send_inv(r, real_rkey(ex, invalidate_rkey));
}

static void wr_send_tso(struct ibv_qp_ex *ex, void *hdr, uint16_t hdr_sz,
			uint16_t mss)
{
	struct ibv_qp_ex *r = next_wr(ex);

	r->wr_send_tso(r, hdr, hdr_sz, mss);
}

static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey,
			    uint64_t remote_addr, const void *atomic_wr)
{
	struct ibv_qp_ex *r = next_wr(ex);

	r->wr_atomic_write(r, real_rkey(ex, rkey), remote_addr, atomic_wr);
}

static void wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
		     size_t len, uint8_t type, uint8_t level)
{
	struct ibv_qp_ex *r = next_wr(ex);

	r->wr_flush(r, real_rkey(ex, rkey), remote_addr, len, type, level);
}

/* --- what a request has --- */

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah,
			   uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct ibv_qp_ex *r = real_ex(ex);

	ah = elsewhere_ah(ah, &remote_qpn);
	r->wr_set_ud_addr(r, ah, remote_qpn, remote_qkey);
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	struct ibv_qp_ex *r = real_ex(ex);

	r->wr_set_xrc_srqn(r, remote_srqn);
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	struct ibv_qp_ex *r = real_ex(ex);

	r->wr_set_inline_data(r, addr, length);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf,
				    const struct ibv_data_buf *buf_list)
{
	struct ibv_qp_ex *r = real_ex(ex);

	r->wr_set_inline_data_list(r, num_buf, buf_list);
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr,
		       uint32_t length)
{
	struct ibv_qp_ex *r = real_ex(ex);

	r->wr_set_sge(r, real_lkey(ex, lkey), addr, length);
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge,
			    const struct ibv_sge *sg_list)
{
	struct ibv_qp_ex *r = real_ex(ex);
	struct ibv_sge sge[MOST_SGES];

	/* of more than there is room for the provider takes none */
	if (has_names(ex) && num_sge <= MOST_SGES) {
		post_name_sges(ex->qp_base.context, sge, sg_list, (int)num_sge);
		sg_list = sge;
	}
	r->wr_set_sge_list(r, num_sge, sg_list);
}

/* --- a batch of them --- */

/*
 * All of a batch is one section. While other threads are in batches of the provider's,
 * those of the layer wait.
 */
static void wr_start(struct ibv_qp_ex *ex)
{
	struct shadow_qp *qp = container_of(ex, struct shadow_qp, ex);

	for (;;) {
		section_begin();
		if (likely(!(atomic_load_explicit(&qp->slow,
						  memory_order_acquire) &
			     SLOW_SUSPENDED)))
			break;
		section_end();
		pthread_mutex_lock(&qp->lock);
		if (atomic_load(&qp->slow) & SLOW_BATCHES) {
			sendq_start_batch(qp);
			return;
		}
		pthread_mutex_unlock(&qp->lock);
		sched_yield();
	}
	qp->real_ex->wr_start(qp->real_ex);
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct ibv_qp_ex *r = real_ex(ex);
	int err = r->wr_complete(r);

	section_end();
	return err;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	struct ibv_qp_ex *r = real_ex(ex);

	r->wr_abort(r);
	section_end();
}

static int end_binds(struct ibv_qp_ex *ex, bool post)
{
	int err;

	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	err = bound_end_batch(container_of(ex, struct shadow_qp, ex), post);
	section_end();
	return err;
}

static int complete_binds(struct ibv_qp_ex *ex)
{
	return end_binds(ex, true);
}

static void abort_binds(struct ibv_qp_ex *ex)
{
	end_binds(ex, false);
}

/* A provider offers what has been asked for. */
void shadow_qp_ex_init(struct shadow_qp *qp, const struct ibv_qp_ex *r)
{
	struct ibv_qp_ex *ex = &qp->ex;

	ex->comp_mask = r->comp_mask;
#define OFFER(op) ex->op = r->op ? op : NULL
	OFFER(wr_atomic_cmp_swp);
	OFFER(wr_atomic_fetch_add);
	OFFER(wr_bind_mw);
	OFFER(wr_local_inv);
	OFFER(wr_rdma_read);
	OFFER(wr_rdma_write);
	OFFER(wr_rdma_write_imm);
	OFFER(wr_send);
	OFFER(wr_send_imm);
	OFFER(wr_send_inv);
	OFFER(wr_send_tso);
	OFFER(wr_set_ud_addr);
	OFFER(wr_set_xrc_srqn);
	OFFER(wr_set_inline_data);
	OFFER(wr_set_inline_data_list);
	OFFER(wr_set_sge);
	OFFER(wr_set_sge_list);
	OFFER(wr_start);
	OFFER(wr_complete);
	OFFER(wr_abort);
	OFFER(wr_atomic_write);
	OFFER(wr_flush);
#undef OFFER
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	if (!is_shadow(qp->context))
		return real()->ibv_qp_to_qp_ex(qp);
	return to_qp(qp)->real_ex ? &to_qp(qp)->ex : NULL;
}
