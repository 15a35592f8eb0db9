// SPDX-License-Identifier: GPL-2.0
/*
 * What the requester itself finds wrong: IBA 9.9.2, completions 11.6.2. The
 * responder hears nothing of it, and all behind it is flushed: 10.7.3.
 */
#include <unistd.h>

#include "errors_text.h"

#define ACKED_US 200000

#define LOCAL(status) .client = FAILS(status), .server = QUIET
#define BAD_LKEY "9.9.2, 10.6.3, 11.6.2"

/* the post may refuse it as well */
#define LOCAL_LENGTH                                        \
	ENDS(FAILS(LOC_LEN_ERR) OR "post:EINVAL " TWO_SENT, \
	     QUIET OR TWO_RECEIVED)

/* The post itself fails and leaves no trace; which error is not said. */
#define REFUSED \
	ENDS("post:ENOMEM " TWO_SENT OR "post:EINVAL " TWO_SENT, TWO_RECEIVED)
#define POST "11.4.1.1"

static void post_elements(struct end *e)
{
	struct wrong w = e->test->wr;

	w.elements = e->cap.max_send_sge + 1;
	post_send(e, &w, 0);
	post_good(e, 1, 2);
}

static void post_inline(struct end *e)
{
	struct wrong w = e->test->wr;

	w.length = e->cap.max_inline_data + 1;
	post_send(e, &w, 0);
	post_good(e, 1, 2);
}

static void post_until_full(struct end *e)
{
	uint32_t i;

	for (i = 0; i < e->cap.max_send_wr; i++)
		post_good(e, i, 1);
	if (*e->posting)
		return;
	post_good(e, i, 1);
}

/* What is behind a READ has left before it fails, but for this. */
static void post_fenced(struct end *e)
{
	const struct wrong good = { .opcode = IBV_WR_SEND,
				    .flags = IBV_SEND_FENCE };

	post_send(e, &e->test->wr, 0);
	post_send(e, &good, 1);
	post_send(e, &good, 2);
}

static void post_behind(struct end *e)
{
	post_good(e, 0, 2);
	post_send(e, &e->test->wr, 2);
	post_good(e, 3, 1);
}

static void post_unsignaled(struct end *e)
{
	const struct wrong good = { .opcode = IBV_WR_SEND, .unsignaled = true };

	post_send(e, &good, 0);
	post_send(e, &good, 1);
	usleep(ACKED_US * errors_factor);
	post_send(e, &e->test->wr, 2);
	post_send(e, &good, 3);
	post_good(e, 4, 1);
}

