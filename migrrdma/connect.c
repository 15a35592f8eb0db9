// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The states of QPs that have been replaced. Both ends have new ones, which begin with
 * the PSNs that the application has given to the old.
 */
#include <string.h>

#include "armed.h"
#include "clock.h"
#include "events.h"
#include "gate.h"
#include "met.h"
#include "peer.h"
#include "presetup.h"
#include "rebind.h"
#include "record.h"
#include "recvq.h"
#include "section.h"
#include "slots.h"
#include "suspend.h"
#include "swap.h"

#define SOON 100000000 /* ns */

static int set_peer(struct shadow_qp *qp, uint32_t peer_num,
		    const union ibv_gid *gid, const char *id, struct swap *s)
{
	struct peer *peer = peer_get(id);

	if (!qp->swap.apart)
		return swap_refuse(s, EINVAL, "QP 0x%06x is not replaced",
				   qp->qp.qp_num);
	if (!peer)
		return swap_refuse(s, ENOMEM, "no memory for another peer");
	peer_lead(&qp->peer, peer);
	atomic_fetch_or(&qp->slow, SLOW_NAMES);
	qp->swap.peer_num = peer_num;
	qp->swap.peer_gid = *gid;
	qp->swap.told = true;
	return 0;
}

int layer_set_peer(uint32_t qpn, uint32_t peer_num, const union ibv_gid *gid,
		   const char *id, struct swap *s)
{
	struct shadow_qp *qp;
	int err = EINVAL;

	*s = (struct swap){};
	if (!suspend_hold())
		return swap_refuse(s, EINVAL, "it is not suspended");
	qp = swap_find(qpn, s);
	if (qp)
		err = set_peer(qp, peer_num, gid, id, s);
	suspend_release();
	return err;
}

/* Requests that are on their way name keys of before. */
static int check_peer(const struct peer *peer, struct swap *s)
{
	struct shadow_context *c;
	struct shadow_qp *qp;

	if (!peer)
		return swap_refuse(s, ENOMEM, "no memory for another peer");
	EACH (c, qp, qps)
		if (qp->peer == peer && !qp->suspended)
			return swap_refuse(
				s, EBUSY,
				"QP 0x%06x leads there and is not suspended",
				qp->qp.qp_num);
	return 0;
}

/* Nobody looks at them. Of those who have told theirs in vain there are few at a time. */
static int forget_unused(const char *id, struct swap *s)
{
	const char *lack;
	struct peer *peer;

	met_drop_turns(id);
	if (sections_wait(clock_ns() + SOON)) {
		met_make_room(id);
		peers_drop_unused();
	}
	lack = peer_lacks_place(id);
	if (lack)
		return swap_refuse(s, ENOSPC, "%s", lack);
	peer = peer_get(id);
	if (peer && peer_is_used(peer))
		return swap_refuse(s, EBUSY, "a QP leads there");
	return peer && !peer_forget_keys(peer)
		       ? 0
		       : swap_refuse(s, ENOMEM, "no memory for another peer");
}

static int forget_keys(const char *id, struct swap *s)
{
	struct peer *peer = peer_get(id);
	int err = check_peer(peer, s);

	return err ? err : peer_forget_keys(peer);
}

int layer_forget_keys(const char *id, struct swap *s)
{
	int err;

	*s = (struct swap){};
	err = suspend_take_turn() ? forget_keys(id, s) : forget_unused(id, s);
	suspend_release();
	return err;
}

/* The first one makes all others void, too. */
int layer_set_key(const char *id, uint32_t key, uint32_t real, struct swap *s)
{
	bool suspended = suspend_take_turn();
	struct peer *peer = suspended ? peer_get(id) : peer_find(id);
	int err = 0;

	*s = (struct swap){};
	if (!peer || !peer_keys(peer))
		err = suspended ? check_peer(peer, s)
				: swap_refuse(s, EINVAL, "it is not suspended");
	else if (!suspended && peer_is_full(peer))
		err = swap_refuse(s, ENOMEM, "it has too many keys");
	if (!err)
		err = peer_set_key(peer, key, real);
	suspend_release();
	return err;
}

