// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queue pairs
 */
#include "control.h"
#include "section.h"
#include "sendq.h"
#include "shadow.h"
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

	TAILQ_FOREACH(qp, &c->qps, entry)
	mind_mws(qp, mind);
}

static void link_qp(struct shadow_qp *s)
{
	struct shadow_context *c = to_context(s->qp.context);

	pthread_mutex_lock(&c->lock);
	mind_mws(s, c->mws);
	TAILQ_INSERT_TAIL(&c->qps, s, entry);
	pthread_mutex_unlock(&c->lock);
}

/* In a section that begins before anybody else may have the lock */
static void unlink_qp(struct shadow_qp *s)
{
	struct shadow_context *c = to_context(s->qp.context);

	pthread_mutex_lock(&c->lock);
	section_begin();
	TAILQ_REMOVE(&c->qps, s, entry);
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
	return s;
}

static void free_qp(struct shadow_qp *s)
{
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->qp.cond);
	pthread_mutex_destroy(&s->qp.mutex);
	free(s);
}

static struct ibv_qp *made_qp(struct shadow_qp *s, struct ibv_qp *qp)
{
	struct ibv_qp_ex *ex;

	if (!qp) {
		free_qp(s);
		return NULL;
	}
	s->real = qp;
	s->post_send = qp->context->ops.post_send;
	s->post_recv = qp->context->ops.post_recv;
	s->qp.handle = qp->handle;
	s->qp.qp_num = qp->qp_num;
	s->real_num = qp->qp_num;
	s->qp.state = qp->state;
	s->qp.qp_type = qp->qp_type;
	if (qp->qp_type == IBV_QPT_UD)
		atomic_init(&s->slow, SLOW_AH);
	ex = real()->ibv_qp_to_qp_ex(qp);
	if (ex)
		shadow_qp_ex_init(s, ex);
	link_qp(s);
	return &s->qp;
}

/* the beginning of both kinds of attributes; the shadow gets what the application gave */
#define MAKE_REAL(a, attr, s)                            \
	do {                                             \
		(s)->qp.qp_context = (attr)->qp_context; \
		(s)->qp.send_cq = (attr)->send_cq;       \
		(s)->qp.recv_cq = (attr)->recv_cq;       \
		(s)->qp.srq = (attr)->srq;               \
		(a)->qp_context = (s);                   \
		(a)->send_cq = real_cq((attr)->send_cq); \
		(a)->recv_cq = real_cq((attr)->recv_cq); \
		(a)->srq = real_srq((attr)->srq);        \
	} while (0)

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr a = *attr;
	struct shadow_qp *s;
	struct ibv_qp *qp;

	if (!is_shadow(pd->context))
		return real()->ibv_create_qp(pd, attr);

	s = new_qp(pd->context);
	if (!s)
		return NULL;
	s->qp.pd = pd;
	MAKE_REAL(&a, attr, s);
	qp = real()->ibv_create_qp(real_pd(pd), &a);
	s->cap = attr->cap = a.cap; /* what it has become */
	return made_qp(s, qp);
}

struct ibv_qp *shadow_create_qp_ex(struct ibv_context *ctx,
				   struct ibv_qp_init_attr_ex *attr)
{
	struct shadow_context *c = to_context(ctx);
	struct ibv_qp_init_attr_ex a = *attr;
	struct shadow_qp *s = new_qp(ctx);
	struct ibv_qp *qp;

	if (!s)
		return NULL;
	MAKE_REAL(&a, attr, s);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_PD) {
		s->qp.pd = attr->pd;
		a.pd = real_pd(attr->pd);
	}
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		s->unqueueable = attr->send_ops_flags &
				(IBV_QP_EX_WITH_TSO | IBV_QP_EX_WITH_FLUSH |
				 IBV_QP_EX_WITH_ATOMIC_WRITE);
	qp = c->real_verbs->create_qp_ex(c->real, &a);
	s->cap = attr->cap = a.cap;
	return made_qp(s, qp);
}

struct ibv_qp *shadow_open_qp(struct ibv_context *ctx,
			      struct ibv_qp_open_attr *attr)
{
	struct shadow_context *c = to_context(ctx);
	struct ibv_qp_open_attr a = *attr;
	struct shadow_qp *s = new_qp(ctx);

	if (!s)
		return NULL;
	if (attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT)
		s->qp.qp_context = attr->qp_context;
	a.comp_mask |= IBV_QP_OPEN_ATTR_CONTEXT;
	a.qp_context = s;
	return made_qp(s, c->real_verbs->open_qp(c->real, &a));
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct shadow_qp *s = to_qp(qp);
	int err;

	if (!is_shadow(qp->context))
		return real()->ibv_destroy_qp(qp);

	/* Who is about to suspend waits for the end of it, and does not find it. */
	unlink_qp(s);
	err = real()->ibv_destroy_qp(s->real);
	if (!err)
		suspend_forget_marker(s);
	section_end();
	if (err) {
		link_qp(s);
		return err;
	}
	sendq_clear(s);
	free_qp(s);
	return 0;
}

/* --- modify and query --- */

