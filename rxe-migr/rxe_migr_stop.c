// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Stopping the QPs of a context, letting them go again, and the question
 * whether everything in a context can be carried.
 */
#include <linux/random.h>

#include "rxe.h"
#include "rxe_queue.h"
#include "rxe_task.h"

/* ib_uqp_object and ib_ucq_object are private; ib_uobject comes first in both */
static struct ib_uobject *qp_uobject(struct rxe_qp *qp)
{
	return (struct ib_uobject *)qp->ibqp.uobject;
}

/**
 * rxe_migr_purge - drop packets, as if the network had lost them
 * @qp: the QP, with a reference
 * @list: its requests or responses
 *
 * Context: any
 */
void rxe_migr_purge(struct rxe_qp *qp, struct sk_buff_head *list)
{
	struct ib_device *dev = qp->ibqp.device;
	struct sk_buff *skb;

	while ((skb = skb_dequeue(list))) {
		rxe_put(qp);
		kfree_skb(skb);
		ib_device_put(dev);
	}
}

/*
 * Bring a QP, whose state has been STOPPED for a grace period, to rest between
 * two packets. What is still queued is dropped, as if the network had lost it.
 * A READ that is being answered counts as answered: its resource stays, and the
 * peer asks again for what it misses. Context: m->lock held.
 */
static void quiesce(struct rxe_qp *qp)
{
	struct resp_res *res;
	u32 next;

	rxe_disable_task(&qp->send_task);
	rxe_disable_task(&qp->recv_task);
	if (qp_type(qp) == IB_QPT_RC) { /* others have not set them up */
		timer_delete_sync(&qp->retrans_timer);
		timer_delete_sync(&qp->rnr_nak_timer);
	}
	rxe_migr_purge(qp, &qp->req_pkts);
	rxe_migr_purge(qp, &qp->resp_pkts);

	qp->req.wait_for_rnr_timer = 0;
	qp->comp.timeout = 0;

	res = qp->resp.res;
	if (res && res->type == RXE_READ_MASK && !res->replay) {
		next = (res->last_psn + 1) & BTH_PSN_MASK;
		if (psn_compare(next, qp->resp.psn) > 0)
			qp->resp.psn = next;
		qp->resp.opcode = OPCODE_NONE;
	}
	qp->resp.res = NULL;
}

/**
 * rxe_migr_stop_qps - Running, Paused or Resuming to Stopped
 * @qps: QPs, with references
 * @n: how many
 *
 * All QPs stop receiving before the first one comes to rest. The state goes
 * first, because a task drains only when there is no more work for it. Peers are told,
 * for the QPs may be gone before those send their next request; not who was connected
 * after STOP has asked.
 *
 * Context: process; sleeps.
 */
void rxe_migr_stop_qps(struct rxe_qp **qps, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		struct rxe_migr_qp *m = to_migr_qp(qps[i]);

		mutex_lock(&m->lock);
		rxe_migr_stop(qps[i]);
		mutex_unlock(&m->lock);
		rxe_counter_inc(to_rdev(qps[i]->ibqp.device),
				RXE_CNT_MIGR_STOPPED);
	}

	/* rxe_rcv(); expedited, since peers wait for the end of all this */
	synchronize_rcu_expedited();

	for (i = 0; i < n; i++) {
		struct rxe_migr_qp *m = to_migr_qp(qps[i]);

		mutex_lock(&m->lock);
		quiesce(qps[i]);
		rxe_migr_announce(qps[i]);
		mutex_unlock(&m->lock);
	}
}

/*
 * If there is an image of the QP, nobody may go on from it any more: its epoch
 * becomes that of the QP, which tells the peer, so a restore comes too late.
 * Context: m->lock held
 */
