// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Names after a replacement, where things are done call by call: ibv_wr_*(),
 * ibv_start_poll(); and names that are taken.
 */
#include "replace_rig.h"

static struct ibv_poll_cq_attr poll_attr;

/* the next completion, which there is */
static void check_next(struct ibv_cq_ex *ex, uint64_t wr_id, uint32_t qpn)
{
	MUST(!ibv_start_poll(ex, &poll_attr));
	CHECK(ex->wr_id == wr_id, "%#llx", (unsigned long long)ex->wr_id);
	CHECK(ibv_wc_read_qp_num(ex) == qpn);
	ibv_end_poll(ex);
}

static void replace_one(struct ibv_qp *qp, struct ibv_qp **real,
			struct ibv_cq **real_cq)
{
	suspend();
	CHECK(!layer_replace(NULL, 0, LONG, &swapped), "%s", swapped.reason);
	*real = fake_newest(FAKE_QP);
	*real_cq = fake_newest(FAKE_CQ);
	/* it was in RTS without a peer's address, but has one */
	CHECK(!layer_set_peer(qp->qp_num, 5, &(union ibv_gid){}, "moved",
			      &swapped));
	CHECK(!layer_set_key("moved", 0x7701, 0x8802, &swapped));
	CHECK(!layer_connect(&swapped), "%s", swapped.reason);
	resume();
}

static void test_ex(uint64_t flags)
{
	struct ibv_cq *real_cq, *before;
	struct ibv_mr *mr, *real_mr;
	const struct fake_sent *sent;
	struct ibv_qp *qp, *real;
	struct ibv_cq_ex *ex;
	struct ibv_qp_ex *qpx;
	struct ibv_sge sge;
	char memory[8];

	printf("extended objects, %#llx\n", (unsigned long long)flags);
	ex = new_cq_ex(IBV_WC_EX_WITH_QP_NUM | flags, &before);
	qp = new_qp_ex(IBV_QPT_RC, ibv_cq_ex_to_cq(ex), EX_OPS, &real);
	qpx = ibv_qp_to_qp_ex(qp);
	mr = ibv_reg_mr(pd, memory, sizeof(memory), 0);
	MUST(mr);
	w.mr = mr;
	for (uint64_t i = 0; i < 3; i++) {
		CHECK(!recv_one(qp, 10 * i + 1) && !recv_one(qp, 10 * i + 2));
		fake_receive(real, 1);
		replace_one(qp, &real, &real_cq);
		CHECK(real_cq != before);
		before = real_cq;
		check_next(ex, 10 * i + 1, qp->qp_num);
		fake_receive(real, 1);
		check_next(ex, 10 * i + 2, qp->qp_num);
		CHECK(ibv_start_poll(ex, &poll_attr) == ENOENT);

		real_mr = fake_newest(FAKE_MR);
		CHECK(real_mr->lkey != mr->lkey);
		sge = (struct ibv_sge){ (uintptr_t)memory, 4, mr->lkey };
		ibv_wr_start(qpx);
		qpx->wr_id = 10 * i + 3;
		qpx->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_rdma_write(qpx, 0x7701, 0x1000);
		SAW("wr_rdma_write", real, 10 * i + 3, IBV_SEND_SIGNALED,
		    0x8802, 0x1000);
		ibv_wr_set_sge(qpx, mr->lkey, (uintptr_t)memory, 4);
		SAW("wr_set_sge", real, real_mr->lkey, memory, 4);
		ibv_wr_set_sge_list(qpx, 1, &sge);
		CHECK(sge.lkey == mr->lkey);
		ibv_wr_atomic_fetch_add(qpx, 0x7702, 0x1000, 5);
		SAW("wr_atomic_fetch_add", real, 10 * i + 3, IBV_SEND_SIGNALED,
		    0x8803, 0x1000, 5);
		ibv_wr_rdma_read(qpx, 0x9901, 0x1000);
		SAW("wr_rdma_read", real, 10 * i + 3, IBV_SEND_SIGNALED, 0x9901,
		    0x1000);
		ibv_wr_local_inv(qpx, mr->rkey);
		SAW("wr_local_inv", real, 10 * i + 3, IBV_SEND_SIGNALED,
		    real_mr->rkey);
		CHECK(!ibv_wr_complete(qpx));
		sent = fake_sent(real, 0);
		CHECK(sent->wr.wr.rdma.rkey == 0x8802);
		fake_finish(real, 1, IBV_WC_SUCCESS);
		check_next(ex, 10 * i + 3, qp->qp_num);

		/* what is collected meanwhile */
		suspend();
		ibv_wr_start(qpx);
		ibv_wr_rdma_write(qpx, 0x7701, 0x2000);
		ibv_wr_set_sge(qpx, mr->lkey, (uintptr_t)memory, 4);
		CHECK(!ibv_wr_complete(qpx));
		CHECK(!layer_replace(NULL, 0, LONG, &swapped));
		real = fake_newest(FAKE_QP);
		before = fake_newest(FAKE_CQ);
		real_mr = fake_newest(FAKE_MR);
		CHECK(!layer_set_peer(qp->qp_num, 5, &(union ibv_gid){},
				      "moved", &swapped));
		CHECK(!layer_connect(&swapped));
		resume();
		sent = fake_sent(real, 0);
		MUST(sent);
		CHECK(sent->wr.wr.rdma.rkey == 0x8802);
		CHECK(sent->sge[0].lkey == real_mr->lkey);
		fake_finish(real, 1, IBV_WC_SUCCESS);
		check_next(ex, 10 * i + 3, qp->qp_num);
	}
	CHECK(!ibv_destroy_qp(qp) && !ibv_dereg_mr(mr));
	CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(ex)));
}

