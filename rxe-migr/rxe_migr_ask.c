// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * STOP asks every peer whether it can migrate: does its next packet show the
 * capability bit? And does it take a QP that has come here for the one it had?
 */
#include <linux/random.h>
#include <linux/wait.h>

#include "rxe.h"
#include "rxe_queue.h"

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
 * rxe_migr_answered - note what the peer is
 * @m: QP whose peer is known now
 * @capable: it shows the capability bit
 *
 * Context: any
 */
void rxe_migr_answered(struct rxe_migr_qp *m, bool capable)
{
	note_peer(m, capable ? RXE_MIGR_PEER_CAPABLE : RXE_MIGR_PEER_STOCK);
}

/**
 * rxe_migr_not_there - note that a capable driver has no such peer
 * @m: QP that is Asking
 *
 * That is signed: what has come without the capability bit was late, or forged.
 *
 * Context: m->lock held
 */
void rxe_migr_not_there(struct rxe_migr_qp *m)
{
	if (READ_ONCE(m->peer) != RXE_MIGR_PEER_CAPABLE)
		note_peer(m, RXE_MIGR_PEER_ABSENT);
}

/**
 * rxe_migr_heard - a capable peer has shown that it lives
 * @m: QP, maybe one whose peer was not there
 *
 * Context: any
 */
void rxe_migr_heard(struct rxe_migr_qp *m)
{
	/* to tell it again that this QP is Stopped */
	if (cmpxchg(&m->peer, RXE_MIGR_PEER_ABSENT, RXE_MIGR_PEER_CAPABLE) ==
	    RXE_MIGR_PEER_ABSENT)
		rxe_migr_schedule(m, 0);
}

/*
 * Does the answer of this QP's peer matter, and is it missing? That there is no
 * bit is none before the time is over: a packet without it may be late, or forged.
 */
static bool is_asked(struct rxe_qp *qp)
{
	struct rxe_migr_qp *m = to_migr_qp(qp);

	if (!rxe_migr_connected(qp))
		return false;

	switch (READ_ONCE(qp->migr)) {
	case RXE_MIGR_ASKING:
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

/*
 * RUNNING QPs become ASKING, if they are not since the last time; m->lock, so
 * that none is HELD meanwhile
 */
static void begin_asking(struct rxe_qp *qp)
{
	struct rxe_migr_qp *m = to_migr_qp(qp);
	unsigned long flags;

	mutex_lock(&m->lock);
	spin_lock_irqsave(&qp->state_lock, flags);
	if (rxe_migr_connected(qp)) {
		if (__rxe_migr_change(qp, RXE_MIGR_IN(RUNNING),
				      RXE_MIGR_ASKING))
			m->probed = false;
		if (qp->migr == RXE_MIGR_ASKING) {
			m->peer = RXE_MIGR_PEER_UNKNOWN;
			m->question = get_random_u32();
		}
	}
	spin_unlock_irqrestore(&qp->state_lock, flags);
	mutex_unlock(&m->lock);
}

/*
 * The answer to a probe may still be on its way, and of one that is not capable
 * it must not be believed: see rxe_migr_ignores().
 */
static void end_asking(struct rxe_qp *qp)
{
	struct rxe_migr_qp *m = to_migr_qp(qp);

	mutex_lock(&m->lock);
	if (!m->probed || rxe_migr_peer_ok(m->peer))
		rxe_migr_change(qp, RXE_MIGR_IN(ASKING), RXE_MIGR_RUNNING);
	mutex_unlock(&m->lock);
}

/*
 * Make the peer say something that shows what it is. What a QP has to send is answered
 * anyhow: who asked for that again would disturb a peer that is not to move, and stock
 * drivers do not always survive it. One that has nothing probes; that is when nothing is
 * outstanding, because of what stock drivers answer. A question disturbs nobody, so it
 * follows if there was no word at once: maybe nobody is there. Before RTS there are no
 * requests, and those of UC are not answered, so there it is the question.
 */
static void ask_peer(struct rxe_qp *qp, bool first)
{
	bool requests = qp_type(qp) == IB_QPT_RC && qp_state(qp) >= IB_QPS_RTS;
	struct rxe_migr_qp *m = to_migr_qp(qp);

	mutex_lock(&m->lock);
	if (qp->migr == RXE_MIGR_ASKING) {
		if (requests &&
		    queue_empty(qp->sq.queue, QUEUE_TYPE_FROM_CLIENT)) {
			m->probed = true;
			rxe_migr_send_probe(qp);
		}
		if (!requests || !first)
			rxe_migr_send_question(m);
	}
	mutex_unlock(&m->lock);
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

	st->why = peer == RXE_MIGR_PEER_STOCK ? RXE_MIGR_WHY_PEER :
						RXE_MIGR_WHY_SILENT;
	st->type = RXE_MIGR_QP;
	st->handle = ((struct ib_uobject *)qp->ibqp.uobject)->id;
	st->qpn = qp_num(qp);
	st->peer_qpn = qp->attr.dest_qp_num;
	memcpy(st->peer_gid, qp->pri_av.grh.dgid.raw, 16);

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
	bool again = false;
	int err = 0;
	long left;

	for (i = 0; i < n; i++)
		begin_asking(qps[i]);

	while (!all_answered(qps, n, &first) && time_before(jiffies, end)) {
		for (i = first; i < n; i++)
			if (is_asked(qps[i]))
				ask_peer(qps[i], !again);
		again = true;

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