static void outdate_image(struct rxe_migr_qp *m)
{
	struct rxe_qp *qp = &m->qp;

	if (!m->dumped_alive)
		return;

	m->epoch++;
	m->nonce = get_random_u32();
	if (!rxe_migr_connected(qp) || !rxe_migr_peer_ok(m->peer) ||
	    m->before == RXE_MIGR_RESUMING)
		return;

	/* who is not there is told when it comes */
	m->untold = m->peer == RXE_MIGR_PEER_ABSENT;
	if (!m->untold) {
		m->before = RXE_MIGR_RESUMING;
		m->ran_on = true;
	}
}

/**
 * rxe_migr_unstop_qp - Stopped to what it was before
 * @qp: QP, with a reference; left alone if it is not Stopped
 */
void rxe_migr_unstop_qp(struct rxe_qp *qp)
{
	struct rxe_migr_qp *m = to_migr_qp(qp);

	mutex_lock(&m->lock);
	if (qp->migr == RXE_MIGR_STOPPED) {
		rxe_enable_task(&qp->recv_task);
		rxe_enable_task(&qp->send_task);
		outdate_image(m);
		rxe_migr_unstop(qp);
	}
	mutex_unlock(&m->lock);
}

/*
 * A QP in RESET has no peer, and no work: when the requester of a Stopped one
 * runs again, the QP may be in RTS. Its epoch goes on growing: the next peer may
 * be the last one, which has accepted that. Context: m->lock held
 */
static void forget_all(struct rxe_migr_qp *m)
{
	struct rxe_qp *qp = &m->qp;
	unsigned long flags;

	spin_lock_irqsave(&qp->state_lock, flags);
	__rxe_migr_change(qp, RXE_MIGR_NOT_IN(RUNNING) &
			      RXE_MIGR_NOT_IN(STOPPED), RXE_MIGR_RUNNING);
	m->before = RXE_MIGR_RUNNING;
	m->peer_stopped = false;
	m->untold = false;
	m->peer = RXE_MIGR_PEER_UNKNOWN;
	m->peer_epoch = 0;
	m->peer_nonce = 0;
	m->peer_life = 0;
	m->from.qpn = 0;
	m->hint.qpn = 0;
	qp->req.wqe_index = queue_get_consumer(qp->sq.queue,
					       QUEUE_TYPE_FROM_CLIENT);
	spin_unlock_irqrestore(&qp->state_lock, flags);
}

/*
 * Does the QP sign for its connection, or will it when it runs again? Context:
 * m->lock held
 */
static bool is_to_resume(struct rxe_migr_qp *m)
{
	return m->qp.migr == RXE_MIGR_RESUMING ||
	       (m->qp.migr == RXE_MIGR_STOPPED &&
		m->before == RXE_MIGR_RESUMING);
}

/**
 * rxe_migr_modify_qp - hook in rxe_modify_qp(): rxe_qp_from_attr()
 * @qp: the QP
 * @attr: checked attributes
 * @mask: which of them
 * @udata: the modify command
 *
 * Neither STOP, DUMP nor a RESUME packet goes through the QP's handle, so the
 * core does not keep them apart from a modify. Some of these stop the QP's
 * tasks for a while and start them again; in a Stopped QP they don't run.
 *
 * This driver lets a QP of any state have another peer, and that is another life. One
 * that resumes would lose the one it resumes for, so it cannot; and nobody has asked
 * a new peer yet.
 *
 * Context: process; sleeps.
 * Return: 0, -EINVAL or what rxe_qp_from_attr() returns
 */
int rxe_migr_modify_qp(struct rxe_qp *qp, struct ib_qp_attr *attr, int mask,
		       struct ib_udata *udata)
{
	bool other_peer = mask & (IB_QP_AV | IB_QP_DEST_QPN);
	struct rxe_migr_qp *m = to_migr_qp(qp);
	bool was_rtr;
	int err;

	err = rxe_migr_lead_qp(qp, attr, mask, udata);
	if (err)
		return err;

