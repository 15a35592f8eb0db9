// SPDX-License-Identifier: GPL-2.0
/* The port, its addresses, registers. */

#include "commands/cmd.h"
#include "eq.h"
#include "nic.h"

enum list_type {
	LIST_UC = 0,
	LIST_MC = 1
};

#define ALL_PKEYS 0xffff
#define ROCE_VERSION_2 2
#define MAD_BYTES 256
#define MAD_UNSUPPORTED 0x000c
#define PORT_DOWN_EVENT 1
#define PORT_UP_EVENT 4

void vport_reset(struct nic *nic)
{
	uint8_t *ctx = nic->nic_vport, *mac;
	unsigned int i;

	memset(ctx, 0, sizeof(nic->nic_vport));
	memset(nic->roce_addr, 0, sizeof(nic->roce_addr));
	for (i = 0; i < ROCE_ADDRESSES; i++)
		roce_set_gid(nic->roce, i, NULL, NULL);
	nic->uc_count = nic->mc_count = 0;
	nic->tx_blocked = false;
	nic->mtu = 1522;
	nic->port_down = false;
	nic->root_ft = 0;
	SET(nic_vport_context, ctx, mtu, 1500);
	SET(nic_vport_context, ctx, min_wqe_inline_mode, 1);
	SET(nic_vport_context, ctx, system_image_guid, nic->guid);
	SET(nic_vport_context, ctx, port_guid, nic->guid);
	SET(nic_vport_context, ctx, node_guid, nic->guid);
	mac = AT(nic_vport_context, ctx, permanent_address);
	memcpy(mac + 2, nic->cfg.mac, 6);
}

static int query_nic_vport(struct nic *nic, struct cmd *cmd)
{
	uint32_t type =
		GET(query_nic_vport_context_in, cmd->in, allowed_list_type);
	uint8_t *ctx =
		AT(query_nic_vport_context_out, cmd->out, nic_vport_context);
	uint8_t(*list)[6] = type == LIST_UC ? nic->uc_list : nic->mc_list;
	uint32_t count = type == LIST_UC   ? nic->uc_count
			 : type == LIST_MC ? nic->mc_count
					   : 0;
	uint32_t i, room = (cmd->out + cmd->out_len - ctx -
			    BYTES(nic_vport_context)) /
			   8;

	memcpy(ctx, nic->nic_vport, sizeof(nic->nic_vport));
	if (count > room)
		count = room;
	SET(nic_vport_context, ctx, allowed_list_type, type);
	SET(nic_vport_context, ctx, allowed_list_size, count);
	for (i = 0; i < count; i++)
		memcpy(ctx + BYTES(nic_vport_context) + 8 * i + 2, list[i], 6);
	return CMD_OK;
}

static int set_list(struct nic *nic, struct cmd *cmd, const uint8_t *ctx)
{
	uint32_t type = GET(nic_vport_context, ctx, allowed_list_type);
	uint32_t count = GET(nic_vport_context, ctx, allowed_list_size), i;
	uint8_t(*list)[6] = type == LIST_UC ? nic->uc_list : nic->mc_list;
	const uint8_t *from = ctx + BYTES(nic_vport_context);

	if (type > LIST_MC)
		return CMD_OK; /* VLANs are not filtered */
	if (count > N_ELEM(nic->uc_list) ||
	    from + 8 * count > cmd->in + cmd->in_len)
		return FAIL(BAD_PARAM, "length of the list");
	for (i = 0; i < count; i++)
		memcpy(list[i], from + 8 * i + 2, 6);
	*(type == LIST_UC ? &nic->uc_count : &nic->mc_count) = count;
	return CMD_OK;
}

#define SELECTED(field) GET(modify_nic_vport_field_select, select, field)
#define TAKE(field) COPY(nic_vport_context, nic->nic_vport, ctx, field)

static int modify_nic_vport(struct nic *nic, struct cmd *cmd)
{
	const uint8_t *ctx =
		AT_RO(modify_nic_vport_context_in, cmd->in, nic_vport_context);
	const uint8_t *select =
		AT_RO(modify_nic_vport_context_in, cmd->in, field_select);

	if (SELECTED(roce_en))
		TAKE(roce_en);
	if (SELECTED(mtu))
		TAKE(mtu);
	if (SELECTED(min_inline))
		TAKE(min_wqe_inline_mode);
	if (SELECTED(node_guid))
		TAKE(node_guid);
	if (SELECTED(port_guid))
		TAKE(port_guid);
	if (SELECTED(disable_uc_local_lb))
		TAKE(disable_uc_local_lb);
	if (SELECTED(disable_mc_local_lb))
		TAKE(disable_mc_local_lb);
	if (SELECTED(promisc)) {
		TAKE(promisc_uc);
		TAKE(promisc_mc);
		TAKE(promisc_all);
	}
	if (SELECTED(permanent_address))
		memcpy(AT(nic_vport_context, nic->nic_vport, permanent_address),
		       AT_RO(nic_vport_context, ctx, permanent_address), 8);
	if (SELECTED(addresses_list))
		return set_list(nic, cmd, ctx);
	return CMD_OK;
}

