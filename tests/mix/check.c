// SPDX-License-Identifier: GPL-2.0
/* Looking at every byte and value that the peer or an operation of ours
 * left in our memory.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pattern.h"
#include "traffic.h"

/*
 * Compares one message, as it lies in @slot cut into pieces, with @op's
 * content; names the first wrong byte. @what: whose operation it is.
 */
static void check_pieces(struct traffic_qp *q, const struct op *op,
			 const char *slot, const struct piece *p,
			 unsigned int n, const char *what)
{
	unsigned int i;
	uint64_t off;
	ssize_t at;

	q->bytes += op->len;
	for (i = 0; i < n; i++) {
		at = pattern_check(slot + p[i].at, op->key, op->off + p[i].off,
				   p[i].len);
		if (at < 0)
			continue;
		off = p[i].off + at;
		violation(&q->t->verdict,
			  "QP %u %s seq %" PRIu64
			  " (%s%s, %u bytes): byte %" PRIu64
			  " is 0x%02x, expected 0x%02x",
			  q->index, what, op->seq, op_info[op->kind].name,
			  op->forward ? ", forwarded" : "", op->len, off,
			  (uint8_t)slot[p[i].at + at],
			  pattern_byte(op->key, op->off + off));
		return;
	}
}

static void check_guard(struct traffic_qp *q, const char *slot, uint32_t from,
			uint32_t len, const char *what, uint64_t seq)
{
	ssize_t at = guard_check(slot + from, len);

	if (at >= 0)
		violation(&q->t->verdict,
			  "QP %u %s %" PRIu64
			  ": byte %zd of its slot lies outside but was"
			  " changed to 0x%02x",
			  q->index, what, seq, from + at,
			  (uint8_t)slot[from + at]);
}

static void check_read(struct traffic_qp *q, const struct op *op)
{
	const char *slot = local_slot(&q->t->memory, q->index, op->seq);
	struct piece p[OP_PIECES];
	unsigned int n, i;

	n = cut_pieces(p, op->cut, op->pieces, op->len);
	check_pieces(q, op, slot, p, n, "own");
	for (i = 0; i < n; i++)
		check_guard(q, slot, p[i].at + p[i].len, OP_GAP, "own seq",
			    op->seq);
}

/*
 * Nobody else adds to a QP's own cell, so the old value is known. On the
 * shared counter it lies between what this QP has seen there and the sum of
 * all that was ever posted.
 */
static void check_atomic(struct traffic_qp *q, const struct sq_entry *e)
{
	const char *slot = local_slot(&q->t->memory, q->index, e->op.seq);
	bool shared = e->op.kind == OP_FETCH_ADD && e->op.shared;
	uint64_t old, least = e->expect, most = e->expect;

	if (shared) {
		least = q->shared_least;
		most = __atomic_load_n(&q->t->shared_sum, __ATOMIC_RELAXED) -
		       e->op.add;
	}
	memcpy(&old, slot, sizeof(old));
	if (old < least || old > most)
		violation(&q->t->verdict,
			  "QP %u own seq %" PRIu64
			  " (%s%s): old value 0x%" PRIx64
			  ", expected 0x%" PRIx64 " to 0x%" PRIx64,
			  q->index, e->op.seq, op_info[e->op.kind].name,
			  shared ? ", shared" : "", old, least, most);
	else if (shared)
		q->shared_least = old + e->op.add;
	check_guard(q, slot, sizeof(old), OP_GAP, "own seq", e->op.seq);
}

/* An operation of ours is over: look at what it brought. */
void check_retired(struct traffic_qp *q, const struct sq_entry *e)
{
	q->count[e->op.kind]++;
	if (e->op.kind == OP_BIND)
		mw_bound(q);
	if (e->op.kind >= OP_CREDIT)
		return;
	if (e->op.kind == OP_READ)
		check_read(q, &e->op);
	else if (op_has(&e->op, F_BACK))
		check_atomic(q, e);
	q->retired++;
}

/*
 * Checks the first @to bytes of the peer's slot number @i, whoever wrote
 * them. @after: the operation that is looked at, for the message.
 */
static void check_slot(struct traffic_qp *q, unsigned int i, uint32_t to,
		       uint64_t after)
{
	const struct slot *s = &q->slot[i];
	const char *slot = region_at(&q->t->memory, REGION_SLOTS,
				     off_slot(q->in.shape, q->index, i));
	uint32_t off = 0, end;
	unsigned int w = s->n;
	uint64_t key;
	ssize_t at;

	for (; w-- && off < to; off = end) {
		end = s->writer[w].len < to ? s->writer[w].len : to;
		key = stream_data_key(&q->in, s->writer[w].seq);
		at = pattern_check(slot + off, key, off, end - off);
		if (at < 0)
			continue;
		violation(
			&q->t->verdict,
			"QP %u peer's WRITE %" PRIu64
			", %u bytes: byte %zd of its slot is 0x%02x after %" PRIu64
			", expected 0x%02x",
			q->index, s->writer[w].seq, s->writer[w].len, off + at,
			(uint8_t)slot[off + at], after,
			pattern_byte(key, off + at));
		return;
	}
	if (off < to)
		check_guard(q, slot, off, to - off, "peer's seq", after);
}

