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
#include <linux/random.h>

#include "rxe.h"
#include "rxe_queue.h"

#define MAX_QUEUED	8	/* unhandled protocol packets of one QP */

/* what follows the BTH in RESUME and RESUME_ACK */
#define BODY_BYTES	(RXE_AETH_BYTES + MIGR_METH_BYTES)

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

/* --- sending --- */

/* send a packet that is not a request or response to the rest of the driver */
static int send_packet(struct rxe_qp *qp, u8 opcode, u32 psn, int ack_req,
		       const u8 *body, size_t len)
{
	struct rxe_pkt_info pkt = {};
	struct sk_buff *skb;
	int err;

	pkt.qp = qp;
	pkt.opcode = opcode;
	pkt.psn = psn;
	pkt.paylen = RXE_BTH_BYTES + len + RXE_ICRC_SIZE;

	skb = rxe_init_packet(to_rdev(qp->ibqp.device), &qp->pri_av,
			      pkt.paylen, &pkt);
	if (!skb)
		return -ENOMEM;

	bth_init(&pkt, opcode, 0, 0, 0, IB_DEFAULT_PKEY_FULL,
		 qp->attr.dest_qp_num, ack_req, psn);
	memcpy(pkt.hdr + RXE_BTH_BYTES, body, len);

	err = rxe_prepare(&qp->pri_av, &pkt, skb);
	if (err) {
		kfree_skb(skb);
		return err;
	}

	return rxe_xmit_packet(qp, &pkt, skb);
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
	__be32 aeth = cpu_to_be32((u32)MIGR_AETH_NAK_STOPPED << 24 |
				  (m->epoch & MIGR_NAK_EPOCH_MASK));

	if (qp_type(qp) != IB_QPT_RC)
		return;

	/* one per tick of the clock is enough to pause the sender */
	if (!time_after(jiffies, m->last_nak))
		return;
	m->last_nak = jiffies;

	if (!send_packet(qp, IB_OPCODE_RC_ACKNOWLEDGE, qp->resp.psn, 0,
			 (u8 *)&aeth, sizeof(aeth)))
		rxe_migr_count(qp, RXE_CNT_MIGR_NAK_STOPPED_SENT);
}

/**
 * rxe_migr_send_probe - make the peer say something
 * @qp: connected QP
 *
 * Sends what every responder must answer and nobody minds: a duplicate, a SEND
 * Only without data whose PSN is one before the oldest unacknowledged one. A
 * Stopped peer says NAK_STOPPED, any other acknowledges (IBA C9-105), but not
 * every driver with a PSN that means anything: see rxe_migr_ignores().
 *
 * Before RTS comp.psn is that of the life before, and the peer may wait for just
 * the PSN before it. It says something to any other one, so chance has to do.
 */
void rxe_migr_send_probe(struct rxe_qp *qp)
{
	u32 psn = qp_state(qp) < IB_QPS_RTS ? get_random_u32() :
					      qp->comp.psn - 1;

	if (!send_packet(qp, IB_OPCODE_RC_SEND_ONLY, psn & BTH_PSN_MASK, 1,
			 NULL, 0))
		rxe_migr_count(qp, RXE_CNT_MIGR_PROBE_SENT);
}

/* what the MAC covers, see rxe_migr_wire.h; @body's own MAC counts as zero */
static void mac_input(u8 *in, u8 opcode, u32 qpn, u32 psn, const u8 *body,
		      const u8 *from, const u8 *to)
{
	in[0] = opcode;
	put_unaligned_be24(qpn, in + 1);
	put_unaligned_be24(psn, in + 4);
	memcpy(in + 7, body, BODY_BYTES);
	memset(in + MIGR_MAC_METH + MIGR_METH_MAC, 0, MIGR_MAC_BYTES);
	memcpy(in + MIGR_MAC_FROM, from, 16);
	memcpy(in + MIGR_MAC_TO, to, 16);
}

