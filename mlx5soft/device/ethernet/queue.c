// SPDX-License-Identifier: GPL-2.0
/* Commands of Ethernet queues and what leads to them. */

#include <stdlib.h>

#include "commands/cmd.h"
#include "nic.h"

static void wq_free(struct nic *nic, struct obj *obj)
{
	struct wq *wq = (struct wq *)obj;

	if (wq->obj.kind == OBJ_RQ)
		rq_stop(nic, wq);
	else
		sq_stop(nic, wq);
	pas_free(&wq->pas);
	free(wq);
}

/* MODIFY_RQ: what changes */
#define RQ_VSD (1 << 1)
#define RQ_COUNTER_SET (1 << 3)

/* `ctx` has the CQ, `p` is the queue's description in the command */
static int create_wq(struct nic *nic, struct cmd *cmd, const uint8_t *ctx,
		     size_t ctx_len, const uint8_t *p, uint32_t cqn, bool rlky,
		     enum obj_kind kind)
{
	const uint8_t *list = p + BYTES(wq);
	unsigned int shift = GET(wq, p, log_wq_pg_sz) + PAGE_SHIFT_MIN;
	struct wq *wq = calloc(1, sizeof(*wq));
	int ret = -EINVAL;

	if (!wq)
		return FAIL(LIMIT, "no memory");
	wq->obj.free = wq_free;
	TAILQ_INIT(&wq->held);
	memcpy(wq->ctx, ctx, ctx_len);
	wq->rlky = rlky;
	wq->log_size = GET(wq, p, log_wq_sz);
	wq->log_stride = GET(wq, p, log_wq_stride);
	wq->pd = GET(wq, p, pd);
	wq->db = GET(wq, p, dbr_addr);
	/* The queue runs round: type 1 is cyclic. */
	if (GET(wq, p, wq_type) == 1 && wq->log_size <= MAX_LOG_WQ &&
	    wq->log_stride >= 4 && wq->log_stride <= 11 &&
	    (kind != OBJ_SQ || wq->log_stride == 6) && !(wq->db & 7))
		ret = pas_init(&wq->pas, list, cmd->in + cmd->in_len - list,
			       shift, GET(wq, p, page_offset) << (shift - 6),
			       1ULL << (wq->log_size + wq->log_stride));
	if (ret) {
		obj_destroy(nic, &wq->obj);
		return FAIL_WITH(ret, "type, size, doorbell record or pages");
	}
	wq->cq = (struct cq *)cmd_hold(nic, &wq->obj, OBJ_CQ, cqn);
	/* PD 0, which no key has, for a queue that never gets work */
	if (!wq->cq || (wq->pd && !cmd_hold(nic, &wq->obj, OBJ_PD, wq->pd))) {
		obj_destroy(nic, &wq->obj);
		return FAIL(BAD_RES, "no such CQ or PD");
	}
	return cmd_created(nic, cmd, &wq->obj, kind);
}

static int create_rq(struct nic *nic, struct cmd *cmd)
{
	const uint8_t *c = AT_RO(create_rq_in, cmd->in, ctx);

	if (GET(rqc, c, mem_rq_type))
		return FAIL(BAD_PARAM, "only an RQ with memory of its own");
	return create_wq(nic, cmd, c, BYTES(rqc), AT_RO(rqc, c, wq),
			 GET(rqc, c, cqn), GET(rqc, c, rlky), OBJ_RQ);
}

static int create_sq(struct nic *nic, struct cmd *cmd)
{
	const uint8_t *c = AT_RO(create_sq_in, cmd->in, ctx);

	return create_wq(nic, cmd, c, BYTES(sqc), AT_RO(sqc, c, wq),
			 GET(sqc, c, cqn), GET(sqc, c, rlky), OBJ_SQ);
}

