// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Requests that are collected, with all they point to
 */
#include "suspend_rig.h"

/* --- requests --- */

static void test_copies(void)
{
	char text[] = "inline data";
	struct ibv_sge sge[2] = { { 0x100, 10, 1 }, { 0x200, 20, 2 } };
	struct ibv_sge in[2] = { { (uintptr_t)text, 6, 0 },
				 { (uintptr_t)text + 7, 4, 0 } };
	struct ibv_send_wr *bad, wr[4] = {
		{ .wr_id = 1,
		  .next = &wr[1],
		  .sg_list = sge,
		  .num_sge = 2,
		  .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		  .imm_data = 77,
		  .send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
		  .wr.rdma = { 0x300, 3 } },
		{ .wr_id = 2,
		  .next = &wr[2],
		  .sg_list = in,
		  .num_sge = 2,
		  .opcode = IBV_WR_SEND_WITH_INV,
		  .invalidate_rkey = 5,
		  .send_flags = IBV_SEND_INLINE | IBV_SEND_FENCE },
		{ .wr_id = 3,
		  .next = &wr[3],
		  .sg_list = sge,
		  .num_sge = 1,
		  .opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
		  .wr.atomic = { 0x400, 6, 7, 8 } },
		{ .wr_id = 4,
		  .opcode = IBV_WR_SEND,
		  .qp_type.xrc.remote_srqn = 99 },
	};
	const struct fake_sent *s;
	struct ibv_qp *qp, *real;
	struct ibv_cq *cq, *real_cq;
	unsigned int n;

	puts("requests are copied with all they point to");
	cq = new_cq(32, &real_cq);
	qp = new_qp(IBV_QPT_RC, cq, &real);
	suspend();
	n = fake_sends(real);
	CHECK(!ibv_post_send(qp, wr, &bad));
	memset(wr, 0x55, sizeof(wr));
	memset(sge, 0x55, sizeof(sge));
	memset(in, 0x55, sizeof(in));
	memset(text, 0x55, sizeof(text));
	CHECK(!send_one(qp, 5, 0));
	CHECK(fake_sends(real) == n);
	resume();
	SENT(real, 1, 2, 3, 4, 5);
	s = fake_sent(real, n);
	CHECK(s->wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM);
	CHECK(s->wr.num_sge == 2 && s->wr.imm_data == 77);
	CHECK(s->wr.send_flags == (IBV_SEND_SIGNALED | IBV_SEND_SOLICITED));
	CHECK(s->wr.wr.rdma.remote_addr == 0x300 && s->wr.wr.rdma.rkey == 3);
	CHECK(s->sge[0].addr == 0x100 && s->sge[0].length == 10);
	CHECK(s->sge[0].lkey == 1 && s->sge[1].addr == 0x200);
	CHECK(s->sge[1].length == 20 && s->sge[1].lkey == 2);
	s = fake_sent(real, n + 1);
	CHECK(s->wr.opcode == IBV_WR_SEND_WITH_INV);
	CHECK(s->wr.send_flags == (IBV_SEND_INLINE | IBV_SEND_FENCE));
	CHECK(s->wr.invalidate_rkey == 5);
	CHECK(s->bytes == 10 && !memcmp(s->data, "inlinedata", 10));
	s = fake_sent(real, n + 2);
	CHECK(s->wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP && s->wr.num_sge == 1);
	CHECK(s->wr.wr.atomic.remote_addr == 0x400);
	CHECK(s->wr.wr.atomic.compare_add == 6 && s->wr.wr.atomic.swap == 7);
	CHECK(s->wr.wr.atomic.rkey == 8);
	s = fake_sent(real, n + 3);
	CHECK(!s->wr.num_sge && s->wr.qp_type.xrc.remote_srqn == 99);
	CHECK(!send_one(qp, 6, 0));
	SENT(real, 1, 2, 3, 4, 5, 6);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
}