const struct test local_tests[] = {
	{ "SEND, lkey unknown",
	  BAD_LKEY,
	  IBV_QPT_RC,
	  { .opcode = IBV_WR_SEND, .lkey = K_UNKNOWN },
	  LOCAL(LOC_PROT_ERR) },
	{ "SEND, lkey stale",
	  BAD_LKEY,
	  IBV_QPT_RC,
	  { .opcode = IBV_WR_SEND, .lkey = K_STALE },
	  LOCAL(LOC_PROT_ERR) },
	{ "SEND, lkey deregistered",
	  BAD_LKEY,
	  IBV_QPT_RC,
	  { .opcode = IBV_WR_SEND, .lkey = K_GONE },
	  LOCAL(LOC_PROT_ERR) },
	{ "SEND, lkey of another PD",
	  BAD_LKEY,
	  IBV_QPT_RC,
	  { .opcode = IBV_WR_SEND, .lkey = K_OTHER_PD },
	  LOCAL(LOC_PROT_ERR) },
	{ "SEND, past the end of the MR",
	  BAD_LKEY,
	  IBV_QPT_RC,
	  { .opcode = IBV_WR_SEND, .local = PAST_END },
	  LOCAL(LOC_PROT_ERR) },
	{ "SEND, before the start of the MR",
	  BAD_LKEY,
	  IBV_QPT_RC,
	  { .opcode = IBV_WR_SEND, .local = BEFORE_START },
	  LOCAL(LOC_PROT_ERR) },
	{ "SEND, wraps around",
	  BAD_LKEY,
	  IBV_QPT_RC,
	  { .opcode = IBV_WR_SEND, .local = WRAPS },
	  LOCAL(LOC_PROT_ERR) },
	{ "SEND, second packet past the end of the MR",
	  BAD_LKEY,
	  IBV_QPT_RC,
	  { .opcode = IBV_WR_SEND,
	    .local = PAST_END,
	    .length = 1100,
	    .flags = 0 },
	  LOCAL(LOC_PROT_ERR),
	  .recv_bytes = 2048 },
	{ "WRITE, lkey unknown",
	  BAD_LKEY,
	  IBV_QPT_RC,
	  { .opcode = IBV_WR_RDMA_WRITE, .lkey = K_UNKNOWN },
	  LOCAL(LOC_PROT_ERR) },
	{ "READ, lkey unknown",
	  BAD_LKEY,
	  IBV_QPT_RC,
	  { .opcode = IBV_WR_RDMA_READ, .lkey = K_UNKNOWN },
	  LOCAL(LOC_PROT_ERR),
	  .run_client = post_fenced },
	{ "READ, lkey of another PD",
	  BAD_LKEY,
	  IBV_QPT_RC,
	  { .opcode = IBV_WR_RDMA_READ, .lkey = K_OTHER_PD },
	  LOCAL(LOC_PROT_ERR),
	  .run_client = post_fenced },
	{ "READ, lkey without local write",
	  BAD_LKEY,
	  IBV_QPT_RC,
	  { .opcode = IBV_WR_RDMA_READ, .lkey = K_LOCAL_READ },
	  LOCAL(LOC_PROT_ERR),
	  .run_client = post_fenced },
	{ "READ, past the end of the MR",
	  BAD_LKEY,
	  IBV_QPT_RC,
	  { .opcode = IBV_WR_RDMA_READ, .local = PAST_END },
	  LOCAL(LOC_PROT_ERR),
	  .run_client = post_fenced },
	{ "atomic, lkey unknown",
	  BAD_LKEY,
	  IBV_QPT_RC,
	  { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .lkey = K_UNKNOWN },
	  LOCAL(LOC_PROT_ERR),
	  .run_client = post_fenced },
	{ "atomic, lkey without local write",
	  BAD_LKEY,
	  IBV_QPT_RC,
	  { .opcode = IBV_WR_ATOMIC_CMP_AND_SWP, .lkey = K_LOCAL_READ },
	  LOCAL(LOC_PROT_ERR),
	  .run_client = post_fenced },
	{ "atomic, result of 4 bytes",
	  "9.9.2, 11.6.2",
	  IBV_QPT_RC,
	  { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .length = 4 },
	  LOCAL_LENGTH },
	{ "SEND, longer than 2^31",
	  "9.9.2, 11.6.2",
	  IBV_QPT_RC,
	  { .opcode = IBV_WR_SEND, .length = 0x40000001, .elements = 2 },
	  LOCAL_LENGTH },
	{ "READ, no initiator depth",
	  "9.9.2, 11.6.2",
	  IBV_QPT_RC,
	  { .opcode = IBV_WR_RDMA_READ },
	  LOCAL(LOC_QP_OP_ERR),
	  .no_rd_atomic = true },
	{ "good ones before an error",
	  "9.9.2, 10.7.3",
	  IBV_QPT_RC,
	  { .opcode = IBV_WR_SEND, .lkey = K_UNKNOWN },
	  ENDS("S[0:ok 1:ok 2:LOC_PROT_ERR 3:flush] R[10:flush 11:flush] ERR",
	       TWO_RECEIVED),
	  .run_client = post_behind },
	{ "inline, its lkey does not count",
	  "10.7.2, 11.4.1.1",
	  IBV_QPT_RC,
	  { .opcode = IBV_WR_SEND,
	    .inlined = true,
	    .lkey = K_UNKNOWN,
	    .length = 8 },
	  ENDS(ALL_SENT, "S[] R[10:ok(8) 11:ok(64) 12:ok(64)] RTS") },
	{ "unsignaled before and behind an error",
	  "10.7.3.1",
	  IBV_QPT_RC,
	  { .opcode = IBV_WR_SEND, .lkey = K_UNKNOWN },
	  ENDS("S[2:LOC_PROT_ERR 3:flush 4:flush] R[10:flush 11:flush] ERR",
	       TWO_RECEIVED),
	  .run_client = post_unsignaled },
	{ "too many elements",
	  POST,
	  IBV_QPT_RC,
	  { .opcode = IBV_WR_SEND, .length = 1 },
	  REFUSED,
	  .run_client = post_elements },
	{ "inline too long",
	  POST,
	  IBV_QPT_RC,
	  { .opcode = IBV_WR_SEND, .inlined = true },
	  REFUSED,
	  .run_client = post_inline },
	{ "no such opcode",
	  POST,
	  IBV_QPT_RC,
	  { .opcode = (enum ibv_wr_opcode)77 },
	  REFUSED },
	{ "more than the send queue holds",
	  POST,
	  IBV_QPT_RC,
	  {},
	  ENDS("post:ENOMEM S[] R[] RTS", QUIET),
	  .no_receives = true,
	  .run_client = post_until_full },
	{}
};
