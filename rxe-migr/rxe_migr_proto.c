// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The migration protocol: what a QP does with what comes in, and from time to time,
 * in the states Paused, Resuming and Stopped. docs/protocol.md has the rules; this
 * file has nothing to do with images.
 *
 * Signed packets are handled in a work item of the QP, by rxe_migr_handle.c, because
 * checking a MAC and waiting for the QP's tasks sleep. Everything else happens
 * where the packet comes in.
 */
#include "rxe.h"
#include "rxe_queue.h"

#define GONE_MS		160	/* without an answer to STOPPED */
#define MAX_QUEUED	8	/* unhandled protocol packets of one QP */

static struct workqueue_struct *migr_wq;

/**
 * rxe_migr_count - count something for the QP's device
 * @qp: the QP
 * @index: hw_counter
 */
void rxe_migr_count(struct rxe_qp *qp, enum rxe_counters index)
{
	rxe_counter_inc(to_rdev(qp->ibqp.device), index);
}

/**
 * rxe_migr_schedule - let @m->work run
 * @m: the QP
 * @delay_ms: when; if it is to run already, then as it was
 *
 * Packets may wait for it, so it is never put off; it looks at the clock itself.
 */
void rxe_migr_schedule(struct rxe_migr_qp *m, unsigned int delay_ms)
{
	if (!delay_ms)
		mod_delayed_work(migr_wq, &m->work, 0);
	else
		queue_delayed_work(migr_wq, &m->work,
				   msecs_to_jiffies(delay_ms));
}

/**
 * rxe_migr_queue_work - let work run that belongs to no QP
 * @work: the work
 */
void rxe_migr_queue_work(struct work_struct *work)
{
	queue_work(migr_wq, work);
}

/* --- sending --- */

/**
 * rxe_migr_send_nak - tell the peer that this QP is Stopped
 * @qp: connected QP
 *
 * UC has no word for it: what the peer sends meanwhile is lost.
 */
void rxe_migr_send_nak(struct rxe_qp *qp)
{
	struct rxe_migr_qp *m = to_migr_qp(qp);
	struct rxe_migr_to to = rxe_migr_to_peer(qp);
	__be32 aeth = cpu_to_be32((u32)MIGR_AETH_NAK_STOPPED << 24 |
				  (m->epoch & MIGR_NAK_EPOCH_MASK));

	if (qp_type(qp) != IB_QPT_RC)
		return;

	/* one per tick of the clock is enough to pause the sender */
	if (!time_after(jiffies, m->last_nak))
		return;
	m->last_nak = jiffies;

	if (!rxe_migr_send(&to, IB_OPCODE_RC_ACKNOWLEDGE, qp->resp.psn, false,
			   (u8 *)&aeth, sizeof(aeth)))
		rxe_migr_count(qp, RXE_CNT_MIGR_NAK_STOPPED_SENT);
}

/**
 * rxe_migr_send_probe - make the peer say something
 * @qp: QP in RTS or SQD
 *
 * Sends what every responder must answer and nobody minds: a duplicate, a SEND
 * Only without data whose PSN is one before the oldest unacknowledged one. A
 * Stopped peer says NAK_STOPPED, any other acknowledges (IBA C9-105), but not
 * every driver with a PSN that means anything: see rxe_migr_ignores().
 */
void rxe_migr_send_probe(struct rxe_qp *qp)
{
	struct rxe_migr_to to = rxe_migr_to_peer(qp);
	u32 psn = qp->comp.psn - 1;

	if (!rxe_migr_send(&to, IB_OPCODE_RC_SEND_ONLY, psn & BTH_PSN_MASK,
			   true, NULL, 0))
		rxe_migr_count(qp, RXE_CNT_MIGR_PROBE_SENT);
}

/* --- receiving --- */

/**
 * rxe_migr_wants - hook: a packet failed check_type_state(), take it anyway?
 * @pkt: a packet
 * @qp: its QP
 *
 * A QP in RTR sends no requests and so gets no responses; but it does get
 * RESUME_ACK and NAK_STOPPED. To UC these packets are of another type.
 */
bool rxe_migr_wants(struct rxe_pkt_info *pkt, struct rxe_qp *qp)
{
	if (!qp->valid || !rxe_migr_connected(qp))
		return false;

	if (pkt->mask & RXE_MIGR_MASK)
		return true;

	return rxe_migr_is_nak(pkt) && qp_type(qp) == IB_QPT_RC;
}

