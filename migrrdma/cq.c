// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completion queues and channels
 */
#include "control.h"
#include "section.h"
#include "shadow.h"
#include "taken.h"

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

/*
 * Entries more than asked for, for markers, of which the application does not know; a
 * device may be at its limit.
 */
#define MARKERS 16

/* Between ibv_start_poll() and its end a thread may hold it, and destroy a QP. */
static void init_recursive(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

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
	init_recursive(&s->lock);
	LIST_INIT(&s->marked);
	return s;
}

static void free_cq(struct shadow_cq *s)
{
	taken_clear(s);
	free(s->current);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->cq.cond);
	pthread_mutex_destroy(&s->cq.mutex);
	free(s);
}

static void link_cq(struct shadow_cq *s)
{
	struct shadow_context *c = to_context(s->cq.context);

	pthread_mutex_lock(&c->lock);
	TAILQ_INSERT_TAIL(&c->cqs, s, entry);
	pthread_mutex_unlock(&c->lock);
}

/* In a section that begins before anybody else may have the lock */
static void unlink_cq(struct shadow_cq *s)
{
	struct shadow_context *c = to_context(s->cq.context);

	pthread_mutex_lock(&c->lock);
	section_begin();
	TAILQ_REMOVE(&c->cqs, s, entry);
	pthread_mutex_unlock(&c->lock);
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
	s->cq.cqe = cq->cqe - s->spare;
	link_cq(s);
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
	s->spare = control_is_on() && cqe > 0 ? MARKERS : 0;
	cq = real()->ibv_create_cq(real_context(ctx), cqe + s->spare, s,
				   real_channel(channel), comp_vector);
	if (!cq && s->spare) {
		s->spare = 0;
		cq = real()->ibv_create_cq(real_context(ctx), cqe, s,
					   real_channel(channel), comp_vector);
	}
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
	s->spare = control_is_on() && attr->cqe ? MARKERS : 0;
	a.cqe += (uint32_t)s->spare;
	cq = c->real_verbs->create_cq_ex(c->real, &a);
	if (!cq && s->spare) {
		s->spare = 0;
		a.cqe = attr->cqe;
		cq = c->real_verbs->create_cq_ex(c->real, &a);
	}
	if (!made_cq(s, ibv_cq_ex_to_cq(cq), attr->cq_context, attr->channel))
		return NULL;
	shadow_cq_ex_init(s, cq);
	return &s->ex;
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	struct shadow_cq *s = to_cq(cq);
	struct shadow_context *c;
	int err;

	if (!is_shadow(cq->context))
		return real()->ibv_resize_cq(cq, cqe);

	c = to_context(cq->context);
	pthread_mutex_lock(&c->lock); /* not while the layer polls it */
	err = real()->ibv_resize_cq(s->real, cqe + s->spare);
	cq->cqe = s->real->cqe - s->spare;
	pthread_mutex_unlock(&c->lock);
	return err;
}

int shadow_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	struct shadow_context *c = to_context(cq->context);
	int err;

	pthread_mutex_lock(&c->lock);
	err = c->real_verbs->modify_cq(to_cq(cq)->real, attr);
	pthread_mutex_unlock(&c->lock);
	return err;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	struct shadow_cq *s = to_cq(cq);
	int err;

	if (!is_shadow(cq->context))
		return real()->ibv_destroy_cq(cq);

	/* Nobody takes from it any more; who is about to suspend waits for the end. */
	unlink_cq(s);
	err = real()->ibv_destroy_cq(s->real);
	section_end();
	if (err)
		link_cq(s);
	else
		free_cq(s);
	return err;
}

/* a thread's first poll, and those of which the layer has completions; within a section */
static __attribute__((noinline)) int
poll_slow(struct shadow_cq *s, int num_entries, struct ibv_wc *wc)
{
	int n;

	if (atomic_load(&s->slow)) {
		pthread_mutex_lock(&s->lock);
		n = taken_poll(s, num_entries, wc);
		pthread_mutex_unlock(&s->lock);
	} else {
		n = s->poll(s->real, num_entries, wc);
	}
	section_end();
	return n;
}

static __attribute__((noinline)) int
poll_first(struct shadow_cq *s, int num_entries, struct ibv_wc *wc)
{
	section_enlist();
	return poll_slow(s, num_entries, wc);
}

int shadow_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	struct shadow_cq *s = to_cq(cq);
	int n;

	if (unlikely(!section_enter()))
		return poll_first(s, num_entries, wc);
	if (unlikely(atomic_load_explicit(&s->slow, memory_order_acquire)))
		return poll_slow(s, num_entries, wc);
	n = s->poll(s->real, num_entries, wc);
	section_end();
	return n;
}

int shadow_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	struct ibv_cq *r = to_cq(cq)->real;

	return r->context->ops.req_notify_cq(r, solicited_only);
}
