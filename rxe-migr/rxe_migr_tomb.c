// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Tombstones: what is left of a QP that an image took elsewhere. For as long as a peer
 * may still speak to it, it tells peers to wait, and one that has moved as well where
 * the QP is by now. Nobody gets its number meanwhile. docs/protocol.md has the rules.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/timekeeping.h>
#include <linux/xarray.h>

#include "rxe.h"

#define MAX_TOMBS	65536	/* of all devices; then the oldest are no help */
#define SWEEP_S		10

static unsigned int migr_tombstone_timeout = 600;
module_param(migr_tombstone_timeout, uint, 0644);
MODULE_PARM_DESC(migr_tombstone_timeout,
		 "Seconds for which the number of a QP that has left is kept");

/**
 * struct rxe_migr_tomb - of a QP that has left
 * @rxe: its device
 * @av: leads to where its peer was
 * @since: seconds since boot, when it left
 * @life: of the QP
 * @peer_life: of its peer, or 0
 * @qpn: of the QP
 * @peer_qpn: of its peer
 * @epoch: of the QP, when it left or by the last NOTICE
 * @peer_epoch: of its peer
 * @psn: the one it expected
 * @rc: its peer can be told to wait
 * @keeps: the number is kept for it
 * @to: where the QP is by now, of which NOTICE has told
 * @peer: where its peer is by now, of which RESUME has told
 */
struct rxe_migr_tomb {
	struct rxe_dev		*rxe;
	struct rxe_av		av;
	time64_t		since;
	u64			life;
	u64			peer_life;
	u32			qpn;
	u32			peer_qpn;
	u32			epoch;
	u32			peer_epoch;
	u32			psn;
	bool			rc;
	bool			keeps;
	struct rxe_migr_place	to;
	struct rxe_migr_place	peer;
};

/* by device and QPN; softirq looks whether there is one, without the mutex */
static DEFINE_XARRAY(tombs);
static DEFINE_MUTEX(tombs_lock);
static unsigned int tombs_count;

/* there was no memory for one: until then any number may be that of one */
static time64_t silent_until;

static struct dentry *debug_dir;

static void sweep(struct work_struct *work);
static DECLARE_DELAYED_WORK(sweep_work, sweep);

static unsigned long tomb_key(const struct rxe_dev *rxe, u32 qpn)
{
	return (unsigned long)rxe->ib_dev.index << 24 | qpn;
}

/* Context: tombs_lock held */
static void forget(struct rxe_migr_tomb *tomb)
{
	xa_erase(&tombs, tomb_key(tomb->rxe, tomb->qpn));
	tombs_count--;
	kfree(tomb);
}

/* its number is given out again. Context: tombs_lock held */
static void bury(struct rxe_migr_tomb *tomb)
{
	if (tomb->keeps)
		xa_erase(&tomb->rxe->qp_pool.xa, tomb->qpn);
	forget(tomb);
}

static void sweep(struct work_struct *work)
{
	time64_t now = ktime_get_boottime_seconds();
	unsigned int timeout = READ_ONCE(migr_tombstone_timeout);
	struct rxe_migr_tomb *tomb;
	unsigned long key;

	mutex_lock(&tombs_lock);
	xa_for_each(&tombs, key, tomb)
		if (now - tomb->since >= timeout)
			bury(tomb);
	if (tombs_count)
		schedule_delayed_work(&sweep_work, SWEEP_S * HZ);
	mutex_unlock(&tombs_lock);
}

/* --- who has left --- */

/*
 * The tombstone of a number, made anew if there is one. Context: tombs_lock held
 * Return: NULL without memory, or if there are too many
 */
static struct rxe_migr_tomb *get_tomb(struct rxe_dev *rxe, u32 qpn)
{
	struct rxe_migr_tomb *tomb = xa_load(&tombs, tomb_key(rxe, qpn));

	if (tomb)
		return tomb;
	if (tombs_count >= MAX_TOMBS)
		return NULL;
	tomb = kmalloc(sizeof(*tomb), GFP_KERNEL);
	if (!tomb)
		return NULL;
	if (xa_err(xa_store(&tombs, tomb_key(rxe, qpn), tomb, GFP_KERNEL))) {
		kfree(tomb);
		return NULL;
	}
	tombs_count++;
	return tomb;
}

/**
 * rxe_migr_leave - a QP of which there is an image is being destroyed
 * @qp: the QP
 *
 * Context: process; sleeps.
 */
