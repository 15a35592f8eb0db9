// SPDX-License-Identifier: GPL-2.0
/*
 * Each way in which work can be wrong: what completes at both ends, in which
 * state the QPs are and which events come.
 */
#include <string.h>

#include "sim.h"

#define MEMORY (1U << 20)
#define RECV_BYTES 256

enum key {
	ALL = 1000,
	OTHER_PD,
	SHORT,
	READ_ONLY,
	WRITE_ONLY,
	NO_KEY
};

struct scene {
	struct sim *sim;
	struct sim_qp *a, *b;
	struct roce_qp_attr attr; /* of both */
	struct roce_send_wqe wqe; /* the one that is wrong */
	struct roce_sge sge[16];
	uint32_t recv_key;
};

struct error_case {
	const char *name;
	enum roce_wr_opcode opcode;
	uint32_t len;
	enum key lkey, rkey;
	void (*prepare)(struct scene *s);
	enum roce_wc_status status;
	/* of the peer; state RTS: it has not noticed */
	enum roce_qp_state state;
	enum roce_wc_status recv_status; /* of its first receive */
	enum roce_event event;		 /* or 0 */
};

static void no_initiator_depth(struct scene *s)
{
	s->attr.max_rd_atomic = 0;
}

static void no_responder_resources(struct scene *s)
{
	s->attr.max_dest_rd_atomic = 0;
}

static void no_rights(struct scene *s)
{
	s->attr.access = 0;
}

static void bad_fetch(struct scene *s)
{
	s->a->bad_send = true;
}

static void bad_recv(struct scene *s)
{
	s->b->bad_recv = true;
}

static void bad_recv_key(struct scene *s)
{
	s->recv_key = NO_KEY;
}

static void many_elements(struct scene *s)
{
	s->wqe.num_sge = 9;
}

static void misaligned(struct scene *s)
{
	s->wqe.remote_addr += 4;
}

static void beyond(struct scene *s)
{
	s->wqe.remote_addr = MEMORY - 8;
}

static void wraps(struct scene *s)
{
	s->wqe.remote_addr = ~0ULL - 4;
}

static void huge(struct scene *s)
{
	s->wqe.num_sge = 2;
	s->sge[0].length = s->sge[1].length = 0x40000001;
}

static void inline_read(struct scene *s)
{
	s->wqe.flags |= ROCE_SEND_INLINE;
}

static void failing_op(struct scene *s)
{
	s->wqe.swap = 1;
}

static void unknown_key(struct scene *s)
{
	s->wqe.invalidate_key = NO_KEY;
}

#define WRITE ROCE_WR_RDMA_WRITE
#define WRITE_IMM ROCE_WR_RDMA_WRITE_WITH_IMM
#define READ ROCE_WR_RDMA_READ
#define SEND ROCE_WR_SEND
#define ADD ROCE_WR_ATOMIC_FETCH_AND_ADD
#define SWAP ROCE_WR_ATOMIC_CMP_AND_SWP
#define LOCAL(status) ROCE_WC_##status, ROCE_QPS_RTS, ROCE_WC_SUCCESS, 0
#define REMOTE(status, event) \
	ROCE_WC_##status, ROCE_QPS_ERR, ROCE_WC_WR_FLUSH_ERR, event
#define RECEIVE(status, recv_status) \
	ROCE_WC_##status, ROCE_QPS_ERR, ROCE_WC_##recv_status, 0
#define ACCESS REMOTE(REM_ACCESS_ERR, ROCE_EVENT_QP_ACCESS_ERR)
#define INVALID REMOTE(REM_INV_REQ_ERR, ROCE_EVENT_QP_REQ_ERR)

