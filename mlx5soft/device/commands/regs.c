// SPDX-License-Identifier: GPL-2.0
/* Registers of the port. */

#include "commands/cmd.h"
#include "nic.h"

#define MAX_MTU 9978
#define MODE_25G (1U << 27) /* 25GBASE-CR */

static void ptys(struct nic *nic, uint8_t *reg, bool write)
{
	(void)write; /* one speed only */
	SET(ptys_reg, reg, eth_proto_capability, MODE_25G);
	SET(ptys_reg, reg, eth_proto_admin, MODE_25G);
	SET(ptys_reg, reg, eth_proto_oper, nic->port_down ? 0 : MODE_25G);
}

static void pmtu(struct nic *nic, uint8_t *reg, bool write)
{
	uint32_t mtu = GET(pmtu_reg, reg, admin_mtu);

	if (write)
		nic->mtu = mtu < MAX_MTU ? mtu : MAX_MTU;
	SET(pmtu_reg, reg, max_mtu, MAX_MTU);
	SET(pmtu_reg, reg, admin_mtu, nic->mtu);
	SET(pmtu_reg, reg, oper_mtu, nic->mtu);
}

static void paos(struct nic *nic, uint8_t *reg, bool write)
{
	if (write)
		port_event(nic, GET(paos_reg, reg, admin_status) != 1);
	SET(paos_reg, reg, admin_status, nic->port_down ? 2 : 1);
	SET(paos_reg, reg, oper_status, nic->port_down ? 2 : 1);
}

static void pvlc(struct nic *nic, uint8_t *reg, bool write)
{
	(void)nic;
	(void)write;
	SET(pvlc_reg, reg, vl_hw_cap, 1);
	SET(pvlc_reg, reg, vl_operational, 1);
}

static void ppcnt(struct nic *nic, uint8_t *reg, bool write)
{
	(void)write;
	ppcnt_fill(nic, reg);
}

static void node_desc(struct nic *nic, uint8_t *reg, bool write)
{
	(void)nic;
	if (!write)
		memcpy(reg, "mlx5soft", sizeof("mlx5soft"));
}

/* no flow control, and none can be had */
static void pfcc(struct nic *nic, uint8_t *reg, bool write)
{
	(void)nic;
	(void)write;
	memset(reg, 0, BYTES(pfcc_reg));
}

/* one lane of one module */
static void pmlp(struct nic *nic, uint8_t *reg, bool write)
{
	(void)nic;
	(void)write;
	memset(reg, 0, BYTES(pmlp_reg));
	SET(pmlp_reg, reg, width, 1);
}

/* The module's EEPROM, SFF-8472: a passive cable */
static void mcia(struct nic *nic, uint8_t *reg, bool write)
{
	static const uint8_t eeprom[256] = {
		[0] = 3, [1] = 4, [2] = 0x21, [8] = 4, [20] = 'm', 'l',
		'x',	 '5',	  's',	      'o',     'f',	   't'
	};
	uint32_t at = GET(mcia_reg, reg, device_address);
	uint32_t n = GET(mcia_reg, reg, size);
	uint8_t *data = AT(mcia_reg, reg, dwords);

	(void)nic;
	(void)write;
	memset(data, 0, 48);
	if (GET(mcia_reg, reg, i2c_device_address) == 0x50 && n <= 48 &&
	    at + n <= sizeof(eeprom))
		memcpy(data, eeprom + at, n);
}

static void untouched(struct nic *nic, uint8_t *reg, bool write)
{
	(void)nic;
	(void)reg;
	(void)write;
}

static const struct {
	uint16_t id, len;
	void (*access)(struct nic *nic, uint8_t *reg, bool write);
} regs[] = {
	{ 0x5003, BYTES(pmtu_reg), pmtu },
	{ 0x5004, BYTES(ptys_reg), ptys },
	{ 0x5006, BYTES(paos_reg), paos },
	{ 0x5008, BYTES(ppcnt_reg), ppcnt },
	{ 0x5002, BYTES(pmlp_reg), pmlp },
	{ 0x5007, BYTES(pfcc_reg), pfcc },
	{ 0x9014, BYTES(mcia_reg), mcia },
	{ 0x500f, BYTES(pvlc_reg), pvlc },
	{ 0x6001, 64, node_desc },
	{ 0x7004, 16, untouched }, /* HOST_ENDIANNESS */
};

static int access_reg(struct nic *nic, struct cmd *cmd)
{
	uint16_t id = GET(access_register_in, cmd->in, register_id);
	uint32_t len =
		(cmd->in_len < cmd->out_len ? cmd->in_len : cmd->out_len) - 16;
	size_t i;

	for (i = 0; i < N_ELEM(regs); i++)
		if (regs[i].id == id)
			break;
	if (i == N_ELEM(regs)) {
		nic_log(nic, "register 0x%x is not there", id);
		return FAIL(BAD_PARAM, "no such register");
	}
	if (cmd->out_len - 16 < regs[i].len)
		return FAIL(BAD_OUTP_LEN, "shorter than the register");
	memcpy(cmd->out + 16, cmd->in + 16, len);
	regs[i].access(nic, cmd->out + 16, !cmd->op_mod);
	return CMD_OK;
}

static const struct cmd_desc rows[] = {
	ROW(ACCESS_REG, access_reg, 16, 16, 0),
};

const struct cmd_rows rows_regs = { rows, N_ELEM(rows) };