/* --- connect --- */

static bool is_connected(const struct shadow_qp *qp)
{
	return qp_has_peer(qp) &&
	       (qp->qp.state == IBV_QPS_RTR || qp->qp.state == IBV_QPS_RTS);
}

/* Its peer may be gone: the kernel might not find the host, and that holds up all others. */
static bool is_dead(const struct shadow_qp *qp)
{
	return qp->swap.dead || qp->qp.state == IBV_QPS_ERR ||
	       (qp->swap.told && !qp->swap.peer_num);
}

/* Its state has come along when it was made ahead. */
static bool is_led_astray(const struct shadow_qp *qp)
{
	return qp->swap.there && (qp->swap.peer_num != qp->swap.led_num ||
				  memcmp(&qp->swap.peer_gid, &qp->swap.led_gid,
					 sizeof(qp->swap.led_gid)));
}

static int check(const struct shadow_qp *qp, struct swap *s)
{
	if (qp->swap.moved)
		return swap_refuse(s, EINVAL, "QP 0x%06x is not replaced yet",
				   qp->qp.qp_num);
	if (qp->swap.apart && qp->swap.told && !is_dead(qp) &&
	    is_led_astray(qp))
		return swap_refuse(s, EINVAL, "QP 0x%06x leads elsewhere",
				   qp->qp.qp_num);
	if (qp->swap.apart && is_connected(qp) && !is_dead(qp) &&
	    !qp->swap.told)
		return swap_refuse(s, EINVAL, "QP 0x%06x has no peer",
				   qp->qp.qp_num);
	return 0;
}

/*
 * from the state that the real one @to is in to this one, or further than that already
 *
 * @gid: of the peer that it has now; NULL: of the one that the application knows
 */
static int bring_to(const struct shadow_qp *qp, struct ibv_qp *to,
		    enum ibv_qp_state state, uint32_t peer_num,
		    const union ibv_gid *gid)
{
	struct ibv_qp_attr attr;
	int mask;

	if (to->state >= state)
		return 0;
	mask = record_step(qp, state, &attr);
	if (gid && mask & IBV_QP_DEST_QPN) {
		attr.dest_qp_num = peer_num;
		attr.ah_attr.grh.dgid = *gid;
	}
	return real()->ibv_modify_qp(to, &attr, mask);
}

static int go_to(struct shadow_qp *qp, enum ibv_qp_state state,
		 uint32_t peer_num, const union ibv_gid *gid)
{
	int err = bring_to(qp, qp->real, state, peer_num, gid);

	qp_note_rts(qp);
	return err;
}

int connect_ahead(struct shadow_qp *qp, uint32_t peer_num,
		  const union ibv_gid *gid, struct swap *s)
{
	int err = 0;

	if (!qp->other || qp->swap.spent || qp->swap.led || !is_connected(qp))
		return swap_refuse(s, EINVAL, "QP 0x%06x has none made ahead",
				   qp->qp.qp_num);
	qp->swap.led = true; /* also if it does not come so far */
	qp->swap.led_num = peer_num;
	qp->swap.led_gid = *gid;
	err = bring_to(qp, qp->other, IBV_QPS_RTR, peer_num, gid);
	if (!err && qp->qp.state == IBV_QPS_RTS)
		err = bring_to(qp, qp->other, IBV_QPS_RTS, 0, NULL);
	return err ? swap_refuse(s, err, "QP 0x%06x ahead: %s", qp->qp.qp_num,
				 strerror(err))
		   : 0;
}

/* Its peer may be gone, so that is itself, to which nothing is sent. */
static int go_to_own_rtr(struct shadow_qp *qp)
{
	const struct ibv_ah_attr *av = &qp->attr.ah_attr;
	struct ibv_gid_entry own;
	int err;

	if (!qp_has_peer(qp))
		return go_to(qp, IBV_QPS_RTR, 0, NULL);
	if (!(qp->attr_mask & IBV_QP_AV))
		return EINVAL;
	err = real()->_ibv_query_gid_ex(real_context(qp->qp.context),
					av->port_num, qp->source.index, &own, 0,
					sizeof(own));
	return err ? err : go_to(qp, IBV_QPS_RTR, qp->real_num, &own.gid);
}

