// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Markers: requests of the layer's own, at the ends of queues
 */
#include "control.h"
#include "elsewhere.h"
#include "gid.h"
#include "random.h"
#include "section.h"
#include "suspend.h"
#include "taken.h"

/* what ids of ours begin with, and no application's: 40 bits; the last one is of RECVs */
static uint64_t cookie;

void suspend_make_markers(void)
{
	if (!cookie)
		cookie = random_bits(39) << 1;
}

static void unmark(struct shadow_qp *qp)
{
	struct shadow_cq *cq = to_cq(qp->qp.send_cq);

	LIST_REMOVE(qp, marked);
	qp->is_marked = false;
	cq->markers--;
}

static void unmark_recv(struct shadow_qp *qp)
{
	LIST_REMOVE(qp, recv_marked);
	qp->swap.marked = false;
	to_cq(qp->qp.recv_cq)->markers--;
}

/* Not every CQ tells the QP of a completion. */
bool suspend_is_marker(struct shadow_cq *cq, const struct ibv_wc *wc)
{
	uint64_t wr_id = wc->wr_id;
	struct shadow_qp *qp;

	if (!cookie || wr_id >> 25 != cookie >> 1)
		return false;
	if (wr_id >> 24 & 1) {
		LIST_FOREACH (qp, &cq->recv_marked, recv_marked)
			if (qp->real_num == (wr_id & 0xffffff)) {
				unmark_recv(qp);
				break;
			}
		return true;
	}
	LIST_FOREACH (qp, &cq->marked, marked)
		if (qp->real_num == (wr_id & 0xffffff)) {
			qp->marker_status = wc->status;
			unmark(qp);
			break;
		}
	return true;
}

/* --- whom those of a UD QP go to --- */

static struct ibv_ah *make_ah_of(struct shadow_qp *qp,
				 const struct ibv_gid_entry *own)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = qp->attr.port_num,
		.grh.hop_limit = 64,
	};

	attr.grh.dgid = own->gid;
	attr.grh.sgid_index = (uint8_t)own->gid_index;
	return real()->ibv_create_ah(real_pd(qp->qp.pd), &attr);
}

/* Some may have no route, not even to themselves. */
static struct ibv_ah *make_ah(struct shadow_qp *qp, const struct gids *gids)
{
	const struct ibv_gid_entry *any = gids_any(gids, qp->attr.port_num);
	struct ibv_ah *ah = any ? make_ah_of(qp, any) : NULL;

	if (!any)
		errno = EADDRNOTAVAIL;
	for (size_t i = 0; any && !ah && i < gids->n; i++)
		if (&gids->all[i] != any &&
		    gids->all[i].port_num == any->port_num)
			ah = make_ah_of(qp, &gids->all[i]);
	return ah;
}

int marker_make_ah(struct shadow_qp *qp)
{
	struct gids *gids;

	if (qp->to_self || qp->qp.qp_type != IBV_QPT_UD || !qp->was_rts)
		return 0;
	gids = gids_get(real_context(qp->qp.context));
	if (!gids)
		return errno;
	qp->to_self = make_ah(qp, gids);
	free(gids);
	return qp->to_self ? 0 : errno;
}

void marker_drop_ah(struct shadow_qp *qp)
{
	if (qp->to_self)
		real()->ibv_destroy_ah(qp->to_self);
	qp->to_self = NULL;
}

void marker_unmake_ah(struct shadow_qp *qp)
{
	if (qp->old_to_self)
		real()->ibv_destroy_ah(qp->old_to_self);
	qp->old_to_self = NULL;
}

/* --- markers --- */

/* of a UD QP: to nobody on this host */
static void to_nobody(const struct shadow_qp *qp, struct ibv_send_wr *wr)
{
	wr->opcode = IBV_WR_SEND;
	wr->wr.ud.ah = qp->to_self;
	wr->wr.ud.remote_qpn = NO_QPN;
}

bool marker_is_awaited(const struct shadow_cq *cq)
{
	const struct shadow_qp *qp;

	LIST_FOREACH (qp, &cq->marked, marked)
		if (qp->suspended)
			return true;
	return false;
}

/*
 * one of a suspension before says nothing of what was posted since. The CQ's last entry is
 * for who has none there: a peer that does not answer, and whose markers stay, leaves it to
 * the others, as often as it is tried. The CQ's lock is held.
 */