/* NAK_STOPPED came in. Context: softirq */
static void nak_stopped(struct rxe_qp *qp, struct rxe_pkt_info *pkt)
{
	u32 epoch = get_unaligned_be32(payload_addr(pkt) - RXE_AETH_BYTES);
	struct rxe_migr_qp *m = to_migr_qp(qp);

	rxe_migr_count(qp, RXE_CNT_MIGR_NAK_STOPPED_RCVD);

	/*
	 * 24 bits of the epoch, compared as serial numbers. Nobody has signed it:
	 * right after the peer has proven that it runs it does not count.
	 */
	if ((s32)((epoch - m->peer_epoch) << 8) < 0 ||
	    time_before(jiffies, READ_ONCE(m->deaf_until))) {
		rxe_migr_count(qp, RXE_CNT_MIGR_NAK_STOPPED_STALE);
	} else {
		WRITE_ONCE(m->peer_stopped, true);
		rxe_migr_pause(qp);
	}
}

/*
 * What came in for a QP that does not answer it. A peer that understands it is
 * told to wait. Context: softirq
 */
static void refuse(struct rxe_qp *qp, struct rxe_pkt_info *pkt)
{
	if (pkt->mask & RXE_REQ_MASK && rxe_migr_connected(qp) &&
	    pkt->hdr[MIGR_BTH_CAP_BYTE] & MIGR_BTH_CAP_BIT)
		rxe_migr_send_nak(qp);
}

/**
 * rxe_migr_rcv - hook: look at a packet before the driver does
 * @pkt: valid packet with its QP
 * @skb: holds @pkt, and references to the QP and the device
 *
 * Context: softirq, or the sender's task for loopback.
 * Return: true if @skb was consumed
 */
bool rxe_migr_rcv(struct rxe_pkt_info *pkt, struct sk_buff *skb)
{
	struct rxe_qp *qp = pkt->qp;
	struct rxe_migr_qp *m = to_migr_qp(qp);
	bool capable = pkt->hdr[MIGR_BTH_CAP_BYTE] & MIGR_BTH_CAP_BIT;
	bool request = pkt->mask & RXE_REQ_MASK;
	struct ib_device *dev = qp->ibqp.device;

	if (pkt->mask & RXE_MIGR_MASK) {
		if (!rxe_migr_connected(qp) ||
		    skb_queue_len(&m->pkts) >= MAX_QUEUED) {
			rxe_migr_count(qp, RXE_CNT_MIGR_UNEXPECTED);
			goto drop;
		}
		/* once it is queued its own reference may be gone at any moment */
		rxe_get(qp);
		skb_queue_tail(&m->pkts, skb);
		mod_delayed_work(migr_wq, &m->work, 0);
		rxe_put(qp);
		return true;
	}

	switch (qp->migr) {
	case RXE_MIGR_STOPPED:
		refuse(qp, pkt);
		if (rxe_migr_is_nak(pkt))
			nak_stopped(qp, pkt);
		rxe_migr_count(qp, RXE_CNT_MIGR_STOPPED_DROPPED);
		goto drop;
	case RXE_MIGR_ASKING:
		/*
		 * Who cannot migrate has no answer, but may have others. UC
		 * never has the bit. It may be late, or forged: what is signed
		 * counts more.
		 */
		if (qp_type(qp) == IB_QPT_RC && !capable)
			rxe_migr_seems_stock(m);
		break;
	case RXE_MIGR_RESUMING:
		/*
		 * Whom the peer follows, this one or a restored one, is still
		 * open. To UC that is no matter: nothing is acknowledged.
		 */
		if (request && m->ran_on && qp_type(qp) == IB_QPT_RC) {
			refuse(qp, pkt);
			goto drop;
		}
		/* it has asked for nothing yet, and will ask for all again */
		if (!request && !rxe_migr_is_nak(pkt))
			goto drop;
		break;
	default:
		break;
	}

	if (rxe_migr_is_nak(pkt)) {
		nak_stopped(qp, pkt);
		goto drop;
	}

	/* a sign of life; what it answers is sent again and answered again */
	if (!request && qp->migr == RXE_MIGR_PAUSED) {
		rxe_migr_try(qp);
		goto drop;
	}

	return false;

drop:
	/* who destroys the QP may wait for this reference only */
	rxe_put(qp);
	kfree_skb(skb);
	ib_device_put(dev);
	return true;
}

