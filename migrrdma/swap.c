// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * New objects take the place of those that are flushed.
 */
#include <string.h>

#include "armed.h"
#include "build.h"
#include "doorbell.h"
#include "elsewhere.h"
#include "events.h"
#include "gate.h"
#include "names.h"
#include "rebind.h"
#include "recvq.h"
#include "section.h"
#include "slots.h"

#define FOREVER (UINT64_MAX / 2) /* of a deadline */

int swap_post_held(struct swap *s)
{
	struct shadow_context *c;
	struct shadow_srq *srq;
	struct shadow_qp *qp;
	unsigned int n = 0;
	int err = 0;

	EACH_CHOSEN (c, qp)
		if (!err && qp->recvq) {
			err = recvq_post_again(qp, &n);
			s->recvs += n;
			if (err)
				swap_refuse(s, err, "RECVs of QP 0x%06x: %s",
					    qp->qp.qp_num, strerror(err));
		}
	EACH (c, srq, srqs)
		if (!err && srq->slots) {
			err = slots_post_again(srq, &n);
			s->recvs += n;
			if (err)
				swap_refuse(s, err, "RECVs of SRQ %u: %s",
					    srq->srq.handle, strerror(err));
		}
	return err;
}

/* Who waits for asynchronous events looks at the context's meanwhile: async.c. */
#define SWAP(obj)                                            \
	do {                                                 \
		__typeof__((obj)->real) old_ = (obj)->real;  \
                                                             \
		__atomic_store_n(&(obj)->real, (obj)->other, \
				 __ATOMIC_RELEASE);          \
		(obj)->other = old_;                         \
	} while (0)

static void swap_qp(struct shadow_qp *qp)
{
	struct ibv_qp *old = qp->real;

	qp_use(qp, qp->other);
	qp->other = old;
	qp->swap.there = qp->swap.led;
	qp->swap.led = false;
	qp->swap.apart = qp->swap.there || qp->qp.state != qp->real->state ||
			 qp->swap.dead;
	qp->swap.moved = qp->swap.stopped = qp->swap.told = false;
	qp->swap.spent = true;
	qp_note_rts(qp);
}

static void swap_context(struct shadow_context *c)
{
	struct ibv_context *pub = &c->verbs.context;

	SWAP(c);
	c->real_verbs = verbs_get_ctx(c->real);
	pub->cmd_fd = c->real->cmd_fd;
	device_is_now(pub->device, c->real);
}

#define SWAP_EACH(c, obj, list)                        \
	do {                                           \
		TAILQ_FOREACH (obj, &(c)->list, entry) \
			SWAP(obj);                     \
	} while (0)

static void swap_all_of(struct shadow_context *c)
{
	struct names *keys = c->keys;
	struct shadow_channel *ch;
	struct shadow_srq *srq;
	struct shadow_pd *pd;
	struct shadow_ah *ah;
	struct shadow_mr *mr;
	struct shadow_mw *mw;
	struct shadow_cq *cq;
	struct shadow_qp *qp;

	c->unfinished = true;
	swap_context(c);
	SWAP_EACH(c, pd, pds);
	SWAP_EACH(c, ah, ahs);
	TAILQ_FOREACH (ah, &c->ahs, entry) {
		ah->lost = ah->other_lost;
		elsewhere_swap_ways(ah);
	}
	SWAP_EACH(c, mr, mrs);
	SWAP_EACH(c, ch, channels);
	SWAP_EACH(c, cq, cqs);
	SWAP_EACH(c, srq, srqs);
	TAILQ_FOREACH (cq, &c->cqs, entry)
		cq->poll = cq->real->context->ops.poll_cq;
	TAILQ_FOREACH (srq, &c->srqs, entry) {
		srq->post_recv = srq->real->context->ops.post_srq_recv;
		slots_flushed_all(srq->slots);
	}
	SWAP_EACH(c, mw, mws);
	c->keys = c->other_keys;
	c->other_keys = keys;
	rebind_name(c);
	TAILQ_FOREACH (qp, &c->qps, entry) {
		atomic_fetch_or(&qp->slow, SLOW_NAMES);
		qp->old_to_self = qp->to_self; /* of the PD of before */
		qp->to_self = NULL;
	}
}

/*
 * As old ones are, of which no event has come; or will not, as of something that the
 * application may have now: it wakes up for that, once more or not.
 */
static int arm_cqs(struct shadow_context *c, struct swap *s)
{
	struct shadow_cq *cq;
	int err = 0;

	pthread_mutex_lock(&c->lock);
	TAILQ_FOREACH (cq, &c->cqs, entry)
		if (!err && cq->cq.channel && armed_is(cq)) {
			atomic_store(&cq->unarmed, false);
			if (cq->n_taken)
				events_add(cq);
			else
				err = cq->real->context->ops.req_notify_cq(
					cq->real, !atomic_load(&cq->arms_any));
		}
	pthread_mutex_unlock(&c->lock);
	return err ? swap_refuse(s, err, "a CQ is not armed: %s", strerror(err))
		   : 0;
}

/* The limit of a SRQ is armed, unless an event is on its way; nobody receives any more. */
int swap_note_limits(struct swap *s)
{
	struct shadow_context *c;
	struct ibv_srq_attr attr;
	struct shadow_srq *srq;
	int err;

	EACH (c, srq, srqs) {
		err = real()->ibv_query_srq(srq->real, &attr);
		if (err)
			return swap_refuse(s, err, "limit of SRQ %u: %s",
					   srq->srq.handle, strerror(err));
		if (attr.srq_limit)
			srq->limit = attr.srq_limit;
	}
	return 0;
}

int swap_limit(struct shadow_srq *srq)
{
	struct ibv_srq_attr attr = { .srq_limit = srq->limit };
	int err = 0;

	if (srq->limit)
		err = real()->ibv_modify_srq(srq->real, &attr, IBV_SRQ_LIMIT);
	return err;
}

static int limit_srqs(struct shadow_context *c, struct swap *s)
{
	struct shadow_srq *srq;
	int err;

	TAILQ_FOREACH (srq, &c->srqs, entry) {
		err = swap_limit(srq);
		if (err)
			return swap_refuse(s, err, "limit of SRQ %u: %s",
					   srq->srq.handle, strerror(err));
	}
	return 0;
}

/*
 * Threads that wait for events have sections in which they try the old ones. Behind them
 * they have the new: who arms a CQ now arms it, and who did not will find it armed.
 */
static void take_last_events(void)
{
	struct shadow_channel *ch;
	struct shadow_context *c;

	sections_wait(FOREVER);
	TAILQ_FOREACH (c, &contexts, entry) {
		TAILQ_FOREACH (ch, &c->channels, entry) {
			events_carry(ch->other, false);
			atomic_store(&ch->held, false);
		}
		events_carry_async(c, c->other);
	}
}

int swap_objects(bool all, struct swap *s)
{
	struct shadow_context *c;
	struct shadow_srq *srq;
	struct shadow_qp *qp;
	int err;

	EACH_CHOSEN (c, qp)
		swap_qp(qp);
	TAILQ_FOREACH (c, &contexts, entry)
		if (all)
			swap_all_of(c);
	if (all) {
		names_swap_told();
		take_last_events();
		doorbell_moved();
	}
	err = swap_post_held(s);
	TAILQ_FOREACH (c, &contexts, entry) {
		if (all && !err)
			err = limit_srqs(c, s);
		if (all && !err)
			err = arm_cqs(c, s);
		if (!err)
			c->unfinished = false;
	}
	EACH (c, srq, srqs)
		if (!err)
			srq->limit = 0;
	return err;
}
