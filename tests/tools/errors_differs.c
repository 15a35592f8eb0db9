// SPDX-License-Identifier: GPL-2.0
/*
 * Where a device does not do what the table of cases says. docs/verbs-errors.md
 * has the same for people.
 */
#include "errors_text.h"

#define AS_REQUESTER .responder = false
#define AS_RESPONDER .responder = true

#define LAST_OR_MORE(recvs)                                          \
	"S[] R[" recvs "] ERR QP_LAST_WQE_REACHED" OR "S[] R[" recvs \
	"] ERR QP_LAST_WQE_REACHED+"

static const char lost_status[] =
	"rxe requester: the QP is in ERR before the completer looks, which then flushes the failed one like the rest";
static const char no_sqe[] =
	"rxe requester: as RC; there is no SQE, UC and UD go to ERR";
static const char no_event[] =
	"rxe responder: gives no asynchronous event for a failed request";
static const char malformed[] =
	"rxe responder: whatever does not fit a receive is a malformed one";
static const char last_again[] =
	"rxe responder: tells of the last WQE whenever it finds the QP in ERR";

const struct difference differences[] = {
	/* ---- rdma_rxe as requester ---- */
	{ "rxe", AS_REQUESTER, "READ, no initiator depth", .client = QUIET,
	  .server = QUIET,
	  .why = "rxe requester: waits for ever for a free place of none" },
	{ "rxe", AS_REQUESTER, "unsignaled before",
	  .client = "S[2:flush 3:flush 4:flush] R[10:flush 11:flush] ERR",
	  .why = lost_status },
	{ "rxe", AS_REQUESTER, "good ones before",
	  .client =
		  "S[0:flush 1:flush 2:flush 3:flush] R[10:flush 11:flush] ERR" OR
		  "S[0:ok 1:flush 2:flush 3:flush] R[10:flush 11:flush] ERR" OR
		  "S[0:ok 1:ok 2:flush 3:flush] R[10:flush 11:flush] ERR",
	  .server = TWO_RECEIVED,
	  .why = "rxe requester: does not wait for what was posted before, and flushes it with the failed one" },
	{ "rxe", AS_REQUESTER, "no such opcode", .client = FAILS(flush),
	  .server = QUIET,
	  .why = "rxe requester: the post does not look; it fails as other errors do" },
	{ "rxe", AS_REQUESTER, "atomic, misaligned",
	  .client = "post:EINVAL " TWO_SENT, .server = TWO_RECEIVED,
	  .why = "rxe requester: the post refuses it, the responder's check is not reached" },
	{ "rxe", AS_REQUESTER, "CQ overrun", .client_is = OVERRUN,
	  .client = "S[] R[] RTS CQ_ERR+",
	  .why = "rxe requester: an event for each lost completion; the QP goes on" },
	{ "rxe", AS_REQUESTER, "posts to a QP in ERR",
	  .client = "S[0:flush 1:flush] R[10:flush 11:flush] ERR",
	  .why = "rxe: a receive posted to a QP in ERR is only flushed if something else wakes the QP" },
	{ "rxe", AS_REQUESTER, "back from SQE",
	  .client = "S[0:flush 1:flush] R[10:flush 11:flush] ERR",
	  .server = QUIET, .why = no_sqe },
	{ "rxe", AS_REQUESTER, "SEND", .client_is = FAILS(LOC_PROT_ERR),
	  .client = FAILS(flush), .why = lost_status },
	{ "rxe", AS_REQUESTER, "WRITE", .client_is = FAILS(LOC_PROT_ERR),
	  .client = FAILS(flush), .why = lost_status },
	{ "rxe", AS_REQUESTER, "SEND, longer than 2^31", .client = FAILS(flush),
	  .why = lost_status },
	{ "rxe", AS_REQUESTER, .client_is = SQ_FAILS(LOC_PROT_ERR),
	  .client = FAILS(flush), .why = no_sqe },
	{ "rxe", AS_REQUESTER, .client_is = WRONG_OPCODE,
	  .client = FAILS(flush), .why = no_sqe },

	/* ---- rdma_rxe as responder ---- */
	{ "rxe", AS_RESPONDER, "WRITE with immediate, rkey unknown",
	  .server = RECV_FAILS(REM_ACCESS_ERR),
	  .why = "rxe responder: takes a receive before it looks at the rkey, and completes it" },
	{ "rxe", AS_RESPONDER, "an error wakes", .client = FAILS(REM_OP_ERR),
	  .server = RECV_FAILS(LOC_QP_OP_ERR),
	  .why = "rxe responder: a malformed receive; and only a solicited packet wakes, no error" },
	{ "rxe", AS_RESPONDER, "CQ overrun of the responder",
	  .server = "S[] R[] ERR CQ_ERR" OR "S[] R[] ERR CQ_ERR+",
	  .why = "rxe responder: an event for each lost completion, none for the QP" },
	{ "rxe", AS_RESPONDER, "last WQE: to ERR", .server = LAST_OR_MORE(""),
	  .why = last_again },
	{ "rxe", AS_RESPONDER, "last WQE: rkey unknown",
	  .server = LAST_OR_MORE(""), .why = last_again },
	{ "rxe", AS_RESPONDER, "last WQE: receive too small",
	  .client = FAILS(REM_OP_ERR),
	  .server = LAST_OR_MORE("10:LOC_QP_OP_ERR"), .why = malformed },
	{ "rxe", AS_RESPONDER, "SEND, receive too small, UC",
	  .client = ALL_SENT, .server = RECV_FAILS(LOC_QP_OP_ERR),
	  .why = "rxe responder: UC goes to ERR where it should drop; as RC" },
	{ "rxe", AS_RESPONDER, "SEND, receive too small",
	  .client = FAILS(REM_OP_ERR), .server = RECV_FAILS(LOC_QP_OP_ERR),
	  .why = malformed },
	{ "rxe", AS_RESPONDER, .server_is = RECV_FAILS(LOC_PROT_ERR),
	  .server = RECV_FAILS(LOC_QP_OP_ERR), .why = malformed },
	{ "rxe", AS_RESPONDER, .server_is = FLUSHED " QP_ACCESS_ERR",
	  .server = FLUSHED, .why = no_event },
	{ "rxe", AS_RESPONDER, .server_is = FLUSHED " QP_REQ_ERR",
	  .server = FLUSHED, .why = no_event },

	/* ---- the stock mlx5 driver and provider ---- */
	{ "mlx5", AS_REQUESTER, "atomic, result of 4 bytes", .client = ALL_SENT,
	  .server = TWO_RECEIVED,
	  .why = "mlx5 provider: writes 8 bytes as length into every atomic" },
	{ "mlx5", AS_REQUESTER, "READ, no initiator depth", .client = ALL_SENT,
	  .server = TWO_RECEIVED,
	  .why = "mlx5 driver: tells the device a power of two, no 0" },
	{}
};
