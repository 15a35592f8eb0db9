// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Peers that are not there: not connected yet, or not any more. STOP asks them, and
 * as no QP would answer, the driver does in the place of one.
 */
#include <linux/timekeeping.h>
#include <linux/xarray.h>
#include <net/ipv6.h>

#include "rxe.h"

#define MAX_STRAYS	64	/* unhandled questions, of all devices */

/* how long a QP that has left may be on its way; docs/protocol.md */
#define LEFT_S		600

static void answer_strays(struct work_struct *work);

static struct sk_buff_head strays;
static DECLARE_WORK(stray_work, answer_strays);

/* --- who has left --- */

/* when (seconds since boot), of device and QPN: lives on somewhere, or will */
static DEFINE_XARRAY(left);

/* there was no memory to note one: nobody is said to be absent before */
static time64_t silent_until;

static unsigned long left_key(struct rxe_dev *rxe, u32 qpn)
{
	return (unsigned long)rxe->ib_dev.index << 24 | qpn;
}

static bool is_over(void *entry, time64_t now)
{
	return now - (time64_t)xa_to_value(entry) >= LEFT_S;
}

/**
 * rxe_migr_leave - a QP of which there is an image is being destroyed
 * @qp: the QP
 *
 * Context: process; sleeps.
 */
void rxe_migr_leave(struct rxe_qp *qp)
{
	static time64_t swept;
	time64_t now = ktime_get_boottime_seconds();
	unsigned long key;
	void *entry;

	if (now - READ_ONCE(swept) >= LEFT_S) {
		WRITE_ONCE(swept, now);
		xa_for_each(&left, key, entry)
			if (is_over(entry, now))
				xa_erase(&left, key);
	}

	key = left_key(to_rdev(qp->ibqp.device), qp_num(qp));
	if (xa_err(xa_store(&left, key, xa_mk_value(now), GFP_KERNEL)))
		WRITE_ONCE(silent_until, now + LEFT_S);
}

/**
 * rxe_migr_come_back - a QP has been restored where it was, or where its number was
 * @qp: the QP, filled
 *
 * Context: process; sleeps.
 */
void rxe_migr_come_back(struct rxe_qp *qp)
{
	xa_erase(&left, left_key(to_rdev(qp->ibqp.device), qp_num(qp)));
}

static bool has_left(struct rxe_dev *rxe, u32 qpn)
{
	time64_t now = ktime_get_boottime_seconds();
	void *entry = xa_load(&left, left_key(rxe, qpn));

	return (entry && !is_over(entry, now)) || now < READ_ONCE(silent_until);
}

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

	if (qpn < 2 || has_left(rxe, qpn))
		return false;

	elem = rxe_migr_get(&rxe->qp_pool, qpn);
	if (elem) {
		nobody = is_alone(elem->obj);
		__rxe_put(elem);
	}

	/* one that goes just now was noted before it was hidden */
	return nobody && !has_left(rxe, qpn);
}

/* a GID of the device; to be given back. Or an error */
static const struct ib_gid_attr *own_gid(struct rxe_dev *rxe,
					 const union ib_gid *gid)
{
	return rdma_find_gid_by_port(&rxe->ib_dev, gid,
				     IB_GID_TYPE_ROCE_UDP_ENCAP, 1, NULL);
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

	attr = own_gid(rxe, (void *)qp->pri_av.grh.dgid.raw);
	if (!IS_ERR(attr)) {
		rdma_put_gid_attr(attr);
		if (rxe_migr_is_here(rxe, &qp->pri_av) &&
		    is_nobody(rxe, qp->attr.dest_qp_num))
			rxe_migr_not_there(m);
	}

	return m->peer == RXE_MIGR_PEER_ABSENT;
}

/* --- questions to nobody --- */

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
	if (pkt->opcode != MIGR_OPCODE_ASK)
		return false;

	if (skb_queue_len(&strays) >= MAX_STRAYS) {
		rxe_counter_inc(pkt->rxe, RXE_CNT_MIGR_UNEXPECTED);
		return false;
	}

	skb_queue_tail(&strays, skb);
	rxe_migr_queue_work(&stray_work);
	return true;
}

/* where the packet was sent to */
static void get_dgid(struct sk_buff *skb, union ib_gid *gid)
{
	if (skb->protocol == htons(ETH_P_IP))
		ipv6_addr_set_v4mapped(ip_hdr(skb)->daddr,
				       (struct in6_addr *)gid);
	else
		memcpy(gid, &ipv6_hdr(skb)->daddr, sizeof(*gid));
}

/* the way back to who has asked; false if there is none */
static bool lead_back(struct rxe_dev *rxe, const union ib_gid *own,
		      struct sk_buff *skb, const u8 *meth, struct rxe_av *av)
{
	struct rdma_ah_attr ah = { .type = RDMA_AH_ATTR_TYPE_ROCE };
	const struct ib_gid_attr *attr = own_gid(rxe, own);
	union ib_gid dgid;

	if (IS_ERR(attr))
		return false;

	memcpy(&dgid, meth + MIGR_METH_GID, sizeof(dgid));
	rdma_ah_set_port_num(&ah, 1);
	rdma_ah_set_grh(&ah, &dgid, 0, attr->index, IPV6_DEFAULT_HOPLIMIT, 0);
	ah.grh.sgid_attr = attr;
	rxe_init_av(&ah, av);
	rxe_migr_set_dmac(rxe, av, skb);
	rdma_put_gid_attr(attr);

	return rxe_migr_gid_fits(av, dgid.raw);
}

/**
 * rxe_migr_send_back - answer a signed packet as the driver, not as the QP it came for
 * @rxe: the device
 * @skb: the packet, which says where its sender is
 * @say: what to say
 *
 * Context: process; sleeps.
 */
void rxe_migr_send_back(struct rxe_dev *rxe, struct sk_buff *skb,
			struct rxe_migr_say *say)
{
	const u8 *meth = rxe_migr_meth(SKB_TO_PKT(skb));
	struct rxe_pool_elem *elem;
	struct rxe_migr_to to;
	union ib_gid own;
	struct rxe_av av;

	get_dgid(skb, &own);
	if (!lead_back(rxe, &own, skb, meth, &av)) {
		rxe_counter_inc(rxe, RXE_CNT_MIGR_UNEXPECTED);
		return;
	}

	/* somebody must send it, and there is one on every device */
	elem = rxe_migr_get(&rxe->qp_pool, rxe->port.qp_gsi_index);
	if (!elem)
		return;

	to.qp = elem->obj;
	to.av = &av;
	to.qpn = get_unaligned_be32(meth + MIGR_METH_NEW_QPN);
	if (qp_type(to.qp) == IB_QPT_GSI && !rxe_migr_send_signed(&to, say))
		rxe_counter_inc(rxe, RXE_CNT_MIGR_RESUME_ACK_SENT);
	__rxe_put(elem);
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
		if (!rxe_icrc_check(skb, SKB_TO_PKT(skb)))
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

/* devices are gone, and their questions with them */
void rxe_migr_absent_exit(void)
{
	xa_destroy(&left);
}
