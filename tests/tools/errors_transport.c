// SPDX-License-Identifier: GPL-2.0
/*
 * A peer that has no receive or does not answer: IBA 9.7.5.2, 9.9.2, and what
 * looks wrong and is not: messages without a byte, and the
 * last ones of a region.
 */
#include "errors_text.h"

#define SEND IBV_WR_SEND
#define WRITE IBV_WR_RDMA_WRITE
#define WRITE_IMM IBV_WR_RDMA_WRITE_WITH_IMM
#define READ IBV_WR_RDMA_READ

#define RNR "9.7.5.2.8, 9.9.2"
#define SILENCE "9.7.6.1.3, 9.9.2"
#define NO_KEYS .lkey = K_UNKNOWN, .rkey = K_UNKNOWN, .empty = true
#define EMPTY "9.7.4, 10.6.3"

const struct test transport_tests[] = {
	{ "SEND without receive, no retry",
	  RNR,
	  IBV_QPT_RC,
	  { .opcode = SEND },
	  ENDS(FAILS(RNR_RETRY_EXC_ERR), QUIET),
	  .no_receives = true,
	  .few_rnr_retries = true },
	{ "SEND without receive, one retry",
	  RNR,
	  IBV_QPT_RC,
	  { .opcode = SEND },
	  ENDS(FAILS(RNR_RETRY_EXC_ERR), QUIET),
	  .no_receives = true,
	  .few_rnr_retries = true,
	  .retries = 1 },
	{ "WRITE with immediate without receive",
	  RNR,
	  IBV_QPT_RC,
	  { .opcode = WRITE_IMM },
	  ENDS(FAILS(RNR_RETRY_EXC_ERR), QUIET),
	  .no_receives = true,
	  .few_rnr_retries = true,
	  .retries = 1 },
	{ "peer's QPN does not exist",
	  SILENCE,
	  IBV_QPT_RC,
	  { .opcode = SEND },
	  ENDS(FAILS(RETRY_EXC_ERR), QUIET),
	  .dest = TO_NOBODY,
	  .few_retries = true },
	{ "peer's QP is in RESET",
	  SILENCE,
	  IBV_QPT_RC,
	  { .opcode = WRITE },
	  ENDS(FAILS(RETRY_EXC_ERR), "S[] R[] RESET"),
	  .dest = TO_RESET,
	  .few_retries = true },
	{ "peer's QP is in ERR",
	  SILENCE,
	  IBV_QPT_RC,
	  { .opcode = READ },
	  ENDS(FAILS(RETRY_EXC_ERR), FLUSHED),
	  .dest = TO_ERR,
	  .few_retries = true,
	  .retries = 1 },

	{ "SEND of the last bytes of an MR",
	  "10.6.3",
	  IBV_QPT_RC,
	  { .opcode = SEND, .local = AT_END },
	  ENDS(ALL_SENT, "S[] R[10:ok(64) 11:ok(64) 12:ok(64)] RTS") },
	{ "WRITE to the last bytes of an MR",
	  "10.6.3",
	  IBV_QPT_RC,
	  { .opcode = WRITE, .remote = AT_END, .length = 3000 },
	  ENDS(ALL_SENT, TWO_RECEIVED) },
	{ "READ of the last bytes of an MR",
	  "10.6.3",
	  IBV_QPT_RC,
	  { .opcode = READ, .remote = AT_END, .length = 3000 },
	  ENDS(ALL_SENT, TWO_RECEIVED) },
	{ "SEND of 0 bytes",
	  EMPTY,
	  IBV_QPT_RC,
	  { .opcode = SEND, NO_KEYS },
	  ENDS(ALL_SENT, "S[] R[10:ok(0) 11:ok(64) 12:ok(64)] RTS") },
	{ "WRITE of 0 bytes, rkey unknown",
	  EMPTY,
	  IBV_QPT_RC,
	  { .opcode = WRITE, NO_KEYS },
	  ENDS(ALL_SENT, TWO_RECEIVED) },
	{ "WRITE with immediate of 0 bytes, rkey unknown",
	  EMPTY,
	  IBV_QPT_RC,
	  { .opcode = WRITE_IMM, NO_KEYS },
	  ENDS(ALL_SENT, "S[] R[10:ok(0i) 11:ok(64) 12:ok(64)] RTS") },
	{ "READ of 0 bytes, rkey unknown",
	  EMPTY,
	  IBV_QPT_RC,
	  { .opcode = READ, NO_KEYS },
	  ENDS(ALL_SENT, TWO_RECEIVED) },
	{ "SEND of 0 bytes, UC",
	  EMPTY,
	  IBV_QPT_UC,
	  { .opcode = SEND, NO_KEYS },
	  ENDS(ALL_SENT, "S[] R[10:ok(0) 11:ok(64) 12:ok(64)] RTS") },
	{ "SEND of 0 bytes, UD",
	  EMPTY,
	  IBV_QPT_UD,
	  { .opcode = SEND, NO_KEYS },
	  ENDS(ALL_SENT, "S[] R[10:ok(40) 11:ok(104) 12:ok(104)] RTS") },
	{}
};
