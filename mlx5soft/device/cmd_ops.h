/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The language of tests/fuzz_cmd.c, and of nic_config.record: an input is a
 * list of operations, each a byte and what follows it. Numbers are
 * little-endian; what is missing at the end of the input is 0.
 */
#ifndef CMD_OPS_H
#define CMD_OPS_H

#include <stdio.h>

#include "bits.h"

enum {
	/* u8 slot and defect, u16 in_len, u16 out_len, u16 n, n bytes of the
	 * command: it is put into the slot and the doorbell rung
	 */
	OP_CMD,
	OP_BAR,	  /* u32 offset, u8 length, u64 value: a write to BAR 0 */
	OP_MEM,	  /* u32 address, u8 n, n bytes: to the host's memory */
	OP_STATE, /* u8: what of enum op_state happens */
	OP_KEY,	  /* u32 PD, u32 key, u64 address, u32 length, u8 access */
	OP_CQE,	  /* u16 CQ, u8 opcode: the device posts one */
	OP_FRAME, /* u8 n, n bytes: a frame comes from the wire; none: what the
		   * device has sent comes back
		   */
	OPS,
};

enum {
	DEFECT_NONE,
	DEFECT_TOKEN,
	DEFECT_BLOCK,
	DEFECT_NOWHERE,
	DEFECT_CYCLE,
	DEFECT_SHORT,  /* the chain */
	DEFECT_LONG,   /* lengths 256 times what there is */
	DEFECT_SILENT, /* the doorbell is not rung yet */
};

enum op_state {
	STATE_UNMAP,
	STATE_MAP,
	STATE_MAP_LESS, /* up to the middle of what objects use */
	STATE_RESET,
	STATE_FLR,
	STATE_BUS_MASTER,
	STATE_NO_BUS_MASTER,
	STATES,
};

#define OP_HOW(slot, defect) ((slot) | (defect) << 5)
#define OP_SLOT(how) ((how) & 31)
#define OP_DEFECT(how) ((how) >> 5)

/* Write one; errors are the stream's. */
void op_cmd(FILE *f, u8 how, const u8 *in, u32 in_len, u32 out_len);
void op_bar(FILE *f, u32 off, const void *bytes, size_t n); /* up to 8 */
void op_frame(FILE *f, const u8 *frame, size_t n);	    /* up to 255 */

#endif /* CMD_OPS_H */
