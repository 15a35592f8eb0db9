// SPDX-License-Identifier: GPL-2.0
/*
 * ATOMIC WRITE and FLUSH, which came late to the driver and which hardly anybody
 * uses: sent again, asked for again, without an answer, and by who has no right to.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../connect.h"
#include "migr_fuzz.h"

#define PSN 0xfffff0
#define REMOTE (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
#define FLUSHES (REMOTE | IBV_ACCESS_FLUSH_GLOBAL)
#define RESOURCES 4   /* and credits */
#define RNR_US 200000 /* some hundred times that of the responder */

/* one QP asks another one of the same process, which is s.qp[0] */
struct pair {
	const struct rig *rig;
	struct side s;
	struct ibv_qp_ex *ask;
	struct ibv_mr *mr; /* all of s.mem, may be flushed */
};

static void pair_open(struct rig *rig, struct pair *p)
{
	struct ibv_qp_init_attr_ex init = {
		.cap = { DEPTH, DEPTH, 2, 2, 0 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_FLUSH |
				  IBV_QP_EX_WITH_ATOMIC_WRITE,
	};
	struct ibv_qp *qp;

	p->rig = rig;
	side_open(rig, &p->s);
	init.pd = p->s.pd;
	init.send_cq = init.recv_cq = p->s.cq;
	MUST(qp = ibv_create_qp_ex(p->s.ctx, &init));
	p->ask = ibv_qp_to_qp_ex(qp);
	MUST(p->mr = ibv_reg_mr(p->s.pd, p->s.mem, 2 * MSG, FLUSHES));
}

static void pair_close(struct pair *p)
{
	MUST(!ibv_dereg_mr(p->mr));
	MUST(!ibv_destroy_qp(&p->ask->qp_base));
	side_close(&p->s);
}

/* only the one that asks begins anew, so that the other one has seen it all */
static void ask_again(struct pair *p)
{
	qp_reset(&p->ask->qp_base);
	qp_connect(p->rig, &p->ask->qp_base, p->s.qp[0]->qp_num, PSN, PSN);
}

static void pair_connect(struct pair *p, int access, uint8_t resources)
{
	qp_reset(p->s.qp[0]);
	qp_connect_as(p->rig, p->s.qp[0], p->ask->qp_base.qp_num, PSN, PSN,
		      access, resources);
	ask_again(p);
	while (qp_polled(&p->s))
		;
}

static void post_send(struct pair *p, uint32_t length)
{
	ibv_wr_start(p->ask);
	p->ask->wr_flags = 0;
	ibv_wr_send(p->ask);
	ibv_wr_set_sge(p->ask, p->s.mr->lkey, (uintptr_t)p->s.mem, length);
	MUST(!ibv_wr_complete(p->ask));
}

static void post_atomic_write(struct pair *p, const void *to, const char *what)
{
	ibv_wr_start(p->ask);
	p->ask->wr_flags = 0;
	ibv_wr_atomic_write(p->ask, p->mr->rkey, (uintptr_t)to, what);
	MUST(!ibv_wr_complete(p->ask));
}

static void post_flush(struct pair *p, uint32_t rkey, uint8_t type)
{
	ibv_wr_start(p->ask);
	p->ask->wr_flags = 0;
	ibv_wr_flush(p->ask, rkey, (uintptr_t)p->s.mem, MSG, type,
		     IBV_FLUSH_RANGE);
	MUST(!ibv_wr_complete(p->ask));
}

/* of the next n completions the first status that is bad, -1 if one is missing */
static int status_of(struct pair *p, int n)
{
	double end = fuzz_now() + 20;
	struct ibv_wc wc;

	while (n && fuzz_now() < end) {
		if (ibv_poll_cq(p->s.cq, 1, &wc) <= 0)
			continue;
		if (wc.status)
			return (int)wc.status;
		n--;
	}
	return n ? -1 : 0;
}

/* they wait behind a SEND that is refused, and so are sent again and again */
static void sent_again(struct pair *p)
{
	const char what[] = "8 bytes.";
	char *to = p->s.mem + 2 * MSG - 8;

	pair_connect(p, FLUSHES, RESOURCES);
	post_send(p, MSG);
	post_atomic_write(p, to, what);
	post_flush(p, p->mr->rkey, IBV_FLUSH_GLOBAL);
	usleep(RNR_US);
	MUST(!qp_post_recv(&p->s, 0));
	EXPECT(status_of(p, 4), 0);
	EXPECT(memcmp(to, what, 8), 0);
}

/* the answer was lost, as far as the one that asks can tell */
static void asked_again(struct pair *p)
{
	pair_connect(p, FLUSHES, RESOURCES);
	post_flush(p, p->mr->rkey, IBV_FLUSH_GLOBAL);
	EXPECT(status_of(p, 1), 0);
	ask_again(p);
	post_flush(p, p->mr->rkey, IBV_FLUSH_GLOBAL);
	EXPECT(status_of(p, 1), 0);
	post_flush(p, p->mr->rkey, IBV_FLUSH_GLOBAL);
	EXPECT(status_of(p, 1), 0);
}

/*
 * To the responder they are duplicates, of which it knows nothing, and a SEND that
 * it has acknowledged: so each of them loses its answer, and no credit.
 */
static void unanswered(struct pair *p)
{
	char *to = p->s.mem + 2 * MSG - 8;

	pair_connect(p, FLUSHES, RESOURCES);
	qp_reset(p->s.qp[0]);
	qp_connect_as(p->rig, p->s.qp[0], p->ask->qp_base.qp_num, PSN,
		      PSN + RESOURCES + 1, FLUSHES, RESOURCES);
	for (int i = 0; i < RESOURCES; i++)
		post_atomic_write(p, to, "nowhere.");
	post_send(p, 8);
	EXPECT(status_of(p, RESOURCES + 1), 0);
	post_atomic_write(p, to, "and now.");
	EXPECT(status_of(p, 1), 0);
	EXPECT(memcmp(to, "and now.", 8), 0);
}

/* who asks has no credit at all, of which a FLUSH takes one if there is any */
static void no_credit(struct pair *p)
{
	struct ibv_qp *ask = &p->ask->qp_base;
	struct ibv_qp_attr a = rc_attr(&p->rig->gid, 1, p->s.qp[0]->qp_num);

	pair_connect(p, FLUSHES, RESOURCES);
	qp_reset(ask);
	a.sq_psn = a.rq_psn = PSN;
	a.max_rd_atomic = 0;
	MUST(!rc_to_rtr(ask, &a) && !rc_to_rts(ask, &a));
	for (int i = 0; i < 2 * RESOURCES; i++)
		post_flush(p, p->mr->rkey, IBV_FLUSH_GLOBAL);
	EXPECT(status_of(p, 2 * RESOURCES), 0);
}

static int flush_ends(struct pair *p, int access, uint8_t resources,
		      const struct ibv_mr *mr, uint8_t type)
{
	pair_connect(p, access, resources);
	post_flush(p, mr->rkey, type);
	return status_of(p, 1);
}

void attack_flush(struct rig *rig)
{
	struct pair p = {};

	pair_open(rig, &p);
	sent_again(&p);
	asked_again(&p);
	unanswered(&p);
	no_credit(&p);

	EXPECT(flush_ends(&p, REMOTE, RESOURCES, p.mr, IBV_FLUSH_GLOBAL),
	       IBV_WC_REM_INV_REQ_ERR);
	EXPECT(flush_ends(&p, FLUSHES, RESOURCES, p.s.mr, IBV_FLUSH_GLOBAL),
	       IBV_WC_REM_ACCESS_ERR);
	for (uint8_t type = 0; type < 16; type += 4)
		EXPECT(flush_ends(&p, REMOTE, RESOURCES, p.s.mr, type),
		       IBV_WC_REM_INV_REQ_ERR);
	EXPECT(flush_ends(&p, FLUSHES, 0, p.mr, IBV_FLUSH_GLOBAL),
	       IBV_WC_REM_INV_REQ_ERR);
	pair_close(&p);
}