static const struct error_case cases[] = {
	/* our own fault */
	{ "lkey unknown", WRITE, 64, NO_KEY, ALL, 0, LOCAL(LOC_PROT_ERR) },
	{ "lkey of 0", SEND, 64, 0, ALL, 0, LOCAL(LOC_PROT_ERR) },
	{ "lkey of another PD", SEND, 64, OTHER_PD, ALL, 0,
	  LOCAL(LOC_PROT_ERR) },
	{ "lkey too short", WRITE, 4097, SHORT, ALL, 0, LOCAL(LOC_PROT_ERR) },
	{ "READ to read-only", READ, 64, READ_ONLY, ALL, 0,
	  LOCAL(LOC_PROT_ERR) },
	{ "atomic to read-only", ADD, 8, READ_ONLY, ALL, 0,
	  LOCAL(LOC_PROT_ERR) },
	{ "atomic to 4 bytes", ADD, 4, ALL, ALL, 0, LOCAL(LOC_LEN_ERR) },
	{ "more than 2^31", WRITE, 64, ALL, ALL, huge, LOCAL(LOC_LEN_ERR) },
	{ "opcode unknown", 8, 64, ALL, ALL, 0, LOCAL(LOC_QP_OP_ERR) },
	{ "WQE unreadable", WRITE, 64, ALL, ALL, bad_fetch,
	  LOCAL(LOC_QP_OP_ERR) },
	{ "too many elements", WRITE, 8, ALL, ALL, many_elements,
	  LOCAL(LOC_QP_OP_ERR) },
	{ "READ, depth 0", READ, 64, ALL, ALL, no_initiator_depth,
	  LOCAL(LOC_QP_OP_ERR) },
	{ "READ, inline", READ, 64, ALL, ALL, inline_read,
	  LOCAL(LOC_QP_OP_ERR) },
	{ "local operation fails", ROCE_WR_LOCAL, 0, ALL, ALL, failing_op,
	  LOCAL(MW_BIND_ERR) },
	{ "invalidate unknown", ROCE_WR_LOCAL_INV, 0, ALL, ALL, unknown_key,
	  LOCAL(LOC_QP_OP_ERR) },
	/* the peer refuses */
	{ "WRITE, rkey unknown", WRITE, 64, ALL, NO_KEY, 0, ACCESS },
	{ "WRITE, another PD", WRITE, 64, ALL, OTHER_PD, 0, ACCESS },
	{ "WRITE, too short", WRITE, 8192, ALL, SHORT, 0, ACCESS },
	{ "WRITE beyond", WRITE, 9, ALL, ALL, beyond, ACCESS },
	{ "WRITE wraps", WRITE, 9, ALL, ALL, wraps, ACCESS },
	{ "WRITE to read-only", WRITE, 64, ALL, READ_ONLY, 0, ACCESS },
	{ "WRITE with immediate", WRITE_IMM, 64, ALL, NO_KEY, 0, ACCESS },
	{ "READ, rkey unknown", READ, 64, ALL, NO_KEY, 0, ACCESS },
	{ "READ of write-only", READ, 64, ALL, WRITE_ONLY, 0, ACCESS },
	{ "READ beyond", READ, 9, ALL, ALL, beyond, ACCESS },
	{ "atomic on read-only", ADD, 8, ALL, READ_ONLY, 0, ACCESS },
	{ "swap on write-only", SWAP, 8, ALL, WRITE_ONLY, 0, ACCESS },
	{ "atomic misaligned", ADD, 8, ALL, ALL, misaligned, INVALID },
	{ "WRITE not allowed", WRITE, 64, ALL, ALL, no_rights, INVALID },
	{ "READ not allowed", READ, 64, ALL, ALL, no_rights, INVALID },
	{ "atomic not allowed", SWAP, 8, ALL, ALL, no_rights, INVALID },
	{ "READ, no resources", READ, 64, ALL, ALL, no_responder_resources,
	  INVALID },
	{ "atomic, no resources", ADD, 8, ALL, ALL, no_responder_resources,
	  INVALID },
	{ "receive too small", SEND, RECV_BYTES + 1, ALL, ALL, 0,
	  RECEIVE(REM_INV_REQ_ERR, LOC_LEN_ERR) },
	{ "receive too small, later", SEND, 8192, ALL, ALL, 0,
	  RECEIVE(REM_INV_REQ_ERR, LOC_LEN_ERR) },
	{ "receive lkey", SEND, 64, ALL, ALL, bad_recv_key,
	  RECEIVE(REM_OP_ERR, LOC_PROT_ERR) },
	{ "receive WQE", SEND, 64, ALL, ALL, bad_recv,
	  RECEIVE(REM_OP_ERR, LOC_QP_OP_ERR) },
	{ "WRITE with immediate, receive WQE", WRITE_IMM, 64, ALL, ALL,
	  bad_recv, RECEIVE(REM_OP_ERR, LOC_QP_OP_ERR) },
};