/* send RESUME or RESUME_ACK. Context: m->lock held */
static void send_signed(struct rxe_migr_qp *m, u8 opcode, u8 kind, u32 psn,
			u32 epoch, u32 nonce, enum rxe_counters counter)
{
	struct rxe_qp *qp = &m->qp;
	u8 in[MIGR_MAC_INPUT_BYTES];
	u8 body[BODY_BYTES] = {};
	u8 *meth = body + RXE_AETH_BYTES;
	bool moved = opcode == MIGR_OPCODE_RESUME &&
		     kind == MIGR_METH_KIND_RESUME;
	int err;

	put_unaligned_be32((u32)AETH_ACK_UNLIMITED << 24 |
			   (qp->resp.msn & 0xffffff), body);
	meth[MIGR_METH_VER_KIND] = MIGR_METH_VERSION << 4 | kind;
	put_unaligned_be32(epoch, meth + MIGR_METH_EPOCH);
	put_unaligned_be32(qp_num(qp), meth + MIGR_METH_OLD_QPN);
	put_unaligned_be32(qp->elem.index, meth + MIGR_METH_NEW_QPN);
	rxe_migr_sgid(&qp->pri_av, meth + MIGR_METH_GID);
	put_unaligned_be16(qp->src_port, meth + MIGR_METH_UDP_PORT);
	put_unaligned_be32(nonce, meth + MIGR_METH_NONCE);

	mac_input(in, opcode, qp->attr.dest_qp_num, psn, body,
		  moved ? m->old_gid[0].raw : meth + MIGR_METH_GID,
		  qp->pri_av.grh.dgid.raw);
	err = rxe_migr_key_sign(&in[MIGR_MAC_METH + MIGR_METH_KEY_ID], in,
				sizeof(in), meth + MIGR_METH_MAC,
				MIGR_MAC_BYTES);
	if (err) {
		rxe_err_qp(qp, "cannot sign, err = %d\n", err);
		return;
	}
	meth[MIGR_METH_KEY_ID] = in[MIGR_MAC_METH + MIGR_METH_KEY_ID];

	if (!send_packet(qp, opcode, psn, opcode == MIGR_OPCODE_RESUME, body,
			 sizeof(body)))
		rxe_migr_count(qp, counter);
}

/**
 * rxe_migr_send_question - can the peer of a UC QP migrate?
 * @m: connected QP
 *
 * No request of UC is answered, so this is a packet of its own: a RESUME of a kind
 * that changes nothing, and that is acknowledged by who can, if it takes this QP
 * for its peer. Others drop it for its opcode, which is one of RC.
 *
 * Context: m->lock held
 */
void rxe_migr_send_question(struct rxe_migr_qp *m)
{
	send_signed(m, MIGR_OPCODE_RESUME, MIGR_METH_KIND_ASK, m->qp.comp.psn,
		    m->epoch, m->nonce, RXE_CNT_MIGR_PROBE_SENT);
}

/* --- receiving --- */

/**
 * rxe_migr_wants - hook: a packet failed check_type_state(), take it anyway?
 * @pkt: a packet
 * @qp: its QP
 *
 * A QP in RTR sends no requests and so gets no responses; but it does get
 * RESUME_ACK, NAK_STOPPED, and the answer when STOP asks for the peer's
 * capability. To UC these packets are of another type.
 */
