/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Commands: each part brings rows of a table, with a handler for each opcode.
 * README.md tells how to add one.
 */
#ifndef MLX5SOFT_CMD_H
#define MLX5SOFT_CMD_H

#include <errno.h>

#include "object.h"

enum cmd_status {
	CMD_OK = 0x0,
	CMD_INTERNAL = 0x1,
	CMD_BAD_OP = 0x2,
	CMD_BAD_PARAM = 0x3,
	CMD_BAD_SYS_STATE = 0x4,
	CMD_BAD_RES = 0x5,
	CMD_RES_BUSY = 0x6,
	CMD_LIMIT = 0x8, /* ENOMEM for drivers; their NO_RES is EAGAIN */
	CMD_BAD_RES_STATE = 0x9,
	CMD_BAD_INDEX = 0xa,
	CMD_BAD_QP_STATE = 0x10,
	CMD_BAD_INP_LEN = 0x50,
	CMD_BAD_OUTP_LEN = 0x51,
};

struct cmd;
typedef int (*cmd_handler)(struct nic *nic, struct cmd *cmd);

/* A row of the table: in and out are the smallest sizes in bytes. */
struct cmd_desc {
	uint16_t op;
	const char *name;
	cmd_handler run;
	uint16_t in, out;
	uint16_t arg; /* for handlers of several commands, mostly enum obj_kind */
};

struct cmd {
	const struct cmd_desc *desc;
	const uint8_t *in;
	uint8_t *out;
	uint32_t in_len, out_len;
	uint16_t op_mod;
	uint32_t syndrome;
};

/* Each part brings its rows; cmd_find() knows all. */
struct cmd_rows {
	const struct cmd_desc *row;
	size_t count;
};
extern const struct cmd_rows rows_base, rows_caps, rows_eq, rows_cq, rows_mkey,
	rows_srq, rows_qp, rows_qp_state, rows_eth, rows_flow, rows_vport,
	rows_regs, rows_counter;

#define ROW(op, run, in, out, arg) { MLX5_CMD_OP_##op, #op, run, in, out, arg }

const struct cmd_desc *cmd_find(uint16_t op);
/* One after the other; NULL: there are no more. */
const struct cmd_desc *cmd_row(size_t n);
int cmd_fail(struct nic *nic, struct cmd *cmd, int status, unsigned int where,
	     const char *what);
/* The syndrome is the number of the command and of the line in the source. */
#define FAIL(status, what) cmd_fail(nic, cmd, CMD_##status, __LINE__, what)
/* ...when a negative errno says why: no memory, or what a parameter has wrong */
#define FAIL_WITH(err, what) \
	((err) == -ENOMEM ? FAIL(LIMIT, "no memory") : FAIL(BAD_PARAM, what))

/* bytes of a command: a list of 2^20 pages, and what it is for */
#define CMD_MAX ((8U << 20) + 4096)
/* ...of its output, of which none has more than 4112 */
#define CMD_OUT_MAX (64U << 10)
#define CMD_SPARE 512 /* behind them: mailboxes are copied whole */

void cmd_doorbell(struct nic *nic, uint32_t slots);
/* It is `now`: run what has taken its time. */
void cmd_tick(struct nic *nic, uint64_t now);
/* a number in bits 23:0 of dword 2, where most commands have it */
static inline uint32_t cmd_id(const struct cmd *cmd)
{
	return get_be32(cmd->in + 8) & 0xffffff;
}
static inline void cmd_set_id(struct cmd *cmd, uint32_t id)
{
	put_be32(cmd->out + 8, id);
}
/* Fill a command's number in, or free what got none */
int cmd_created(struct nic *nic, struct cmd *cmd, struct obj *obj,
		enum obj_kind kind);
int cmd_destroy(struct nic *nic, struct cmd *cmd);
struct obj *cmd_hold(struct nic *nic, struct obj *obj, enum obj_kind kind,
		     uint32_t id);

#endif /* MLX5SOFT_CMD_H */
