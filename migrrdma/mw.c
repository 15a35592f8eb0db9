// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory windows
 */
#include "bound.h"
#include "control.h"
#include "gate.h"
#include "names.h"
#include "section.h"
#include "spares.h"

static int name(struct shadow_context *c, const struct ibv_mw *mw)
{
	int err;

	pthread_mutex_lock(&c->lock);
	err = names_own_key(c->keys, mw->rkey);
	pthread_mutex_unlock(&c->lock);
	return err;
}

static int drop_spare(void *mw)
{
	return ((struct ibv_mw *)mw)->context->ops.dealloc_mw(mw);
}

/*
 * A new window's name is its key. One that cannot have its own is kept until there is
 * another.
 */
static struct ibv_mw *alloc(struct shadow_context *c, struct ibv_pd *pd,
			    enum ibv_mw_type type)
{
	struct spares spares = {};
	struct ibv_mw *mw;
	int err;

	while ((mw = c->real->ops.alloc_mw(pd, type))) {
		err = name(c, mw);
		if (err == EEXIST && spares_have_room(&spares)) {
			spares.of[spares.n++] = mw;
			continue;
		}
		if (err) {
			drop_spare(mw);
			errno = err == EEXIST ? ENOMEM : err;
			mw = NULL;
		}
		break;
	}
	spares_drop(&spares, drop_spare);
	return mw;
}

static void unname(struct shadow_context *c, uint32_t key)
{
	if (c->keys)
		names_drop_key(c->keys, key);
}

/* its place in the list, and what others have to look for from now on */
static int list_mw(struct shadow_mw *s)
{
	struct shadow_context *c = to_context(s->mw.context);
	int err = 0;

	pthread_mutex_lock(&c->lock);
	if (control_is_on())
		err = bound_add(s);
	if (err) {
		unname(c, s->key);
	} else {
		if (TAILQ_EMPTY(&c->mws)) {
			qps_mind_mws(c, true);
			cqs_mind_mws(c, control_is_on());
		}
		TAILQ_INSERT_TAIL(&c->mws, s, entry);
	}
	pthread_mutex_unlock(&c->lock);
	return err;
}

static int alloc_mw(struct shadow_mw *s, struct ibv_pd *pd,
		    enum ibv_mw_type type)
{
	struct shadow_context *c = to_context(pd->context);
	int err;

	s->real = alloc(c, real_pd(pd), type);
	if (!s->real)
		return errno;
	s->mw = *s->real;
	s->mw.context = pd->context;
	s->mw.pd = pd;
	s->key = s->first_key = s->real->rkey;
	err = list_mw(s);
	if (err)
		c->real->ops.dealloc_mw(s->real);
	return err;
}

struct ibv_mw *shadow_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct shadow_mw *s = calloc(1, sizeof(*s));
	int err = s ? GATED(alloc_mw(s, pd, type)) : ENOMEM;

	if (!err)
		return &s->mw;
	free(s);
	errno = err;
	return NULL;
}

struct ibv_mw *mw_make(struct shadow_mw *s)
{
	struct ibv_context *ctx = coming_context(s->mw.context);

	errno = EOPNOTSUPP; /* another device may know of no windows */
	return ctx->ops.alloc_mw
		       ? ctx->ops.alloc_mw(coming_pd(s->mw.pd), s->mw.type)
		       : NULL;
}

static int dealloc_mw(struct shadow_mw *s)
{
	struct shadow_context *c = to_context(s->mw.context);
	int err = c->real->ops.dealloc_mw(s->real);

	if (err)
		return err;
	pthread_mutex_lock(&c->lock);
	TAILQ_REMOVE(&c->mws, s, entry);
	bound_remove(s);
	unname(c, s->key);
	if (TAILQ_EMPTY(&c->mws)) {
		qps_mind_mws(c, false);
		cqs_mind_mws(c, false);
	}
	pthread_mutex_unlock(&c->lock);
	return 0;
}

int shadow_dealloc_mw(struct ibv_mw *mw)
{
	struct shadow_context *c = to_context(mw->context);
	/* not while a bind of it is collected */
	int err = GATED_WITH(c, dealloc_mw(to_mw(mw)));

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

/* Of a key for a window only the low 8 bits are looked at. */
static uint32_t real_key(const struct shadow_mw *s, uint32_t key)
{
	const struct names *n = to_context(s->mw.context)->keys;

	return n ? names_key(n, (s->key & ~0xffU) | (key & 0xff), key) : key;
}

/* @key: that the application takes it to have, from which the next one has its name */
static uint32_t mw_present_key(struct shadow_mw *s, uint32_t key)
{
	bool fresh = s->fresh;

	s->fresh = false;
	return fresh ? s->first_key : real_key(s, key);
}

/* Of one of type 2 the application sets the key, from which provider and kernel go on. */
struct ibv_mw *real_mw_to_bind(struct ibv_mw *mw, uint32_t key, uint32_t *next)
{
	struct ibv_mw *r = real_mw(mw);

	if (!r || r == mw)
		return r;
	*next = real_key(to_mw(mw), *next);
	if (mw->type == IBV_MW_TYPE_2)
		r->rkey = mw_present_key(to_mw(mw), key);
	return r;
}

static int bind_mw(struct shadow_qp *qp, struct shadow_mw *s,
		   const struct ibv_mw_bind *bind)
{
	struct ibv_send_wr wr = {
		.wr_id = bind->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = { .mw = &s->mw, .bind_info = bind->bind_info },
	};
	struct ibv_mw_bind b = *bind;
	struct bound_note note;
	bool fresh = s->fresh;
	int err;

	/* what was posted before it may still be collected */
	if (atomic_load(&qp->slow) & SLOW_SUSPENDED)
		return ENOMEM;
	b.bind_info = real_bind_info(&bind->bind_info);
	/* the application sets it back when a bind has failed */
	s->real->rkey = mw_present_key(s, s->mw.rkey);
	wr.bind_mw.rkey = bound_known_key(s, ibv_inc_rkey(s->real->rkey));
	bound_post(qp, &wr, &note);
	note.fresh = fresh;
	section_begin(); /* doorbell.h */
	err = s->real->context->ops.bind_mw(qp->real, s->real, &b);
	section_end();
	s->mw.rkey = bound_known_key(s, s->real->rkey);
	if (err)
		bound_refused(&note, false);
	return err;
}

int shadow_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw,
		   struct ibv_mw_bind *bind)
{
	/* it posts */
	return GATED_WITH(to_qp(qp), bind_mw(to_qp(qp), to_mw(mw), bind));
}