/* A number that is in use as a name is not another one's, too. */
static void test_taken(void)
{
	struct ibv_qp *qp, *real;
	struct ibv_qp_init_attr attr = { .cap = { 1, 1, 1, 1 },
					 .qp_type = IBV_QPT_RC };
	struct ibv_mw *mw, *real_mw;
	struct ibv_context *other;
	struct ibv_pd *other_pd;
	uint32_t taken;
	struct ibv_wc wc;

	puts("names that are taken");
	world_make();
	taken = w.qp->qp_num;
	world_replace();
	fake_next_handle(taken - 0x10000);
	qp = new_qp(IBV_QPT_RC, w.cq, &real);
	CHECK(real->qp_num == taken && qp->qp_num != taken);
	CHECK(!recv_one(qp, 1) && !recv_one(w.qp, 2));
	fake_receive(real, 1);
	MUST(ibv_poll_cq(w.cq, 1, &wc) == 1);
	CHECK(wc.wr_id == 1 && wc.qp_num == qp->qp_num);
	fake_receive(w.real, 1);
	MUST(ibv_poll_cq(w.cq, 1, &wc) == 1);
	CHECK(wc.wr_id == 2 && wc.qp_num == taken);
	CHECK(!ibv_destroy_qp(qp));

	/* nor that of the device in another context, which it has opened since */
	other = app_open(0);
	MUST(other_pd = ibv_alloc_pd(other));
	attr.send_cq = attr.recv_cq = ibv_create_cq(other, 4, NULL, NULL, 0);
	MUST(attr.send_cq);
	fake_next_handle(taken - 0x10000);
	MUST(qp = ibv_create_qp(other_pd, &attr));
	real = fake_newest(FAKE_QP);
	CHECK(real->qp_num == taken && qp->qp_num != taken);
	CHECK(!recv_one(qp, 3));
	fake_receive(real, 1);
	MUST(ibv_poll_cq(attr.send_cq, 1, &wc) == 1);
	CHECK(wc.wr_id == 3 && wc.qp_num == qp->qp_num);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(attr.send_cq));
	CHECK(!ibv_dealloc_pd(other_pd) && !ibv_close_device(other));

	/* Another device's may be the same, as they were from the beginning. */
	other = app_open(1);
	MUST(other_pd = ibv_alloc_pd(other));
	attr.send_cq = attr.recv_cq = ibv_create_cq(other, 4, NULL, NULL, 0);
	MUST(attr.send_cq);
	fake_next_handle(taken - 0x10000);
	MUST(qp = ibv_create_qp(other_pd, &attr));
	CHECK(qp->qp_num == taken);
	CHECK(layer_suspend_some(&taken, 1, LONG, &found) == EINVAL);
	CHECK(strstr(found.reason, "two QPs are 0x"), "%s", found.reason);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(attr.send_cq));
	CHECK(!ibv_dealloc_pd(other_pd) && !ibv_close_device(other));

	/* a window has its own key always: one that is taken is not had */
	fake_next_handle(w.mr->lkey >> 8);
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	MUST(mw);
	real_mw = fake_newest(FAKE_MW);
	CHECK(fake_alive(FAKE_MW) == 1 && mw->rkey == real_mw->rkey);
	CHECK(mw->rkey >> 8 != w.mr->lkey >> 8);
	CHECK(!ibv_dealloc_mw(mw));
	world_destroy();
}

