// SPDX-License-Identifier: GPL-2.0
/*
 * The command queue: up to 32 slots of 64 bytes; what does not fit into a slot
 * is in a chain of mailboxes with 512 bytes each. The doorbell names slots;
 * the command is done when the ownership bit is back, and in event mode after
 * an EQE with the slot's bit.
 */

#include <stdlib.h>

#include "commands/cmd.h"
#include "eq.h"
#include "nic.h"
#include "record.h"

#define SLOT 64
#define BLOCK 512 /* of data in a mailbox */
#define MAILBOX 576
#define INLINE 16
#define TYPE_PCI 7

/* how the delivery went, next to the ownership bit */
enum delivery {
	DELIVERY_OK = 0x0,
	DELIVERY_TOKEN = 0x2,
	DELIVERY_BLOCK = 0x3,
	DELIVERY_OUT_PTR = 0x4,
	DELIVERY_IN_PTR = 0x5,
	DELIVERY_IN_LEN = 0x7,
	DELIVERY_OUT_LEN = 0x8,
	DELIVERY_DESCR = 0x10,
};

/* what a slot has, read once */
struct slot {
	uint8_t raw[SLOT];
	uint32_t in_len, out_len;
	uint64_t in_ptr, out_ptr;
	uint8_t token;
};

static const struct cmd_rows *const all_rows[] = {
	&rows_base,  &rows_caps, &rows_eq,	 &rows_cq,  &rows_mkey,
	&rows_srq,   &rows_qp,	 &rows_qp_state, &rows_eth, &rows_flow,
	&rows_vport, &rows_regs, &rows_counter,
};

const struct cmd_desc *cmd_find(uint16_t op)
{
	size_t part, i;

	for (part = 0; part < N_ELEM(all_rows); part++)
		for (i = 0; i < all_rows[part]->count; i++)
			if (all_rows[part]->row[i].op == op)
				return &all_rows[part]->row[i];
	return NULL;
}

const struct cmd_desc *cmd_row(size_t n)
{
	size_t part;

	for (part = 0; part < N_ELEM(all_rows); part++) {
		if (n < all_rows[part]->count)
			return &all_rows[part]->row[n];
		n -= all_rows[part]->count;
	}
	return NULL;
}

int cmd_fail(struct nic *nic, struct cmd *cmd, int status, unsigned int where,
	     const char *what)
{
	cmd->syndrome = (uint32_t)get_be16(cmd->in) << 16 | (where & 0xffff);
	nic_log(nic, "%s (0x%x): status 0x%x: %s",
		cmd->desc ? cmd->desc->name : "command", get_be16(cmd->in),
		status, what);
	return status;
}

/* ---- handlers of many rows ---- */

int cmd_created(struct nic *nic, struct cmd *cmd, struct obj *obj,
		enum obj_kind kind)
{
	if (!obj_add(nic, obj, kind)) {
		obj_destroy(nic, obj);
		return FAIL(LIMIT, "no number left");
	}
	cmd_set_id(cmd, obj->id);
	return CMD_OK;
}

int cmd_destroy(struct nic *nic, struct cmd *cmd)
{
	struct obj *obj = obj_find(nic, cmd->desc->arg, cmd_id(cmd));

	if (!obj)
		return FAIL(BAD_RES, "no such object");
	if (obj->users)
		return FAIL(RES_BUSY, "still in use");
	obj_destroy(nic, obj);
	return CMD_OK;
}

struct obj *cmd_hold(struct nic *nic, struct obj *obj, enum obj_kind kind,
		     uint32_t id)
{
	struct obj *dep = obj_find(nic, kind, id);

	return obj_hold(obj, dep) ? dep : NULL;
}

/* ---- one command ---- */

/* The way up is ENABLE_HCA, then what sets the device up, then INIT_HCA. */
static bool right_state(const struct nic *nic, uint16_t op)
{
	switch (op) {
	case MLX5_CMD_OP_ENABLE_HCA:
		return true;
	case MLX5_CMD_OP_DISABLE_HCA:
	case MLX5_CMD_OP_QUERY_ISSI:
	case MLX5_CMD_OP_SET_ISSI:
	case MLX5_CMD_OP_QUERY_PAGES:
	case MLX5_CMD_OP_MANAGE_PAGES:
	case MLX5_CMD_OP_QUERY_HCA_CAP:
	case MLX5_CMD_OP_SET_HCA_CAP:
	case MLX5_CMD_OP_INIT_HCA:
	case MLX5_CMD_OP_QUERY_ADAPTER:
	case MLX5_CMD_OP_SET_DRIVER_VERSION:
	case MLX5_CMD_OP_ACCESS_REG:
	case MLX5_CMD_OP_NOP:
		return nic->enabled;
	}
	return nic->up;
}

static int execute(struct nic *nic, struct cmd *cmd)
{
	cmd->desc = cmd_find(get_be16(cmd->in));
	cmd->op_mod = get_be16(cmd->in + 6);
	nic_debug(nic, "command 0x%x %s mod 0x%x in %u out %u",
		  get_be16(cmd->in), cmd->desc ? cmd->desc->name : "?",
		  cmd->op_mod, cmd->in_len, cmd->out_len);
	if (!cmd->desc)
		return FAIL(BAD_OP, "unknown");
	if (!right_state(nic, cmd->desc->op))
		return FAIL(BAD_SYS_STATE, nic->enabled ? "before INIT_HCA"
							: "before ENABLE_HCA");
	if (cmd->in_len < cmd->desc->in)
		return FAIL(BAD_INP_LEN, "input too short");
	if (cmd->out_len < cmd->desc->out)
		return FAIL(BAD_OUTP_LEN, "output too short");
	return cmd->desc->run(nic, cmd);
}

