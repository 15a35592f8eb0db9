// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queue pairs
 */
#include <string.h>

#include "bound.h"
#include "build.h"
#include "control.h"
#include "events.h"
#include "gate.h"
#include "groups.h"
#include "met.h"
#include "names.h"
#include "peer.h"
#include "recvq.h"
#include "sendq.h"
#include "slots.h"
#include "suspend.h"

/* --- of a context --- */

static void mind_mws(struct shadow_qp *qp, bool mind)
{
	if (mind)
		atomic_fetch_or(&qp->slow, SLOW_MW);
	else
		atomic_fetch_and(&qp->slow, (unsigned char)~SLOW_MW);
}

void qps_mind_mws(struct shadow_context *c, bool mind)
{
	struct shadow_qp *qp;

	TAILQ_FOREACH (qp, &c->qps, entry)
		mind_mws(qp, mind);
}

/* its number, and its place in the list */
static int list_qp(struct shadow_qp *s)
{
	struct shadow_context *c = to_context(s->qp.context);
	int err;

	gate_lock_contexts();
	err = names_qp(s);
	if (!err) {
		pthread_mutex_lock(&c->lock);
		mind_mws(s, !TAILQ_EMPTY(&c->mws));
		if (c->keys)
			atomic_fetch_or(&s->slow, SLOW_NAMES);
		if (suspend_is_whole())
			s->suspended = c->suspended = true;
		TAILQ_INSERT_TAIL(&c->qps, s, entry);
		pthread_mutex_unlock(&c->lock);
	}
	gate_unlock_contexts();
	return err;
}

static void unlist_qp(struct shadow_qp *s)
{
	struct shadow_context *c = to_context(s->qp.context);

	pthread_mutex_lock(&c->lock);
	TAILQ_REMOVE(&c->qps, s, entry);
	bound_forget_qp(s);
	pthread_mutex_unlock(&c->lock);
}

/* --- create and destroy --- */

static struct shadow_qp *new_qp(struct ibv_context *ctx)
{
	struct shadow_qp *s = calloc(1, sizeof(*s));

	if (!s) {
		errno = ENOMEM;
		return NULL;
	}
	s->qp.context = ctx;
	pthread_mutex_init(&s->qp.mutex, NULL);
	pthread_cond_init(&s->qp.cond, NULL);
	pthread_mutex_init(&s->lock, NULL);
	STAILQ_INIT(&s->sendq);
	STAILQ_INIT(&s->met);
	return s;
}

static void free_qp(struct shadow_qp *s)
{
	peer_lead(&s->peer, NULL);
	met_forget(s);
	recvq_free(s->recvq);
	groups_free(s);
	free(s->binds);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->qp.cond);
	pthread_mutex_destroy(&s->qp.mutex);
	free(s);
}

/* *@cap is what the application asks for, and receives what it has become */
static struct ibv_qp *make(struct shadow_qp *s, struct ibv_qp_cap *cap)
{
	struct ibv_context *ctx = coming_context(s->qp.context);
	struct ibv_qp_init_attr_ex a = s->init;
	struct ibv_qp_init_attr *plain = (struct ibv_qp_init_attr *)&a;
	struct ibv_qp *qp;

	a.cap = *cap;
	a.cap.max_send_wr += s->spare;
	a.qp_context = s;
	a.send_cq = coming_cq(a.send_cq);
	a.recv_cq = coming_cq(a.recv_cq);
	a.srq = coming_srq(a.srq);
	if (a.comp_mask & IBV_QP_INIT_ATTR_PD)
		a.pd = coming_pd(a.pd);
	if (s->extended)
		qp = verbs_get_ctx(ctx)->create_qp_ex(ctx, &a);
	else
		qp = real()->ibv_create_qp(a.pd, plain);
	*cap = a.cap;
	cap->max_send_wr -= s->spare;
	return qp;
}

static bool has_less(const struct ibv_qp_cap *cap,
		     const struct ibv_qp_cap *than)
{
	return cap->max_send_wr < than->max_send_wr ||
	       cap->max_recv_wr < than->max_recv_wr ||
	       cap->max_send_sge < than->max_send_sge ||
	       cap->max_recv_sge < than->max_recv_sge ||
	       cap->max_inline_data < than->max_inline_data;
}

static struct ibv_qp *make_no_less(struct shadow_qp *s, struct ibv_qp_cap cap)
{
	struct ibv_qp *qp = make(s, &cap);

	if (!qp || !has_less(&cap, &s->cap))
		return qp;
	real()->ibv_destroy_qp(qp);
	errno = ENOSPC;
	return NULL;
}

/* Another device may give less for the same: then it is asked for what there was. */
struct ibv_qp *qp_make(struct shadow_qp *s)
{
	struct ibv_qp *qp = make_no_less(s, s->init.cap);

	return qp || errno != ENOSPC ? qp : make_no_less(s, s->cap);
}

void qp_use(struct shadow_qp *s, struct ibv_qp *qp)
{
	s->real = qp;
	s->real_ex = real()->ibv_qp_to_qp_ex(qp);
	s->post_send = qp->context->ops.post_send;
	s->post_recv = qp->context->ops.post_recv;
	s->real_num = qp->qp_num;
	s->was_rts = false;
}

void qp_note_rts(struct shadow_qp *s)
{
	s->was_rts = s->real->state == IBV_QPS_RTS ||
		     (s->was_rts && s->real->state != IBV_QPS_RESET);
}

