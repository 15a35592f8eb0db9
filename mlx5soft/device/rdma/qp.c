// SPDX-License-Identifier: GPL-2.0
/* Queue pairs come and go; qp_state.c has their states. */

#include <errno.h>
#include <stdlib.h>

#include "commands/cmd.h"
#include "nic.h"
#include "rdma/qp.h"
#include "rdma/rdma.h"
#include "rdma/srq.h"
#include "rdma/wqe.h"

enum qp_type {
	ST_RC = 0x0,
	ST_UC = 0x1,
	ST_UD = 0x2,
	ST_XRC = 0x3,
	ST_QP1 = 0x8,
	ST_REG_UMR = 0xc,
};

enum rq_type {
	RQ_OWN = 0,
	RQ_SRQ = 1,
	RQ_XRQ = 2,
	RQ_NONE = 3
};

static void qp_free(struct nic *nic, struct obj *obj)
{
	struct qp *qp = (struct qp *)obj;

	if (qp->roce)
		rdma_forget(nic, qp);
	pas_free(&qp->pas);
	free(qp);
}

static int parse(struct nic *nic, struct cmd *cmd, struct qp *qp)
{
	const uint8_t *qpc = qp->qpc;
	unsigned int shift = GET(qpc, qpc, log_page_size) + PAGE_SHIFT_MIN;
	unsigned int rq_type = GET(qpc, qpc, rq_type);
	uint32_t id = GET(qpc, qpc, srqn_rmpn_xrqn);
	bool xrc = GET(qpc, qpc, st) == ST_XRC;
	struct obj *srq;
	uint64_t size = 0;
	int ret = -EINVAL;

	switch (GET(qpc, qpc, st)) {
	case ST_RC:
		qp->roce_type = ROCE_QPT_RC;
		break;
	case ST_UC:
		qp->roce_type = ROCE_QPT_UC;
		break;
	case ST_REG_UMR: /* sends no packets */
	case ST_UD:
		qp->roce_type = ROCE_QPT_UD;
		break;
	case ST_XRC:
		qp->roce_type = GET(qpc, qpc, no_sq) ? ROCE_QPT_XRC_RECV
						     : ROCE_QPT_XRC_SEND;
		break;
	case ST_QP1:
		qp->roce_type = ROCE_QPT_GSI;
		break;
	default:
		return FAIL(BAD_PARAM, "service type");
	}
	qp->umr = GET(qpc, qpc, st) == ST_REG_UMR;
	qp->rlky = GET(qpc, qpc, rlky);
	qp->pd = GET(qpc, qpc, pd);
	qp->no_sq = GET(qpc, qpc, no_sq);
	qp->no_rq = rq_type != RQ_OWN;
	qp->log_sq = GET(qpc, qpc, log_sq_size);
	qp->log_rq = GET(qpc, qpc, log_rq_size);
	qp->rq_shift = GET(qpc, qpc, log_rq_stride) + 4;
	qp->db = GET(qpc, qpc, dbr_addr);
	if (!qp->no_rq)
		size = 1ULL << (qp->log_rq + qp->rq_shift);
	qp->sq_at = size;
	if (!qp->no_sq)
		size += 64ULL << qp->log_sq;
	if (!(qp->db & 7))
		ret = pas_init(&qp->pas, cmd->in + BYTES(create_qp_in),
			       cmd->in_len - BYTES(create_qp_in), shift,
			       GET(qpc, qpc, page_offset) << (shift - 6), size);
	if (ret)
		return FAIL_WITH(ret, "size, doorbell record or pages");

	qp->send_cq = (struct cq *)cmd_hold(nic, &qp->obj, OBJ_CQ,
					    GET(qpc, qpc, cqn_snd));
	qp->recv_cq = (struct cq *)cmd_hold(nic, &qp->obj, OBJ_CQ,
					    GET(qpc, qpc, cqn_rcv));
	if ((!qp->send_cq && !qp->no_sq) ||
	    (!qp->recv_cq && rq_type != RQ_NONE))
		return FAIL(BAD_RES, "no such CQ");
	if (!qp->umr && /* that has none */
	    !cmd_hold(nic, &qp->obj, OBJ_PD, qp->pd))
		return FAIL(BAD_RES, "no such PD");
	/* not held: a process that ends may give back the UAR first */
	if (!(xrc && qp->no_sq) && /* an XRC target rings no doorbell */
	    !obj_find(nic, OBJ_UAR, GET(qpc, qpc, uar_page)))
		return FAIL(BAD_RES, "no such UAR");
	if (rq_type == RQ_XRQ)
		return FAIL(BAD_PARAM, "no XRQ here");
	if (xrc && rq_type == RQ_OWN)
		return FAIL(BAD_PARAM, "XRC has no receive queue");
	if (xrc) { /* packets name the SRQ: the one in the context is a dummy */
		qp->xrcd = GET(qpc, qpc, xrcd);
		if (!cmd_hold(nic, &qp->obj, OBJ_XRCD, qp->xrcd))
			return FAIL(BAD_RES, "no such XRCD");
	} else if (rq_type == RQ_SRQ) {
		srq = cmd_hold(nic, &qp->obj, OBJ_RMP, id);
		if (!srq)
			srq = cmd_hold(nic, &qp->obj, OBJ_SRQ, id);
		if (!srq) /* of verbs' basic type too, when it has no XRCD */
			srq = cmd_hold(nic, &qp->obj, OBJ_XRC_SRQ, id);
		if (!srq)
			return FAIL(BAD_RES, "no such SRQ");
		qp->srq = (struct srq *)srq;
	}
	return CMD_OK;
}

