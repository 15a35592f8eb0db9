// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Work requests and completions
 */
#include "app.h"

enum {
	CHUNK = 8,
	MANY = 3 * CHUNK
};

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq, *real_cq;

static struct ibv_qp *new_qp(enum ibv_qp_type type, struct ibv_qp **real)
{
	struct ibv_qp_init_attr attr = { .send_cq = cq,
					 .recv_cq = cq,
					 .qp_type = type };
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);

	MUST(qp);
	*real = fake_newest(FAKE_QP);
	return qp;
}

static struct ibv_ah *new_ah(struct ibv_ah **real)
{
	struct ibv_ah_attr attr = { .dlid = 1 };
	struct ibv_ah *ah = ibv_create_ah(pd, &attr);

	MUST(ah);
	*real = fake_newest(FAKE_AH);
	return ah;
}

/* a chain of so many sends, to two addresses by turns if there are some */
static void chain(struct ibv_send_wr *wr, unsigned int n, struct ibv_ah *ah[2],
		  struct ibv_sge *sge)
{
	memset(wr, 0, n * sizeof(*wr));
	for (unsigned int i = 0; i < n; i++) {
		wr[i].wr_id = 100 + i;
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
		wr[i].opcode = IBV_WR_SEND_WITH_IMM;
		wr[i].send_flags = IBV_SEND_SIGNALED | (i & 1);
		wr[i].imm_data = 7 * i;
		wr[i].sg_list = sge;
		wr[i].num_sge = 1;
		if (ah) {
			wr[i].wr.ud.ah = ah[i & 1];
			wr[i].wr.ud.remote_qpn = 500 + i;
			wr[i].wr.ud.remote_qkey = 600 + i;
		}
	}
}

static void check_sent(struct ibv_qp *real, const struct ibv_send_wr *wr,
		       unsigned int n, struct ibv_ah *real_ah[2])
{
	struct ibv_send_wr want, got;

	CHECK(fake_nposted == n, "%u posted, not %u", fake_nposted, n);
	for (unsigned int i = 0; i < n; i++) {
		want = wr[i];
		got = fake_posted[i].send;
		if (real_ah)
			want.wr.ud.ah = real_ah[i & 1];
		want.next = got.next = NULL;
		CHECK(fake_posted[i].queue == real);
		CHECK(!memcmp(&want, &got, sizeof(want)), "request %u", i);
	}
}

static void test_send(void)
{
	struct ibv_send_wr wr[MANY], before[MANY], *bad = NULL;
	struct ibv_sge sge = { .length = 3 };
	struct ibv_qp *qp, *real;

	puts("sends");
	qp = new_qp(IBV_QPT_RC, &real);
	chain(wr, MANY, NULL, &sge);
	memcpy(before, wr, sizeof(wr));
	fake_forget(-1, true);
	CHECK(!ibv_post_send(qp, wr, &bad));
	check_sent(real, wr, MANY, NULL);
	CHECK(fake_posts == 1);
	CHECK(!memcmp(wr, before, sizeof(wr)));
	SAW("post_send", real, wr, &bad);

	for (int i = 0; i < MANY; i++) {
		bad = NULL;
		fake_forget(i, true);
		CHECK(ibv_post_send(qp, wr, &bad) == ENOMEM);
		CHECK(bad == &wr[i]);
	}
	CHECK(!ibv_destroy_qp(qp));
}

