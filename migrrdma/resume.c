// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "resume.h"

#include "gate.h"
#include "recvq.h"
#include "section.h"
#include "sendq.h"
#include "slots.h"
#include "taken.h"

/*
 * The first one was accepted when it was posted, so what is wrong now is said by its
 * completion: behind those of what was posted before it, of something of which the
 * provider finds out only later that it is wrong. The QP's lock is held.
 */
static int fail(struct shadow_qp *qp)
{
	struct ibv_sge nowhere = { .length = 1, .lkey = UINT32_MAX };
	struct ibv_send_wr *bad, wr = {
		.wr_id = sendq_first(qp),
		.sg_list = &nowhere,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	int err;

	if (qp->qp.qp_type == IBV_QPT_UD) /* to itself, if it went anywhere */
		wr.wr.ud.ah = qp->to_self;
	err = qp->post_send(qp->real, &wr, &bad);
	if (!err)
		sendq_drop(qp);
	return err;
}

/*
 * What was collected, as far as there is room. Of a full queue librxe and libmlx5 say
 * ENOMEM; an older librxe said -ENOMEM, which would be taken for a refusal here. These posts
 * have a section, as the application's have, for the doorbell (doorbell.h).
 */
static int post(struct shadow_qp *qp)
{
	int err;

	section_begin();
	do {
		err = sendq_post(qp);
	} while (err && err != ENOMEM && !fail(qp));
	section_end();
	return err;
}

/* Is all posted that was collected? A queue may be full of what was posted before. */
static bool resume_qp(struct shadow_qp *qp)
{
	int err;

	/* a batch may have it, in a thread that waits for us */
	if (pthread_mutex_trylock(&qp->lock))
		return false;
	err = post(qp);
	/* it was brought to where it has none, while a batch had the lock */
	if (err && err != ENOMEM && qp->real->state < IBV_QPS_RTS) {
		sendq_clear(qp);
		err = 0;
	}
	if (!err)
		atomic_fetch_and(&qp->slow,
				 (unsigned char)~(
					 SLOW_SUSPENDED | SLOW_BATCHES |
					 (qp->recvq ? 0 : SLOW_RECVS)));
	pthread_mutex_unlock(&qp->lock);
	return !err;
}

static void resume_cq(struct shadow_cq *cq, bool ends)
{
	pthread_mutex_lock(&cq->lock);
	while (cq->n_stopping)
		taken_end_flush(cq, cq->stopping[0], true);
	taken_fill(cq); /* which makes room in send queues */
	cq->draining = !ends;
	pthread_mutex_unlock(&cq->lock);
}

bool resume_others(void)
{
	struct shadow_context *c;
	struct shadow_qp *qp;
	bool all = true;

	EACH (c, qp, qps)
		if (qp->slow & SLOW_SUSPENDED && !qp->suspended)
			all &= resume_qp(qp);
	return all;
}

bool resume_some(void)
{
	bool all = resume_others();
	struct shadow_context *c;
	struct shadow_cq *cq;

	EACH (c, cq, cqs)
		if (cq->draining)
			resume_cq(cq, all);
	return all;
}

/* What a thread of the parent had locked, or the layer was at, is not waited for. */
void resume_in_child(struct shadow_context *c)
{
	struct shadow_channel *ch;
	struct shadow_cq *cq;
	struct shadow_qp *qp;

	unlock_in_child(&c->lock);
	unlock_in_child(&c->groups_lock);
	unlock_in_child(&c->carried_lock);
	c->suspended = false;
	TAILQ_FOREACH (ch, &c->channels, entry)
		atomic_store(&ch->held, false);
	TAILQ_FOREACH (cq, &c->cqs, entry)
		cq_init_locks(cq);
	slots_in_child(c);
	TAILQ_FOREACH (qp, &c->qps, entry) {
		unlock_in_child(&qp->lock);
		qp->suspended = false;
		atomic_fetch_and(&qp->slow,
				 (unsigned char)~(SLOW_SUSPENDED |
						  SLOW_BATCHES | SLOW_RECVS));
		if (qp->recvq)
			recvq_in_child(qp->recvq);
	}
}
