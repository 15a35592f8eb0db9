// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Protection domains, memory, address handles, and objects that have no shadow
 */
#include "app.h"

static struct ibv_context *ctx, *real_ctx;
static struct ibv_pd *pd, *real_pd;

static struct ibv_pd *new_pd(struct ibv_pd **real)
{
	struct ibv_pd *p = ibv_alloc_pd(ctx);

	MUST(p);
	*real = fake_newest(FAKE_PD);
	MUST(*real && *real != p);
	return p;
}

static void test_pd(void)
{
	struct ibv_pd *p, *real;

	puts("PDs");
	fake_fail("ibv_alloc_pd", ENOSPC);
	FAILS_WITH(ENOSPC, ibv_alloc_pd(ctx));
	p = new_pd(&real);
	SAW("ibv_alloc_pd", real_ctx);
	CHECK(p->context == ctx && p->handle == real->handle);
	fake_fail("ibv_dealloc_pd", EBUSY);
	CHECK(ibv_dealloc_pd(p) == EBUSY);
	CHECK(p->context == ctx && p->handle == real->handle);
	CHECK(!ibv_dealloc_pd(p));
	SAW("ibv_dealloc_pd", real);

	fake_fail("ibv_import_pd", ENOENT);
	FAILS_WITH(ENOENT, ibv_import_pd(ctx, 77));
	p = ibv_import_pd(ctx, 77);
	MUST(p);
	real = fake_newest(FAKE_PD);
	SAW("ibv_import_pd", real_ctx, 77);
	CHECK(p != real && p->context == ctx && p->handle == 77);
	ibv_unimport_pd(p);
	SAW("ibv_unimport_pd", real);
}

/* --- parent domains --- */

static struct {
	struct ibv_pd *pd;
	void *context, *ptr;
	size_t size, align;
	uint64_t type;
} asked;

static void *app_alloc(struct ibv_pd *p, void *pd_context, size_t size,
		       size_t alignment, uint64_t type)
{
	asked.pd = p;
	asked.context = pd_context;
	asked.size = size;
	asked.align = alignment;
	asked.type = type;
	return IBV_ALLOCATOR_USE_DEFAULT;
}

static void app_free(struct ibv_pd *p, void *pd_context, void *ptr,
		     uint64_t type)
{
	asked.pd = p;
	asked.context = pd_context;
	asked.ptr = ptr;
	asked.type = type;
}

static void test_parent_domain(void)
{
	struct ibv_parent_domain_init_attr attr = { .pd = pd }, before;
	struct ibv_td_init_attr td_attr = { 0 };
	struct ibv_pd *p, *real;
	struct ibv_td *td;
	struct ibv_mr *mr;
	int own, x;

	puts("parent domains");
	td = ibv_alloc_td(ctx, &td_attr);
	MUST(td);
	attr.td = td;
	fake_fail("alloc_parent_domain", ENOMEM);
	FAILS_WITH(ENOMEM, ibv_alloc_parent_domain(ctx, &attr));

	p = ibv_alloc_parent_domain(ctx, &attr);
	MUST(p);
	real = fake_newest(FAKE_PD);
	CHECK(p != real && p->context == ctx && p->handle == real->handle);
	CHECK(fake_last.pd.pd == real_pd && fake_last.pd.td == td);
	CHECK(fake_last.pd.comp_mask == 0);
	mr = ibv_reg_mr(p, &x, sizeof(x), 0);
	MUST(mr);
	CHECK(mr->pd == p);
	SAW("ibv_reg_mr", real, &x, sizeof(x), 0);
	CHECK(!ibv_dereg_mr(mr));
	fake_fail("ibv_dealloc_pd", EBUSY);
	CHECK(ibv_dealloc_pd(p) == EBUSY);
	CHECK(!ibv_dealloc_pd(p));
	CHECK(!ibv_dealloc_td(td));

	puts("a context without allocators");
	attr.td = NULL;
	attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
	attr.pd_context = &own;
	p = ibv_alloc_parent_domain(ctx, &attr);
	MUST(p);
	CHECK(fake_last.pd.comp_mask == IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT);
	CHECK(!ibv_dealloc_pd(p));

	puts("allocators");
	attr.comp_mask |= IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	attr.alloc = app_alloc;
	attr.free = app_free;
	before = attr;
	p = ibv_alloc_parent_domain(ctx, &attr);
	MUST(p);
	CHECK(!memcmp(&before, &attr, sizeof(attr)));
	real = fake_newest(FAKE_PD);
	CHECK(fake_parent_alloc(real, 100, 64, 3) == IBV_ALLOCATOR_USE_DEFAULT);
	CHECK(asked.pd == p && asked.context == &own);
	CHECK(asked.size == 100 && asked.align == 64 && asked.type == 3);
	memset(&asked, 0, sizeof(asked));
	fake_parent_free(real, &x, 4);
	CHECK(asked.pd == p && asked.context == &own);
	CHECK(asked.ptr == &x && asked.type == 4);
	CHECK(!ibv_dealloc_pd(p));

	puts("allocators without a context, and one of them only");
	attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	attr.free = NULL;
	p = ibv_alloc_parent_domain(ctx, &attr);
	MUST(p);
	CHECK(!fake_last.pd.free);
	fake_parent_alloc(fake_newest(FAKE_PD), 1, 1, 1);
	CHECK(asked.pd == p && !asked.context);
	CHECK(!ibv_dealloc_pd(p));
	attr.free = app_free;
	attr.alloc = NULL;
	p = ibv_alloc_parent_domain(ctx, &attr);
	MUST(p);
	CHECK(!fake_last.pd.alloc);
	fake_parent_free(fake_newest(FAKE_PD), &x, 1);
	CHECK(asked.pd == p);
	CHECK(!ibv_dealloc_pd(p));
}