void rxe_migr_leave(struct rxe_qp *qp)
{
	struct rxe_dev *rxe = to_rdev(qp->ibqp.device);
	time64_t now = ktime_get_boottime_seconds();
	struct rxe_migr_qp *m = to_migr_qp(qp);
	struct rxe_migr_tomb *tomb;

	mutex_lock(&m->lock);
	mutex_lock(&tombs_lock);
	tomb = get_tomb(rxe, qp_num(qp));
	if (tomb) {
		*tomb = (struct rxe_migr_tomb){
			.rxe = rxe,
			.av = qp->pri_av,
			.since = now,
			.life = m->life,
			.peer_life = m->peer_life,
			.qpn = qp_num(qp),
			.peer_qpn = qp->attr.dest_qp_num,
			.epoch = m->epoch,
			.peer_epoch = m->peer_epoch,
			.psn = qp->resp.psn,
			.rc = qp_type(qp) == IB_QPT_RC,
			.peer = m->hint,
		};
		schedule_delayed_work(&sweep_work, SWEEP_S * HZ);
	} else {
		WRITE_ONCE(silent_until,
			   now + READ_ONCE(migr_tombstone_timeout));
	}
	mutex_unlock(&tombs_lock);
	mutex_unlock(&m->lock);
}

/**
 * rxe_migr_keeps - hook in __rxe_cleanup(): is the number of an object that goes kept?
 * @elem: of the object
 *
 * Context: process; sleeps, if it is of a QP.
 * Return: true if the pool must not erase it
 */
bool rxe_migr_keeps(struct rxe_pool_elem *elem)
{
	struct rxe_migr_tomb *tomb;
	struct rxe_qp *qp;

	if (elem->pool->type != RXE_TYPE_QP)
		return false;

	qp = elem->obj;
	mutex_lock(&tombs_lock);
	tomb = xa_load(&tombs, tomb_key(to_rdev(qp->ibqp.device), elem->index));
	if (tomb && tomb->life == to_migr_qp(qp)->life) {
		tomb->keeps = true;
		/* the pool goes on taking it for reserved */
		xa_store(&elem->pool->xa, elem->index, NULL, GFP_KERNEL);
	} else {
		tomb = NULL;
	}
	mutex_unlock(&tombs_lock);

	return tomb;
}

/**
 * rxe_migr_claim - somebody wants a number: it is his, if he is the QP that had it
 * @rxe: the device
 * @qpn: the number
 * @life: of who wants it
 *
 * Context: process; sleeps.
 */
void rxe_migr_claim(struct rxe_dev *rxe, u32 qpn, u64 life)
{
	struct rxe_migr_tomb *tomb;

	mutex_lock(&tombs_lock);
	tomb = xa_load(&tombs, tomb_key(rxe, qpn));
	if (tomb && tomb->keeps && tomb->life == life) {
		tomb->keeps = false;
		xa_erase(&rxe->qp_pool.xa, qpn);
	}
	mutex_unlock(&tombs_lock);
}

/**
 * rxe_migr_come_back - a QP has been restored where it was, or where its number was
 * @qp: the QP, filled
 *
 * Context: process; sleeps.
 */
void rxe_migr_come_back(struct rxe_qp *qp)
{
	struct rxe_migr_tomb *tomb;

	mutex_lock(&tombs_lock);
	tomb = xa_load(&tombs,
		       tomb_key(to_rdev(qp->ibqp.device), qp_num(qp)));
	if (tomb)
		forget(tomb);
	mutex_unlock(&tombs_lock);
}

/**
 * rxe_migr_has_tomb - has a QP of this number left a tombstone?
 * @rxe: the device
 * @qpn: the number
 *
 * Context: any
 */
bool rxe_migr_has_tomb(struct rxe_dev *rxe, u32 qpn)
{
	return !xa_empty(&tombs) && xa_load(&tombs, tomb_key(rxe, qpn));
}

/**
 * rxe_migr_has_left - does a QP of this number live elsewhere, or will, or may?
 * @rxe: the device
 * @qpn: the number
 *
 * Context: any
 */
bool rxe_migr_has_left(struct rxe_dev *rxe, u32 qpn)
{
	return rxe_migr_has_tomb(rxe, qpn) ||
	       ktime_get_boottime_seconds() < READ_ONCE(silent_until);
}

/* --- what comes for it --- */

