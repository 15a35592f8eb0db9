// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How a QP changes its state with respect to migration, and what becomes of its
 * requester when it does.
 */
#include <linux/module.h>

#include "rxe.h"
#include "rxe_queue.h"

#define PROBE_MIN_MS	200
#define PROBE_MAX_MS	2000
#define RESUME_MIN_MS	10
#define RESUME_MAX_MS	1000
#define STOPPED_MIN_MS	20
#define DEAF_MS		100

static unsigned int migr_paused_timeout = 600;
module_param(migr_paused_timeout, uint, 0644);
MODULE_PARM_DESC(migr_paused_timeout,
		 "Seconds until a Paused or Resuming QP fails, 0 = never");

/**
 * __rxe_migr_change - the only one that writes rxe_qp.migr
 * @qp: the QP
 * @from: set of states in which the caller means it
 * @to: the new state
 *
 * Context: state_lock held.
 * Return: false, and nothing has changed, if the QP is in another state, or is being
 * destroyed
 */
bool __rxe_migr_change(struct rxe_qp *qp, unsigned int from,
		       enum rxe_migr_state to)
{
	lockdep_assert_held(&qp->state_lock);

	if (!(from >> qp->migr & 1) || to_migr_qp(qp)->ending)
		return false;
	if (WARN_ON_ONCE(!rxe_migr_may_change(qp->migr, to)))
		return false;

	WRITE_ONCE(qp->migr, to);
	return true;
}

/* the same for who does not hold the lock */
bool rxe_migr_change(struct rxe_qp *qp, unsigned int from,
		     enum rxe_migr_state to)
{
	unsigned long flags;
	bool changed;

	spin_lock_irqsave(&qp->state_lock, flags);
	changed = __rxe_migr_change(qp, from, to);
	spin_unlock_irqrestore(&qp->state_lock, flags);

	return changed;
}

/* is it one of @first, ... @end - 1? */
static bool psn_within(u32 psn, u32 first, u32 end)
{
	return psn_compare(psn, first) >= 0 && psn_compare(psn, end) < 0;
}

/*
 * Before RTS the PSNs are those of the QP's life before: RESET keeps them. Only
 * RC is acknowledged; of others comp.psn means nothing.
 */
static bool has_outstanding(struct rxe_qp *qp)
{
	return qp_type(qp) == IB_QPT_RC && qp_state(qp) >= IB_QPS_RTS &&
	       psn_compare(qp->req.psn, qp->comp.psn) > 0;
}

/*
 * Let the requester begin anew at the oldest unacknowledged packet, with all
 * its retries. If there is one, that is a retry: an ACK which shows that
 * responses before it are lost must not start another one and count it. If not,
 * the first loss from now on starts one. What is not acknowledged is not sent
 * again: the requester goes on where it was. Context: state_lock held.
 */
static void restart_requester(struct rxe_qp *qp)
{
	qp->comp.timeout = 0;
	qp->comp.started_retry = has_outstanding(qp);
	qp->comp.retry_cnt = qp->attr.retry_cnt;
	qp->comp.rnr_retry = qp->attr.rnr_retry;
	if (qp_type(qp) == IB_QPT_RC && !qp->req.wait_for_rnr_timer)
		qp->req.need_retry = 1;
	rxe_sched_task(&qp->send_task);
}

/* --- what is due from time to time --- */

static void set_pace(struct rxe_migr_qp *m, unsigned int first_ms,
		     unsigned int interval_ms)
{
	m->next = jiffies + msecs_to_jiffies(first_ms);
	m->interval_ms = interval_ms;
	rxe_migr_schedule(m, first_ms);
}

/**
 * rxe_migr_due - is it time for the next packet of a QP's state?
 * @m: the QP
 *
 * If not, @m->work comes again when it is.
 *
 * Context: m->lock held
 */
