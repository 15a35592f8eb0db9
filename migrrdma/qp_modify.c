// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What is set of queue pairs, and asked
 */
#include "build.h"
#include "control.h"
#include "gate.h"
#include "meet.h"
#include "met.h"
#include "record.h"
#include "recvq.h"
#include "sendq.h"
#include "slots.h"
#include "suspend.h"

/* Peers' markers are WRITEs; the application sees what it has asked for. */
static bool takes_markers(const struct shadow_qp *qp)
{
	return control_is_on() && qp_has_peer(qp);
}

/*
 * The real one has yet to come to the state that the application knows, and a thread is
 * let in that others wait for (gate_close_surely()).
 */
static bool is_behind(const struct shadow_qp *s)
{
	return s->swap.apart || (s->swap.moved && s->suspended);
}

/* One thread may modify it while another one asks. */
static enum ibv_qp_state state_of(const struct ibv_qp *qp)
{
	return __atomic_load_n(&qp->state, __ATOMIC_RELAXED);
}

static void show_state(struct shadow_qp *s)
{
	enum ibv_qp_state state;

	do { /* the other one may have shown a newer one meanwhile */
		state = state_of(s->real);
		if (state_of(&s->qp) != state)
			__atomic_store_n(&s->qp.state, state, __ATOMIC_SEQ_CST);
	} while (__atomic_load_n(&s->real->state, __ATOMIC_SEQ_CST) != state);
}

/* Is it something that it can get on its way to that state? */
static bool can_wait(const struct shadow_qp *s, const struct ibv_qp_attr *attr,
		     int mask)
{
	const int some = IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS |
			 IBV_QP_MIN_RNR_TIMER;

	return !(mask & ~some) &&
	       (!(mask & IBV_QP_STATE) || attr->qp_state == state_of(&s->qp));
}

/* Whom it leads to may be told at any time. */
static void record(struct shadow_qp *s, const struct ibv_qp_attr *attr,
		   int mask)
{
	struct shadow_context *c = to_context(s->qp.context);

	pthread_mutex_lock(&c->lock);
	record_modify(s, attr, mask);
	met_adopt(s);
	pthread_mutex_unlock(&c->lock);
}

/* The way begins behind INIT, where access flags are set. */
static int modify_later(struct shadow_qp *s, const struct ibv_qp_attr *attr,
			struct ibv_qp_attr *real_attr, int mask)
{
	int err = 0;

	if (s->swap.apart && mask & IBV_QP_ACCESS_FLAGS)
		err = real()->ibv_modify_qp(s->real, real_attr,
					    IBV_QP_ACCESS_FLAGS);
	if (!err)
		record(s, attr, mask);
	return err;
}

static int modify_qp(struct shadow_qp *s, struct ibv_qp_attr *attr, int mask)
{
	struct ibv_qp_attr a = *attr;
	int err;

	build_drop(s); /* what was made ahead is as this one was */
	if (takes_markers(s))
		a.qp_access_flags |= IBV_ACCESS_REMOTE_WRITE;
	if (is_behind(s) && !s->swap.there && can_wait(s, attr, mask))
		return modify_later(s, attr, &a, mask);
	err = real()->ibv_modify_qp(s->real, &a, mask);
	if (!is_behind(s) || (!err && mask & IBV_QP_STATE))
		show_state(s);
	if (err)
		return err;
	qp_note_rts(s);
	record(s, attr, mask);
	if (state_of(&s->qp) == IBV_QPS_RESET) {
		suspend_forget_marker(s);
		if (!pthread_mutex_trylock(&s->lock)) {
			sendq_clear(s);
			pthread_mutex_unlock(&s->lock);
		}
		if (s->recvq)
			recvq_reset(s->recvq);
		slots_renew(s);
	}
	return 0;
}

/* The peer may have to be told of us first, who may be suspended, as we may be. */
static int modify_gated(struct shadow_qp *s, struct ibv_qp_attr *attr, int mask)
{
	struct meeting m = {};
	int err;

	gate_enter_with(&s->suspended);
	while (meet_is_due(&m, s, attr, mask)) {
		gate_leave();
		meet_peer(&m);
		gate_enter_with(&s->suspended);
	}
	err = modify_qp(s, attr, mask);
	gate_leave();
	return err;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	int err;

	if (!is_shadow(qp->context))
		return real()->ibv_modify_qp(qp, attr, attr_mask);
	if (control_is_on())
		return modify_gated(to_qp(qp), attr, attr_mask);
	err = real()->ibv_modify_qp(real_qp(qp), attr, attr_mask);
	qp->state = real_qp(qp)->state;
	return err;
}

/* not every provider says it of both */
static void hide_spare(const struct shadow_qp *s, struct ibv_qp_cap *cap)
{
	if (cap->max_send_wr)
		cap->max_send_wr -= s->spare;
}

static int query_qp(struct shadow_qp *s, struct ibv_qp_attr *attr, int mask,
		    struct ibv_qp_init_attr *init_attr)
{
	int err = real()->ibv_query_qp(s->real, attr, mask, init_attr);

	if (!is_behind(s))
		show_state(s);
	if (err)
		return err;
	record_query(s, attr);
	if (is_behind(s))
		attr->qp_state = attr->cur_qp_state = state_of(&s->qp);
	if (takes_markers(s) &&
	    !(s->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE))
		attr->qp_access_flags &= ~(unsigned int)IBV_ACCESS_REMOTE_WRITE;
	hide_spare(s, &attr->cap);
	hide_spare(s, &init_attr->cap);
	init_attr->qp_context = s->qp.qp_context;
	init_attr->send_cq = s->qp.send_cq;
	init_attr->recv_cq = s->qp.recv_cq;
	init_attr->srq = s->qp.srq;
	return 0;
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		 struct ibv_qp_init_attr *init_attr)
{
	if (!is_shadow(qp->context))
		return real()->ibv_query_qp(qp, attr, attr_mask, init_attr);
	return GATED_WITH(to_qp(qp),
			  query_qp(to_qp(qp), attr, attr_mask, init_attr));
}

int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op,
			       uint32_t flags)
{
	if (!is_shadow(qp->context))
		return real()->ibv_query_qp_data_in_order(qp, op, flags);
	return GATED_WITH(to_qp(qp),
			  real()->ibv_query_qp_data_in_order(real_qp(qp), op,
							     flags));
}

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (!is_shadow(qp->context))
		return real()->ibv_query_ece(qp, ece);
	return GATED_WITH(to_qp(qp), real()->ibv_query_ece(real_qp(qp), ece));
}

/* of a QP that has what cannot be made again, if this succeeds */
static int note(struct shadow_qp *s, const char *what, int err)
{
	if (!err)
		s->foreign = what;
	return err;
}

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (!is_shadow(qp->context))
		return real()->ibv_set_ece(qp, ece);
	return GATED_WITH(to_qp(qp),
			  note(to_qp(qp), "has ECE options",
			       real()->ibv_set_ece(real_qp(qp), ece)));
}

int shadow_modify_qp_rate_limit(struct ibv_qp *qp,
				struct ibv_qp_rate_limit_attr *attr)
{
	return GATED_WITH(to_qp(qp),
			  note(to_qp(qp), "has a rate limit",
			       to_context(qp->context)
				       ->real_verbs->modify_qp_rate_limit(
					       real_qp(qp), attr)));
}
