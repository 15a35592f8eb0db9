// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "rebind.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "bound.h"
#include "clock.h"
#include "gate.h"
#include "names.h"
#include "post.h"
#include "suspend.h"
#include "taken.h"

#define PATIENCE 5000000000 /* ns, for one window that is bound */

/* --- which QP --- */

static struct ibv_pd *root(struct ibv_pd *pd)
{
	while (pd && to_pd(pd)->parent.pd)
		pd = to_pd(pd)->parent.pd;
	return pd;
}

/* Will it be in RTS, as far as is known, when it is connected? */
static bool can_bind(const struct shadow_qp *qp)
{
	return qp_has_peer(qp) && qp->qp.state == IBV_QPS_RTS &&
	       !qp->swap.dead && !(qp->swap.told && !qp->swap.peer_num);
}

/* Is it this one's that a window of type 2 is bound with? */
static bool belongs(const struct shadow_mw *mw, const struct shadow_qp *qp)
{
	return qp && mw->bound.qp == qp && mw->bound.valid &&
	       mw->mw.type == IBV_MW_TYPE_2;
}

/* Windows of type 2 belong to a QP; others may have come to be bound by any. */
static struct shadow_qp *binder(const struct shadow_mw *mw)
{
	struct shadow_context *c = to_context(mw->mw.context);
	struct shadow_qp *qp = mw->bound.qp;

	if (qp && can_bind(qp))
		return qp;
	if (mw->mw.type == IBV_MW_TYPE_2)
		return NULL;
	TAILQ_FOREACH (qp, &c->qps, entry)
		if (root(qp->qp.pd) == root(mw->mw.pd) && can_bind(qp))
			return qp;
	return NULL;
}

/* --- check --- */

/*
 * No QP is destroyed that has one: rdma_rxe waits for the end of that. And of UC it knows
 * no LOCAL_INV.
 */
static bool is_stuck(const struct shadow_mw *mw)
{
	const struct shadow_qp *qp = mw->bound.qp;

	return belongs(mw, qp) && qp->swap.chosen && !qp->swap.moved &&
	       !mw->apart &&
	       (!can_bind(qp) || qp->real->state != IBV_QPS_RTS ||
		qp->qp.qp_type != IBV_QPT_RC);
}

static int check(const struct shadow_mw *mw, bool all, struct swap *s)
{
	const struct binding *b = &mw->bound;
	const char *why = NULL;

	if (!all && is_stuck(mw))
		return swap_refuse(
			s, EOPNOTSUPP,
			"QP 0x%06x has a memory window bound, and is not of RC in RTS",
			b->qp->qp.qp_num);
	if (b->unsure &&
	    (all || (b->qp && b->qp->swap.chosen && !b->qp->swap.moved)))
		why = "may be bound or not, which nobody has said";
	else if (all && b->valid && mw->mw.type == IBV_MW_TYPE_1 && !binder(mw))
		why = "is bound, and no QP could do that again";
	return why ? swap_refuse(s, EOPNOTSUPP, "memory window 0x%08x %s",
				 mw->key, why)
		   : 0;
}

/* There is no way back: windows that cannot be bound are free from then on. */
static bool is_begun(void)
{
	struct shadow_context *c;
	struct shadow_qp *qp;

	EACH (c, qp, qps)
		if (qp->swap.moved || qp->swap.apart)
			return true;
	return layer_is_held();
}

int rebind_check(bool all, struct swap *s)
{
	struct shadow_context *c;
	struct shadow_mw *mw;
	int err = 0;

	if (all && is_begun())
		return 0;
	TAILQ_FOREACH (c, &contexts, entry) {
		pthread_mutex_lock(&c->lock);
		TAILQ_FOREACH (mw, &c->mws, entry)
			err = err ? err : check(mw, all, s);
		pthread_mutex_unlock(&c->lock);
	}
	return err;
}

/* --- names --- */

int rebind_prepare(struct shadow_context *c, struct names *keys)
{
	struct shadow_mw *mw;
	int err = 0;

	if (TAILQ_EMPTY(&c->mws))
		return 0;
	c->other_windows_at = names_new();
	if (!c->other_windows_at)
		return ENOMEM;
	TAILQ_FOREACH (mw, &c->mws, entry) {
		/* none is bound with the key that it has already */
		err = err ? err
			  : names_set_key(keys, mw->key,
					  ibv_inc_rkey(mw->other->rkey));
		err = err ? err
			  : names_set(c->other_windows_at, mw->other->rkey >> 8,
				      mw->slot + 1);
	}
	return err;
}

/* It is free, and its names stay what others have been told. The context's lock is held. */
static void leave(struct shadow_mw *mw)
{
	mw->apart = mw->halfway = mw->posted = false;
	bound_forget(mw);
}

void rebind_name(struct shadow_context *c)
{
	struct names *at = c->windows_at;
	struct shadow_mw *mw;

	if (TAILQ_EMPTY(&c->mws))
		return;
	pthread_mutex_lock(&c->lock);
	c->windows_at = c->other_windows_at;
	c->other_windows_at = at;
	TAILQ_FOREACH (mw, &c->mws, entry) {
		mw->first_key = mw->real->rkey;
		mw->fresh = true;
		mw->halfway = mw->posted = false;
		mw->apart = mw->bound.valid && binder(mw);
		if (!mw->apart)
			leave(mw);
	}
	pthread_mutex_unlock(&c->lock);
}

/* --- bind --- */

/*
 * What has completed is taken. If it takes too long it is not posted once more the next time, but waited for.
 */
