// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "build.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ahead.h"
#include "arena.h"
#include "bury.h"
#include "elsewhere.h"
#include "gate.h"
#include "gid.h"
#include "groups.h"
#include "names.h"
#include "post.h"
#include "rebind.h"
#include "record.h"
#include "recvq.h"
#include "slots.h"
#include "suspend.h"
#include "tape.h"

/* --- check --- */

static int check_context(const struct shadow_context *c, struct swap *s)
{
	const char *name = c->verbs.context.device->name;

	if (c->foreign)
		return swap_refuse(s, EOPNOTSUPP, "%s has had %s", name,
				   c->foreign);
	return 0;
}

static int check_pd(const struct shadow_pd *pd, struct swap *s)
{
	const char *why = NULL;

	if (pd->imported)
		why = "is imported";
	else if (pd->parent.td)
		why = "has a thread domain";
	return why ? swap_refuse(s, EOPNOTSUPP, "PD %u %s", pd->pd.handle, why)
		   : 0;
}

/*
 * Is there memory where it was registered? Its pages may have been pinned longer, but it
 * cannot be registered again. What is mapped there now nobody compares, nor how.
 */
static bool is_mapped(const struct shadow_mr *mr)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t at = (uintptr_t)mr->mr.addr & ~(page - 1);
	const uintptr_t end = (uintptr_t)mr->mr.addr + mr->mr.length;
	unsigned char pages[4096];
	size_t bytes;

	for (; at < end; at += bytes) {
		bytes = sizeof(pages) * page;
		if (bytes > end - at)
			bytes = end - at;
		if (mincore((void *)at, bytes, pages) && errno == ENOMEM)
			return false;
	}
	return true;
}

static int check_mr(const struct shadow_mr *mr, struct swap *s)
{
	static const char *const why[] = {
		[MR_DMABUF] = "is of a dma-buf",
		[MR_DM] = "is of device memory",
		[MR_NULL] = "is a null region",
		[MR_IMPORTED] = "is imported",
	};

	if (why[mr->kind])
		return swap_refuse(s, EOPNOTSUPP, "MR 0x%08x %s", mr->mr.lkey,
				   why[mr->kind]);
	if (mr->kind == MR_MEMORY && !(mr->access & IBV_ACCESS_ON_DEMAND) &&
	    !is_mapped(mr))
		return swap_refuse(s, EOPNOTSUPP,
				   "MR 0x%08x is of memory that is gone",
				   mr->mr.lkey);
	return 0;
}

static int check_srq(const struct shadow_srq *srq, struct swap *s)
{
	if (!srq->slots)
		return swap_refuse(s, EOPNOTSUPP,
				   "SRQ %u is of a type that cannot",
				   srq->srq.handle);
	if (!slots_are_sure(srq->slots))
		return swap_refuse(
			s, EOPNOTSUPP,
			"the provider of SRQ %u has not said what it has taken",
			srq->srq.handle);
	return 0;
}

/* Its flushes have to find room in its CQ, and markers. */
static const char *recv_trouble(const struct shadow_qp *qp)
{
	const struct shadow_cq *cq;

	if (!qp->recvq)
		return NULL;
	cq = to_cq(qp->qp.recv_cq);
	if (!cq->spare)
		return "has a CQ without room for markers";
	if ((uint32_t)cq->cq.cqe < qp->cap.max_recv_wr)
		return "has a CQ that is smaller than its receive queue";
	if (!recvq_is_sure(qp->recvq))
		return "has a provider that has not said what it has taken";
	return NULL;
}

static int check_qp(const struct shadow_qp *qp, struct swap *s)
{
	const char *why = record_unmakeable(qp);

	if (!why)
		why = recv_trouble(qp);
	if (!why && (qp->cap.max_send_sge > MOST_SGES ||
		     qp->cap.max_recv_sge > MOST_SGES))
		why = "has more SGEs than can be given other keys";
	if (!why && qp->qp.pd && to_pd(qp->qp.pd)->parent.td)
		why = "is in a thread domain";
	return why ? swap_refuse(s, EOPNOTSUPP, "QP 0x%06x %s", qp->qp.qp_num,
				 why)
		   : 0;
}

