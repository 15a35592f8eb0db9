// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "met.h"

#include <string.h>

#include "gate.h"
#include "peer.h"
#include "suspend.h"

static bool is_met(const struct shadow_qp *qp, const struct ibv_qp_attr *attr,
		   int mask)
{
	const int both = IBV_QP_AV | IBV_QP_DEST_QPN;

	return qp->met.peer && (mask & both) == both &&
	       attr->ah_attr.is_global && attr->dest_qp_num == qp->met.num &&
	       !memcmp(&attr->ah_attr.grh.dgid, &qp->met.gid,
		       sizeof(qp->met.gid));
}

void met_lead(const struct shadow_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	if (is_met(qp, attr, mask))
		attr->dest_qp_num = qp->met.real_num;
}

void met_adopt(struct shadow_qp *qp)
{
	if (!is_met(qp, &qp->attr, qp->attr_mask))
		return;
	peer_lead(&qp->peer, qp->met.peer);
	atomic_fetch_or(&qp->slow, SLOW_NAMES);
	if (qp->met.real_num != qp->met.num) {
		qp->swap.told = true;
		qp->swap.peer_num = qp->met.real_num;
		qp->swap.peer_gid = qp->met.gid;
	}
	met_forget(qp);
}

void met_forget(struct shadow_qp *qp)
{
	peer_lead(&qp->met.peer, NULL);
}

/* with the lock of its context, whose application may connect it at this moment */
static void meet(struct shadow_qp *qp, struct peer *peer, uint32_t num,
		 uint32_t real_num, const union ibv_gid *gid)
{
	peer_lead(&qp->met.peer, peer);
	qp->met.num = num;
	qp->met.real_num = real_num;
	qp->met.gid = *gid;
	met_adopt(qp);
}

/* the first one of this number from @qp on */
static struct shadow_qp *next_of(struct shadow_qp *qp, uint32_t qpn)
{
	while (qp && (qp->qp.qp_num != qpn || !qp_has_peer(qp)))
		qp = TAILQ_NEXT(qp, entry);
	return qp;
}

static unsigned int count(uint32_t qpn)
{
	struct shadow_context *c;
	struct shadow_qp *qp;
	unsigned int n = 0;

	TAILQ_FOREACH (c, &contexts, entry) {
		pthread_mutex_lock(&c->lock);
		for (qp = next_of(TAILQ_FIRST(&c->qps), qpn); qp;
		     qp = next_of(TAILQ_NEXT(qp, entry), qpn))
			n++;
		pthread_mutex_unlock(&c->lock);
	}
	return n;
}

int layer_met(uint32_t qpn, uint32_t peer_num, uint32_t real_num,
	      const union ibv_gid *gid, const char *id, struct swap *s)
{
	struct shadow_context *c;
	struct shadow_qp *qp;
	struct peer *peer;
	unsigned int n;

	*s = (struct swap){};
	if (suspend_hold()) {
		suspend_release();
		return swap_refuse(s, EBUSY, "it is suspended");
	}
	peer = peer_find(id);
	if (!peer)
		return swap_refuse(s, EINVAL, "it has not told its keys");
	gate_lock_contexts();
	n = count(qpn);
	if (n == 1)
		TAILQ_FOREACH (c, &contexts, entry) {
			pthread_mutex_lock(&c->lock);
			qp = next_of(TAILQ_FIRST(&c->qps), qpn);
			if (qp)
				meet(qp, peer, peer_num, real_num, gid);
			pthread_mutex_unlock(&c->lock);
		}
	gate_unlock_contexts();
	return n == 1 ? 0
		      : swap_refuse(s, EINVAL, "%s 0x%06x",
				    n ? "two QPs are" : "no QP is", qpn);
}
