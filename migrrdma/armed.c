// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "armed.h"

#include "cancel.h"
#include "control.h"
#include "events.h"
#include "swap.h"
#include "taken.h"

/* Who arms twice before an event is read may have done so before it, or behind. */
bool armed_is(const struct shadow_cq *cq)
{
	return atomic_load(&cq->arms) > cq->carried;
}

static bool is_armed(struct shadow_cq *cq)
{
	struct shadow_context *c = to_context(cq->cq.context);
	bool is;

	pthread_mutex_lock(&c->lock);
	is = cq->cq.channel && armed_is(cq);
	pthread_mutex_unlock(&c->lock);
	return is;
}

/* Events that it may cause are read later. */
static void count(struct shadow_cq *cq, bool solicited_only)
{
	if (!control_is_on())
		return;
	if (!atomic_fetch_add(&cq->arms, 1))
		atomic_store(&cq->arms_any, !solicited_only);
	else if (!solicited_only)
		atomic_store(&cq->arms_any, true);
	/* one of the layer's may be there still to be read */
	if (cq->cause == CAUSE_THEIRS)
		cq->cause = CAUSE_NONE;
}

static bool is_held(const struct shadow_cq *cq)
{
	return cq->cq.channel ? atomic_load(&to_channel(cq->cq.channel)->held)
			      : layer_is_held();
}

static int arm_real(struct shadow_cq *cq, bool solicited_only)
{
	if (is_unplugged(cq->cq.context))
		return EIO;
	/* its successor is armed when it takes its place */
	if (is_held(cq)) {
		atomic_store(&cq->unarmed, true);
		/* whoever has let go meanwhile may not have seen that */
		if (is_held(cq) || !atomic_exchange(&cq->unarmed, false))
			return 0;
	}
	return cq->real->context->ops.req_notify_cq(cq->real, solicited_only);
}

int armed_notify(struct shadow_cq *cq, bool solicited_only)
{
	if (is_unplugged(cq->cq.context))
		return EIO;
	count(cq, solicited_only);
	return arm_real(cq, solicited_only);
}

void armed_wake(struct shadow_cq *cq, bool before)
{
	struct shadow_context *c = to_context(cq->cq.context);

	pthread_mutex_lock(&c->lock);
	if (cq->cq.channel && armed_is(cq) && !(before && cq->woken)) {
		events_add(cq);
		cq->woken = before;
	}
	pthread_mutex_unlock(&c->lock);
}

/*
 * Some devices have an event for what is there when a CQ is armed, and was not told of. Of
 * what comes just then they know best: who arms a CQ polls it.
 */
int armed_notify_slow(struct shadow_cq *cq, bool solicited_only)
{
	if (is_unplugged(cq->cq.context))
		return EIO;
	taken_fill(cq);
	count(cq, solicited_only);
	if (!cq->n_taken)
		return arm_real(cq, solicited_only);
	armed_wake(cq, true);
	return 0;
}

enum found {
	FOUND_NOTHING,
	FOUND_BEFORE,	 /* it was there, so the real one was not armed */
	FOUND_MEANWHILE, /* that may have an event of its own, or not */
};

/*
 * But here he has polled it before. What comes meanwhile may have an event, and be found as
 * well: then one of both is enough.
 */
static int arm_again(struct shadow_cq *cq, enum found *found)
{
	int err;

	*found = FOUND_NOTHING;
	if (!is_armed(cq))
		return 0;
	if (cq->n_taken) {
		*found = FOUND_BEFORE;
		return 0;
	}
	err = arm_real(cq, !atomic_load(&cq->arms_any));
	if (!err && (taken_fill(cq) || cq->n_taken)) {
		cq->cause = CAUSE_OURS;
		*found = FOUND_MEANWHILE;
	}
	return err;
}

/* Who is told of both, and does not arm it in between, is told once too often. */
static void wake_found(struct shadow_cq *cq, enum found found, bool is_locked)
{
	if (found == FOUND_MEANWHILE)
		events_expect(cq, is_locked);
	if (found != FOUND_NOTHING)
		armed_wake(cq, false);
}

int armed_rearm(struct shadow_cq *cq)
{
	enum found found = FOUND_NOTHING;
	int cancel = cancel_off(), err = 0;

	pthread_mutex_lock(&cq->lock);
	if (cq->real) {
		taken_fill(cq);
		cq->cause = CAUSE_NONE;
		err = arm_again(cq, &found);
	}
	pthread_mutex_unlock(&cq->lock);
	wake_found(cq, found, false);
	cancel_back(cancel);
	return err;
}

/* A marker wakes nobody who waits for solicited ones, but a failure does. */
void armed_took(struct shadow_cq *cq, const struct ibv_wc *wc)
{
	if (cq->cause == CAUSE_NONE && is_armed(cq) &&
	    (atomic_load(&cq->arms_any) || wc->status != IBV_WC_SUCCESS))
		cq->cause = CAUSE_OURS;
}

bool armed_is_own(struct shadow_cq *cq, const struct ibv_cq *real,
		  bool was_slow)
{
	bool own = !is_armed(cq);

	if (own || !was_slow)
		return own;
	pthread_mutex_lock(&cq->lock);
	if (cq->real == real) {
		own = !taken_fill(cq) && cq->cause == CAUSE_OURS &&
		      !cq->n_taken;
		if (!own)
			cq->cause = CAUSE_NONE;
	}
	pthread_mutex_unlock(&cq->lock);
	return own;
}

void armed_polled(struct shadow_cq *cq)
{
	enum found found;
	int cancel;

	if (!atomic_load(&cq->woken) || !control_is_on())
		return;
	cancel = cancel_off();
	if (events_take_back(cq)) {
		/* that fails where there is no device any more: he is to hear of it */
		if (arm_again(cq, &found))
			armed_wake(cq, true);
		wake_found(cq, found, true);
	}
	cancel_back(cancel);
}
