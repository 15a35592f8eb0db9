// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Shared receive queues
 */
#include "control.h"
#include "events.h"
#include "gate.h"
#include "slots.h"

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

/* *@attr is what is asked for, and receives what it has become */
static struct ibv_srq *make(struct shadow_srq *s, struct ibv_srq_attr *attr)
{
	struct ibv_context *ctx = coming_context(s->srq.context);
	struct ibv_srq_init_attr_ex a = s->attr;
	struct ibv_srq_init_attr plain = { .srq_context = s, .attr = *attr };
	struct ibv_srq *srq;

	a.attr = *attr;
	a.srq_context = s;
	if (a.comp_mask & IBV_SRQ_INIT_ATTR_PD)
		a.pd = coming_pd(a.pd);
	if (a.comp_mask & IBV_SRQ_INIT_ATTR_CQ)
		a.cq = coming_cq(a.cq);
	if (s->extended)
		srq = verbs_get_ctx(ctx)->create_srq_ex(ctx, &a);
	else
		srq = real()->ibv_create_srq(a.pd, &plain);
	*attr = s->extended ? a.attr : plain.attr;
	return srq;
}

/* Its limit may have been reached since it was made: swap_limit() knows. */
static struct ibv_srq *make_no_less(struct shadow_srq *s,
				    struct ibv_srq_attr attr)
{
	struct ibv_srq *srq;

	attr.srq_limit = 0;
	srq = make(s, &attr);
	if (!srq || (attr.max_wr >= s->became.max_wr &&
		     attr.max_sge >= s->became.max_sge))
		return srq;
	real()->ibv_destroy_srq(srq);
	errno = ENOSPC;
	return NULL;
}

/* as qp_make() */
struct ibv_srq *srq_make(struct shadow_srq *s)
{
	struct ibv_srq *srq = make_no_less(s, s->attr.attr);

	return srq || errno != ENOSPC ? srq : make_no_less(s, s->became);
}

/* Of others, completions come to CQs that no QP tells of; they are not replaced. */
static bool is_basic(const struct shadow_srq *s)
{
	return !(s->attr.comp_mask & IBV_SRQ_INIT_ATTR_TYPE) ||
	       s->attr.srq_type == IBV_SRQT_BASIC;
}

static struct ibv_srq *made_srq(struct shadow_srq *s, struct ibv_srq *srq,
				const struct ibv_srq_attr *became)
{
	if (srq && control_is_on() && is_basic(s)) {
		s->slots = slots_new(became);
		if (!s->slots) {
			real()->ibv_destroy_srq(srq);
			srq = NULL;
			errno = ENOMEM;
		}
	}
	if (!srq) {
		free_srq(s);
		return NULL;
	}
	s->real = srq;
	s->post_recv = srq->context->ops.post_srq_recv;
	s->srq.srq_context = s->attr.srq_context;
	if (s->attr.comp_mask & IBV_SRQ_INIT_ATTR_PD)
		s->srq.pd = s->attr.pd;
	s->srq.handle = srq->handle;
	LINK(to_context(s->srq.context), srqs, s);
	return &s->srq;
}

/* the application learns what it has become */
static struct ibv_srq *create_srq(struct ibv_context *ctx,
				  const struct ibv_srq_init_attr_ex *attr,
				  bool extended, struct ibv_srq_attr *became)
{
	struct shadow_srq *s = new_srq(ctx);
	struct ibv_srq *srq;

	if (!s)
		return NULL;
	s->attr = *attr;
	s->extended = extended;
	*became = attr->attr;
	srq = make(s, became);
	s->became = *became;
	return made_srq(s, srq, became);
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd,
			       struct ibv_srq_init_attr *attr)
{
	const struct ibv_srq_init_attr_ex ex = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_PD,
		.pd = pd,
	};

	if (!is_shadow(pd->context))
		return real()->ibv_create_srq(pd, attr);
	return GATED(create_srq(pd->context, &ex, false, &attr->attr));
}

struct ibv_srq *shadow_create_srq_ex(struct ibv_context *ctx,
				     struct ibv_srq_init_attr_ex *attr)
{
	return GATED(create_srq(ctx, attr, true, &attr->attr));
}

static int modify_srq(struct shadow_srq *s, struct ibv_srq_attr *attr,
		      int attr_mask)
{
	int err = real()->ibv_modify_srq(s->real, attr, attr_mask);

	if (!err && attr_mask & IBV_SRQ_MAX_WR) {
		s->attr.attr.max_wr = s->became.max_wr = attr->max_wr;
		if (s->slots)
			slots_resize(s->slots, attr->max_wr);
	}
	return err;
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr,
		   int attr_mask)
{
	if (!is_shadow(srq->context))
		return real()->ibv_modify_srq(srq, attr, attr_mask);
	return GATED(modify_srq(to_srq(srq), attr, attr_mask));
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	if (!is_shadow(srq->context))
		return real()->ibv_query_srq(srq, attr);
	return GATED(real()->ibv_query_srq(real_srq(srq), attr));
}

static int destroy_srq(struct shadow_srq *s)
{
	struct shadow_context *c = to_context(s->srq.context);
	int err = real()->ibv_destroy_srq(s->real);

	if (err)
		return err;
	pthread_mutex_lock(&c->lock);
	TAILQ_REMOVE(&c->srqs, s, entry);
	if (s->slots)
		slots_retire(s->slots, c);
	slots_free_retired(c);
	pthread_mutex_unlock(&c->lock);
	return 0;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	struct shadow_srq *s = to_srq(srq);
	int err;

	if (!is_shadow(srq->context))
		return real()->ibv_destroy_srq(srq);

	err = GATED(destroy_srq(s));
	if (err)
		return err;
	events_end_srq(s);
	free_srq(s);
	return 0;
}

int shadow_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num)
{
	return GATED(
		to_context(srq->context)
			->real_verbs->get_srq_num(to_srq(srq)->real, srq_num));
}

int shadow_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			 struct ibv_recv_wr **bad_wr)
{
	struct shadow_srq *s = to_srq(srq);

	if (s->slots)
		return slots_post(s, wr, bad_wr);
	return s->post_recv(s->real, wr, bad_wr);
}

int shadow_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *op,
			struct ibv_ops_wr **bad_op)
{
	return GATED(to_context(srq->context)
			     ->real_verbs->post_srq_ops(to_srq(srq)->real, op,
							bad_op));
}
