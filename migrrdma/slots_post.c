// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * RECVs that are posted, and get slots
 */
#include "slots_inner.h"

#include "post.h"

enum {
	AT_ONCE = 32
};

/* requests for the provider, in one call, and where they are from */
struct chain {
	struct ibv_recv_wr wr[AT_ONCE], *of[AT_ONCE];
	uint32_t slot[AT_ONCE];
	struct ibv_sge sge[MOST_SGES];
	unsigned int n;
	int sges;
};

static int check(const struct slots *s, const struct ibv_recv_wr *wr)
{
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > s->max_sge ||
	    wr->num_sge > MOST_SGES)
		return EINVAL;
	return 0;
}

static int collect(struct slots *s, const struct ibv_recv_wr *wr)
{
	uint32_t i;
	int err = check(s, wr);

	if (err)
		return err;
	if (s->used >= s->max_wr)
		return ENOMEM; /* as the provider would say */
	return slot_take(s, wr, &i) ? 0 : ENOMEM;
}

/* Nothing of the application's is copied unless it is to be another one. */
static int add(struct shadow_srq *srq, struct chain *c, struct ibv_recv_wr *wr)
{
	struct ibv_context *ctx = srq->srq.context;
	struct slots *s = srq->slots;
	unsigned int n = c->n;
	int err = check(s, wr);

	if (err)
		return err;
	if (!slot_take(s, wr, &c->slot[n]))
		return ENOMEM;
	s->slot[c->slot[n]].posted = true;
	c->of[n] = wr;
	c->wr[n] = (struct ibv_recv_wr){ .wr_id = slot_id(s, c->slot[n]),
					 .sg_list = wr->sg_list,
					 .num_sge = wr->num_sge };
	if (to_context(ctx)->keys) {
		c->wr[n].sg_list = &c->sge[c->sges];
		c->sges += post_name_sges(ctx, &c->sge[c->sges], wr->sg_list,
					  wr->num_sge);
	}
	if (n)
		c->wr[n - 1].next = &c->wr[n];
	c->n++;
	return 0;
}

/* What a provider says is bad has to be one of them. */
static int post_chain(struct shadow_srq *srq, struct chain *c,
		      struct ibv_recv_wr **bad_wr)
{
	struct slots *s = srq->slots;
	struct ibv_recv_wr *bad = NULL;
	unsigned int taken = 0;
	int err;

	if (!c->n)
		return 0;
	err = srq->post_recv(srq->real, c->wr, &bad);
	if (likely(!err))
		return 0;
	while (taken < c->n && bad != &c->wr[taken])
		taken++;
	if (taken == c->n && c->n > 1) { /* it may have any of them */
		s->unsure = true;
		*bad_wr = NULL;
		return err;
	}
	if (taken == c->n)
		taken = 0;
	*bad_wr = c->of[taken];
	while (c->n > taken)
		slot_put(s, c->slot[--c->n]);
	return err;
}

/* with the lock */
static int post(struct shadow_srq *srq, struct ibv_recv_wr *wr,
		struct ibv_recv_wr **bad_wr)
{
	struct chain c;
	int err = 0, why;

	while (wr && !err) {
		c.n = 0;
		c.sges = 0;
		while (wr && c.n < AT_ONCE && !err &&
		       (!c.n || wr->num_sge <= MOST_SGES - c.sges)) {
			err = add(srq, &c, wr);
			if (!err)
				wr = wr->next;
		}
		if (err)
			*bad_wr = wr;
		why = post_chain(srq, &c, bad_wr);
		err = why ? why : err;
	}
	return err;
}

int slots_post(struct shadow_srq *srq, struct ibv_recv_wr *wr,
	       struct ibv_recv_wr **bad_wr)
{
	struct slots *s = srq->slots;
	int err = 0;

	pthread_mutex_lock(&s->lock);
	if (unlikely(s->hold)) {
		for (; wr && !err; wr = wr->next) {
			err = is_unplugged(srq->srq.context) ? EIO
							     : collect(s, wr);
			if (err)
				*bad_wr = wr;
		}
	} else {
		err = post(srq, wr, bad_wr);
	}
	pthread_mutex_unlock(&s->lock);
	return err;
}

/* --- of QPs --- */

/* one request, which is seen before it can complete */
static int post_one(struct shadow_qp *qp, const struct ibv_recv_wr *wr)
{
	struct slots *s = qp->slots;
	struct ibv_sge sge[MOST_SGES];
	struct ibv_recv_wr *bad, copy = { .num_sge = wr->num_sge };
	int err = check(s, wr);
	uint32_t i;

	if (err)
		return err;
	pthread_mutex_lock(&s->lock);
	if (!slot_take(s, wr, &i))
		err = ENOMEM;
	pthread_mutex_unlock(&s->lock);
	if (err)
		return err;
	copy.wr_id = slot_id(s, i);
	copy.sg_list = sge;
	post_name_sges(qp->qp.context, sge, wr->sg_list, wr->num_sge);
	err = qp->post_recv(qp->real, &copy, &bad);
	if (err) {
		pthread_mutex_lock(&s->lock);
		slot_put(s, i);
		pthread_mutex_unlock(&s->lock);
	}
	return err;
}

int slots_post_qp(struct shadow_qp *qp, struct ibv_recv_wr *wr,
		  struct ibv_recv_wr **bad_wr)
{
	int err = 0;

	for (; wr && !err; wr = wr->next) {
		err = post_one(qp, wr);
		if (err)
			*bad_wr = wr;
	}
	return err;
}
