// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Objects are made again as they have become since they were made.
 */
#include "replace_rig.h"

static void again_suspended(void)
{
	CHECK(!layer_replace(NULL, 0, LONG, &swapped), "%s", swapped.reason);
	real_ctx = fake_newest(FAKE_CONTEXT);
	CHECK(!layer_connect(&swapped), "%s", swapped.reason);
	resume();
}

static void again(void)
{
	suspend();
	again_suspended();
}

static void test_regions(void)
{
	const int write = IBV_ACCESS_LOCAL_WRITE;
	struct ibv_mr *mr, *other;
	uint32_t lkey;
	char memory[64];

	puts("regions");
	mr = ibv_reg_mr_iova(pd, memory, 32, 0x7000, write);
	MUST(mr);
	again();
	SAW("ibv_reg_mr_iova2", fake_newest(FAKE_PD), memory, 32, 0x7000,
	    write);
	CHECK(mr->addr == memory && mr->length == 32);

	/* other memory, and another address for it; its keys may be others, too */
	lkey = mr->lkey;
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
			    memory + 8, 16, 0));
	other = fake_newest(FAKE_MR);
	CHECK(mr->lkey == other->lkey && mr->lkey != lkey);
	lkey = mr->lkey;
	again();
	CHECK(mr->lkey == lkey);
	SAW("ibv_reg_mr_iova2", fake_newest(FAKE_PD), memory + 8, 16,
	    memory + 8, write);
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			    IBV_ACCESS_REMOTE_READ));
	again();
	SAW("ibv_reg_mr_iova2", fake_newest(FAKE_PD), memory + 8, 16,
	    memory + 8, IBV_ACCESS_REMOTE_READ);
	/* what failed has not been, and its keys are what they were */
	lkey = mr->lkey;
	MUST(lkey != ((struct ibv_mr *)fake_newest(FAKE_MR))->lkey);
	fake_fail("ibv_rereg_mr", EINVAL);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			   write) == EINVAL);
	CHECK(mr->lkey == lkey);
	again();
	SAW("ibv_reg_mr_iova2", fake_newest(FAKE_PD), memory + 8, 16,
	    memory + 8, IBV_ACCESS_REMOTE_READ);
	CHECK(!ibv_dereg_mr(mr));
}

static void test_queues(void)
{
	struct ibv_srq_init_attr_ex srq_attr = {
		.attr = { 9, 3, 0 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC,
		.pd = pd,
	};
	struct ibv_modify_cq_attr moderate = { .attr_mask =
						       IBV_CQ_ATTR_MODERATE,
					       .moderate = { 3, 4 } };
	struct ibv_srq_attr size = { .max_wr = 20 };
	struct ibv_cq *cq, *real;
	struct ibv_srq *srq;

	puts("CQs and SRQs");
	cq = new_cq(10, &real);
	CHECK(!ibv_resize_cq(cq, 40));
	CHECK(!ibv_modify_cq(cq, &moderate));
	fake_last.moderate = (struct ibv_moderate_cq){};
	srq = ibv_create_srq_ex(ctx, &srq_attr);
	MUST(srq);
	CHECK(srq_attr.attr.max_wr == 109);
	again();
	SAW("ibv_create_cq", real_ctx, 40 + SPARE, NULL, 0);
	CHECK(fake_last.moderate.cq_count == 3 &&
	      fake_last.moderate.cq_period == 4);
	CHECK(fake_last.srq.attr.max_wr == 9 &&
	      fake_last.srq.attr.max_sge == 3);
	CHECK(fake_last.srq.pd == fake_newest(FAKE_PD));
	CHECK(!ibv_modify_srq(srq, &size, IBV_SRQ_MAX_WR));
	again();
	CHECK(fake_last.srq.attr.max_wr == 20 &&
	      fake_last.srq.attr.max_sge == 3);
	CHECK(!ibv_destroy_srq(srq) && !ibv_destroy_cq(cq));
}

static int asked;

static void *app_alloc(struct ibv_pd *of, void *pd_context, size_t size,
		       size_t alignment, uint64_t type)
{
	(void)size;
	(void)alignment;
	(void)type;
	asked++;
	return pd_context == &asked && of ? of : NULL;
}

static void app_free(struct ibv_pd *of, void *pd_context, void *ptr,
		     uint64_t type)
{
	CHECK(pd_context == &asked && ptr == of && type == 1);
}

static void test_domains(void)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = pd,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = app_alloc,
		.free = app_free,
		.pd_context = &asked,
	};
	struct ibv_ah_attr ah_attr = { .dlid = 44, .port_num = 2 };
	struct ibv_pd *parent, *real;
	struct ibv_ah *ah;

	puts("parent domains, and address handles");
	parent = ibv_alloc_parent_domain(ctx, &attr);
	MUST(parent);
	ah = ibv_create_ah(parent, &ah_attr);
	MUST(ah);
	again();
	real = fake_newest(FAKE_PD);
	CHECK(fake_last.pd.pd == fake_older(real));
	CHECK(fake_parent_alloc(real, 8, 8, 1) == parent && asked == 1);
	fake_parent_free(real, parent, 1);
	SAW("ibv_create_ah", real, 44, 2);
	CHECK(!ibv_destroy_ah(ah) && !ibv_dealloc_pd(parent));
}

