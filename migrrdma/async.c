// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Asynchronous events, and the ends of objects that have events
 */
#include "control.h"
#include "events.h"
#include "handles.h"
#include "section.h"

struct carried {
	STAILQ_ENTRY(carried) entry;
	struct ibv_async_event event;
};

/* which object such an event has */
enum element {
	OF_PORT,
	OF_CQ,
	OF_QP,
	OF_SRQ,
	OF_WQ
};

static enum element element_of(const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		return OF_CQ;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return OF_QP;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return OF_SRQ;
	case IBV_EVENT_WQ_FATAL:
		return OF_WQ;
	default:
		return OF_PORT;
	}
}

/* the same event, of the shadow */
static void name_element(struct ibv_async_event *event)
{
	switch (element_of(event)) {
	case OF_CQ:
		event->element.cq = shadow_of_cq(event->element.cq);
		break;
	case OF_QP:
		event->element.qp = event->element.qp->qp_context;
		break;
	case OF_SRQ:
		event->element.srq = shadow_of_srq(event->element.srq);
		break;
	case OF_WQ:
	case OF_PORT:
		break;
	}
}

static void count(pthread_mutex_t *lock, uint32_t *events, pthread_cond_t *more)
{
	pthread_mutex_lock(lock);
	++*events;
	if (more)
		pthread_cond_signal(more);
	pthread_mutex_unlock(lock);
}

static void give_async(const struct ibv_async_event *e)
{
	switch (element_of(e)) {
	case OF_CQ:
		count(&e->element.cq->mutex, &to_cq(e->element.cq)->async_given,
		      NULL);
		break;
	case OF_QP:
		count(&e->element.qp->mutex, &to_qp(e->element.qp)->async_given,
		      NULL);
		break;
	case OF_SRQ:
		count(&e->element.srq->mutex,
		      &to_srq(e->element.srq)->async_given, NULL);
		break;
	case OF_WQ:
	case OF_PORT:
		break;
	}
}

static void ack_async(const struct ibv_async_event *e)
{
	struct ibv_srq *srq = e->element.srq;
	struct ibv_cq *cq = e->element.cq;
	struct ibv_qp *qp = e->element.qp;

	switch (element_of(e)) {
	case OF_CQ:
		count(&cq->mutex, &cq->async_events_completed, &cq->cond);
		break;
	case OF_QP:
		count(&qp->mutex, &qp->events_completed, &qp->cond);
		break;
	case OF_SRQ:
		count(&srq->mutex, &srq->events_completed, &srq->cond);
		break;
	case OF_WQ:
	case OF_PORT:
		break;
	}
}

/*
 * That the layer has moved a QP to ERR is none of the application's business, nor that
 * the next one gets there, too: the application had the first one's event.
 */
static bool is_ours(const struct ibv_async_event *e, const struct ibv_qp *real)
{
	struct shadow_context *c;
	struct shadow_qp *qp;
	bool ours;

	if (e->event_type != IBV_EVENT_QP_LAST_WQE_REACHED)
		return false;
	qp = to_qp(e->element.qp);
	c = to_context(qp->qp.context);
	pthread_mutex_lock(&c->carried_lock);
	if (real == qp->real && !qp->swap.moved)
		ours = qp->swap.dead;
	else
		ours = !qp->swap.was_err; /* some tell it more than once (rxe) */
	if (ours && qp->swap.moved)
		qp->swap.last_wqe = true;
	pthread_mutex_unlock(&c->carried_lock);
	return ours;
}

static int read_async(struct ibv_context *real_ctx, struct ibv_async_event *e)
{
	int err;

	handles_begin();
	err = real()->ibv_get_async_event(real_ctx, e);
	handles_end();
	return err;
}

/* *@ours if there was one for the layer only */
static int read_real_async(struct ibv_context *real_ctx,
			   struct ibv_async_event *event, bool *ours)
{
	struct ibv_async_event e;
	int err = read_async(real_ctx, &e);

	if (err)
		return err;
	*event = e;
	name_element(event);
	*ours = is_ours(event, e.element.qp);
	if (!*ours)
		give_async(event);
	if (element_of(&e) != OF_WQ)
		real()->ibv_ack_async_event(&e);
	return 0;
}

static bool take_carried_async(struct shadow_context *c,
			       struct ibv_async_event *event)
{
	struct carried *e;

	pthread_mutex_lock(&c->carried_lock);
	e = STAILQ_FIRST(&c->carried);
	if (e) {
		STAILQ_REMOVE_HEAD(&c->carried, entry);
		if (STAILQ_EMPTY(&c->carried))
			relay_ring(&c->async, false);
		*event = e->event;
	}
	pthread_mutex_unlock(&c->carried_lock);
	free(e);
	return e;
}

/* with its lock; the event is the application's, unless there is no memory for it */
static void carry(struct shadow_context *c, const struct ibv_async_event *event)
{
	struct carried *e = malloc(sizeof(*e));

	if (!e) {
		ack_async(event);
		return;
	}
	e->event = *event;
	if (STAILQ_EMPTY(&c->carried))
		relay_ring(&c->async, true);
	STAILQ_INSERT_TAIL(&c->carried, e, entry);
}

void events_carry_async(struct shadow_context *c, struct ibv_context *old)
{
	struct ibv_async_event event;
	bool ours;

	while (!read_real_async(old, &event, &ours)) {
		if (ours)
			continue;
		pthread_mutex_lock(&c->carried_lock);
		carry(c, &event);
		pthread_mutex_unlock(&c->carried_lock);
	}
}

