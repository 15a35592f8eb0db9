// SPDX-License-Identifier: GPL-2.0
/* What lossy_mix sends, and what it demands of that which comes. */
#include <arpa/inet.h>
#include <inttypes.h>

#include "check.h"
#include "lossy.h"
#include "pattern.h"

/* s without an answer, and one message goes all the same; then twice as long */
#define PATIENCE 0.1
#define MOST_PATIENCE 6.4

/* ---- sending ---- */

/*
 * An answer goes with the next message, and a full window waits for one; so who owes
 * many sends one beyond the window. Nor does it hold if answers are lost.
 */
static bool may_send(const struct lane *lane)
{
	if (lane->next - lane->done == WINDOW)
		return false;
	return lane->next - lane->answered < WINDOW ||
	       lane->expected - lane->told >= WINDOW / 2 ||
	       now() - lane->last_sent > lane->patience;
}

/* What is beyond the window may not be written where something lies unseen. */
static enum kind pick_kind(const struct lossy *l, const struct lane *lane,
			   uint64_t h)
{
	bool write = !l->ud && lane->next - lane->answered < WINDOW;

	return (enum kind)(h % (write ? KINDS : WRITE_IMM));
}

static void post(struct lossy *l, struct lane *lane, const struct header *h,
		 char *at)
{
	struct ibv_sge sge = { (uintptr_t)at, h->bytes, l->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = UINT64_MAX,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = h->kind == SEND	? IBV_WR_SEND
			  : h->kind == SEND_IMM ? IBV_WR_SEND_WITH_IMM
						: IBV_WR_RDMA_WRITE_WITH_IMM,
		.imm_data = htonl((uint32_t)h->seq),
	};
	struct ibv_send_wr *bad;

	if (l->ud) {
		wr.wr.ud.ah = lane->ah;
		wr.wr.ud.remote_qpn = lane->peer_qpn;
		wr.wr.ud.remote_qkey = QKEY;
	} else {
		wr.wr.rdma.remote_addr =
			lane->peer_addr + h->seq % WINDOW * SLOT;
		wr.wr.rdma.rkey = lane->peer_rkey;
	}
	MUST(!(errno = ibv_post_send(lane->qp, &wr, &bad)));
}

void messages_send(struct lossy *l, struct lane *lane)
{
	const uint32_t most = l->ud ? MOST_UD : MOST_UC;

	while (may_send(lane)) {
		uint64_t key = key_of(lane->key_out, lane->next);
		char *at = lane->send + lane->next % WINDOW * SLOT;
		struct header h = {
			.seq = lane->next,
			.ack = lane->expected,
			.bytes = (uint32_t)(sizeof(h) +
					    key % (most - sizeof(h) + 1)),
			.kind = pick_kind(l, lane, mix64(key)),
		};

		if (h.seq - lane->answered < WINDOW)
			lane->patience = PATIENCE;
		else if (lane->patience < MOST_PATIENCE)
			lane->patience *= 2;
		memcpy(at, &h, sizeof(h));
		pattern_fill(at + sizeof(h), key, 0, h.bytes - sizeof(h));
		post(l, lane, &h, at);
		lane->told = h.ack;
		lane->last_sent = now();
		lane->next++;
	}
}

/* ---- receiving ---- */

static const enum ibv_wc_opcode opcodes[KINDS] = {
	[SEND] = IBV_WC_RECV,
	[SEND_IMM] = IBV_WC_RECV,
	[WRITE_IMM] = IBV_WC_RECV_RDMA_WITH_IMM,
};

/* NULL, or what is wrong about a message that has come */
static const char *judge(const struct lane *lane, const struct header *h,
			 const char *rest, const struct ibv_wc *wc)
{
	bool imm = wc->wc_flags & IBV_WC_WITH_IMM;

	if (h->kind >= KINDS || wc->opcode != opcodes[h->kind])
		return "its kind";
	if (h->bytes < sizeof(*h) || h->bytes > MOST_UC)
		return "its length";
	if (imm != (h->kind != SEND) ||
	    (imm && ntohl(wc->imm_data) != (uint32_t)h->seq))
		return "its immediate data";
	if (pattern_check(rest, key_of(lane->key_in, h->seq), 0,
			  h->bytes - sizeof(*h)) >= 0)
		return "its content";
	/* what was cut leaves its beginning where another comes later */
	if (!lane->lost && h->seq == lane->expected &&
	    !slot_ends(rest - sizeof(*h), h->bytes))
		return "what lies behind it";
	if (h->seq < lane->expected)
		return "that it has come before, or another after it has";
	if (h->ack > lane->next)
		return "that it answers what was not sent";
	return NULL;
}

