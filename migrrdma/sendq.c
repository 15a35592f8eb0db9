// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "gate.h"
#include "post.h"
#include "sendq.h"
#include "taken.h"

#include <string.h>

#define INLINE_OF(p, qp) ((char *)&(p)->sge[(qp)->cap.max_send_sge])

/* one request; behind its SGEs there is room for its inline data */
struct pending {
	STAILQ_ENTRY(pending) entry;
	struct ibv_send_wr wr;
	size_t bytes;	  /* of inline data */
	uint32_t mw_rkey; /* of the window to be bound, when it was posted */
	struct ibv_sge sge[];
};

static struct pending *new_pending(const struct shadow_qp *qp)
{
	struct pending *p =
		calloc(1, sizeof(*p) +
				  qp->cap.max_send_sge * sizeof(p->sge[0]) +
				  qp->cap.max_inline_data);

	if (p)
		p->wr.sg_list = p->sge;
	return p;
}

/* --- as ibv_post_send() gives them --- */

/* another piece of inline data; all of it is in one SGE */
static int add_inline(struct shadow_qp *qp, struct pending *p, const void *data,
		      size_t bytes)
{
	if (bytes > qp->cap.max_inline_data - p->bytes)
		return EINVAL;
	if (bytes)
		memcpy(INLINE_OF(p, qp) + p->bytes, data, bytes);
	p->bytes += bytes;
	p->wr.send_flags |= IBV_SEND_INLINE;
	p->wr.num_sge = 1;
	p->sge[0] = (struct ibv_sge){ .addr = (uintptr_t)INLINE_OF(p, qp),
				      .length = (uint32_t)p->bytes };
	return 0;
}

static int fill(struct shadow_qp *qp, struct pending *p,
		const struct ibv_send_wr *wr)
{
	int err = 0;

	p->wr = *wr;
	p->wr.next = NULL;
	p->wr.sg_list = p->sge;
	if (wr->opcode == IBV_WR_BIND_MW)
		p->mw_rkey = wr->bind_mw.mw->rkey;
	if (wr->send_flags & IBV_SEND_INLINE) {
		p->wr.num_sge = 0;
		for (int i = 0; i < wr->num_sge && !err; i++)
			err = add_inline(qp, p,
					 (void *)(uintptr_t)wr->sg_list[i].addr,
					 wr->sg_list[i].length);
	} else if (wr->num_sge) {
		memcpy(p->sge, wr->sg_list,
		       (size_t)wr->num_sge * sizeof(p->sge[0]));
	}
	return err;
}

static int add(struct shadow_qp *qp, const struct ibv_send_wr *wr)
{
	struct pending *p;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->cap.max_send_sge ||
	    wr->opcode > IBV_WR_SEND_WITH_INV)
		return EINVAL;
	if (qp->pendings >= qp->cap.max_send_wr)
		return ENOMEM;
	p = new_pending(qp);
	if (!p)
		return ENOMEM;
	if (fill(qp, p, wr)) {
		free(p);
		return EINVAL;
	}
	STAILQ_INSERT_TAIL(&qp->sendq, p, entry);
	qp->pendings++;
	return 0;
}

/* Before it can send there is nothing to wait for; nor when it never will. */
static int refusal(const struct shadow_qp *qp)
{
	if (is_unplugged(qp->qp.context))
		return EIO;
	return qp->qp.state < IBV_QPS_RTS ? EINVAL : 0;
}

int sendq_add(struct shadow_qp *qp, struct ibv_send_wr *wr,
	      struct ibv_send_wr **bad_wr)
{
	int err = 0;

	for (; wr && !err; wr = wr->next) {
		err = refusal(qp);
		if (!err)
			err = add(qp, wr);
		if (err)
			*bad_wr = wr;
	}
	return err;
}

uint64_t sendq_first(const struct shadow_qp *qp)
{
	return STAILQ_FIRST(&qp->sendq)->wr.wr_id;
}

void sendq_drop(struct shadow_qp *qp)
{
	struct pending *p = STAILQ_FIRST(&qp->sendq);

	STAILQ_REMOVE_HEAD(&qp->sendq, entry);
	qp->pendings--;
	free(p);
}