#define CHECK_EACH(c, obj, list, check)                \
	do {                                           \
		TAILQ_FOREACH (obj, &(c)->list, entry) \
			if (!err)                      \
				err = check(obj, s);   \
	} while (0)

int build_check(bool all, struct swap *s)
{
	struct shadow_context *c;
	struct shadow_srq *srq;
	struct shadow_pd *pd;
	struct shadow_mr *mr;
	struct shadow_qp *qp;
	int err = 0;

	TAILQ_FOREACH (c, &contexts, entry) {
		if (all) {
			err = err ? err : check_context(c, s);
			CHECK_EACH(c, pd, pds, check_pd);
			CHECK_EACH(c, mr, mrs, check_mr);
			CHECK_EACH(c, srq, srqs, check_srq);
		}
		TAILQ_FOREACH (qp, &c->qps, entry)
			if (!err && qp->swap.chosen)
				err = check_qp(qp, s);
	}
	return err ? err : rebind_check(all, s);
}

/* --- make --- */

static int made(bool is, struct swap *s, const char *what, uint32_t which)
{
	int err = errno ? errno : EIO;

	if (is) {
		s->objects++;
		return 0;
	}
	return swap_refuse(s, err, "no other %s for %u: %s", what, which,
			   strerror(err));
}

/* those of the device that it is on now, if that is another one */
static int find_gids(struct shadow_context *c, struct swap *s)
{
	if (!bury_is_dead(c->real))
		return 0;
	free(c->gids);
	c->gids = gids_get(c->other);
	return c->gids ? 0 : swap_refuse(s, errno, "GIDs: %s", strerror(errno));
}

static int make_context(struct shadow_context *c, struct swap *s)
{
	char why[DEVICE_WHY];
	int err;

	c->other = device_open_again(c->verbs.context.device,
				     bury_is_dead(c->real), why);
	err = made(c->other, s, "context", (uint32_t)c->verbs.context.cmd_fd);
	if (err && *why)
		return swap_refuse(s, err, "%s", why);
	if (err)
		return err;
	err = find_gids(c, s);
	if (err)
		return err;
	err = tape_is_used() ? arena_give(c->other) : 0;
	if (err)
		return swap_refuse(s, err, "queues of another context: %s",
				   strerror(err));
	err = relay_add(&c->async, c->other->async_fd);
	return err ? swap_refuse(s, err, "events of another context: %s",
				 strerror(err))
		   : 0;
}

static int make_channel(struct shadow_channel *ch, struct swap *s)
{
	int err;

	ch->other = real()->ibv_create_comp_channel(
		coming_context(ch->channel.context));
	err = made(ch->other, s, "channel", (uint32_t)ch->channel.fd);
	if (err)
		return err;
	err = relay_add(&ch->relay, ch->other->fd);
	return err ? swap_refuse(s, err, "events of another channel: %s",
				 strerror(err))
		   : 0;
}

static int make_ah(struct shadow_ah *ah, struct swap *s)
{
	int err = 0;

	if (bury_is_dead(real_context(ah->ah.context)))
		err = gid_find(&ah->source, to_context(ah->ah.context), s, "AH",
			       ah->ah.handle);
	if (err)
		return err;
	ah->other = ah_make_other(ah);
	return made(ah->other, s, "AH", ah->ah.handle);
}

static int make_cq(struct shadow_cq *cq, struct swap *s)
{
	struct ibv_modify_cq_attr attr = { .attr_mask = IBV_CQ_ATTR_MODERATE,
					   .moderate = cq->moderation };
	int err;

	cq->other = cq_make(cq);
	err = made(cq->other, s, "CQ", cq->cq.handle);
	if (err || !cq->moderated)
		return err;
	err = verbs_get_ctx(cq->other->context)->modify_cq(cq->other, &attr);
	return err ? swap_refuse(s, err, "moderation of CQ %u: %s",
				 cq->cq.handle, strerror(err))
		   : 0;
}

