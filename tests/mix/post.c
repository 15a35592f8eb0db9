// SPDX-License-Identifier: GPL-2.0
/* Turning the operations of our streams into work requests. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <string.h>

#include "pattern.h"
#include "traffic.h"

#define BURST 4 /* operations in one ibv_post_send() */

/*
 * A slot is written again a window later. Operations that may still read it
 * (OP_LOOKBACK) or forward from it (1) must be over by then.
 */
static uint32_t most_outstanding(const struct shape *s)
{
	return s->window - OP_LOOKBACK - 1;
}

struct request {
	struct ibv_send_wr wr;
	struct ibv_sge sge[OP_PIECES];
};

static void fill_pieces(const struct op *op, char *slot, const struct piece *p,
			unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++) {
		if (op_has(op, F_BACK))
			memset(slot + p[i].at, ~GUARD_BYTE, p[i].len);
		else if (!op->forward)
			pattern_fill(slot + p[i].at, op->key,
				     op->off + p[i].off, p[i].len);
		if (op_has(op, F_BACK))
			memset(slot + p[i].at + p[i].len, GUARD_BYTE, OP_GAP);
	}
}

static void build_data(struct traffic_qp *q, const struct op *op,
		       struct request *r)
{
	const struct memory *m = &q->t->memory;
	char *slot = local_slot(m, q->index, op->from);
	struct piece p[OP_PIECES];
	unsigned int i, n;

	n = cut_pieces(p, op->cut, op->pieces, op->len);
	fill_pieces(op, slot, p, n);
	for (i = 0; i < n; i++) {
		r->sge[i].addr = (uintptr_t)slot + p[i].at;
		r->sge[i].length = p[i].len;
		r->sge[i].lkey = m->region[REGION_LOCAL].mr->lkey;
	}
	r->wr.num_sge = n;
	if (op->inlined && op->len <= q->t->max_inline)
		r->wr.send_flags |= IBV_SEND_INLINE;
}

static void build_rdma(struct traffic_qp *q, const struct op *op,
		       struct ibv_send_wr *wr)
{
	enum region_kind k = REGION_SLOTS;
	uint64_t off;

	if (op_has(op, F_SLOT)) {
		off = off_slot(q->out.shape, q->index, op->seq);
	} else if (op->read_back) {
		off = off_slot(q->out.shape, q->index, op->back_to) + op->off;
	} else {
		k = REGION_PATTERN;
		off = op->off;
	}
	wr->wr.rdma.remote_addr = q->t->remote.addr[k] + off;
	wr->wr.rdma.rkey =
		k == REGION_SLOTS ? mw_key(q, op) : q->t->remote.rkey[k];
}

/* Also settles what the old value has to be. */
static void build_atomic(struct traffic_qp *q, struct sq_entry *e,
			 struct ibv_send_wr *wr)
{
	uint64_t off = off_cells(q->index);

	if (e->op.kind == OP_CMP_SWAP) {
		off += offsetof(struct cells, swap);
		e->expect = stream_cas(&q->out, q->swaps);
		wr->wr.atomic.compare_add = e->expect;
		wr->wr.atomic.swap = stream_cas(&q->out, ++q->swaps);
	} else if (e->op.shared) {
		off = OFF_SHARED;
		wr->wr.atomic.compare_add = e->op.add;
		q->shared_sum += e->op.add;
		__atomic_fetch_add(&q->t->shared_sum, e->op.add,
				   __ATOMIC_RELAXED);
	} else {
		off += offsetof(struct cells, add);
		e->expect = q->add_sum;
		wr->wr.atomic.compare_add = e->op.add;
		q->add_sum += e->op.add;
	}
	wr->wr.atomic.remote_addr = q->t->remote.addr[REGION_CELLS] + off;
	wr->wr.atomic.rkey = q->t->remote.rkey[REGION_CELLS];
}

static void start_request(struct traffic_qp *q, struct sq_entry *e,
			  struct request *r)
{
	memset(&r->wr, 0, sizeof(r->wr));
	r->wr.wr_id = wr_id_make(false, q->index, q->sq.tail - 1);
	r->wr.sg_list = r->sge;
	r->wr.opcode = op_info[e->op.kind].wr;
	if (e->signaled)
		r->wr.send_flags |= IBV_SEND_SIGNALED;
	if (e->op.fenced)
		r->wr.send_flags |= IBV_SEND_FENCE;
	if (e->op.solicited && q->t->solicit)
		r->wr.send_flags |= IBV_SEND_SOLICITED;
	if (op_has(&e->op, F_IMM))
		r->wr.imm_data = htonl(e->op.imm);
	if (op_has(&e->op, F_INV))
		r->wr.invalidate_rkey = e->op.inv;
}

static void build(struct traffic_qp *q, struct sq_entry *e, struct request *r)
{
	start_request(q, e, r);
	build_data(q, &e->op, r);
	if (e->op.kind == OP_FETCH_ADD || e->op.kind == OP_CMP_SWAP)
		build_atomic(q, e, &r->wr);
	else if (op_has(&e->op, F_SLOT) || e->op.kind == OP_READ)
		build_rdma(q, &e->op, &r->wr);
}

static void post_list(struct traffic_qp *q, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int rc = ibv_post_send(q->qp, wr, &bad);

	if (rc)
		violation_fatal(&q->t->verdict,
				"QP %u: ibv_post_send of SQ %" PRIu64 ": %s",
				q->index, wr_id_index(bad->wr_id),
				strerror(rc));
}