/* what the layer needs to know of it, if it is to be replaced */
static int prepare(struct shadow_qp *s)
{
	const struct ibv_srq_attr became = { .max_wr = s->cap.max_recv_wr,
					     .max_sge = s->cap.max_recv_sge };

	if (!control_is_on())
		return 0;
	if (s->qp.srq || s->qp.qp_type == IBV_QPT_UD)
		atomic_fetch_or(&to_cq(s->qp.recv_cq)->slow, CQ_SLOTS);
	if (s->qp.srq && s->qp.qp_type == IBV_QPT_UD &&
	    to_srq(s->qp.srq)->slots)
		slots_of_datagrams(to_srq(s->qp.srq)->slots);
	if (s->qp.srq || !s->cap.max_recv_wr)
		return 0;
	s->recvq = recvq_new(&s->cap);
	if (s->recvq && s->qp.qp_type == IBV_QPT_UD)
		s->slots = slots_new(&became);
	if (s->slots)
		slots_of_datagrams(s->slots);
	return s->recvq && (s->slots || s->qp.qp_type != IBV_QPT_UD) ? 0
								     : ENOMEM;
}

static struct ibv_qp *made_qp(struct shadow_qp *s, struct ibv_qp *qp)
{
	int err = 0;

	if (qp) {
		qp_use(s, qp);
		s->qp.handle = qp->handle;
		s->qp.state = qp->state;
		s->qp.qp_type = qp->qp_type;
		if (qp->qp_type == IBV_QPT_UD)
			atomic_init(&s->slow, SLOW_AH);
		if (s->real_ex)
			shadow_qp_ex_init(s, s->real_ex);
		err = prepare(s);
		if (!err)
			err = list_qp(s);
	}
	if (qp && !err)
		return &s->qp;
	if (qp) {
		real()->ibv_destroy_qp(qp);
		slots_drop(s);
		errno = err;
	}
	free_qp(s);
	return NULL;
}

/* the application learns what it has become */
static struct ibv_qp *create_qp(struct ibv_context *ctx,
				const struct ibv_qp_init_attr_ex *attr,
				bool extended, struct ibv_qp_cap *cap)
{
	struct shadow_qp *s = new_qp(ctx);
	struct ibv_qp *qp;

	if (!s)
		return NULL;
	s->init = *attr;
	s->extended = extended;
	s->qp.qp_context = attr->qp_context;
	s->qp.send_cq = attr->send_cq;
	s->qp.recv_cq = attr->recv_cq;
	s->qp.srq = attr->srq;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_PD)
		s->qp.pd = attr->pd;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		s->unqueueable = attr->send_ops_flags &
				 (IBV_QP_EX_WITH_TSO | IBV_QP_EX_WITH_FLUSH |
				  IBV_QP_EX_WITH_ATOMIC_WRITE);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_MAX_TSO_HEADER)
		s->unqueueable |= attr->max_tso_header;
	*cap = attr->cap;
	/* a marker of a suspension that has failed is in the queue for a while */
	s->qp.qp_type = attr->qp_type;
	s->spare =
		control_is_on() && qp_has_sends(s) && (int)cap->max_send_wr > 0;
	qp = make(s, cap);
	if (!qp && s->spare) { /* a device may be at its limit */
		s->spare = 0;
		*cap = s->init.cap;
		qp = make(s, cap);
	}
	s->cap = *cap;
	return made_qp(s, qp);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {};

	if (!is_shadow(pd->context))
		return real()->ibv_create_qp(pd, attr);
	/* both begin alike */
	memcpy(&ex, attr, offsetof(struct ibv_qp_init_attr_ex, comp_mask));
	ex.comp_mask = IBV_QP_INIT_ATTR_PD;
	ex.pd = pd;
	return GATED(create_qp(pd->context, &ex, false, &attr->cap));
}

struct ibv_qp *shadow_create_qp_ex(struct ibv_context *ctx,
				   struct ibv_qp_init_attr_ex *attr)
{
	return GATED(create_qp(ctx, attr, true, &attr->cap));
}

static struct ibv_qp *open_qp(struct ibv_context *ctx,
			      struct ibv_qp_open_attr *attr)
{
	struct shadow_context *c = to_context(ctx);
	struct ibv_qp_open_attr a = *attr;
	struct shadow_qp *s = new_qp(ctx);

	if (!s)
		return NULL;
	s->foreign = "shares another one";
	if (attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT)
		s->qp.qp_context = attr->qp_context;
	a.comp_mask |= IBV_QP_OPEN_ATTR_CONTEXT;
	a.qp_context = s;
	return made_qp(s, c->real_verbs->open_qp(c->real, &a));
}

struct ibv_qp *shadow_open_qp(struct ibv_context *ctx,
			      struct ibv_qp_open_attr *attr)
{
	return GATED(open_qp(ctx, attr));
}

static int destroy_qp(struct shadow_qp *s)
{
	int err = real()->ibv_destroy_qp(s->real);

	if (err)
		return err;
	build_drop(s);
	suspend_forget_marker(s);
	unlist_qp(s);
	marker_drop_ah(s);
	slots_drop(s);
	return 0;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct shadow_qp *s = to_qp(qp);
	int err;

	if (!is_shadow(qp->context))
		return real()->ibv_destroy_qp(qp);

	err = GATED_WITH(s, destroy_qp(s));
	if (err)
		return err;
	events_end_qp(s);
	sendq_clear(s);
	free_qp(s);
	return 0;
}
