// SPDX-License-Identifier: GPL-2.0
/*
 * Each way in which work can be wrong: what completes at both ends, in which
 * state the QPs are and which events come.
 */
#include <string.h>

#include "scene.h"

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

int main(void)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		run_case(&cases[i]);
	printf("%zu cases\n", sizeof(cases) / sizeof(*cases));
	return check_result();
}
