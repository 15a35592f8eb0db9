/* SPDX-License-Identifier: GPL-2.0 */
/* What the tables of cases have in common: texts as in verbs_errors.h. */
#ifndef ERRORS_TEXT_H
#define ERRORS_TEXT_H

#include "verbs_errors.h"

#define OR " | "
#define ENDS(requester, responder) .client = requester, .server = responder

/* nothing happened; all that was posted is still there */
#define QUIET "S[] R[] RTS"

/* the client: its first one fails, all the rest is flushed */
#define FAILS(status) \
	"S[0:" #status " 1:flush 2:flush] R[10:flush 11:flush] ERR"
/* the same of UC and UD: only the send queue is concerned, 10.3.1 */
#define SQ_FAILS(status) "S[0:" #status " 1:flush 2:flush] R[] SQE"

/* ... or the post refuses it */
#define WRONG_OPCODE SQ_FAILS(LOC_QP_OP_ERR) OR "post:EINVAL " TWO_SENT
#define OVERRUN "S[] R[10:flush 11:flush] ERR CQ_ERR QP_FATAL"

#define ALL_SENT "S[0:ok 1:ok 2:ok] R[] RTS"
#define TWO_SENT "S[1:ok 2:ok] R[] RTS"

/* the server */
#define TWO_RECEIVED "S[] R[10:ok(64) 11:ok(64)] RTS"
#define TWO_DATAGRAMS "S[] R[10:ok(104) 11:ok(104)] RTS"
#define FLUSHED "S[] R[10:flush 11:flush 12:flush] ERR"
#define RECV_FAILS(status) "S[] R[10:" #status " 11:flush 12:flush] ERR"

#endif /* ERRORS_TEXT_H */
