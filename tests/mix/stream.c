// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "pattern.h"
#include "stream.h"

const struct op_info op_info[OP_KINDS] = {
	[OP_SEND] = { "send", IBV_WR_SEND, IBV_WC_SEND, IBV_WC_RECV,
		      F_RECV | F_OUT },
	[OP_SEND_IMM] = { "send_imm", IBV_WR_SEND_WITH_IMM, IBV_WC_SEND,
			  IBV_WC_RECV, F_RECV | F_OUT | F_IMM },
	[OP_WRITE] = { "write", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, 0,
		       F_OUT | F_SLOT },
	[OP_WRITE_IMM] = { "write_imm", IBV_WR_RDMA_WRITE_WITH_IMM,
			   IBV_WC_RDMA_WRITE, IBV_WC_RECV_RDMA_WITH_IMM,
			   F_RECV | F_OUT | F_SLOT | F_IMM },
	[OP_READ] = { "read", IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, 0, F_BACK },
	[OP_FETCH_ADD] = { "fetch_add", IBV_WR_ATOMIC_FETCH_AND_ADD,
			   IBV_WC_FETCH_ADD, 0, F_BACK },
	[OP_CMP_SWAP] = { "cmp_swap", IBV_WR_ATOMIC_CMP_AND_SWP,
			  IBV_WC_COMP_SWAP, 0, F_BACK },
	[OP_SEND_INV] = { "send_inv", IBV_WR_SEND_WITH_INV, IBV_WC_SEND,
			  IBV_WC_RECV, F_RECV | F_OUT | F_INV },
	[OP_CREDIT] = { "credit", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, 0,
			F_OUT },
	[OP_BIND] = { "bind", IBV_WR_BIND_MW, IBV_WC_BIND_MW, 0, 0 },
	[OP_LOCAL_INV] = { "local_inv", IBV_WR_LOCAL_INV, IBV_WC_LOCAL_INV, 0,
			   0 },
};

/* How often each kind comes up. The first KINDS_RECV consume a receive. */
static const uint8_t kinds[] = {
	OP_SEND,      OP_SEND,	    OP_SEND_IMM, OP_WRITE_IMM,
	OP_WRITE,     OP_WRITE,	    OP_WRITE,	 OP_WRITE,
	OP_READ,      OP_READ,	    OP_READ,	 OP_READ,
	OP_FETCH_ADD, OP_FETCH_ADD, OP_CMP_SWAP, OP_CMP_SWAP,
};
#define KINDS_RECV 4

enum {
	KEY_PATTERN = 1,
	KEY_STREAM
}; /* below the seed */
enum {
	KEY_OPS,
	KEY_DATA,
	KEY_CAS
}; /* below a stream */

uint64_t pattern_key(const struct shape *s, unsigned int side)
{
	return key_of(key_of(s->seed, KEY_PATTERN), side);
}

void stream_init(struct stream *st, const struct shape *s, unsigned int qp,
		 unsigned int side)
{
	uint64_t key = key_of(s->seed, KEY_STREAM);

	st->shape = s;
	st->key = key_of(key_of(key, qp), side);
	st->peer_pattern = pattern_key(s, !side);
}

/* Takes @n values off the random bits @h. */
static uint32_t take(uint64_t *h, uint32_t n)
{
	uint32_t v = *h % n;

	*h /= n;
	return v;
}

uint32_t without_bit(const char *name)
{
	unsigned int k;

	for (k = 0; k < OP_STREAM_KINDS; k++)
		if (!strcmp(name, op_info[k].name))
			return 1u << k;
	if (!strcmp(name, "fence"))
		return WITHOUT_FENCE;
	return strcmp(name, "empty") ? 0 : WITHOUT_EMPTY;
}

static bool fences(const struct shape *s)
{
	return !(s->without & WITHOUT_FENCE);
}

static enum op_kind pick_kind(const struct shape *s, uint64_t h, bool recv)
{
	uint32_t n = recv ? KINDS_RECV : sizeof(kinds);
	uint8_t kind;

	for (;; h = mix64(h + 1)) {
		kind = kinds[h % n];
		if (!(s->without >> kind & 1))
			return kind;
	}
}

/* Lengths at which something changes are more likely than others. */
static uint32_t pick_len(const struct shape *s, uint64_t h)
{
	uint32_t n = s->max / s->mtu, len;

	switch (take(&h, 8)) {
	case 0:
		return take(&h, 2) || s->without & WITHOUT_EMPTY ? s->max : 0;
	case 1:
		return 1;
	case 2:
	case 3:
		return 2 + take(&h, s->max < 128 ? s->max - 2 : 126);
	case 4:
	case 5:
		len = s->mtu * (n ? 1 + take(&h, n) : 1) + take(&h, 3) - 1;
		return len < s->max ? len : s->max;
	default:
		return 1 + take(&h, s->max);
	}
}

