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
	if (capable)
		m->peer_ended = false;
	note_peer(m, capable ? RXE_MIGR_PEER_CAPABLE : RXE_MIGR_PEER_STOCK);
}

/**
 * rxe_migr_heard - a capable peer has shown that it lives
 * @m: QP, maybe one whose peer was taken for ended
 *
 * Context: any
 */
void rxe_migr_heard(struct rxe_migr_qp *m)
{
	if (cmpxchg(&m->peer, RXE_MIGR_PEER_ENDED, RXE_MIGR_PEER_CAPABLE) ==
	    RXE_MIGR_PEER_ENDED) {
		m->peer_ended = false;
		rxe_migr_schedule(m, 0); /* to tell it again that this QP is Stopped */
	}
}

/**
 * rxe_migr_exchanged - how much has this life of the connection seen?
 * @qp: connected QP
 *
 * Before RTS the PSNs to send are those of the life before: RESET keeps them.
 *
 * Context: m->lock held
 * Return: PSNs acknowledged and received
 */
u32 rxe_migr_exchanged(struct rxe_qp *qp)
{
	u32 n = (qp->resp.psn - qp->attr.rq_psn) & BTH_PSN_MASK;

	if (qp_state(qp) >= IB_QPS_RTS)
		n += (qp->comp.psn - qp->attr.sq_psn) & BTH_PSN_MASK;

	return n;
}

/* what this device knows of a QP's peer */
enum fate {
	FATE_NOT_HERE,
	FATE_ALIVE,
	FATE_HAS_ENDED,
};

/*
 * Is the peer a QP of this device, and has it come to its end, in ERR? There it
 * answers nobody any more, be it asked or resumed to, so neither is done. But one
 * with which nothing has been exchanged yet may just be on its way to this
 * connection from the last one of the same numbers; and a UC QP needs no PSN to
 * come back. And of one that was dumped before it ended the image lives on.
 *
 * Context: m->lock held
 */
static enum fate fate_of_peer(struct rxe_qp *qp)
{
	struct rxe_dev *rxe = to_rdev(qp->ibqp.device);
	enum fate fate = FATE_NOT_HERE;
	struct rxe_pool_elem *elem;
	union ib_gid sgid, peer_sgid;
	struct rxe_qp *peer;

	elem = rxe_migr_get(&rxe->qp_pool, qp->attr.dest_qp_num);
	if (!elem)
		return fate;

	peer = elem->obj;
	rxe_migr_sgid(&qp->pri_av, sgid.raw);
	rxe_migr_sgid(&peer->pri_av, peer_sgid.raw);
	if (qp_type(qp) != IB_QPT_RC || qp_type(peer) != IB_QPT_RC ||
	    peer->attr.dest_qp_num != qp_num(qp) ||
	    memcmp(&peer_sgid, qp->pri_av.grh.dgid.raw, sizeof(sgid)) ||
	    memcmp(&sgid, peer->pri_av.grh.dgid.raw, sizeof(sgid)))
		; /* it is another one's */
	else if (rxe_migr_connected(peer))
		fate = FATE_ALIVE;
	else if (qp_state(peer) == IB_QPS_ERR && rxe_migr_exchanged(qp) &&
		 (READ_ONCE(peer->migr) != RXE_MIGR_STOPPED ||
		  !READ_ONCE(to_migr_qp(peer)->dumped_alive)))
		fate = FATE_HAS_ENDED;
	rxe_put(peer);

	return fate;
}

static bool peer_has_ended(struct rxe_qp *qp)
{
	return fate_of_peer(qp) == FATE_HAS_ENDED;
}

/* It is in ERR on this device. Context: m->lock held */
static void note_ended(struct rxe_migr_qp *m)
{
	m->peer_ended = true;
	m->exchanged = rxe_migr_exchanged(&m->qp);
	note_peer(m, RXE_MIGR_PEER_ENDED);
}

/*
 * Had the peer ended, as the last STOP has found or the image said, and has nothing
 * been heard of it since? It may be on its way back, so it is asked, but it may be
 * silent.
 */
static bool peer_had_ended(struct rxe_migr_qp *m)
{
	return m->peer_ended && m->exchanged == rxe_migr_exchanged(&m->qp);
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
			m->nonce = get_random_u32();
		}
	}
	spin_unlock_irqrestore(&qp->state_lock, flags);
	mutex_unlock(&m->lock);
}

/*
 * The answer to a probe may still be on its way, and of one that is not capable
 * it must not be believed: see rxe_migr_ignores(). And of one that is taken for
 * ended by its silence any word is heard.
 */
