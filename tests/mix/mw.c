// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pattern.h"
#include "traffic.h"

#define MOST_USES 16

/* rdma_rxe says this with the kernel's bit, which is another one */
#define WITH_INV (IBV_WC_WITH_INV | IBV_WC_IP_CSUM_OK)

int mw_alloc(struct traffic *t, struct ibv_pd *pd)
{
	struct traffic_qp *q;
	unsigned int i;

	for (i = 0; i < t->shape.qps; i++) {
		q = &t->qp[i];
		q->mw.mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
		if (!q->mw.mw) {
			fprintf(stderr, "ibv_alloc_mw: %s\n", strerror(errno));
			return -1;
		}
		q->rq.with_inv = WITH_INV;
	}
	return 0;
}

void mw_free(struct traffic *t)
{
	unsigned int i;
	int rc;

	for (i = 0; i < t->shape.qps; i++) {
		if (!t->qp[i].mw.mw)
			continue;
		rc = ibv_dealloc_mw(t->qp[i].mw.mw);
		if (rc)
			violation(&t->verdict, "QP %u: ibv_dealloc_mw: %s", i,
				  strerror(rc));
		t->qp[i].mw.mw = NULL;
	}
}

/* How generation @gen is given back; both sides know. */
static bool by_send(const struct shape *s, uint32_t gen)
{
	return gen % 2 && !(s->without & (1u << OP_SEND | WITHOUT_FENCE));
}

bool mw_next(struct traffic_qp *q, struct op *op)
{
	struct mw *w = &q->mw;

	if (!w->mw || q->stopped || traffic_resting(q->t) ||
	    !(w->state == MW_FREE || w->state == MW_BACK))
		return false;
	memset(op, 0, sizeof(*op));
	if (w->state == MW_BACK) {
		op->kind = OP_LOCAL_INV;
		w->state = MW_FREE;
	} else {
		op->kind = OP_BIND;
		w->rkey = ibv_inc_rkey(w->mw->rkey);
		w->gen++;
		w->state = MW_BINDS;
		op->fenced = mix64(q->out.key + w->gen) % 4 == 0 &&
			     !(q->out.shape->without & WITHOUT_FENCE);
	}
	op->seq = w->gen;
	op->inv = w->rkey;
	return true;
}

void mw_build(struct traffic_qp *q, const struct op *op, struct ibv_send_wr *wr)
{
	const struct memory *m = &q->t->memory;
	const struct shape *s = m->shape;
	struct ibv_mw_bind_info info = {
		.mr = m->region[REGION_SLOTS].mr,
		.addr = (uintptr_t)region_at(m, REGION_SLOTS,
					     off_slot(s, q->index, 0)),
		.length = (uint64_t)s->window * slot_size(s),
		.mw_access_flags =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};

	if (op->kind != OP_BIND) {
		wr->invalidate_rkey = op->inv;
		return;
	}
	wr->bind_mw.mw = q->mw.mw;
	wr->bind_mw.rkey = op->inv;
	wr->bind_mw.bind_info = info;
}

/* Not every library writes down the new key, which the next bind replaces. */
void mw_posted(struct traffic_qp *q, const struct op *op)
{
	q->mw.mw->rkey = op->inv;
}

void mw_bound(struct traffic_qp *q)
{
	struct mw *w = &q->mw;

	w->state = MW_OUT;
	w->offer = (uint64_t)w->gen << 32 | w->rkey;
	w->news = true;
}

void mw_arrived(struct traffic_qp *q, const struct ibv_wc *wc, struct op *op)
{
	struct mw *w = &q->mw;

	if (op->kind != OP_SEND || !(wc->wc_flags & q->rq.with_inv) ||
	    w->state != MW_OUT || !by_send(q->in.shape, w->gen))
		return;
	op->kind = OP_SEND_INV;
	op->inv = w->rkey;
	w->state = MW_FREE;
	w->invalidated++;
}

/* Any number of operations, so that the ways to use it differ. */
static bool used_enough(const struct traffic_qp *q)
{
	uint64_t h = key_of(q->out.key, q->mw.peer_gen);

	return q->mw.uses > h % MOST_USES;
}

uint32_t mw_key(struct traffic_qp *q, const struct op *op)
{
	struct mw *w = &q->mw;

	/* what waits for its operations to be over gets no more of them */
	if (!w->held || op->key % 4 == 0 ||
	    (used_enough(q) && !by_send(q->out.shape, w->peer_gen)))
		return q->t->remote.rkey[REGION_SLOTS];
	w->uses++;
	w->last = q->sq.tail;
	return w->peer_rkey;
}

static void give(struct mw *w, uint64_t seq)
{
	w->held = false;
	w->back = w->peer_gen;
	w->back_seq = seq;
}

void mw_give_by(struct traffic_qp *q, struct op *op)
{
	struct mw *w = &q->mw;

	if (op->kind != OP_SEND || !w->held || !used_enough(q) ||
	    !by_send(q->out.shape, w->peer_gen))
		return;
	op->kind = OP_SEND_INV;
	op->inv = w->peer_rkey;
	op->fenced = true;
	give(w, op->seq);
}

void mw_give(struct traffic_qp *q)
{
	struct mw *w = &q->mw;

	if (q->stopped || traffic_resting(q->t) || !w->held ||
	    !used_enough(q) || q->sq.head < w->last ||
	    by_send(q->out.shape, w->peer_gen))
		return;
	give(w, NO_SEND);
	w->news = true;
}

void mw_say(struct traffic_qp *q, struct credit *c)
{
	c->offer = q->mw.offer;
	c->back = q->mw.back;
	c->back_seq = q->mw.back_seq;
	q->mw.news = false;
}

/*
 * The peer says that it has given ours back. If it was by a SEND whose receive has
 * been looked at, we must have been told then.
 */
static void hear_back(struct traffic_qp *q, uint64_t seq)
{
	struct mw *w = &q->mw;

	if (w->state != MW_OUT || (seq != NO_SEND && seq >= q->verified))
		return;
	w->state = MW_BACK;
	if (seq == NO_SEND)
		return;
	w->state = MW_FREE;
	violation(&q->t->verdict,
		  "QP %u peer's seq %" PRIu64
		  " has invalidated window %u (0x%08x), but its wc did not say"
		  " so",
		  q->index, seq, w->gen, w->rkey);
}

void mw_hear(struct traffic_qp *q, const struct credit *c)
{
	struct mw *w = &q->mw;
	uint32_t gen = c->offer >> 32;

	if (gen != w->peer_gen) {
		if (gen != w->peer_gen + 1 || w->held)
			violation(&q->t->verdict,
				  "QP %u: peer's window %u after %u%s",
				  q->index, gen, w->peer_gen,
				  w->held ? ", not given back" : "");
		w->peer_gen = gen;
		w->stale = w->peer_rkey;
		w->peer_rkey = c->offer;
		w->held = true;
		w->uses = 0;
		w->last = 0;
	}
	if (w->gen && c->back == w->gen)
		hear_back(q, c->back_seq);
}