/* a request of a peer that has not heard yet */
static void say_nak(struct rxe_migr_tomb *tomb)
{
	__be32 aeth = cpu_to_be32((u32)MIGR_AETH_NAK_STOPPED << 24 |
				  (tomb->epoch & MIGR_NAK_EPOCH_MASK));
	struct rxe_pool_elem *elem;
	struct rxe_migr_to to;

	elem = rxe_migr_get(&tomb->rxe->qp_pool, tomb->rxe->port.qp_gsi_index);
	if (!elem)
		return;

	to.qp = elem->obj;
	to.av = &tomb->av;
	to.qpn = tomb->peer_qpn;
	if (qp_type(to.qp) == IB_QPT_GSI &&
	    !rxe_migr_send(&to, IB_OPCODE_RC_ACKNOWLEDGE, tomb->psn, false,
			   (u8 *)&aeth, sizeof(aeth)))
		rxe_counter_inc(tomb->rxe, RXE_CNT_MIGR_NAK_STOPPED_SENT);
	__rxe_put(elem);
}

static void say_back(struct rxe_migr_tomb *tomb, struct sk_buff *skb, u8 kind)
{
	const u8 *meth = rxe_migr_meth(SKB_TO_PKT(skb));
	struct rxe_migr_say say = {
		.opcode = MIGR_OPCODE_RESUME_ACK,
		.kind = kind,
		.psn = (tomb->psn - 1) & BTH_PSN_MASK,
		.epoch = get_unaligned_be32(meth + MIGR_METH_EPOCH),
		.nonce = get_unaligned_be32(meth + MIGR_METH_NONCE),
		.old_qpn = tomb->qpn,
		.new_qpn = tomb->qpn,
		.life = tomb->life,
		.to_life = get_unaligned_be64(meth + MIGR_METH_LIFE),
	};

	if (kind == MIGR_METH_KIND_MOVED) {
		say.gid = tomb->to.gid;
		say.new_qpn = tomb->to.qpn;
	} else if (kind == MIGR_METH_KIND_NOTICE && tomb->peer.qpn) {
		say.flags = MIGR_METH_FLAG_HINT;
		say.gid = tomb->peer.gid;
		say.new_qpn = tomb->peer.qpn;
	}
	rxe_migr_send_back(tomb->rxe, skb, &say);
}

static bool is_at(const struct rxe_migr_place *place, const u8 *gid, u32 qpn)
{
	return place->qpn == qpn && !memcmp(place->gid, gid, 16);
}

/* is it from where the peer was, or is said to be by now? */
static bool is_from_peer(const struct rxe_migr_tomb *tomb,
			 const struct rxe_migr_place *from)
{
	return is_at(from, tomb->av.grh.dgid.raw, tomb->peer_qpn) ||
	       (tomb->peer.qpn &&
		is_at(from, tomb->peer.gid, tomb->peer.qpn));
}

/* the QP says where it lives now, which counts, be it twice, until a newer one */
static void take_notice(struct rxe_migr_tomb *tomb, struct sk_buff *skb,
			const struct rxe_migr_place *from)
{
	const u8 *meth = rxe_migr_meth(SKB_TO_PKT(skb));
	u32 epoch = get_unaligned_be32(meth + MIGR_METH_EPOCH);
	s32 age = epoch - tomb->epoch;

	if (age < 0 || (!age && !tomb->to.qpn)) {
		rxe_counter_inc(tomb->rxe, RXE_CNT_MIGR_OLD_EPOCH);
		return;
	}
	if (!rxe_migr_gid_fits(&tomb->av, from->gid)) {
		rxe_counter_inc(tomb->rxe, RXE_CNT_MIGR_BAD_ADDRESS);
		return;
	}

	tomb->epoch = epoch;
	tomb->to = *from;
	say_back(tomb, skb, MIGR_METH_KIND_NOTICE);
	if (meth[MIGR_METH_FLAGS] & MIGR_METH_FLAG_FOLLOWED)
		bury(tomb);
}

/* the peer has moved, too, and looks for the QP */
static void take_resume(struct rxe_migr_tomb *tomb, struct sk_buff *skb,
			const struct rxe_migr_place *from)
{
	const u8 *meth = rxe_migr_meth(SKB_TO_PKT(skb));

	if (!rxe_migr_gid_fits(&tomb->av, from->gid)) {
		rxe_counter_inc(tomb->rxe, RXE_CNT_MIGR_BAD_ADDRESS);
		return;
	}
	if (meth[MIGR_METH_FLAGS] & MIGR_METH_FLAG_UNHEARD) {
		say_back(tomb, skb, MIGR_METH_KIND_CHALLENGE);
		return;
	}

	tomb->peer = *from;
	if (tomb->to.qpn)
		say_back(tomb, skb, MIGR_METH_KIND_MOVED);
}