bool rxe_migr_wants(struct rxe_pkt_info *pkt, struct rxe_qp *qp)
{
	if (!qp->valid || pkt->opcode >> 5 || !rxe_migr_connected(qp))
		return false;

	return (pkt->mask & RXE_MIGR_MASK) ||
	       (qp_type(qp) == IB_QPT_RC &&
		(qp->migr == RXE_MIGR_ASKING || rxe_migr_is_nak(pkt)));
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
	if (!(pkt->hdr[MIGR_BTH_CAP_BYTE] & MIGR_BTH_CAP_BIT) ||
	    !rxe_migr_connected(qp))
		return;

	rxe_migr_heard(to_migr_qp(qp));
	if (pkt->mask & RXE_REQ_MASK)
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
		 * One packet without the bit may be late, or forged. Those of
		 * UC never have it: there RESUME_ACK answers.
		 */
		if (qp_type(qp) == IB_QPT_RC &&
		    m->peer != RXE_MIGR_PEER_CAPABLE &&
		    (capable || m->peer != RXE_MIGR_PEER_ENDED))
			rxe_migr_answered(m, capable);
		if (!request && qp_state(qp) < IB_QPS_RTS)
			goto drop;
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

/* is the MAC that of a peer which takes itself to be known at @from? */
static int check_mac(struct rxe_qp *qp, struct rxe_pkt_info *pkt,
		     const u8 *from)
{
	const u8 *body = payload_addr(pkt);
	const u8 *meth = body + RXE_AETH_BYTES;
	u8 in[MIGR_MAC_INPUT_BYTES];
	u8 own[16];

	rxe_migr_sgid(&qp->pri_av, own);
	mac_input(in, pkt->opcode, bth_qpn(pkt), pkt->psn, body, from, own);

	return rxe_migr_key_check(meth[MIGR_METH_KEY_ID], in, sizeof(in),
				  meth + MIGR_METH_MAC, MIGR_MAC_BYTES);
}

/*
 * Check a protocol packet; returns its METH or NULL, having counted why.
 * Context: m->lock held
 */
static const u8 *check_packet(struct rxe_migr_qp *m, struct rxe_pkt_info *pkt)
{
	struct rxe_qp *qp = &m->qp;
	const u8 *meth = payload_addr(pkt) + RXE_AETH_BYTES;
	int err;

	if (bth_pad(pkt) || payload_size(pkt) != BODY_BYTES) {
		rxe_migr_count(qp, RXE_CNT_MIGR_BAD_LENGTH);
		return NULL;
	}

	if (meth[MIGR_METH_VER_KIND] !=
	    (MIGR_METH_VERSION << 4 | MIGR_METH_KIND_RESUME) &&
	    meth[MIGR_METH_VER_KIND] !=
	    (MIGR_METH_VERSION << 4 | MIGR_METH_KIND_ASK)) {
		rxe_migr_count(qp, RXE_CNT_MIGR_BAD_VERSION);
		return NULL;
	}

	err = check_mac(qp, pkt, qp->pri_av.grh.dgid.raw);
	if (err == -EBADMSG)
		err = check_mac(qp, pkt, m->peer_gid.raw);
	if (err) {
		rxe_migr_count(qp, err == -ENOKEY ? RXE_CNT_MIGR_BAD_KEY :
					   RXE_CNT_MIGR_BAD_MAC);
		rxe_err_qp(qp, "unauthentic packet, err = %d\n", err);
		return NULL;
	}

	return meth;
}

/* the answer to this packet */
static void send_resume_ack(struct rxe_migr_qp *m, const u8 *meth)
{
	send_signed(m, MIGR_OPCODE_RESUME_ACK,
		    meth[MIGR_METH_VER_KIND] & 0xf,
		    (m->qp.resp.psn - 1) & BTH_PSN_MASK,
		    get_unaligned_be32(meth + MIGR_METH_EPOCH),
		    get_unaligned_be32(meth + MIGR_METH_NONCE),
		    RXE_CNT_MIGR_RESUME_ACK_SENT);
}

static bool is_question(const u8 *meth)
{
	return (meth[MIGR_METH_VER_KIND] & 0xf) == MIGR_METH_KIND_ASK;
}

/* is it from whom this QP takes for its peer? */
static bool is_from_peer(struct rxe_qp *qp, const u8 *meth)
{
	return get_unaligned_be32(meth + MIGR_METH_NEW_QPN) ==
	       qp->attr.dest_qp_num &&
	       !memcmp(meth + MIGR_METH_GID, qp->pri_av.grh.dgid.raw, 16);
}

/* the peer wants to know whether it would be followed. Context: m->lock held */
static void handle_question(struct rxe_migr_qp *m, const u8 *meth)
{
	u32 epoch = get_unaligned_be32(meth + MIGR_METH_EPOCH);

	if ((s32)(epoch - m->peer_epoch) < 0)
		rxe_migr_count(&m->qp, RXE_CNT_MIGR_OLD_EPOCH);
	else if (!is_from_peer(&m->qp, meth))
		rxe_migr_count(&m->qp, RXE_CNT_MIGR_BAD_ADDRESS);
	else
		send_resume_ack(m, meth);
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

		/* both ends migrate: the peer will try again */
		if (!held) {
			rxe_migr_heard(m);
			rxe_migr_send_nak(qp);
			return;
		}

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

/* RESUME_ACK: the peer knows where this QP is now. Context: m->lock held */
static void handle_resume_ack(struct rxe_migr_qp *m, const u8 *meth)
{
	struct rxe_qp *qp = &m->qp;

	/* from who is the peer now, and for this restore or STOP? */
	if (!is_from_peer(qp, meth)) {
		rxe_migr_count(qp, RXE_CNT_MIGR_BAD_ADDRESS);
	} else if (get_unaligned_be32(meth + MIGR_METH_EPOCH) != m->epoch ||
		   get_unaligned_be32(meth + MIGR_METH_NONCE) != m->nonce) {
		rxe_migr_count(qp, RXE_CNT_MIGR_OLD_EPOCH);
	} else if (is_question(meth)) {
		if (qp->migr == RXE_MIGR_ASKING)
			rxe_migr_answered(m, true);
	} else {
		m->untold = false;
		if (qp->migr == RXE_MIGR_RESUMING)
			rxe_migr_run(qp, RXE_MIGR_RUNNING);
	}
}

/* Context: m->lock held */
static void handle_packet(struct rxe_migr_qp *m, struct sk_buff *skb)
{
	struct rxe_pkt_info *pkt = SKB_TO_PKT(skb);
	struct rxe_qp *qp = &m->qp;
	bool resume = pkt->opcode == MIGR_OPCODE_RESUME;
	const u8 *meth;

	rxe_migr_count(qp, resume ? RXE_CNT_MIGR_RESUME_RCVD :
			   RXE_CNT_MIGR_RESUME_ACK_RCVD);
	if (!rxe_migr_connected(qp)) {
		rxe_migr_count(qp, RXE_CNT_MIGR_UNEXPECTED);
		return;
	}

	meth = check_packet(m, pkt);
	if (!meth)
		return;

	if (resume && is_question(meth))
		handle_question(m, meth);
	else if (resume)
		handle_resume(m, skb, meth);
	else
		handle_resume_ack(m, meth);
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
		send_signed(m, MIGR_OPCODE_RESUME, MIGR_METH_KIND_RESUME,
			    qp->comp.psn, m->epoch, m->nonce,
			    RXE_CNT_MIGR_RESUME_SENT);
}

static void migr_work(struct work_struct *work)
{
	struct rxe_migr_qp *m = container_of(to_delayed_work(work),
					     struct rxe_migr_qp, work);
	struct rxe_qp *qp = &m->qp;
	struct ib_device *dev = qp->ibqp.device;
	struct sk_buff *skb;

	/* what is sent refers to the QP, so not while it is being destroyed */
	if (rxe_get(qp)) {
		mutex_lock(&m->lock);
		tick(m);
		mutex_unlock(&m->lock);
		rxe_put(qp);
	}

	while ((skb = skb_dequeue(&m->pkts))) {
		mutex_lock(&m->lock);
		handle_packet(m, skb);
		mutex_unlock(&m->lock);
		kfree_skb(skb);
		rxe_put(qp);
		ib_device_put(dev);
	}
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
