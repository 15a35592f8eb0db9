// SPDX-License-Identifier: GPL-2.0
/* Where the NIC takes receives from. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fakeparts.h"

void fake_srq_new(struct fake_net *net, unsigned int side)
{
	struct fake_srq *s = &net->srq[side];

	s->srq.context = &net->context[side];
	s->net = net;
	s->side = side;
	s->size = net->setup.srq;
}

void fake_keep(struct fake_recv *r, const struct ibv_recv_wr *wr)
{
	r->wr_id = wr->wr_id;
	r->num_sge = wr->num_sge;
	memcpy(r->sge, wr->sg_list, wr->num_sge * sizeof(*r->sge));
}

int fake_post_srq(struct ibv_srq *srq, struct ibv_recv_wr *wr,
		  struct ibv_recv_wr **bad)
{
	struct fake_srq *s = (struct fake_srq *)srq;

	if (s->tail - s->head == DEPTH) {
		*bad = wr;
		return ENOMEM;
	}
	fake_keep(&s->element[s->tail++ % DEPTH], wr);
	return 0;
}

static struct fake_srq *srq_of(const struct fake_qp *q)
{
	return (struct fake_srq *)q->qp.srq;
}

static uint32_t left(const struct fake_srq *s)
{
	return s->tail - s->head;
}

bool fake_srq_empty(const struct fake_qp *q)
{
	return q->qp.srq && !left(srq_of(q));
}

static void limit_event(struct fake_srq *s)
{
	struct ibv_async_event ev = {
		.event_type = IBV_EVENT_SRQ_LIMIT_REACHED,
		.element.srq = &s->srq,
	};
	struct fake_net *net = s->net;

	s->limit = 0;
	if (fake_mistake(net, FAULT_LIMIT_LOST, true))
		return;
	if (fake_mistake(net, FAULT_LIMIT_SRQ, true))
		ev.element.srq = &net->srq[!s->side].srq;
	if (fake_mistake(net, FAULT_LIMIT_TWICE, true))
		fake_async(net, s->side, &ev);
	fake_async(net, s->side, &ev);
}

static const struct fake_recv *take_shared(struct fake_qp *q)
{
	struct fake_srq *s = srq_of(q);
	const struct fake_recv *r;

	if (q->has_late) {
		q->has_late = false;
		return &q->late;
	}
	if (fake_mistake(q->net, FAULT_SRQ_SKIPPED, left(s) > 1) ||
	    fake_mistake(q->net, FAULT_SRQ_LEFT, left(s) > 1))
		s->head++;
	if (fake_mistake(q->net, FAULT_SRQ_MANY, left(s) > q->net->setup.qps))
		s->head += q->net->setup.qps;
	if (fake_mistake(q->net, FAULT_SRQ_SWAPPED, left(s) > 1)) {
		q->late = s->element[s->head++ % DEPTH];
		q->has_late = true;
	}
	r = &s->element[s->head % DEPTH];
	if (!fake_mistake(q->net, FAULT_SRQ_TWICE, true))
		s->head++;
	if ((s->limit && left(s) < s->limit) ||
	    fake_mistake(q->net, FAULT_LIMIT_UNARMED, !s->limit))
		limit_event(s);
	return r;
}

const struct fake_recv *fake_take(struct fake_qp *q)
{
	if (q->qp.srq)
		return take_shared(q);
	if (q->rq_head == q->rq_tail)
		abort(); /* RNR: the credits are there to avoid it */
	return &q->rq[q->rq_head++ % DEPTH];
}

void fake_spoil(struct fake_qp *q, struct ibv_wc *wc)
{
	struct fake_net *net = q->net;
	struct fake_qp *first = net->qp[q->side];

	if (fake_mistake(net, FAULT_SRQ_WR_ID, true))
		wc->wr_id += 10 * net->setup.srq;
	if (fake_mistake(net, FAULT_SRQ_QPN, true))
		wc->qp_num ^= 0x8000;
	if (fake_mistake(net, FAULT_SRQ_QPN_OTHER, true))
		wc->qp_num = q == first ? q[1].qp.qp_num : first->qp.qp_num;
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct fake_srq *s = (struct fake_srq *)srq;

	if (mask != IBV_SRQ_LIMIT || attr->srq_limit > s->size)
		return EINVAL;
	s->limit = attr->srq_limit;
	if (fake_mistake(s->net, FAULT_LIMIT_EARLY, left(s) > s->limit + 8))
		limit_event(s);
	return 0;
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct fake_srq *s = (struct fake_srq *)srq;

	memset(attr, 0, sizeof(*attr));
	attr->srq_limit = s->limit;
	attr->max_wr = s->size;
	if (fake_mistake(s->net, FAULT_LIMIT_QUERY, s->limit))
		attr->srq_limit++;
	if (fake_mistake(s->net, FAULT_SRQ_SIZE, true))
		attr->max_wr--;
	return 0;
}