/* with the lock: that event of a QP, which the layer has kept for itself */
static void carry_last(struct shadow_context *c, struct shadow_qp *qp)
{
	const struct ibv_async_event last = {
		.event_type = IBV_EVENT_QP_LAST_WQE_REACHED,
		.element.qp = &qp->qp,
	};

	give_async(&last);
	carry(c, &last);
}

void events_give_up(struct shadow_qp *qp)
{
	struct shadow_context *c = to_context(qp->qp.context);

	pthread_mutex_lock(&c->carried_lock);
	if (qp->swap.moved && qp->swap.last_wqe)
		carry_last(c, qp);
	qp->swap.moved = false;
	pthread_mutex_unlock(&c->carried_lock);
}

void events_unplug_async(struct shadow_context *c)
{
	const struct ibv_async_event fatal = {
		.event_type = IBV_EVENT_DEVICE_FATAL,
	};
	struct shadow_qp *qp;

	pthread_mutex_lock(&c->carried_lock);
	TAILQ_FOREACH (qp, &c->qps, entry)
		if (qp->qp.srq && qp->qp.state >= IBV_QPS_RTR && !qp->swap.dead)
			carry_last(c, qp);
	carry(c, &fatal);
	pthread_mutex_unlock(&c->carried_lock);
}

void events_forget_async(struct shadow_context *c)
{
	struct ibv_async_event event;

	while (take_carried_async(c, &event))
		ack_async(&event);
}

static int next_async(struct shadow_context *c, struct ibv_async_event *event)
{
	int err, why;
	bool ours;

	for (;;) {
		if (take_carried_async(c, event))
			return 0;
		section_begin();
		err = read_real_async(__atomic_load_n(&c->real,
						      __ATOMIC_ACQUIRE),
				      event, &ours);
		why = errno;
		section_end();
		if (!err && !ours)
			return 0;
		if (!err)
			continue;
		if (why == EAGAIN)
			why = relay_wait(&c->async);
		if (why) {
			errno = why;
			return -1;
		}
	}
}

int ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	int err;

	if (is_shadow(ctx) && control_is_on())
		return next_async(to_context(ctx), event);
	err = real()->ibv_get_async_event(real_context(ctx), event);
	if (is_shadow(ctx) && !err)
		name_element(event);
	return err;
}

/* is it of a shadow? The others are real, or of a port. */
static bool is_of_shadow(const struct ibv_async_event *e)
{
	switch (element_of(e)) {
	case OF_CQ:
		return is_shadow(e->element.cq->context);
	case OF_QP:
		return is_shadow(e->element.qp->context);
	case OF_SRQ:
		return is_shadow(e->element.srq->context);
	default:
		return false;
	}
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_async_event e = *event;

	if (is_of_shadow(event) && control_is_on()) {
		ack_async(event);
		return;
	}
	switch (element_of(event)) {
	case OF_CQ:
		e.element.cq = real_cq(e.element.cq);
		break;
	case OF_QP:
		e.element.qp = real_qp(e.element.qp);
		break;
	case OF_SRQ:
		e.element.srq = real_srq(e.element.srq);
		break;
	case OF_WQ:
	case OF_PORT:
		break;
	}
	real()->ibv_ack_async_event(&e);
}

/* --- their ends --- */

/* those that the application has not got yet; the real object is gone */
static void forget_async_of(struct ibv_context *ctx, const void *object)
{
	struct shadow_context *c = to_context(ctx);
	struct carried *e, *next;

	pthread_mutex_lock(&c->carried_lock);
	for (e = STAILQ_FIRST(&c->carried); e; e = next) {
		next = STAILQ_NEXT(e, entry);
		if (element_of(&e->event) == OF_PORT ||
		    e->event.element.cq != object)
			continue;
		ack_async(&e->event);
		STAILQ_REMOVE(&c->carried, e, carried, entry);
		free(e);
		if (STAILQ_EMPTY(&c->carried))
			relay_ring(&c->async, false);
	}
	pthread_mutex_unlock(&c->carried_lock);
}

static void wait_for(pthread_mutex_t *lock, pthread_cond_t *more,
		     const uint32_t *completed, uint32_t given)
{
	pthread_mutex_lock(lock);
	while (*completed != given)
		pthread_cond_wait(more, lock);
	pthread_mutex_unlock(lock);
}

void events_end_cq(struct shadow_cq *cq)
{
	struct ibv_cq *c = &cq->cq;

	if (!control_is_on())
		return;
	forget_async_of(c->context, c);
	wait_for(&c->mutex, &c->cond, &c->comp_events_completed, cq->given);
	wait_for(&c->mutex, &c->cond, &c->async_events_completed,
		 cq->async_given);
}

void events_end_srq(struct shadow_srq *srq)
{
	struct ibv_srq *s = &srq->srq;

	if (!control_is_on())
		return;
	forget_async_of(s->context, s);
	wait_for(&s->mutex, &s->cond, &s->events_completed, srq->async_given);
}

void events_end_qp(struct shadow_qp *qp)
{
	struct ibv_qp *q = &qp->qp;

	if (!control_is_on())
		return;
	forget_async_of(q->context, q);
	wait_for(&q->mutex, &q->cond, &q->events_completed, qp->async_given);
}
