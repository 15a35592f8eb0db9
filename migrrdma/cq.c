// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completion queues and channels
 */
#include "armed.h"
#include "cancel.h"
#include "control.h"
#include "events.h"
#include "flags.h"
#include "gate.h"
#include "section.h"
#include "slots.h"
#include "suspend.h"
#include "taken.h"

/* --- channels --- */

static int open_channel(struct shadow_channel *s, struct ibv_context *ctx)
{
	struct shadow_context *c = to_context(ctx);
	int err = 0;

	s->real = real()->ibv_create_comp_channel(c->real);
	if (!s->real)
		return errno;
	s->channel.context = ctx;
	s->channel.fd = s->real->fd;
	if (control_is_on()) {
		err = relay_open(&s->relay, s->real->fd);
		s->channel.fd = s->relay.fd;
	}
	if (err)
		real()->ibv_destroy_comp_channel(s->real);
	else
		LINK(c, channels, s);
	return err;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ctx)
{
	struct shadow_channel *s;
	int err;

	if (!is_shadow(ctx))
		return real()->ibv_create_comp_channel(ctx);

	s = calloc(1, sizeof(*s));
	if (!s) {
		errno = ENOMEM;
		return NULL;
	}
	err = GATED(open_channel(s, ctx));
	if (!err)
		return &s->channel;
	free(s);
	errno = err;
	return NULL;
}

static int close_channel(struct shadow_channel *s)
{
	int err = real()->ibv_destroy_comp_channel(s->real);

	if (!err)
		UNLINK(to_context(s->channel.context), channels, s);
	return err;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	struct shadow_channel *s = to_channel(channel);
	int err;

	if (!is_shadow(channel->context))
		return real()->ibv_destroy_comp_channel(channel);

	err = GATED(close_channel(s));
	if (err)
		return err;
	if (control_is_on())
		relay_close(&s->relay);
	free(s);
	return 0;
}

/* --- completion queues --- */

/*
 * Entries more than asked for, for markers, of which the application does not know; a
 * device may be at its limit.
 */
#define MARKERS (2 * STOP_AT_ONCE)

/* In a child the batch may be one of the parent's, which ends in the child. */
void cq_init_locks(struct shadow_cq *s)
{
	pthread_mutexattr_t attr;

	pthread_mutex_init(&s->lock, NULL);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&s->batch, &attr);
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
	cq_init_locks(s);
	LIST_INIT(&s->marked);
	LIST_INIT(&s->recv_marked);
	return s;
}

static void free_cq(struct shadow_cq *s)
{
	taken_clear(s);
	free(s->current);
	pthread_mutex_destroy(&s->batch);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->cq.cond);
	pthread_mutex_destroy(&s->cq.mutex);
	free(s);
}

static struct ibv_cq *make(struct shadow_cq *s, uint32_t cqe)
{
	struct ibv_context *ctx = coming_context(s->cq.context);
	struct ibv_cq_init_attr_ex a = s->attr;

	/* another host has fewer than the application knows of */
	if (a.comp_vector < (uint32_t)s->cq.context->num_comp_vectors &&
	    ctx->num_comp_vectors > 0)
		a.comp_vector %= (uint32_t)ctx->num_comp_vectors;
	a.cqe = cqe + (uint32_t)s->spare;
	a.cq_context = s;
	a.channel = coming_channel(a.channel);
	if (!s->extended)
		return real()->ibv_create_cq(ctx, (int)a.cqe, s, a.channel,
					     (int)a.comp_vector);
	if (a.comp_mask & IBV_CQ_INIT_ATTR_MASK_PD)
		a.parent_domain = coming_pd(a.parent_domain);
	if (control_is_on())
		a.wc_flags |= CQ_NEEDS;
	return ibv_cq_ex_to_cq(verbs_get_ctx(ctx)->create_cq_ex(ctx, &a));
}

static struct ibv_cq *make_no_less(struct shadow_cq *s, uint32_t cqe)
{
	struct ibv_cq *cq = make(s, cqe);

	if (!cq || cq->cqe - s->spare >= s->cq.cqe)
		return cq;
	real()->ibv_destroy_cq(cq);
	errno = ENOSPC;
	return NULL;
}

/* as qp_make() */
struct ibv_cq *cq_make(struct shadow_cq *s)
{
	struct ibv_cq *cq = make_no_less(s, s->attr.cqe);

	return cq || errno != ENOSPC ? cq
				     : make_no_less(s, (uint32_t)s->cq.cqe);
}

static struct ibv_cq *made_cq(struct shadow_cq *s, struct ibv_cq *cq)
{
	struct shadow_context *c = to_context(s->cq.context);

