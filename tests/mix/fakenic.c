// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>
#include <string.h>

#include "fakeparts.h"

#define mistake fake_mistake

bool fake_mistake(struct fake_net *net, enum fault fault, bool fits)
{
	if (net->fault != fault || net->made || !fits || net->ops < net->after)
		return false;
	net->made = true;
	return true;
}

uint32_t fake_gather(uint8_t *buf, const struct ibv_sge *sge, int n)
{
	uint32_t len = 0;
	int i;

	for (i = 0; i < n; len += sge[i++].length)
		memcpy(buf + len, (void *)(uintptr_t)sge[i].addr,
		       sge[i].length);
	return len;
}

static uint8_t *behind(const struct ibv_sge *sge)
{
	return (uint8_t *)(uintptr_t)sge->addr + sge->length;
}

/* Returns the address behind the last byte. */
static uint8_t *scatter(const uint8_t *buf, uint32_t len,
			const struct ibv_sge *sge, int n)
{
	uint8_t *end = NULL;
	uint32_t part;
	int i;

	for (i = 0; i < n && len; i++) {
		part = sge[i].length < len ? sge[i].length : len;
		memcpy((void *)(uintptr_t)sge[i].addr, buf, part);
		end = (uint8_t *)(uintptr_t)sge[i].addr + part;
		buf += part;
		len -= part;
	}
	return end;
}

static void push(struct fake_cq *cq, const struct ibv_wc *wc, bool solicited)
{
	cq->wc[cq->tail++ % CQ_DEPTH] = *wc;
	if (cq->holds && cq->held.qp_num == wc->qp_num &&
	    !((cq->held.opcode ^ wc->opcode) & IBV_WC_RECV)) {
		cq->holds = false;
		cq->wc[cq->tail++ % CQ_DEPTH] = cq->held;
	}
	fake_notify(cq, solicited);
}

static void complete(struct fake_net *net, struct ibv_cq *ibcq,
		     struct ibv_wc *wc, bool recv, bool solicited)
{
	struct fake_cq *cq = (struct fake_cq *)ibcq;

	if (mistake(net, recv ? FAULT_RQ_LOST : FAULT_SQ_LOST, true))
		return;
	if (mistake(net, recv ? FAULT_RQ_SWAPPED : FAULT_SQ_SWAPPED, true)) {
		cq->held = *wc;
		cq->holds = true;
		return;
	}
	if (mistake(net, recv ? FAULT_RQ_QPN : FAULT_SQ_QPN, true))
		wc->qp_num++;
	if (mistake(net, recv ? FAULT_RQ_OPCODE : FAULT_SQ_OPCODE, true))
		wc->opcode = IBV_WC_BIND_MW;
	if (mistake(net, FAULT_BIND_OPCODE, wc->opcode == IBV_WC_BIND_MW) ||
	    mistake(net, FAULT_LOCAL_INV_OPCODE,
		    wc->opcode == IBV_WC_LOCAL_INV))
		wc->opcode = IBV_WC_SEND;
	if (mistake(net, recv ? FAULT_RQ_TWICE : FAULT_SQ_TWICE, true))
		push(cq, wc, solicited);
	push(cq, wc, solicited);
}

static void complete_send(struct fake_qp *q, const struct ibv_send_wr *wr,
			  enum ibv_wc_opcode opcode, uint32_t len)
{
	bool back = opcode == IBV_WC_RDMA_READ || opcode == IBV_WC_COMP_SWAP ||
		    opcode == IBV_WC_FETCH_ADD;
	struct ibv_wc wc = {
		.wr_id = wr->wr_id,
		.opcode = opcode,
		.byte_len = back ? len : 0,
		.qp_num = q->qp.qp_num,
	};

	if (!(wr->send_flags & IBV_SEND_SIGNALED) && !q->net->setup.sig_all &&
	    !mistake(q->net, FAULT_SQ_UNSIGNALED, true))
		return;
	if (mistake(q->net, FAULT_SQ_LEN, back))
		wc.byte_len++;
	if (mistake(q->net, FAULT_SQ_STATUS, true))
		wc.status = IBV_WC_RETRY_EXC_ERR;
	if (mistake(q->net, FAULT_SQ_WR_ID, true))
		wc.wr_id += 1000;
	complete(q->net, q->qp.send_cq, &wc, false, false);
}