static void make_scene(struct scene *s)
{
	memset(s, 0, sizeof(*s));
	s->sim = sim_create(MEMORY, NULL);
	for (int i = 0; i < 2; i++) {
		struct sim_node *n = &s->sim->nodes[i];

		sim_key(n, OTHER_PD - ALL, 2, 0, MEMORY, SIM_ALL_ACCESS);
		sim_key(n, SHORT - ALL, 1, 0, 4096, SIM_ALL_ACCESS);
		sim_key(n, READ_ONLY - ALL, 1, 0, MEMORY,
			ROCE_ACCESS_REMOTE_READ);
		sim_key(n, WRITE_ONLY - ALL, 1, 0, MEMORY,
			ROCE_ACCESS_LOCAL_WRITE | ROCE_ACCESS_REMOTE_WRITE);
	}
	s->a = sim_qp(&s->sim->nodes[0], ROCE_QPT_RC, NULL);
	s->b = sim_qp(&s->sim->nodes[1], ROCE_QPT_RC, NULL);
	sim_attributes(s->sim, &s->attr, 0, 0);
	s->recv_key = ALL;
}

static void expect_sends(const char *name, const struct sim_qp *q,
			 const enum roce_wc_status *status, uint32_t n)
{
	CHECK(q->num_send_wcs == n, "%s: %u completions", name,
	      q->num_send_wcs);
	for (uint32_t i = 0; i < n && i < q->num_send_wcs; i++)
		CHECK(q->send_wcs[i].status == status[i] &&
			      q->send_wcs[i].cookie == i,
		      "%s: %u: cookie %d, status %d, not %d", name, i,
		      (int)q->send_wcs[i].cookie, q->send_wcs[i].status,
		      status[i]);
}

static bool has_event(const struct sim_qp *q, enum roce_event event)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < q->num_events; i++)
		n += q->events[i] == event;
	return n == 1;
}

static uint32_t errors(const struct sim_qp *q)
{
	return has_event(q, ROCE_EVENT_QP_FATAL) +
	       has_event(q, ROCE_EVENT_QP_REQ_ERR) +
	       has_event(q, ROCE_EVENT_QP_ACCESS_ERR);
}

static void run_case(const struct error_case *c)
{
	const enum roce_wc_status status[] = { ROCE_WC_SUCCESS, c->status,
					       ROCE_WC_WR_FLUSH_ERR,
					       ROCE_WC_WR_FLUSH_ERR };
	const struct roce_qp_counters *counters;
	struct roce_send_wqe good;
	struct scene s;

	make_scene(&s);
	s.wqe = sim_wqe(s.a, c->opcode, 0, c->len, 4096);
	memcpy(s.sge, s.wqe.sge, sizeof(*s.sge));
	for (int i = 0; i < 16; i++)
		s.sge[i] = s.sge[0];
	s.sge[0].key = c->lkey;
	s.wqe.sge = s.sge;
	s.wqe.rkey = c->rkey;
	s.wqe.flags = 0; /* errors are told of unsignaled ones as well */
	s.wqe.cookie = 1;
	/* What is wrong with a fetch is wrong with the first one. */
	if (c->prepare && c->prepare != bad_fetch)
		c->prepare(&s);
	if (c->rkey == SHORT)
		s.wqe.remote_addr = 0;
	sim_connect(s.a, s.b, &s.attr);
	for (int i = 0; i < 2; i++) {
		sim_post_recv(s.a, i, 0, RECV_BYTES, ALL);
		sim_post_recv(s.b, i, 0, RECV_BYTES, s.recv_key);
	}
	/* a good one that needs no right at the QP */
	good = sim_wqe(s.a, ROCE_WR_LOCAL, 0, 0, 0);
	sim_post_send(s.a, &good);
	if (c->prepare == bad_fetch) {
		sim_run(s.sim, 1000000);
		bad_fetch(&s);
	}
	sim_post_send(s.a, &s.wqe);
	for (int i = 2; i < 4; i++) {
		good = sim_wqe(s.a, WRITE, 0, 64, 0);
		sim_post_send(s.a, &good);
	}
	sim_run(s.sim, SIM_LONG);

	expect_sends(c->name, s.a, status, 4);
	CHECK(roce_qp_state(s.a->qp) == ROCE_QPS_ERR &&
		      roce_qp_state(s.b->qp) == c->state,
	      "%s: states %d, %d", c->name, roce_qp_state(s.a->qp),
	      roce_qp_state(s.b->qp));
	CHECK(s.a->num_recv_wcs == 2 &&
		      s.a->recv_wcs[0].status == ROCE_WC_WR_FLUSH_ERR &&
		      s.a->recv_wcs[1].cookie == 1,
	      "%s: own receives", c->name);
	CHECK(!errors(s.a), "%s: own events", c->name);
	if (c->state == ROCE_QPS_RTS) {
		CHECK(!s.b->num_recv_wcs && !errors(s.b), "%s: peer", c->name);
	} else {
		CHECK(s.b->num_recv_wcs == 2 &&
			      s.b->recv_wcs[0].status == c->recv_status &&
			      s.b->recv_wcs[1].status == ROCE_WC_WR_FLUSH_ERR,
		      "%s: receives of the peer: %u, status %d", c->name,
		      s.b->num_recv_wcs,
		      s.b->num_recv_wcs ? (int)s.b->recv_wcs[0].status : -1);
		CHECK(errors(s.b) == (c->event != 0) &&
			      (!c->event || has_event(s.b, c->event)),
		      "%s: events of the peer", c->name);
	}
	counters = roce_qp_counters(s.a->qp);
	CHECK(counters->req_cqe_error == 1 &&
		      counters->req_cqe_flush_error == 2 &&
		      counters->resp_cqe_flush_error == 2,
	      "%s: counters", c->name);
	CHECK(counters->req_remote_access_errors ==
			      (c->status == ROCE_WC_REM_ACCESS_ERR) &&
		      counters->req_remote_invalid_request ==
			      (c->status == ROCE_WC_REM_INV_REQ_ERR),
	      "%s: counters of NAKs", c->name);
	sim_destroy(s.sim);
}