	if (!cq) {
		free_cq(s);
		return NULL;
	}
	s->real = cq;
	s->poll = cq->context->ops.poll_cq;
	s->cq.channel = s->attr.channel;
	s->cq.cq_context = s->attr.cq_context;
	s->cq.handle = cq->handle;
	s->cq.cqe = cq->cqe - s->spare;
	pthread_mutex_lock(&c->lock);
	if (c->qpns)
		atomic_init(&s->slow, CQ_NAMES);
	if (control_is_on() && !TAILQ_EMPTY(&c->mws))
		atomic_fetch_or(&s->slow, CQ_WINDOWS);
	if (suspend_is_whole())
		flags_of_new_cq(s);
	s->number = ++c->cqs_made;
	TAILQ_INSERT_TAIL(&c->cqs, s, entry);
	pthread_mutex_unlock(&c->lock);
	return &s->cq;
}

static struct ibv_cq *create_cq(struct ibv_context *ctx,
				const struct ibv_cq_init_attr_ex *attr,
				bool extended)
{
	struct shadow_cq *s = new_cq(ctx);
	struct ibv_cq *cq;

	if (!s)
		return NULL;
	s->attr = *attr;
	s->extended = extended;
	s->spare = control_is_on() && (int)attr->cqe > 0 ? MARKERS : 0;
	cq = make(s, attr->cqe);
	if (!cq && s->spare) {
		s->spare = 0;
		cq = make(s, attr->cqe);
	}
	return made_cq(s, cq);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	const struct ibv_cq_init_attr_ex attr = {
		.cqe = (uint32_t)cqe,
		.cq_context = cq_context,
		.channel = channel,
		.comp_vector = (uint32_t)comp_vector,
	};

	if (!is_shadow(ctx))
		return real()->ibv_create_cq(ctx, cqe, cq_context, channel,
					     comp_vector);
	return GATED(create_cq(ctx, &attr, false));
}

struct ibv_cq_ex *shadow_create_cq_ex(struct ibv_context *ctx,
				      struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_cq *cq = GATED(create_cq(ctx, attr, true));

	if (!cq)
		return NULL;
	shadow_cq_ex_init(to_cq(cq), (struct ibv_cq_ex *)to_cq(cq)->real);
	return &to_cq(cq)->ex;
}

static int resize_cq(struct shadow_cq *s, int cqe)
{
	int err = real()->ibv_resize_cq(s->real, cqe + s->spare);

	s->cq.cqe = s->real->cqe - s->spare;
	if (!err)
		s->attr.cqe = (uint32_t)cqe;
	return err;
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	if (!is_shadow(cq->context))
		return real()->ibv_resize_cq(cq, cqe);
	return GATED(resize_cq(to_cq(cq), cqe));
}

static int modify_cq(struct shadow_cq *s, struct ibv_modify_cq_attr *attr)
{
	struct shadow_context *c = to_context(s->cq.context);
	int err = c->real_verbs->modify_cq(s->real, attr);

	if (!err && attr->attr_mask & IBV_CQ_ATTR_MODERATE) {
		s->moderation = attr->moderate;
		s->moderated = true;
	}
	return err;
}

int shadow_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	return GATED(modify_cq(to_cq(cq), attr));
}

/* What of its events is the application's holds nobody up who suspends. */
static int destroy_cq(struct shadow_cq *s)
{
	struct shadow_context *c = to_context(s->cq.context);
	int err;

	/* a thread may be at an event of it that it has read */
	pthread_mutex_lock(&s->lock);
	err = real()->ibv_destroy_cq(s->real);
	if (!err)
		s->real = NULL;
	pthread_mutex_unlock(&s->lock);
	if (err)
		return err;
	pthread_mutex_lock(&c->lock);
	TAILQ_REMOVE(&c->cqs, s, entry);
	slots_free_retired(c);
	events_forget_cq(s);
	pthread_mutex_unlock(&c->lock);
	return 0;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	struct shadow_cq *s = to_cq(cq);
	int err;

	if (!is_shadow(cq->context))
		return real()->ibv_destroy_cq(cq);

	err = GATED(destroy_cq(s));
	if (err)
		return err;
	events_end_cq(s);
	free_cq(s);
	return 0;
}

void cqs_mind_mws(struct shadow_context *c, bool mind)
{
	struct shadow_cq *s;

	TAILQ_FOREACH (s, &c->cqs, entry)
		if (mind)
			atomic_fetch_or(&s->slow, CQ_WINDOWS);
		else
			atomic_fetch_and(&s->slow, (unsigned char)~CQ_WINDOWS);
}

int shadow_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	struct shadow_cq *s = to_cq(cq);
	int err, cancel;

	section_begin();
	if (unlikely(atomic_load(&s->slow) & CQ_SLOW)) {
		section_end();
		cancel = cancel_off(); /* it may be a write(2) */
		pthread_mutex_lock(&s->lock);
		err = armed_notify_slow(s, solicited_only);
		pthread_mutex_unlock(&s->lock);
		cancel_back(cancel);
	} else {
		err = armed_notify(s, solicited_only);
		section_end();
	}
	return err;
}
