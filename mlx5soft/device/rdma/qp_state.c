// SPDX-License-Identifier: GPL-2.0
/*
 * The states of queue pairs: what a command may change, merged into the QP's
 * context and handed to the transport.
 */

#include "commands/cmd.h"
#include "nic.h"
#include "rdma/qp.h"

#define IN(state) (1U << (state))
#define ANY_STATE 0xffU

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
	uint16_t op;
	uint32_t from;
	uint8_t to;
	uint32_t required, optional;
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
	{ MLX5_CMD_OP_RTS2RTS_QP, IN(QP_RTS), QP_RTS, 0,
	  OPT_ACCESS | OPT_QKEY | OPT_RNR_TIMEOUT | OPT_PM_STATE |
		  OPT_COUNTER },
	{ MLX5_CMD_OP_SQERR2RTS_QP, IN(QP_SQER), QP_RTS, 0,
	  OPT_RRE | OPT_RWE | OPT_QKEY | OPT_RNR_TIMEOUT },
	{ MLX5_CMD_OP_2ERR_QP, ANY_STATE, QP_ERR, 0, 0 },
	{ MLX5_CMD_OP_2RST_QP, ANY_STATE, QP_RST, 0, 0 },
};

static void merge(uint8_t *to, const uint8_t *from, uint32_t opt)
{
	uint8_t *ads = AT(qpc, to, primary_address_path);
	const uint8_t *ads_in = AT_RO(qpc, from, primary_address_path);
	uint64_t timeout = GET(ads, ads, ack_timeout);
	uint64_t port = GET(ads, ads, vhca_port_num);
	uint64_t pkey = GET(ads, ads, pkey_index);

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

/* ---- the transport's terms ---- */

static const struct {
	uint32_t opt, mask;
} roce_mask[] = {
	{ OPT_ACCESS, ROCE_QP_ACCESS_FLAGS },
	{ OPT_PKEY, ROCE_QP_PKEY_INDEX },
	{ OPT_PORT, ROCE_QP_PORT },
	{ OPT_QKEY, ROCE_QP_QKEY },
	{ OPT_RNR_TIMEOUT, ROCE_QP_MIN_RNR_TIMER },
	{ OPT_PATH, ROCE_QP_AV },
	{ OPT_PEER, ROCE_QP_PATH_MTU | ROCE_QP_DEST_QPN | ROCE_QP_RQ_PSN },
	{ OPT_RRA_MAX, ROCE_QP_MAX_DEST_RD_ATOMIC },
	{ OPT_SRA_MAX, ROCE_QP_MAX_QP_RD_ATOMIC },
	{ OPT_RETRY, ROCE_QP_RETRY_CNT },
	{ OPT_RNR_RETRY, ROCE_QP_RNR_RETRY },
	{ OPT_TIMEOUT, ROCE_QP_TIMEOUT },
	{ OPT_SEND_PSN, ROCE_QP_SQ_PSN },
};

#define UC_MASK                                                              \
	(ROCE_QP_ACCESS_FLAGS | ROCE_QP_PKEY_INDEX | ROCE_QP_PORT |          \
	 ROCE_QP_AV | ROCE_QP_PATH_MTU | ROCE_QP_DEST_QPN | ROCE_QP_RQ_PSN | \
	 ROCE_QP_SQ_PSN)
#define UD_MASK \
	(ROCE_QP_PKEY_INDEX | ROCE_QP_PORT | ROCE_QP_QKEY | ROCE_QP_SQ_PSN)

/* A command has the fields of all services; take what this one knows. */
static uint32_t mask_of(const struct qp *qp, uint32_t opt)
{
	uint32_t mask = 0;
	size_t i;

	for (i = 0; i < N_ELEM(roce_mask); i++)
		if (opt & roce_mask[i].opt)
			mask |= roce_mask[i].mask;
	switch (qp->roce_type) {
	case ROCE_QPT_RC:
	case ROCE_QPT_XRC_SEND:
	case ROCE_QPT_XRC_RECV:
		return mask & ~ROCE_QP_QKEY;
	case ROCE_QPT_UC:
		return mask & UC_MASK;
	default:
		return mask & UD_MASK;
	}
}

static void attr_of(const uint8_t *qpc, struct roce_qp_attr *a)
{
	const uint8_t *ads = AT_RO(qpc, qpc, primary_address_path);

	*a = (struct roce_qp_attr){
		.access = (GET(qpc, qpc, rre) ? ROCE_ACCESS_REMOTE_READ : 0) |
			  (GET(qpc, qpc, rwe) ? ROCE_ACCESS_REMOTE_WRITE : 0) |
			  (GET(qpc, qpc, rae) ? ROCE_ACCESS_REMOTE_ATOMIC : 0),
		.pkey_index = GET(ads, ads, pkey_index),
		.port = GET(ads, ads, vhca_port_num),
		.qkey = GET(qpc, qpc, q_key),
		.av = {
			.sgid_index = GET(ads, ads, src_addr_index),
			.tclass = GET(ads, ads, tclass),
			.hop_limit = GET(ads, ads, hop_limit),
			.flow_label = GET(ads, ads, flow_label),
			.udp_sport = GET(ads, ads, udp_sport),
		},
		.path_mtu = GET(qpc, qpc, mtu),
		.timeout = GET(ads, ads, ack_timeout),
		.retry_cnt = GET(qpc, qpc, retry_count),
		.rnr_retry = GET(qpc, qpc, rnr_retry),
		.min_rnr_timer = GET(qpc, qpc, min_rnr_nak),
		.max_rd_atomic = 1U << GET(qpc, qpc, log_sra_max),
		.max_dest_rd_atomic = 1U << GET(qpc, qpc, log_rra_max),
		.rq_psn = GET(qpc, qpc, next_rcv_psn),
		.sq_psn = GET(qpc, qpc, next_send_psn),
		.dest_qpn = GET(qpc, qpc, remote_qpn),
	};
	memcpy(a->av.dmac, AT_RO(ads, ads, rmac_47_32), 6);
	memcpy(a->av.dgid, AT_RO(ads, ads, rgid_rip), 16);
}

static const uint8_t state_of[] = {
	[ROCE_QPS_RESET] = QP_RST, [ROCE_QPS_INIT] = QP_INIT,
	[ROCE_QPS_RTR] = QP_RTR,   [ROCE_QPS_RTS] = QP_RTS,
	[ROCE_QPS_SQE] = QP_SQER,  [ROCE_QPS_ERR] = QP_ERR,
};

static const uint8_t roce_state_of[] = {
	[QP_RST] = ROCE_QPS_RESET, [QP_INIT] = ROCE_QPS_INIT,
	[QP_RTR] = ROCE_QPS_RTR,   [QP_RTS] = ROCE_QPS_RTS,
	[QP_SQER] = ROCE_QPS_SQE,  [QP_ERR] = ROCE_QPS_ERR,
};

/* ---- commands ---- */

static int modify_qp(struct nic *nic, struct cmd *cmd)
{
	uint8_t qpc[BYTES(qpc)];
	struct roce_qp_attr attr;
	struct qp *qp = (struct qp *)obj_find(nic, OBJ_QP, cmd_id(cmd));
	const struct transition *t = transitions;
	uint32_t opt, state;
	int ret;

	if (!qp)
		return FAIL(BAD_RES, "no such QP");
	while (t->op != cmd->desc->op)
		t++;
	state = state_of[roce_qp_state(qp->roce)];
	if (!(t->from & IN(state)))
		return FAIL(BAD_QP_STATE, "not in this state");
	opt = t->required;
	memcpy(qpc, qp->qpc, sizeof(qpc));
	if (t->required | t->optional) {
		opt |= GET(init2rtr_qp_in, cmd->in, opt_param_mask) &
		       t->optional;
		merge(qpc, AT_RO(init2rtr_qp_in, cmd->in, qpc), opt);
	}
	attr_of(qpc, &attr);
	attr.state = roce_state_of[t->to];
	ret = roce_qp_modify(qp->roce, &attr, mask_of(qp, opt) | ROCE_QP_STATE);
	if (ret)
		return FAIL_WITH(ret, "a value that cannot be");
	q_account(nic, qp); /* perhaps it is another one from now on */
	memcpy(qp->qpc, qpc, sizeof(qpc));
	if (t->to == QP_RST)
		qp->sq_ci = qp->rq_ci = 0;
	return CMD_OK;
}

static int query_qp(struct nic *nic, struct cmd *cmd)
{
	struct qp *qp = (struct qp *)obj_find(nic, OBJ_QP, cmd_id(cmd));
	uint8_t *qpc = AT(query_qp_out, cmd->out, qpc);

	if (!qp)
		return FAIL(BAD_RES, "no such QP");
	memcpy(qpc, qp->qpc, sizeof(qp->qpc));
	SET(qpc, qpc, state, state_of[roce_qp_state(qp->roce)]);
	SET(qpc, qpc, hw_sq_wqebb_counter, qp->sq_ci);
	SET(qpc, qpc, hw_rq_counter, qp->rq_ci);
	return CMD_OK;
}

#define STATE_IN (BYTE_OF(rst2init_qp_in, qpc) + BYTES(qpc))

static const struct cmd_desc rows[] = {
	ROW(RST2INIT_QP, modify_qp, STATE_IN, 16, 0),
	ROW(INIT2INIT_QP, modify_qp, STATE_IN, 16, 0),
	ROW(INIT2RTR_QP, modify_qp, STATE_IN, 16, 0),
	ROW(RTR2RTS_QP, modify_qp, STATE_IN, 16, 0),
	ROW(RTS2RTS_QP, modify_qp, STATE_IN, 16, 0),
	ROW(SQERR2RTS_QP, modify_qp, STATE_IN, 16, 0),
	ROW(2ERR_QP, modify_qp, 16, 16, 0),
	ROW(2RST_QP, modify_qp, 16, 16, 0),
	ROW(QUERY_QP, query_qp, 16, BYTE_OF(query_qp_out, qpc) + BYTES(qpc), 0),
};

const struct cmd_rows rows_qp_state = { rows, N_ELEM(rows) };