static int query_vport_state(struct nic *nic, struct cmd *cmd)
{
	SET(query_vport_state_out, cmd->out, admin_state, !nic->port_down);
	SET(query_vport_state_out, cmd->out, state, !nic->port_down);
	return CMD_OK;
}

void port_event(struct nic *nic, bool down)
{
	uint8_t data[EQE_DATA] = { 0 };

	if (down == nic->port_down)
		return;
	nic->port_down = down;
	nic->port.link_down += down;
	data[8] = 1 << 4; /* port number */
	event_post(nic, EVENT_PORT_CHANGE,
		   down ? PORT_DOWN_EVENT : PORT_UP_EVENT, data);
}

static int modify_vport_state(struct nic *nic, struct cmd *cmd)
{
	port_event(nic, !GET(modify_vport_state_in, cmd->in, admin_state));
	return CMD_OK;
}

/* An entry counts with version 2 and without a VLAN, all else is no address. */
static int set_roce_address(struct nic *nic, struct cmd *cmd)
{
	uint32_t i = GET(set_roce_address_in, cmd->in, roce_address_index);
	const uint8_t *addr = AT_RO(set_roce_address_in, cmd->in, roce_address);
	const uint8_t *gid = AT_RO(roce_addr_layout, addr, source_l3_address);
	static const uint8_t none[16];
	bool valid;

	if (i >= ROCE_ADDRESSES)
		return FAIL(BAD_INDEX, "table is smaller");
	memcpy(nic->roce_addr[i], addr, BYTES(roce_addr_layout));
	valid = GET(roce_addr_layout, addr, roce_version) == ROCE_VERSION_2 &&
		!GET(roce_addr_layout, addr, vlan_valid) &&
		memcmp(gid, none, sizeof(none));
	roce_set_gid(nic->roce, i, valid ? gid : NULL,
		     AT_RO(roce_addr_layout, addr, source_mac_47_32));
	return CMD_OK;
}

static int query_roce_address(struct nic *nic, struct cmd *cmd)
{
	uint32_t i = GET(query_roce_address_in, cmd->in, roce_address_index);

	if (i >= ROCE_ADDRESSES)
		return FAIL(BAD_INDEX, "table is smaller");
	memcpy(AT(query_roce_address_out, cmd->out, roce_address),
	       nic->roce_addr[i], BYTES(roce_addr_layout));
	return CMD_OK;
}

/* RoCE knows the default partition only. */
static int query_pkeys(struct nic *nic, struct cmd *cmd)
{
	uint32_t index = GET(query_hca_vport_pkey_in, cmd->in, pkey_index);

	(void)nic;
	if (cmd->out_len >= BYTES(query_hca_vport_pkey_out) + 4 &&
	    (!index || index == ALL_PKEYS))
		put_be32(cmd->out + BYTES(query_hca_vport_pkey_out),
			 DEFAULT_PKEY);
	return CMD_OK;
}

/* No agent of ours answers: a response that the attribute is unknown. */
static int mad_ifc(struct nic *nic, struct cmd *cmd)
{
	uint8_t *mad = AT(mad_ifc_out, cmd->out, response_mad_packet);

	(void)nic;
	memcpy(mad, AT_RO(mad_ifc_in, cmd->in, mad), MAD_BYTES);
	mad[3] |= 0x80; /* method: response */
	put_be16(mad + 4, MAD_UNSUPPORTED);
	return CMD_OK;
}

static const struct cmd_desc rows[] = {
	ROW(QUERY_NIC_VPORT_CONTEXT, query_nic_vport, 16,
	    BYTES(query_nic_vport_context_out), 0),
	ROW(MODIFY_NIC_VPORT_CONTEXT, modify_nic_vport,
	    BYTES(modify_nic_vport_context_in), 16, 0),
	ROW(QUERY_VPORT_STATE, query_vport_state, 16, 16, 0),
	ROW(MODIFY_VPORT_STATE, modify_vport_state, 16, 16, 0),
	ROW(SET_ROCE_ADDRESS, set_roce_address, BYTES(set_roce_address_in), 16,
	    0),
	ROW(QUERY_ROCE_ADDRESS, query_roce_address, 16,
	    BYTES(query_roce_address_out), 0),
	ROW(QUERY_HCA_VPORT_PKEY, query_pkeys, 16, 16, 0),
	ROW(MAD_IFC, mad_ifc, BYTES(mad_ifc_in), BYTES(mad_ifc_out), 0),
};

const struct cmd_rows rows_vport = { rows, N_ELEM(rows) };
