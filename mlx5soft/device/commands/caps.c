// SPDX-License-Identifier: GPL-2.0
/* Capabilities: what is there, and what keeps the drivers away from the rest.
 */

#include <stdlib.h>

#include "commands/cmd.h"
#include "nic.h"
#include "rdma/wqe.h"

enum {
	CAP_GENERAL = 0,
	CAP_ETH = 1,
	CAP_ATOMIC = 3,
	CAP_ROCE = 4,
	CAP_FLOW_TABLE = 7
};

#define GEN(field, value) SET(cmd_hca_cap, cap, field, value)

static void general(uint8_t *cap)
{
	/* no page of the host's memory, no event about it */
	GEN(page_request_disable, 1);
	/* numbers */
	GEN(log_max_qp, 15);
	GEN(log_max_qp_sz, MAX_LOG_WQ);
	GEN(log_max_srq, 15);
	GEN(log_max_srq_sz, MAX_LOG_WQ);
	GEN(log_max_cq, 15);
	GEN(log_max_cq_sz, MAX_LOG_QUEUE);
	GEN(log_max_eq, 4);
	GEN(log_max_eq_sz, 16);
	GEN(max_num_eqs, VECTORS - 1);
	GEN(log_max_mkey, 15);
	GEN(log_max_mrw_sz, MAX_LOG_MR);
	GEN(log_max_klm_list_size, 15);
	GEN(log_max_pd, 15);
	GEN(log_max_xrcd, 8);
	GEN(log_max_transport_domain, 8);
	GEN(log_max_rq, 10);
	GEN(log_max_sq, 10);
	GEN(log_max_rmp, 10);
	GEN(log_max_tir, 10);
	GEN(log_max_tis, 10);
	GEN(log_max_rqt, 10);
	GEN(log_max_rqt_size, MAX_LOG_RQT);
	GEN(log_max_wq_sz, MAX_LOG_WQ);
	GEN(log_min_stride_sz_rq, 4);
	GEN(log_max_stride_sz_rq, 11);
	GEN(log_min_stride_sz_sq, 6);
	GEN(log_max_stride_sz_sq, 6);
	GEN(max_wqe_sz_sq, MAX_WQE);
	GEN(max_wqe_sz_rq, WQE_MAX_SGE * WQE_DS);
	GEN(log_max_current_uc_list, 5);
	GEN(log_max_current_mc_list, 5);
	GEN(log_max_vlan_list, 5);
	GEN(max_tc, 1);
	GEN(log_max_mcg, ROCE_LOG_MAX_GROUPS);
	GEN(max_qp_mcg, ROCE_MAX_GROUP_QPS);
	/* services */
	GEN(rc, 1);
	GEN(uc, 1);
	GEN(ud, 1);
	GEN(atomic, 1);
	GEN(xrc, 1); /* the drivers take it for granted */
	GEN(log_max_ra_req_qp, 7);
	GEN(log_max_ra_res_qp, 7);
	GEN(log_max_msg, 30);
	GEN(local_ca_ack_delay, 15);
	GEN(max_qp_cnt, 255);
	GEN(out_of_seq_cnt, 1);
	GEN(retransmission_q_counters, 1);
	GEN(enhanced_error_q_counters, 1);
	GEN(cqe_version, 1); /* with user_index */
	GEN(cq_oi, 1);
	GEN(cq_resize, 1);
	GEN(cq_moderation, 1);
	GEN(basic_cyclic_rcv_wqe, 1);
	/* Ranges and lists of memory keys are made by CREATE_MKEY */
	GEN(umr_modify_entity_size_disabled, 1);
	GEN(umr_indirect_mkey_disabled, 1);
	/* doorbell pages */
	GEN(uar_sz, 3); /* BAR of 8 MiB */
	GEN(log_pg_sz, 12);
	GEN(num_of_uars_per_page, 1);
	GEN(log_bf_reg_size, 9); /* the registers' distance; no BlueFlame */
	GEN(device_frequency_mhz, 1000);
	GEN(device_frequency_khz, 1000000);
	/* an Ethernet port */
	GEN(port_type, 1);
	GEN(num_ports, 1);
	GEN(native_port_num, 1);
	GEN(eth_net_offloads, 1);
	GEN(nic_receive_steering_discard, 1);
	GEN(receive_discard_vport_down, 1);
	GEN(transmit_discard_vport_down, 1);
	GEN(nic_flow_table, 1);
	GEN(roce, 1);
}

#define ETH(field, value) \
	SET(per_protocol_networking_offload_caps, cap, field, value)