static void test_ud(void)
{
	struct ibv_send_wr wr[MANY], before[MANY], *bad;
	struct ibv_sge sge = { .length = 3 };
	struct ibv_ah *ah[2], *real_ah[2];
	struct ibv_qp *qp, *real;

	puts("datagrams");
	qp = new_qp(IBV_QPT_UD, &real);
	for (int i = 0; i < 2; i++)
		ah[i] = new_ah(&real_ah[i]);

	for (unsigned int n = 1; n <= MANY; n++) {
		chain(wr, n, ah, &sge);
		memcpy(before, wr, sizeof(wr));
		fake_forget(-1, true);
		bad = NULL;
		CHECK(!ibv_post_send(qp, wr, &bad));
		check_sent(real, wr, n, real_ah);
		CHECK(!memcmp(wr, before, n * sizeof(*wr)));
		CHECK(!bad);
	}

	/* the bad one is the application's, those before it are posted */
	for (int i = 0; i < MANY; i++) {
		bad = NULL;
		fake_forget(i, true);
		CHECK(ibv_post_send(qp, wr, &bad) == ENOMEM);
		CHECK(bad == &wr[i], "%d", i);
		check_sent(real, wr, (unsigned int)i, real_ah);
		CHECK(!memcmp(wr, before, sizeof(wr)));
	}
	for (int i = 0; i < MANY; i++) {
		bad = wr;
		fake_forget(i, false);
		CHECK(ibv_post_send(qp, wr, &bad) == ENOMEM);
		CHECK(!bad, "%d", i);
		CHECK(fake_nposted == (unsigned int)i);
	}

	/* an empty chain is the provider's business */
	fake_forget(-1, true);
	CHECK(!ibv_post_send(qp, NULL, &bad));
	CHECK(fake_posts == 1 && fake_nposted == 0);

	for (int i = 0; i < 2; i++)
		CHECK(!ibv_destroy_ah(ah[i]));
	CHECK(!ibv_destroy_qp(qp));
}

static void test_recv(void)
{
	struct ibv_recv_wr wr[MANY] = { 0 }, before[MANY], *bad;
	struct ibv_srq_init_attr attr = { .attr.max_wr = 1 };
	struct ibv_ops_wr op[3] = { 0 }, *bad_op;
	struct ibv_sge sge = { .length = 3 };
	struct ibv_srq *srq, *real_srq;
	struct ibv_qp *qp, *real;

	puts("receives");
	qp = new_qp(IBV_QPT_UD, &real);
	srq = ibv_create_srq(pd, &attr);
	MUST(srq);
	real_srq = fake_newest(FAKE_SRQ);
	for (int i = 0; i < MANY; i++) {
		wr[i].wr_id = 300 + (unsigned int)i;
		wr[i].next = i + 1 < MANY ? &wr[i + 1] : NULL;
		wr[i].sg_list = &sge;
		wr[i].num_sge = 1;
	}
	memcpy(before, wr, sizeof(wr));
	for (int s = 0; s < 2; s++) {
		fake_forget(-1, true);
		CHECK(s ? !ibv_post_srq_recv(srq, wr, &bad)
			: !ibv_post_recv(qp, wr, &bad));
		CHECK(fake_nposted == MANY);
		for (int i = 0; i < MANY; i++) {
			CHECK(fake_posted[i].queue ==
			      (s ? (void *)real_srq : real));
			CHECK(!memcmp(&fake_posted[i].recv, &wr[i],
				      sizeof(wr[i])));
		}
		for (int i = 0; i < MANY; i++) {
			bad = NULL;
			fake_forget(i, true);
			CHECK(s ? ibv_post_srq_recv(srq, wr, &bad)
				: ibv_post_recv(qp, wr, &bad));
			CHECK(bad == &wr[i]);
		}
	}
	CHECK(!memcmp(wr, before, sizeof(wr)));

	puts("SRQ operations");
	for (int i = 0; i < 3; i++) {
		op[i].wr_id = 400 + (unsigned int)i;
		op[i].next = i < 2 ? &op[i + 1] : NULL;
		op[i].opcode = IBV_WR_TAG_ADD;
	}
	fake_forget(-1, true);
	CHECK(!ibv_post_srq_ops(srq, op, &bad_op));
	CHECK(fake_nposted == 3 && fake_posted[2].op.wr_id == 402);
	CHECK(fake_posted[0].queue == real_srq);
	fake_forget(2, true);
	CHECK(ibv_post_srq_ops(srq, op, &bad_op) == ENOMEM);
	CHECK(bad_op == &op[2]);
	CHECK(!ibv_destroy_srq(srq));
	CHECK(!ibv_destroy_qp(qp));
}

/* --- memory windows --- */

static char memory[32];

/* member by member: a copy need not have the padding */
static void check_info(const struct ibv_mw_bind_info *a,
		       const struct ibv_mw_bind_info *b)
{
	CHECK(a->mr == b->mr && a->addr == b->addr && a->length == b->length);
	CHECK(a->mw_access_flags == b->mw_access_flags);
}