static void test_bad(void)
{
	char text[65] = "";
	struct ibv_sge sge[40] = { { 0 } };
	struct ibv_send_wr wr[3], *bad;
	struct ibv_qp *qp, *real;
	struct ibv_cq *cq, *real_cq;
	unsigned int good;

	puts("requests that a provider would refuse");
	for (int what = 0; what < 8; what++) {
		cq = new_cq(32, &real_cq);
		qp = new_qp(IBV_QPT_RC, cq, &real);
		memset(wr, 0, sizeof(wr));
		for (int i = 0; i < 3; i++) {
			wr[i].wr_id = 1 + (uint64_t)i;
			wr[i].opcode = IBV_WR_SEND;
			wr[i].sg_list = sge;
			wr[i].next = i < 2 ? &wr[i + 1] : NULL;
		}
		sge[0] = (struct ibv_sge){ (uintptr_t)text, 64, 0 };
		sge[1] = (struct ibv_sge){ (uintptr_t)text, 1, 0 };
		good = 3;
		switch (what) {
		case 0: /* as many as there may be */
			wr[1].num_sge = (int)cap.max_send_sge;
			break;
		case 1:
			wr[1].num_sge = (int)cap.max_send_sge + 1;
			good = 1;
			break;
		case 2:
			wr[0].num_sge = -1;
			good = 0;
			break;
		case 3:
			wr[1].send_flags = IBV_SEND_INLINE;
			wr[1].num_sge = 1;
			break;
		case 4:
			wr[2].send_flags = IBV_SEND_INLINE;
			wr[2].num_sge = 2; /* one byte too many */
			good = 2;
			break;
		case 5:
			wr[1].send_flags = IBV_SEND_INLINE;
			wr[1].num_sge = 1;
			sge[0].length = 65;
			good = 1;
			break;
		case 6:
			wr[1].opcode = IBV_WR_TSO;
			good = 1;
			break;
		case 7:
			wr[1].opcode = IBV_WR_DRIVER1;
			good = 1;
			break;
		}
		suspend();
		bad = NULL;
		CHECK(ibv_post_send(qp, wr, &bad) == (good < 3 ? EINVAL : 0),
		      "%d", what);
		CHECK(bad == (good < 3 ? &wr[good] : NULL));
		CHECK(!send_one(qp, 9, 0));
		resume();
		if (good == 0)
			SENT(real, 9);
		else if (good == 1)
			SENT(real, 1, 9);
		else if (good == 2)
			SENT(real, 1, 2, 9);
		else
			SENT(real, 1, 2, 3, 9);
		CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
	}
}