static bool has_room(const struct shadow_qp *qp)
{
	const struct shadow_cq *cq = to_cq(qp->qp.send_cq);
	int room = cq->spare - cq->markers;

	return !qp->is_marked &&
	       (room > 1 || (room == 1 && !marker_is_awaited(cq)));
}

static void mark(struct shadow_qp *qp)
{
	struct shadow_cq *cq = to_cq(qp->qp.send_cq);

	LIST_INSERT_HEAD(&cq->marked, qp, marked);
	qp->is_marked = true;
	cq->markers++;
}

static uint64_t id_of(const struct shadow_qp *qp)
{
	return cookie << 24 | qp->real_num;
}

/*
 * A signaled WRITE of no bytes, which needs no key (IBA C9-88), completes when all that
 * was posted before it has. In a full queue there is room for it when something has
 * completed that was: who posts nothing signaled any more cannot go on itself.
 *
 * Context: the CQ's lock is held
 */
int suspend_post_marker(struct shadow_qp *qp)
{
	struct ibv_send_wr *bad, wr = {
		.wr_id = id_of(qp),
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	};
	int err;

	if (!has_room(qp))
		return EBUSY;
	if (qp->qp.qp_type == IBV_QPT_UD && !qp->to_self)
		return EINVAL;
	if (qp->qp.qp_type == IBV_QPT_UD)
		to_nobody(qp, &wr);
	section_begin(); /* doorbell.h */
	err = qp->post_send(qp->real, &wr, &bad);
	section_end();
	if (!err)
		mark(qp);
	return err;
}

/* For one of type 1 providers have a function of its own, which makes the same of it. */
static int post_own(struct shadow_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_mw *mw = wr->bind_mw.mw;
	struct ibv_mw_bind bind = { wr->wr_id, wr->send_flags,
				    wr->bind_mw.bind_info };
	struct ibv_send_wr *bad;

	return wr->opcode == IBV_WR_BIND_MW && mw->type == IBV_MW_TYPE_1
		       ? mw->context->ops.bind_mw(qp->real, mw, &bind)
		       : qp->post_send(qp->real, wr, &bad);
}

int marker_post(struct shadow_qp *qp, struct ibv_send_wr *wr)
{
	int err;

	wr->wr_id = id_of(qp);
	wr->send_flags = IBV_SEND_SIGNALED;
	if (!has_room(qp))
		return EBUSY;
	section_begin(); /* doorbell.h */
	err = post_own(qp, wr);
	section_end();
	if (!err)
		mark(qp);
	return err;
}

/* The same to receive: nothing comes for it, as the QP is in ERR. */
int suspend_post_recv_marker(struct shadow_qp *qp)
{
	struct shadow_cq *cq = to_cq(qp->qp.recv_cq);
	struct ibv_recv_wr *bad, wr = {
		.wr_id = (cookie | 1) << 24 | qp->real_num,
	};
	int err;

	if (qp->swap.marked || cq->markers >= cq->spare)
		return EBUSY;
	err = qp->post_recv(qp->real, &wr, &bad);
	if (!err) {
		LIST_INSERT_HEAD(&cq->recv_marked, qp, recv_marked);
		qp->swap.marked = true;
		cq->markers++;
	}
	return err;
}

/* none of its completions is to come on this CQ, nor does one go to the application */
static void forget(struct shadow_cq *cq, struct shadow_qp *qp)
{
	bool sends = to_cq(qp->qp.send_cq) == cq;
	bool recvs = to_cq(qp->qp.recv_cq) == cq;

	pthread_mutex_lock(&cq->lock);
	taken_end_flush(cq, qp, true);
	if ((sends && qp->is_marked) || (recvs && qp->swap.marked))
		taken_fill(cq);
	if (sends && qp->is_marked)
		unmark(qp);
	if (recvs && qp->swap.marked)
		unmark_recv(qp);
	taken_forget(cq, qp->qp.qp_num);
	pthread_mutex_unlock(&cq->lock);
}

void suspend_forget_marker(struct shadow_qp *qp)
{
	if (!control_is_on())
		return;
	if (qp->qp.send_cq)
		forget(to_cq(qp->qp.send_cq), qp);
	if (qp->qp.recv_cq && qp->qp.recv_cq != qp->qp.send_cq)
		forget(to_cq(qp->qp.recv_cq), qp);
}