static void post(struct sim_qp *q, enum roce_wr_opcode opcode, uint32_t len)
{
	struct roce_send_wqe wqe = sim_wqe(q, opcode, 0, len, 4096);

	sim_post_send(q, &wqe);
}

/* The NAK comes behind the responses to what was right. */
static void test_order_of_nak(void)
{
	const enum roce_wc_status status[] = { ROCE_WC_SUCCESS, ROCE_WC_SUCCESS,
					       ROCE_WC_SUCCESS,
					       ROCE_WC_REM_ACCESS_ERR };
	struct roce_send_wqe wqe;
	struct scene s;

	make_scene(&s);
	sim_connect(s.a, s.b, &s.attr);
	post(s.a, READ, 100000);
	post(s.a, WRITE, 5000);
	post(s.a, READ, 100000);
	wqe = sim_wqe(s.a, WRITE, 0, 64, 0);
	wqe.rkey = NO_KEY;
	sim_post_send(s.a, &wqe);
	sim_run(s.sim, SIM_LONG);
	expect_sends("order of NAK", s.a, status, 4);
	sim_destroy(s.sim);
}

/* A local error waits for what is under way before it. */
static void test_order_of_local_error(void)
{
	const enum roce_wc_status status[] = { ROCE_WC_SUCCESS, ROCE_WC_SUCCESS,
					       ROCE_WC_LOC_PROT_ERR,
					       ROCE_WC_WR_FLUSH_ERR };
	struct roce_send_wqe wqe;
	struct scene s;

	make_scene(&s);
	s.sim->loss = 0.05;
	sim_connect(s.a, s.b, &s.attr);
	post(s.a, WRITE, 100000);
	post(s.a, READ, 100000);
	wqe = sim_wqe(s.a, WRITE, 0, 64, 0);
	wqe.sge[0].key = NO_KEY;
	sim_post_send(s.a, &wqe);
	post(s.a, WRITE, 64);
	sim_run(s.sim, SIM_LONG);
	expect_sends("order of a local error", s.a, status, 4);
	CHECK(roce_qp_state(s.b->qp) == ROCE_QPS_RTS, "peer");
	sim_destroy(s.sim);
}

/* Keys that go away while a message is under way. */
static void test_lost_keys(void)
{
	static const struct {
		enum roce_wr_opcode opcode;
		int node;
		enum roce_wc_status status;
	} lost[] = {
		{ WRITE, 0, ROCE_WC_LOC_PROT_ERR },
		{ WRITE, 1, ROCE_WC_REM_ACCESS_ERR },
		{ READ, 0, ROCE_WC_LOC_PROT_ERR },
		{ READ, 1, ROCE_WC_REM_ACCESS_ERR },
	};

	for (int i = 0; i < 4; i++) {
		struct scene s;

		make_scene(&s);
		/* so that it takes a while */
		s.sim->nodes[0].room = s.sim->nodes[1].room = 300;
		sim_connect(s.a, s.b, &s.attr);
		post(s.a, lost[i].opcode, 900000);
		sim_run(s.sim, 100000);
		CHECK(!s.a->num_send_wcs, "done already");
		s.sim->nodes[lost[i].node].keys[0].key = 0;
		s.sim->nodes[0].room = s.sim->nodes[1].room = -1;
		sim_run(s.sim, SIM_LONG);
		expect_sends("lost key", s.a, &lost[i].status, 1);
		sim_destroy(s.sim);
	}
}