static void take_message(struct lossy *l, struct lane *lane, const char *at,
			 uint32_t bytes, const struct ibv_wc *wc)
{
	const char *wrong;
	struct header h;

	memcpy(&h, at, sizeof(h));
	wrong = h.bytes == bytes ? judge(lane, &h, at + sizeof(h), wc)
				 : "how much has come";
	if (wrong) {
		violation(&l->verdict,
			  "QP 0x%x: a message says it is %" PRIu64
			  " of %u bytes, expected %" PRIu64
			  " or later: wrong is %s",
			  lane->qpn, h.seq, h.bytes, lane->expected, wrong);
		return;
	}
	lane->received++;
	lane->lost += h.seq - lane->expected;
	lane->expected = h.seq + 1;
	if (h.ack > lane->answered)
		lane->answered = h.ack;
}

/* Who sends datagrams may move: answer to where the last one came from. */
static void follow(struct lossy *l, struct lane *lane, const struct ibv_wc *wc,
		   const char *grh)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };
	union ibv_gid from;

	memcpy(from.raw, mapped, sizeof(mapped));
	memcpy(from.raw + 12, grh + 32, 4); /* of the IPv4 header in its end */
	if (wc->src_qp != lane->peer_qpn) {
		violation(&l->verdict, "QP 0x%x: from QP 0x%x, not 0x%x",
			  lane->qpn, wc->src_qp, lane->peer_qpn);
		return;
	}
	if (!memcmp(&from, &lane->peer, sizeof(from)))
		return;
	MUST(lane->followed < MOST_FOLLOWED);
	lane->old_ah[lane->followed++] = lane->ah;
	lane->ah = lane_ah(l, &from);
	lane->peer = from;
}

/* Was this receive posted, for this lane? Once only. */
static bool was_posted(struct lossy *l, const struct lane *lane, uint64_t slot)
{
	struct lane *owner = &l->lane[slot / RECEIVES];
	bool *posted = &owner->posted[slot % RECEIVES];
	bool was = *posted && (l->srq || owner == lane);

	*posted = false;
	return was;
}

static struct lane *find_lane(struct lossy *l, uint32_t qpn)
{
	for (uint32_t i = 0; i < l->lanes; i++)
		if (l->lane[i].qpn == qpn)
			return &l->lane[i];
	return NULL;
}

static void take(struct lossy *l, struct lane *lane, const struct ibv_wc *wc)
{
	struct lane *owner = &l->lane[wc->wr_id / RECEIVES]; /* of the slot */
	char *at = owner->recv + wc->wr_id % RECEIVES * SLOT;

	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
		at = lane->slots + ntohl(wc->imm_data) % WINDOW * SLOT;
		take_message(l, lane, at, wc->byte_len, wc);
		slot_clear(at);
	} else if (l->ud) {
		follow(l, lane, wc, at);
		take_message(l, lane, at + GRH, wc->byte_len - GRH, wc);
	} else {
		take_message(l, lane, at, wc->byte_len, wc);
	}
}

static void on_completion(struct lossy *l, const struct ibv_wc *wc)
{
	bool recv = wc->wr_id < (uint64_t)l->lanes * RECEIVES;
	struct lane *lane = find_lane(l, wc->qp_num);

	if (!lane || (!recv && wc->wr_id != UINT64_MAX) ||
	    (recv && !was_posted(l, lane, wc->wr_id))) {
		violation_fatal(&l->verdict,
				"a completion of QP 0x%x with wr_id 0x%" PRIx64,
				wc->qp_num, wc->wr_id);
		return;
	}
	/* of an SRQ the receive of a message that was cut does not come back */
	if (recv && l->srq && !l->ud && wc->status == IBV_WC_REM_INV_REQ_ERR) {
		lane->cut++;
	} else if (wc->status != IBV_WC_SUCCESS) {
		violation_fatal(&l->verdict, "QP 0x%x, %s: %s", lane->qpn,
				recv ? "receive" : "send",
				ibv_wc_status_str(wc->status));
		return;
	} else if (recv) {
		take(l, lane, wc);
	} else if (lane->done++ == lane->next) {
		violation_fatal(&l->verdict, "QP 0x%x: sent once more",
				lane->qpn);
	}
	if (recv)
		lane_receive(l, wc->wr_id);
}

unsigned int messages_poll(struct lossy *l)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(l->cq, 16, wc);

	MUST(n >= 0);
	for (int i = 0; i < n && !verdict_fatal(&l->verdict); i++)
		on_completion(l, &wc[i]);
	return (unsigned int)n;
}