static void test_bind(void)
{
	struct ibv_mw_bind bind = { .wr_id = 5,
				    .send_flags = IBV_SEND_SIGNALED };
	struct ibv_mw_bind before;
	struct ibv_mr *mr, *real_mr;
	struct ibv_mw *mw, *real_mw;
	struct ibv_qp *qp, *real;
	uint32_t rkey;

	puts("windows of type 1");
	qp = new_qp(IBV_QPT_RC, &real);
	mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_MW_BIND);
	real_mr = fake_newest(FAKE_MR);
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	real_mw = fake_newest(FAKE_MW);
	MUST(mr && mw);
	bind.bind_info = (struct ibv_mw_bind_info){
		.mr = mr, .addr = 10, .length = 20, .mw_access_flags = 2
	};
	before = bind;
	rkey = mw->rkey;
	CHECK(!ibv_bind_mw(qp, mw, &bind));
	SAW("bind_mw", real, real_mw);
	CHECK(!memcmp(&bind, &before, sizeof(bind)));
	before.bind_info.mr = real_mr;
	CHECK(fake_last.bind.wr_id == 5);
	CHECK(fake_last.bind.send_flags == IBV_SEND_SIGNALED);
	check_info(&fake_last.bind.bind_info, &before.bind_info);
	CHECK(mw->rkey == ibv_inc_rkey(rkey) && mw->rkey == real_mw->rkey);
	fake_fail("bind_mw", ENOMEM);
	CHECK(ibv_bind_mw(qp, mw, &bind) == ENOMEM);
	CHECK(mw->rkey == ibv_inc_rkey(rkey));

	/* to nothing */
	memset(&bind, 0, sizeof(bind));
	CHECK(!ibv_bind_mw(qp, mw, &bind));
	CHECK(!fake_last.bind.bind_info.mr);
	CHECK(mw->rkey == real_mw->rkey);
	CHECK(!ibv_dealloc_mw(mw));
	CHECK(!ibv_dereg_mr(mr));
	CHECK(!ibv_destroy_qp(qp));
}

/* a bind at this place of a chain */
static void check_bind(struct ibv_qp *qp, struct ibv_qp *real, int at, int n,
		       struct ibv_mw *mw, struct ibv_mw *real_mw,
		       struct ibv_mr *mr, struct ibv_mr *real_mr)
{
	struct ibv_send_wr wr[MANY], before[MANY], *bad, *got, *b = &wr[at];
	struct ibv_sge sge = { .length = 3 };

	chain(wr, (unsigned int)n, NULL, &sge);
	b->opcode = IBV_WR_BIND_MW;
	b->bind_mw.mw = mw;
	b->bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	b->bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = mr, .addr = 11, .length = 22, .mw_access_flags = 4
	};
	memcpy(before, wr, sizeof(*wr) * (size_t)n);
	fake_forget(-1, true);
	bad = NULL;
	CHECK(!ibv_post_send(qp, wr, &bad));
	CHECK(!bad && !memcmp(wr, before, sizeof(*wr) * (size_t)n));
	CHECK(fake_nposted == (unsigned int)n);
	CHECK(fake_last.mw_rkey == mw->rkey);
	for (int i = 0; i < n; i++) {
		got = &fake_posted[i].send;
		CHECK(got->wr_id == wr[i].wr_id && got->opcode == wr[i].opcode);
		CHECK(got->imm_data == wr[i].imm_data);
		CHECK(got->sg_list == &sge && fake_posted[i].queue == real);
	}
	got = &fake_posted[at].send;
	CHECK(got->bind_mw.mw == real_mw);
	CHECK(got->bind_mw.rkey == b->bind_mw.rkey);
	CHECK(got->bind_mw.bind_info.mr == (mr ? real_mr : NULL));
	CHECK(got->bind_mw.bind_info.addr == 11);
	CHECK(got->bind_mw.bind_info.length == 22);
	CHECK(got->bind_mw.bind_info.mw_access_flags == 4);
	for (int i = 0; i < n; i++) {
		fake_forget(i, true);
		bad = NULL;
		CHECK(ibv_post_send(qp, wr, &bad) == ENOMEM);
		CHECK(bad == &wr[i], "%d", i);
	}
	/* the application does so, once the bind is complete */
	mw->rkey = b->bind_mw.rkey;
}

