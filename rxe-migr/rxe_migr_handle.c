// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a QP says that is signed, RESUME, RESUME_ACK, STOPPED and questions, and what it
 * does with such packets of others. docs/protocol.md has the rules.
 *
 * All of it happens in a work item of the QP, with m->lock held.
 */
#include "rxe.h"

/* --- sending --- */

static void sign_as(struct rxe_migr_qp *m, struct rxe_migr_say *say)
{
	say->msn = m->qp.resp.msn;
	say->old_qpn = qp_num(&m->qp);
	say->new_qpn = m->qp.elem.index;
	say->life = m->life;
}

/* a packet to somewhere else than to the peer */
static void send_elsewhere(struct rxe_migr_qp *m,
			   const struct rxe_migr_place *place,
			   struct rxe_migr_say *say, enum rxe_counters counter)
{
	u8 own[16];

	sign_as(m, say);
	rxe_migr_sgid(&m->qp.pri_av, own);
	if (!rxe_migr_send_by_driver(to_rdev(m->qp.ibqp.device), own, place,
				     NULL, say))
		rxe_migr_count(&m->qp, counter);
}

/* a packet to the peer */
static void send_signed(struct rxe_migr_qp *m, struct rxe_migr_say *say,
			enum rxe_counters counter)
{
	struct rxe_migr_to to = rxe_migr_to_peer(&m->qp);

	sign_as(m, say);
	if (!rxe_migr_send_signed(&to, say))
		rxe_migr_count(&m->qp, counter);
}

/**
 * rxe_migr_send_resume - tell the peer where this QP is
 * @m: connected QP, restored or having run on after a dump
 *
 * If nobody knows the life of the peer, its answer is a challenge that tells it.
 *
 * Context: m->lock held
 */
void rxe_migr_send_resume(struct rxe_migr_qp *m)
{
	struct rxe_migr_say say = {
		.opcode = MIGR_OPCODE_RESUME,
		.kind = MIGR_METH_KIND_RESUME,
		.psn = m->qp.comp.psn,
		.epoch = m->epoch,
		.nonce = m->nonce,
		.to_life = m->peer_life,
	};

	send_signed(m, &say, RXE_CNT_MIGR_RESUME_SENT);
	if (m->hint.qpn)
		send_elsewhere(m, &m->hint, &say, RXE_CNT_MIGR_RESUME_SENT);
}

/**
 * rxe_migr_send_notice - tell the tombstone of this QP where that is by now
 * @m: restored QP
 * @flags: MIGR_METH_FLAG_FOLLOWED, or 0
 *
 * Context: m->lock held
 */
void rxe_migr_send_notice(struct rxe_migr_qp *m, u8 flags)
{
	struct rxe_migr_say say = {
		.opcode = MIGR_OPCODE_ASK,
		.kind = MIGR_METH_KIND_NOTICE,
		.flags = flags,
		.psn = m->qp.comp.psn,
		.epoch = m->epoch,
		.nonce = m->nonce,
		.to_life = m->life,
	};

	if (m->from.qpn)
		send_elsewhere(m, &m->from, &say, RXE_CNT_MIGR_NOTICE_SENT);
}

/**
 * rxe_migr_send_question - ask for an answer that is signed
 * @m: connected QP
 *
 * It changes nothing. Who can migrate acknowledges it, and tells its life, if it takes
 * this QP for its peer; in the place of who is not connected the driver says so.
 * Others drop it for its opcode.
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

/**
 * rxe_migr_send_stopped - tell the peer that this QP is Stopped, and want to hear that
 * it has heard
 * @m: Stopped QP of RC
 *
 * Context: m->lock held
 */
void rxe_migr_send_stopped(struct rxe_migr_qp *m)
{
	struct rxe_migr_say say = {
		.opcode = MIGR_OPCODE_ASK,
		.kind = MIGR_METH_KIND_STOPPED,
		.psn = m->qp.comp.psn,
		.epoch = m->epoch,
		.nonce = m->question,
		.to_life = m->peer_life,
	};

	send_signed(m, &say, RXE_CNT_MIGR_STOPPED_SENT);
}

