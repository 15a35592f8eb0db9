// SPDX-License-Identifier: GPL-2.0
/*
 * Send WQEs that were fetched and have not completed. Most QPs have few at a
 * time, and there may be many QPs: there is room for some at first, and for more
 * when more are under way. If there is no memory, it stays with what there is:
 * others wait in the front end's queue.
 */
#include <stdlib.h>

#include "impl.h"

#define FIRST_SLOTS 8

static uint32_t max_slots(const struct roce_qp *qp)
{
	uint32_t n = 1;

	while (n < qp->init.max_send_wr && n < ROCE_MAX_FETCHED)
		n *= 2;
	return n;
}

/* of one WQE; at least one, to point to */
static uint32_t wqe_sges(const struct roce_qp *qp)
{
	return qp->init.max_send_sge ? qp->init.max_send_sge : 1;
}

int slots_init(struct roce_qp *qp)
{
	struct requester *req = &qp->req;
	uint32_t n = max_slots(qp);

	if (n > FIRST_SLOTS)
		n = FIRST_SLOTS;
	req->mask = n - 1;
	req->slots = calloc(n, sizeof(*req->slots));
	req->sge_size = wqe_sges(qp);
	req->sges = calloc(req->sge_size, sizeof(*req->sges));
	return req->slots && req->sges ? 0 : -ENOMEM;
}

void slots_drop(struct roce_qp *qp)
{
	struct requester *req = &qp->req;

	while (req->head != req->tail)
		slots_pop(qp);
}

void slots_free(struct roce_qp *qp)
{
	slots_drop(qp);
	free(qp->req.slots);
	free(qp->req.sges);
}

static bool grow_slots(struct roce_qp *qp)
{
	struct requester *req = &qp->req;
	uint32_t size = req->mask + 1;
	struct slot *slots;

	if (size == max_slots(qp))
		return false;
	slots = calloc(2 * size, sizeof(*slots));
	if (!slots)
		return false;
	for (uint32_t i = req->head; i != req->tail; i++)
		slots[i & (2 * size - 1)] = *qp_slot(qp, i);
	free(req->slots);
	req->slots = slots;
	req->mask = 2 * size - 1;
	return true;
}

/* Lists of WQEs move to the front of a larger ring. */
static bool grow_sges(struct roce_qp *qp)
{
	struct requester *req = &qp->req;
	uint32_t size = 2 * req->sge_size, at = 0;
	struct roce_sge *sges;

	if (req->sge_size >= wqe_sges(qp) * max_slots(qp))
		return false;
	sges = calloc(size, sizeof(*sges));
	if (!sges)
		return false;
	for (uint32_t i = req->head; i != req->tail; i++) {
		struct slot *slot = qp_slot(qp, i);
		uint32_t n = slot->wqe.num_sge;

		memcpy(sges + at, slot->wqe.sge, n * sizeof(*sges));
		slot->wqe.sge = sges + at;
		at += n;
		slot->sge_end = at;
	}
	free(req->sges);
	req->sges = sges;
	req->sge_size = size;
	req->sge_head = 0;
	req->sge_tail = at;
	return true;
}

/*
 * Make sge_tail the place for one more list, which is in one piece. False: there
 * is no room.
 */
static bool place_sges(struct roce_qp *qp)
{
	struct requester *req = &qp->req;
	uint32_t n = wqe_sges(qp);

	if (req->head == req->tail) {
		req->sge_head = req->sge_tail = 0;
		return true;
	}
	if (req->sge_tail < req->sge_head)
		return req->sge_head - req->sge_tail > n;
	if (req->sge_size - req->sge_tail >= n)
		return true;
	if (req->sge_head <= n)
		return false;
	req->sge_tail = 0;
	return true;
}

struct slot *slots_next(struct roce_qp *qp)
{
	struct requester *req = &qp->req;
	struct slot *slot;

	if (req->tail - req->head > req->mask && !grow_slots(qp))
		return NULL;
	while (!place_sges(qp))
		if (!grow_sges(qp))
			return NULL;
	slot = qp_slot(qp, req->tail);
	memset(slot, 0, sizeof(*slot));
	slot->wqe.sge = req->sges + req->sge_tail;
	return slot;
}

void slots_push(struct roce_qp *qp, struct slot *slot)
{
	struct requester *req = &qp->req;

	slot->sge_end = slot->wqe.sge - req->sges + slot->wqe.num_sge;
	req->sge_tail = slot->sge_end;
	req->tail++;
}

struct slot *slots_pop(struct roce_qp *qp)
{
	struct slot *slot = qp_slot(qp, qp->req.head++);

	qp->req.sge_head = slot->sge_end;
	free(slot->wqe.owned);
	slot->wqe.owned = NULL;
	return slot;
}