static void test_retry(void)
{
	const enum roce_wc_status status[] = { ROCE_WC_SUCCESS,
					       ROCE_WC_RETRY_EXC_ERR,
					       ROCE_WC_WR_FLUSH_ERR };
	const struct roce_qp_counters *counters;
	uint64_t start, ns;
	struct scene s;

	make_scene(&s);
	s.attr.retry_cnt = 3;
	sim_connect(s.a, s.b, &s.attr);
	post(s.a, WRITE, 64);
	sim_run(s.sim, SIM_LONG);
	s.sim->unplugged = true;
	start = s.sim->now;
	post(s.a, WRITE, 64);
	post(s.a, READ, 64);
	sim_run(s.sim, SIM_LONG);
	ns = s.sim->now - start;
	expect_sends("retry", s.a, status, 3);
	counters = roce_qp_counters(s.a->qp);
	CHECK(counters->local_ack_timeout_err == 4, "%d timeouts",
	      (int)counters->local_ack_timeout_err);
	CHECK(ns == 4 * (4096ULL << 8), "%llu ns", (long long)ns);
	CHECK(!errors(s.a), "events");
	sim_destroy(s.sim);
}

static void test_rnr(void)
{
	const enum roce_wc_status status[] = { ROCE_WC_SUCCESS,
					       ROCE_WC_RNR_RETRY_EXC_ERR };
	const struct roce_qp_counters *counters;
	struct scene s;

	for (int retries = 0; retries <= 7; retries += 1) {
		uint64_t start;

		make_scene(&s);
		s.attr.rnr_retry = retries;
		s.attr.min_rnr_timer = 10; /* 320 us */
		sim_connect(s.a, s.b, &s.attr);
		post(s.a, WRITE, 3000);
		post(s.a, retries & 1 ? SEND : WRITE_IMM, 3000);
		start = s.sim->now;
		sim_run(s.sim, 100000000);
		counters = roce_qp_counters(s.a->qp);
		if (retries < 7) {
			expect_sends("RNR", s.a, status, 2);
			CHECK(counters->rnr_nak_retry_err == (uint64_t)retries,
			      "%d RNR NAKs", (int)counters->rnr_nak_retry_err);
			CHECK(roce_qp_state(s.b->qp) == ROCE_QPS_RTS, "peer");
		} else {
			CHECK(counters->rnr_nak_retry_err > 250 &&
				      counters->rnr_nak_retry_err < 320,
			      "%d RNR NAKs", (int)counters->rnr_nak_retry_err);
			sim_post_recv(s.b, 0, 0, 4096, ALL);
			sim_run(s.sim, 1000000);
			CHECK(s.a->num_send_wcs == 2 &&
				      !s.a->send_wcs[1].status &&
				      s.b->num_recv_wcs == 1 &&
				      s.b->recv_wcs[0].byte_len == 3000,
			      "after the RNR NAKs");
			CHECK(!counters->packet_seq_err &&
				      !counters->local_ack_timeout_err,
			      "more than RNR NAKs");
		}
		(void)start;
		sim_destroy(s.sim);
	}
}

