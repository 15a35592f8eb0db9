// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * STOP asks every peer, by a signed question: can it migrate, what is its life, and does
 * it take a QP that has come here for the one it had?
 */
#include <linux/random.h>
#include <linux/wait.h>

#include "rxe.h"

#define ASK_INTERVAL_MS	100

static DECLARE_WAIT_QUEUE_HEAD(ask_wait);

static void note_peer(struct rxe_migr_qp *m, enum rxe_migr_peer peer)
{
	if (READ_ONCE(m->peer) == peer)
		return;
	WRITE_ONCE(m->peer, peer);
	wake_up(&ask_wait);
}

/**
 * rxe_migr_answered - note that the peer can migrate: it has signed something
 * @m: QP whose peer is known now
 *
 * Context: m->lock held
 */
void rxe_migr_answered(struct rxe_migr_qp *m)
{
	note_peer(m, RXE_MIGR_PEER_CAPABLE);
}

/**
 * rxe_migr_seems_stock - note that the peer has not shown the capability bit
 * @m: QP that is Asking
 *
 * That packet may be late, or forged: what is signed counts more.
 *
 * Context: softirq
 */
void rxe_migr_seems_stock(struct rxe_migr_qp *m)
{
	cmpxchg(&m->peer, RXE_MIGR_PEER_UNKNOWN, RXE_MIGR_PEER_STOCK);
}

/**
 * rxe_migr_not_there - note that a capable driver has no such peer
 * @m: QP that is Asking, or Stopped
 *
 * When one is connected it will have another life.
 *
 * Context: m->lock held
 */
void rxe_migr_not_there(struct rxe_migr_qp *m)
{
	m->peer_life = 0;
	note_peer(m, RXE_MIGR_PEER_ABSENT);
	rxe_migr_is_heard(m);
}

/**
 * rxe_migr_is_heard - note that the peer knows that this QP is Stopped, or is not there
 * @m: the QP
 *
 * Context: m->lock held
 */
void rxe_migr_is_heard(struct rxe_migr_qp *m)
{
	if (!m->unheard)
		return;
	WRITE_ONCE(m->unheard, false);
	wake_up(&ask_wait);
}

/**
 * rxe_migr_heard - a capable peer has shown that it lives
 * @m: Stopped QP, maybe one whose peer was not there
 *
 * Context: m->lock held
 */
void rxe_migr_heard(struct rxe_migr_qp *m)
{
	if (m->peer != RXE_MIGR_PEER_ABSENT)
		return;
	m->peer = RXE_MIGR_PEER_CAPABLE;
	rxe_migr_announce(&m->qp);
}

/*
 * Does the answer of this QP's peer matter, and is it missing? Of one that is Paused,
 * so its peer may be on its way, an older one will do; but NAK_STOPPED is none.
 */
static bool is_asked(struct rxe_qp *qp)
{
	struct rxe_migr_qp *m = to_migr_qp(qp);

	if (!rxe_migr_connected(qp))
		return false;

	switch (READ_ONCE(qp->migr)) {
	case RXE_MIGR_ASKING:
	case RXE_MIGR_TRYING:
	case RXE_MIGR_PAUSED:
		return !rxe_migr_peer_ok(READ_ONCE(m->peer));
	case RXE_MIGR_RESUMING: /* RESUME is the question */
	case RXE_MIGR_HELD:
		return true;
	default:
		return false;
	}
}

static bool all_answered(struct rxe_qp **qps, unsigned int n, unsigned int *i)
{
	while (*i < n && !is_asked(qps[*i]))
		(*i)++;
	return *i == n;
}

/* RUNNING QPs become ASKING; m->lock, so that none is HELD meanwhile */
static void begin_asking(struct rxe_qp *qp)
{
	struct rxe_migr_qp *m = to_migr_qp(qp);
	unsigned long flags;

	mutex_lock(&m->lock);
	spin_lock_irqsave(&qp->state_lock, flags);
	m->question = get_random_u32();
	if (rxe_migr_connected(qp) &&
	    __rxe_migr_change(qp, RXE_MIGR_IN(RUNNING), RXE_MIGR_ASKING))
		m->peer = RXE_MIGR_PEER_UNKNOWN;
	spin_unlock_irqrestore(&qp->state_lock, flags);
	mutex_unlock(&m->lock);
}

static void end_asking(struct rxe_qp *qp)
{
	struct rxe_migr_qp *m = to_migr_qp(qp);

	mutex_lock(&m->lock);
	rxe_migr_change(qp, RXE_MIGR_IN(ASKING), RXE_MIGR_RUNNING);
	mutex_unlock(&m->lock);
}

