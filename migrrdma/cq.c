// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completion queues and channels
 */
#include "shadow.h"

/* --- channels --- */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ctx)
{
	struct shadow_channel *s;

	if (!is_shadow(ctx))
		return real()->ibv_create_comp_channel(ctx);

	s = calloc(1, sizeof(*s));
	if (!s) {
		errno = ENOMEM;
		return NULL;
	}
	s->real = real()->ibv_create_comp_channel(real_context(ctx));
	if (!s->real) {
		free(s);
		return NULL;
	}
	s->channel.context = ctx;
	s->channel.fd = s->real->fd;
	return &s->channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	bool shadow = is_shadow(channel->context);
	int err = real()->ibv_destroy_comp_channel(real_channel(channel));

	if (!err && shadow)
		free(to_channel(channel));
	return err;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
		     void **cq_context)
{
	int err =
		real()->ibv_get_cq_event(real_channel(channel), cq, cq_context);

	if (!err && is_shadow(channel->context)) {
		*cq = shadow_of_cq(*cq);
		*cq_context = (*cq)->cq_context;
	}
	return err;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	real()->ibv_ack_cq_events(real_cq(cq), nevents);
}

/* --- completion queues --- */

static struct shadow_cq *new_cq(struct ibv_context *ctx)
{
	struct shadow_cq *s = calloc(1, sizeof(*s));

	if (!s) {
		errno = ENOMEM;
		return NULL;
	}
	s->cq.context = ctx;
	pthread_mutex_init(&s->cq.mutex, NULL);
	pthread_cond_init(&s->cq.cond, NULL);
	return s;
}

static void free_cq(struct shadow_cq *s)
{
	pthread_cond_destroy(&s->cq.cond);
	pthread_mutex_destroy(&s->cq.mutex);
	free(s);
}

static struct ibv_cq *made_cq(struct shadow_cq *s, struct ibv_cq *cq,
			      void *cq_context,
			      struct ibv_comp_channel *channel)
{
	if (!cq) {
		free_cq(s);
		return NULL;
	}
	s->real = cq;
	s->poll = cq->context->ops.poll_cq;
	s->cq.channel = channel;
	s->cq.cq_context = cq_context;
	s->cq.handle = cq->handle;
	s->cq.cqe = cq->cqe;
	return &s->cq;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	struct shadow_cq *s;
	struct ibv_cq *cq;

	if (!is_shadow(ctx))
		return real()->ibv_create_cq(ctx, cqe, cq_context, channel,
					     comp_vector);

	s = new_cq(ctx);
	if (!s)
		return NULL;
	cq = real()->ibv_create_cq(real_context(ctx), cqe, s,
				   real_channel(channel), comp_vector);
	return made_cq(s, cq, cq_context, channel);
}

struct ibv_cq_ex *shadow_create_cq_ex(struct ibv_context *ctx,
				      struct ibv_cq_init_attr_ex *attr)
{
	struct shadow_context *c = to_context(ctx);
	struct ibv_cq_init_attr_ex a = *attr;
	struct shadow_cq *s = new_cq(ctx);
	struct ibv_cq_ex *cq;

	if (!s)
		return NULL;
	a.cq_context = s;
	a.channel = real_channel(attr->channel);
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD)
		a.parent_domain = real_pd(attr->parent_domain);
	cq = c->real_verbs->create_cq_ex(c->real, &a);
	if (!made_cq(s, ibv_cq_ex_to_cq(cq), attr->cq_context, attr->channel))
		return NULL;
	shadow_cq_ex_init(s, cq);
	return &s->ex;
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	int err = real()->ibv_resize_cq(real_cq(cq), cqe);

	if (is_shadow(cq->context))
		cq->cqe = to_cq(cq)->real->cqe;
	return err;
}

int shadow_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	return to_context(cq->context)
		->real_verbs->modify_cq(to_cq(cq)->real, attr);
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	bool shadow = is_shadow(cq->context);
	int err = real()->ibv_destroy_cq(real_cq(cq));

	if (!err && shadow)
		free_cq(to_cq(cq));
	return err;
}

int shadow_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	struct shadow_cq *s = to_cq(cq);

	return s->poll(s->real, num_entries, wc);
}

int shadow_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	struct ibv_cq *r = to_cq(cq)->real;

	return r->context->ops.req_notify_cq(r, solicited_only);
}