static void test_invalidate(void)
{
	struct roce_send_wqe wqe;
	struct scene s;

	make_scene(&s);
	sim_connect(s.a, s.b, &s.attr);
	for (int i = 0; i < 3; i++)
		sim_post_recv(s.b, i, 0, RECV_BYTES, ALL);
	wqe = sim_wqe(s.a, ROCE_WR_SEND_WITH_INV, 0, 64, 0);
	wqe.invalidate_key = SHORT;
	sim_post_send(s.a, &wqe);
	sim_run(s.sim, SIM_LONG);
	CHECK(s.b->num_recv_wcs == 1 &&
		      s.b->recv_wcs[0].flags & ROCE_WC_WITH_INV &&
		      s.b->recv_wcs[0].invalidated_key == SHORT &&
		      !s.sim->nodes[1].keys[SHORT - ALL].key,
	      "invalidation");
	/* Again: class J, the sender learns it from what comes next. */
	wqe = sim_wqe(s.a, ROCE_WR_SEND_WITH_INV, 0, 64, 0);
	wqe.invalidate_key = SHORT;
	sim_post_send(s.a, &wqe);
	sim_run(s.sim, SIM_LONG);
	CHECK(s.b->num_recv_wcs == 3 &&
		      s.b->recv_wcs[1].status == ROCE_WC_REM_INV_REQ_ERR &&
		      s.b->recv_wcs[2].status == ROCE_WC_WR_FLUSH_ERR &&
		      roce_qp_state(s.b->qp) == ROCE_QPS_ERR,
	      "invalidation of what is not valid");
	CHECK(s.a->num_send_wcs == 2 && !s.a->send_wcs[1].status, "sender");
	wqe = sim_wqe(s.a, ROCE_WR_LOCAL_INV, 0, 0, 0);
	wqe.invalidate_key = SHORT;
	sim_post_send(s.a, &wqe);
	sim_run(s.sim, SIM_LONG);
	CHECK(s.a->num_send_wcs == 3 && !s.a->send_wcs[2].status &&
		      !s.sim->nodes[0].keys[SHORT - ALL].key,
	      "local invalidation");
	sim_destroy(s.sim);
}

static void test_lost_completions(void)
{
	struct scene s;

	make_scene(&s);
	sim_connect(s.a, s.b, &s.attr);
	s.a->lose_send_wc = true;
	post(s.a, WRITE, 64);
	post(s.a, WRITE, 64);
	sim_run(s.sim, SIM_LONG);
	CHECK(roce_qp_state(s.a->qp) == ROCE_QPS_ERR &&
		      has_event(s.a, ROCE_EVENT_QP_FATAL) &&
		      s.a->num_send_wcs == 1 &&
		      s.a->send_wcs[0].status == ROCE_WC_WR_FLUSH_ERR,
	      "send");
	sim_destroy(s.sim);

	make_scene(&s);
	sim_connect(s.a, s.b, &s.attr);
	s.b->lose_recv_wc = true;
	sim_post_recv(s.b, 0, 0, RECV_BYTES, ALL);
	sim_post_recv(s.b, 1, 0, RECV_BYTES, ALL);
	post(s.a, SEND, 64);
	sim_run(s.sim, SIM_LONG);
	CHECK(roce_qp_state(s.b->qp) == ROCE_QPS_ERR &&
		      has_event(s.b, ROCE_EVENT_QP_FATAL) &&
		      s.b->num_recv_wcs == 1 &&
		      s.b->recv_wcs[0].status == ROCE_WC_WR_FLUSH_ERR,
	      "receive");
	CHECK(s.a->send_wcs[0].status == ROCE_WC_RETRY_EXC_ERR, "sender");
	sim_destroy(s.sim);
}

/* With a shared receive queue only what the QP has is flushed. */
static void test_srq(void)
{
	struct sim_qp *srq;
	struct scene s;

	make_scene(&s);
	srq = s.b;
	s.b = sim_qp(&s.sim->nodes[1], ROCE_QPT_RC, srq);
	sim_connect(s.a, s.b, &s.attr);
	for (int i = 0; i < 4; i++)
		sim_post_recv(srq, i, 0, 4096, ALL);
	post(s.a, SEND, 64);
	sim_run(s.sim, SIM_LONG);
	s.sim->nodes[0].room = 1;
	post(s.a, SEND, 4096); /* gets stuck after a packet */
	sim_run(s.sim, 100000);
	CHECK(srq->next_recv == 2, "a WQE is in use");
	CHECK(!sim_modify(s.b, &s.attr, ROCE_QPS_ERR), "modify");
	sim_run(s.sim, 100000);
	CHECK(s.b->num_recv_wcs == 2 && !s.b->recv_wcs[0].status &&
		      s.b->recv_wcs[1].status == ROCE_WC_WR_FLUSH_ERR &&
		      s.b->recv_wcs[1].cookie == 1 && srq->next_recv == 2 &&
		      has_event(s.b, ROCE_EVENT_QP_LAST_WQE_REACHED),
	      "flush");
	sim_destroy(s.sim);
}

int main(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		run_case(&cases[i]);
	printf("%zu cases\n", sizeof(cases) / sizeof(*cases));
	test_order_of_nak();
	test_order_of_local_error();
	test_lost_keys();
	test_retry();
	test_rnr();
	test_invalidate();
	test_lost_completions();
	test_srq();
	return check_result();
}