/* --- memory regions --- */

static char buf[64];

static void check_mr(struct ibv_mr *mr, struct ibv_pd *of)
{
	struct ibv_mr *real = fake_newest(FAKE_MR);

	MUST(mr && real && mr != real);
	CHECK(mr->context == ctx && mr->pd == of);
	CHECK(mr->addr == real->addr && mr->length == real->length);
	CHECK(mr->handle == real->handle && mr->handle);
	CHECK(mr->lkey == real->lkey && mr->lkey);
	CHECK(mr->rkey == real->rkey && mr->rkey);
}

static void drop_mr(struct ibv_mr *mr)
{
	struct ibv_mr *real = fake_newest(FAKE_MR);

	fake_fail("ibv_dereg_mr", EBUSY);
	CHECK(ibv_dereg_mr(mr) == EBUSY);
	check_mr(mr, mr->pd);
	CHECK(!ibv_dereg_mr(mr));
	SAW("ibv_dereg_mr", real);
	CHECK(fake_alive(FAKE_MR) == 0);
}

static void test_mr(void)
{
	struct ibv_alloc_dm_attr dm_attr = { .length = 64 };
	struct ibv_sge sge = { .addr = (uintptr_t)buf };
	unsigned int relaxed = IBV_ACCESS_RELAXED_ORDERING;
	struct ibv_mr *mr, *real;
	struct ibv_dm *dm;

	puts("MRs");
	fake_fail("ibv_reg_mr", EFAULT);
	FAILS_WITH(EFAULT, ibv_reg_mr(pd, buf, 8, 1));
	mr = ibv_reg_mr(pd, buf, 8, 1);
	SAW("ibv_reg_mr", real_pd, buf, 8, 1);
	check_mr(mr, pd);
	CHECK(mr->addr == buf && mr->length == 8);
	drop_mr(mr);

	/* optional access goes to another function */
	fake_fail("ibv_reg_mr_iova2", EFAULT);
	FAILS_WITH(EFAULT, ibv_reg_mr(pd, buf, 9, relaxed));
	mr = ibv_reg_mr(pd, buf, 9, relaxed);
	SAW("ibv_reg_mr_iova2", real_pd, buf, 9, buf, relaxed);
	check_mr(mr, pd);
	drop_mr(mr);

	fake_fail("ibv_reg_mr_iova", EFAULT);
	FAILS_WITH(EFAULT, ibv_reg_mr_iova(pd, buf, 10, 0x1000, 2));
	mr = ibv_reg_mr_iova(pd, buf, 10, 0x1000, 2);
	SAW("ibv_reg_mr_iova", real_pd, buf, 10, 0x1000, 2);
	check_mr(mr, pd);
	drop_mr(mr);

	fake_fail("ibv_reg_dmabuf_mr", EBADF);
	FAILS_WITH(EBADF, ibv_reg_dmabuf_mr(pd, 5, 11, 0x2000, 9, 3));
	mr = ibv_reg_dmabuf_mr(pd, 5, 11, 0x2000, 9, 3);
	SAW("ibv_reg_dmabuf_mr", real_pd, 5, 11, 0x2000, 9, 3);
	check_mr(mr, pd);
	drop_mr(mr);

	fake_fail("alloc_null_mr", ENOMEM);
	FAILS_WITH(ENOMEM, ibv_alloc_null_mr(pd));
	mr = ibv_alloc_null_mr(pd);
	SAW("alloc_null_mr", real_pd);
	check_mr(mr, pd);
	drop_mr(mr);

	fake_fail("ibv_import_mr", ENOENT);
	FAILS_WITH(ENOENT, ibv_import_mr(pd, 6));
	mr = ibv_import_mr(pd, 6);
	SAW("ibv_import_mr", real_pd, 6);
	check_mr(mr, pd);
	real = fake_newest(FAKE_MR);
	ibv_unimport_mr(mr);
	SAW("ibv_unimport_mr", real);
	CHECK(fake_alive(FAKE_MR) == 0);

	puts("device memory");
	fake_fail("alloc_dm", ENOMEM);
	FAILS_WITH(ENOMEM, ibv_alloc_dm(ctx, &dm_attr));
	dm = ibv_alloc_dm(ctx, &dm_attr);
	MUST(dm);
	SAW("alloc_dm", real_ctx, &dm_attr);
	fake_fail("reg_dm_mr", EINVAL);
	FAILS_WITH(EINVAL, ibv_reg_dm_mr(pd, dm, 4, 12, 1));
	mr = ibv_reg_dm_mr(pd, dm, 4, 12, 1);
	SAW("reg_dm_mr", real_pd, dm, 4, 12, 1);
	check_mr(mr, pd);
	drop_mr(mr);
	CHECK(!ibv_free_dm(dm));
	fake_fail("ibv_import_dm", ENOENT);
	FAILS_WITH(ENOENT, ibv_import_dm(ctx, 3));
	dm = ibv_import_dm(ctx, 3);
	MUST(dm);
	SAW("ibv_import_dm", real_ctx, 3);
	ibv_unimport_dm(dm);

	puts("advice");
	CHECK(!ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 1, &sge, 1));
	SAW("advise_mr", real_pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 1, &sge, 1);
	fake_fail("advise_mr", EFAULT);
	CHECK(ibv_advise_mr(pd, 0, 0, &sge, 1) == EFAULT);
}

