// SPDX-License-Identifier: GPL-2.0
/* Queue pairs: contexts and their states. */

#include <stdlib.h>

#include "nic.h"
#include "queue.h"

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

	(void)nic;
	pas_free(&qp->pas);
	free(qp);
}

static int parse(struct nic *nic, struct cmd *cmd, struct qp *qp)
{
	const u8 *qpc = qp->qpc;
	unsigned int shift = GET(qpc, qpc, log_page_size) + PAGE_SHIFT_MIN;
	unsigned int rq_type = GET(qpc, qpc, rq_type);
	u32 id = GET(qpc, qpc, srqn_rmpn_xrqn);
	struct obj *srq;
	u64 size = 0;

	qp->type = GET(qpc, qpc, st);
	if (qp->type > ST_XRC && qp->type != ST_QP1 && qp->type != ST_REG_UMR)
		return FAIL(BAD_PARAM, "service type");
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
	if (qp->db & 7 ||
	    !pas_init(&qp->pas, cmd->in + BYTES(create_qp_in),
		      cmd->in_len - BYTES(create_qp_in), shift,
		      GET(qpc, qpc, page_offset) << (shift - 6), size))
		return FAIL(BAD_PARAM, "size, doorbell record or pages");

	qp->send_cq = (struct cq *)cmd_hold(nic, &qp->obj, OBJ_CQ,
					    GET(qpc, qpc, cqn_snd));
	qp->recv_cq = (struct cq *)cmd_hold(nic, &qp->obj, OBJ_CQ,
					    GET(qpc, qpc, cqn_rcv));
	if (!qp->send_cq && !qp->no_sq)
		return FAIL(BAD_RES, "no such send CQ");
	if (!qp->recv_cq && rq_type < RQ_NONE)
		return FAIL(BAD_RES, "no such receive CQ");
	if (!cmd_hold(nic, &qp->obj, OBJ_PD, qp->pd))
		return FAIL(BAD_RES, "no such PD");
	if (rq_type == RQ_XRQ)
		return FAIL(BAD_PARAM, "no XRQ here");
	if (rq_type == RQ_SRQ) {
		srq = cmd_hold(nic, &qp->obj, OBJ_RMP, id);
		if (!srq)
			srq = cmd_hold(nic, &qp->obj, OBJ_SRQ, id);
		if (!srq)
			srq = cmd_hold(nic, &qp->obj, OBJ_XRC_SRQ, id);
		if (!srq)
			return FAIL(BAD_RES, "no such SRQ");
		qp->srq = (struct srq *)srq;
	}
	if (qp->type == ST_XRC &&
	    !cmd_hold(nic, &qp->obj, OBJ_XRCD, GET(qpc, qpc, xrcd)))
		return FAIL(BAD_RES, "no such XRCD");
	return CMD_OK;
}

static int create_qp(struct nic *nic, struct cmd *cmd)
{
	struct qp *qp = calloc(1, sizeof(*qp));
	int ret;

	if (!qp)
		return FAIL(INTERNAL, "no memory");
	qp->obj.free = qp_free;
	memcpy(qp->qpc, AT_RO(create_qp_in, cmd->in, qpc), sizeof(qp->qpc));
	ret = parse(nic, cmd, qp);
	if (ret) {
		obj_destroy(nic, &qp->obj);
		return ret;
	}
	SET(qpc, qp->qpc, state, QP_RST);
	return cmd_created(nic, cmd, &qp->obj, OBJ_QP);
}

/* ---- states ---- */

#define IN(state) (1U << (state))
#define ANY_STATE 0xffU
#define SAME 0xff

/* what a command may carry besides what it must: bits of opt_param_mask */
enum opt {
	OPT_RRE = 1 << 1,
	OPT_RAE = 1 << 2,
	OPT_RWE = 1 << 3,
	OPT_PKEY = 1 << 4,
	OPT_QKEY = 1 << 5,
	OPT_RNR_TIMEOUT = 1 << 6,
	OPT_PATH = 1 << 7,
	OPT_SRA_MAX = 1 << 8,
	OPT_RRA_MAX = 1 << 9,
	OPT_PM_STATE = 1 << 10,
	OPT_RETRY = 1 << 12,
	OPT_RNR_RETRY = 1 << 13,
	OPT_TIMEOUT = 1 << 14,
	OPT_PORT = 1 << 16,
	OPT_COUNTER = 1 << 25,
	/* of our own: the required ones of INIT2RTR and RTR2RTS */
	OPT_PEER = 1 << 30,
	OPT_SEND_PSN = 1U << 31,
};

