// SPDX-License-Identifier: GPL-2.0
/*
 * TRACK and what the device writes in ways that hardly anybody uses: ATOMIC WRITE, and
 * what comes to pieces of memory of different MRs, of a QP of UD, too.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "../connect.h"
#include "fuzz_dirty.h"

#define QKEY 0x11
#define GRH 40
#define HALF (PAGES / 2)

/* beside the pair's own */
struct ways {
	struct pair *p;
	struct ibv_mr *mr;	  /* the second half of what p->mr has */
	struct ibv_qp_ex *ask;	  /* its peer is p->b.qp[1] */
	struct ibv_qp *from, *to; /* UD */
	struct ibv_ah *ah;
};

static struct ibv_qp_ex *make_ask(const struct side *s)
{
	struct ibv_qp_init_attr_ex init = {
		.pd = s->pd,
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.cap = { DEPTH, DEPTH, 2, 2, 0 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE,
	};
	struct ibv_qp *qp;

	MUST(qp = ibv_create_qp_ex(s->ctx, &init));
	return ibv_qp_to_qp_ex(qp);
}

static void change_ud(struct ibv_qp *qp, enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr a = { .qp_state = state,
				 .port_num = 1,
				 .qkey = QKEY };

	MUST(!ibv_modify_qp(qp, &a, mask | IBV_QP_STATE));
}

static struct ibv_qp *make_ud(const struct side *s)
{
	struct ibv_qp_init_attr init = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.cap = { DEPTH, DEPTH, 2, 2, 0 },
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
	};
	struct ibv_qp *qp;

	MUST(qp = ibv_create_qp(s->pd, &init));
	change_ud(qp, IBV_QPS_INIT,
		  IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	change_ud(qp, IBV_QPS_RTR, 0);
	change_ud(qp, IBV_QPS_RTS, IBV_QP_SQ_PSN);
	return qp;
}

static void ways_open(struct pair *p, struct ways *w)
{
	struct ibv_ah_attr to = { .is_global = 1,
				  .port_num = 1,
				  .grh = { .sgid_index = 1,
					   .dgid = p->rig->gid } };

	w->p = p;
	take_memory(p, SHARED);
	MUST(w->mr = ibv_reg_mr(p->b.pd, p->mem + HALF * PAGE, HALF * PAGE,
				ALL_ACCESS));
	w->ask = make_ask(&p->a);
	qp_connect(p->rig, &w->ask->qp_base, p->b.qp[1]->qp_num, 0, 0);
	qp_connect(p->rig, p->b.qp[1], w->ask->qp_base.qp_num, 0, 0);
	w->from = make_ud(&p->a);
	w->to = make_ud(&p->b);
	MUST(w->ah = ibv_create_ah(p->a.pd, &to));
}

static void ways_close(struct ways *w)
{
	MUST(!ibv_destroy_ah(w->ah));
	MUST(!ibv_destroy_qp(w->from) && !ibv_destroy_qp(w->to));
	qp_reset(w->p->b.qp[1]);
	MUST(!ibv_destroy_qp(&w->ask->qp_base));
	MUST(!ibv_dereg_mr(w->mr) && !ibv_dereg_mr(w->p->mr));
	munmap(w->p->mem, PAGES * PAGE);
}

static void write_atomic(struct ways *w, uint64_t offset)
{
	ibv_wr_start(w->ask);
	w->ask->wr_flags = 0;
	ibv_wr_atomic_write(w->ask, w->p->mr->rkey,
			    (uintptr_t)w->p->mem + offset, "8 bytes.");
	MUST(!ibv_wr_complete(w->ask));
	side_wait(&w->p->a, 1);
}

static void post_receive(struct ibv_qp *qp, struct ibv_sge *sge)
{
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = 2 }, *bad;

	MUST(!ibv_post_recv(qp, &wr, &bad));
}

/* 16 bytes, into two pieces */
static void receive(struct ways *w, struct ibv_sge *sge)
{
	struct pair *p = w->p;

	post_receive(p->b.qp[0], sge);
	post(&p->a, IBV_WR_SEND, of(p->a.mr, 0, 16), NULL, 0);
	side_wait(&p->b, 1);
}

static void receive_datagram(struct ways *w, struct ibv_sge *sge)
{
	struct pair *p = w->p;
	struct ibv_sge data = of(p->a.mr, 0, 8);
	struct ibv_send_wr wr = { .sg_list = &data,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND };
	struct ibv_send_wr *bad;

	wr.wr.ud.ah = w->ah;
	wr.wr.ud.remote_qpn = w->to->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	post_receive(w->to, sge);
	MUST(!ibv_post_send(w->from, &wr, &bad));
	side_wait(&p->a, 1);
	side_wait(&p->b, 1);
}

static void read_into(struct ways *w, struct ibv_sge *sge)
{
	struct pair *p = w->p;
	struct ibv_send_wr wr = { .sg_list = sge,
				  .num_sge = 2,
				  .opcode = IBV_WR_RDMA_READ };
	struct ibv_send_wr *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)p->a.mr->addr;
	wr.wr.rdma.rkey = p->a.mr->rkey;
	MUST(!ibv_post_send(p->b.qp[0], &wr, &bad));
	side_wait(&p->b, 1);
}

/* this page of all, by the first MR, and that of the second one */
static void two(const struct ways *w, struct ibv_sge *sge, char *written,
		size_t first, size_t second)
{
	sge[0] = of(w->p->mr, first * PAGE, 8);
	sge[1] = of(w->mr, second * PAGE, 8);
	written[first] = written[HALF + second] = 1;
}

static size_t use(struct ways *w, char *written)
{
	struct ibv_sge sge[2];

	memset(written, 0, PAGES);
	write_atomic(w, 6 * PAGE - 8);
	written[5] = 1;
	two(w, sge, written, 10, 20);
	receive(w, sge);
	two(w, sge, written, 30, 40);
	/* the header of the network is before the data, and across pages */
	sge[0] = of(w->p->mr, 31 * PAGE - GRH / 2, GRH);
	written[31] = 1;
	receive_datagram(w, sge);
	two(w, sge, written, 50, 60);
	read_into(w, sge);
	return 1 + 2 + 3 + 2;
}

void dirty_ways(struct pair *p)
{
	char written[PAGES];
	struct ways w;
	size_t n;

	ways_open(p, &w);
	track(p, false);
	for (int i = 0; i < 3; i++) {
		clear_soft_dirty();
		n = use(&w, written);
		EXPECT((int)soft_dirty_pages(p->mem), 0);
		EXPECT((int)track(p, false), (int)n);
		expect_marked(p, written);
		EXPECT((int)soft_dirty_pages(p->mem), (int)n);
	}
	ways_close(&w);
}