static void test_rereg(void)
{
	struct ibv_pd *other, *other_real, *nonsense = (struct ibv_pd *)buf;
	struct ibv_mr *mr, *real;
	uint32_t lkey;

	puts("MRs that change");
	other = new_pd(&other_real);
	mr = ibv_reg_mr(pd, buf, 8, 1);
	check_mr(mr, pd);
	real = fake_newest(FAKE_MR);
	lkey = mr->lkey;

	/* the PD must not be looked at */
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nonsense,
			    buf + 8, 16, 0));
	SAW("ibv_rereg_mr", real, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
	    buf + 8, 16, 0);
	check_mr(mr, pd);
	CHECK(mr->addr == buf + 8 && mr->length == 16);
	CHECK(mr->lkey != lkey);

	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0));
	SAW("ibv_rereg_mr", real, IBV_REREG_MR_CHANGE_PD, other_real, NULL, 0,
	    0);
	check_mr(mr, other);
	CHECK(real->pd == other_real);

	lkey = mr->lkey;
	fake_fail("ibv_rereg_mr", IBV_REREG_MR_ERR_INPUT);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0) ==
	      IBV_REREG_MR_ERR_INPUT);
	check_mr(mr, other);
	CHECK(mr->lkey == lkey);

	/* an error after which the new one is valid */
	fake_fail("ibv_rereg_mr", IBV_REREG_MR_ERR_DO_FORK_OLD);
	CHECK(ibv_rereg_mr(mr,
			   IBV_REREG_MR_CHANGE_PD |
				   IBV_REREG_MR_CHANGE_TRANSLATION,
			   pd, buf, 5, 0) == IBV_REREG_MR_ERR_DO_FORK_OLD);
	check_mr(mr, pd);
	CHECK(mr->addr == buf && mr->length == 5 && mr->lkey != lkey);

	drop_mr(mr);
	CHECK(!ibv_dealloc_pd(other));
}

/* --- memory windows: their binding is with what is posted --- */

