// SPDX-License-Identifier: GPL-2.0
/* Shared receive queues: SRQ, XRC SRQ and RMP differ in their contexts only. */

#include <errno.h>
#include <stdlib.h>

#include "commands/cmd.h"
#include "eq.h"
#include "nic.h"
#include "rdma/srq.h"
#include "rdma/wqe.h"

/* what the three contexts say */
struct params {
	unsigned int log_size, log_stride, page_shift;
	uint64_t page_offset;
	uint32_t pd, xrcd, cqn, limit;
	uint64_t db;
	bool xrc;
	const uint8_t *ctx, *list;
	uint16_t ctx_len;
};

static void srq_free(struct nic *nic, struct obj *obj)
{
	struct srq *srq = (struct srq *)obj;

	(void)nic;
	pas_free(&srq->pas);
	free(srq);
}

static int create(struct nic *nic, struct cmd *cmd, const struct params *p,
		  enum obj_kind kind)
{
	struct srq *srq = calloc(1, sizeof(*srq));
	size_t avail = cmd->in + cmd->in_len - p->list;
	int ret = -EINVAL;

	if (!srq)
		return FAIL(LIMIT, "no memory");
	srq->obj.free = srq_free;
	srq->log_size = p->log_size;
	srq->log_stride = p->log_stride;
	srq->pd = p->pd;
	srq->xrcd = p->xrcd;
	srq->db = p->db;
	srq->limit = p->limit;
	srq->ctx_len = p->ctx_len;
	memcpy(srq->ctx, p->ctx, p->ctx_len);
	if (p->log_size <= MAX_LOG_WQ && p->log_stride >= 4 &&
	    p->log_stride <= MAX_LOG_RQ_STRIDE &&
	    p->page_shift <= MAX_PAGE_SHIFT && !(p->db & 3))
		ret = pas_init(&srq->pas, p->list, avail, p->page_shift,
			       p->page_offset << (p->page_shift - 6),
			       1ULL << (p->log_size + p->log_stride));
	if (ret) {
		obj_destroy(nic, &srq->obj);
		return FAIL_WITH(ret, "size, doorbell record or pages");
	}
	if (p->xrc)
		srq->cq = (struct cq *)cmd_hold(nic, &srq->obj, OBJ_CQ, p->cqn);
	if (!cmd_hold(nic, &srq->obj, OBJ_PD, p->pd) ||
	    (p->xrc &&
	     (!srq->cq || !cmd_hold(nic, &srq->obj, OBJ_XRCD, p->xrcd)))) {
		obj_destroy(nic, &srq->obj);
		return FAIL(BAD_RES, "no such PD, XRCD or CQ");
	}
	return cmd_created(nic, cmd, &srq->obj, kind);
}

static int create_srq(struct nic *nic, struct cmd *cmd)
{
	const uint8_t *c = AT_RO(create_srq_in, cmd->in, srq_context_entry);
	struct params p = {
		.log_size = GET(srqc, c, log_srq_size),
		.log_stride = GET(srqc, c, log_rq_stride) + 4,
		.page_shift = GET(srqc, c, log_page_size) + PAGE_SHIFT_MIN,
		.page_offset = GET(srqc, c, page_offset),
		.pd = GET(srqc, c, pd),
		.db = GET(srqc, c, dbr_addr),
		.ctx = c,
		.ctx_len = BYTES(srqc),
		.list = cmd->in + BYTES(create_srq_in),
	};

	return create(nic, cmd, &p, OBJ_SRQ);
}

static int create_xrc_srq(struct nic *nic, struct cmd *cmd)
{
	const uint8_t *c =
		AT_RO(create_xrc_srq_in, cmd->in, xrc_srq_context_entry);
	struct params p = {
		.log_size = GET(xrc_srqc, c, log_xrc_srq_size),
		.log_stride = GET(xrc_srqc, c, log_rq_stride) + 4,
		.page_shift = GET(xrc_srqc, c, log_page_size) + PAGE_SHIFT_MIN,
		.page_offset = GET(xrc_srqc, c, page_offset),
		.pd = GET(xrc_srqc, c, pd),
		.xrc = true,
		.xrcd = GET(xrc_srqc, c, xrcd),
		.cqn = GET(xrc_srqc, c, cqn),
		.limit = GET(xrc_srqc, c, lwm),
		.db = GET(xrc_srqc, c, db_record_addr_h) << 32 |
		      GET(xrc_srqc, c, db_record_addr_l) << 2,
		.ctx = c,
		.ctx_len = BYTES(xrc_srqc),
		.list = cmd->in + BYTES(create_xrc_srq_in),
	};

	return create(nic, cmd, &p, OBJ_XRC_SRQ);
}

static int create_rmp(struct nic *nic, struct cmd *cmd)
{
	const uint8_t *c = AT_RO(create_rmp_in, cmd->in, ctx);
	const uint8_t *wq = AT_RO(rmpc, c, wq);
	struct params p = {
		.log_size = GET(wq, wq, log_wq_sz),
		.log_stride = GET(wq, wq, log_wq_stride),
		.page_shift = GET(wq, wq, log_wq_pg_sz) + PAGE_SHIFT_MIN,
		.page_offset = GET(wq, wq, page_offset),
		.pd = GET(wq, wq, pd),
		.limit = GET(wq, wq, lwm),
		.db = GET(wq, wq, dbr_addr),
		.ctx = c,
		.ctx_len = BYTES(rmpc),
		.list = cmd->in + BYTES(create_rmp_in),
	};

	return create(nic, cmd, &p, OBJ_RMP);
}

