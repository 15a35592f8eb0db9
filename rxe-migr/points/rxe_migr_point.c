// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Fault points, in test builds only (RXE_POINTS=1 rxe-migr/build): a QP is held at
 * its n-th packet until it is stopped, so that STOP comes exactly there.
 *
 * The module parameter migr_point is how a test says where:
 *
 *	echo QPN AT N	one point more, for a QP that has none; AT: see at_names
 *	echo off	forget all; who is held goes on
 *	cat		a line "QPN AT N STATE SEEN" of each
 *
 * STATE is armed; held, at the N-th packet since; stopped, as it was meant; left,
 * because the QP is being destroyed or nobody has stopped it for long. Protocol
 * packets are not counted, nor what is before the tasks.
 *
 * Tasks are work items, so they may sleep where the hooks are.
 */
#include <linux/delay.h>
#include <linux/module.h>

#include "rxe.h"

#define MAX_POINTS	64
#define PATIENCE_S	3600	/* more than a test waits */
#define LATE_MS		100	/* longer than STOP, to who waits for nobody */

enum point_state { ARMED, HELD, STOPPED, LEFT };

static const char *const state_names[] = { "armed", "held", "stopped", "left" };
static const char *const at_names[RXE_MIGR_ATS] = {
	"sent", "lost", "taken", "handled"
};

static struct migr_point {
	u32			qpn;
	enum rxe_migr_point_at	at;
	u32			n;
	u32			seen;
	enum point_state	state;
} points[MAX_POINTS];
static unsigned int n_points;
static unsigned int generation;	/* how often they have been forgotten */
static DEFINE_SPINLOCK(points_lock);

/* the point of a QP, NULL: none. Context: points_lock held */
static struct migr_point *find_point(u32 qpn)
{
	unsigned int i;

	for (i = 0; i < n_points; i++)
		if (points[i].qpn == qpn)
			return &points[i];

	return NULL;
}

/* one packet more; is it the one at which to wait? */
static bool is_reached(struct rxe_qp *qp, enum rxe_migr_point_at at,
		       unsigned int *gen)
{
	struct migr_point *p;
	bool reached = false;
	unsigned long flags;

	spin_lock_irqsave(&points_lock, flags);
	p = find_point(qp_num(qp));
	if (p && p->at == at && p->state == ARMED && ++p->seen == p->n) {
		p->state = HELD;
		*gen = generation;
		reached = true;
	}
	spin_unlock_irqrestore(&points_lock, flags);

	return reached;
}

/* what has become of it; nothing if it was forgotten meanwhile */
static void leave(struct rxe_qp *qp, unsigned int gen, enum point_state state)
{
	unsigned long flags;

	spin_lock_irqsave(&points_lock, flags);
	if (gen == generation)
		find_point(qp_num(qp))->state = state;
	spin_unlock_irqrestore(&points_lock, flags);
}

/* who destroys a QP takes it from its pool, and then waits for its tasks */
static bool is_alive(struct rxe_qp *qp)
{
	struct rxe_dev *rxe = to_rdev(qp->ibqp.device);
	struct rxe_qp *found = rxe_pool_get_index(&rxe->qp_pool,
						  qp->elem.index);

	if (found)
		rxe_put(found);
	return found == qp;
}

/*
 * Before STOP it asks the peer, which cannot be heard as long as the task that
 * would listen is held; so the answer is given here.
 */
static void wait_for_stop(struct rxe_qp *qp, unsigned int gen)
{
	unsigned long end = jiffies + PATIENCE_S * HZ;

	while (gen == READ_ONCE(generation)) {
		switch (READ_ONCE(qp->migr)) {
		case RXE_MIGR_STOPPED:
			leave(qp, gen, STOPPED);
			msleep(LATE_MS);
			return;
		case RXE_MIGR_ASKING:
			rxe_migr_answered(to_migr_qp(qp), true);
			break;
		}
		if (time_after(jiffies, end) || !is_alive(qp)) {
			leave(qp, gen, LEFT);
			return;
		}
		usleep_range(500, 1000);
	}
}

/**
 * rxe_migr_point - hook: if this is the packet to stop at, wait for STOP
 * @qp: the QP
 * @at: what its task has just done
 *
 * Context: a task of the QP; sleeps.
 */
void rxe_migr_point(struct rxe_qp *qp, enum rxe_migr_point_at at)
{
	unsigned int gen;

	if (is_reached(qp, at, &gen))
		wait_for_stop(qp, gen);
}

/**
 * rxe_migr_point_xmit - in the place of rxe_xmit_packet()
 * @qp: the QP
 * @pkt: a request or a response
 * @skb: holds the packet
 *
 * Context: a task of the QP; sleeps.
 * Return: as rxe_xmit_packet()
 */
int rxe_migr_point_xmit(struct rxe_qp *qp, struct rxe_pkt_info *pkt,
			struct sk_buff *skb)
{
	unsigned int gen;
	int err;

	if (is_reached(qp, RXE_MIGR_AT_LOST, &gen)) {
		kfree_skb(skb);
		wait_for_stop(qp, gen);
		return 0;
	}

	err = rxe_xmit_packet(qp, pkt, skb);
	if (!err)
		rxe_migr_point(qp, RXE_MIGR_AT_SENT);

	return err;
}

static void forget_points(void)
{
	spin_lock_irq(&points_lock);
	n_points = 0;
	generation++;
	spin_unlock_irq(&points_lock);
}

static int add_point(u32 qpn, enum rxe_migr_point_at at, u32 n)
{
	int err = 0;

	spin_lock_irq(&points_lock);
	if (find_point(qpn))
		err = -EEXIST;
	else if (n_points == MAX_POINTS)
		err = -ENOSPC;
	else
		points[n_points++] = (struct migr_point){ qpn, at, n };
	spin_unlock_irq(&points_lock);

	return err;
}

static int migr_point_set(const char *val, const struct kernel_param *kp)
{
	char name[8];
	u32 qpn, n;
	int at;

	if (sysfs_streq(val, "off")) {
		forget_points();
		return 0;
	}
	if (sscanf(val, "%u %7s %u", &qpn, name, &n) != 3 || !n)
		return -EINVAL;
	at = match_string(at_names, RXE_MIGR_ATS, name);

	return at < 0 ? at : add_point(qpn, at, n);
}

static int migr_point_get(char *buf, const struct kernel_param *kp)
{
	unsigned int i;
	int len = 0;

	spin_lock_irq(&points_lock);
	for (i = 0; i < n_points; i++)
		len += sysfs_emit_at(buf, len, "%u %s %u %s %u\n",
				     points[i].qpn, at_names[points[i].at],
				     points[i].n, state_names[points[i].state],
				     points[i].seen);
	spin_unlock_irq(&points_lock);

	return len;
}

static const struct kernel_param_ops migr_point_ops = {
	.set = migr_point_set,
	.get = migr_point_get,
};

module_param_cb(migr_point, &migr_point_ops, NULL, 0600);
MODULE_PARM_DESC(migr_point, "Where QPs are held until they are stopped");
