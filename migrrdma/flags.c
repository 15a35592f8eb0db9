// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "flags.h"

#include "gate.h"
#include "suspend.h"

static void flag_cq(struct ibv_cq *cq)
{
	struct shadow_cq *s = cq ? to_cq(cq) : NULL;

	if (!s || s->draining)
		return;
	pthread_mutex_lock(&s->lock);
	s->draining = true;
	atomic_fetch_or(&s->slow, CQ_SLOW);
	pthread_mutex_unlock(&s->lock);
}

void flags_of_new_cq(struct shadow_cq *cq)
{
	cq->draining = true;
	atomic_fetch_or(&cq->slow, CQ_SLOW | CQ_BATCHES);
}

void flags_set_cqs(void)
{
	struct shadow_context *c;
	struct shadow_qp *qp;
	struct shadow_cq *cq;

	EACH (c, cq, cqs)
		if (suspend_is_whole())
			flag_cq(&cq->cq);
	EACH (c, qp, qps)
		if (qp->suspended) {
			flag_cq(qp->qp.send_cq);
			flag_cq(qp->qp.recv_cq);
		}
}

unsigned int flags_set_qps(void)
{
	struct shadow_context *c;
	struct shadow_qp *qp;
	unsigned int n = 0;

	EACH (c, qp, qps) {
		if (qp->suspended)
			qp->was_marked = false;
		if (qp->suspended && qp->real->state == IBV_QPS_RTS &&
		    qp_has_sends(qp)) {
			atomic_fetch_or(&qp->slow, SLOW_SUSPENDED);
			n++;
		}
	}
	return n;
}

void flags_let_batches(void)
{
	struct shadow_context *c;
	struct shadow_qp *qp;
	struct shadow_cq *cq;

	EACH (c, cq, cqs)
		if (cq->draining)
			atomic_fetch_or(&cq->slow, CQ_BATCHES);
	EACH (c, qp, qps)
		if (qp->slow & SLOW_SUSPENDED)
			atomic_fetch_or(&qp->slow, SLOW_BATCHES);
}