/* Its completions may be polled when it is gone, until another QP is the same. */
static void test_gone(void)
{
	struct ibv_qp *qp, *real;
	uint32_t name, was;
	struct ibv_wc wc;

	puts("completions of a QP that is destroyed");
	world_make();
	world_replace();
	name = w.qp->qp_num;
	was = w.real->qp_num;
	CHECK(name != was && !recv_one(w.qp, 1));
	fake_receive(w.real, 1);
	CHECK(!ibv_destroy_qp(w.qp));
	MUST(ibv_poll_cq(w.cq, 1, &wc) == 1);
	CHECK(wc.wr_id == 1 && wc.qp_num == name);

	fake_next_handle(was - 0x10000);
	qp = new_qp(IBV_QPT_RC, w.cq, &real);
	CHECK(real->qp_num == was && qp->qp_num == was && !recv_one(qp, 2));
	fake_receive(real, 1);
	MUST(ibv_poll_cq(w.cq, 1, &wc) == 1);
	CHECK(wc.wr_id == 2 && wc.qp_num == was);
	w.qp = qp;
	world_destroy();
}

/* --- keys that new regions cannot have --- */

static void check_own(struct ibv_mr *mr, uint32_t taken)
{
	struct ibv_mr *real = fake_newest(FAKE_MR);

	MUST(mr && real && mr != real);
	CHECK(mr->handle == real->handle && mr->handle != taken);
	CHECK(mr->lkey == real->lkey && mr->rkey == real->rkey);
}

/* one after the other */
static struct ibv_mr *region_of(int kind, struct ibv_pd *of, struct ibv_dm *dm)
{
	const int access = IBV_ACCESS_LOCAL_WRITE;

	switch (kind) {
	case 0:
		return ibv_reg_mr(of, w.memory, 8, access);
	case 1: /* ibv_reg_mr_iova2() */
		return ibv_reg_mr(of, w.memory, 8, IBV_ACCESS_RELAXED_ORDERING);
	case 2:
		return ibv_reg_mr_iova(of, w.memory, 8, 0x1000, access);
	case 3:
		return ibv_reg_dmabuf_mr(of, 0, 8, 0x2000, 9, access);
	case 4:
		return ibv_alloc_null_mr(of);
	case 5:
		return ibv_reg_dm_mr(of, dm, 0, 8, 0);
	default:
		return NULL;
	}
}

static void test_kinds(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	struct ibv_context *later;
	struct ibv_pd *later_pd;
	struct ibv_dm *dm;
	struct ibv_mr *mr;
	uint32_t taken;

	puts("regions of all kinds, of a context that is opened later");
	world_make();
	taken = w.mr->handle;
	world_replace();
	later = app_open(0);
	MUST(later_pd = ibv_alloc_pd(later));
	MUST(dm = ibv_alloc_dm(later, &attr));
	for (int kind = 0; kind < 6; kind++) {
		fake_next_handle(taken);
		mr = region_of(kind, later_pd, dm);
		check_own(mr, taken);
		CHECK(fake_alive(FAKE_MR) == 2, "kind %d", kind);
		CHECK(!ibv_dereg_mr(mr));
	}
	/* of one that is there already there is no other one, nor is it ours to end */
	fake_next_handle(taken);
	fake_fail("ibv_dereg_mr", EBUSY);
	FAILS_WITH(ENOMEM, ibv_import_mr(later_pd, 6));
	CHECK(fake_alive(FAKE_MR) == 1);
	CHECK(ibv_dereg_mr(w.mr) == EBUSY);
	CHECK(!ibv_free_dm(dm));
	CHECK(!ibv_dealloc_pd(later_pd) && !ibv_close_device(later));
	world_destroy();
}

static struct ibv_mr *new_region(uint32_t index)
{
	fake_next_handle(index);
	return ibv_reg_mr(pd, w.memory, 8, 0);
}

