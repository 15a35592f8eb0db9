// SPDX-License-Identifier: GPL-2.0
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pattern.h"
#include "traffic.h"

#define POLL_BATCH 16

static int init_qp(struct traffic *t, unsigned int i, struct ibv_qp *qp)
{
	struct traffic_qp *q = &t->qp[i];

	pthread_mutex_init(&q->lock, NULL);
	q->t = t;
	q->index = i;
	q->qp = qp;
	q->qp_num = qp->qp_num;
	q->cells = region_at(&t->memory, REGION_CELLS, off_cells(i));
	q->peer_final = NO_FINAL;
	q->rq.verdict = &t->verdict;
	q->rq.qp = i;
	q->rq.with_inv = IBV_WC_WITH_INV;
	stream_init(&q->out, &t->shape, i, t->side);
	stream_init(&q->in, &t->shape, i, !t->side);
	q->slot = calloc(t->shape.window, sizeof(*q->slot));
	if (!q->slot)
		return -1;
	return sq_init(&q->sq, i, 2 * t->shape.window, &t->verdict);
}

int traffic_init(struct traffic *t, struct ibv_qp **qp)
{
	unsigned int i;

	pthread_mutex_init(&t->verdict.lock, NULL);
	t->qp = calloc(t->shape.qps, sizeof(*t->qp));
	if (!t->qp)
		return -1;
	for (i = 0; i < t->shape.qps; i++)
		if (init_qp(t, i, qp[i]))
			return -1;
	return 0;
}

int traffic_post_receives(struct traffic *t)
{
	unsigned int i, n;

	if (t->srq.srq)
		return post_shared(t);
	for (i = 0; i < t->shape.qps; i++)
		for (n = 0; n < t->shape.window; n++)
			if (post_receive(&t->qp[i], n))
				return -1;
	return 0;
}

void traffic_free(struct traffic *t)
{
	unsigned int i;

	for (i = 0; t->qp && i < t->shape.qps; i++) {
		sq_free(&t->qp[i].sq);
		free(t->qp[i].slot);
	}
	free(t->qp);
	t->qp = NULL;
	srq_free(&t->srq);
}

static void on_send(struct traffic_qp *q, const struct ibv_wc *wc)
{
	uint64_t n = sq_complete(&q->sq, wc, q->qp_num);

	for (; n; n--)
		check_retired(q, sq_at(&q->sq, q->sq.head++));
}

static void on_completion(struct traffic *t, const struct ibv_wc *wc)
{
	bool recv = wr_id_recv(wc->wr_id);
	unsigned int i = wr_id_qp(wc->wr_id);
	struct traffic_qp *q;

	if (i >= t->shape.qps && !(recv && t->srq.srq && i == SRQ_QP)) {
		violation(&t->verdict, "wr_id 0x%" PRIx64 " was never posted",
			  wc->wr_id);
		return;
	}
	if (wc->status != IBV_WC_SUCCESS) {
		/* the first says why, the flushed rest says nothing */
		if (!verdict_fatal(&t->verdict))
			violation_fatal(&t->verdict,
					"QP %u %s %" PRIu64
					": %s (vendor 0x%x)",
					i, recv ? "RQ" : "SQ",
					wr_id_index(wc->wr_id),
					ibv_wc_status_str(wc->status),
					wc->vendor_err);
		return;
	}
	if (i == SRQ_QP) {
		check_received_shared(t, wc);
		return;
	}
	q = &t->qp[i];
	pthread_mutex_lock(&q->lock);
	if (recv)
		check_received(q, wc);
	else
		on_send(q, wc);
	pthread_mutex_unlock(&q->lock);
}

unsigned int traffic_poll_cq(struct traffic *t, struct ibv_cq *cq)
{
	struct ibv_wc wc[POLL_BATCH];
	int n, i;

	n = ibv_poll_cq(cq, POLL_BATCH, wc);
	if (n < 0) {
		violation_fatal(&t->verdict, "ibv_poll_cq: %d", n);
		return 0;
	}
	for (i = 0; i < n; i++)
		on_completion(t, &wc[i]);
	if (t->srq.srq && cq == t->cq[t->cqs - 1])
		srq_polled(&t->srq, n < POLL_BATCH);
	return n;
}

unsigned int traffic_poll(struct traffic *t)
{
	unsigned int i, total = 0;

	if (t->events.how)
		return events_poll(t);
	for (i = 0; i < t->cqs; i++)
		total += traffic_poll_cq(t, t->cq[i]);
	return total;
}