/*
 * Who has only been dumped need not be accepted by its peer, which may know
 * another key, or be dead: it runs on as it was without an answer. But it goes on
 * asking for one, as a restored one might come to the peer before.
 */
#define RUN_ON_S 30

/* Context: m->lock held */
static void run_on(struct rxe_migr_qp *m)
{
	m->untold = true;
	rxe_migr_run(&m->qp, m->peer_stopped ? RXE_MIGR_PAUSED :
					       RXE_MIGR_RUNNING);
}

/* what a QP does from time to time. Context: m->lock held */
static void tick(struct rxe_migr_qp *m)
{
	struct rxe_qp *qp = &m->qp;
	u8 state = READ_ONCE(qp->migr);

	if (state != RXE_MIGR_PAUSED && state != RXE_MIGR_RESUMING &&
	    state != RXE_MIGR_STOPPED && !m->untold)
		return;

	/* an error: there is no peer any more */
	if (!rxe_migr_connected(qp)) {
		rxe_migr_change(qp, RXE_MIGR_IN(PAUSED) |
				    RXE_MIGR_IN(RESUMING), RXE_MIGR_RUNNING);
		return;
	}

	/* a probe needs a PSN: rxe_migr_modify_qp() begins in RTS */
	if (state == RXE_MIGR_PAUSED && qp_state(qp) < IB_QPS_RTS)
		return;

	if (state == RXE_MIGR_STOPPED && !m->unheard)
		return;

	if (!rxe_migr_due(m))
		return;

	if (state == RXE_MIGR_STOPPED) {
		rxe_migr_send_stopped(m);
		/* it may have gone; then its driver does not know that life */
		if (m->interval_ms >= GONE_MS)
			rxe_migr_send_question(m);
		return;
	}

	if (state != RXE_MIGR_RESUMING || !m->ran_on) {
		if (rxe_migr_timed_out(m))
			return;
	} else if (time_after(jiffies, m->since + RUN_ON_S * HZ)) {
		run_on(m);
	}

	if (state == RXE_MIGR_PAUSED)
		rxe_migr_send_probe(qp);
	if (state == RXE_MIGR_RESUMING || m->untold) {
		if (!m->noticed)
			rxe_migr_send_notice(m, 0);
		rxe_migr_send_resume(m);
	}
}

static void migr_work(struct work_struct *work)
{
	struct rxe_migr_qp *m = container_of(to_delayed_work(work),
					     struct rxe_migr_qp, work);
	struct rxe_qp *qp = &m->qp;
	struct ib_device *dev = qp->ibqp.device;
	struct sk_buff *skb;
	unsigned int n;

	/* what is sent refers to the QP, so not while it is being destroyed */
	if (rxe_get(qp)) {
		mutex_lock(&m->lock);
		tick(m);
		mutex_unlock(&m->lock);
		rxe_put(qp);
	}

	/* those of a flood do not keep it from the rest of its work */
	for (n = 0; n < MAX_QUEUED && (skb = skb_dequeue(&m->pkts)); n++) {
		mutex_lock(&m->lock);
		rxe_migr_handle(m, skb);
		mutex_unlock(&m->lock);
		kfree_skb(skb);
		rxe_put(qp);
		ib_device_put(dev);
	}
	/* each has a reference to the QP: it is not being destroyed */
	if (!skb_queue_empty(&m->pkts))
		mod_delayed_work(migr_wq, &m->work, 0);
}

/* --- set up --- */

void rxe_migr_proto_init_qp(struct rxe_migr_qp *m)
{
	INIT_DELAYED_WORK(&m->work, migr_work);
	skb_queue_head_init(&m->pkts);
	mutex_init(&m->lock);
	m->last_nak = jiffies - 1;
	m->deaf_until = jiffies;
}

int rxe_migr_proto_init(void)
{
	migr_wq = alloc_workqueue("rxe_migr_wq", WQ_UNBOUND, 0);

	return migr_wq ? 0 : -ENOMEM;
}

void rxe_migr_proto_exit(void)
{
	destroy_workqueue(migr_wq);
}