static void test_capacity(void)
{
	struct ibv_send_wr wr[20] = { { .wr_id = 0 } }, *bad = NULL;
	struct ibv_qp *qp, *real;
	struct ibv_cq *cq, *real_cq;

	puts("capacity");
	cq = new_cq(32, &real_cq);
	qp = new_qp(IBV_QPT_RC, cq, &real);
	for (int i = 0; i < 20; i++) {
		wr[i].wr_id = (uint64_t)i;
		wr[i].opcode = IBV_WR_SEND;
		wr[i].next = i < 19 ? &wr[i + 1] : NULL;
	}
	suspend();
	CHECK(ibv_post_send(qp, wr, &bad) == ENOMEM);
	CHECK(bad == &wr[cap.max_send_wr]);
	CHECK(send_one(qp, 99, 0) == ENOMEM);
	resume();
	CHECK(real->state == IBV_QPS_RTS);
	SENT(real, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
	CHECK(!send_one(qp, 98, 0));	      /* where a marker may be */
	CHECK(send_one(qp, 99, 0) == ENOMEM); /* now it is the provider's */
	fake_finish(real, UINT_MAX, IBV_WC_SUCCESS);
	suspend();
	CHECK(!send_one(qp, 16, 0)); /* it is drained, so there is room */
	resume();
	CHECK(fake_waiting(real) == 1);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
}

/* --- ibv_wr_*() --- */

static void next_wr(struct ibv_qp_ex *ex)
{
	ex->wr_id++;
	ex->wr_flags = ex->wr_id & 1 ? IBV_SEND_SIGNALED : 0;
}

static void test_batch(void)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_ATOMIC_CMP_AND_SWP,
		IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_BIND_MW,
		IBV_WR_LOCAL_INV,
		IBV_WR_RDMA_READ,
		IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_SEND,
		IBV_WR_SEND_WITH_IMM,
		IBV_WR_SEND_WITH_INV,
	};
	char text[] = "inline data";
	struct ibv_data_buf buf[2] = { { text, 6 }, { text + 7, 4 } };
	struct ibv_sge sge[2] = { { 0x100, 10, 1 }, { 0x200, 20, 2 } };
	struct ibv_mw_bind_info info = { .addr = 0x700, .length = 70 };
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2), *real_mw;
	const struct fake_sent *s[10];
	struct ibv_qp *qp, *real;
	struct ibv_cq *cq, *real_cq;
	struct ibv_qp_ex *ex;
	struct ibv_mr *mr;
	unsigned int n;

	puts("ibv_wr_*()");
	MUST(mw);
	real_mw = fake_newest(FAKE_MW);
	mr = ibv_reg_mr(pd, text, sizeof(text), 0);
	MUST(mr);
	info.mr = mr;
	cq = new_cq(32, &real_cq);
	qp = new_qp_ex(IBV_QPT_RC, cq, EX_OPS, &real);
	ex = ibv_qp_to_qp_ex(qp);
	suspend();
	n = fake_sends(real);
	ibv_wr_start(ex);
	ex->wr_id = 0;
	next_wr(ex);
	ibv_wr_atomic_cmp_swp(ex, 1, 2, 3, 4);
	ibv_wr_set_sge(ex, 5, 6, 7);
	next_wr(ex);
	ibv_wr_atomic_fetch_add(ex, 8, 9, 10);
	ibv_wr_set_sge_list(ex, 2, sge);
	next_wr(ex);
	mw->rkey = 0x11100;
	ibv_wr_bind_mw(ex, mw, 0x11101, &info);
	mw->rkey = 0x11101;
	next_wr(ex);
	ibv_wr_local_inv(ex, 12);
	next_wr(ex);
	ibv_wr_rdma_read(ex, 13, 14);
	next_wr(ex);
	ibv_wr_rdma_write(ex, 15, 16);
	ibv_wr_set_inline_data_list(ex, 2, buf);
	next_wr(ex);
	ibv_wr_rdma_write_imm(ex, 17, 18, 19);
	ibv_wr_set_inline_data(ex, text, 6);
	next_wr(ex);
	ibv_wr_send(ex);
	ibv_wr_set_xrc_srqn(ex, 20);
	next_wr(ex);
	ibv_wr_send_imm(ex, 21);
	next_wr(ex);
	ibv_wr_send_inv(ex, 22);
	memset(text, 0x55, sizeof(text));
	memset(sge, 0x55, sizeof(sge));
	memset(buf, 0x55, sizeof(buf));
	memset(&info, 0x55, sizeof(info));
	CHECK(!ibv_wr_complete(ex));
	CHECK(fake_sends(real) == n);
	resume();
	SENT(real, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
	for (unsigned int i = 0; i < 10; i++) {
		s[i] = fake_sent(real, n + i);
		MUST(s[i]);
		CHECK(s[i]->wr.opcode == opcodes[i], "%u", i);
		CHECK((s[i]->wr.send_flags & IBV_SEND_SIGNALED) ==
		      (i & 1 ? 0 : IBV_SEND_SIGNALED));
	}
	CHECK(s[0]->wr.wr.atomic.rkey == 1);
	CHECK(s[0]->wr.wr.atomic.remote_addr == 2);
	CHECK(s[0]->wr.wr.atomic.compare_add == 3);
	CHECK(s[0]->wr.wr.atomic.swap == 4 && s[0]->wr.num_sge == 1);
	CHECK(s[0]->sge[0].lkey == 5 && s[0]->sge[0].addr == 6);
	CHECK(s[0]->sge[0].length == 7);
	CHECK(s[1]->wr.wr.atomic.rkey == 8);
	CHECK(s[1]->wr.wr.atomic.remote_addr == 9);
	CHECK(s[1]->wr.wr.atomic.compare_add == 10 && s[1]->wr.num_sge == 2);
	CHECK(s[1]->sge[0].addr == 0x100 && s[1]->sge[1].lkey == 2);
	CHECK(s[2]->wr.bind_mw.mw == real_mw && s[2]->mw_rkey == 0x11100);
	CHECK(s[2]->wr.bind_mw.rkey == 0x11101);
	CHECK(s[2]->wr.bind_mw.bind_info.mr == fake_newest(FAKE_MR));
	CHECK(s[2]->wr.bind_mw.bind_info.addr == 0x700);
	CHECK(s[2]->wr.bind_mw.bind_info.length == 70);
	CHECK(s[3]->wr.invalidate_rkey == 12 && !s[3]->wr.num_sge);
	CHECK(s[4]->wr.wr.rdma.rkey == 13);
	CHECK(s[4]->wr.wr.rdma.remote_addr == 14);
	CHECK(s[5]->wr.wr.rdma.rkey == 15);
	CHECK(s[5]->wr.wr.rdma.remote_addr == 16);
	CHECK(s[5]->wr.send_flags & IBV_SEND_INLINE);
	CHECK(s[5]->bytes == 10 && !memcmp(s[5]->data, "inlinedata", 10));
	CHECK(s[6]->wr.wr.rdma.rkey == 17 && s[6]->wr.imm_data == 19);
	CHECK(s[6]->wr.wr.rdma.remote_addr == 18);
	CHECK(s[6]->bytes == 6 && !memcmp(s[6]->data, "inline", 6));
	CHECK(s[7]->wr.qp_type.xrc.remote_srqn == 20);
	CHECK(s[8]->wr.imm_data == 21 && s[9]->wr.invalidate_rkey == 22);

	/* the calls are the provider's again */
	ibv_wr_start(ex);
	SAW("wr_start", real);
	ex->wr_id = 11;
	ex->wr_flags = 0;
	ibv_wr_send(ex);
	SAW("wr_send", real, 11, 0, 0);
	CHECK(!ibv_wr_complete(ex));
	SENT(real, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
	CHECK(!ibv_dealloc_mw(mw) && !ibv_dereg_mr(mr));
}

static void test_bad_batch(void)
{
	char text[65] = "";
	struct ibv_data_buf buf[2] = { { text, 64 }, { text, 1 } };
	struct ibv_sge sge[33] = { { 0 } };
	struct ibv_qp *qp, *real;
	struct ibv_cq *cq, *real_cq;
	struct ibv_qp_ex *ex;

	puts("batches that end otherwise");
	cq = new_cq(32, &real_cq);
	qp = new_qp_ex(IBV_QPT_RC, cq, EX_OPS, &real);
	ex = ibv_qp_to_qp_ex(qp);
	suspend();
	for (int what = 0; what < 6; what++) {
		ibv_wr_start(ex);
		ex->wr_id = 100;
		ibv_wr_send(ex);
		ibv_wr_set_inline_data(ex, text, 64); /* just fits */
		ex->wr_id++;
		ibv_wr_send(ex);
		if (what == 0)
			ibv_wr_set_inline_data(ex, text, 65);
		if (what == 1)
			ibv_wr_set_inline_data_list(ex, 2, buf);
		if (what == 2)
			ibv_wr_set_sge_list(ex, cap.max_send_sge + 1, sge);
		for (unsigned int i = 2; what == 3 && i <= cap.max_send_wr; i++)
			ibv_wr_send(ex);
		ex->wr_id++;
		ibv_wr_send(ex);
		if (what == 4)
			ibv_wr_abort(ex);
		else
			CHECK(ibv_wr_complete(ex) == (what == 3	  ? ENOMEM
						      : what == 5 ? 0
								  : EINVAL),
			      "%d", what);
		if (what != 5)
			CHECK(!send_one(qp, (uint64_t)what, 0));
	}
	resume();
	SENT(real, 0, 1, 2, 3, 4, 100, 101, 102);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
}

static void test_keys(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_BIND_MW };
	const struct fake_sent *s;
	struct ibv_qp *qp, *real;
	struct ibv_cq *cq, *real_cq;
	unsigned int n;

	puts("a window that is bound twice");
	MUST(mw);
	cq = new_cq(32, &real_cq);
	qp = new_qp(IBV_QPT_RC, cq, &real);
	suspend();
	n = fake_sends(real);
	for (uint32_t i = 0; i < 2; i++) {
		mw->rkey = 0x500 + i;
		wr.wr_id = i;
		wr.bind_mw.mw = mw;
		wr.bind_mw.rkey = 0x501 + i;
		CHECK(!ibv_post_send(qp, &wr, &bad));
	}
	mw->rkey = 0x502;
	resume();
	for (uint32_t i = 0; i < 2; i++) {
		s = fake_sent(real, n + i);
		MUST(s);
		CHECK(s->wr.bind_mw.mw == fake_newest(FAKE_MW));
		CHECK(s->mw_rkey == 0x500 + i, "%#x", s->mw_rkey);
		CHECK(s->wr.bind_mw.rkey == 0x501 + i);
	}
	CHECK(mw->rkey == 0x502);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
	CHECK(!ibv_dealloc_mw(mw));
}