#define OPT_ACCESS (OPT_RRE | OPT_RAE | OPT_RWE)

static const struct transition {
	u16 op;
	u32 from;
	u8 to;
	u32 required, optional;
} transitions[] = {
	{ MLX5_CMD_OP_RST2INIT_QP, IN(QP_RST), QP_INIT,
	  OPT_ACCESS | OPT_PKEY | OPT_QKEY | OPT_PORT | OPT_PM_STATE |
		  OPT_COUNTER,
	  0 },
	{ MLX5_CMD_OP_INIT2INIT_QP, IN(QP_INIT), QP_INIT, 0,
	  OPT_ACCESS | OPT_PKEY | OPT_QKEY | OPT_PORT | OPT_PM_STATE |
		  OPT_COUNTER },
	{ MLX5_CMD_OP_INIT2RTR_QP, IN(QP_INIT), QP_RTR,
	  OPT_PATH | OPT_PEER | OPT_RRA_MAX | OPT_RNR_TIMEOUT,
	  OPT_ACCESS | OPT_PKEY | OPT_QKEY | OPT_PORT | OPT_PM_STATE },
	{ MLX5_CMD_OP_RTR2RTS_QP, IN(QP_RTR), QP_RTS,
	  OPT_SEND_PSN | OPT_RETRY | OPT_RNR_RETRY | OPT_SRA_MAX | OPT_TIMEOUT,
	  OPT_ACCESS | OPT_QKEY | OPT_RNR_TIMEOUT | OPT_PM_STATE },
	{ MLX5_CMD_OP_RTS2RTS_QP, IN(QP_RTS) | IN(QP_SQD), SAME, 0,
	  OPT_ACCESS | OPT_QKEY | OPT_RNR_TIMEOUT | OPT_PM_STATE |
		  OPT_COUNTER },
	{ MLX5_CMD_OP_SQERR2RTS_QP, IN(QP_SQER), QP_RTS, 0,
	  OPT_RRE | OPT_RWE | OPT_QKEY | OPT_RNR_TIMEOUT },
	{ MLX5_CMD_OP_SQD_RTS_QP, IN(QP_SQD), QP_RTS, 0,
	  OPT_ACCESS | OPT_QKEY | OPT_RNR_TIMEOUT | OPT_PM_STATE },
	{ MLX5_CMD_OP_2ERR_QP, ANY_STATE, QP_ERR, 0, 0 },
	{ MLX5_CMD_OP_2RST_QP, ANY_STATE, QP_RST, 0, 0 },
};

static void merge(u8 *to, const u8 *from, u32 opt)
{
	u8 *ads = AT(qpc, to, primary_address_path);
	const u8 *ads_in = AT_RO(qpc, from, primary_address_path);
	u64 timeout = GET(ads, ads, ack_timeout);
	u64 port = GET(ads, ads, vhca_port_num);
	u64 pkey = GET(ads, ads, pkey_index);

	if (opt & OPT_PATH) {
		memcpy(ads, ads_in, BYTES(ads));
		SET(ads, ads, ack_timeout, timeout);
		SET(ads, ads, vhca_port_num, port);
		SET(ads, ads, pkey_index, pkey);
	}
	if (opt & OPT_TIMEOUT)
		COPY(ads, ads, ads_in, ack_timeout);
	if (opt & OPT_PORT)
		COPY(ads, ads, ads_in, vhca_port_num);
	if (opt & OPT_PKEY)
		COPY(ads, ads, ads_in, pkey_index);
	if (opt & OPT_RRE)
		COPY(qpc, to, from, rre);
	if (opt & OPT_RWE)
		COPY(qpc, to, from, rwe);
	if (opt & OPT_RAE) {
		COPY(qpc, to, from, rae);
		COPY(qpc, to, from, atomic_mode);
	}
	if (opt & OPT_QKEY)
		COPY(qpc, to, from, q_key);
	if (opt & OPT_RNR_TIMEOUT)
		COPY(qpc, to, from, min_rnr_nak);
	if (opt & OPT_SRA_MAX)
		COPY(qpc, to, from, log_sra_max);
	if (opt & OPT_RRA_MAX)
		COPY(qpc, to, from, log_rra_max);
	if (opt & OPT_PM_STATE)
		COPY(qpc, to, from, pm_state);
	if (opt & OPT_RETRY)
		COPY(qpc, to, from, retry_count);
	if (opt & OPT_RNR_RETRY)
		COPY(qpc, to, from, rnr_retry);
	if (opt & OPT_COUNTER)
		COPY(qpc, to, from, counter_set_id);
	if (opt & OPT_PEER) {
		COPY(qpc, to, from, mtu);
		COPY(qpc, to, from, log_msg_max);
		COPY(qpc, to, from, remote_qpn);
		COPY(qpc, to, from, next_rcv_psn);
	}
	if (opt & OPT_SEND_PSN)
		COPY(qpc, to, from, next_send_psn);
}