static void count(struct nic *nic, const struct cmd *cmd, uint64_t ns)
{
	struct cmd_count *c = &nic->cmd_count[cmd->desc ? cmd->desc->op : 0];

	nic->cmds++;
	c->count++;
	c->ns += ns;
}

static enum delivery read_in(struct nic *nic, const struct slot *s)
{
	uint8_t box[MAILBOX];
	uint64_t ptr = s->in_ptr;
	uint32_t at, block;

	memcpy(nic->cmd_in, s->raw + 16, INLINE);
	for (at = INLINE, block = 0; at < s->in_len; at += BLOCK, block++) {
		if (ptr & 0x1ff || !dma_read(nic, ptr, box, MAILBOX))
			return DELIVERY_IN_PTR;
		if (get_be32(box + 568) != block)
			return DELIVERY_BLOCK;
		if (box[573] != s->token)
			return DELIVERY_TOKEN;
		memcpy(nic->cmd_in + at, box, BLOCK);
		ptr = get_be64(box + 560);
	}
	return DELIVERY_OK;
}

static enum delivery write_out(struct nic *nic, const struct slot *s)
{
	uint64_t ptr = s->out_ptr;
	uint32_t at;
	uint8_t next[8];

	for (at = INLINE; at < s->out_len; at += BLOCK) {
		if (ptr & 0x1ff ||
		    !dma_write(nic, ptr, nic->cmd_out + at, BLOCK) ||
		    !dma_read(nic, ptr + 560, next, sizeof(next)))
			return DELIVERY_OUT_PTR;
		ptr = get_be64(next);
	}
	return DELIVERY_OK;
}

static enum delivery deliver(struct nic *nic, struct slot *s, uint64_t began)
{
	struct cmd cmd = { .in = nic->cmd_in, .out = nic->cmd_out };
	enum delivery ret;
	int status;

	s->in_len = get_be32(s->raw + 4);
	s->in_ptr = get_be64(s->raw + 8);
	s->out_ptr = get_be64(s->raw + 48);
	s->out_len = get_be32(s->raw + 56);
	s->token = s->raw[60];
	if (s->raw[0] != TYPE_PCI)
		return DELIVERY_DESCR;
	/* 16 bytes of input and 8 of output belong to every command. */
	if (s->in_len < 8 || s->in_len > CMD_MAX)
		return DELIVERY_IN_LEN;
	if (s->out_len < 8 || s->out_len > CMD_OUT_MAX)
		return DELIVERY_OUT_LEN;
	/* what a short command does not have reads as zero */
	memset(nic->cmd_in, 0, s->in_len + BLOCK);
	ret = read_in(nic, s);
	if (ret)
		return ret;
	memset(nic->cmd_out, 0, s->out_len + BLOCK);
	record_cmd(nic, s->in_len, s->out_len);

	cmd.in_len = s->in_len;
	cmd.out_len = s->out_len;
	status = execute(nic, &cmd);
	if (status) {
		memset(nic->cmd_out, 0, s->out_len);
		nic->cmd_out[0] = status;
		put_be32(nic->cmd_out + 4, cmd.syndrome);
	}
	memcpy(s->raw + 32, nic->cmd_out, INLINE);
	ret = write_out(nic, s);
	count(nic, &cmd, nic_now() - began);
	return ret;
}

/* @began: since when it is this one's turn, ns */
static void run_slot(struct nic *nic, unsigned int index, uint64_t began)
{
	uint64_t at = nic->cmdq + SLOT * index;
	uint8_t data[EQE_DATA] = { 0 };
	enum delivery result;
	struct slot s;
	uint8_t own;

	if (!dma_read(nic, at, s.raw, SLOT)) {
		nic_log(nic, "command queue is not in memory");
		return;
	}
	if (!(s.raw[63] & 1))
		return;
	result = deliver(nic, &s, began);
	if (result)
		nic_log(nic, "command slot %u: delivery status 0x%x", index,
			result);
	own = result << 1;
	dma_write(nic, at + 32, s.raw + 32, INLINE);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	dma_write(nic, at + 63, &own, 1);

	/* The CREATE_EQ that made the EQ is polled for: an event after it
   * would come for whatever follows in the slot.
   */
	if (!result && get_be16(s.raw + 16) == MLX5_CMD_OP_CREATE_EQ &&
	    !s.raw[32] && obj_table(nic, OBJ_EQ)->count == 1)
		return;
	put_be32(data, 1U << index);
	event_post(nic, EVENT_CMD, 0, data);
}

void cmd_doorbell(struct nic *nic, uint32_t slots)
{
	unsigned int i;

	if (!nic->cmdq_known)
		return;
	if (!vfu_bus_master(nic->vfu)) {
		nic->cmd_rung |= slots;
		return;
	}
	if (nic->cmd_time || nic->cmd_slots) {
		if (!nic->cmd_slots)
			nic->cmd_began = nic_now();
		nic->cmd_slots |= slots;
		return;
	}
	for (i = 0; i < 32; i++)
		if (slots >> i & 1)
			run_slot(nic, i, nic_now());
}

/*
 * One after the other, in turn: a driver takes the lowest slot that is free, and who has
 * that would get it again and again.
 */
void cmd_tick(struct nic *nic, uint64_t now)
{
	uint32_t later = nic->cmd_slots & ~((1U << nic->cmd_next) - 1);
	unsigned int i;

	if (!nic->cmd_slots || now < nic->cmd_began + nic->cmd_time)
		return;
	i = __builtin_ctz(later ? later : nic->cmd_slots);
	nic->cmd_next = (i + 1) % 32;
	nic->cmd_slots &= ~(1U << i);
	run_slot(nic, i, nic->cmd_began);
	nic->cmd_began = nic_now();
}