static int modify_wq(struct nic *nic, struct cmd *cmd)
{
	bool rq = cmd->desc->arg == OBJ_RQ;
	const uint8_t *c = AT_RO(modify_rq_in, cmd->in, ctx);
	struct wq *wq = (struct wq *)obj_find(nic, cmd->desc->arg, cmd_id(cmd));
	uint8_t from, to;
	uint64_t mask;

	if (!wq)
		return FAIL(BAD_RES, "no such queue");
	from = GET(modify_rq_in, cmd->in, rq_state);
	to = rq ? GET(rqc, c, state) : GET(sqc, c, state);
	if (from != wq->state)
		return FAIL(BAD_RES_STATE, "in another state");
	if (to == WQ_RST) {
		if (rq)
			rq_stop(nic, wq);
		else
			sq_stop(nic, wq);
		wq->ci = 0;
		wq->sent = 0;
		wq->starved = false;
	} else if (to != WQ_ERR && (to != WQ_RDY || wq->state == WQ_ERR)) {
		return FAIL(BAD_PARAM, "no way to this state");
	}
	if (rq && to == WQ_RDY) {
		mask = GET(modify_rq_in, cmd->in, modify_bitmask);
		if (mask & RQ_VSD)
			COPY(rqc, wq->ctx, c, vsd);
		if (mask & RQ_COUNTER_SET)
			COPY(rqc, wq->ctx, c, counter_set_id);
	}
	wq->state = to;
	if (to == WQ_ERR && rq)
		rq_flush(nic, wq);
	else if (to == WQ_ERR)
		sq_kick(nic, wq);
	return CMD_OK;
}

static int query_wq(struct nic *nic, struct cmd *cmd)
{
	bool rq = cmd->desc->arg == OBJ_RQ;
	struct wq *wq = (struct wq *)obj_find(nic, cmd->desc->arg, cmd_id(cmd));
	uint8_t *c;

	if (!wq)
		return FAIL(BAD_RES, "no such queue");
	if (rq) {
		c = AT(query_rq_out, cmd->out, rq_context);
		memcpy(c, wq->ctx, BYTES(rqc));
		SET(rqc, c, state, wq->state);
	} else {
		c = AT(query_sq_out, cmd->out, sq_context);
		memcpy(c, wq->ctx, BYTES(sqc));
		SET(sqc, c, state, wq->state);
	}
	return CMD_OK;
}

/* ---- TIR, TIS, RQT ---- */

static int create_tir(struct nic *nic, struct cmd *cmd)
{
	const uint8_t *c = AT_RO(create_tir_in, cmd->in, ctx);
	bool direct = !GET(tirc, c, disp_type);
	struct tir *tir = calloc(1, sizeof(*tir));

	if (!tir)
		return FAIL(LIMIT, "no memory");
	memcpy(tir->ctx, c, sizeof(tir->ctx));
	if (!cmd_hold(nic, &tir->obj, direct ? OBJ_RQ : OBJ_RQT,
		      direct ? GET(tirc, c, inline_rqn)
			     : GET(tirc, c, indirect_table)) ||
	    !cmd_hold(nic, &tir->obj, OBJ_TD, GET(tirc, c, transport_domain))) {
		obj_destroy(nic, &tir->obj);
		return FAIL(BAD_RES, "no such RQ, RQT or transport domain");
	}
	return cmd_created(nic, cmd, &tir->obj, OBJ_TIR);
}

static int create_tis(struct nic *nic, struct cmd *cmd)
{
	const uint8_t *c = AT_RO(create_tis_in, cmd->in, ctx);
	struct tis *tis = calloc(1, sizeof(*tis));

	if (!tis)
		return FAIL(LIMIT, "no memory");
	memcpy(tis->ctx, c, sizeof(tis->ctx));
	if (!cmd_hold(nic, &tis->obj, OBJ_TD, GET(tisc, c, transport_domain))) {
		obj_destroy(nic, &tis->obj);
		return FAIL(BAD_RES, "no such transport domain");
	}
	return cmd_created(nic, cmd, &tis->obj, OBJ_TIS);
}

static int modify_tir(struct nic *nic, struct cmd *cmd)
{
	const uint8_t *c = AT_RO(modify_tir_in, cmd->in, ctx);
	struct tir *tir = (struct tir *)obj_find(nic, OBJ_TIR, cmd_id(cmd));

	if (!tir)
		return FAIL(BAD_RES, "no such TIR");
	if (GET(modify_tir_in, cmd->in, bitmask.packet_merge))
		return FAIL(BAD_PARAM, "packets are not merged");
	if (GET(modify_tir_in, cmd->in, bitmask.self_lb_en))
		COPY(tirc, tir->ctx, c, self_lb_block);
	if (GET(modify_tir_in, cmd->in, bitmask.hash)) {
		COPY(tirc, tir->ctx, c, rx_hash_fn);
		COPY(tirc, tir->ctx, c, rx_hash_symmetric);
		/* the key, and the outer fields behind it */
		memcpy(AT(tirc, tir->ctx, rx_hash_toeplitz_key),
		       AT_RO(tirc, c, rx_hash_toeplitz_key),
		       BYTE_OF(tirc, rx_hash_field_selector_inner) -
			       BYTE_OF(tirc, rx_hash_toeplitz_key));
	}
	return CMD_OK;
}

