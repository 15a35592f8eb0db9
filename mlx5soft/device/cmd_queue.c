// SPDX-License-Identifier: GPL-2.0
/* The rows of EQs, CQs, memory keys and shared receive queues. */

#include "nic.h"
#include "queue.h"

#define ROW(op, run, in, out, arg) { MLX5_CMD_OP_##op, #op, run, in, out, arg }

static const struct cmd_desc rows[] = {
	ROW(CREATE_EQ, create_eq, BYTES(create_eq_in), 16, 0),
	ROW(DESTROY_EQ, cmd_destroy, 16, 16, OBJ_EQ),
	ROW(QUERY_EQ, query_eq, 16, BYTES(query_eq_out), 0),
	ROW(CREATE_CQ, create_cq, BYTES(create_cq_in), 16, 0),
	ROW(DESTROY_CQ, cmd_destroy, 16, 16, OBJ_CQ),
	ROW(MODIFY_CQ, modify_cq,
	    BYTE_OF(modify_cq_in, cq_context) + BYTES(cqc), 16, 0),
	ROW(QUERY_CQ, query_cq, 16, BYTES(query_cq_out), 0),
	ROW(CREATE_MKEY, create_mkey, BYTES(create_mkey_in), 16, 0),
	ROW(DESTROY_MKEY, cmd_destroy, 16, 16, OBJ_MKEY),
	ROW(QUERY_MKEY, query_mkey, 16,
	    BYTE_OF(query_mkey_out, memory_key_mkey_entry) + BYTES(mkc), 0),
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

const struct cmd_rows rows_queue = { rows, N_ELEM(rows) };