static void complete_error(struct fake_qp *q, const struct ibv_send_wr *wr,
			   enum ibv_wc_status status)
{
	struct ibv_wc wc = {
		.wr_id = wr->wr_id,
		.status = status,
		.qp_num = q->qp.qp_num,
	};

	push((struct fake_cq *)q->qp.send_cq, &wc, false);
}

void fake_flush(struct fake_qp *q)
{
	for (; q->rq_head != q->rq_tail; q->rq_head++) {
		struct ibv_wc wc = {
			.wr_id = q->rq[q->rq_head % DEPTH].wr_id,
			.status = IBV_WC_WR_FLUSH_ERR,
			.qp_num = q->qp.qp_num,
		};

		complete(q->net, q->qp.recv_cq, &wc, true, false);
	}
}

/* What does not leave the NIC. */
static void do_local(struct fake_qp *q, const struct fake_send *s)
{
	bool bind = s->wr.opcode == IBV_WR_BIND_MW;
	enum ibv_wc_status status;

	status = bind ? fake_bind(q, s)
		      : fake_invalidate(q, s->wr.invalidate_rkey, true);
	if (status)
		complete_error(q, &s->wr, status);
	else
		complete_send(q, &s->wr,
			      bind ? IBV_WC_BIND_MW : IBV_WC_LOCAL_INV, 0);
}

static void receive(struct fake_qp *q, const struct ibv_send_wr *wr,
		    uint8_t *data, uint32_t len, bool write)
{
	bool imm = wr->opcode == IBV_WR_SEND_WITH_IMM || write;
	struct ibv_wc wc = {
		.opcode = write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
		.byte_len = len,
		.qp_num = q->qp.qp_num,
		.src_qp = q->peer->qp.qp_num,
		.wc_flags = imm ? IBV_WC_WITH_IMM : 0,
		.imm_data = wr->imm_data,
	};
	const struct fake_recv *r;
	uint8_t *end = NULL;

	if (q->error)
		return;
	r = fake_take(q);
	wc.wr_id = r->wr_id;
	if (!write)
		end = scatter(data, len, r->sge, r->num_sge);
	if (mistake(q->net, FAULT_RECV_BEYOND, end))
		*(q->net->setup.shorter ? end : behind(&r->sge[0])) ^= 1;
	if (mistake(q->net, FAULT_RQ_LEN, true))
		wc.byte_len++;
	if (mistake(q->net, FAULT_RQ_IMM, imm))
		wc.imm_data ^= 1;
	if (mistake(q->net, FAULT_RQ_NO_IMM, imm))
		wc.wc_flags = 0;
	fake_spoil_inv(q, wr, &wc);
	if (q->qp.srq)
		fake_spoil(q, &wc);
	complete(q->net, q->qp.recv_cq, &wc, true,
		 wr->send_flags & IBV_SEND_SOLICITED);
}

static void do_write(struct fake_qp *q, const struct ibv_send_wr *wr,
		     uint8_t *data, uint32_t len)
{
	uint8_t *to = (uint8_t *)(uintptr_t)wr->wr.rdma.remote_addr;
	struct fake_net *net = q->net;

	/* what is inline may be a credit, which is no WRITE of a stream */
	if (mistake(net, FAULT_WRITE_BYTE, len > MOST_INLINE))
		data[len - 1] ^= 0x10;
	if (mistake(net, FAULT_WRITE_LOST, len > MOST_INLINE) || q->peer->error)
		return;
	memcpy(to, data, len);
	if (mistake(net, FAULT_WRITE_BEYOND, len == 4096 || net->setup.shorter))
		to[len] ^= 1;
	if (mistake(net, FAULT_WRITE_AGAIN, len > MOST_INLINE)) {
		net->again_at = wr->wr.rdma.remote_addr;
		net->again_len = len;
		memcpy(net->again, data, len);
	}
}

