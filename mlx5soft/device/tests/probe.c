// SPDX-License-Identifier: GPL-2.0
#include "nic.h"
#include "probe.h"

#define CMD_EVENT (1ULL << 0x0a)
#define ASYNC_EVENTS 0x1ffbf0ULL /* without commands and completions */
#define PMTU 0x5003
#define PTYS 0x5004
#define PAOS 0x5006
#define PPCNT 0x5008
#define NODE_DESC 0x6001

static void must(struct rig *r)
{
	int ret = rig_run(r);

	CHECK(!ret, "command 0x%x: %d: %s", get_be16(r->in), ret, r->log);
}

static void simple(struct rig *r, uint16_t op, uint16_t mod, uint32_t in_len,
		   uint32_t out_len)
{
	rig_begin(r, op, in_len, out_len);
	put_be16(r->in + 6, mod);
	must(r);
}

static void gone(struct rig *r, uint16_t op, uint32_t id)
{
	int ret = rig_run_id(r, op, id);

	CHECK(!ret, "command 0x%x of %u: %d: %s", op, id, ret, r->log);
}

static uint32_t number(struct rig *r, uint16_t op)
{
	rig_begin(r, op, 16, 16);
	return rig_id(r);
}

static void access_reg(struct rig *r, uint16_t reg, uint16_t mod, uint32_t len)
{
	rig_begin(r, MLX5_CMD_OP_ACCESS_REG, 16 + len, 16 + len);
	put_be16(r->in + 6, mod); /* 1: read */
	SET(access_register_in, r->in, register_id, reg);
	must(r);
}

static void core(struct rig *r, struct probe *p)
{
	simple(r, MLX5_CMD_OP_ENABLE_HCA, 0, 16, 12);
	simple(r, MLX5_CMD_OP_QUERY_ISSI, 0, 16, 112);
	CHECK(GET(query_issi_out, r->out, supported_issi_dw0) == 3, "ISSI");
	rig_begin(r, MLX5_CMD_OP_SET_ISSI, 16, 16);
	SET(set_issi_in, r->in, current_issi, 1);
	must(r);
	simple(r, MLX5_CMD_OP_QUERY_PAGES, 1, 16, 16);
	CHECK(!GET(query_pages_out, r->out, num_pages), "pages");
	simple(r, MLX5_CMD_OP_MANAGE_PAGES, 1, 16, 16);
	simple(r, MLX5_CMD_OP_QUERY_HCA_CAP, 1, 16, 4112);
	simple(r, MLX5_CMD_OP_QUERY_HCA_CAP, 0, 16, 4112);
	CHECK(GET(cmd_hca_cap, r->out + 16, roce), "no RoCE");
	simple(r, MLX5_CMD_OP_SET_HCA_CAP, 0, 4112, 16);
	simple(r, MLX5_CMD_OP_QUERY_PAGES, 2, 16, 16);
	simple(r, MLX5_CMD_OP_INIT_HCA, 0, 32, 16);
	for (int type = 0; type < 16; type += 2)
		simple(r, MLX5_CMD_OP_QUERY_HCA_CAP, type | 1, 16, 4112);
	simple(r, MLX5_CMD_OP_QUERY_ADAPTER, 0, 16, 272);
	access_reg(r, PTYS, 1, 64);
	r->uar = number(r, MLX5_CMD_OP_ALLOC_UAR);
	p->cmd_eq = rig_eq(r, 8, 0, CMD_EVENT);
	rig_eq_db(r, r->uar, &p->cmd_eq, true);
	p->async_eq = rig_eq(r, 7, 0, ASYNC_EVENTS);
	rig_eq_db(r, r->uar, &p->async_eq, true);
}