static void end_asking(struct rxe_qp *qp)
{
	struct rxe_migr_qp *m = to_migr_qp(qp);

	mutex_lock(&m->lock);
	if ((!m->probed && m->peer != RXE_MIGR_PEER_ENDED) ||
	    m->peer == RXE_MIGR_PEER_CAPABLE || peer_has_ended(qp))
		rxe_migr_change(qp, RXE_MIGR_IN(ASKING), RXE_MIGR_RUNNING);
	mutex_unlock(&m->lock);
}

/* let the requester send again what the peer should have answered by now */
static void repeat_requests(struct rxe_qp *qp)
{
	unsigned long flags;

	spin_lock_irqsave(&qp->state_lock, flags);
	if (qp->migr == RXE_MIGR_ASKING && !qp->req.wait_for_rnr_timer) {
		qp->req.need_retry = 1;
		rxe_sched_task(&qp->send_task);
	}
	spin_unlock_irqrestore(&qp->state_lock, flags);
}

/*
 * Make the peer say something that shows what it is. A probe goes out only when
 * nothing is outstanding, because of what stock drivers answer. When something
 * is, they owe an answer anyhow: be patient first, then ask again for that.
 * Context: m->lock held, or the address might just be changing
 */
static void __ask_peer(struct rxe_qp *qp, bool patient)
{
	bool rts = qp_state(qp) >= IB_QPS_RTS;

	/* nothing else answers, and this disturbs nobody */
	if (qp_type(qp) == IB_QPT_UC) {
		rxe_migr_send_question(to_migr_qp(qp));
		return;
	}

	if (patient &&
	    !(rts && queue_empty(qp->sq.queue, QUEUE_TYPE_FROM_CLIENT)))
		return;

	if (rts && psn_compare(qp->req.psn, qp->comp.psn) > 0) {
		repeat_requests(qp);
	} else {
		to_migr_qp(qp)->probed = true;
		rxe_migr_send_probe(qp);
	}
}

static void ask_peer(struct rxe_qp *qp, bool patient)
{
	struct rxe_migr_qp *m = to_migr_qp(qp);

	mutex_lock(&m->lock);
	if (qp->migr == RXE_MIGR_ASKING) {
		if (peer_has_ended(qp))
			note_ended(m);
		else
			__ask_peer(qp, patient);
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
	mutex_lock(&m->lock);
	if (qp->migr != RXE_MIGR_RESUMING) {
		if (peer_has_ended(qp))
			note_ended(m);
		else if (peer_had_ended(m) && !rxe_migr_peer_ok(peer))
			/* unless it has answered just now; without the bit anybody may */
			cmpxchg(&m->peer, peer, RXE_MIGR_PEER_ENDED);
	}
	peer = qp->migr == RXE_MIGR_RESUMING ? RXE_MIGR_PEER_UNKNOWN : m->peer;
	mutex_unlock(&m->lock);

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
 * rxe_migr_peer_ended - has the peer of a QP come to its end?
 * @qp: Stopped QP
 *
 * Also if that was after STOP; and not if the peer is there again, which STOP has not
 * asked, but it is a QP of this driver.
 *
 * Context: process; m->lock held
 * Return: true if nobody is to be sent RESUME
 */
bool rxe_migr_peer_ended(struct rxe_qp *qp)
{
	struct rxe_migr_qp *m = to_migr_qp(qp);
	enum fate fate;

	if (!rxe_migr_connected(qp))
		return false;

	fate = fate_of_peer(qp);
	if (fate == FATE_HAS_ENDED)
		note_ended(m);
	else if (fate == FATE_ALIVE)
		rxe_migr_heard(m);

	return READ_ONCE(m->peer) == RXE_MIGR_PEER_ENDED;
}

/**
 * rxe_migr_ask - find out whether every peer can migrate
 * @qps: QPs, with references
 * @n: how many
 * @timeout_ms: patience with silent peers
 * @st: receives the first peer that cannot
 *
 * A QP in RTR has no PSN of its own that the peer would surely take for a
 * duplicate, so it listens for half of the time before it speaks; and so does
 * one that has requests outstanding.
 *
 * Context: process; sleeps.
 * Return: 0, -EPROTO, -ETIMEDOUT or -EINTR
 */
int rxe_migr_ask(struct rxe_qp **qps, unsigned int n, unsigned int timeout_ms,
		 struct rxe_migr_status *st)
{
	unsigned long begin = jiffies;
	unsigned long end = begin + msecs_to_jiffies(timeout_ms);
	unsigned long half = begin + msecs_to_jiffies(timeout_ms / 2);
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
				ask_peer(qps[i], time_before(jiffies, half));

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