/*
 * Accounts for the peer's next operation, which is known to have been
 * executed; what it wrote must be in place.
 */
static void check_next(struct traffic_qp *q, const struct op *op)
{
	unsigned int i = op->seq & (q->in.shape->window - 1);

	if (op_has(op, F_SLOT)) {
		slot_wrote(&q->slot[i], op->seq, op->len);
		check_slot(q, i, op->len + OP_GAP, op->seq);
		q->bytes += op->len;
	} else if (op->kind == OP_CMP_SWAP) {
		q->in_swaps++;
	} else if (op->kind == OP_FETCH_ADD && op->shared) {
		q->in_shared += op->add;
	} else if (op->kind == OP_FETCH_ADD) {
		q->in_add += op->add;
	}
	q->verified++;
	q->received++;
}

/* It lies in receive buffer @index of QP @owner, or of the SRQ. */
static void check_message(struct traffic_qp *q, const struct op *op,
			  unsigned int owner, uint64_t index)
{
	const struct shape *s = q->in.shape;
	const uint32_t cut[2] = { recv_cut(s, index), s->max };
	const char *slot = local_recv(&q->t->memory, owner, index);
	struct piece p[2];
	unsigned int n;

	if (!op_has(op, F_SLOT)) {
		n = cut_pieces(p, cut, 2, op->len);
		check_pieces(q, op, slot, p, n, "peer's");
	}
	check_guard(q, slot, cut[0], OP_GAP, "RQ", index);
	check_guard(q, slot, s->max + OP_GAP, slot_size(s) - s->max - OP_GAP,
		    "RQ", index);
}

/*
 * A receive has completed. The peer's stream says which operation that must
 * have been and what came before it.
 */
static void check_arrived(struct traffic_qp *q, const struct ibv_wc *wc,
			  unsigned int owner, uint64_t index)
{
	struct op op;

	stream_op(&q->in, q->verified, &op);
	while (!op_has(&op, F_RECV)) {
		check_next(q, &op);
		stream_op(&q->in, q->verified, &op);
	}
	q->t->solicited += op.solicited;
	mw_arrived(q, wc, &op);
	rq_check(&q->rq, wc, &op, q->qp_num);
	check_message(q, &op, owner, index);
	check_next(q, &op);
}

void check_received(struct traffic_qp *q, const struct ibv_wc *wc)
{
	if (!rq_complete(&q->rq, wc))
		return;
	check_arrived(q, wc, q->index, wr_id_index(wc->wr_id));
	post_receive(q, q->rq.posted);
}

/* Of a message from the SRQ only its QP's number says whose it is. */
void check_received_shared(struct traffic *t, const struct ibv_wc *wc)
{
	struct traffic_qp *q;
	unsigned int i;
	uint32_t at;

	for (i = 0; i < t->shape.qps && t->qp[i].qp_num != wc->qp_num; i++)
		;
	if (!srq_complete(&t->srq, wc->wr_id, i, &at))
		return;
	if (i < t->shape.qps) {
		q = &t->qp[i];
		pthread_mutex_lock(&q->lock);
		q->rq.done++;
		check_arrived(q, wc, at / t->shape.window, at);
		pthread_mutex_unlock(&q->lock);
	} else {
		violation(&t->verdict,
			  "SRQ %" PRIu64 ": wc.qp_num 0x%x is no QP of ours",
			  wr_id_index(wc->wr_id), wc->qp_num);
	}
	post_shared(t);
}

static void check_cell(struct traffic_qp *q, const char *what, uint64_t seen,
		       uint64_t expected)
{
	if (seen != expected)
		violation(&q->t->verdict,
			  "QP %u: %s is 0x%" PRIx64
			  " at the end, expected 0x%" PRIx64,
			  q->index, what, seen, expected);
}

/* Both sides are done: everything must be in its final state. */
void check_qp_end(struct traffic_qp *q)
{
	uint32_t i;
	struct op op;

	while (q->verified < q->peer_final) {
		stream_op(&q->in, q->verified, &op);
		check_next(q, &op);
	}
	/* what was right once must not have been written again later */
	for (i = 0; i < q->in.shape->window; i++)
		check_slot(q, i, slot_size(q->in.shape), q->verified);
	check_cell(q, "FETCH_ADD cell", q->cells->add, q->in_add);
	check_cell(q, "CMP_SWAP cell", q->cells->swap,
		   stream_cas(&q->in, q->in_swaps));
}
