// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How values look, and the names that verbs have for them, without IBV_ and
 * the like.
 */

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>

#include "show.h"

#define END { 0, NULL }

const struct show_form show_decimal = { .as = SHOW_DECIMAL };
const struct show_form show_hex = { .as = SHOW_HEX };
const struct show_form show_hex24 = { .as = SHOW_HEX24 };
const struct show_form show_be32 = { .as = SHOW_BE32 };
const struct show_form show_id = { .as = SHOW_HEX, .always = true };
const struct show_form show_bytes = { .as = SHOW_BYTES };
const struct show_form show_string = { .as = SHOW_STRING };
const struct show_form show_gid = { .as = SHOW_GID };
const struct show_form show_ether = { .as = SHOW_ETHER };
const struct show_form show_reserved = { .as = SHOW_DECIMAL, .quiet = true };
const struct show_form show_reserved_bytes = { .as = SHOW_BYTES,
					       .quiet = true };
const struct show_form show_magic = { .as = SHOW_STRING, .quiet = true };
const struct show_form show_record_handle = { .as = SHOW_DECIMAL,
					      .quiet = true };

const struct show_form show_record_type = { .as = SHOW_HEX,
					    .quiet = true,
					    .type = true };

static const struct show_name handles[] = { { RXE_MIGR_NO_HANDLE, "none" },
					    END };
const struct show_form show_handle = { .as = SHOW_DECIMAL, .names = handles };

#define ACCESS(flag) { IBV_ACCESS_##flag, #flag }
static const struct show_name accesses[] = { ACCESS(LOCAL_WRITE),
					     ACCESS(REMOTE_WRITE),
					     ACCESS(REMOTE_READ),
					     ACCESS(REMOTE_ATOMIC),
					     ACCESS(MW_BIND),
					     ACCESS(ZERO_BASED),
					     ACCESS(ON_DEMAND),
					     ACCESS(FLUSH_GLOBAL),
					     ACCESS(FLUSH_PERSISTENT),
					     ACCESS(RELAXED_ORDERING),
					     { RXE_MIGR_ACCESS_PINNED,
					       "PINNED" },
					     END };
const struct show_form show_access = { .as = SHOW_HEX,
				       .flags = true,
				       .names = accesses };

/* the kernel's enum ib_cq_notify_flags */
static const struct show_name notifies[] = { { 1, "SOLICITED" },
					     { 2, "NEXT_COMP" },
					     END };
const struct show_form show_notify = { .as = SHOW_HEX,
				       .flags = true,
				       .names = notifies };

static const struct show_name qp_types[] = {
	{ IBV_QPT_RC, "RC" }, { IBV_QPT_UC, "UC" }, { IBV_QPT_UD, "UD" }, END
};
const struct show_form show_qp_type = { .as = SHOW_DECIMAL, .names = qp_types };

#define STATE(state) { IBV_QPS_##state, #state }
static const struct show_name qp_states[] = { STATE(RESET), STATE(INIT),
					      STATE(RTR),   STATE(RTS),
					      STATE(SQD),   STATE(SQE),
					      STATE(ERR),   END };
const struct show_form show_qp_state = { .as = SHOW_DECIMAL,
					 .names = qp_states };

/* rdma_rxe's enum rxe_mw_state */
static const struct show_name mw_states[] = { { 1, "free" },
					      { 2, "valid" },
					      END };
const struct show_form show_mw_state = { .as = SHOW_DECIMAL,
					 .names = mw_states };

#define MTU(bytes) { IBV_MTU_##bytes, "MTU_" #bytes }
static const struct show_name mtus[] = { MTU(256),  MTU(512),  MTU(1024),
					 MTU(2048), MTU(4096), END };
const struct show_form show_mtu = { .as = SHOW_DECIMAL, .names = mtus };

static const struct show_name networks[] = { { 0, "none" },
					     { RXE_NETWORK_TYPE_IPV4, "IPv4" },
					     { RXE_NETWORK_TYPE_IPV6, "IPv6" },
					     END };