static void ethernet(uint8_t *cap)
{
	ETH(csum_cap, 1);
	ETH(cqe_checksum_full, 1); /* of padding too */
	ETH(vlan_cap, 1);
	ETH(max_lso_cap, 16); /* log, bytes */
	ETH(self_lb_en_modifiable, 1);
	ETH(rss_ind_tbl_cap, MAX_LOG_RQT);
	ETH(wqe_inline_mode, 1); /* as the vport's context says */
}

#define ROCE(field, value) SET(roce_cap, cap, field, value)

static void roce(uint8_t *cap)
{
	ROCE(roce_address_table_size, ROCE_ADDRESSES);
	ROCE(l3_type, 6);      /* IPv4 and IPv6 */
	ROCE(roce_version, 4); /* version 2 only */
	ROCE(r_roce_dest_udp_port, 4791);
	ROCE(r_roce_min_src_udp_port, 0xc000);
	ROCE(r_roce_max_src_udp_port, 0xffff);
}

#define ATOMIC(field, value) SET(atomic_caps, cap, field, value)

/* compare and swap, fetch and add, of 8 bytes in the host's byte order */
static void atomic(uint8_t *cap)
{
	ATOMIC(supported_atomic_req_8B_endianness_mode_1, 1);
	ATOMIC(atomic_req_8B_endianness_mode, 1);
	ATOMIC(atomic_operations, 1 << 0 | 1 << 1);
	ATOMIC(atomic_size_qp, 1 << 3);
}

#define FT(field, value) SET(flow_table_prop_layout, prop, field, value)
#define FT_MATCH(field) SET(flow_table_fields_supported, match, field, 1)

static void flow_table(uint8_t *cap)
{
	uint8_t *prop =
		AT(flow_table_nic_cap, cap, flow_table_properties_nic_receive);
	uint8_t *match = AT(flow_table_prop_layout, prop, ft_field_support);

	FT(ft_support, 1);
	FT(flow_modify_en, 1);
	FT(modify_root, 1);
	FT(identified_miss_table_mode, 1);
	FT(flow_table_modify, 1);
	FT(log_max_ft_size, 16);
	FT(max_ft_level, 64);
	FT(log_max_ft_num, 8);
	FT(log_max_flow, 16);
	FT(log_max_destination, 0);
	/* what flow.c finds in a packet */
	FT_MATCH(outer_dmac);
	FT_MATCH(outer_smac);
	FT_MATCH(outer_ether_type);
	FT_MATCH(outer_first_vid);
	FT_MATCH(outer_ip_version);
	FT_MATCH(outer_ip_protocol);
	FT_MATCH(outer_sip);
	FT_MATCH(outer_dip);
	FT_MATCH(outer_tcp_sport);
	FT_MATCH(outer_tcp_dport);
	FT_MATCH(outer_udp_sport);
	FT_MATCH(outer_udp_dport);
}

bool caps_init(struct nic *nic)
{
	static const struct {
		int type;
		void (*fill)(uint8_t *cap);
	} fill[] = {
		{ CAP_GENERAL, general },	{ CAP_ETH, ethernet },
		{ CAP_ATOMIC, atomic },		{ CAP_ROCE, roce },
		{ CAP_FLOW_TABLE, flow_table },
	};
	size_t i;
	uint8_t *cap;

	for (i = 0; i < N_ELEM(fill); i++) {
		cap = calloc(1, CAP_BYTES);
		if (!cap)
			return false;
		nic->cap[fill[i].type] = cap;
		fill[i].fill(cap);
	}
	return true;
}

void caps_free(struct nic *nic)
{
	int i;

	for (i = 0; i < CAP_TYPES; i++)
		free(nic->cap[i]);
}

/* What is, is also the most that could be: both halves are the same. */
static int query_hca_cap(struct nic *nic, struct cmd *cmd)
{
	unsigned int type = cmd->op_mod >> 1;
	uint32_t len = cmd->out_len - 16;

	if (type >= CAP_TYPES)
		return FAIL(BAD_PARAM, "capability type");
	if (nic->cap[type])
		memcpy(cmd->out + 16, nic->cap[type],
		       len < CAP_BYTES ? len : CAP_BYTES);
	return CMD_OK;
}

/* A driver may ask for less; we stay as we are. */
static int set_hca_cap(struct nic *nic, struct cmd *cmd)
{
	if (nic->up)
		return FAIL(BAD_SYS_STATE, "only before INIT_HCA");
	return CMD_OK;
}

static const struct cmd_desc rows[] = {
	ROW(QUERY_HCA_CAP, query_hca_cap, 16, 16, 0),
	ROW(SET_HCA_CAP, set_hca_cap, 16, 16, 0),
};

const struct cmd_rows rows_caps = { rows, N_ELEM(rows) };