static void test_spares(void)
{
	enum {
		MANY = 150
	};
	struct ibv_mr *mr[MANY], *late;
	struct ibv_mw *mw;
	unsigned int alive;
	uint32_t first;

	puts("many in a row");
	world_make();
	for (int i = 0; i < MANY; i++)
		MUST(mr[i] = ibv_reg_mr(pd, w.memory, 8, 0));
	first = mr[0]->handle;
	CHECK(mr[MANY - 1]->handle == first + MANY - 1);
	world_replace();
	alive = fake_alive(FAKE_MR);
	for (int i = 0; i < 2; i++) {
		fake_last.mrs_at_once = 0;
		if (i) /* there is no room for more of them */
			fake_fail_later("ibv_reg_mr", ENOMEM, 10);
		late = new_region(first);
		check_own(late, first);
		CHECK(late->handle == first + MANY);
		CHECK(fake_last.mrs_at_once == alive + MANY + 1 - 10 * i, "%u",
		      fake_last.mrs_at_once);
		CHECK(fake_alive(FAKE_MR) == alive + 1);
		CHECK(!ibv_dereg_mr(late));
	}
	/* those that it has got back come first: all of them are held */
	fake_reuses = true;
	for (int i = 0; i < 2; i++) {
		late = new_region(first);
		check_own(late, first);
		CHECK(late->handle == first + MANY);
		CHECK(!ibv_dereg_mr(late));
		fake_next_handle(first);
		MUST(mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2));
		CHECK(fake_alive(FAKE_MR) == alive);
		CHECK(mw->handle == first + MANY && fake_alive(FAKE_MW) == 1);
		CHECK(!ibv_dealloc_mw(mw));
	}
	fake_reuses = false;
	/* nor for one without them */
	fake_fail_later("ibv_reg_mr", EAGAIN, 10);
	fake_fail_times("ibv_reg_mr", EAGAIN, 2);
	FAILS_WITH(EAGAIN, new_region(first));
	CHECK(fake_alive(FAKE_MR) == alive);
	/* a device that gives always the same */
	fake_same_handle = true;
	FAILS_WITH(ENOMEM, new_region(first));
	fake_same_handle = false;
	CHECK(fake_alive(FAKE_MR) == alive);
	for (int i = 0; i < MANY; i++)
		CHECK(!ibv_dereg_mr(mr[i]));
	world_destroy();
}

/* peers have one table for all of a process */
static void test_closed(void)
{
	struct ibv_context *other;
	struct ibv_pd *other_pd;
	struct ibv_mr *mr;
	uint32_t taken;

	puts("keys of a context that is closed");
	world_make();
	other = app_open(0);
	MUST(other_pd = ibv_alloc_pd(other));
	MUST(mr = ibv_reg_mr(other_pd, w.memory, 8, 0));
	taken = mr->handle;
	world_replace();
	CHECK(!ibv_dereg_mr(mr));
	CHECK(!ibv_dealloc_pd(other_pd) && !ibv_close_device(other));
	world_look();
	mr = new_region(taken);
	check_own(mr, taken);
	CHECK(!ibv_dereg_mr(mr));
	world_destroy();
}

static void test_failed(void)
{
	struct ibv_mr *mr;
	uint32_t taken;

	puts("after a replacement that has failed");
	world_make();
	taken = w.mr->handle;
	world_replace();
	CHECK(!ibv_dereg_mr(w.mr));
	MUST(w.mr = ibv_reg_mr(pd, w.memory, 8, 0));
	suspend();
	fake_fail("ibv_query_qp", EAGAIN);
	CHECK(layer_replace(NULL, 0, LONG, &swapped) == EAGAIN);
	resume();
	mr = new_region(taken);
	check_own(mr, taken);
	CHECK(!ibv_dereg_mr(mr));
	world_destroy();
}

/* that of the world, and its real one */
static void check_reachable(unsigned int n)
{
	CHECK(!write_one(w.qp, 1, 0));
	CHECK(fake_sent(w.real, n)->sge[0].lkey == to_mr(w.mr)->real->lkey);
	fake_finish(w.real, 1, IBV_WC_SUCCESS);
	POLLED(w.cq, 1, 1);
}

static void test_changed(void)
{
	const int what = IBV_REREG_MR_CHANGE_ACCESS;
	uint32_t taken, index;
	struct ibv_mr *mr, *next;

	puts("a region that is changed, and comes to have such keys");
	world_make();
	taken = w.mr->handle;
	world_replace();
	MUST(mr = new_region(taken - 1));
	for (int i = 0; i < 0x0f; i++) {
		CHECK(!ibv_rereg_mr(mr, what, NULL, NULL, 0, 0));
		check_own(mr, taken);
	}
	CHECK(ibv_rereg_mr(mr, what, NULL, NULL, 0, 0) == IBV_REREG_MR_ERR_CMD);
	CHECK(errno == EEXIST);
	CHECK(to_mr(mr)->real->lkey >> 8 == taken);
	CHECK(mr->lkey >> 8 != taken && mr->rkey >> 8 != taken);
	check_reachable(0);
	CHECK(!ibv_dereg_mr(mr));
	check_reachable(1);

	puts("one whose keys are another's before it is through with its end");
	index = taken + 1000;
	MUST(mr = new_region(index));
	MUST(next = new_region(index));
	CHECK(mr->lkey == next->lkey && !ibv_dereg_mr(mr));
	CHECK(!ibv_dereg_mr(w.mr));
	w.mr = next;
	check_reachable(2);
	world_destroy();
}

int main(void)
{
	rig_open();
	test_ex(0);
	test_ex(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP);
	test_taken();
	test_gone();
	test_kinds();
	test_spares();
	test_closed();
	test_failed();
	test_changed();
	return rig_close();
}
