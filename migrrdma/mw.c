// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory windows
 */
#include "gate.h"
#include "names.h"
#include "section.h"

/* is the window's key the name of something else? If not, it is its own name. */
static int name(struct shadow_context *c, const struct ibv_mw *mw)
{
	int err = 0;

	pthread_mutex_lock(&c->lock);
	if (c->keys && names_get(c->keys, mw->rkey >> 8))
		err = EEXIST;
	else if (c->keys)
		err = names_set_key(c->keys, mw->rkey, mw->rkey);
	pthread_mutex_unlock(&c->lock);
	return err;
}

/*
 * Of a window the application, the provider and its peers change the key, so it has no
 * other name. One that cannot have its own is kept until there is another.
 */
static struct ibv_mw *alloc(struct shadow_context *c, struct ibv_pd *pd,
			    enum ibv_mw_type type)
{
	struct ibv_mw *mw = c->real->ops.alloc_mw(pd, type), *better = NULL;
	int err = mw ? name(c, mw) : 0;

	if (err == EEXIST)
		better = alloc(c, pd, type);
	if (err) {
		c->real->ops.dealloc_mw(mw);
		if (err != EEXIST)
			errno = err;
		mw = better;
	}
	return mw;
}

struct ibv_mw *shadow_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct shadow_context *c = to_context(pd->context);
	struct shadow_mw *s = calloc(1, sizeof(*s));

	if (!s) {
		errno = ENOMEM;
		return NULL;
	}
	gate_enter();
	s->real = alloc(c, real_pd(pd), type);
	if (s->real) {
		s->mw = *s->real;
		s->mw.context = pd->context;
		s->mw.pd = pd;
		pthread_mutex_lock(&c->lock);
		if (!c->mws++)
			qps_mind_mws(c, true);
		pthread_mutex_unlock(&c->lock);
	}
	gate_leave();
	if (s->real)
		return &s->mw;
	free(s);
	return NULL;
}

int shadow_dealloc_mw(struct ibv_mw *mw)
{
	struct shadow_context *c = to_context(mw->context);
	int err;

	gate_enter_with(
		&c->suspended); /* not while a bind of it is collected */
	err = c->real->ops.dealloc_mw(to_mw(mw)->real);
	pthread_mutex_lock(&c->lock);
	if (!err && !--c->mws)
		qps_mind_mws(c, false);
	if (!err && c->keys)
		names_set(c->keys, mw->rkey >> 8, 0);
	pthread_mutex_unlock(&c->lock);
	gate_leave();
	if (!err)
		free(to_mw(mw));
	return err;
}

struct ibv_mw_bind_info real_bind_info(const struct ibv_mw_bind_info *info)
{
	struct ibv_mw_bind_info real = *info;

	real.mr = real_mr(info->mr);
	return real;
}

/*
 * Of a window of type 2 the application sets the key itself, from which the provider
 * and the kernel go on.
 */
struct ibv_mw *real_mw_to_bind(struct ibv_mw *mw)
{
	struct ibv_mw *r = real_mw(mw);

	if (r && r != mw && mw->type == IBV_MW_TYPE_2)
		r->rkey = mw->rkey;
	return r;
}

int shadow_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw,
		   struct ibv_mw_bind *bind)
{
	struct shadow_mw *s = to_mw(mw);
	struct ibv_mw_bind b = *bind;
	int err;

	gate_enter_with(&to_qp(qp)->suspended); /* it posts */
	b.bind_info = real_bind_info(&bind->bind_info);
	section_begin(); /* doorbell.h */
	err = s->real->context->ops.bind_mw(real_qp(qp), s->real, &b);
	section_end();
	mw->rkey = s->real->rkey;
	gate_leave();
	return err;
}