/* It needs its number first. */
static int add_transport(struct nic *nic, struct cmd *cmd, struct qp *qp)
{
	const struct roce_qp_init init = {
		.type = qp->roce_type,
		.ctx = qp,
		.qpn = qp->obj.id,
		.pd = qp->pd,
		.srq = qp->srq,
		.poll_recv = !qp->no_rq,
		.max_send_wr = 1U << qp->log_sq,
		.max_send_sge = WQE_MAX_SGE,
		.max_recv_sge = WQE_MAX_SGE,
	};
	int ret = roce_qp_create(nic->roce, &init, &qp->roce);

	if (!ret)
		return CMD_OK;
	obj_destroy(nic, &qp->obj);
	if (ret == -EEXIST)
		return FAIL(BAD_RES_STATE, "there is a GSI QP already");
	return FAIL(LIMIT, "no memory");
}

static int create_qp(struct nic *nic, struct cmd *cmd)
{
	struct qp *qp = calloc(1, sizeof(*qp));
	int ret;

	if (!qp)
		return FAIL(LIMIT, "no memory");
	qp->obj.free = qp_free;
	memcpy(qp->qpc, AT_RO(create_qp_in, cmd->in, qpc), sizeof(qp->qpc));
	ret = parse(nic, cmd, qp);
	if (ret) {
		obj_destroy(nic, &qp->obj);
		return ret;
	}
	SET(qpc, qp->qpc, state, QP_RST);
	ret = cmd_created(nic, cmd, &qp->obj, OBJ_QP);
	return ret ? ret : add_transport(nic, cmd, qp);
}

/* ---- multicast groups ---- */

_Static_assert(BYTES(attach_to_mcg_in) == BYTES(detach_from_mcg_in) &&
		       BYTE_OF(attach_to_mcg_in, multicast_gid) ==
			       BYTE_OF(detach_from_mcg_in, multicast_gid),
	       "both have the same layout");

static int change_mcg(struct nic *nic, struct cmd *cmd)
{
	const uint8_t *gid = AT_RO(attach_to_mcg_in, cmd->in, multicast_gid);
	struct qp *qp = (struct qp *)obj_find(nic, OBJ_QP, cmd_id(cmd));
	int ret;

	if (!qp)
		return FAIL(BAD_RES, "no such QP");
	if (cmd->desc->op == MLX5_CMD_OP_DETACH_FROM_MCG)
		return roce_detach(qp->roce, gid)
			       ? FAIL(BAD_RES_STATE, "not attached")
			       : CMD_OK;
	ret = qp->umr ? -EINVAL : roce_attach(qp->roce, gid);
	if (ret == -ENOSPC)
		return FAIL(LIMIT, "no group left, or no place in it");
	return ret ? FAIL(BAD_PARAM, "no UD QP, or no multicast GID") : CMD_OK;
}

static const struct cmd_desc rows[] = {
	ROW(CREATE_QP, create_qp, BYTES(create_qp_in), 16, 0),
	ROW(DESTROY_QP, cmd_destroy, 16, 16, OBJ_QP),
	ROW(ATTACH_TO_MCG, change_mcg, BYTES(attach_to_mcg_in), 16, 0),
	ROW(DETACH_FROM_MCG, change_mcg, BYTES(detach_from_mcg_in), 16, 0),
};

const struct cmd_rows rows_qp = { rows, N_ELEM(rows) };