static int modify_qp(struct nic *nic, struct cmd *cmd)
{
	struct qp *qp = (struct qp *)obj_find(nic, OBJ_QP, cmd_id(cmd));
	const struct transition *t = transitions;
	u32 opt, state;

	if (!qp)
		return FAIL(BAD_RES, "no such QP");
	while (t->op != cmd->desc->op)
		t++;
	state = GET(qpc, qp->qpc, state);
	if (!(t->from & IN(state)))
		return FAIL(BAD_QP_STATE, "not in this state");
	opt = t->required;
	if (t->required | t->optional) {
		opt |= GET(init2rtr_qp_in, cmd->in, opt_param_mask) &
		       t->optional;
		merge(qp->qpc, AT_RO(init2rtr_qp_in, cmd->in, qpc), opt);
	}
	if (t->to != SAME)
		SET(qpc, qp->qpc, state, t->to);
	if (t->to == QP_RST)
		qp->sq_ci = qp->rq_ci = 0;
	return CMD_OK;
}

static int query_qp(struct nic *nic, struct cmd *cmd)
{
	struct qp *qp = (struct qp *)obj_find(nic, OBJ_QP, cmd_id(cmd));
	u8 *qpc = AT(query_qp_out, cmd->out, qpc);

	if (!qp)
		return FAIL(BAD_RES, "no such QP");
	memcpy(qpc, qp->qpc, sizeof(qp->qpc));
	SET(qpc, qpc, hw_sq_wqebb_counter, qp->sq_ci);
	SET(qpc, qpc, hw_rq_counter, qp->rq_ci);
	return CMD_OK;
}

/* Work of QPs waits for the transport engine. */
void qp_doorbell(struct nic *nic, struct qp *qp)
{
	nic_debug(nic, "doorbell of QP %u: no transport yet", qp->obj.id);
}

#define ROW(op, run, in, out, arg) { MLX5_CMD_OP_##op, #op, run, in, out, arg }
#define STATE_IN (BYTE_OF(rst2init_qp_in, qpc) + BYTES(qpc))

static const struct cmd_desc rows[] = {
	ROW(CREATE_QP, create_qp, BYTES(create_qp_in), 16, 0),
	ROW(DESTROY_QP, cmd_destroy, 16, 16, OBJ_QP),
	ROW(RST2INIT_QP, modify_qp, STATE_IN, 16, 0),
	ROW(INIT2INIT_QP, modify_qp, STATE_IN, 16, 0),
	ROW(INIT2RTR_QP, modify_qp, STATE_IN, 16, 0),
	ROW(RTR2RTS_QP, modify_qp, STATE_IN, 16, 0),
	ROW(RTS2RTS_QP, modify_qp, STATE_IN, 16, 0),
	ROW(SQERR2RTS_QP, modify_qp, STATE_IN, 16, 0),
	ROW(SQD_RTS_QP, modify_qp, STATE_IN, 16, 0),
	ROW(2ERR_QP, modify_qp, 16, 16, 0),
	ROW(2RST_QP, modify_qp, 16, 16, 0),
	ROW(QUERY_QP, query_qp, 16, BYTE_OF(query_qp_out, qpc) + BYTES(qpc), 0),
};

const struct cmd_rows rows_qp = { rows, N_ELEM(rows) };