/* Priorities and loopback of sending have one way here. */
static int modify_tis(struct nic *nic, struct cmd *cmd)
{
	if (!obj_find(nic, OBJ_TIS, cmd_id(cmd)))
		return FAIL(BAD_RES, "no such TIS");
	return CMD_OK;
}

static int fill_rqt(struct nic *nic, struct cmd *cmd, struct rqt *rqt,
		    const uint8_t *c)
{
	const uint8_t *list = c + BYTES(rqtc);
	uint32_t count = GET(rqtc, c, rqt_actual_size), i;

	if (!count || count > rqt->max ||
	    list + 4 * count > cmd->in + cmd->in_len)
		return FAIL(BAD_PARAM, "size of the table");
	for (i = 0; i < count; i++)
		if (!obj_find(nic, OBJ_RQ, get_be32(list + 4 * i) & 0xffffff))
			return FAIL(BAD_RES, "no such RQ");
	/* An RQ may go before its table: numbers are looked up each time. */
	for (i = 0; i < count; i++)
		rqt->rqn[i] = get_be32(list + 4 * i) & 0xffffff;
	rqt->count = count;
	return CMD_OK;
}

static int create_rqt(struct nic *nic, struct cmd *cmd)
{
	const uint8_t *c = AT_RO(create_rqt_in, cmd->in, rqt_context);
	struct rqt *rqt = calloc(1, sizeof(*rqt));
	int ret;

	if (!rqt)
		return FAIL(LIMIT, "no memory");
	rqt->max = GET(rqtc, c, rqt_max_size);
	if (rqt->max > N_ELEM(rqt->rqn))
		rqt->max = N_ELEM(rqt->rqn);
	ret = fill_rqt(nic, cmd, rqt, c);
	if (ret) {
		obj_destroy(nic, &rqt->obj);
		return ret;
	}
	return cmd_created(nic, cmd, &rqt->obj, OBJ_RQT);
}

static int modify_rqt(struct nic *nic, struct cmd *cmd)
{
	struct rqt *rqt = (struct rqt *)obj_find(nic, OBJ_RQT, cmd_id(cmd));

	if (!rqt)
		return FAIL(BAD_RES, "no such RQT");
	return fill_rqt(nic, cmd, rqt, AT_RO(modify_rqt_in, cmd->in, ctx));
}

static const struct cmd_desc rows[] = {
	ROW(CREATE_RQ, create_rq, BYTES(create_rq_in), 16, 0),
	ROW(MODIFY_RQ, modify_wq, BYTES(modify_rq_in), 16, OBJ_RQ),
	ROW(DESTROY_RQ, cmd_destroy, 16, 16, OBJ_RQ),
	ROW(QUERY_RQ, query_wq, 16, BYTES(query_rq_out), OBJ_RQ),
	ROW(CREATE_SQ, create_sq, BYTES(create_sq_in), 16, 0),
	ROW(MODIFY_SQ, modify_wq, BYTES(modify_sq_in), 16, OBJ_SQ),
	ROW(DESTROY_SQ, cmd_destroy, 16, 16, OBJ_SQ),
	ROW(QUERY_SQ, query_wq, 16, BYTES(query_sq_out), OBJ_SQ),
	ROW(CREATE_TIR, create_tir, BYTES(create_tir_in), 16, 0),
	ROW(MODIFY_TIR, modify_tir, BYTES(modify_tir_in), 16, 0),
	ROW(DESTROY_TIR, cmd_destroy, 16, 16, OBJ_TIR),
	ROW(CREATE_TIS, create_tis, BYTES(create_tis_in), 16, 0),
	ROW(MODIFY_TIS, modify_tis, 16, 16, 0),
	ROW(DESTROY_TIS, cmd_destroy, 16, 16, OBJ_TIS),
	ROW(CREATE_RQT, create_rqt, BYTES(create_rqt_in), 16, 0),
	ROW(MODIFY_RQT, modify_rqt, BYTES(modify_rqt_in), 16, 0),
	ROW(DESTROY_RQT, cmd_destroy, 16, 16, OBJ_RQT),
};

const struct cmd_rows rows_eth = { rows, N_ELEM(rows) };
