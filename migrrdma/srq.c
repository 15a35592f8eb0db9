// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Shared receive queues
 */
#include "shadow.h"

static struct shadow_srq *new_srq(struct ibv_context *ctx)
{
	struct shadow_srq *s = calloc(1, sizeof(*s));

	if (!s) {
		errno = ENOMEM;
		return NULL;
	}
	s->srq.context = ctx;
	pthread_mutex_init(&s->srq.mutex, NULL);
	pthread_cond_init(&s->srq.cond, NULL);
	return s;
}

static void free_srq(struct shadow_srq *s)
{
	pthread_cond_destroy(&s->srq.cond);
	pthread_mutex_destroy(&s->srq.mutex);
	free(s);
}

static struct ibv_srq *made_srq(struct shadow_srq *s, struct ibv_srq *srq,
				void *srq_context, struct ibv_pd *pd)
{
	if (!srq) {
		free_srq(s);
		return NULL;
	}
	s->real = srq;
	s->post_recv = srq->context->ops.post_srq_recv;
	s->srq.srq_context = srq_context;
	s->srq.pd = pd;
	s->srq.handle = srq->handle;
	return &s->srq;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd,
			       struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr a = *attr;
	struct shadow_srq *s;
	struct ibv_srq *srq;

	if (!is_shadow(pd->context))
		return real()->ibv_create_srq(pd, attr);

	s = new_srq(pd->context);
	if (!s)
		return NULL;
	a.srq_context = s;
	srq = real()->ibv_create_srq(real_pd(pd), &a);
	attr->attr = a.attr; /* what it has become */
	return made_srq(s, srq, attr->srq_context, pd);
}

struct ibv_srq *shadow_create_srq_ex(struct ibv_context *ctx,
				     struct ibv_srq_init_attr_ex *attr)
{
	struct shadow_context *c = to_context(ctx);
	struct ibv_srq_init_attr_ex a = *attr;
	struct shadow_srq *s = new_srq(ctx);
	struct ibv_srq *srq;

	if (!s)
		return NULL;
	a.srq_context = s;
	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_PD)
		a.pd = real_pd(attr->pd);
	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ)
		a.cq = real_cq(attr->cq);
	srq = c->real_verbs->create_srq_ex(c->real, &a);
	attr->attr = a.attr;
	return made_srq(s, srq, attr->srq_context,
			attr->comp_mask & IBV_SRQ_INIT_ATTR_PD ? attr->pd
							       : NULL);
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr,
		   int attr_mask)
{
	return real()->ibv_modify_srq(real_srq(srq), attr, attr_mask);
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	return real()->ibv_query_srq(real_srq(srq), attr);
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	bool shadow = is_shadow(srq->context);
	int err = real()->ibv_destroy_srq(real_srq(srq));

	if (!err && shadow)
		free_srq(to_srq(srq));
	return err;
}

int shadow_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num)
{
	return to_context(srq->context)
		->real_verbs->get_srq_num(to_srq(srq)->real, srq_num);
}

int shadow_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			 struct ibv_recv_wr **bad_wr)
{
	struct shadow_srq *s = to_srq(srq);

	return s->post_recv(s->real, wr, bad_wr);
}

int shadow_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *op,
			struct ibv_ops_wr **bad_op)
{
	return to_context(srq->context)
		->real_verbs->post_srq_ops(to_srq(srq)->real, op, bad_op);
}