static void test_bind_2(void)
{
	struct ibv_qp *qp[3], *real[3];
	struct ibv_mr *mr, *real_mr;
	struct ibv_mw *mw, *real_mw, *second;
	struct ibv_send_wr wr[MANY], *bad;
	struct ibv_sge sge = { 0 };

	puts("windows of type 2, QPs older and newer than them");
	qp[0] = new_qp(IBV_QPT_RC, &real[0]);
	qp[1] = new_qp(IBV_QPT_UC, &real[1]);
	mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_MW_BIND);
	real_mr = fake_newest(FAKE_MR);
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	real_mw = fake_newest(FAKE_MW);
	MUST(mr && mw);
	qp[2] = new_qp(IBV_QPT_RC, &real[2]);

	for (int q = 0; q < 3; q++) {
		check_bind(qp[q], real[q], 0, 1, mw, real_mw, mr, real_mr);
		check_bind(qp[q], real[q], 0, 1, mw, real_mw, NULL, NULL);
		check_bind(qp[q], real[q], CHUNK - 1, CHUNK, mw, real_mw, mr,
			   real_mr);
		check_bind(qp[q], real[q], CHUNK, CHUNK + 1, mw, real_mw, mr,
			   real_mr);
		check_bind(qp[q], real[q], MANY - 1, MANY, mw, real_mw, mr,
			   real_mr);
	}

	puts("two windows, then one, then none");
	second = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	MUST(second);
	CHECK(!ibv_dealloc_mw(second));
	fake_fail("dealloc_mw", EBUSY);
	CHECK(ibv_dealloc_mw(mw) == EBUSY);
	check_bind(qp[0], real[0], 1, 2, mw, real_mw, mr, real_mr);
	CHECK(!ibv_destroy_qp(qp[1]));
	check_bind(qp[2], real[2], 1, 2, mw, real_mw, mr, real_mr);
	CHECK(!ibv_dealloc_mw(mw));
	chain(wr, MANY, NULL, &sge);
	for (int q = 0; q < 3; q += 2) {
		fake_forget(-1, true);
		CHECK(!ibv_post_send(qp[q], wr, &bad));
		check_sent(real[q], wr, MANY, NULL);
		CHECK(fake_posts == 1, "the fast way");
	}

	puts("and one again");
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	real_mw = fake_newest(FAKE_MW);
	MUST(mw);
	check_bind(qp[0], real[0], 1, 2, mw, real_mw, mr, real_mr);
	CHECK(!ibv_dealloc_mw(mw));
	CHECK(!ibv_dereg_mr(mr));
	CHECK(!ibv_destroy_qp(qp[0]));
	CHECK(!ibv_destroy_qp(qp[2]));
}

/* --- ibv_wr_*() --- */

/* each request has an id and flags of its own */
static struct ibv_qp_ex *next(struct ibv_qp_ex *ex)
{
	ex->wr_id++;
	ex->wr_flags ^= IBV_SEND_SIGNALED | IBV_SEND_FENCE;
	return ex;
}

#define SAW_WR(call, ...) SAW(call, real, ex->wr_id, ex->wr_flags, __VA_ARGS__)