int sendq_post(struct shadow_qp *qp)
{
	struct ibv_send_wr *bad;
	struct pending *p;
	int err;

	while ((p = STAILQ_FIRST(&qp->sendq))) {
		err = p->wr.opcode == IBV_WR_BIND_MW
			      ? post_bind(qp, &p->wr, p->mw_rkey)
			      : post_send_real(qp, &p->wr, &bad);
		if (err)
			return err;
		sendq_drop(qp);
	}
	return 0;
}

bool sendq_flush(struct shadow_qp *qp)
{
	struct shadow_cq *cq = to_cq(qp->qp.send_cq);

	while (!STAILQ_EMPTY(&qp->sendq)) {
		if (!taken_flush(cq, qp->qp.qp_num, sendq_first(qp)))
			return false;
		sendq_drop(qp);
	}
	return true;
}

void sendq_clear(struct shadow_qp *qp)
{
	while (!STAILQ_EMPTY(&qp->sendq))
		sendq_drop(qp);
}

/* --- as ibv_wr_*() build them --- */

static struct shadow_qp *of(struct ibv_qp_ex *ex)
{
	return container_of(ex, struct shadow_qp, ex);
}

/* the batch fails, and says so when it is complete */
static void spoil(struct shadow_qp *qp, int err)
{
	if (!qp->batch.err)
		qp->batch.err = err;
}

/* the next request of the batch; there may be no memory for it */
static struct ibv_send_wr *begin(struct ibv_qp_ex *ex,
				 enum ibv_wr_opcode opcode)
{
	static _Thread_local struct ibv_send_wr nowhere;
	struct shadow_qp *qp = of(ex);
	struct pending *p = new_pending(qp);

	qp->batch.last = p;
	if (!p) {
		spoil(qp, ENOMEM);
		return &nowhere;
	}
	STAILQ_INSERT_TAIL(&qp->batch.all, p, entry);
	qp->batch.n++;
	p->wr.wr_id = ex->wr_id;
	p->wr.send_flags = ex->wr_flags;
	p->wr.opcode = opcode;
	return &p->wr;
}

static void queue_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey,
				 uint64_t remote_addr, uint64_t compare,
				 uint64_t swap)
{
	struct ibv_send_wr *wr = begin(ex, IBV_WR_ATOMIC_CMP_AND_SWP);

	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.remote_addr = remote_addr;
	wr->wr.atomic.compare_add = compare;
	wr->wr.atomic.swap = swap;
}

static void queue_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey,
				   uint64_t remote_addr, uint64_t value)
{
	struct ibv_send_wr *wr = begin(ex, IBV_WR_ATOMIC_FETCH_AND_ADD);

	wr->wr.atomic.rkey = rkey;
	wr->wr.atomic.remote_addr = remote_addr;
	wr->wr.atomic.compare_add = value;
}

static void queue_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw,
			  uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	struct ibv_send_wr *wr = begin(ex, IBV_WR_BIND_MW);

	if (of(ex)->batch.last)
		of(ex)->batch.last->mw_rkey = mw->rkey;
	wr->bind_mw.mw = mw;
	wr->bind_mw.rkey = rkey;
	wr->bind_mw.bind_info = *info;
}

static void queue_local_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	begin(ex, IBV_WR_LOCAL_INV)->invalidate_rkey = invalidate_rkey;
}

static void queue_rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode,
		       uint32_t rkey, uint64_t remote_addr, __be32 imm_data)
{
	struct ibv_send_wr *wr = begin(ex, opcode);

	wr->wr.rdma.rkey = rkey;
	wr->wr.rdma.remote_addr = remote_addr;
	wr->imm_data = imm_data;
}

static void queue_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey,
			    uint64_t remote_addr)
{
	queue_rdma(ex, IBV_WR_RDMA_READ, rkey, remote_addr, 0);
}

static void queue_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey,
			     uint64_t remote_addr)
{
	queue_rdma(ex, IBV_WR_RDMA_WRITE, rkey, remote_addr, 0);
}

static void queue_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey,
				 uint64_t remote_addr, __be32 imm_data)
{
	queue_rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr, imm_data);
}