/* the answer of such a kind to this packet */
static struct rxe_migr_say answer_to(struct rxe_migr_qp *m, const u8 *meth,
				     u8 kind)
{
	return (struct rxe_migr_say){
		.opcode = MIGR_OPCODE_RESUME_ACK,
		.kind = kind,
		.psn = (m->qp.resp.psn - 1) & BTH_PSN_MASK,
		.msn = m->qp.resp.msn,
		.epoch = get_unaligned_be32(meth + MIGR_METH_EPOCH),
		.nonce = get_unaligned_be32(meth + MIGR_METH_NONCE),
		.old_qpn = qp_num(&m->qp),
		.new_qpn = m->qp.elem.index,
		.life = m->life,
		.to_life = get_unaligned_be64(meth + MIGR_METH_LIFE),
	};
}

static void send_answer(struct rxe_migr_qp *m, const u8 *meth, u8 kind)
{
	struct rxe_migr_say say = answer_to(m, meth, kind);

	send_signed(m, &say, RXE_CNT_MIGR_RESUME_ACK_SENT);
}

/* --- receiving --- */

/* check a packet; returns its METH or NULL, having counted why */
static const u8 *check_packet(struct rxe_migr_qp *m, struct rxe_pkt_info *pkt)
{
	struct rxe_qp *qp = &m->qp;
	int err;

	err = rxe_migr_chk_form(pkt);
	if (!err) {
		err = rxe_migr_chk_mac(pkt, m->life);
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

/* is it from whom this QP takes for its peer? */
static bool is_from_peer(struct rxe_qp *qp, const u8 *meth)
{
	return get_unaligned_be32(meth + MIGR_METH_NEW_QPN) ==
	       qp->attr.dest_qp_num &&
	       !memcmp(meth + MIGR_METH_GID, qp->pri_av.grh.dgid.raw, 16);
}

/*
 * The peer wants to know whether it would be followed, and this QP's life. If this QP
 * is Stopped, it had better wait. Of UC it need not.
 */
static void handle_question(struct rxe_migr_qp *m, const u8 *meth)
{
	bool stopped = m->qp.migr == RXE_MIGR_STOPPED &&
		       qp_type(&m->qp) == IB_QPT_RC;

	send_answer(m, meth, stopped ? MIGR_METH_KIND_STOPPED :
				       MIGR_METH_KIND_ASK);
}

/* The peer is Stopped: wait, as soon as there is anything to wait with */
static void handle_stopped(struct rxe_migr_qp *m, const u8 *meth)
{
	if (!(meth[MIGR_METH_FLAGS] & MIGR_METH_FLAG_UNHEARD)) {
		m->peer_life = get_unaligned_be64(meth + MIGR_METH_LIFE);
		rxe_migr_answered(m);
	}
	if (qp_type(&m->qp) == IB_QPT_RC) {
		WRITE_ONCE(m->peer_stopped, true);
		rxe_migr_pause(&m->qp);
	}
	send_answer(m, meth, MIGR_METH_KIND_PAUSED);
}

/* a question, or STOPPED */
static void handle_ask(struct rxe_migr_qp *m, const u8 *meth)
{
	u32 epoch = get_unaligned_be32(meth + MIGR_METH_EPOCH);
	struct rxe_qp *qp = &m->qp;

	/* to a tombstone, whose QP has come back, or has never gone */
	if (kind_of(meth) == MIGR_METH_KIND_NOTICE) {
		rxe_migr_count(qp, RXE_CNT_MIGR_UNEXPECTED);
		return;
	}
	if ((s32)(epoch - m->peer_epoch) < 0) {
		rxe_migr_count(qp, RXE_CNT_MIGR_OLD_EPOCH);
		return;
	}
	if (!is_from_peer(qp, meth)) {
		rxe_migr_count(qp, RXE_CNT_MIGR_BAD_ADDRESS);
		return;
	}

	if (qp->migr == RXE_MIGR_STOPPED)
		rxe_migr_heard(m);
	else if (qp->migr != RXE_MIGR_ASKING &&
		 m->peer != RXE_MIGR_PEER_ABSENT)
		rxe_migr_answered(m); /* not so fresh as what STOP wants */

	if (kind_of(meth) == MIGR_METH_KIND_ASK)
		handle_question(m, meth);
	else
		handle_stopped(m, meth);
}

/*
 * RESUME of who does not know whom it would say that to, so it may be of another
 * life. It changes nothing; this QP tells its life, to where that QP is by now.
 */
static void challenge(struct rxe_migr_qp *m, struct sk_buff *skb,
		      const u8 *meth)
{
	struct rxe_migr_say say = answer_to(m, meth,
					    MIGR_METH_KIND_CHALLENGE);

	rxe_migr_send_back(to_rdev(m->qp.ibqp.device), skb, &say);
}

/* RESUME of a newer epoch: follow. Returns false if the QP is Stopped */
static bool follow(struct rxe_migr_qp *m, struct sk_buff *skb, const u8 *meth)
{
	struct rxe_qp *qp = &m->qp;
	enum rxe_migr_state state;
	unsigned long flags;
	bool held;

	spin_lock_irqsave(&qp->state_lock, flags);
	state = qp->migr;
	held = __rxe_migr_change(qp, RXE_MIGR_NOT_IN(STOPPED), RXE_MIGR_HELD);
	spin_unlock_irqrestore(&qp->state_lock, flags);

	/* both ends migrate: the peer will try again. Or it ends */
	if (!held) {
		if (state == RXE_MIGR_STOPPED) {
			rxe_migr_get_place(meth, &m->hint);
			rxe_migr_heard(m);
			rxe_migr_send_nak(qp);
		}
		return false;
	}

	/* its requests were refused, from softirq: see rxe_migr_rcv() */
	if (state == RXE_MIGR_RESUMING && m->ran_on)
		synchronize_net();

	m->peer_epoch = get_unaligned_be32(meth + MIGR_METH_EPOCH);
	m->peer_nonce = get_unaligned_be32(meth + MIGR_METH_NONCE);
	m->peer_life = get_unaligned_be64(meth + MIGR_METH_LIFE);
	m->peer_stopped = false;
	m->hint.qpn = 0;
	rxe_migr_set_peer(qp, meth + MIGR_METH_GID,
			  get_unaligned_be32(meth + MIGR_METH_NEW_QPN), skb);
	rxe_migr_answered(m);

	/* to a QP that waits or tries, this is the proof */
	if (state != RXE_MIGR_ASKING && state != RXE_MIGR_RESUMING)
		state = RXE_MIGR_RUNNING;
	rxe_migr_run(qp, state);

	return true;
}

/* RESUME: the peer lives on at another place */
static void handle_resume(struct rxe_migr_qp *m, struct sk_buff *skb,
			  const u8 *meth)
{
	struct rxe_qp *qp = &m->qp;
	u32 epoch = get_unaligned_be32(meth + MIGR_METH_EPOCH);
	u32 nonce = get_unaligned_be32(meth + MIGR_METH_NONCE);
	u32 old_qpn = get_unaligned_be32(meth + MIGR_METH_OLD_QPN);
	u32 new_qpn = get_unaligned_be32(meth + MIGR_METH_NEW_QPN);
	s32 age = epoch - m->peer_epoch;

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

	if (meth[MIGR_METH_FLAGS] & MIGR_METH_FLAG_UNHEARD) {
		challenge(m, skb, meth);
		return;
	}

	if (!age)
		rxe_migr_count(qp, RXE_CNT_MIGR_RESUME_REPEATED);
	else if (!follow(m, skb, meth))
		return;

	send_answer(m, meth, MIGR_METH_KIND_RESUME);
}

/* RESUME_ACK, which is from the peer and answers the last RESUME or question */
static void take_answer(struct rxe_migr_qp *m, const u8 *meth)
{
	u64 life = get_unaligned_be64(meth + MIGR_METH_LIFE);
	bool is_new = life != m->peer_life;
	struct rxe_qp *qp = &m->qp;

	if (kind_of(meth) == MIGR_METH_KIND_NOBODY) {
		if (qp->migr == RXE_MIGR_ASKING || m->unheard)
			rxe_migr_not_there(m);
		return;
	}

	m->peer_life = life;
	switch (kind_of(meth)) {
	case MIGR_METH_KIND_RESUME:
		m->untold = false;
		m->hint.qpn = 0;
		/* if that is lost its time will be over some day */
		rxe_migr_send_notice(m, MIGR_METH_FLAG_FOLLOWED);
		m->from.qpn = 0;
		if (qp->migr == RXE_MIGR_RESUMING)
			rxe_migr_run(qp, m->peer_stopped ? RXE_MIGR_PAUSED :
							   RXE_MIGR_RUNNING);
		break;
	case MIGR_METH_KIND_CHALLENGE:
		if (is_new && (qp->migr == RXE_MIGR_RESUMING || m->untold))
			rxe_migr_send_resume(m);
		break;
	case MIGR_METH_KIND_PAUSED:
		rxe_migr_is_heard(m);
		break;
	default:
		if (qp->migr == RXE_MIGR_STOPPED)
			break;
		rxe_migr_answered(m);
		if (kind_of(meth) == MIGR_METH_KIND_STOPPED)
			rxe_migr_pause(qp);
	}
}

/*
 * A tombstone: of the peer, which has moved as well, says where that is, or the QP's own,
 * to which NOTICE has told where it is itself. Nobody is followed for that: the peer
 * may be restored elsewhere, once more. It is told RESUME there, too.
 */
static void take_hint(struct rxe_migr_qp *m, const u8 *meth)
{
	struct rxe_migr_place place;

	if (kind_of(meth) == MIGR_METH_KIND_MOVED) {
		rxe_migr_count(&m->qp, RXE_CNT_MIGR_MOVED_RCVD);
	} else {
		m->noticed = true;
		if (!(meth[MIGR_METH_FLAGS] & MIGR_METH_FLAG_HINT))
			return;
	}
	rxe_migr_get_place(meth, &place);
	if (!place.qpn || place.qpn & ~BTH_QPN_MASK ||
	    !rxe_migr_gid_fits(&m->qp.pri_av, place.gid)) {
		rxe_migr_count(&m->qp, RXE_CNT_MIGR_BAD_ADDRESS);
		return;
	}
	if (m->qp.migr != RXE_MIGR_RESUMING && !m->untold)
		return;
	if (memcmp(&m->hint, &place, sizeof(place))) {
		m->hint = place;
		rxe_migr_send_resume(m);
	}
}

static void handle_resume_ack(struct rxe_migr_qp *m, const u8 *meth)
{
	u8 kind = kind_of(meth);
	bool hint = kind == MIGR_METH_KIND_MOVED ||
		    kind == MIGR_METH_KIND_NOTICE;
	bool of_resume = kind == MIGR_METH_KIND_RESUME ||
			 kind == MIGR_METH_KIND_CHALLENGE || hint;
	struct rxe_qp *qp = &m->qp;

	/* from who is the peer now, and for this restore or STOP? */
	if (!hint && !is_from_peer(qp, meth))
		rxe_migr_count(qp, RXE_CNT_MIGR_BAD_ADDRESS);
	else if (get_unaligned_be32(meth + MIGR_METH_EPOCH) != m->epoch ||
		 get_unaligned_be32(meth + MIGR_METH_NONCE) !=
		 (of_resume ? m->nonce : m->question))
		rxe_migr_count(qp, RXE_CNT_MIGR_OLD_EPOCH);
	else if (hint)
		take_hint(m, meth);
	else
		take_answer(m, meth);
}

/**
 * rxe_migr_handle - do what a signed packet says, or count why not
 * @m: the QP
 * @skb: the packet
 *
 * Context: process; m->lock held
 */
void rxe_migr_handle(struct rxe_migr_qp *m, struct sk_buff *skb)
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
		handle_ask(m, meth);
}