static void fail(struct nic *nic, struct srq *srq)
{
	srq->failed = true;
	event_queue(nic, EVENT_SRQ_ERROR, QUEUE_QP, srq->obj.id);
}

/*
 * An element names the one that follows it: 16 bytes, with the index in 2 and
 * 3, in front of its list. The doorbell record counts what was posted. With one
 * that cannot be read the queue ends: what follows is not known. So it does with a
 * record that cannot be read, or says what cannot be.
 */
int srq_take(struct nic *nic, struct srq *srq, struct roce_recv_wqe *out)
{
	uint32_t stride = 1U << srq->log_stride, posted;
	uint8_t wqe[1U << MAX_LOG_RQ_STRIDE];
	uint16_t index;

	if (srq->failed)
		return -EIO;
	if (!dma_read_be32(nic, srq->db, &posted) ||
	    (uint16_t)(posted - srq->ci) > 1U << srq->log_size) {
		fail(nic, srq);
		return -EIO;
	}
	if ((uint16_t)posted == srq->ci)
		return 0;
	index = srq->next & ((1U << srq->log_size) - 1);
	out->cookie = index;
	if (!pas_read(nic, &srq->pas, (uint64_t)index << srq->log_stride, wqe,
		      stride)) {
		fail(nic, srq);
		return -EINVAL;
	}
	srq->next = get_be16(wqe + 2);
	srq->ci++;
	if ((uint16_t)(posted - srq->ci) < srq->limit) {
		srq->limit = 0;
		event_queue(nic, EVENT_SRQ_LIMIT, QUEUE_QP, srq->obj.id);
	}
	return wqe_decode_recv(wqe + 16, stride - 16, out) ? -EINVAL : 1;
}

/* of any of the three kinds */
static struct srq *srq_get(struct nic *nic, uint32_t id)
{
	struct obj *obj = obj_find(nic, OBJ_RMP, id);

	if (!obj)
		obj = obj_find(nic, OBJ_SRQ, id);
	return (struct srq *)(obj ? obj : obj_find(nic, OBJ_XRC_SRQ, id));
}

static int modify_rmp(struct nic *nic, struct cmd *cmd)
{
	struct srq *srq = (struct srq *)obj_find(nic, OBJ_RMP, cmd_id(cmd));
	const uint8_t *wq = AT_RO(rmpc, AT_RO(modify_rmp_in, cmd->in, ctx), wq);

	if (!srq)
		return FAIL(BAD_RES, "no such RMP");
	if (GET(rmp_bitmask, AT_RO(modify_rmp_in, cmd->in, bitmask), lwm))
		srq->limit = GET(wq, wq, lwm);
	return CMD_OK;
}

static int arm_srq(struct nic *nic, struct cmd *cmd)
{
	struct srq *srq = srq_get(nic, cmd_id(cmd));

	if (!srq)
		return FAIL(BAD_RES, "no such SRQ");
	srq->limit = GET(arm_rq_in, cmd->in, lwm);
	return CMD_OK;
}

static int query_srq(struct nic *nic, struct cmd *cmd)
{
	struct srq *srq =
		(struct srq *)obj_find(nic, cmd->desc->arg, cmd_id(cmd));
	uint8_t *c = cmd->out + 16;

	if (!srq)
		return FAIL(BAD_RES, "no such SRQ");
	/* the contexts follow 16 bytes, the RMP's 32 */
	if (cmd->desc->arg == OBJ_RMP)
		c = AT(query_rmp_out, cmd->out, rmp_context);
	memcpy(c, srq->ctx, srq->ctx_len);
	if (cmd->desc->arg == OBJ_RMP) {
		SET(rmpc, c, state,
		    srq->failed ? MLX5_RMPC_STATE_ERR : MLX5_RMPC_STATE_RDY);
		SET(wq, AT(rmpc, c, wq), lwm, srq->limit);
	} else if (cmd->desc->arg == OBJ_SRQ) {
		SET(srqc, c, state, srq->failed);
		SET(srqc, c, lwm, srq->limit);
	} else {
		SET(xrc_srqc, c, state, srq->failed);
		SET(xrc_srqc, c, lwm, srq->limit);
	}
	return CMD_OK;
}

static const struct cmd_desc rows[] = {
	ROW(CREATE_SRQ, create_srq, BYTES(create_srq_in), 16, 0),
	ROW(DESTROY_SRQ, cmd_destroy, 16, 16, OBJ_SRQ),
	ROW(QUERY_SRQ, query_srq, 16, 16 + BYTES(srqc), OBJ_SRQ),
	ROW(ARM_RQ, arm_srq, 16, 16, 0),
	ROW(CREATE_XRC_SRQ, create_xrc_srq, BYTES(create_xrc_srq_in), 16, 0),
	ROW(DESTROY_XRC_SRQ, cmd_destroy, 16, 16, OBJ_XRC_SRQ),
	ROW(QUERY_XRC_SRQ, query_srq, 16, 16 + BYTES(xrc_srqc), OBJ_XRC_SRQ),
	ROW(ARM_XRC_SRQ, arm_srq, 16, 16, 0),
	ROW(CREATE_RMP, create_rmp, BYTES(create_rmp_in), 16, 0),
	ROW(MODIFY_RMP, modify_rmp, BYTES(modify_rmp_in), 16, 0),
	ROW(DESTROY_RMP, cmd_destroy, 16, 16, OBJ_RMP),
	ROW(QUERY_RMP, query_srq, 16, BYTES(query_rmp_out), OBJ_RMP),
};

const struct cmd_rows rows_srq = { rows, N_ELEM(rows) };