bool rxe_migr_due(struct rxe_migr_qp *m)
{
	unsigned int most = m->qp.migr >= RXE_MIGR_RESUMING ? RESUME_MAX_MS :
							      PROBE_MAX_MS;
	unsigned long now = jiffies;

	if (time_before(now, m->next)) {
		rxe_migr_schedule(m, jiffies_to_msecs(m->next - now));
		return false;
	}

	set_pace(m, m->interval_ms, min(2 * m->interval_ms, most));
	return true;
}

static void fail_idle(struct rxe_qp *qp)
{
	struct ib_event ev = {
		.device = qp->ibqp.device,
		.element.qp = &qp->ibqp,
		.event = IB_EVENT_QP_FATAL,
	};

	rxe_qp_error(qp);
	if (qp->ibqp.event_handler)
		qp->ibqp.event_handler(&ev, qp->ibqp.qp_context);
}

/**
 * rxe_migr_timed_out - fail a QP that is Paused or Resuming for too long
 * @m: the QP
 *
 * As with a dead peer: its next time-out is the last one. With nothing
 * outstanding there may be none, whatever has been posted meanwhile, and no work
 * request to tell the application.
 *
 * Context: m->lock held
 * Return: true if it was for too long
 */
bool rxe_migr_timed_out(struct rxe_migr_qp *m)
{
	unsigned int timeout = READ_ONCE(migr_paused_timeout);
	struct rxe_qp *qp = &m->qp;
	unsigned long flags;
	bool failed, idle;

	if (!timeout || !time_after(jiffies, m->since +
				    (unsigned long)timeout * HZ))
		return false;

	spin_lock_irqsave(&qp->state_lock, flags);
	failed = __rxe_migr_change(qp, RXE_MIGR_IN(PAUSED) |
				       RXE_MIGR_IN(RESUMING),
				   RXE_MIGR_RUNNING);
	idle = !has_outstanding(qp);
	if (failed && idle) {
		/* nobody sees it Running; for the rest see fail_idle() */
		qp->attr.qp_state = IB_QPS_ERR;
	} else if (failed) {
		/* what waits for a requester that is to retry is no sign of life */
		rxe_migr_purge(qp, &qp->resp_pkts);
		qp->req.need_retry = 0;
		qp->comp.retry_cnt = 0;
		qp->comp.timeout = 1;
		rxe_sched_task(&qp->send_task);
	}
	spin_unlock_irqrestore(&qp->state_lock, flags);

	if (failed) {
		rxe_migr_count(qp, RXE_CNT_MIGR_TIMED_OUT);
		rxe_err_qp(qp, "no sign of the peer for %u s\n", timeout);
		if (idle)
			fail_idle(qp);
	}

	return failed;
}

/* --- Stopped --- */

/**
 * rxe_migr_stop - whatever it does, the QP is Stopped
 * @qp: the QP
 *
 * Context: m->lock held
 */
void rxe_migr_stop(struct rxe_qp *qp)
{
	struct rxe_migr_qp *m = to_migr_qp(qp);
	unsigned long flags;
	u8 before;

	spin_lock_irqsave(&qp->state_lock, flags);
	before = qp->migr;
	if (__rxe_migr_change(qp, RXE_MIGR_NOT_IN(STOPPED), RXE_MIGR_STOPPED)) {
		m->before = before;
		m->peer_stopped = before == RXE_MIGR_TRYING ||
				  before == RXE_MIGR_PAUSED ||
				  (before == RXE_MIGR_RESUMING &&
				   m->peer_stopped);
		m->dumped_alive = false;
		m->unheard = false;
	}
	spin_unlock_irqrestore(&qp->state_lock, flags);
}

/**
 * rxe_migr_unstop - a Stopped QP becomes what it was before
 * @qp: the QP, its tasks enabled
 *
 * But for what it has heard meanwhile: the peer may be gone when it next speaks.
 *
 * Context: m->lock held
 */
void rxe_migr_unstop(struct rxe_qp *qp)
{
	struct rxe_migr_qp *m = to_migr_qp(qp);

	if (m->before == RXE_MIGR_RESUMING)
		rxe_migr_run(qp, RXE_MIGR_RESUMING);
	else
		rxe_migr_run(qp, m->peer_stopped ? RXE_MIGR_PAUSED :
						   RXE_MIGR_RUNNING);
}