static void test_mw(void)
{
	struct ibv_mw *mw, *real;

	puts("MWs");
	fake_fail("alloc_mw", ENOMEM);
	FAILS_WITH(ENOMEM, ibv_alloc_mw(pd, IBV_MW_TYPE_2));
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	real = fake_newest(FAKE_MW);
	MUST(mw && mw != real);
	SAW("alloc_mw", real_pd, IBV_MW_TYPE_2);
	CHECK(mw->context == ctx && mw->pd == pd && mw->type == IBV_MW_TYPE_2);
	CHECK(mw->handle == real->handle && mw->rkey == real->rkey);
	fake_fail("dealloc_mw", EBUSY);
	CHECK(ibv_dealloc_mw(mw) == EBUSY);
	CHECK(mw->context == ctx);
	CHECK(!ibv_dealloc_mw(mw));
	SAW("dealloc_mw", real);
}

/* --- address handles --- */

static void test_ah(void)
{
	struct ibv_ah_attr attr = { .dlid = 3, .port_num = 2 };
	struct ibv_wc wc = { .slid = 44 };
	struct ibv_ah *ah, *real;
	struct ibv_grh grh;

	puts("AHs");
	fake_fail("ibv_create_ah", EHOSTUNREACH);
	FAILS_WITH(EHOSTUNREACH, ibv_create_ah(pd, &attr));
	ah = ibv_create_ah(pd, &attr);
	real = fake_newest(FAKE_AH);
	MUST(ah && ah != real);
	SAW("ibv_create_ah", real_pd, 3, 2);
	CHECK(ah->context == ctx && ah->pd == pd);
	CHECK(ah->handle == real->handle && ah->handle);
	fake_fail("ibv_destroy_ah", EBUSY);
	CHECK(ibv_destroy_ah(ah) == EBUSY);
	CHECK(ah->context == ctx && ah->pd == pd);
	CHECK(!ibv_destroy_ah(ah));
	SAW("ibv_destroy_ah", real);

	puts("AHs of completions");
	CHECK(!ibv_init_ah_from_wc(ctx, 1, &wc, &grh, &attr));
	SAW("ibv_init_ah_from_wc", real_ctx, 1, &wc, &grh);
	CHECK(attr.dlid == 44 && attr.port_num == 1);
	fake_fail("ibv_init_ah_from_wc", EAGAIN);
	FAILS_WITH(EAGAIN, ibv_create_ah_from_wc(pd, &wc, &grh, 1));
	fake_fail("ibv_create_ah", ENOMEM);
	FAILS_WITH(ENOMEM, ibv_create_ah_from_wc(pd, &wc, &grh, 1));
	ah = ibv_create_ah_from_wc(pd, &wc, &grh, 1);
	real = fake_newest(FAKE_AH);
	MUST(ah && ah != real);
	SAW("ibv_init_ah_from_wc", real_ctx, 1, &wc, &grh);
	SAW("ibv_create_ah", real_pd, 44, 1);
	CHECK(ah->context == ctx && ah->pd == pd);
	CHECK(fake_alive(FAKE_AH) == 1);
	CHECK(!ibv_destroy_ah(ah));
}

/* --- without a shadow --- */

static void test_plain(void)
{
	struct ibv_counter_attach_attr attach = { 0 };
	struct ibv_counters_init_attr counters_attr = { 0 };
	struct ibv_flow_action_esp_attr esp = { 0 };
	struct ibv_xrcd_init_attr xrcd_attr = { 0 };
	struct ibv_td_init_attr td_attr = { 0 };
	struct ibv_flow_action *action;
	struct ibv_counters *counters;
	struct ibv_xrcd *xrcd;
	struct ibv_td *td;
	uint64_t value;

	puts("objects without shadows");
	fake_fail("open_xrcd", EBADF);
	FAILS_WITH(EBADF, ibv_open_xrcd(ctx, &xrcd_attr));
	xrcd = ibv_open_xrcd(ctx, &xrcd_attr);
	MUST(xrcd);
	SAW("open_xrcd", real_ctx, &xrcd_attr);
	fake_fail("close_xrcd", EBUSY);
	CHECK(ibv_close_xrcd(xrcd) == EBUSY);
	CHECK(!ibv_close_xrcd(xrcd));

	fake_fail("alloc_td", ENOMEM);
	FAILS_WITH(ENOMEM, ibv_alloc_td(ctx, &td_attr));
	td = ibv_alloc_td(ctx, &td_attr);
	MUST(td);
	SAW("alloc_td", real_ctx, &td_attr);
	CHECK(!ibv_dealloc_td(td));

	fake_fail("create_counters", ENOMEM);
	FAILS_WITH(ENOMEM, ibv_create_counters(ctx, &counters_attr));
	counters = ibv_create_counters(ctx, &counters_attr);
	MUST(counters);
	SAW("create_counters", real_ctx, &counters_attr);
	CHECK(!ibv_attach_counters_point_flow(counters, &attach, NULL));
	CHECK(!ibv_read_counters(counters, &value, 1, 0));
	SAW("read_counters", counters, &value, 1, 0);
	CHECK(!ibv_destroy_counters(counters));

	fake_fail("create_flow_action_esp", ENOMEM);
	FAILS_WITH(ENOMEM, ibv_create_flow_action_esp(ctx, &esp));
	action = ibv_create_flow_action_esp(ctx, &esp);
	MUST(action);
	SAW("create_flow_action_esp", real_ctx, &esp);
	CHECK(!ibv_modify_flow_action_esp(action, &esp));
	CHECK(!ibv_destroy_flow_action(action));
}

