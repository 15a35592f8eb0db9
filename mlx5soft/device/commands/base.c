// SPDX-License-Identifier: GPL-2.0
/* Commands about the whole device, and objects which are but a number. */

#include <stdlib.h>

#include "commands/cmd.h"
#include "mkey.h"
#include "nic.h"

#define VENDOR 0x2c9

static int nothing(struct nic *nic, struct cmd *cmd)
{
	(void)nic;
	(void)cmd;
	return CMD_OK;
}

static int enable_hca(struct nic *nic, struct cmd *cmd)
{
	(void)cmd;
	nic->enabled = true;
	return CMD_OK;
}

static int init_hca(struct nic *nic, struct cmd *cmd)
{
	if (nic->up)
		return FAIL(BAD_SYS_STATE, "already");
	nic->up = true;
	return CMD_OK;
}

/* A driver that goes leaves nothing behind. */
static int teardown_hca(struct nic *nic, struct cmd *cmd)
{
	(void)cmd;
	nic->up = false;
	obj_destroy_all(nic);
	vport_reset(nic);
	return CMD_OK;
}

/* also without a TEARDOWN_HCA: drivers that fail on their way up do so */
static int disable_hca(struct nic *nic, struct cmd *cmd)
{
	nic->enabled = false;
	return teardown_hca(nic, cmd);
}

static int query_issi(struct nic *nic, struct cmd *cmd)
{
	SET(query_issi_out, cmd->out, current_issi, nic->issi);
	SET(query_issi_out, cmd->out, supported_issi_dw0, 3); /* 0 and 1 */
	return CMD_OK;
}

static int set_issi(struct nic *nic, struct cmd *cmd)
{
	uint16_t issi = GET(set_issi_in, cmd->in, current_issi);

	if (issi > 1)
		return FAIL(BAD_PARAM, "only 0 and 1");
	nic->issi = issi;
	return CMD_OK;
}

/* All memory of the device is ours: none of the host's is wanted. */
static int query_pages(struct nic *nic, struct cmd *cmd)
{
	(void)nic;
	SET(query_pages_out, cmd->out, num_pages, 0);
	return CMD_OK;
}

static int query_adapter(struct nic *nic, struct cmd *cmd)
{
	static const char psid[] = "MLX5SOFT_000001"; /* 16 bytes */

	(void)nic;
	SET(query_adapter_out, cmd->out, query_adapter_struct.ieee_vendor_id,
	    VENDOR);
	memcpy(AT(query_adapter_out, cmd->out,
		  query_adapter_struct.vsd_contd_psid),
	       psid, sizeof(psid));
	return CMD_OK;
}

static int query_special_contexts(struct nic *nic, struct cmd *cmd)
{
	(void)nic;
	SET(query_special_contexts_out, cmd->out, resd_lkey, RESD_LKEY);
	return CMD_OK;
}

/* ---- only a number ---- */

static int alloc_number(struct nic *nic, struct cmd *cmd)
{
	struct obj *obj = calloc(1, sizeof(*obj));

	if (!obj)
		return FAIL(LIMIT, "no memory");
	return cmd_created(nic, cmd, obj, cmd->desc->arg);
}

static const struct cmd_desc rows[] = {
	ROW(QUERY_ADAPTER, query_adapter, 8, BYTES(query_adapter_out), 0),
	ROW(INIT_HCA, init_hca, 8, 8, 0),
	ROW(TEARDOWN_HCA, teardown_hca, 8, 8, 0),
	ROW(ENABLE_HCA, enable_hca, 8, 8, 0),
	ROW(DISABLE_HCA, disable_hca, 8, 8, 0),
	ROW(QUERY_PAGES, query_pages, 8, 16, 0),
	ROW(MANAGE_PAGES, nothing, 16, 16, 0),
	ROW(QUERY_ISSI, query_issi, 8, BYTES(query_issi_out), 0),
	ROW(SET_ISSI, set_issi, BYTES(set_issi_in), 8, 0),
	ROW(SET_DRIVER_VERSION, nothing, 16, 8, 0),
	ROW(NOP, nothing, 8, 8, 0),
	ROW(QUERY_SPECIAL_CONTEXTS, query_special_contexts, 8,
	    BYTE_OF(query_special_contexts_out, null_mkey), 0),
	ROW(ALLOC_PD, alloc_number, 8, 16, OBJ_PD),
	ROW(DEALLOC_PD, cmd_destroy, 16, 8, OBJ_PD),
	ROW(ALLOC_UAR, alloc_number, 8, 16, OBJ_UAR),
	ROW(DEALLOC_UAR, cmd_destroy, 16, 8, OBJ_UAR),
	ROW(ALLOC_XRCD, alloc_number, 8, 16, OBJ_XRCD),
	ROW(DEALLOC_XRCD, cmd_destroy, 16, 8, OBJ_XRCD),
	ROW(ALLOC_TRANSPORT_DOMAIN, alloc_number, 8, 16, OBJ_TD),
	ROW(DEALLOC_TRANSPORT_DOMAIN, cmd_destroy, 16, 8, OBJ_TD),
};

const struct cmd_rows rows_base = { rows, N_ELEM(rows) };