/**
 * rxe_migr_run - leave Stopped, Held or Resuming
 * @qp: the QP, its tasks enabled
 * @to: RUNNING or ASKING, or PAUSED or RESUMING to probe or resume from now on
 */
void rxe_migr_run(struct rxe_qp *qp, enum rxe_migr_state to)
{
	struct rxe_migr_qp *m = to_migr_qp(qp);
	unsigned long flags;

	spin_lock_irqsave(&qp->state_lock, flags);
	if (__rxe_migr_change(qp, RXE_MIGR_IN(STOPPED) | RXE_MIGR_IN(HELD) |
				  RXE_MIGR_IN(RESUMING), to)) {
		m->since = jiffies;
		restart_requester(qp);
		rxe_sched_task(&qp->recv_task);
		if (to >= RXE_MIGR_PAUSED || m->untold)
			set_pace(m, 0, to == RXE_MIGR_RESUMING ? RESUME_MIN_MS :
								 PROBE_MIN_MS);
	}
	spin_unlock_irqrestore(&qp->state_lock, flags);
}

/**
 * rxe_migr_announce - tell a capable peer of RC, until it has heard
 * @qp: a Stopped QP
 *
 * Context: m->lock held
 */
void rxe_migr_announce(struct rxe_qp *qp)
{
	struct rxe_migr_qp *m = to_migr_qp(qp);

	if (qp_type(qp) != IB_QPT_RC || m->peer != RXE_MIGR_PEER_CAPABLE ||
	    !rxe_migr_connected(qp))
		return;
	m->unheard = true;
	set_pace(m, 0, STOPPED_MIN_MS);
}

/* --- Paused --- */

/**
 * rxe_migr_pause - the peer says that it is Stopped
 * @qp: the QP
 *
 * One in RTR has nothing to send yet, but the peer may not say it again.
 *
 * Context: any
 */
void rxe_migr_pause(struct rxe_qp *qp)
{
	struct rxe_migr_qp *m = to_migr_qp(qp);
	unsigned long flags;

	spin_lock_irqsave(&qp->state_lock, flags);
	if (rxe_migr_connected(qp) &&
	    __rxe_migr_change(qp, RXE_MIGR_IN(RUNNING) | RXE_MIGR_IN(ASKING) |
				  RXE_MIGR_IN(TRYING), RXE_MIGR_PAUSED)) {
		/* nobody has signed that, and who was not there may be now */
		if (m->peer != RXE_MIGR_PEER_CAPABLE)
			m->peer = RXE_MIGR_PEER_UNKNOWN;
		m->since = jiffies;
		timer_delete(&qp->retrans_timer);
		set_pace(m, PROBE_MIN_MS, PROBE_MIN_MS);
		rxe_migr_count(qp, RXE_CNT_MIGR_PAUSED);
	}
	spin_unlock_irqrestore(&qp->state_lock, flags);
}

/**
 * rxe_migr_wait_anew - a QP that was Paused in RTR has come to RTS
 * @qp: the QP
 *
 * Context: m->lock held
 */
void rxe_migr_wait_anew(struct rxe_qp *qp)
{
	struct rxe_migr_qp *m = to_migr_qp(qp);
	unsigned long flags;

	spin_lock_irqsave(&qp->state_lock, flags);
	if (qp->migr == RXE_MIGR_PAUSED) {
		m->since = jiffies;
		set_pace(m, 0, PROBE_MIN_MS);
	}
	spin_unlock_irqrestore(&qp->state_lock, flags);
}

/*
 * The first PSN that has never been sent, or the end of the message before it.
 * req.psn is less in a requester that has just begun anew, but the requests that
 * it has sent before still have their PSNs, each those that follow the last one.
 * Context: state_lock held
 */