static void take_signed(struct rxe_migr_tomb *tomb, struct sk_buff *skb)
{
	struct rxe_pkt_info *pkt = SKB_TO_PKT(skb);
	struct rxe_migr_place from;
	const u8 *meth;
	u8 kind;
	int err;

	err = rxe_migr_chk_form(pkt);
	if (!err)
		err = rxe_migr_chk_mac(pkt, tomb->life);
	if (err) {
		rxe_migr_count_bad(tomb->rxe, err);
		return;
	}

	meth = rxe_migr_meth(pkt);
	kind = meth[MIGR_METH_VER_KIND] & 0xf;
	rxe_migr_get_place(meth, &from);
	if (!from.qpn || from.qpn & ~BTH_QPN_MASK) {
		rxe_counter_inc(tomb->rxe, RXE_CNT_MIGR_BAD_ADDRESS);
	} else if (pkt->opcode == MIGR_OPCODE_RESUME_ACK) {
		rxe_counter_inc(tomb->rxe, RXE_CNT_MIGR_UNEXPECTED);
	} else if (kind == MIGR_METH_KIND_NOTICE) {
		take_notice(tomb, skb, &from);
	} else if ((s32)(get_unaligned_be32(meth + MIGR_METH_EPOCH) -
			 tomb->peer_epoch) < 0) {
		rxe_counter_inc(tomb->rxe, RXE_CNT_MIGR_OLD_EPOCH);
	} else if (kind == MIGR_METH_KIND_RESUME) {
		take_resume(tomb, skb, &from);
	} else if (!is_from_peer(tomb, &from)) {
		rxe_counter_inc(tomb->rxe, RXE_CNT_MIGR_BAD_ADDRESS);
	} else {
		say_back(tomb, skb, kind == MIGR_METH_KIND_ASK ?
				    MIGR_METH_KIND_STOPPED :
				    MIGR_METH_KIND_PAUSED);
	}
}

/**
 * rxe_migr_tomb_rcv - take a packet for a QP that has left
 * @rxe: the device
 * @skb: a packet to no QP, whose ICRC is right
 *
 * Context: process; sleeps.
 * Return: true if there is a tombstone
 */
bool rxe_migr_tomb_rcv(struct rxe_dev *rxe, struct sk_buff *skb)
{
	struct rxe_pkt_info *pkt = SKB_TO_PKT(skb);
	struct rxe_migr_tomb *tomb;

	mutex_lock(&tombs_lock);
	tomb = xa_load(&tombs, tomb_key(rxe, bth_qpn(pkt)));
	if (tomb && pkt->mask & RXE_MIGR_MASK)
		take_signed(tomb, skb);
	else if (tomb && pkt->mask & RXE_REQ_MASK && tomb->rc &&
		 pkt->hdr[MIGR_BTH_CAP_BYTE] & MIGR_BTH_CAP_BIT)
		say_nak(tomb);
	mutex_unlock(&tombs_lock);

	return tomb;
}

/* --- set up --- */

static int tombstones_show(struct seq_file *file, void *unused)
{
	time64_t now = ktime_get_boottime_seconds();
	struct rxe_migr_tomb *tomb;
	unsigned long key;

	seq_puts(file, "device qpn life age_s epoch to to_qpn peer peer_qpn\n");
	mutex_lock(&tombs_lock);
	xa_for_each(&tombs, key, tomb)
		seq_printf(file, "%s 0x%06x 0x%016llx %lld %u %pI6c 0x%06x %pI6c 0x%06x\n",
			   tomb->rxe->ib_dev.name, tomb->qpn, tomb->life,
			   now - tomb->since, tomb->epoch, tomb->to.gid,
			   tomb->to.qpn, tomb->peer.gid, tomb->peer.qpn);
	mutex_unlock(&tombs_lock);

	return 0;
}
DEFINE_SHOW_ATTRIBUTE(tombstones);

/**
 * rxe_migr_tomb_dealloc - hook in rxe_dealloc(): a device goes, and its numbers
 * @rxe: the device
 */
void rxe_migr_tomb_dealloc(struct rxe_dev *rxe)
{
	struct rxe_migr_tomb *tomb;
	unsigned long key;

	mutex_lock(&tombs_lock);
	xa_for_each(&tombs, key, tomb)
		if (tomb->rxe == rxe)
			bury(tomb);
	mutex_unlock(&tombs_lock);
}

void rxe_migr_tomb_init(void)
{
	debug_dir = debugfs_create_dir("rdma_rxe", NULL);
	debugfs_create_file("tombstones", 0400, debug_dir, NULL,
			    &tombstones_fops);
}

/* devices are gone, and their tombstones with them */
void rxe_migr_tomb_exit(void)
{
	debugfs_remove(debug_dir);
	cancel_delayed_work_sync(&sweep_work);
	xa_destroy(&tombs);
}