/* who was moved from RESET to ERR has nothing of INIT */
int build_first_step(const struct shadow_qp *qp, struct ibv_qp_attr *attr)
{
	int mask = record_step(qp, IBV_QPS_INIT, attr);

	if (qp->qp.state == IBV_QPS_RESET)
		return 0;
	if (qp->qp.state == IBV_QPS_ERR && !(mask & IBV_QP_PORT))
		attr->qp_state = IBV_QPS_ERR;
	return mask;
}

static int make_qp(struct shadow_qp *qp, struct swap *s)
{
	struct ibv_qp_attr attr;
	int err, mask;

	if (qp->swap.spent || qp->swap.turn != ahead_turn())
		build_drop(qp);
	if (qp->other) /* made ahead */
		return 0;
	qp->swap.turn = ahead_turn();
	qp->other = qp_make(qp);
	err = made(qp->other, s, "QP", qp->qp.qp_num);
	if (!err && bury_is_dead(real_context(qp->qp.context)))
		err = gid_find(&qp->source, to_context(qp->qp.context), s, "QP",
			       qp->qp.qp_num);
	if (!err) {
		err = groups_join(qp);
		if (err)
			swap_refuse(s, err,
				    "a multicast group of QP 0x%06x: %s",
				    qp->qp.qp_num, strerror(err));
	}
	mask = err ? 0 : build_first_step(qp, &attr);
	if (!mask)
		return err;
	err = real()->ibv_modify_qp(qp->other, &attr, mask);
	return err ? swap_refuse(s, err, "another QP 0x%06x to INIT: %s",
				 qp->qp.qp_num, strerror(err))
		   : 0;
}

#define MAKE_EACH(c, obj, list, make, what, which)                \
	do {                                                      \
		TAILQ_FOREACH (obj, &(c)->list, entry)            \
			if (!err) {                               \
				(obj)->other = make(obj);         \
				err = made((obj)->other, s, what, \
					   (obj)->which);         \
			}                                         \
	} while (0)

static int make_objects(struct shadow_context *c, struct swap *s)
{
	int err = make_context(c, s);
	struct shadow_channel *ch;
	struct shadow_srq *srq;
	struct shadow_pd *pd;
	struct shadow_ah *ah;
	struct shadow_cq *cq;

	MAKE_EACH(c, pd, pds, pd_make, "PD", pd.handle);
	CHECK_EACH(c, ah, ahs, make_ah);
	CHECK_EACH(c, ch, channels, make_channel);
	CHECK_EACH(c, cq, cqs, make_cq);
	MAKE_EACH(c, srq, srqs, srq_make, "SRQ", srq.handle);
	return err;
}

/*
 * Behind QPs: what a process leaves the kernel destroys in the reverse order, and rdma_rxe
 * waits for windows that are bound before it destroys their QP.
 */
static int make_windows(struct shadow_context *c, struct swap *s)
{
	struct shadow_mw *mw;
	int err = 0;

	MAKE_EACH(c, mw, mws, mw_make, "memory window", key);
	return err;
}

static bool has_moved(void)
{
	struct shadow_context *c;

	TAILQ_FOREACH (c, &contexts, entry)
		if (bury_is_dead(c->real))
			return true;
	return false;
}

int build_make(bool all, struct swap *s)
{
	struct shadow_context *c;
	struct shadow_qp *qp;
	int err = 0;

	if (all && has_moved())
		device_forget_all();
	ah_look_again();
	errno = 0;
	TAILQ_FOREACH (c, &contexts, entry) {
		if (all && !err)
			err = make_objects(c, s);
		TAILQ_FOREACH (qp, &c->qps, entry)
			if (!err && qp->swap.chosen)
				err = make_qp(qp, s);
		if (all && !err)
			err = make_windows(c, s);
	}
	if (err)
		build_unmake();
	return err;
}