static void test_wr(void)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_UD,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = (IBV_QP_EX_WITH_ATOMIC_WRITE << 1) - 1,
	};
	struct ibv_mw_bind_info info = { .addr = 1, .length = 2 }, before;
	struct ibv_data_buf data[2];
	struct ibv_sge sge[3];
	struct ibv_mw *mw, *real_mw;
	struct ibv_mr *mr, *real_mr;
	struct ibv_ah *ah, *real_ah;
	struct ibv_qp_ex *ex;
	struct ibv_qp *qp, *real;

	puts("requests call by call");
	qp = ibv_create_qp_ex(ctx, &attr);
	MUST(qp);
	real = fake_newest(FAKE_QP);
	ex = ibv_qp_to_qp_ex(qp);
	MUST(ex);
	ah = new_ah(&real_ah);
	mr = ibv_reg_mr(pd, memory, sizeof(memory), 0);
	real_mr = fake_newest(FAKE_MR);
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	real_mw = fake_newest(FAKE_MW);
	MUST(mr && mw);
	ex->wr_id = 1ULL << 40;
	ex->wr_flags = IBV_SEND_SOLICITED;

	ibv_wr_start(ex);
	SAW("wr_start", real);
	ibv_wr_atomic_cmp_swp(next(ex), 1, 2, 3, 4);
	SAW_WR("wr_atomic_cmp_swp", 1, 2, 3, 4);
	ibv_wr_atomic_fetch_add(next(ex), 5, 6, 7);
	SAW_WR("wr_atomic_fetch_add", 5, 6, 7);
	ibv_wr_local_inv(next(ex), 8);
	SAW_WR("wr_local_inv", 8);
	ibv_wr_rdma_read(next(ex), 9, 10);
	SAW_WR("wr_rdma_read", 9, 10);
	ibv_wr_rdma_write(next(ex), 11, 12);
	SAW_WR("wr_rdma_write", 11, 12);
	ibv_wr_rdma_write_imm(next(ex), 13, 14, 15);
	SAW_WR("wr_rdma_write_imm", 13, 14, 15);
	ibv_wr_send(next(ex));
	SAW_WR("wr_send", 0);
	ibv_wr_send_imm(next(ex), 16);
	SAW_WR("wr_send_imm", 16);
	ibv_wr_send_inv(next(ex), 17);
	SAW_WR("wr_send_inv", 17);
	ibv_wr_send_tso(next(ex), memory, 18, 19);
	SAW_WR("wr_send_tso", memory, 18, 19);
	ibv_wr_atomic_write(next(ex), 20, 21, memory);
	SAW_WR("wr_atomic_write", 20, 21, memory);
	ibv_wr_flush(next(ex), 22, 23, 24, 25, 26);
	SAW_WR("wr_flush", 22, 23, 24, 25, 26);

	info.mr = mr;
	info.mw_access_flags = 3;
	before = info;
	mw->rkey = 0xabcd00;
	ibv_wr_bind_mw(next(ex), mw, 0xabcd01, &info);
	SAW_WR("wr_bind_mw", real_mw, 0xabcd01);
	CHECK(fake_last.mw_rkey == 0xabcd00);
	CHECK(!memcmp(&info, &before, sizeof(info)));
	before.mr = real_mr;
	check_info(&fake_last.info, &before);

	ibv_wr_set_ud_addr(ex, ah, 27, 28);
	SAW("wr_set_ud_addr", real, real_ah, 27, 28);
	ibv_wr_set_xrc_srqn(ex, 29);
	SAW("wr_set_xrc_srqn", real, 29);
	ibv_wr_set_inline_data(ex, memory, 30);
	SAW("wr_set_inline_data", real, memory, 30);
	ibv_wr_set_inline_data_list(ex, 2, data);
	SAW("wr_set_inline_data_list", real, 2, data);
	ibv_wr_set_sge(ex, 31, 32, 33);
	SAW("wr_set_sge", real, 31, 32, 33);
	ibv_wr_set_sge_list(ex, 3, sge);
	SAW("wr_set_sge_list", real, 3, sge);
	CHECK(!ibv_wr_complete(ex));
	SAW("wr_complete", real);
	fake_fail("wr_complete", ENOMEM);
	CHECK(ibv_wr_complete(ex) == ENOMEM);
	ibv_wr_abort(ex);
	SAW("wr_abort", real);

	CHECK(!ibv_dealloc_mw(mw));
	CHECK(!ibv_dereg_mr(mr));
	CHECK(!ibv_destroy_ah(ah));
	CHECK(!ibv_destroy_qp(qp));
}

/* --- completions --- */

static void fill_wc(struct ibv_wc *wc, int salt)
{
	memset(wc, 0, sizeof(*wc));
	wc->wr_id = 1000ULL + (unsigned int)salt;
	wc->status = salt & 1 ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS;
	wc->opcode = IBV_WC_RECV;
	wc->vendor_err = 11 + (unsigned int)salt;
	wc->byte_len = 22 + (unsigned int)salt;
	wc->imm_data = 33 + (unsigned int)salt;
	wc->qp_num = 44 + (unsigned int)salt;
	wc->src_qp = 55 + (unsigned int)salt;
	wc->wc_flags = IBV_WC_GRH;
	wc->slid = 66;
	wc->sl = 7;
	wc->dlid_path_bits = 8;
}