	mutex_lock(&m->lock);
	if (other_peer && is_to_resume(m)) {
		mutex_unlock(&m->lock);
		return -EINVAL;
	}
	was_rtr = qp_state(qp) == IB_QPS_RTR;
	err = rxe_qp_from_attr(qp, attr, mask, udata);
	if (was_rtr && qp_state(qp) == IB_QPS_RTS)
		rxe_migr_wait_anew(qp);
	if (other_peer) { /* also if it has failed half way */
		m->untold = false;
		m->peer_stopped = false;
		m->peer = RXE_MIGR_PEER_UNKNOWN;
		m->from.qpn = 0;
		m->hint.qpn = 0;
		m->life = get_random_u64() ?: 1;
		m->peer_life = 0;
	}
	if (!qp->resp.resources) /* there was no memory for others */
		qp->attr.max_dest_rd_atomic = 0;
	if (qp->migr == RXE_MIGR_STOPPED) {
		rxe_disable_task(&qp->recv_task);
		rxe_disable_task(&qp->send_task);
	}
	if (qp_state(qp) == IB_QPS_RESET)
		forget_all(m);
	mutex_unlock(&m->lock);

	return err;
}

/* --- can it be carried? --- */

static int refuse(struct rxe_migr_status *st, enum rxe_migr_why why,
		  enum rxe_migr_type type, struct ib_uobject *uobj)
{
	st->why = why;
	st->type = type;
	st->handle = uobj->id;

	return -EOPNOTSUPP;
}

static int chk_qp(struct rxe_qp *qp, struct rxe_migr_status *st)
{
	struct ib_uobject *uobj = qp_uobject(qp);
	enum rxe_migr_why why;

	if (!rxe_migr_can_move(qp))
		why = RXE_MIGR_WHY_QP_TYPE;
	else if (qp_state(qp) > IB_QPS_SQD && qp_state(qp) != IB_QPS_ERR)
		why = RXE_MIGR_WHY_QP_STATE;
	else if (to_migr_qp(qp)->wanted.type &&
		 !to_migr_uc(uobj->context)->resumed)
		why = RXE_MIGR_WHY_QP_STATE;
	else if (!qp->sq.queue->ip || (!qp->srq && !qp->rq.queue->ip))
		why = RXE_MIGR_WHY_QP_STATE;
	else
		return 0;

	st->qpn = qp_num(qp);
	return refuse(st, why, RXE_MIGR_QP, uobj);
}

/* does @bad name an object of @uc in this pool? */
static int chk_pool(struct rxe_pool *pool, struct ib_ucontext *uc,
		    struct rxe_migr_status *st, enum rxe_migr_type type,
		    enum rxe_migr_why why, bool (*bad)(void *obj))
{
	struct rxe_pool_elem *elem;
	struct ib_uobject *uobj;
	unsigned long index = 0;
	int err = 0;

	while (!err && (elem = rxe_migr_next(pool, uc, &index))) {
		uobj = rxe_migr_uobject(elem);
		if (!uobj)
			err = -EAGAIN;	/* the core has not finished it */
		else if (bad(elem->obj))
			err = refuse(st, why, type, uobj);
		__rxe_put(elem);
	}

	return err;
}

/* the driver has told nobody where the ring can be mapped */
static bool unmapped_cq(void *obj)
{
	return !((struct rxe_cq *)obj)->queue->ip;
}

static bool unmapped_srq(void *obj)
{
	return !((struct rxe_srq *)obj)->rq.queue->ip;
}

/* whoever has made it knows no number, and puts the address into its requests */
static bool nameless_ah(void *obj)
{
	return !((struct rxe_ah *)obj)->ah_num;
}

static bool bad_mr(void *obj)
{
	struct rxe_mr *mr = obj;

	return mr->ibmr.type != IB_MR_TYPE_USER || !mr->umem ||
	       mr->state != RXE_MR_STATE_VALID;
}

/**
 * rxe_migr_chk_resumed - is there an image from which the context is being restored?
 * @muc: the context; unless its lock is held, LOAD may come
 * @st: receives the context, and why
 *
 * Its events are in that image, and nowhere else.
 *
 * Return: 0 or -EOPNOTSUPP
 */
