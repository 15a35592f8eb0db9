// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The migration protocol: what a QP does with NAK_STOPPED, RESUME, RESUME_ACK
 * and in the states Paused, Resuming and Stopped. docs/protocol.md has the
 * rules; this file has nothing to do with images.
 *
 * Packets of the protocol are handled in a work item of the QP, because
 * checking a MAC and waiting for the QP's tasks sleep. Everything else happens
 * where the packet comes in.
 */
#include "rxe.h"
#include "rxe_queue.h"

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

static struct rxe_migr_to to_peer(struct rxe_qp *qp)
{
	return (struct rxe_migr_to){
		.qp = qp,
		.av = &qp->pri_av,
		.qpn = qp->attr.dest_qp_num,
	};
}

/**
 * rxe_migr_send_nak - tell the peer that this QP is Stopped
 * @qp: connected QP
 *
 * UC has no word for it: what the peer sends meanwhile is lost.
 */
void rxe_migr_send_nak(struct rxe_qp *qp)
{
	struct rxe_migr_qp *m = to_migr_qp(qp);
	struct rxe_migr_to to = to_peer(qp);
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
	struct rxe_migr_to to = to_peer(qp);
	u32 psn = qp->comp.psn - 1;

	if (!rxe_migr_send(&to, IB_OPCODE_RC_SEND_ONLY, psn & BTH_PSN_MASK,
			   true, NULL, 0))
		rxe_migr_count(qp, RXE_CNT_MIGR_PROBE_SENT);
}

/* RESUME, RESUME_ACK or a question, to the peer. Context: m->lock held */
static void send_signed(struct rxe_migr_qp *m, struct rxe_migr_say *say,
			enum rxe_counters counter)
{
	struct rxe_migr_to to = to_peer(&m->qp);

	say->msn = m->qp.resp.msn;
	say->old_qpn = qp_num(&m->qp);
	say->new_qpn = m->qp.elem.index;
	if (!rxe_migr_send_signed(&to, say))
		rxe_migr_count(&m->qp, counter);
}

static void send_resume(struct rxe_migr_qp *m)
{
	struct rxe_migr_say say = {
		.opcode = MIGR_OPCODE_RESUME,
		.kind = MIGR_METH_KIND_RESUME,
		.psn = m->qp.comp.psn,
		.epoch = m->epoch,
		.nonce = m->nonce,
		.old_gid = m->old_gid[0].raw,
	};

	send_signed(m, &say, RXE_CNT_MIGR_RESUME_SENT);
}

/**
 * rxe_migr_send_question - ask for an answer that is signed
 * @m: connected QP
 *
 * It changes nothing. Who can migrate acknowledges it, if it takes this QP for its
 * peer; in the place of who is not connected the driver says so. Others drop it for
 * its opcode.
 *
 * Context: m->lock held
 */