static int post_and_wait(struct shadow_qp *qp, struct shadow_mw *mw,
			 struct ibv_send_wr *wr, uint64_t deadline)
{
	struct shadow_cq *cq = to_cq(qp->qp.send_cq);
	bool marked = true;
	int err = 0;

	while (marked) {
		if (clock_ns() > deadline)
			return ETIMEDOUT;
		pthread_mutex_lock(&cq->lock);
		if (!mw->posted) {
			qp->marker_status = IBV_WC_SUCCESS;
			err = marker_post(qp, wr);
		}
		mw->posted = !err;
		if (!err)
			taken_fill(cq);
		marked = !err && qp->is_marked;
		pthread_mutex_unlock(&cq->lock);
		sched_yield();
	}
	mw->posted = false;
	return !err && qp->marker_status != IBV_WC_SUCCESS ? EIO : err;
}

static int bind_real(struct shadow_qp *qp, struct shadow_mw *mw, uint32_t key)
{
	const struct binding *b = &mw->bound;
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = { mw->real,
			     key,
			     { b->mr->real, b->addr, b->length, b->access } },
	};
	int err;

	if (!mw->posted)
		mw->real->rkey = mw->first_key; /* if it was tried before */
	err = post_and_wait(qp, mw, &wr, clock_ns() + PATIENCE);
	if (!err && mw->mw.type == IBV_MW_TYPE_1 && mw->real->rkey != key)
		return EPROTO; /* peers have been told this one */
	mw->fresh &= err != 0;
	return err;
}

static int invalidate_real(struct shadow_qp *qp, struct shadow_mw *mw,
			   uint32_t key, uint64_t deadline)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_LOCAL_INV,
				  .invalidate_rkey = key };
	int err = post_and_wait(qp, mw, &wr, deadline);

	if (!err) {
		mw->first_key = key;
		mw->fresh = true;
	}
	return err;
}

/* A window of type 2 is not bound with the key that it has already: by way of another. */
static int bind_with(struct shadow_qp *qp, struct shadow_mw *mw)
{
	uint32_t key = post_lkey(mw->mw.context, mw->key);
	int err = 0;

	if (key == mw->first_key && !mw->halfway) {
		err = bind_real(qp, mw, ibv_inc_rkey(key));
		mw->halfway = !err;
	}
	if (mw->halfway) {
		err = invalidate_real(qp, mw, ibv_inc_rkey(key),
				      clock_ns() + PATIENCE);
		mw->halfway = err;
	}
	return err ? err : bind_real(qp, mw, key);
}

static int refuse(const struct shadow_mw *mw, const struct shadow_qp *qp,
		  const char *what, int err, struct swap *s)
{
	const char *why = strerror(err);
	char status[32];

	if (qp->marker_status != IBV_WC_SUCCESS) {
		snprintf(status, sizeof(status), "completion status %d",
			 qp->marker_status);
		why = status;
	}
	return swap_refuse(s, err, "memory window 0x%08x is not %s: %s",
			   mw->key, what, why);
}

/* A QP that has yet to be connected does it then. */
static int bind(struct shadow_mw *mw, struct swap *s)
{
	struct shadow_context *c = to_context(mw->mw.context);
	struct shadow_qp *qp;
	int err;

	pthread_mutex_lock(&c->lock);
	qp = binder(mw);
	if (!qp) /* it has died since */
		leave(mw);
	pthread_mutex_unlock(&c->lock);
	if (!qp || qp->swap.apart || qp->swap.moved)
		return 0;
	err = bind_with(qp, mw);
	mw->apart = err;
	qp->swap.apart |= err;
	return err ? refuse(mw, qp, "bound", err, s) : 0;
}

int rebind_all(struct swap *s)
{
	struct shadow_context *c;
	struct shadow_mw *mw;
	int err = 0;

	EACH (c, mw, mws)
		if (mw->apart && !err)
			err = bind(mw, s);
	return err;
}

void rebind_give_up(void)
{
	struct shadow_context *c;
	struct shadow_mw *mw;
	struct swap s;

	EACH (c, mw, mws) {
		if (mw->apart)
			bind(mw, &s);
		pthread_mutex_lock(&c->lock);
		if (mw->apart)
			leave(mw);
		pthread_mutex_unlock(&c->lock);
	}
}

/* --- a QP that is replaced on what it is on, and its windows --- */

/* If it has died, and nobody knows, it cannot; nor if nobody knows when it will have. */
static int unbind(struct shadow_qp *qp, struct shadow_mw *mw, uint64_t deadline,
		  struct swap *s)
{
	uint32_t key = post_lkey(mw->mw.context, mw->key);
	int err = invalidate_real(qp, mw, key, deadline);

	if (!err) {
		mw->apart = true;
		return 0;
	}
	if (mw->posted) {
		mw->bound.unsure = true;
		mw->posted = false;
	}
	return refuse(mw, qp, "unbound", err, s);
}

int rebind_unbind(struct shadow_qp *qp, uint64_t deadline, struct swap *s)
{
	struct shadow_context *c = to_context(qp->qp.context);
	struct shadow_mw *mw;
	bool is_bound;
	int err = 0;

	/* other QPs go on, with their windows */
	for (uint32_t i = 0; !err && i < c->n_windows; i++) {
		pthread_mutex_lock(&c->lock);
		mw = c->windows[i];
		is_bound = belongs(mw, qp) && !mw->apart;
		pthread_mutex_unlock(&c->lock);
		if (is_bound)
			err = unbind(qp, mw, deadline, s);
	}
	return err;
}