/* Peers' markers are WRITEs; the application sees what it has asked for. */
static bool takes_markers(const struct shadow_qp *qp)
{
	return control_is_on() && qp_has_sends(qp);
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	struct shadow_context *c;
	struct ibv_qp_attr a;
	struct shadow_qp *s;
	int err;

	if (!is_shadow(qp->context))
		return real()->ibv_modify_qp(qp, attr, attr_mask);

	s = to_qp(qp);
	c = to_context(qp->context);
	if (!control_is_on()) {
		err = real()->ibv_modify_qp(s->real, attr, attr_mask);
		qp->state = s->real->state;
		return err;
	}

	a = *attr;
	if (takes_markers(s))
		a.qp_access_flags |= IBV_ACCESS_REMOTE_WRITE;
	pthread_mutex_lock(&c->lock); /* not while it is suspended */
	err = real()->ibv_modify_qp(s->real, &a, attr_mask);
	qp->state = s->real->state;
	if (!err && attr_mask & IBV_QP_ACCESS_FLAGS)
		s->access = attr->qp_access_flags;
	if (!err && qp->state == IBV_QPS_RESET)
		suspend_forget_marker(s);
	pthread_mutex_unlock(&c->lock);
	return err;
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		 struct ibv_qp_init_attr *init_attr)
{
	int err = real()->ibv_query_qp(real_qp(qp), attr, attr_mask, init_attr);
	struct shadow_qp *s = to_qp(qp);

	if (!is_shadow(qp->context))
		return err;

	qp->state = s->real->state;
	if (err)
		return err;
	if (!(s->access & IBV_ACCESS_REMOTE_WRITE) && takes_markers(s))
		attr->qp_access_flags &= ~(unsigned int)IBV_ACCESS_REMOTE_WRITE;
	init_attr->qp_context = qp->qp_context;
	init_attr->send_cq = qp->send_cq;
	init_attr->recv_cq = qp->recv_cq;
	init_attr->srq = qp->srq;
	return 0;
}

int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op,
			       uint32_t flags)
{
	return real()->ibv_query_qp_data_in_order(real_qp(qp), op, flags);
}

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	return real()->ibv_query_ece(real_qp(qp), ece);
}

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	return real()->ibv_set_ece(real_qp(qp), ece);
}

int shadow_modify_qp_rate_limit(struct ibv_qp *qp,
				struct ibv_qp_rate_limit_attr *attr)
{
	return to_context(qp->context)
		->real_verbs->modify_qp_rate_limit(to_qp(qp)->real, attr);
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return real()->ibv_attach_mcast(real_qp(qp), gid, lid);
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return real()->ibv_detach_mcast(real_qp(qp), gid, lid);
}

/* --- work requests --- */

/* the same request, of real objects */
static struct ibv_send_wr real_wr(const struct shadow_qp *s,
				  const struct ibv_send_wr *wr)
{
	struct ibv_send_wr real = *wr;

	if (s->qp.qp_type == IBV_QPT_UD) {
		real.wr.ud.ah = real_ah(wr->wr.ud.ah);
	} else if (wr->opcode == IBV_WR_BIND_MW) {
		real.bind_mw.mw = real_mw_to_bind(wr->bind_mw.mw);
		real.bind_mw.bind_info = real_bind_info(&wr->bind_mw.bind_info);
	}
	return real;
}

/*
 * The application's requests must not be changed, so copies are posted, some at a time.
 * It learns which one was bad by its own address; some providers tell nothing.
 */
static int post_copies(struct shadow_qp *s, struct ibv_send_wr *wr,
		       struct ibv_send_wr **bad_wr)
{
	struct ibv_send_wr copy[8], *of[8], *bad = NULL;
	unsigned int n;
	int err = 0;

	do {
		for (n = 0; wr && n < 8; n++, wr = wr->next) {
			of[n] = wr;
			copy[n] = real_wr(s, wr);
			copy[n].next = NULL;
			if (n)
				copy[n - 1].next = &copy[n];
		}
		err = s->post_send(s->real, n ? copy : NULL, &bad);
	} while (!err && wr);

	if (err)
		*bad_wr = bad ? of[bad - copy] : NULL;
	return err;
}

int qp_post_real(struct shadow_qp *s, struct ibv_send_wr *wr,
		 struct ibv_send_wr **bad_wr)
{
	if (atomic_load(&s->slow) & (SLOW_AH | SLOW_MW))
		return post_copies(s, wr, bad_wr);
	return s->post_send(s->real, wr, bad_wr);
}

/* a thread's first post, and those that need more than the provider; within a section */
static __attribute__((noinline)) int post_slow(struct shadow_qp *s,
					       struct ibv_send_wr *wr,
					       struct ibv_send_wr **bad_wr)
{
	int err;

	if (!(atomic_load(&s->slow) & SLOW_SUSPENDED)) {
		err = qp_post_real(s, wr, bad_wr);
	} else {
		pthread_mutex_lock(&s->lock);
		if (atomic_load(&s->slow) & SLOW_SUSPENDED)
			err = sendq_add(s, wr, bad_wr);
		else
			err = qp_post_real(s, wr, bad_wr);
		pthread_mutex_unlock(&s->lock);
	}
	section_end();
	return err;
}

static __attribute__((noinline)) int post_first(struct shadow_qp *s,
						struct ibv_send_wr *wr,
						struct ibv_send_wr **bad_wr)
{
	section_enlist();
	return post_slow(s, wr, bad_wr);
}

int shadow_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		     struct ibv_send_wr **bad_wr)
{
	struct shadow_qp *s = to_qp(qp);
	int err;

	if (unlikely(!section_enter()))
		return post_first(s, wr, bad_wr);
	if (unlikely(atomic_load_explicit(&s->slow, memory_order_acquire)))
		return post_slow(s, wr, bad_wr);
	err = s->post_send(s->real, wr, bad_wr);
	section_end();
	return err;
}

int shadow_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad_wr)
{
	struct shadow_qp *s = to_qp(qp);

	return s->post_recv(s->real, wr, bad_wr);
}