static void test_poll(void)
{
	struct ibv_wc wc[4], got[4];

	puts("completions");
	CHECK(!ibv_poll_cq(cq, 4, got));
	SAW("poll_cq", real_cq, 4, got);
	for (int i = 0; i < 4; i++) {
		fill_wc(&wc[i], i);
		fake_complete(real_cq, &wc[i]);
	}
	CHECK(ibv_poll_cq(cq, 3, got) == 3);
	CHECK(ibv_poll_cq(cq, 3, got + 3) == 1);
	CHECK(!memcmp(wc, got, sizeof(wc)));
	fake_fail("poll_cq", EIO);
	CHECK(ibv_poll_cq(cq, 1, got) == -1);
}

static void check_wc(struct ibv_cq_ex *ex, int salt)
{
	struct ibv_wc_tm_info tm;
	struct ibv_wc wc;

	fill_wc(&wc, salt);
	CHECK(ex->wr_id == wc.wr_id && ex->status == wc.status);
	CHECK(ibv_wc_read_opcode(ex) == wc.opcode);
	CHECK(ibv_wc_read_vendor_err(ex) == wc.vendor_err);
	CHECK(ibv_wc_read_byte_len(ex) == wc.byte_len);
	CHECK(ibv_wc_read_imm_data(ex) == wc.imm_data);
	CHECK(ibv_wc_read_invalidated_rkey(ex) == wc.imm_data);
	CHECK(ibv_wc_read_qp_num(ex) == wc.qp_num);
	CHECK(ibv_wc_read_src_qp(ex) == wc.src_qp);
	CHECK(ibv_wc_read_wc_flags(ex) == wc.wc_flags);
	CHECK(ibv_wc_read_slid(ex) == wc.slid);
	CHECK(ibv_wc_read_sl(ex) == wc.sl);
	CHECK(ibv_wc_read_dlid_path_bits(ex) == wc.dlid_path_bits);
	CHECK(ibv_wc_read_completion_ts(ex) == (wc.wr_id << 32 | 1));
	CHECK(ibv_wc_read_cvlan(ex) == wc.wr_id + 2);
	CHECK(ibv_wc_read_flow_tag(ex) == wc.wr_id + 3);
	CHECK(ibv_wc_read_completion_wallclock_ns(ex) == (wc.wr_id << 32 | 4));
	ibv_wc_read_tm_info(ex, &tm);
	CHECK(tm.tag == wc.wr_id + 5 && tm.priv == wc.wr_id + 6);
}

static void test_poll_ex(void)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 4, .wc_flags = IBV_CREATE_CQ_SUP_WC_FLAGS
	};
	struct ibv_poll_cq_attr poll = { 0 };
	struct ibv_cq_ex *ex;
	struct ibv_cq *real;
	struct ibv_wc wc;

	puts("extended completions");
	ex = ibv_create_cq_ex(ctx, &attr);
	MUST(ex);
	real = fake_newest(FAKE_CQ);
	CHECK(ibv_start_poll(ex, &poll) == ENOENT);
	SAW("start_poll", real, &poll);
	for (int i = 0; i < 3; i++) {
		fill_wc(&wc, i);
		fake_complete(real, &wc);
	}
	CHECK(!ibv_start_poll(ex, &poll));
	check_wc(ex, 0);
	CHECK(!ibv_next_poll(ex));
	SAW("next_poll", real);
	check_wc(ex, 1);
	ibv_end_poll(ex);
	SAW("end_poll", real);
	CHECK(!ibv_start_poll(ex, &poll));
	check_wc(ex, 2);
	CHECK(ibv_next_poll(ex) == ENOENT);
	ibv_end_poll(ex);

	/* plain polling of the same */
	fake_complete(real, &wc);
	memset(&wc, 0, sizeof(wc));
	CHECK(ibv_poll_cq(ibv_cq_ex_to_cq(ex), 1, &wc) == 1);
	CHECK(wc.wr_id == 1002);
	CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(ex)));
}

int main(void)
{
	ctx = app_open(0);
	pd = ibv_alloc_pd(ctx);
	MUST(pd);
	cq = ibv_create_cq(ctx, 8, NULL, NULL, 0);
	MUST(cq);
	real_cq = fake_newest(FAKE_CQ);

	test_send();
	test_ud();
	test_recv();
	test_bind();
	test_bind_2();
	test_wr();
	test_poll();
	test_poll_ex();

	CHECK(!ibv_destroy_cq(cq));
	CHECK(!ibv_dealloc_pd(pd));
	app_close(ctx);
	return app_end();
}