static void queue_send(struct ibv_qp_ex *ex)
{
	begin(ex, IBV_WR_SEND);
}

static void queue_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
	begin(ex, IBV_WR_SEND_WITH_IMM)->imm_data = imm_data;
}

static void queue_send_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	begin(ex, IBV_WR_SEND_WITH_INV)->invalidate_rkey = invalidate_rkey;
}

static void queue_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah,
			      uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct pending *p = of(ex)->batch.last;

	if (!p)
		return;
	p->wr.wr.ud.ah = ah;
	p->wr.wr.ud.remote_qpn = remote_qpn;
	p->wr.wr.ud.remote_qkey = remote_qkey;
}

static void queue_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	struct pending *p = of(ex)->batch.last;

	if (p)
		p->wr.qp_type.xrc.remote_srqn = remote_srqn;
}

static void queue_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf,
				       const struct ibv_data_buf *buf_list)
{
	struct shadow_qp *qp = of(ex);
	struct pending *p = qp->batch.last;

	for (size_t i = 0; p && i < num_buf; i++)
		if (add_inline(qp, p, buf_list[i].addr, buf_list[i].length))
			spoil(qp, EINVAL);
}

static void queue_set_inline_data(struct ibv_qp_ex *ex, void *addr,
				  size_t length)
{
	queue_set_inline_data_list(ex, 1,
				   &(struct ibv_data_buf){ addr, length });
}

static void queue_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge,
			       const struct ibv_sge *sg_list)
{
	struct shadow_qp *qp = of(ex);
	struct pending *p = qp->batch.last;

	if (num_sge > qp->cap.max_send_sge) {
		spoil(qp, EINVAL);
	} else if (p && num_sge) {
		memcpy(p->sge, sg_list, num_sge * sizeof(p->sge[0]));
		p->wr.num_sge = (int)num_sge;
	}
}

static void queue_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr,
			  uint32_t length)
{
	queue_set_sge_list(ex, 1, &(struct ibv_sge){ addr, length, lkey });
}

static void end_batch(struct shadow_qp *qp)
{
	struct pending *p;

	while ((p = STAILQ_FIRST(&qp->batch.all))) {
		STAILQ_REMOVE_HEAD(&qp->batch.all, entry);
		free(p);
	}
	shadow_qp_ex_init(qp, &qp->ex); /* what there is a function for */
	gate_end_batch();
	pthread_mutex_unlock(&qp->lock);
}

static int queue_complete(struct ibv_qp_ex *ex)
{
	struct shadow_qp *qp = of(ex);
	int err = qp->batch.err;

	if (!err)
		err = refusal(qp);
	if (!err && qp->batch.n > qp->cap.max_send_wr - qp->pendings)
		err = ENOMEM;
	if (!err) {
		STAILQ_CONCAT(&qp->sendq, &qp->batch.all);
		qp->pendings += qp->batch.n;
	}
	end_batch(qp);
	return err;
}

static void queue_abort(struct ibv_qp_ex *ex)
{
	end_batch(of(ex));
}

/*
 * Who else begins a batch waits for the lock, as for the provider's. QPs with other
 * calls than these are not suspended.
 */
void sendq_start_batch(struct shadow_qp *qp)
{
	struct ibv_qp_ex *ex = &qp->ex;

	gate_begin_batch();
	STAILQ_INIT(&qp->batch.all);
	qp->batch.last = NULL;
	qp->batch.n = 0;
	qp->batch.err = 0;
#define OFFER(op) ex->wr_##op = ex->wr_##op ? queue_##op : NULL
	OFFER(atomic_cmp_swp);
	OFFER(atomic_fetch_add);
	OFFER(bind_mw);
	OFFER(local_inv);
	OFFER(rdma_read);
	OFFER(rdma_write);
	OFFER(rdma_write_imm);
	OFFER(send);
	OFFER(send_imm);
	OFFER(send_inv);
	OFFER(set_ud_addr);
	OFFER(set_xrc_srqn);
	OFFER(set_inline_data);
	OFFER(set_inline_data_list);
	OFFER(set_sge);
	OFFER(set_sge_list);
	OFFER(complete);
	OFFER(abort);
#undef OFFER
}
