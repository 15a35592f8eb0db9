// SPDX-License-Identifier: GPL-2.0
/* The queues of the NIC: what is posted, worked on in turn, and polled. */
#include <errno.h>
#include <string.h>

#include "fakeparts.h"

/* True if @q's next request is a READ whose data the one behind it forwards. */
static bool read_is_forwarded(struct fake_qp *q)
{
	const struct fake_send *r = &q->sq[q->sq_head % DEPTH];
	const struct fake_send *s = &q->sq[(q->sq_head + 1) % DEPTH];

	return q->sq_tail - q->sq_head > 1 &&
	       r->wr.opcode == IBV_WR_RDMA_READ && r->wr.num_sge &&
	       s->wr.send_flags & IBV_SEND_FENCE && s->wr.num_sge &&
	       (s->wr.opcode == IBV_WR_SEND ||
		s->wr.opcode == IBV_WR_SEND_WITH_IMM) &&
	       r->sge[0].addr == s->sge[0].addr;
}

/* ... or which goes through the window that the one behind it invalidates. */
static bool read_needs_window(struct fake_qp *q)
{
	const struct fake_send *r = &q->sq[q->sq_head % DEPTH];
	const struct fake_send *s = &q->sq[(q->sq_head + 1) % DEPTH];

	return q->sq_tail - q->sq_head > 1 &&
	       r->wr.opcode == IBV_WR_RDMA_READ && r->wr.num_sge &&
	       s->wr.opcode == IBV_WR_SEND_WITH_INV &&
	       s->wr.send_flags & IBV_SEND_FENCE &&
	       !(s->wr.send_flags & IBV_SEND_SIGNALED) &&
	       r->wr.wr.rdma.rkey == s->wr.invalidate_rkey;
}

/* Its next message finds no receive, and is sent again later. */
static bool not_ready(const struct fake_qp *q)
{
	const struct ibv_send_wr *wr = &q->sq[q->sq_head % DEPTH].wr;

	return fake_srq_empty(q->peer) &&
	       (wr->opcode == IBV_WR_SEND ||
		wr->opcode == IBV_WR_SEND_WITH_IMM ||
		wr->opcode == IBV_WR_SEND_WITH_INV ||
		wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM);
}

static void step(struct fake_qp *q)
{
	const struct ibv_async_event ev = { .event_type = IBV_EVENT_PORT_ERR };
	struct fake_send *s, *late = NULL;

	if (q->sq_head == q->sq_tail || q->error || not_ready(q))
		return;
	if (fake_mistake(q->net, FAULT_ASYNC_EVENT, true))
		fake_async(q->net, q->side, &ev);
	if (fake_mistake(q->net, FAULT_FENCE, read_is_forwarded(q)) ||
	    fake_mistake(q->net, FAULT_SEND_INV_FENCE, read_needs_window(q)))
		late = &q->sq[q->sq_head++ % DEPTH];
	s = &q->sq[q->sq_head++ % DEPTH];
	fake_execute(q, s);
	if (late)
		fake_execute(q, late);
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		     struct ibv_send_wr **bad)
{
	struct fake_qp *q = (struct fake_qp *)qp;
	struct fake_send *s;
	uint32_t len;

	for (; wr; wr = wr->next) {
		if (q->sq_tail - q->sq_head == DEPTH ||
		    wr->num_sge > MOST_SGES) {
			*bad = wr;
			return ENOMEM;
		}
		s = &q->sq[q->sq_tail++ % DEPTH];
		s->wr = *wr;
		s->wr.sg_list = s->sge;
		if (wr->opcode == IBV_WR_BIND_MW)
			s->old_key = wr->bind_mw.mw->rkey;
		memcpy(s->sge, wr->sg_list, wr->num_sge * sizeof(*s->sge));
		if (!(wr->send_flags & IBV_SEND_INLINE) || !wr->num_sge ||
		    fake_mistake(q->net, FAULT_INLINE_LATE,
				 wr->opcode != IBV_WR_RDMA_WRITE))
			continue;
		len = fake_gather(s->data, wr->sg_list, wr->num_sge);
		s->sge[0].addr = (uintptr_t)s->data;
		s->sge[0].length = len;
		s->wr.num_sge = 1;
	}
	return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad)
{
	struct fake_qp *q = (struct fake_qp *)qp;

	(void)bad;
	fake_keep(&q->rq[q->rq_tail++ % DEPTH], wr);
	return 0;
}

/* To ERR, and nowhere else */
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct fake_qp *q = (struct fake_qp *)qp;

	if (mask != IBV_QP_STATE || attr->qp_state != IBV_QPS_ERR)
		return EINVAL;
	q->error = true;
	fake_flush(q);
	return 0;
}

void fake_work(struct fake_net *net)
{
	unsigned int i;

	if (net->pause) {
		net->pause--;
		return;
	}
	for (i = 0; i < net->setup.qps; i++) {
		step(&net->qp[0][i]);
		step(&net->qp[1][i]);
	}
}

static int poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
	struct fake_cq *cq = (struct fake_cq *)ibcq;
	int got = 0;

	/* seldom enough for a CQ to become empty, if that matters */
	if (!cq->net->setup.slow || !(++cq->net->polls % 8))
		fake_work(cq->net);
	while (got < n && cq->head != cq->tail)
		wc[got++] = cq->wc[cq->head++ % CQ_DEPTH];
	return got;
}

void fake_data_path(struct ibv_context_ops *ops)
{
	ops->post_send = post_send;
	ops->post_recv = post_recv;
	ops->post_srq_recv = fake_post_srq;
	ops->poll_cq = poll_cq;
	ops->req_notify_cq = fake_arm;
}