static void steering(struct rig *r, struct probe *p)
{
	uint8_t *ctx;

	rig_begin(r, MLX5_CMD_OP_CREATE_FLOW_TABLE, BYTES(create_flow_table_in),
		  16);
	SET(create_flow_table_in, r->in, flow_table_context.log_size, 4);
	p->ft = rig_id(r);
	rig_begin(r, MLX5_CMD_OP_SET_FLOW_TABLE_ROOT, 64, 16);
	SET(set_flow_table_root_in, r->in, table_id, p->ft);
	must(r);
	rig_begin(r, MLX5_CMD_OP_CREATE_FLOW_GROUP, BYTES(create_flow_group_in),
		  16);
	SET(create_flow_group_in, r->in, table_id, p->ft);
	SET(create_flow_group_in, r->in, end_flow_index, 3);
	p->group = rig_id(r);
	rig_begin(r, MLX5_CMD_OP_SET_FLOW_TABLE_ENTRY, BYTES(set_fte_in) + 8,
		  16);
	SET(set_fte_in, r->in, table_id, p->ft);
	ctx = AT(set_fte_in, r->in, flow_context);
	SET(flow_context, ctx, group_id, p->group);
	SET(flow_context, ctx, action, 4); /* forward */
	SET(flow_context, ctx, destination_list_size, 1);
	r->in[BYTES(set_fte_in)] = MLX5_IFC_FLOW_DESTINATION_TYPE_TIR;
	r->in[BYTES(set_fte_in) + 3] = p->tir;
	must(r);
}

static void ethernet(struct rig *r, struct probe *p)
{
	uint8_t *c;

	simple(r, MLX5_CMD_OP_QUERY_NIC_VPORT_CONTEXT, 0, 16, 272);
	r->pd = number(r, MLX5_CMD_OP_ALLOC_PD);
	p->td = number(r, MLX5_CMD_OP_ALLOC_TRANSPORT_DOMAIN);
	rig_mkey_in(r, 0, 0, 0);
	c = AT(create_mkey_in, r->in, memory_key_mkey_entry);
	SET(mkc, c, access_mode_1_0, 0); /* all memory, physical */
	SET(mkc, c, length64, 1);
	p->mkey = rig_id(r) << 8 | GET(mkc, c, mkey_7_0);
	rig_begin(r, MLX5_CMD_OP_CREATE_TIS, BYTES(create_tis_in), 16);
	SET(tisc, AT(create_tis_in, r->in, ctx), transport_domain, p->td);
	p->tis = rig_id(r);
	number(r, MLX5_CMD_OP_ALLOC_Q_COUNTER);
	p->comp_eq = rig_eq(r, 7, 1, 0);
	rig_eq_db(r, r->uar, &p->comp_eq, true);
	p->rx_cq = rig_cq(r, 5, p->comp_eq.id);
	rig_rq_in(r, p->rx_cq.id);
	p->rq = rig_id(r);
	p->rq_buf = r->buf;
	p->rq_db = r->db;
	rig_wq_state(r, MLX5_CMD_OP_MODIFY_RQ, p->rq, WQ_RST, WQ_RDY);
	rig_begin(r, MLX5_CMD_OP_CREATE_RQT, BYTES(create_rqt_in) + 4, 16);
	c = AT(create_rqt_in, r->in, rqt_context);
	SET(rqtc, c, rqt_max_size, 1);
	SET(rqtc, c, rqt_actual_size, 1);
	put_be32(r->in + BYTES(create_rqt_in), p->rq);
	p->rqt = rig_id(r);
	rig_begin(r, MLX5_CMD_OP_CREATE_TIR, BYTES(create_tir_in), 16);
	c = AT(create_tir_in, r->in, ctx);
	SET(tirc, c, disp_type, 1);
	SET(tirc, c, indirect_table, p->rqt);
	SET(tirc, c, transport_domain, p->td);
	p->tir = rig_id(r);
	steering(r, p);
	p->tx_cq = rig_cq(r, 5, p->comp_eq.id);
	rig_sq_in(r, p->tx_cq.id);
	p->sq = rig_id(r);
	p->sq_buf = r->buf;
	p->sq_db = r->db;
	rig_wq_state(r, MLX5_CMD_OP_MODIFY_SQ, p->sq, WQ_RST, WQ_RDY);
	simple(r, MLX5_CMD_OP_QUERY_VPORT_STATE, 0, 16, 16);
	access_reg(r, PMTU, 1, 16);
	access_reg(r, PMTU, 0, 16);
	access_reg(r, PAOS, 1, 16);
	access_reg(r, PPCNT, 1, 256);
	simple(r, MLX5_CMD_OP_QUERY_VPORT_COUNTER, 0, 32, 528);
}

static void to_state(struct rig *r, uint16_t op, uint32_t qp)
{
	rig_begin(r, op, 272, 16);
	SET(rst2init_qp_in, r->in, qpn, qp);
	SET(rst2init_qp_in, r->in, qpc.primary_address_path.vhca_port_num, 1);
	must(r);
}

