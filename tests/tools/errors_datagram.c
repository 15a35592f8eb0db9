// SPDX-License-Identifier: GPL-2.0
/*
 * UC and UD: the responder does not answer, and drops what it cannot take
 * (IBA 9.8.2, 9.8.3, 9.9.3); the requester's own errors stop only its send queue
 * (10.3.1).
 */
#include "errors_text.h"

#define SEND IBV_WR_SEND
#define WRITE IBV_WR_RDMA_WRITE
#define READ IBV_WR_RDMA_READ
#define ADD IBV_WR_ATOMIC_FETCH_AND_ADD

#define SQ_LOCAL(status) .client = SQ_FAILS(status), .server = QUIET
#define DROPPED .client = ALL_SENT, .server = TWO_RECEIVED
#define UD_DROPPED .client = ALL_SENT, .server = TWO_DATAGRAMS
/* IBA 10.3.1: from SQE the QP goes back to RTS, the receives were never lost */
static void recover(struct end *e)
{
	post_send(e, &e->test->wr, 0);
	post_good(e, 1, 1);
	if (end_await(e, IBV_QPS_SQE)) {
		end_modify(e, IBV_QPS_RTS);
		post_good(e, 2, 2);
	}
}

#define RECOVERED "S[0:LOC_PROT_ERR 1:flush 2:ok 3:ok] R[] RTS"

const struct test datagram_tests[] = {
	{ "SEND, lkey unknown, UC",
	  "9.9.2, 10.3.1",
	  IBV_QPT_UC,
	  { .opcode = SEND, .lkey = K_UNKNOWN },
	  SQ_LOCAL(LOC_PROT_ERR) },
	{ "WRITE, past the end of the local MR, UC",
	  "9.9.2, 10.3.1",
	  IBV_QPT_UC,
	  { .opcode = WRITE, .local = PAST_END },
	  SQ_LOCAL(LOC_PROT_ERR) },
	{ "READ on UC",
	  "9.9.2, 11.4.1.1",
	  IBV_QPT_UC,
	  { .opcode = READ },
	  ENDS(WRONG_OPCODE, QUIET OR TWO_RECEIVED) },
	{ "atomic on UC",
	  "9.9.2, 11.4.1.1",
	  IBV_QPT_UC,
	  { .opcode = ADD },
	  ENDS(WRONG_OPCODE, QUIET OR TWO_RECEIVED) },
	{ "WRITE, rkey unknown, UC",
	  "9.8.2, 9.9.3",
	  IBV_QPT_UC,
	  { .opcode = WRITE, .rkey = K_UNKNOWN },
	  DROPPED },
	{ "WRITE, past the end of the MR, UC",
	  "9.8.2, 9.9.3",
	  IBV_QPT_UC,
	  { .opcode = WRITE, .remote = PAST_END },
	  DROPPED },
	{ "WRITE, the QP does not allow it, UC",
	  "9.8.2, 9.9.3",
	  IBV_QPT_UC,
	  { .opcode = WRITE },
	  DROPPED,
	  .no_right = true },
	{ "SEND without receive, UC",
	  "9.8.2",
	  IBV_QPT_UC,
	  { .opcode = SEND },
	  ENDS(ALL_SENT, QUIET),
	  .no_receives = true },
	{ "SEND, receive too small, UC",
	  "9.8.2, 9.9.3",
	  IBV_QPT_UC,
	  { .opcode = SEND, .length = 128 },
	  DROPPED,
	  .recv_bytes = 100 },
	{ "SEND, receive with unknown lkey, UC",
	  "9.9.3",
	  IBV_QPT_UC,
	  { .opcode = SEND },
	  ENDS(ALL_SENT, RECV_FAILS(LOC_PROT_ERR)),
	  .recv_key = K_UNKNOWN },

	{ "SEND, lkey unknown, UD",
	  "9.9.2, 10.3.1",
	  IBV_QPT_UD,
	  { .opcode = SEND, .lkey = K_UNKNOWN },
	  SQ_LOCAL(LOC_PROT_ERR) },
	{ "WRITE on UD",
	  "9.9.2, 11.4.1.1",
	  IBV_QPT_UD,
	  { .opcode = WRITE },
	  ENDS(WRONG_OPCODE, QUIET OR TWO_DATAGRAMS) },
	{ "READ on UD",
	  "9.9.2, 11.4.1.1",
	  IBV_QPT_UD,
	  { .opcode = READ },
	  ENDS(WRONG_OPCODE, QUIET OR TWO_DATAGRAMS) },
	{ "message longer than the MTU, UD",
	  "10.8.2 (C10-93.1.1)",
	  IBV_QPT_UD,
	  { .opcode = SEND, .length = 5000 },
	  UD_DROPPED },
	{ "wrong Q_Key, UD",
	  "9.6.1.2, 10.2.5",
	  IBV_QPT_UD,
	  { .opcode = SEND, .qkey = QKEY + 1 },
	  UD_DROPPED },
	{ "peer's QPN does not exist, UD",
	  "9.6.1",
	  IBV_QPT_UD,
	  { .opcode = SEND },
	  ENDS(ALL_SENT, QUIET),
	  .dest = TO_NOBODY },
	{ "SEND without receive, UD",
	  "9.8.3",
	  IBV_QPT_UD,
	  { .opcode = SEND },
	  ENDS(ALL_SENT, QUIET),
	  .no_receives = true },
	{ "receive too small for GRH and data, UD",
	  "9.8.3, 9.9.3",
	  IBV_QPT_UD,
	  { .opcode = SEND, .length = 128 },
	  UD_DROPPED,
	  .recv_bytes = 120 },
	{ "SEND, receive with unknown lkey, UD",
	  "9.9.3",
	  IBV_QPT_UD,
	  { .opcode = SEND },
	  ENDS(ALL_SENT, RECV_FAILS(LOC_PROT_ERR)),
	  .recv_key = K_UNKNOWN },
	{ "back from SQE, UC",
	  "10.3.1",
	  IBV_QPT_UC,
	  { .opcode = SEND, .lkey = K_UNKNOWN },
	  ENDS(RECOVERED, TWO_RECEIVED),
	  .run_client = recover },
	{ "back from SQE, UD",
	  "10.3.1",
	  IBV_QPT_UD,
	  { .opcode = SEND, .lkey = K_UNKNOWN },
	  ENDS(RECOVERED, TWO_DATAGRAMS),
	  .run_client = recover },
	{}
};