void rxe_migr_send_question(struct rxe_migr_qp *m)
{
	struct rxe_migr_say say = {
		.opcode = MIGR_OPCODE_ASK,
		.kind = MIGR_METH_KIND_ASK,
		.psn = m->qp.comp.psn,
		.epoch = m->epoch,
		.nonce = m->question,
	};

	send_signed(m, &say, RXE_CNT_MIGR_QUESTION_SENT);
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

	/* 24 bits of the epoch, compared as serial numbers */
	if ((s32)((epoch - m->peer_epoch) << 8) < 0) {
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
		 * One packet without the bit may be late, or forged, and one
		 * with it does not undo what is signed. Those of UC never
		 * have it: there RESUME_ACK answers.
		 */
		if (qp_type(qp) == IB_QPT_RC &&
		    !rxe_migr_peer_ok(READ_ONCE(m->peer)))
			rxe_migr_answered(m, capable);
		break;
	case RXE_MIGR_TRYING:
	case RXE_MIGR_PAUSED:
		/* NAK_STOPPED said that it is capable, but who can tell? */
		rxe_migr_answered(m, capable);
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
 * Check a protocol packet; returns its METH or NULL, having counted why.
 * Context: m->lock held
 */
static const u8 *check_packet(struct rxe_migr_qp *m, struct rxe_pkt_info *pkt)
{
	struct rxe_qp *qp = &m->qp;
	u8 own[16];
	int err;

	rxe_migr_sgid(&qp->pri_av, own);
	err = rxe_migr_chk_form(pkt);
	if (!err) {
		err = rxe_migr_chk_mac(pkt, qp->pri_av.grh.dgid.raw, own);
		if (err == -EBADMSG)
			err = rxe_migr_chk_mac(pkt, m->peer_gid.raw, own);
		if (err)
			rxe_err_qp(qp, "unauthentic packet, err = %d\n", err);
	}
	if (err) {
		rxe_migr_count_bad(to_rdev(qp->ibqp.device), err);
		return NULL;
	}

	return rxe_migr_meth(pkt);
}

static u8 kind_of(const u8 *meth)
{
	return meth[MIGR_METH_VER_KIND] & 0xf;
}

/* the answer to this packet */
static void send_resume_ack(struct rxe_migr_qp *m, const u8 *meth)
{
	struct rxe_migr_say say = {
		.opcode = MIGR_OPCODE_RESUME_ACK,
		.kind = kind_of(meth),
		.psn = (m->qp.resp.psn - 1) & BTH_PSN_MASK,
		.epoch = get_unaligned_be32(meth + MIGR_METH_EPOCH),
		.nonce = get_unaligned_be32(meth + MIGR_METH_NONCE),
	};

	send_signed(m, &say, RXE_CNT_MIGR_RESUME_ACK_SENT);
}

/* is it from whom this QP takes for its peer? */
static bool is_from_peer(struct rxe_qp *qp, const u8 *meth)
{
	return get_unaligned_be32(meth + MIGR_METH_NEW_QPN) ==
	       qp->attr.dest_qp_num &&
	       !memcmp(meth + MIGR_METH_GID, qp->pri_av.grh.dgid.raw, 16);
}

/*
 * The peer wants to know whether it would be followed. If this QP is Stopped, it had
 * better wait, as when it had sent a probe. Context: m->lock held
 */
static void handle_question(struct rxe_migr_qp *m, const u8 *meth)
{
	u32 epoch = get_unaligned_be32(meth + MIGR_METH_EPOCH);
	struct rxe_qp *qp = &m->qp;

	if ((s32)(epoch - m->peer_epoch) < 0) {
		rxe_migr_count(qp, RXE_CNT_MIGR_OLD_EPOCH);
	} else if (!is_from_peer(qp, meth)) {
		rxe_migr_count(qp, RXE_CNT_MIGR_BAD_ADDRESS);
	} else if (qp->migr == RXE_MIGR_STOPPED && qp_type(qp) == IB_QPT_RC) {
		rxe_migr_heard(m);
		rxe_migr_send_nak(qp);
	} else {
		send_resume_ack(m, meth);
	}
}

/* RESUME: the peer lives on at another place. Context: m->lock held */
static void handle_resume(struct rxe_migr_qp *m, struct sk_buff *skb,
			  const u8 *meth)
{
	struct rxe_qp *qp = &m->qp;
	u32 epoch = get_unaligned_be32(meth + MIGR_METH_EPOCH);
	u32 nonce = get_unaligned_be32(meth + MIGR_METH_NONCE);
	u32 old_qpn = get_unaligned_be32(meth + MIGR_METH_OLD_QPN);
	u32 new_qpn = get_unaligned_be32(meth + MIGR_METH_NEW_QPN);
	s32 age = epoch - m->peer_epoch;
	enum rxe_migr_state state;
	unsigned long flags;
	bool held;

	if (age < 0) {
		rxe_migr_count(qp, RXE_CNT_MIGR_OLD_EPOCH);
		return;
	}

	if (!new_qpn || new_qpn & ~BTH_QPN_MASK ||
	    !rxe_migr_gid_fits(&qp->pri_av, meth + MIGR_METH_GID) ||
	    (age && (old_qpn != qp->attr.dest_qp_num ||
		     !rxe_migr_has_route(qp, meth + MIGR_METH_GID)))) {
		rxe_migr_count(qp, RXE_CNT_MIGR_BAD_ADDRESS);
		return;
	}

	/*
	 * The same image was restored twice, or its QP ran on: who came first
	 * has it all.
	 */
	if (!age && (nonce != m->peer_nonce || !is_from_peer(qp, meth))) {
		rxe_migr_count(qp, RXE_CNT_MIGR_EPOCH_TAKEN);
		rxe_err_qp(qp, "RESUME of another restore, epoch = %u\n", epoch);
		return;
	}

	if (age) {
		spin_lock_irqsave(&qp->state_lock, flags);
		state = qp->migr;
		held = __rxe_migr_change(qp, RXE_MIGR_NOT_IN(STOPPED),
					 RXE_MIGR_HELD);
		spin_unlock_irqrestore(&qp->state_lock, flags);

		/* both ends migrate: the peer will try again. Or it ends */
		if (!held) {
			if (state == RXE_MIGR_STOPPED) {
				rxe_migr_heard(m);
				rxe_migr_send_nak(qp);
			}
			return;
		}

		/* its requests were refused, from softirq: see rxe_migr_rcv() */
		if (state == RXE_MIGR_RESUMING && m->ran_on)
			synchronize_net();

		memcpy(&m->peer_gid, qp->pri_av.grh.dgid.raw, 16);
		m->peer_epoch = epoch;
		m->peer_nonce = nonce;
		m->peer_stopped = false;
		rxe_migr_set_peer(qp, meth + MIGR_METH_GID, new_qpn, skb);
		rxe_migr_answered(m, true);

		/* to a QP that waits or tries, this is the proof */
		if (state != RXE_MIGR_ASKING && state != RXE_MIGR_RESUMING)
			state = RXE_MIGR_RUNNING;
		rxe_migr_run(qp, state);
	} else {
		rxe_migr_count(qp, RXE_CNT_MIGR_RESUME_REPEATED);
	}

	send_resume_ack(m, meth);
}

/*
 * RESUME_ACK: the peer knows where this QP is now, or its driver says that it is not
 * there. Context: m->lock held
 */
static void handle_resume_ack(struct rxe_migr_qp *m, const u8 *meth)
{
	bool resumed = kind_of(meth) == MIGR_METH_KIND_RESUME;
	struct rxe_qp *qp = &m->qp;

	/* from who is the peer now, and for this restore or STOP? */
	if (!is_from_peer(qp, meth)) {
		rxe_migr_count(qp, RXE_CNT_MIGR_BAD_ADDRESS);
	} else if (get_unaligned_be32(meth + MIGR_METH_EPOCH) != m->epoch ||
		   get_unaligned_be32(meth + MIGR_METH_NONCE) !=
		   (resumed ? m->nonce : m->question)) {
		rxe_migr_count(qp, RXE_CNT_MIGR_OLD_EPOCH);
	} else if (resumed) {
		m->untold = false;
		if (qp->migr == RXE_MIGR_RESUMING)
			rxe_migr_run(qp, m->peer_stopped ? RXE_MIGR_PAUSED :
							   RXE_MIGR_RUNNING);
	} else if (qp->migr == RXE_MIGR_ASKING) {
		if (kind_of(meth) == MIGR_METH_KIND_ASK)
			rxe_migr_answered(m, true);
		else
			rxe_migr_not_there(m);
	}
}

/* Context: m->lock held */
static void handle_packet(struct rxe_migr_qp *m, struct sk_buff *skb)
{
	struct rxe_pkt_info *pkt = SKB_TO_PKT(skb);
	struct rxe_qp *qp = &m->qp;
	const u8 *meth;

	if (pkt->opcode == MIGR_OPCODE_RESUME)
		rxe_migr_count(qp, RXE_CNT_MIGR_RESUME_RCVD);
	else if (pkt->opcode == MIGR_OPCODE_RESUME_ACK)
		rxe_migr_count(qp, RXE_CNT_MIGR_RESUME_ACK_RCVD);
	else
		rxe_migr_count(qp, RXE_CNT_MIGR_QUESTION_RCVD);
	if (!rxe_migr_connected(qp)) {
		rxe_migr_count(qp, RXE_CNT_MIGR_UNEXPECTED);
		return;
	}

	meth = check_packet(m, pkt);
	if (!meth)
		return;

	if (pkt->opcode == MIGR_OPCODE_RESUME)
		handle_resume(m, skb, meth);
	else if (pkt->opcode == MIGR_OPCODE_RESUME_ACK)
		handle_resume_ack(m, meth);
	else
		handle_question(m, meth);
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

	/* created as Stopped, and not let go yet */
	if (state == RXE_MIGR_STOPPED && m->peer != RXE_MIGR_PEER_CAPABLE)
		return;

	if (!rxe_migr_due(m))
		return;

	if (state == RXE_MIGR_STOPPED) {
		rxe_migr_send_nak(qp);
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
	if (state == RXE_MIGR_RESUMING || m->untold)
		send_resume(m);
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
		handle_packet(m, skb);
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
