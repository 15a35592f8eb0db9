// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* SRQs */
#include "inner.h"

#include <errno.h>

void drop_recvs(struct recvs *r)
{
	struct fake_recv *gone;

	while ((gone = r->first)) {
		r->first = gone->next;
		free(gone);
	}
	r->n = 0;
}

static void grow_attr(struct ibv_srq_attr *attr)
{
	if (fake_small)
		attr->max_wr /= 2;
	if (fake_small || fake_exact)
		return;
	attr->max_wr += 100;
	attr->max_sge += 100;
}

/* armed at once, as rxe's */
static struct ibv_srq *new_srq(struct ibv_context *ctx, void *srq_context,
			       struct ibv_pd *pd, uint32_t limit)
{
	struct fake_srq *f = make(FAKE_SRQ, sizeof(*f));
	struct ibv_srq *srq = &f->srq;

	srq->context = ctx;
	srq->srq_context = srq_context;
	srq->pd = pd;
	srq->handle = new_handle();
	f->limit = limit;
	return srq;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd,
			       struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex asked = { .attr = attr->attr, .pd = pd };

	OWN(PD, pd);
	KEEP(srq, asked);
	grow_attr(&attr->attr);
	ENTER_OR(NULL, pd);
	COMMAND_OR(NULL, pd->context);
	return new_srq(pd->context, attr->srq_context, pd,
		       attr->attr.srq_limit);
}

static struct ibv_srq *create_srq_ex(struct ibv_context *ctx,
				     struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_pd *pd = NULL;

	OWN(CONTEXT, ctx);
	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) {
		OWN(PD, attr->pd);
		pd = attr->pd;
	}
	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD)
		OWN(XRCD, attr->xrcd);
	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ)
		OWN(CQ, attr->cq);
	KEEP(srq, *attr);
	grow_attr(&attr->attr);
	ENTER_OR(NULL, ctx);
	return new_srq(ctx, attr->srq_context, pd, attr->attr.srq_limit);
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr,
		   int attr_mask)
{
	OWN(SRQ, srq);
	ENTER_ERR(srq, attr, attr_mask);
	if (attr_mask & IBV_SRQ_LIMIT)
		((struct fake_srq *)srq)->limit = attr->srq_limit;
	return 0;
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	OWN(SRQ, srq);
	ENTER_ERR(srq, attr);
	attr->max_wr = 31;
	attr->srq_limit = ((struct fake_srq *)srq)->limit;
	return 0;
}

void fake_limit_reached(struct ibv_srq *real)
{
	const struct ibv_async_event event = {
		.event_type = IBV_EVENT_SRQ_LIMIT_REACHED,
		.element.srq = real,
	};

	OWN(SRQ, real);
	((struct fake_srq *)real)->limit = 0;
	fake_async_event(real->context, &event);
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	OWN(SRQ, srq);
	ENTER_ERR(srq);
	drop_recvs(&((struct fake_srq *)srq)->recvs);
	purge(&async_events, srq);
	DESTROY(SRQ, srq);
	return 0;
}

static int get_srq_num(struct ibv_srq *srq, uint32_t *srq_num)
{
	OWN(SRQ, srq);
	ENTER_ERR(srq, srq_num);
	*srq_num = 4711;
	return 0;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			 struct ibv_recv_wr **bad_wr)
{
	int err;

	OWN(SRQ, srq);
	err = ENTER(srq, wr, bad_wr);
	if (err) {
		*bad_wr = wr;
		return err;
	}
	if (works)
		return queue_recvs(&((struct fake_srq *)srq)->recvs, wr, 1000,
				   bad_wr);
	POST_ALL(srq, wr, bad_wr, recv);
	return 0;
}

static int post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *wr,
			struct ibv_ops_wr **bad_wr)
{
	OWN(SRQ, srq);
	ENTER(srq, wr, bad_wr);
	POST_ALL(srq, wr, bad_wr, op);
	return 0;
}

void srq_ops(struct verbs_context *v)
{
	v->context.ops.post_srq_recv = post_srq_recv;
	v->post_srq_ops = post_srq_ops;
	v->get_srq_num = get_srq_num;
	v->create_srq_ex = create_srq_ex;
}
