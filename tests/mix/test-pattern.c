// SPDX-License-Identifier: GPL-2.0
/* Patterns and streams: any part equals the same part of the whole. */
#include <string.h>

#include "../check.h"
#include "memory.h"
#include "pattern.h"
#include "stream.h"

static void test_fill_in_parts(void)
{
	uint8_t whole[200], part[200];
	size_t from, len, i;

	for (i = 0; i < sizeof(whole); i++)
		whole[i] = pattern_byte(42, i);
	for (from = 0; from < 20; from++)
		for (len = 0; len < 100; len++) {
			memset(part, 0, sizeof(part));
			pattern_fill(part, 42, from, len);
			MUST(!memcmp(part, whole + from, len));
			MUST(!part[len]);
			MUST(pattern_check(part, 42, from, len) == -1);
		}
}

static void test_every_bit_counts(void)
{
	uint8_t buf[50];
	size_t bit, off;

	for (off = 0; off < 9; off++)
		for (bit = 0; bit < 8 * sizeof(buf); bit++) {
			pattern_fill(buf, 7, off, sizeof(buf));
			buf[bit / 8] ^= 1 << bit % 8;
			MUST(pattern_check(buf, 7, off, sizeof(buf)) ==
			     (ssize_t)(bit / 8));
		}
	MUST(pattern_check(buf, 8, 0, sizeof(buf)) >= 0);
}

static void test_guard(void)
{
	uint8_t buf[64];
	size_t i;

	for (i = 0; i < sizeof(buf); i++) {
		memset(buf, GUARD_BYTE, sizeof(buf));
		MUST(guard_check(buf, sizeof(buf)) == -1);
		buf[i] ^= 4;
		MUST(guard_check(buf, sizeof(buf)) == (ssize_t)i);
	}
}

static const struct shape shape = {
	.seed = 1,
	.qps = 2,
	.window = 16,
	.max = 10000,
	.mtu = 1024,
};

static void check_op(const struct op *op)
{
	struct piece p[OP_PIECES];
	unsigned int i, n = cut_pieces(p, op->cut, op->pieces, op->len);
	uint32_t sum = 0;

	MUST(op->len <= shape.max);
	MUST(n == op->pieces);
	for (i = 0; i < n; i++) {
		MUST(p[i].len > 0 && p[i].off == sum);
		MUST(p[i].at + p[i].len + OP_GAP <= slot_size(&shape));
		sum += p[i].len;
	}
	MUST(sum == op->len);
	if (op->kind == OP_READ && !op->read_back)
		MUST(op->off + op->len <= pattern_size(&shape));
	if (op->read_back)
		MUST(op->seq - op->back_to <= OP_LOOKBACK);
	if (op->seq % OP_ROUND == OP_ROUND - 1)
		MUST(op_has(op, F_RECV));
}

/* All kinds, lengths and marks come up; the same op is the same each time. */
static void test_stream(void)
{
	unsigned int kinds[OP_KINDS] = { 0 }, forward = 0, back = 0, k;
	unsigned int zero = 0, one = 0, full = 0, fenced = 0, pieces[4] = { 0 };
	struct stream st, other;
	struct op op, again;
	uint64_t seq;

	stream_init(&st, &shape, 0, 0);
	stream_init(&other, &shape, 0, 1);
	for (seq = 0; seq < 20000; seq++) {
		stream_op(&st, seq, &op);
		stream_op(&st, seq, &again);
		MUST(!memcmp(&op, &again, sizeof(op)));
		check_op(&op);
		kinds[op.kind]++;
		pieces[op.pieces]++;
		forward += op.forward;
		back += op.read_back;
		fenced += op.fenced;
		zero += op.kind == OP_SEND && !op.len;
		one += op.len == 1;
		full += op.len == shape.max;
	}
	for (k = 0; k < OP_STREAM_KINDS; k++)
		MUST(kinds[k] > 1000);
	for (k = 0; k <= OP_PIECES; k++)
		MUST(pieces[k] > 400);
	MUST(forward > 100 && back > 100 && fenced > 1000);
	MUST(zero > 100 && one > 1000 && full > 100);
	stream_op(&st, 5, &op);
	stream_op(&other, 5, &again);
	MUST(op.key != again.key);
}

int main(void)
{
	test_fill_in_parts();
	test_every_bit_counts();
	test_guard();
	test_stream();
	return 0;
}
