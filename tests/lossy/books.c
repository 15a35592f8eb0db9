// SPDX-License-Identifier: GPL-2.0
/*
 * What was posted, and in its turn has completed. Messages may be missing,
 * completions may not.
 *
 * A send's wr_id is its lane and its number there, a receive's the number of those
 * posted to the same queue before it, and its slot. Sends complete in order, and so do
 * receives of a queue of the QP's own: the first that is not the next one is wrong, and
 * what is missing behind the last is seen when the rest is flushed, see end.c.
 *
 * QPs that share an SRQ take from it in order, but each completes in its own time; UC
 * holds a receive while a message of several packets comes in. Who has completed one
 * has none before it any more. So one that is left behind by all was lost. What cannot
 * be seen is whether the last ones, which not all have left behind, are still in the
 * SRQ: nothing flushes that, and a QP in ERR keeps the one that it holds.
 */
#include <inttypes.h>

#include "lossy.h"

#define SENT ((uint64_t)1 << 63)
#define LANE_SHIFT 48
#define SLOT_BITS 12

_Static_assert(MOST_LANES *RECEIVES <= 1 << SLOT_BITS, "SLOT_BITS");
_Static_assert(MOST_LANES <= 64, "not_of");

/* ---- sends ---- */

bool is_send(const struct ibv_wc *wc)
{
	return wc->wr_id & SENT;
}

uint64_t send_wr_id(const struct lossy *l, const struct lane *lane, uint64_t n)
{
	return SENT | (uint64_t)(lane - l->lane) << LANE_SHIFT | n;
}

static const enum ibv_wc_opcode opcodes[KINDS] = {
	[SEND] = IBV_WC_SEND,
	[SEND_IMM] = IBV_WC_SEND,
	[WRITE_IMM] = IBV_WC_RDMA_WRITE,
};

void send_completed(struct lossy *l, struct lane *lane, const struct ibv_wc *wc)
{
	uint64_t expected = send_wr_id(l, lane, lane->done);
	enum ibv_wc_opcode opcode = opcodes[lane->kind[lane->done % WINDOW]];

	if (lane->done == lane->next || wc->wr_id != expected) {
		violation_fatal(&l->verdict,
				"QP 0x%x: completion of send 0x%" PRIx64
				", expected 0x%" PRIx64
				", of those before 0x%" PRIx64,
				lane->qpn, wc->wr_id, expected,
				send_wr_id(l, lane, lane->next));
		return;
	}
	if (wc->status == IBV_WC_SUCCESS && wc->opcode != opcode)
		violation(&l->verdict,
			  "QP 0x%x: send %" PRIu64
			  ": wc.opcode %d, expected %d",
			  lane->qpn, lane->done, wc->opcode, opcode);
	lane->done++;
}

/* ---- receives ---- */

void receive_posted(struct lossy *l, uint32_t slot)
{
	struct receive *r = &l->receive[slot];
	uint64_t *n = l->srq ? &l->posted : &l->lane[slot / RECEIVES].posted;

	r->wr_id = (*n)++ << SLOT_BITS | slot;
	r->not_of = 0;
	r->posted = true;
}

/* @lane had @taken, and so has none before that. Is one left that nobody has? */
static bool leaves_none(struct lossy *l, const struct lane *lane,
			const struct receive *taken)
{
	const uint64_t all = UINT64_MAX >> (MOST_LANES - l->lanes);
	const uint64_t own = (uint64_t)1 << (lane - l->lane);
	uint32_t before = 0;

	if (taken->not_of & own)
		return false;
	for (uint32_t i = 0; i < l->lanes * RECEIVES; i++) {
		struct receive *r = &l->receive[i];

		if (!r->posted || r->wr_id >= taken->wr_id)
			continue;
		r->not_of |= own;
		if (r->not_of == all || ++before == l->lanes)
			return false;
	}
	return true;
}

bool receive_completed(struct lossy *l, struct lane *lane,
		       const struct ibv_wc *wc, uint32_t *slot)
{
	uint64_t n = wc->wr_id >> SLOT_BITS;
	struct receive *r = l->receive;

	*slot = wc->wr_id % (1 << SLOT_BITS);
	if (*slot < l->lanes * RECEIVES)
		r += *slot;
	if (r->wr_id != wc->wr_id || !r->posted ||
	    (!l->srq && &l->lane[*slot / RECEIVES] != lane)) {
		violation_fatal(&l->verdict,
				"QP 0x%x: completion of receive 0x%" PRIx64
				", which is not posted there",
				lane->qpn, wc->wr_id);
		return false;
	}
	r->posted = false;
	if (l->srq ? !leaves_none(l, lane, r) : n != lane->completed) {
		violation_fatal(&l->verdict,
				"QP 0x%x: completion of receive 0x%" PRIx64
				", whose turn it is not",
				lane->qpn, wc->wr_id);
		return false;
	}
	lane->completed++;
	return true;
}