/* what it would have said of a request when it was posted */
static void test_late_refusal(void)
{
	struct ibv_qp *qp, *real;
	struct ibv_cq *cq, *real_cq;
	struct ibv_wc wc[4];

	puts("a request that is refused when it is too late");
	cq = new_cq(32, &real_cq);
	qp = new_qp(IBV_QPT_RC, cq, &real);
	suspend();
	for (unsigned int i = 1; i <= 3; i++)
		CHECK(!send_one(qp, i, 0));
	fake_refuse(real, 0, EINVAL);
	resume();
	/* in its place is what the provider refuses later */
	SENT(real, 1, 2, 3);
	CHECK(fake_sent(real, fake_sends(real) - 3)->wr.send_flags ==
	      IBV_SEND_SIGNALED);
	fake_finish(real, 1, IBV_WC_LOC_PROT_ERR);
	fake_finish(real, 2, IBV_WC_WR_FLUSH_ERR);
	MUST(ibv_poll_cq(cq, 1, wc) == 1);
	CHECK(wc[0].wr_id == 1 && wc[0].status == IBV_WC_LOC_PROT_ERR);
	POLLED(cq, 4, 2, 3);
	check_direct(cq, real_cq);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
}

int main(void)
{
	rig_open();
	test_copies();
	test_bad();
	test_capacity();
	test_batch();
	test_bad_batch();
	test_keys();
	test_late_refusal();
	return rig_close();
}