const struct show_form show_network = { .as = SHOW_DECIMAL, .names = networks };

/* of RC, and below of others: IBA 9.2.1 and its annexes */
static const struct show_name bth_opcodes[] = {
	{ 0x00, "SEND_FIRST" },
	{ 0x01, "SEND_MIDDLE" },
	{ 0x02, "SEND_LAST" },
	{ 0x03, "SEND_LAST_WITH_IMM" },
	{ 0x04, "SEND_ONLY" },
	{ 0x05, "SEND_ONLY_WITH_IMM" },
	{ 0x06, "RDMA_WRITE_FIRST" },
	{ 0x07, "RDMA_WRITE_MIDDLE" },
	{ 0x08, "RDMA_WRITE_LAST" },
	{ 0x09, "RDMA_WRITE_LAST_WITH_IMM" },
	{ 0x0a, "RDMA_WRITE_ONLY" },
	{ 0x0b, "RDMA_WRITE_ONLY_WITH_IMM" },
	{ 0x0c, "RDMA_READ_REQUEST" },
	{ 0x0d, "RDMA_READ_RESPONSE_FIRST" },
	{ 0x0e, "RDMA_READ_RESPONSE_MIDDLE" },
	{ 0x13, "COMPARE_SWAP" },
	{ 0x14, "FETCH_ADD" },
	{ 0x16, "SEND_LAST_WITH_INV" },
	{ 0x17, "SEND_ONLY_WITH_INV" },
	{ 0x1c, "FLUSH" },
	{ 0x1d, "ATOMIC_WRITE" },
	{ 0x20, "UC_SEND_FIRST" },
	{ 0x21, "UC_SEND_MIDDLE" },
	{ 0x22, "UC_SEND_LAST" },
	{ 0x23, "UC_SEND_LAST_WITH_IMM" },
	{ 0x24, "UC_SEND_ONLY" },
	{ 0x25, "UC_SEND_ONLY_WITH_IMM" },
	{ 0x26, "UC_RDMA_WRITE_FIRST" },
	{ 0x27, "UC_RDMA_WRITE_MIDDLE" },
	{ 0x28, "UC_RDMA_WRITE_LAST" },
	{ 0x29, "UC_RDMA_WRITE_LAST_WITH_IMM" },
	{ 0x2a, "UC_RDMA_WRITE_ONLY" },
	{ 0x2b, "UC_RDMA_WRITE_ONLY_WITH_IMM" },
	{ 0x64, "UD_SEND_ONLY" },
	{ 0x65, "UD_SEND_ONLY_WITH_IMM" },
	{ 0xffffffff, "none" },
	END
};
const struct show_form show_bth = { .as = SHOW_HEX, .names = bth_opcodes };

#define STATUS(status) { IBV_WC_##status, #status }
static const struct show_name wc_statuses[] = { STATUS(SUCCESS),
						STATUS(LOC_LEN_ERR),
						STATUS(LOC_QP_OP_ERR),
						STATUS(LOC_EEC_OP_ERR),
						STATUS(LOC_PROT_ERR),
						STATUS(WR_FLUSH_ERR),
						STATUS(MW_BIND_ERR),
						STATUS(BAD_RESP_ERR),
						STATUS(LOC_ACCESS_ERR),
						STATUS(REM_INV_REQ_ERR),
						STATUS(REM_ACCESS_ERR),
						STATUS(REM_OP_ERR),
						STATUS(RETRY_EXC_ERR),
						STATUS(RNR_RETRY_EXC_ERR),
						STATUS(LOC_RDD_VIOL_ERR),
						STATUS(REM_INV_RD_REQ_ERR),
						STATUS(REM_ABORT_ERR),
						STATUS(INV_EECN_ERR),
						STATUS(INV_EEC_STATE_ERR),
						STATUS(FATAL_ERR),
						STATUS(RESP_TIMEOUT_ERR),
						STATUS(GENERAL_ERR),
						END };
const struct show_form show_wc_status = { .as = SHOW_DECIMAL,
					  .names = wc_statuses };