/* Receive queues and their table, a QP of it, and a flow to that QP */
static void test_wq(void)
{
	struct ibv_rwq_ind_table_init_attr table_attr = { 0 };
	struct ibv_wq_attr wq_attr = { .wq_state = IBV_WQS_RDY };
	struct ibv_wq_init_attr attr = { .max_wr = 4, .max_sge = 2 }, before;
	struct ibv_qp_init_attr_ex qp_attr = { .qp_type = IBV_QPT_RAW_PACKET };
	struct ibv_flow_attr flow_attr = { 0 };
	struct ibv_rwq_ind_table *table;
	struct ibv_recv_wr wr = { 0 }, *bad;
	struct ibv_cq *cq, *real_cq;
	struct ibv_flow *flow;
	struct ibv_qp *qp;
	struct ibv_wq *wq;
	int own;

	puts("WQs and flows");
	cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
	MUST(cq);
	real_cq = fake_newest(FAKE_CQ);
	attr.pd = pd;
	attr.cq = cq;
	attr.wq_context = &own;
	before = attr;
	fake_fail("create_wq", ENOMEM);
	FAILS_WITH(ENOMEM, ibv_create_wq(ctx, &attr));
	attr = before;
	wq = ibv_create_wq(ctx, &attr);
	MUST(wq);
	SAW("create_wq", real_ctx);
	CHECK(fake_last.wq.pd == real_pd && fake_last.wq.cq == real_cq);
	CHECK(attr.max_wr == 8 && attr.max_sge == 4);
	before.max_wr = 8;
	before.max_sge = 4;
	CHECK(!memcmp(&attr, &before, sizeof(attr)));
	CHECK(wq->wq_context == &own);
	CHECK(!ibv_modify_wq(wq, &wq_attr));
	CHECK(!ibv_post_wq_recv(wq, &wr, &bad));

	table_attr.ind_tbl = &wq;
	fake_fail("make_rwq_ind_table", ENOMEM);
	FAILS_WITH(ENOMEM, ibv_create_rwq_ind_table(ctx, &table_attr));
	table = ibv_create_rwq_ind_table(ctx, &table_attr);
	MUST(table);

	qp_attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE;
	qp_attr.pd = pd;
	qp_attr.rwq_ind_tbl = table;
	qp = ibv_create_qp_ex(ctx, &qp_attr);
	MUST(qp);
	CHECK(!qp->send_cq && !qp->recv_cq && !qp->srq);
	fake_fail("create_flow", EINVAL);
	FAILS_WITH(EINVAL, ibv_create_flow(qp, &flow_attr));
	flow = ibv_create_flow(qp, &flow_attr);
	MUST(flow);
	SAW("create_flow", fake_newest(FAKE_QP), &flow_attr);
	CHECK(!ibv_destroy_flow(flow));
	CHECK(!ibv_destroy_qp(qp));
	CHECK(!ibv_destroy_rwq_ind_table(table));
	CHECK(!ibv_destroy_wq(wq));
	CHECK(!ibv_destroy_cq(cq));
}

int main(void)
{
	ctx = app_open(0);
	real_ctx = fake_newest(FAKE_CONTEXT);
	pd = new_pd(&real_pd);

	test_pd();
	test_parent_domain();
	test_mr();
	test_rereg();
	test_mw();
	test_ah();
	test_plain();
	test_wq();

	CHECK(!ibv_dealloc_pd(pd));
	app_close(ctx);
	return app_end();
}
