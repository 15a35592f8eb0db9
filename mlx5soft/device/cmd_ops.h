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
	/* uint8_t slot and defect, uint16_t in_len, uint16_t out_len, uint16_t n, n bytes of the
	 * command: it is put into the slot and the doorbell rung
	 */
	OP_CMD,
	OP_BAR, /* uint32_t offset, uint8_t length, uint64_t value: a write to BAR 0 */
	OP_MEM, /* uint32_t address, uint8_t n, n bytes: to the host's memory */
	OP_STATE, /* uint8_t: what of enum op_state happens */
	OP_KEY, /* uint32_t PD, uint32_t key, uint64_t address, uint32_t length, uint8_t access */
	OP_CQE, /* uint16_t CQ, uint8_t opcode: the device posts one */
	OP_FRAME, /* uint8_t n, n bytes: a frame comes from the wire; none: what the
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
void op_cmd(FILE *f, uint8_t how, const uint8_t *in, uint32_t in_len,
	    uint32_t out_len);
void op_bar(FILE *f, uint32_t off, const void *bytes, size_t n); /* up to 8 */
void op_frame(FILE *f, const uint8_t *frame, size_t n);		 /* up to 255 */

#endif /* CMD_OPS_H */