uint64_t stream_data_key(const struct stream *st, uint64_t seq)
{
	return key_of(key_of(st->key, KEY_DATA), seq);
}

/* What an operation is before it looks at its neighbours. */
static uint64_t base_op(const struct stream *st, uint64_t seq, struct op *op)
{
	uint64_t h = key_of(key_of(st->key, KEY_OPS), seq);
	bool last = seq % OP_ROUND == OP_ROUND - 1;

	memset(op, 0, sizeof(*op));
	op->seq = seq;
	op->from = seq;
	op->kind = pick_kind(st->shape, h, last);
	op->key = stream_data_key(st, seq);
	op->imm = op->key >> 32;
	/* the last of each round: where a window ends the peer is woken */
	op->solicited = last || (op_has(op, F_RECV) && op->imm % 4 == 0);
	op->len = pick_len(st->shape, mix64(h));
	return mix64(h + 1);
}

/*
 * A READ fetches a WRITE that has just gone out, if there is one, else a part
 * of the pattern region. The responder executes both in order, so what is
 * there is known; the window keeps the slot from being written again before
 * the READ is over, even if the READ has to be repeated.
 */
static void aim_read(const struct stream *st, struct op *op, uint64_t h)
{
	struct op w;
	uint64_t i;

	op->key = st->peer_pattern;
	op->off = h % (pattern_size(st->shape) - op->len);
	if (h >> 63)
		return;
	for (i = 1; i <= OP_LOOKBACK && i <= op->seq; i++) {
		base_op(st, op->seq - i, &w);
		if (!op_has(&w, F_SLOT) || !w.len)
			continue;
		op->read_back = true;
		op->back_to = w.seq;
		op->key = w.key;
		op->off = h % w.len;
		op->len = w.len - op->off;
		return;
	}
}

static void cut_op(struct op *op, uint64_t h)
{
	uint32_t i, at = 0;

	op->pieces = op->len ? 1 + take(&h, OP_PIECES) : 0;
	if (op->pieces > op->len)
		op->pieces = op->len;
	for (i = 0; i + 1 < op->pieces; i++) {
		/* leave a byte for each piece to come */
		at += 1 + take(&h, op->len - at - (op->pieces - 1 - i));
		op->cut[i] = at;
	}
	if (op->pieces)
		op->cut[op->pieces - 1] = op->len;
}

/*
 * A SEND right after a READ may forward what the READ fetches, out of the
 * memory it is fetched into: wrong unless the fence holds.
 */
static bool forward_read(const struct stream *st, struct op *op, uint64_t h)
{
	struct op r;

	if (!(op->kind == OP_SEND || op->kind == OP_SEND_IMM) || !op->seq ||
	    !fences(st->shape))
		return false;
	base_op(st, op->seq - 1, &r);
	if (r.kind != OP_READ || h % 2)
		return false;
	stream_op(st, op->seq - 1, &r);
	op->forward = true;
	op->from = r.seq;
	op->len = r.len;
	op->key = r.key;
	op->off = r.off;
	op->pieces = r.pieces;
	memcpy(op->cut, r.cut, sizeof(op->cut));
	return true;
}

void stream_op(const struct stream *st, uint64_t seq, struct op *op)
{
	uint64_t h = base_op(st, seq, op);

	op->signaled = take(&h, 4) == 0;
	op->fenced = take(&h, 8) == 0 && fences(st->shape);
	op->inlined = take(&h, 2) && op_has(op, F_OUT);
	op->shared = take(&h, 2);
	op->add = op->shared ? 1 + op->key % 65536 : op->key;
	if (forward_read(st, op, h)) {
		op->fenced = true;
		op->inlined = false;
		return;
	}
	if (op->kind == OP_READ)
		aim_read(st, op, mix64(h));
	if (op->kind == OP_FETCH_ADD || op->kind == OP_CMP_SWAP) {
		op->len = 8;
		op->pieces = 1;
		op->cut[0] = 8;
		return;
	}
	cut_op(op, mix64(h + 1));
}

uint64_t stream_cas(const struct stream *st, uint64_t k)
{
	return key_of(key_of(st->key, KEY_CAS), k);
}

uint32_t recv_cut(const struct shape *s, uint64_t index)
{
	index &= s->window - 1;
	return 1 + key_of(s->seed, index) % (s->max - 1);
}

unsigned int cut_pieces(struct piece *p, const uint32_t *cut, unsigned int n,
			uint32_t len)
{
	unsigned int i;
	uint32_t off = 0;

	for (i = 0; i < n && off < len; i++) {
		p[i].off = off;
		p[i].at = off + i * OP_GAP;
		p[i].len = (cut[i] < len ? cut[i] : len) - off;
		off += p[i].len;
	}
	return i;
}