static void infiniband(struct rig *r, struct probe *p)
{
	access_reg(r, NODE_DESC, 1, 64);
	simple(r, MLX5_CMD_OP_MODIFY_NIC_VPORT_CONTEXT, 0, 512, 16);
	p->xrcd = number(r, MLX5_CMD_OP_ALLOC_XRCD);
	simple(r, MLX5_CMD_OP_SET_ROCE_ADDRESS, 0, 48, 16);
	simple(r, MLX5_CMD_OP_QUERY_HCA_VPORT_PKEY, 0, 16, 20);
	simple(r, MLX5_CMD_OP_MAD_IFC, 3, 272, 272);
	rig_xrc_srq_in(r, p->xrcd, p->rx_cq.id);
	p->xrc_srq = rig_id(r);
	rig_rmp_in(r);
	p->rmp = rig_id(r);
	rig_qp_in(r, 8, p->rx_cq.id); /* QP1 */
	p->qp = rig_id(r);
	p->qp_buf = r->buf;
	p->qp_db = r->db;
	to_state(r, MLX5_CMD_OP_RST2INIT_QP, p->qp);
	to_state(r, MLX5_CMD_OP_INIT2RTR_QP, p->qp);
	to_state(r, MLX5_CMD_OP_RTR2RTS_QP, p->qp);
}

void probe_run(struct rig *r, struct probe *p)
{
	core(r, p);
	ethernet(r, p);
	infiniband(r, p);
}

void probe_remove(struct rig *r, const struct probe *p)
{
	gone(r, MLX5_CMD_OP_2RST_QP, p->qp);
	gone(r, MLX5_CMD_OP_DESTROY_QP, p->qp);
	gone(r, MLX5_CMD_OP_DESTROY_RMP, p->rmp);
	gone(r, MLX5_CMD_OP_DESTROY_XRC_SRQ, p->xrc_srq);
	gone(r, MLX5_CMD_OP_DEALLOC_XRCD, p->xrcd);
	gone(r, MLX5_CMD_OP_DESTROY_SQ, p->sq);
	rig_begin(r, MLX5_CMD_OP_DELETE_FLOW_TABLE_ENTRY, 64, 16);
	SET(delete_fte_in, r->in, table_id, p->ft);
	must(r);
	rig_begin(r, MLX5_CMD_OP_DESTROY_FLOW_GROUP, 64, 16);
	SET(destroy_flow_group_in, r->in, table_id, p->ft);
	SET(destroy_flow_group_in, r->in, group_id, p->group);
	must(r);
	rig_begin(r, MLX5_CMD_OP_DESTROY_FLOW_TABLE, 64, 16);
	SET(destroy_flow_table_in, r->in, table_id, p->ft);
	must(r);
	gone(r, MLX5_CMD_OP_DESTROY_TIR, p->tir);
	gone(r, MLX5_CMD_OP_DESTROY_RQT, p->rqt);
	gone(r, MLX5_CMD_OP_DESTROY_RQ, p->rq);
	gone(r, MLX5_CMD_OP_DESTROY_CQ, p->rx_cq.id);
	gone(r, MLX5_CMD_OP_DESTROY_CQ, p->tx_cq.id);
	gone(r, MLX5_CMD_OP_DESTROY_TIS, p->tis);
	gone(r, MLX5_CMD_OP_DESTROY_MKEY, p->mkey >> 8);
	gone(r, MLX5_CMD_OP_DEALLOC_TRANSPORT_DOMAIN, p->td);
	gone(r, MLX5_CMD_OP_DEALLOC_PD, r->pd);
	gone(r, MLX5_CMD_OP_DESTROY_EQ, p->comp_eq.id);
	gone(r, MLX5_CMD_OP_DESTROY_EQ, p->async_eq.id);
	gone(r, MLX5_CMD_OP_DESTROY_EQ, p->cmd_eq.id);
	gone(r, MLX5_CMD_OP_DEALLOC_UAR, r->uar);
	simple(r, MLX5_CMD_OP_TEARDOWN_HCA, 0, 16, 16);
	simple(r, MLX5_CMD_OP_DISABLE_HCA, 0, 16, 12);
}
