// SPDX-License-Identifier: GPL-2.0
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdlib.h>

#include "tracker.h"

/* Every so many entries one is signaled, whatever the stream says. */
#define SIGNAL_EVERY 8

int sq_init(struct sq *sq, unsigned int qp, uint32_t depth,
	    struct verdict *verdict)
{
	sq->entry = calloc(depth, sizeof(*sq->entry));
	sq->verdict = verdict;
	sq->qp = qp;
	sq->depth = depth;
	sq->unsignaled = 0;
	sq->head = 0;
	sq->tail = 0;
	return sq->entry ? 0 : -1;
}

void sq_free(struct sq *sq)
{
	free(sq->entry);
	sq->entry = NULL;
}

struct sq_entry *sq_push(struct sq *sq, const struct op *op, bool signaled)
{
	struct sq_entry *e = sq_at(sq, sq->tail++);

	e->op = *op;
	e->expect = 0;
	e->signaled = signaled || sq->unsignaled + 1 >= SIGNAL_EVERY;
	sq->unsignaled = e->signaled ? 0 : sq->unsignaled + 1;
	return e;
}

static void check_send(const struct sq *sq, const struct sq_entry *e,
		       const struct ibv_wc *wc, uint32_t qp_num)
{
	const struct op_info *info = &op_info[e->op.kind];
	uint64_t index = wr_id_index(wc->wr_id);

	if (wc->qp_num != qp_num)
		violation(sq->verdict,
			  "QP %u SQ %" PRIu64 ": wc.qp_num 0x%x, expected 0x%x",
			  sq->qp, index, wc->qp_num, qp_num);
	if (wc->opcode != info->wc)
		violation(sq->verdict,
			  "QP %u SQ %" PRIu64
			  " (%s): wc.opcode %d, expected %d",
			  sq->qp, index, info->name, wc->opcode, info->wc);
	/* byte_len is defined for what brings bytes, and only for that */
	if (op_has(&e->op, F_BACK) && wc->byte_len != e->op.len)
		violation(sq->verdict,
			  "QP %u SQ %" PRIu64
			  " (%s): wc.byte_len %u, expected %u",
			  sq->qp, index, info->name, wc->byte_len, e->op.len);
}

uint64_t sq_complete(struct sq *sq, const struct ibv_wc *wc, uint32_t qp_num)
{
	uint64_t index = wr_id_index(wc->wr_id), i;

	if (index < sq->head) {
		violation(sq->verdict,
			  "QP %u SQ %" PRIu64
			  ": completed again or too late, expected %" PRIu64
			  " or later",
			  sq->qp, index, sq->head);
		return 0;
	}
	if (index >= sq->tail) {
		violation(sq->verdict,
			  "QP %u SQ %" PRIu64
			  ": completed but never posted, next is %" PRIu64,
			  sq->qp, index, sq->tail);
		return 0;
	}
	if (!sq_at(sq, index)->signaled)
		violation(sq->verdict,
			  "QP %u SQ %" PRIu64
			  ": completion of an unsignaled request",
			  sq->qp, index);
	for (i = sq->head; i < index; i++)
		if (sq_at(sq, i)->signaled)
			violation(sq->verdict,
				  "QP %u SQ %" PRIu64
				  ": no completion before that of %" PRIu64
				  ": lost or overtaken",
				  sq->qp, i, index);
	check_send(sq, sq_at(sq, index), wc, qp_num);
	return index + 1 - sq->head;
}

bool rq_complete(struct rq *rq, const struct ibv_wc *wc)
{
	uint64_t index = wr_id_index(wc->wr_id);

	if (index != rq->done)
		violation(rq->verdict,
			  "QP %u RQ %" PRIu64
			  ": out of order, expected %" PRIu64,
			  rq->qp, index, rq->done);
	if (index < rq->done)
		return false;
	if (index >= rq->posted) {
		violation(rq->verdict,
			  "QP %u RQ %" PRIu64
			  ": completed but never posted, next is %" PRIu64,
			  rq->qp, index, rq->posted);
		return false;
	}
	rq->done = index + 1;
	return true;
}

void rq_check(const struct rq *rq, const struct ibv_wc *wc, const struct op *op,
	      uint32_t qp_num)
{
	const struct op_info *info = &op_info[op->kind];
	bool imm = op_has(op, F_IMM), inv = op_has(op, F_INV);
	uint64_t index = wr_id_index(wc->wr_id);

	if (wc->qp_num != qp_num)
		violation(rq->verdict,
			  "QP %u RQ %" PRIu64 ": wc.qp_num 0x%x, expected 0x%x",
			  rq->qp, index, wc->qp_num, qp_num);
	if (wc->opcode != info->recv_wc)
		violation(rq->verdict,
			  "QP %u RQ %" PRIu64 " seq %" PRIu64
			  " (%s): wc.opcode %d, expected %d",
			  rq->qp, index, op->seq, info->name, wc->opcode,
			  info->recv_wc);
	if (!(wc->wc_flags & IBV_WC_WITH_IMM) == imm ||
	    !(wc->wc_flags & rq->with_inv) == inv)
		violation(rq->verdict,
			  "QP %u RQ %" PRIu64 " seq %" PRIu64
			  " (%s): wc.wc_flags 0x%x, expected 0x%x",
			  rq->qp, index, op->seq, info->name, wc->wc_flags,
			  (imm ? IBV_WC_WITH_IMM : 0) |
				  (inv ? IBV_WC_WITH_INV : 0));
	if (inv && wc->invalidated_rkey != op->inv)
		violation(rq->verdict,
			  "QP %u RQ %" PRIu64 " seq %" PRIu64
			  " (%s): invalidated_rkey 0x%08x, expected 0x%08x",
			  rq->qp, index, op->seq, info->name,
			  wc->invalidated_rkey, op->inv);
	if (imm && ntohl(wc->imm_data) != op->imm)
		violation(rq->verdict,
			  "QP %u RQ %" PRIu64 " seq %" PRIu64
			  " (%s): imm_data 0x%08x, expected 0x%08x",
			  rq->qp, index, op->seq, info->name,
			  ntohl(wc->imm_data), op->imm);
	if (wc->byte_len != op->len)
		violation(rq->verdict,
			  "QP %u RQ %" PRIu64 " seq %" PRIu64
			  " (%s): wc.byte_len %u, expected %u",
			  rq->qp, index, op->seq, info->name, wc->byte_len,
			  op->len);
}
