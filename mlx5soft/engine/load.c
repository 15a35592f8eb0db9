// SPDX-License-Identifier: GPL-2.0
/*
 * What requesters have under way: for those who watch from outside. Nothing is
 * kept for it: who asks pays for the look at each WQE.
 */
#include "impl.h"

/* how many of the WQE's PSNs are before @psn */
static uint32_t before(const struct slot *slot, uint32_t psn)
{
	uint32_t n = psn_sub(psn, slot->psn);

	if (psn_before(psn, slot->psn))
		return 0;
	return n < slot->psns ? n : slot->psns;
}

static uint64_t payload(const struct roce_qp *qp, const struct slot *slot,
			uint32_t psns)
{
	uint64_t n = (uint64_t)psns * qp->mtu;

	return n < slot->length ? n : slot->length;
}

static void add_started(const struct roce_qp *qp, const struct slot *slot,
			struct roce_load *load)
{
	uint32_t acked = before(slot, qp->req.una);
	uint32_t sent = before(slot, qp->req.high);
	uint64_t bytes = payload(qp, slot, sent) - payload(qp, slot, acked);

	if (is_read(slot)) {
		load->packets += sent > acked; /* a request is one */
		load->read_bytes += bytes;
	} else {
		load->packets += sent - acked;
		load->bytes += is_atomic(slot) ? 0 : bytes;
	}
	if (!is_atomic(slot))
		load->unsent_bytes += slot->length - payload(qp, slot, sent);
}

/* Its list, or that it has none, has not been looked at yet. */
static uint64_t posted(const struct slot *slot)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < slot->wqe.num_sge; i++)
		n += slot->wqe.sge[i].length;
	return is_atomic(slot) ? 0 : n;
}

static void add(struct roce_qp *qp, struct roce_load *load)
{
	load->qps++;
	/* What other states have is not sent any more. */
	if (qp->attr.state != ROCE_QPS_RTS && qp->attr.state != ROCE_QPS_SQD)
		return;
	for (uint32_t i = qp->req.head; i != qp->req.tail; i++) {
		const struct slot *slot = qp_slot(qp, i);

		if (slot->done || slot->status)
			continue;
		if (slot->started)
			add_started(qp, slot, load);
		else
			load->unsent_bytes += posted(slot);
	}
}

struct roce_load roce_load(const struct roce_engine *e)
{
	struct roce_load load = { 0 };

	for (struct roce_qp *qp = e->all; qp; qp = qp->all_next)
		add(qp, &load);
	return load;
}