static const struct show_name wc_opcodes[] = { STATUS(SEND),
					       STATUS(RDMA_WRITE),
					       STATUS(RDMA_READ),
					       STATUS(COMP_SWAP),
					       STATUS(FETCH_ADD),
					       STATUS(BIND_MW),
					       STATUS(LOCAL_INV),
					       STATUS(FLUSH),
					       STATUS(ATOMIC_WRITE),
					       STATUS(RECV),
					       STATUS(RECV_RDMA_WITH_IMM),
					       END };
const struct show_form show_wc_opcode = { .as = SHOW_HEX, .names = wc_opcodes };

/* the kernel's enum ib_wc_flags, of which the library's is another order */
static const struct show_name wc_flags[] = {
	{ 1, "GRH" }, { 2, "WITH_IMM" }, { 4, "WITH_INVALIDATE" }, END
};
const struct show_form show_wc_flags = { .as = SHOW_HEX,
					 .flags = true,
					 .names = wc_flags };

#define WR(opcode) { IBV_WR_##opcode, #opcode }
static const struct show_name wr_opcodes[] = {
	WR(RDMA_WRITE),
	WR(RDMA_WRITE_WITH_IMM),
	WR(SEND),
	WR(SEND_WITH_IMM),
	WR(RDMA_READ),
	WR(ATOMIC_CMP_AND_SWP),
	WR(ATOMIC_FETCH_AND_ADD),
	WR(LOCAL_INV),
	WR(BIND_MW),
	WR(SEND_WITH_INV),
	{ IB_UVERBS_WR_RDMA_READ_WITH_INV, "RDMA_READ_WITH_INV" },
	WR(FLUSH),
	WR(ATOMIC_WRITE),
	END
};
const struct show_form show_wr_opcode = { .as = SHOW_HEX, .names = wr_opcodes };

#define SEND(flag) { IBV_SEND_##flag, #flag }
static const struct show_name send_flags[] = { SEND(FENCE),	SEND(SIGNALED),
					       SEND(SOLICITED), SEND(INLINE),
					       SEND(IP_CSUM),	END };
const struct show_form show_send_flags = { .as = SHOW_HEX,
					   .flags = true,
					   .names = send_flags };

/* rdma_rxe's enum wqe_state */
static const struct show_name wqe_states[] = {
	{ 0, "posted" }, { 1, "processing" }, { 2, "pending" },
	{ 3, "done" },	 { 4, "error" },      END
};
const struct show_form show_wqe_state = { .as = SHOW_DECIMAL,
					  .names = wqe_states };

#define EVENT(event) { IBV_EVENT_##event, #event }
static const struct show_name event_types[] = { EVENT(CQ_ERR),
						EVENT(QP_FATAL),
						EVENT(QP_REQ_ERR),
						EVENT(QP_ACCESS_ERR),
						EVENT(COMM_EST),
						EVENT(SQ_DRAINED),
						EVENT(PATH_MIG),
						EVENT(PATH_MIG_ERR),
						EVENT(DEVICE_FATAL),
						EVENT(PORT_ACTIVE),
						EVENT(PORT_ERR),
						EVENT(LID_CHANGE),
						EVENT(PKEY_CHANGE),
						EVENT(SM_CHANGE),
						EVENT(SRQ_ERR),
						EVENT(SRQ_LIMIT_REACHED),
						EVENT(QP_LAST_WQE_REACHED),
						EVENT(CLIENT_REREGISTER),
						EVENT(GID_CHANGE),
						END };
const struct show_form show_event_type = { .as = SHOW_DECIMAL,
					   .names = event_types };

#define RES(kind) { RXE_MIGR_RES_##kind, #kind }
static const struct show_name res_kinds[] = { RES(NONE),   RES(READ),
					      RES(ATOMIC), RES(ATOMIC_WRITE),
					      RES(FLUSH),  END };
const struct show_form show_res_kind = { .as = SHOW_DECIMAL,
					 .names = res_kinds };
