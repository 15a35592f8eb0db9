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
#define MOST_MISSING (4 * RECEIVES) /* more are not missing in a row, of UC */

static uint32_t bytes_of(const struct lossy *l, uint64_t key)
{
	const uint32_t least = sizeof(struct header);

	return least +
	       (uint32_t)(key % ((l->ud ? MOST_UD : MOST_UC) - least + 1));
}

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
		.wr_id = send_wr_id(l, lane, h->seq),
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
		wr.wr.ud.remote_qpn = lane->group ? GROUP_QPN : lane->peer_qpn;
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
	while (may_send(lane)) {
		uint64_t key = key_of(lane->key_out, lane->next);
		char *at = lane->send + lane->next % WINDOW * SLOT;
		struct header h = {
			.seq = lane->next,
			.ack = lane->expected,
			.bytes = bytes_of(l, key),
			.kind = pick_kind(l, lane, mix64(key)),
		};

		if (h.seq - lane->answered < WINDOW)
			lane->patience = PATIENCE;
		else if (lane->patience < MOST_PATIENCE)
			lane->patience *= 2;
		memcpy(at, &h, sizeof(h));
		pattern_fill(at + sizeof(h), key, 0, h.bytes - sizeof(h));
		lane->kind[h.seq % WINDOW] = h.kind;
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

static bool of_missing(const struct lossy *l, const struct lane *lane,
		       uint64_t seq, uint32_t at, char byte)
{
	for (uint64_t s = seq;
	     s-- > lane->expected && seq - s < MOST_MISSING;) {
		uint64_t key = key_of(lane->key_in, s);

		if (at < bytes_of(l, key) &&
		    (uint8_t)byte ==
			    pattern_byte(key, at - sizeof(struct header)))
			return true;
	}
	return false;
}

/*
 * Behind a message lies nothing. Only UC with no SRQ gives a receive that a message had
 * begun to fill when it was cut to the next one, and so the missing one comes just
 * before.
 */
static bool ends(const struct lossy *l, struct lane *lane,
		 const struct header *h, const char *at,
		 const struct ibv_wc *wc)
{
	if (slot_ends(at, h->bytes))
		return true;
	if (l->ud || l->srq || wc->opcode != IBV_WC_RECV)
		return false;
	for (uint32_t i = h->bytes; i < h->bytes + LOOKED_AT; i++)
		if ((uint8_t)at[i] != NOTHING &&
		    !of_missing(l, lane, h->seq, i, at[i]))
			return false;
	lane->cut++;
	return true;
}

/* Whole packets of the beginning of WRITE @seq, not all, and nothing behind? */
static bool is_cut(const struct lossy *l, const struct lane *lane,
		   const char *slot, uint64_t seq)
{
	uint64_t key = key_of(lane->key_in, seq);
	uint32_t n = PATH_MTU;
	struct header h;

	memcpy(&h, slot, sizeof(h));
	if (h.seq != seq || h.kind != WRITE_IMM || h.bytes <= PATH_MTU ||
	    h.bytes != bytes_of(l, key) ||
	    pattern_check(slot + sizeof(h), key, 0, n - sizeof(h)) >= 0)
		return false;
	while (n + PATH_MTU < h.bytes &&
	       pattern_check(slot + n, key, n - sizeof(h), PATH_MTU) < 0)
		n += PATH_MTU;
	return slot_ends(slot, n);
}

/*
 * Where those before @seq that are missing would have been written lies nothing, or the
 * beginning of one that was cut. Nobody writes there again before he is answered, so
 * that it can be cleared for him.
 */
static bool clear_missing(struct lossy *l, struct lane *lane, uint64_t seq)
{
	struct header h;

	for (uint64_t s = lane->expected;
	     s < seq && s < lane->expected + WINDOW; s++) {
		char *slot = lane->slots + s % WINDOW * SLOT;

		if (slot_ends(slot, 0))
			continue;
		if (!is_cut(l, lane, slot, s)) {
			memcpy(&h, slot, sizeof(h));
			violation(&l->verdict,
				  "QP 0x%x: where %" PRIu64 " of %u bytes is "
				  "missing lies %" PRIu64
				  " of %u bytes, kind %u, right up to byte %ld",
				  lane->qpn, s,
				  bytes_of(l, key_of(lane->key_in, s)), h.seq,
				  h.bytes, h.kind,
				  (long)pattern_check(slot + sizeof(h),
						      key_of(lane->key_in, s),
						      0, SLOT - sizeof(h)));
			return false;
		}
		lane->cut++;
		slot_clear(slot);
	}
	return true;
}

/* NULL, or what is wrong about a message that has come */
static const char *judge(struct lossy *l, struct lane *lane,
			 const struct header *h, const char *at,
			 const struct ibv_wc *wc)
{
	bool imm = wc->wc_flags & IBV_WC_WITH_IMM;

	if (h->kind >= KINDS || wc->opcode != opcodes[h->kind])
		return "its kind";
	if (h->bytes < sizeof(*h) || h->bytes > MOST_UC)
		return "its length";
	if (imm != (h->kind != SEND) ||
	    (imm && ntohl(wc->imm_data) != (uint32_t)h->seq))
		return "its immediate data";
	if (pattern_check(at + sizeof(*h), key_of(lane->key_in, h->seq), 0,
			  h->bytes - sizeof(*h)) >= 0)
		return "its content";
	if (h->seq < lane->expected)
		return "that it has come before, or another after it has";
	if (!ends(l, lane, h, at, wc))
		return "what lies behind it";
	if (!clear_missing(l, lane, h->seq))
		return "what lies in the place of one that is missing";
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
	wrong = h.bytes == bytes ? judge(l, lane, &h, at, wc)
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

/*
 * Who sends datagrams may move: answer to where the last one came from. A group is
 * where it was.
 */
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
	if (lane->group || !memcmp(&from, &lane->peer, sizeof(from)))
		return;
	MUST(lane->followed < MOST_FOLLOWED);
	lane->old_ah[lane->followed++] = lane->ah;
	lane->ah = lane_ah(l, &from);
	lane->peer = from;
}

static struct lane *find_lane(struct lossy *l, uint32_t qpn)
{
	for (uint32_t i = 0; i < l->lanes; i++)
		if (l->lane[i].qpn == qpn)
			return &l->lane[i];
	return NULL;
}

static void take(struct lossy *l, struct lane *lane, const struct ibv_wc *wc,
		 uint32_t slot)
{
	char *at = l->lane[slot / RECEIVES].recv + slot % RECEIVES * SLOT;

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

static void on_receive(struct lossy *l, struct lane *lane,
		       const struct ibv_wc *wc)
{
	uint32_t slot;

	if (!receive_completed(l, lane, wc, &slot))
		return;
	if (wc->status == IBV_WC_SUCCESS)
		take(l, lane, wc, slot);
	else if (wc->status != IBV_WC_WR_FLUSH_ERR)
		lane->cut++;
	if (!l->ending)
		lane_receive(l, slot);
}

static bool may_fail(const struct lossy *l, const struct ibv_wc *wc)
{
	if (l->ending && wc->status == IBV_WC_WR_FLUSH_ERR)
		return true;
	/* of an SRQ the receive of a message that was cut does not come back */
	return l->srq && !l->ud && !is_send(wc) &&
	       wc->status == IBV_WC_REM_INV_REQ_ERR;
}

static void on_completion(struct lossy *l, const struct ibv_wc *wc)
{
	struct lane *lane = find_lane(l, wc->qp_num);

	if (!lane)
		violation_fatal(&l->verdict,
				"a completion of QP 0x%x with wr_id 0x%" PRIx64,
				wc->qp_num, wc->wr_id);
	else if (wc->status != IBV_WC_SUCCESS && !may_fail(l, wc))
		violation_fatal(&l->verdict, "QP 0x%x, %s: %s", lane->qpn,
				is_send(wc) ? "send" : "receive",
				ibv_wc_status_str(wc->status));
	else if (is_send(wc))
		send_completed(l, lane, wc);
	else
		on_receive(l, lane, wc);
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