int build_ahead(struct shadow_qp *qp, struct swap *s)
{
	int err = check_qp(qp, s);

	if (qp->swap.led) /* to whom it will not lead */
		build_drop(qp);
	errno = 0;
	err = err ? err : make_qp(qp, s);
	if (err)
		build_drop(qp);
	return err;
}

/* --- unmake --- */

/* Its number is nobody's, unless it is that of the real one, on another host. */
static struct ibv_qp *take_other(struct shadow_qp *qp)
{
	const struct shadow_context *c = to_context(qp->qp.context);
	struct ibv_qp *other;

	gate_lock_contexts();
	other = qp->other;
	qp->other = NULL;
	qp->swap.spent = qp->swap.led = false;
	if (other && c->qpns && other->qp_num != qp->real_num &&
	    names_get(c->qpns, other->qp_num) == qp->qp.qp_num)
		names_set(c->qpns, other->qp_num, 0);
	gate_unlock_contexts();
	return other;
}

void build_drop(struct shadow_qp *qp)
{
	struct ibv_qp *other = take_other(qp);

	if (other)
		real()->ibv_destroy_qp(other);
}

#define UNMAKE_EACH(c, obj, list, unmake)              \
	do {                                           \
		TAILQ_FOREACH (obj, &(c)->list, entry) \
			if ((obj)->other) {            \
				unmake((obj)->other);  \
				(obj)->other = NULL;   \
			}                              \
	} while (0)

/* parent domains before those that they are made of */
static void unmake_pds(struct shadow_context *c, bool parents)
{
	struct shadow_pd *pd;

	TAILQ_FOREACH (pd, &c->pds, entry)
		if (pd->other && !pd->parent.pd == !parents) {
			real()->ibv_dealloc_pd(pd->other);
			pd->other = NULL;
		}
}

static void unmake_channel(struct shadow_channel *ch)
{
	if (!ch->other)
		return;
	relay_remove(&ch->relay, ch->other->fd);
	real()->ibv_destroy_comp_channel(ch->other);
	ch->other = NULL;
}

/* What a provider does not destroy stays; the application has nothing of it. */
static void unmake_objects(struct shadow_context *c)
{
	struct shadow_channel *ch;
	struct shadow_srq *srq;
	struct shadow_ah *ah;
	struct shadow_mr *mr;
	struct shadow_mw *mw;
	struct shadow_cq *cq;
	struct shadow_qp *qp;

	/* those that are bound hold on to their QPs and regions */
	UNMAKE_EACH(c, mw, mws, ibv_dealloc_mw);
	TAILQ_FOREACH (qp, &c->qps, entry) {
		if (qp->other)
			groups_leave(qp);
		build_drop(qp);
		marker_unmake_ah(qp);
	}
	UNMAKE_EACH(c, srq, srqs, real()->ibv_destroy_srq);
	UNMAKE_EACH(c, cq, cqs, real()->ibv_destroy_cq);
	TAILQ_FOREACH (ch, &c->channels, entry)
		unmake_channel(ch);
	UNMAKE_EACH(c, mr, mrs, real()->ibv_dereg_mr);
	TAILQ_FOREACH (ah, &c->ahs, entry)
		elsewhere_unmake_ways(ah);
	UNMAKE_EACH(c, ah, ahs, real()->ibv_destroy_ah);
	unmake_pds(c, true);
	unmake_pds(c, false);
	if (!c->other)
		return;
	relay_remove(&c->async, c->other->async_fd);
	real()->ibv_close_device(c->other);
	c->other = NULL;
}

void build_unmake(void)
{
	struct shadow_context *c;

	TAILQ_FOREACH (c, &contexts, entry) {
		if (c->other)
			bury_begin(c->other);
		unmake_objects(c);
		bury_end();
	}
}