static void test_qps(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_recv_wr *bad;
	struct ibv_qp *qp, *real;
	struct ibv_cq *cq, *real_cq;

	puts("QPs that are not connected");
	cq = new_cq(64, &real_cq);
	qp = new_qp_ex(IBV_QPT_RC, cq, EX_OPS, &real);
	set_state(qp, IBV_QPS_RESET);
	again();
	real = fake_newest(FAKE_QP);
	CHECK(real->state == IBV_QPS_RESET);
	CHECK(fake_last.qp.send_ops_flags == EX_OPS);
	CHECK(fake_last.qp.pd == fake_newest(FAKE_PD));
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT, .port_num = 2 };
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT));
	again();
	real = fake_newest(FAKE_QP);
	CHECK(real->state == IBV_QPS_INIT);
	CHECK(!ibv_query_qp(real, &attr, 0, &init) && attr.port_num == 2);
	CHECK(!ibv_post_recv(qp, &(struct ibv_recv_wr){ .wr_id = 5 }, &bad));
	set_state(qp, IBV_QPS_ERR);
	POLLED(cq, 4, 5);
	again();
	CHECK(((struct ibv_qp *)fake_newest(FAKE_QP))->state == IBV_QPS_ERR);
	/* and what it has been once it is no more */
	set_state(qp, IBV_QPS_RESET);
	again();
	CHECK(((struct ibv_qp *)fake_newest(FAKE_QP))->state == IBV_QPS_RESET);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
}

/* It is refused before anything has changed. */
static void check_less(const char *what)
{
	suspend();
	CHECK(layer_replace(NULL, 0, LONG, &swapped) == ENOSPC);
	CHECK(strstr(swapped.reason, what), "%s", swapped.reason);
	resume();
}

static void test_caps(void)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };
	struct ibv_srq_init_attr srq_init = { .attr = { 8, 2, 0 } };
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_cq *cq;

	puts("on a device that gives no more than it is asked for");
	MUST(cq = ibv_create_cq(ctx, 100, NULL, NULL, 0));
	init.send_cq = init.recv_cq = cq;
	init.cap = (struct ibv_qp_cap){ .max_send_wr = 5, .max_send_sge = 3 };
	qp = ibv_create_qp(pd, &init);
	MUST(qp && init.cap.max_send_wr > 5 && init.cap.max_send_sge == 33);
	MUST(srq = ibv_create_srq(pd, &srq_init));
	MUST(cq->cqe == 101 && srq_init.attr.max_wr == 108);
	fake_exact = true;
	again();
	SAW("ibv_create_cq", real_ctx, 101 + SPARE, NULL, 0);
	CHECK(fake_last.srq.attr.max_wr == 108 &&
	      fake_last.srq.attr.max_sge == 102);
	CHECK(fake_last.qp.cap.max_send_wr == init.cap.max_send_wr + 1);
	CHECK(fake_last.qp.cap.max_inline_data == init.cap.max_inline_data);
	again();
	CHECK(!ibv_destroy_qp(qp));

	puts("or less than there was");
	fake_exact = false;
	fake_small = true;
	check_less("no other CQ");
	CHECK(!ibv_destroy_cq(cq));
	check_less("no other SRQ");
	CHECK(!ibv_destroy_srq(srq));
	fake_small = false;
	MUST(cq = ibv_create_cq(ctx, 100, NULL, NULL, 0));
	init.send_cq = init.recv_cq = cq;
	init.cap = (struct ibv_qp_cap){ .max_send_wr = 5,
					.max_send_sge = FAKE_MOST_SGES - 29 };
	qp = ibv_create_qp(pd, &init);
	MUST(qp && init.cap.max_send_sge > FAKE_MOST_SGES);
	fake_exact = true;
	suspend();
	CHECK(layer_replace(NULL, 0, LONG, &swapped) == ENOSPC);
	fake_exact = false;
	again_suspended();
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
}

static void have_two_vectors(struct verbs_context *v)
{
	v->context.num_comp_vectors = 2;
}

static void test_vectors(void)
{
	struct ibv_cq *cq, *other;

	puts("another device has fewer completion vectors");
	MUST(ctx->num_comp_vectors == 3);
	MUST(cq = ibv_create_cq(ctx, 5, NULL, NULL, 2));
	fake_prepare = have_two_vectors;
	again();
	fake_prepare = NULL;
	SAW("ibv_create_cq", real_ctx, 5 + SPARE, NULL, 0);
	CHECK(ctx->num_comp_vectors == 3);
	for (int vector = 0; vector < 4; vector++) {
		MUST(other = ibv_create_cq(ctx, 6, NULL, NULL, vector));
		/* one that there has never been is the device's to refuse */
		SAW("ibv_create_cq", real_ctx, 6 + SPARE, NULL,
		    vector < 3 ? vector % 2 : vector);
		CHECK(!ibv_destroy_cq(other));
	}
	again();
	SAW("ibv_create_cq", real_ctx, 5 + SPARE, NULL, 2);
	CHECK(!ibv_destroy_cq(cq));
}

int main(void)
{
	rig_open();
	test_regions();
	test_queues();
	test_vectors();
	test_domains();
	test_qps();
	test_caps();
	return rig_close();
}