/* Inline data is the driver's once posted: prove that it took a copy. */
static void scribble_inline(const struct ibv_send_wr *wr)
{
	int i;

	for (; wr; wr = wr->next)
		for (i = 0; wr->send_flags & IBV_SEND_INLINE && i < wr->num_sge;
		     i++)
			memset((void *)(uintptr_t)wr->sg_list[i].addr, 0xee,
			       wr->sg_list[i].length);
}

static bool may_post(const struct traffic_qp *q)
{
	const struct shape *s = q->out.shape;

	/* the last place in the queue is for a credit */
	return !q->stopped && !traffic_resting(q->t) && sq_room(&q->sq) > 1 &&
	       q->next - q->retired < most_outstanding(s) &&
	       q->next < q->credit + s->window;
}

static unsigned int post_ops(struct traffic_qp *q)
{
	struct request r[BURST];
	struct sq_entry *e;
	unsigned int n = 0;
	struct op op;

	for (; n < BURST && may_post(q); n++) {
		stream_op(&q->out, q->next++, &op);
		mw_give_by(q, &op);
		e = sq_push(&q->sq, &op, op.signaled);
		build(q, e, &r[n]);
		if (n)
			r[n - 1].wr.next = &r[n].wr;
	}
	if (n) {
		post_list(q, &r[0].wr);
		scribble_inline(&r[0].wr);
	}
	return n;
}

static unsigned int post_windows(struct traffic_qp *q)
{
	unsigned int n = 0;
	struct request r;
	struct op op;

	for (; sq_room(&q->sq) > 1 && mw_next(q, &op); n++) {
		start_request(q, sq_push(&q->sq, &op, true), &r);
		mw_build(q, &op, &r.wr);
		post_list(q, &r.wr);
		mw_posted(q, &op);
	}
	return n;
}

/*
 * Half a window is at least a round behind the last receive of a window, so
 * the peer is never left waiting for a credit that is not due.
 */
static bool half_a_window(const struct traffic_qp *q)
{
	return q->verified - q->announced >= q->in.shape->window / 2;
}

static bool credit_due(const struct traffic_qp *q)
{
	bool rests = traffic_resting(q->t);

	if (rests != q->rest_sent)
		return true;
	if (rests)
		return false;
	if (q->stopped)
		return !q->final_sent || half_a_window(q);
	return q->mw.news || half_a_window(q);
}

static void post_credit(struct traffic_qp *q)
{
	const struct op op = { .kind = OP_CREDIT };
	struct credit c = {
		.verified = q->verified,
		.final = q->stopped ? q->next : NO_FINAL,
		.rests = traffic_resting(q->t),
	};
	struct request r;
	struct sq_entry *e;

	mw_say(q, &c);
	c.check = credit_sum(&c);
	e = sq_push(&q->sq, &op, q->stopped);
	start_request(q, e, &r);
	r.sge[0].addr = (uintptr_t)&c;
	r.sge[0].length = sizeof(c);
	r.sge[0].lkey = 0;
	r.wr.num_sge = 1;
	r.wr.send_flags |= IBV_SEND_INLINE;
	r.wr.wr.rdma.rkey = q->t->remote.rkey[REGION_CELLS];
	r.wr.wr.rdma.remote_addr = q->t->remote.addr[REGION_CELLS] +
				   off_cells(q->index) +
				   offsetof(struct cells, credit);
	post_list(q, &r.wr);
	q->announced = c.verified;
	q->final_sent = q->stopped;
	q->rest_sent = c.rests;
}

/* Looks at the credit that the peer writes to our memory. */
static void take_credit(struct traffic_qp *q)
{
	struct credit *at = &q->cells->credit, c;

	c.verified = __atomic_load_n(&at->verified, __ATOMIC_ACQUIRE);
	c.final = __atomic_load_n(&at->final, __ATOMIC_ACQUIRE);
	c.rests = __atomic_load_n(&at->rests, __ATOMIC_ACQUIRE);
	c.offer = __atomic_load_n(&at->offer, __ATOMIC_ACQUIRE);
	c.back = __atomic_load_n(&at->back, __ATOMIC_ACQUIRE);
	c.back_seq = __atomic_load_n(&at->back_seq, __ATOMIC_ACQUIRE);
	c.check = __atomic_load_n(&at->check, __ATOMIC_ACQUIRE);
	if (c.check != credit_sum(&c))
		return; /* being written just now */
	if (c.verified < q->credit || c.verified > q->next)
		violation(&q->t->verdict,
			  "QP %u: credit %" PRIu64 ", expected %" PRIu64
			  " to %" PRIu64,
			  q->index, c.verified, q->credit, q->next);
	if (q->peer_final != NO_FINAL && c.final != q->peer_final)
		violation(&q->t->verdict,
			  "QP %u: peer ends at %" PRIu64 ", then at %" PRIu64,
			  q->index, q->peer_final, c.final);
	q->credit = c.verified;
	q->peer_final = c.final;
	q->peer_rests = c.rests;
	mw_hear(q, &c);
}

unsigned int traffic_post(struct traffic *t, bool backwards)
{
	unsigned int i, n = 0;
	struct traffic_qp *q;

	for (i = 0; i < t->shape.qps && !verdict_fatal(&t->verdict); i++) {
		q = &t->qp[backwards ? t->shape.qps - 1 - i : i];
		pthread_mutex_lock(&q->lock);
		take_credit(q);
		n += post_ops(q);
		n += post_windows(q);
		mw_give(q);
		if (credit_due(q) && sq_room(&q->sq)) {
			post_credit(q);
			n++;
		}
		pthread_mutex_unlock(&q->lock);
	}
	return n;
}
