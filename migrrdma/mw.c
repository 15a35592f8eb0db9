// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory windows
 */
#include "shadow.h"

struct ibv_mw *shadow_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct shadow_context *c = to_context(pd->context);
	struct shadow_mw *s = calloc(1, sizeof(*s));

	if (!s) {
		errno = ENOMEM;
		return NULL;
	}
	s->real = c->real->ops.alloc_mw(real_pd(pd), type);
	if (!s->real) {
		free(s);
		return NULL;
	}
	s->mw = *s->real;
	s->mw.context = pd->context;
	s->mw.pd = pd;

	pthread_mutex_lock(&c->lock);
	if (!c->mws++)
		qps_mind_mws(c, true);
	pthread_mutex_unlock(&c->lock);
	return &s->mw;
}

int shadow_dealloc_mw(struct ibv_mw *mw)
{
	struct shadow_context *c = to_context(mw->context);
	int err;

	pthread_mutex_lock(&c->lock); /* not while a bind of it is collected */
	err = c->real->ops.dealloc_mw(to_mw(mw)->real);
	if (!err && !--c->mws)
		qps_mind_mws(c, false);
	pthread_mutex_unlock(&c->lock);
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
	struct shadow_context *c = to_context(mw->context);
	struct shadow_mw *s = to_mw(mw);
	struct ibv_mw_bind b = *bind;
	int err;

	b.bind_info = real_bind_info(&bind->bind_info);
	pthread_mutex_lock(
		&c->lock); /* it posts: not while the QP is suspended */
	err = s->real->context->ops.bind_mw(real_qp(qp), s->real, &b);
	mw->rkey = s->real->rkey;
	pthread_mutex_unlock(&c->lock);
	return err;
}