static u32 first_unsent(struct rxe_qp *qp)
{
	struct rxe_queue *q = qp->sq.queue;
	/* who writes PSNs or an index of his own fools nobody else */
	u32 end = queue_get_producer(q, QUEUE_TYPE_FROM_CLIENT) & q->index_mask;
	u32 i = queue_get_consumer(q, QUEUE_TYPE_FROM_CLIENT);
	u32 psn = qp->req.psn;
	struct rxe_send_wqe *wqe;

	for (; i != end; i = queue_next_index(q, i)) {
		wqe = queue_addr_from_index(q, i);
		if (psn_compare(wqe->first_psn, psn) <= 0 &&
		    psn_compare(wqe->last_psn, psn) >= 0)
			psn = (wqe->last_psn + 1) & BTH_PSN_MASK;
	}

	return psn;
}

/**
 * rxe_migr_try - a response seems to show that the peer is not Stopped
 * @qp: the QP
 *
 * It may be late, or forged. So the QP tries: it sends again, and the peer has
 * to acknowledge what it has not sent before.
 *
 * Context: any
 */
void rxe_migr_try(struct rxe_qp *qp)
{
	struct rxe_migr_qp *m = to_migr_qp(qp);
	unsigned long flags;

	spin_lock_irqsave(&qp->state_lock, flags);
	if (qp->migr == RXE_MIGR_PAUSED) {
		m->first_psn = qp->comp.psn;
		m->new_psn = first_unsent(qp);
		/* before the state: rxe_migr_ignores() has no lock */
		smp_wmb();
		if (__rxe_migr_change(qp, RXE_MIGR_IN(PAUSED), RXE_MIGR_TRYING))
			restart_requester(qp);
	}
	spin_unlock_irqrestore(&qp->state_lock, flags);
}

/* has something been acknowledged that was not sent before the pause? */
static bool proven(struct rxe_migr_qp *m)
{
	return psn_compare(m->qp.comp.psn, m->new_psn) > 0;
}

/**
 * rxe_migr_ignores - hook in rxe_completer(): must this response be ignored?
 * @qp: QP whose rxe_qp.migr is not 0
 * @pkt: a response
 *
 * While Trying nothing is believed that cannot answer what was sent since.
 *
 * Context: the QP's send task
 */
bool rxe_migr_ignores(struct rxe_qp *qp, struct rxe_pkt_info *pkt)
{
	struct rxe_migr_qp *m = to_migr_qp(qp);
	u32 end = qp->req.psn;

	if (READ_ONCE(qp->migr) != RXE_MIGR_TRYING)
		return false;

	smp_rmb(); /* pairs with rxe_migr_try() */
	if (proven(m)) {
		/* so a forged NAK_STOPPED costs a round trip now and then */
		WRITE_ONCE(m->deaf_until, jiffies + msecs_to_jiffies(DEAF_MS));
		rxe_migr_change(qp, RXE_MIGR_IN(TRYING), RXE_MIGR_RUNNING);
		return false;
	}
	if (psn_compare(m->new_psn, end) > 0)
		end = m->new_psn;
	return !psn_within(pkt->psn, m->first_psn, end);
}

/**
 * rxe_migr_spares - hook in rxe_completer(): no retry is left, go on anyhow?
 * @qp: QP whose rxe_qp.migr is not 0
 *
 * Silence does not cost a Paused QP its connection, and neither one that tried
 * in vain: it goes on to wait and to probe.
 *
 * Context: the QP's send task
 */
bool rxe_migr_spares(struct rxe_qp *qp)
{
	struct rxe_migr_qp *m = to_migr_qp(qp);
	unsigned long flags;
	bool spared;

	spin_lock_irqsave(&qp->state_lock, flags);
	if (!proven(m) && __rxe_migr_change(qp, RXE_MIGR_IN(TRYING),
					    RXE_MIGR_PAUSED)) {
		set_pace(m, 0, PROBE_MAX_MS);
		rxe_migr_count(qp, RXE_CNT_MIGR_PAUSED);
	}
	spared = qp->migr >= RXE_MIGR_PAUSED;
	spin_unlock_irqrestore(&qp->state_lock, flags);

	return spared;
}
