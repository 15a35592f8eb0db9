// SPDX-License-Identifier: GPL-2.0
/*
 * One timer per QP, in a binary heap. A QP whose deadline moved back keeps its
 * place until the old one passes: acknowledgements need not touch the heap.
 */
#include <stdlib.h>

#include "impl.h"

static void place(struct roce_engine *e, uint32_t i, struct roce_qp *qp)
{
	e->heap[i] = qp;
	qp->heap_index = i + 1;
}

static void sift_up(struct roce_engine *e, uint32_t i, struct roce_qp *qp)
{
	while (i && e->heap[(i - 1) / 2]->deadline > qp->deadline) {
		place(e, i, e->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	place(e, i, qp);
}

static void sift_down(struct roce_engine *e, uint32_t i, struct roce_qp *qp)
{
	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child + 1 < e->heap_count &&
		    e->heap[child + 1]->deadline < e->heap[child]->deadline)
			child++;
		if (child >= e->heap_count ||
		    e->heap[child]->deadline >= qp->deadline)
			break;
		place(e, i, e->heap[child]);
		i = child;
	}
	place(e, i, qp);
}

/* room for the timers of @count QPs */
int timer_reserve(struct roce_engine *e, uint32_t count)
{
	uint32_t size = e->heap_size ? e->heap_size : 16;
	struct roce_qp **heap;

	while (size < count)
		size *= 2;
	if (size == e->heap_size)
		return 0;
	heap = realloc(e->heap, size * sizeof(*heap));
	if (!heap)
		return -ENOMEM;
	e->heap = heap;
	e->heap_size = size;
	return 0;
}

static uint64_t wanted(const struct roce_qp *qp)
{
	const struct requester *req = &qp->req;
	uint64_t first = qp->look_deadline;

	if (req->ack_deadline < first)
		first = req->ack_deadline;
	return req->rnr_deadline < first ? req->rnr_deadline : first;
}

void timer_remove(struct roce_qp *qp)
{
	struct roce_engine *e = qp->engine;
	uint32_t i = qp->heap_index - 1;
	struct roce_qp *last;

	if (!qp->heap_index)
		return;
	qp->heap_index = 0;
	last = e->heap[--e->heap_count];
	if (last == qp)
		return;
	if (i && e->heap[(i - 1) / 2]->deadline > last->deadline)
		sift_up(e, i, last);
	else
		sift_down(e, i, last);
}

void timer_update(struct roce_qp *qp)
{
	struct roce_engine *e = qp->engine;
	uint64_t deadline = wanted(qp);

	if (deadline == NEVER || (qp->heap_index && qp->deadline <= deadline))
		return;
	qp->deadline = deadline;
	sift_up(e, qp->heap_index ? qp->heap_index - 1 : e->heap_count++, qp);
}

struct roce_qp *timer_expired(struct roce_engine *e)
{
	while (e->heap_count && e->heap[0]->deadline <= e->now) {
		struct roce_qp *qp = e->heap[0];

		timer_remove(qp);
		if (wanted(qp) <= e->now)
			return qp;
		timer_update(qp);
	}
	return NULL;
}