/* a question disturbs nobody; of who is Resuming, RESUME is one */
static void ask_peer(struct rxe_qp *qp)
{
	struct rxe_migr_qp *m = to_migr_qp(qp);

	mutex_lock(&m->lock);
	if (rxe_migr_connected(qp) && qp->migr != RXE_MIGR_RESUMING)
		rxe_migr_send_question(m);
	mutex_unlock(&m->lock);
}

static void name_peer(struct rxe_qp *qp, enum rxe_migr_why why,
		      struct rxe_migr_status *st)
{
	st->why = why;
	st->type = RXE_MIGR_QP;
	st->handle = ((struct ib_uobject *)qp->ibqp.uobject)->id;
	st->qpn = qp_num(qp);
	st->peer_qpn = qp->attr.dest_qp_num;
	memcpy(st->peer_gid, qp->pri_av.grh.dgid.raw, 16);
}

static int judge(struct rxe_qp *qp, struct rxe_migr_status *st)
{
	struct rxe_migr_qp *m = to_migr_qp(qp);
	u8 peer = READ_ONCE(m->peer);

	/*
	 * Who resumes in vain is one restore too many, but the next one would
	 * be newer than the one that the peer has accepted.
	 */
	if (READ_ONCE(qp->migr) == RXE_MIGR_RESUMING)
		peer = RXE_MIGR_PEER_UNKNOWN;
	if (!rxe_migr_connected(qp) || rxe_migr_peer_ok(peer))
		return 0;

	name_peer(qp, peer == RXE_MIGR_PEER_STOCK ? RXE_MIGR_WHY_PEER :
						    RXE_MIGR_WHY_SILENT, st);

	return peer == RXE_MIGR_PEER_STOCK ? -EPROTO : -ETIMEDOUT;
}

/**
 * rxe_migr_ask - find out whether every peer can migrate
 * @qps: QPs, with references
 * @n: how many
 * @timeout_ms: patience with silent peers
 * @st: receives the first peer that cannot
 *
 * Context: process; sleeps.
 * Return: 0, -EPROTO, -ETIMEDOUT or -EINTR
 */
int rxe_migr_ask(struct rxe_qp **qps, unsigned int n, unsigned int timeout_ms,
		 struct rxe_migr_status *st)
{
	unsigned long end = jiffies + msecs_to_jiffies(timeout_ms);
	unsigned long pause = msecs_to_jiffies(ASK_INTERVAL_MS);
	unsigned int first = 0;
	unsigned int i;
	int err = 0;
	long left;

	for (i = 0; i < n; i++)
		begin_asking(qps[i]);

	while (!all_answered(qps, n, &first) && time_before(jiffies, end)) {
		for (i = first; i < n; i++)
			if (is_asked(qps[i]))
				ask_peer(qps[i]);

		left = wait_event_interruptible_timeout(ask_wait,
							all_answered(qps, n, &first),
							pause);
		if (left < 0) {
			err = -EINTR;
			break;
		}
	}

	for (i = 0; i < n && !err; i++)
		err = judge(qps[i], st);

	for (i = 0; i < n; i++)
		end_asking(qps[i]);

	return err;
}

static bool all_heard(struct rxe_qp **qps, unsigned int n, unsigned int *i)
{
	while (*i < n && !(READ_ONCE(qps[*i]->migr) == RXE_MIGR_STOPPED &&
			   READ_ONCE(to_migr_qp(qps[*i])->unheard)))
		(*i)++;
	return *i == n;
}

/**
 * rxe_migr_wait_heard - wait until every peer knows that its QP here is Stopped
 * @qps: Stopped QPs, with references
 * @n: how many
 * @timeout_ms: patience
 * @st: receives the first peer that has not said so
 *
 * Context: process; sleeps.
 * Return: 0, -ETIMEDOUT or -EINTR
 */
int rxe_migr_wait_heard(struct rxe_qp **qps, unsigned int n,
			unsigned int timeout_ms, struct rxe_migr_status *st)
{
	unsigned int first = 0;
	long left;

	left = wait_event_interruptible_timeout(ask_wait,
						all_heard(qps, n, &first),
						msecs_to_jiffies(timeout_ms));
	if (left < 0)
		return -EINTR;
	if (left)
		return 0;

	name_peer(qps[first], RXE_MIGR_WHY_UNHEARD, st);
	return -ETIMEDOUT;
}