static void do_read(struct fake_qp *q, const struct ibv_send_wr *wr)
{
	uint8_t data[MOST_BYTES], *end;
	uint32_t len = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++)
		len += wr->sg_list[i].length;
	if (!fake_reaches(q, wr, len)) {
		complete_error(q, wr, IBV_WC_REM_ACCESS_ERR);
		return;
	}
	memcpy(data, (void *)(uintptr_t)wr->wr.rdma.remote_addr, len);
	if (mistake(q->net, FAULT_READ_BYTE, len > 0))
		data[len / 2] ^= 0x80;
	end = scatter(data, len, wr->sg_list, wr->num_sge);
	if (mistake(q->net, FAULT_READ_BEYOND, end))
		*end ^= 1;
	complete_send(q, wr, IBV_WC_RDMA_READ, len);
}

static void do_atomic(struct fake_qp *q, const struct ibv_send_wr *wr)
{
	uint64_t *cell = (uint64_t *)(uintptr_t)wr->wr.atomic.remote_addr;
	bool shared = wr->wr.atomic.remote_addr == q->net->shared[q->side];
	bool add = wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	uint64_t old = *cell, value = wr->wr.atomic.swap;
	struct fake_net *net = q->net;

	if (add)
		value = old + wr->wr.atomic.compare_add;
	else if (old != wr->wr.atomic.compare_add)
		value = old;
	if (mistake(net, FAULT_ADD_TWICE, add && !shared) ||
	    mistake(net, FAULT_SHARED_TWICE, add && shared))
		value += wr->wr.atomic.compare_add;
	if (!mistake(net, FAULT_ADD_LOST, add && !shared) &&
	    !mistake(net, FAULT_SHARED_LOST, add && shared) &&
	    !mistake(net, FAULT_SWAP_LOST, !add))
		*cell = value;
	if (mistake(net, FAULT_SHARED_OLD, add && shared))
		old = 0;
	if (!mistake(net, FAULT_SHARED_EMPTY, add && shared))
		scatter((uint8_t *)&old, sizeof(old), wr->sg_list, wr->num_sge);
	complete_send(q, wr, add ? IBV_WC_FETCH_ADD : IBV_WC_COMP_SWAP, 8);
}

static void do_send(struct fake_qp *q, const struct ibv_send_wr *wr,
		    uint8_t *data, uint32_t len)
{
	enum ibv_wc_status status = IBV_WC_SUCCESS;

	if (wr->opcode == IBV_WR_SEND_WITH_INV)
		status = fake_invalidate(q->peer, wr->invalidate_rkey, false);
	if (status) {
		complete_error(q, wr, status);
		return;
	}
	if (mistake(q->net, FAULT_SEND_BYTE, len > 0))
		data[len / 2] ^= 1;
	if (mistake(q->net, FAULT_SEND_TWICE,
		    q->peer->rq_tail - q->peer->rq_head > 1))
		receive(q->peer, wr, data, len, false);
	if (!mistake(q->net, FAULT_SEND_LOST, true))
		receive(q->peer, wr, data, len, false);
	complete_send(q, wr, IBV_WC_SEND, len);
}

void fake_execute(struct fake_qp *q, struct fake_send *s)
{
	struct ibv_send_wr *wr = &s->wr;
	uint32_t len, grh = q->net->setup.ud ? GRH_BYTES : 0;
	uint8_t data[GRH_BYTES + MOST_BYTES];

	q->net->ops++;
	memset(data, 0, grh);
	switch (wr->opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
		len = grh + fake_gather(data + grh, wr->sg_list, wr->num_sge);
		do_send(q, wr, data, len);
		break;
	case IBV_WR_BIND_MW:
	case IBV_WR_LOCAL_INV:
		do_local(q, s);
		break;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		len = fake_gather(data, wr->sg_list, wr->num_sge);
		if (!fake_reaches(q, wr, len)) {
			complete_error(q, wr, IBV_WC_REM_ACCESS_ERR);
			break;
		}
		do_write(q, wr, data, len);
		if (wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
			receive(q->peer, wr, data, len, true);
		complete_send(q, wr, IBV_WC_RDMA_WRITE, len);
		break;
	case IBV_WR_RDMA_READ:
		do_read(q, wr);
		break;
	default:
		do_atomic(q, wr);
		break;
	}
}

void fake_finish(struct fake_net *net)
{
	if (net->again_len)
		memcpy((void *)(uintptr_t)net->again_at, net->again,
		       net->again_len);
}