int rxe_migr_chk_resumed(struct rxe_migr_uc *muc, struct rxe_migr_status *st)
{
	if (!muc->restored || muc->resumed)
		return 0;

	st->why = RXE_MIGR_WHY_QP_STATE;
	st->type = RXE_MIGR_CONTEXT;
	return -EOPNOTSUPP;
}

/**
 * rxe_migr_chk_context - is there anything that cannot be carried?
 * @uc: the context
 * @qps: its QPs, with references
 * @n: how many
 * @st: receives the first object that cannot be carried, and why
 *
 * Context: process; sleeps.
 * Return: 0, -EOPNOTSUPP, or -EAGAIN if an object is just being created
 */
int rxe_migr_chk_context(struct ib_ucontext *uc, struct rxe_qp **qps,
			 unsigned int n, struct rxe_migr_status *st)
{
	struct rxe_dev *rxe = to_rdev(uc->device);
	unsigned int i;
	int err = 0;

	for (i = 0; i < n && !err; i++)
		err = chk_qp(qps[i], st);
	if (!err)
		err = chk_pool(&rxe->srq_pool, uc, st, RXE_MIGR_SRQ,
			       RXE_MIGR_WHY_QP_STATE, unmapped_srq);
	if (!err)
		err = chk_pool(&rxe->ah_pool, uc, st, RXE_MIGR_AH,
			       RXE_MIGR_WHY_AH, nameless_ah);
	if (!err)
		err = chk_pool(&rxe->cq_pool, uc, st, RXE_MIGR_CQ,
			       RXE_MIGR_WHY_QP_STATE, unmapped_cq);
	if (!err)
		err = chk_pool(&rxe->mr_pool, uc, st, RXE_MIGR_MR,
			       RXE_MIGR_WHY_MR_TYPE, bad_mr);
	return err ?: rxe_migr_chk_resumed(to_migr_uc(uc), st);
}

/* --- hooks of destruction --- */

/* is there an image that says it is connected: of it, or of what it was to be? */
static bool lives_in_image(struct rxe_migr_qp *m)
{
	struct rxe_qp *qp = &m->qp;

	if (qp->migr != RXE_MIGR_STOPPED)
		return false;
	if (m->dumped_alive)
		return true;

	return m->refilled && rxe_migr_connected(qp) &&
	       !to_migr_uc(qp_uobject(qp)->context)->resumed;
}

/**
 * rxe_migr_qp_destroy - hook in rxe_destroy_qp()
 * @qp: the QP
 *
 * A Stopped QP's tasks don't run, and from Paused on a requester that is to send
 * again looks at no response. So packets that were on their way to it would hold
 * their references for ever. What it is now, it stays.
 *
 * Context: process; sleeps.
 */
void rxe_migr_qp_destroy(struct rxe_qp *qp)
{
	struct rxe_migr_qp *m = to_migr_qp(qp);
	unsigned long flags;

	/* before it is hidden, so that nobody is told it is not there */
	if (lives_in_image(m))
		rxe_migr_leave(qp);
	rxe_migr_hide_qp(qp);

	/* the mutex, so that it is not Held */
	mutex_lock(&m->lock);
	spin_lock_irqsave(&qp->state_lock, flags);
	m->ending = true;
	spin_unlock_irqrestore(&qp->state_lock, flags);
	mutex_unlock(&m->lock);
	if (qp->migr >= RXE_MIGR_PAUSED)
		rxe_migr_purge(qp, &qp->resp_pkts);
	if (qp->migr == RXE_MIGR_STOPPED)
		rxe_migr_purge(qp, &qp->req_pkts);
}

/**
 * rxe_migr_qp_cleanup - hook in rxe_qp_do_cleanup(): the last reference is gone
 * @qp: the QP, maybe half made
 */
void rxe_migr_qp_cleanup(struct rxe_qp *qp)
{
	struct rxe_migr_qp *m = to_migr_qp(qp);

	if (m->work.work.func)
		cancel_delayed_work_sync(&m->work);
}
