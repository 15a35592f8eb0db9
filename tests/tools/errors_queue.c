// SPDX-License-Identifier: GPL-2.0
/* Queues that end or run over: IBA 10.3.1, 10.10.2, 11.6.3. */
#include <poll.h>
#include <unistd.h>

#include "errors_text.h"

#define EVENT_MS 5000
#define FLUSH_MS 5000
#define FLUSHED_US 100000
#define STARTED_US 50000

static void fail_with_work(struct end *e)
{
	post_good(e, 0, 3);
	usleep(STARTED_US * errors_factor);
	end_modify(e, IBV_QPS_ERR);
}

/* The first of many fails: the rest is flushed, all of it and in order. */
static void flush_many(struct end *e)
{
	uint64_t next = 0, end = DEEP;
	struct ibv_wc wc;
	int i;

	post_send(e, &e->test->wr, 0);
	for (i = 1; i < (int)end; i++)
		post_good(e, i, 1);
	for (i = 0; i < FLUSH_MS * errors_factor && next < end; i++) {
		while (next < end && ibv_poll_cq(e->send_cq, 1, &wc) == 1) {
			if (wc.wr_id != next++)
				return;
			if (wc.status != (wc.wr_id ? IBV_WC_WR_FLUSH_ERR
						   : IBV_WC_REM_ACCESS_ERR))
				return;
		}
		usleep(1000);
	}
	post_good(e, next, 1); /* is flushed too: the only one in the text */
}

static void fail_idle(struct end *e)
{
	end_modify(e, IBV_QPS_ERR);
}

/* Receives ring no doorbell: what was there before must not tell of them. */
static void post_in_err(struct end *e)
{
	end_modify(e, IBV_QPS_ERR);
	post_good(e, 0, 2);
	usleep(FLUSHED_US * errors_factor);
	post_recvs(e, 12, 2);
}

static void nothing(struct end *e)
{
	(void)e;
}

static void two_sends(struct end *e)
{
	post_good(e, 0, 2);
}

static void three_sends(struct end *e)
{
	post_good(e, 0, 3);
}

/* one completion more than there is room for */
static void overrun(struct end *e)
{
	struct pollfd p = { .fd = e->rig->v.context->async_fd,
			    .events = POLLIN };

	post_good(e, 0, e->send_cq->cqe + 2);
	poll(&p, 1, EVENT_MS * errors_factor);
}

#define LOST "R[10:flush 11:flush] ERR"
#define ACCESS FAILS(REM_ACCESS_ERR)
#define LAST " QP_LAST_WQE_REACHED"

const struct test queue_tests[] = {
	{ "to ERR with work outstanding",
	  "10.3.1, 10.7.3",
	  IBV_QPT_RC,
	  {},
	  ENDS("S[0:flush 1:flush 2:flush] R[10:flush 11:flush] ERR", QUIET),
	  .no_receives = true,
	  .run_client = fail_with_work },
	{ "an error before hundreds",
	  "10.7.3",
	  IBV_QPT_RC,
	  { .opcode = IBV_WR_RDMA_WRITE, .rkey = K_UNKNOWN },
	  ENDS("S[600:flush] R[10:flush 11:flush] ERR",
	       FLUSHED " QP_ACCESS_ERR"),
	  .deep = true,
	  .run_client = flush_many },
	{ "posts to a QP in ERR",
	  "10.3.1, 10.8.2",
	  IBV_QPT_RC,
	  {},
	  ENDS("S[0:flush 1:flush] R[10:flush 11:flush 12:flush 13:flush] ERR",
	       "S[] R[] RTS"),
	  .run_client = post_in_err },
	{ "posts to a QP in ERR, UD",
	  "10.3.1, 10.8.2",
	  IBV_QPT_UD,
	  {},
	  ENDS("S[0:flush 1:flush] R[10:flush 11:flush 12:flush 13:flush] ERR",
	       "S[] R[] RTS"),
	  .run_client = post_in_err },
	{ "SRQ limit",
	  "10.2.9, 11.6.3",
	  IBV_QPT_RC,
	  {},
	  ENDS("S[0:ok 1:ok] R[] RTS",
	       "S[] R[10:ok(64) 11:ok(64)] RTS SRQ_LIMIT_REACHED"),
	  .srq = true,
	  .srq_limit = 2,
	  .run_client = two_sends },
	{ "last WQE: to ERR",
	  "10.2.9, 11.6.3",
	  IBV_QPT_RC,
	  {},
	  ENDS(QUIET, "S[] R[] ERR" LAST),
	  .srq = true,
	  .run_client = nothing,
	  .run_server = fail_idle },
	{ "last WQE: rkey unknown",
	  "10.2.9, 11.6.3",
	  IBV_QPT_RC,
	  { .opcode = IBV_WR_RDMA_WRITE, .rkey = K_UNKNOWN },
	  ENDS(ACCESS, "S[] R[] ERR QP_ACCESS_ERR" LAST OR "S[] R[] ERR" LAST
		       " QP_ACCESS_ERR"),
	  .srq = true },
	{ "last WQE: receive too small",
	  "10.2.9, 11.6.3",
	  IBV_QPT_RC,
	  { .opcode = IBV_WR_SEND, .length = 128 },
	  ENDS(FAILS(REM_INV_REQ_ERR), "S[] R[10:LOC_LEN_ERR] ERR" LAST),
	  .srq = true,
	  .recv_bytes = 100 },
	{ "an error wakes who waits for solicited ones",
	  "11.4.2.2",
	  IBV_QPT_RC,
	  { .opcode = IBV_WR_SEND, .length = 128 },
	  ENDS(FAILS(REM_INV_REQ_ERR), RECV_FAILS(LOC_LEN_ERR) " COMP"),
	  .armed = true,
	  .recv_bytes = 100 },
	{ "what is not solicited wakes nobody",
	  "11.4.2.2",
	  IBV_QPT_RC,
	  { .opcode = IBV_WR_SEND },
	  ENDS(ALL_SENT, "S[] R[10:ok(64) 11:ok(64) 12:ok(64)] RTS"),
	  .armed = true },
	{ "CQ overrun",
	  "10.10.2, 11.6.3",
	  IBV_QPT_RC,
	  {},
	  ENDS(OVERRUN, "S[] R[10:ok(64) 11:ok(64) 12:ok(64)] RTS"),
	  .small_cq = true,
	  .run_client = overrun },
	{ "CQ overrun of the responder",
	  "9.9.3, 10.10.2, 11.6.3",
	  IBV_QPT_RC,
	  {}, /* it need not acknowledge what it could still complete */
	  ENDS("S[0:ok 1:RETRY_EXC_ERR 2:flush] " LOST OR
	       "S[0:ok 1:ok 2:RETRY_EXC_ERR] " LOST OR
	       "S[0:RETRY_EXC_ERR 1:flush 2:flush] " LOST,
	       "S[] R[] ERR CQ_ERR QP_FATAL"),
	  .small_recv_cq = true,
	  .few_retries = true,
	  .retries = 3,
	  .run_client = three_sends },
	{}
};
