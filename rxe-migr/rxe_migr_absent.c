// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Peers that are not there: not connected yet, or not any more. STOP asks them, and
 * as no QP would answer, the driver does in the place of one.
 */
#include "rxe.h"

#define MAX_STRAYS	64	/* unhandled packets, of all devices */

static void answer_strays(struct work_struct *work);

static struct sk_buff_head strays;
static DECLARE_WORK(stray_work, answer_strays);

/* is a QP not connected, nor about to be, nor does an image say that it is? */
static bool is_alone(struct rxe_qp *qp)
{
	struct rxe_migr_qp *m = to_migr_qp(qp);

	if (m->wanted.type && !READ_ONCE(m->refilled))
		return false;
	if (READ_ONCE(qp->migr) == RXE_MIGR_STOPPED &&
	    READ_ONCE(m->dumped_alive))
		return false;

	return !rxe_migr_connected(qp);
}

/* is there no QP of this number that is connected to anybody, or lives elsewhere? */
static bool is_nobody(struct rxe_dev *rxe, u32 qpn)
{
	struct rxe_pool_elem *elem;
	bool nobody = true;

	if (qpn < 2 || rxe_migr_has_left(rxe, qpn))
		return false;

	elem = rxe_migr_get(&rxe->qp_pool, qpn);
	if (elem) {
		nobody = is_alone(elem->obj);
		__rxe_put(elem);
	}

	/* one that goes just now was noted before it was hidden */
	return nobody && !rxe_migr_has_left(rxe, qpn);
}

/**
 * rxe_migr_peer_absent - is the peer of a QP not there?
 * @qp: Stopped QP
 *
 * STOP has asked; of a peer on the same device it may have become true since. One that
 * was elsewhere may be on its way to here, and its address has come already.
 *
 * Context: process; m->lock held
 * Return: true if nobody need accept RESUME
 */
bool rxe_migr_peer_absent(struct rxe_qp *qp)
{
	struct rxe_dev *rxe = to_rdev(qp->ibqp.device);
	struct rxe_migr_qp *m = to_migr_qp(qp);
	const struct ib_gid_attr *attr;

	if (!rxe_migr_connected(qp))
		return false;

	attr = rxe_migr_own_gid(rxe, qp->pri_av.grh.dgid.raw);
	if (!IS_ERR(attr)) {
		rdma_put_gid_attr(attr);
		if (rxe_migr_is_here(rxe, &qp->pri_av) &&
		    is_nobody(rxe, qp->attr.dest_qp_num))
			rxe_migr_not_there(m);
	}

	return m->peer == RXE_MIGR_PEER_ABSENT;
}

/* --- packets to nobody --- */

/**
 * rxe_migr_stray - hook in rxe_rcv(): no QP takes this packet, does the driver?
 * @pkt: a packet, whose ICRC has not been looked at
 * @skb: holds @pkt, and a reference to the device
 *
 * Context: softirq, or the sender's task for loopback
 * Return: true if @skb was consumed
 */
bool rxe_migr_stray(struct rxe_pkt_info *pkt, struct sk_buff *skb)
{
	if (pkt->opcode != MIGR_OPCODE_ASK &&
	    !rxe_migr_has_tomb(pkt->rxe, bth_qpn(pkt)))
		return false;

	if (skb_queue_len(&strays) >= MAX_STRAYS) {
		rxe_counter_inc(pkt->rxe, RXE_CNT_MIGR_UNEXPECTED);
		return false;
	}

	skb_queue_tail(&strays, skb);
	rxe_migr_queue_work(&stray_work);
	return true;
}

static void answer(struct rxe_dev *rxe, struct sk_buff *skb)
{
	struct rxe_pkt_info *pkt = SKB_TO_PKT(skb);
	struct rxe_migr_say say = {
		.opcode = MIGR_OPCODE_RESUME_ACK,
		.kind = MIGR_METH_KIND_NOBODY,
		.old_qpn = bth_qpn(pkt),
		.new_qpn = bth_qpn(pkt),
	};
	const u8 *meth;
	int err;

	rxe_counter_inc(rxe, RXE_CNT_MIGR_QUESTION_RCVD);
	err = rxe_migr_chk_form(pkt);
	/* STOPPED, to the life of somebody who is no more */
	if (!err && !(rxe_migr_meth(pkt)[MIGR_METH_FLAGS] &
		      MIGR_METH_FLAG_UNHEARD)) {
		rxe_counter_inc(rxe, RXE_CNT_MIGR_UNEXPECTED);
		return;
	}
	if (!err)
		err = rxe_migr_chk_mac(pkt, 0);
	if (err) {
		rxe_migr_count_bad(rxe, err);
		return;
	}

	meth = rxe_migr_meth(pkt);
	if ((meth[MIGR_METH_VER_KIND] & 0xf) != MIGR_METH_KIND_ASK ||
	    !is_nobody(rxe, bth_qpn(pkt))) {
		rxe_counter_inc(rxe, RXE_CNT_MIGR_UNEXPECTED);
		return;
	}

	say.epoch = get_unaligned_be32(meth + MIGR_METH_EPOCH);
	say.nonce = get_unaligned_be32(meth + MIGR_METH_NONCE);
	say.to_life = get_unaligned_be64(meth + MIGR_METH_LIFE);
	rxe_migr_send_back(rxe, skb, &say);
}

static void answer_strays(struct work_struct *work)
{
	struct sk_buff *skb;
	struct rxe_dev *rxe;

	while ((skb = skb_dequeue(&strays))) {
		rxe = SKB_TO_PKT(skb)->rxe;
		if (!rxe_icrc_check(skb, SKB_TO_PKT(skb)) &&
		    !rxe_migr_tomb_rcv(rxe, skb) &&
		    SKB_TO_PKT(skb)->opcode == MIGR_OPCODE_ASK)
			answer(rxe, skb);
		kfree_skb(skb);
		ib_device_put(&rxe->ib_dev);
		cond_resched();
	}
}

void rxe_migr_absent_init(void)
{
	skb_queue_head_init(&strays);
}