void traffic_stop(struct traffic *t)
{
	unsigned int i;

	__atomic_store_n(&t->stopping, true, __ATOMIC_RELAXED);
	for (i = 0; i < t->shape.qps; i++) {
		pthread_mutex_lock(&t->qp[i].lock);
		t->qp[i].stopped = true;
		pthread_mutex_unlock(&t->qp[i].lock);
	}
}

bool traffic_peer_stopped(struct traffic *t)
{
	bool stopped = false;
	unsigned int i;

	for (i = 0; i < t->shape.qps && !stopped; i++) {
		pthread_mutex_lock(&t->qp[i].lock);
		stopped = t->qp[i].peer_final != NO_FINAL;
		pthread_mutex_unlock(&t->qp[i].lock);
	}
	return stopped;
}

bool traffic_rests(struct traffic *t)
{
	bool rests = true;
	unsigned int i;

	for (i = 0; i < t->shape.qps && rests; i++) {
		pthread_mutex_lock(&t->qp[i].lock);
		rests = t->qp[i].peer_rests;
		pthread_mutex_unlock(&t->qp[i].lock);
	}
	return rests || traffic_resting(t);
}

/* The peer has no receive to consume any more. */
static bool all_received(const struct traffic_qp *q)
{
	uint64_t seq = q->verified;
	struct op op;

	if (q->peer_final == NO_FINAL)
		return false;
	for (; seq < q->peer_final; seq++) {
		stream_op(&q->in, seq, &op);
		if (op_has(&op, F_RECV))
			return false;
	}
	return true;
}

static bool qp_drained(const struct traffic_qp *q)
{
	return q->final_sent && q->sq.head == q->sq.tail && all_received(q);
}

bool traffic_drained(struct traffic *t)
{
	bool drained = true;
	unsigned int i;

	for (i = 0; i < t->shape.qps && drained; i++) {
		pthread_mutex_lock(&t->qp[i].lock);
		drained = qp_drained(&t->qp[i]);
		pthread_mutex_unlock(&t->qp[i].lock);
	}
	return drained;
}

void traffic_check_end(struct traffic *t)
{
	uint64_t *shared = region_at(&t->memory, REGION_CELLS, OFF_SHARED);
	unsigned int i, extra = 0;
	uint64_t sum = 0;

	for (i = 0; i < t->cqs; i++)
		extra += traffic_poll_cq(t, t->cq[i]);
	if (extra)
		violation(&t->verdict, "%u completions after the last", extra);
	for (i = 0; i < t->shape.qps; i++) {
		check_qp_end(&t->qp[i]);
		sum += t->qp[i].in_shared;
	}
	if (*shared != sum)
		violation(&t->verdict,
			  "shared counter is 0x%" PRIx64
			  " at the end, expected 0x%" PRIx64,
			  *shared, sum);
	if (t->srq.srq)
		srq_check_end(&t->srq);
}

static void explain_qp(struct traffic_qp *q)
{
	const struct sq_entry *e = sq_at(&q->sq, q->sq.head);
	bool idle = q->sq.head == q->sq.tail;
	struct credit *c = &q->cells->credit;

	violation_fatal(&q->t->verdict,
			"stuck: QP %u (0x%x): SQ %" PRIu64 "-%" PRIu64
			" outstanding, oldest %s%s seq %" PRIu64
			"; posted to %" PRIu64 ", peer checked %" PRIu64
			"; peer's checked to %" PRIu64 ", told %" PRIu64
			"; RQ %" PRIu64 "-%" PRIu64 "; peer ends %" PRId64 "%s",
			q->index, q->qp_num, q->sq.head, q->sq.tail,
			idle ? "none" : op_info[e->op.kind].name,
			!idle && e->signaled ? " signaled" : "",
			idle ? 0 : e->op.seq, q->next, q->credit, q->verified,
			q->announced, q->rq.done, q->rq.posted,
			(int64_t)q->peer_final,
			c->check == credit_sum(c) ? "" : "; credit is torn");
}

void traffic_explain_stuck(struct traffic *t)
{
	struct traffic_qp *q;
	unsigned int i;

	events_explain_stuck(t);
	if (t->srq.srq)
		srq_explain_stuck(&t->srq);
	for (i = 0; i < t->shape.qps; i++) {
		q = &t->qp[i];
		pthread_mutex_lock(&q->lock);
		if (!qp_drained(q))
			explain_qp(q);
		pthread_mutex_unlock(&q->lock);
	}
}