/*
 * To ERR by way of RTS, if the one before has been there: a provider may take no request
 * before that, not even to flush it (libmlx5). Should it not come so far, ERR is all that
 * can be had.
 */
static int go_to_err(struct shadow_qp *qp)
{
	if (qp->attr_mask & IBV_QP_SQ_PSN && !go_to_own_rtr(qp))
		go_to(qp, IBV_QPS_RTS, 0, NULL);
	return go_to(qp, IBV_QPS_ERR, 0, NULL);
}

static int connect_qp(struct shadow_qp *qp, struct swap *s)
{
	const union ibv_gid *gid = qp->swap.told ? &qp->swap.peer_gid : NULL;
	enum ibv_qp_state end = is_dead(qp) ? IBV_QPS_ERR : qp->qp.state;
	int err = 0;

	if (end == IBV_QPS_ERR)
		err = go_to_err(qp);
	else if (end >= IBV_QPS_RTR)
		err = go_to(qp, IBV_QPS_RTR, qp->swap.peer_num, gid);
	if (!err)
		err = go_to(qp, end, 0, NULL);
	if (err)
		return swap_refuse(s, err, "QP 0x%06x to state %d: %s",
				   qp->qp.qp_num, end, strerror(err));
	qp->swap.apart = qp->swap.there = false;
	s->qps++;
	return 0;
}

static int connect_some(bool dead, struct swap *s)
{
	struct shadow_context *c;
	struct shadow_qp *qp;
	int err = 0;

	EACH (c, qp, qps)
		if (!err && qp->swap.apart && is_dead(qp) == dead)
			err = connect_qp(qp, s);
	return err;
}

static int connect_living(struct swap *s)
{
	struct shadow_context *c;
	struct shadow_qp *qp;
	int err = 0;

	EACH (c, qp, qps)
		err = err ? err : check(qp, s);
	return err ? err : connect_some(false, s);
}

int layer_connect(struct swap *s)
{
	int err;

	*s = (struct swap){};
	if (!suspend_hold())
		return swap_refuse(s, EINVAL, "it is not suspended");
	err = layer_is_held() ? swap_refuse(s, EINVAL, "it is held")
			      : presetup_connect(connect_living, s);
	if (!err) /* of which no shadow process knows */
		err = connect_some(true, s);
	if (!err)
		err = rebind_all(s);
	suspend_release();
	return err;
}

/* --- give up --- */

/* Who has armed a CQ is woken: the layer may have taken the event for what it now leaves. */
static void give_up(struct shadow_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	unsigned int n;

	if (qp->qp.recv_cq)
		armed_wake(to_cq(qp->qp.recv_cq), false);
	if (qp->qp.send_cq && qp->qp.send_cq != qp->qp.recv_cq)
		armed_wake(to_cq(qp->qp.send_cq), false);
	go_to_err(qp);
	if (qp->recvq)
		recvq_post_again(qp, &n);
	/* for providers that look only then */
	real()->ibv_modify_qp(qp->real, &attr, IBV_QP_STATE);
	events_give_up(qp);
	qp->swap.apart = qp->swap.there = qp->swap.stopped = false;
}

/* Those that were not stopped yet go on, with what was posted to them meanwhile. */
void swap_give_up(void)
{
	struct shadow_context *c;
	struct shadow_srq *srq;
	struct shadow_cq *cq;
	struct shadow_qp *qp;
	unsigned int n;

	presetup_forget();
	rebind_give_up();
	EACH (c, qp, qps)
		if (qp->swap.apart || qp->swap.moved)
			give_up(qp);
		else if (qp->recvq && atomic_load(&qp->slow) & SLOW_RECVS)
			recvq_post_again(qp, &n);
	EACH (c, srq, srqs)
		if (srq->slots) {
			slots_post_again(srq, &n);
			swap_limit(srq);
			srq->limit = 0;
		}
	EACH (c, cq, cqs)
		if (c->unfinished)
			armed_wake(cq, false);
	TAILQ_FOREACH (c, &contexts, entry)
		c->unfinished = false;
}
