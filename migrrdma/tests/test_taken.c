// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completions that the layer has taken come first, as they were
 */
#include "suspend_rig.h"

/* --- completions --- */

static void test_taken(void)
{
	struct ibv_qp *qp, *real;
	struct ibv_cq *cq, *real_cq;
	struct ibv_wc wc[8];

	puts("completions that are taken");
	for (int at_once = 1; at_once <= 9; at_once++) {
		cq = new_cq(16, &real_cq);
		qp = new_qp(IBV_QPT_RC, cq, &real);
		for (unsigned int i = 1; i <= 3; i++)
			CHECK(!send_one(qp, i, IBV_SEND_SIGNALED));
		fake_received(real, 11, 100);
		suspend(); /* finishes the sends */
		CHECK(found.taken == 4 && !fake_completions(real_cq));
		fake_received(real, 12, 200);
		if (at_once & 1) {
			resume();
			fake_received(real, 13, 300);
			POLLED(cq, at_once, 11, 1, 2, 3, 12, 13);
		} else {
			POLLED(cq, at_once, 11, 1, 2, 3, 12);
			resume();
			fake_received(real, 13, 300);
			POLLED(cq, at_once, 13);
		}
		check_direct(cq, real_cq);
		CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
	}

	/* everything that is in them; and more than are taken at once */
	cq = new_cq(64, &real_cq);
	qp = new_qp(IBV_QPT_RC, cq, &real);
	for (unsigned int i = 0; i < 50; i++)
		fake_received(real, i, 1000 + i);
	CHECK(!send_one(qp, 50, IBV_SEND_SIGNALED));
	suspend();
	CHECK(found.taken == 51);
	fake_received(real, 51, 7);
	CHECK(ibv_poll_cq(cq, 0, wc) == 0);
	for (unsigned int i = 0; i < 52; i++) {
		MUST(ibv_poll_cq(cq, 1, wc) == 1);
		CHECK(wc[0].wr_id == i && wc[0].status == IBV_WC_SUCCESS);
		CHECK(wc[0].qp_num == qp->qp_num);
		CHECK(wc[0].opcode == (i == 50 ? IBV_WC_SEND : IBV_WC_RECV));
		CHECK(i >= 50 || wc[0].byte_len == 1000 + i);
		if (i == 20)
			resume();
	}
	check_direct(cq, real_cq);

	/* suspended again before they are polled; the CQ goes with some of them */
	fake_received(real, 60, 1);
	suspend();
	resume();
	fake_received(real, 61, 1);
	suspend();
	CHECK(found.taken == 2);
	resume();
	CHECK(ibv_poll_cq(cq, 1, wc) == 1 && wc[0].wr_id == 60);
	fake_fail("poll_cq", EIO); /* what it has it gives, and then tells */
	CHECK(ibv_poll_cq(cq, 8, wc) == 1 && wc[0].wr_id == 61);
	fake_received(real, 62, 1);
	suspend();
	resume();
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
}

static void complete(struct ibv_cq *real, uint32_t id, bool well)
{
	struct ibv_wc wc = {
		.wr_id = id,
		.status = well ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR,
		.opcode = IBV_WC_RECV_RDMA_WITH_IMM,
		.vendor_err = id + 1,
		.byte_len = id + 2,
		.imm_data = id + 3,
		.qp_num = id + 4,
		.src_qp = id + 5,
		.wc_flags = IBV_WC_GRH | IBV_WC_WITH_IMM,
		.slid = (uint16_t)(id + 7),
		.sl = (uint8_t)(id + 8),
		.dlid_path_bits = (uint8_t)(id + 9),
	};

	fake_complete(real, &wc);
}

static void check_ex(struct ibv_cq_ex *ex, uint32_t id, bool well)
{
	struct ibv_wc_tm_info tm;

	CHECK(ex->wr_id == id, "%#llx, not %u", (unsigned long long)ex->wr_id,
	      id);
	CHECK(ex->status == (well ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR));
	CHECK(ibv_wc_read_vendor_err(ex) == id + 1);
	CHECK(ibv_wc_read_qp_num(ex) == id + 4);
	if (!well)
		return;
	CHECK(ibv_wc_read_opcode(ex) == IBV_WC_RECV_RDMA_WITH_IMM);
	CHECK(ibv_wc_read_byte_len(ex) == id + 2);
	CHECK(ibv_wc_read_imm_data(ex) == id + 3);
	CHECK(ibv_wc_read_src_qp(ex) == id + 5);
	CHECK(ibv_wc_read_wc_flags(ex) == (IBV_WC_GRH | IBV_WC_WITH_IMM));
	CHECK(ibv_wc_read_slid(ex) == (uint16_t)(id + 7));
	CHECK(ibv_wc_read_sl(ex) == (uint8_t)(id + 8));
	CHECK(ibv_wc_read_dlid_path_bits(ex) == (uint8_t)(id + 9));
	CHECK(ibv_wc_read_completion_ts(ex) == ((uint64_t)id << 32 | 1));
	CHECK(ibv_wc_read_cvlan(ex) == (uint16_t)(id + 2));
	CHECK(ibv_wc_read_flow_tag(ex) == id + 3);
	CHECK(ibv_wc_read_completion_wallclock_ns(ex) ==
	      ((uint64_t)id << 32 | 4));
	ibv_wc_read_tm_info(ex, &tm);
	CHECK(tm.tag == id + 5 && tm.priv == id + 6);
}

#define EX_ALL                                                         \
	(IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | \
	 IBV_WC_EX_WITH_CVLAN | IBV_WC_EX_WITH_FLOW_TAG |              \
	 IBV_WC_EX_WITH_TM_INFO |                                      \
	 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

static void test_taken_ex(void)
{
	struct ibv_poll_cq_attr attr = { 0 }, wrong = { .comp_mask = 1 };
	struct ibv_qp *qp, *real;
	struct ibv_cq *real_cq;
	struct ibv_cq_ex *ex;

	puts("completions that are taken of extended CQs");
	ex = new_cq_ex(EX_ALL, &real_cq);
	qp = new_qp(IBV_QPT_RC, ibv_cq_ex_to_cq(ex), &real);
	for (uint32_t id = 1; id <= 6; id++)
		complete(real_cq, id, id != 3);
	suspend();
	CHECK(found.taken == 6 && found.markers == 1);
	CHECK(ibv_start_poll(ex, &wrong) == EINVAL);
	CHECK(!ibv_start_poll(ex, &attr));
	check_ex(ex, 1, true);
	ibv_end_poll(ex);
	CHECK(!ibv_start_poll(ex, &attr));
	check_ex(ex, 2, true);
	CHECK(!ibv_next_poll(ex));
	check_ex(ex, 3, false);
	complete(real_cq, 7, true);
	for (uint32_t id = 4; id <= 7; id++) {
		CHECK(!ibv_next_poll(ex));
		check_ex(ex, id, true);
	}
	CHECK(ibv_next_poll(ex) == ENOENT);
	ibv_end_poll(ex);
	CHECK(ibv_start_poll(ex, &attr) == ENOENT);
	complete(real_cq, 8, true);
	resume();
	complete(real_cq, 9, true);
	CHECK(!ibv_start_poll(ex, &attr));
	check_ex(ex, 8, true);
	CHECK(!ibv_next_poll(ex));
	check_ex(ex, 9, true);
	CHECK(ibv_next_poll(ex) == ENOENT);
	ibv_end_poll(ex);
	complete(real_cq, 10, true);
	CHECK(!ibv_start_poll(ex, &attr));
	SAW("start_poll", real_cq, &attr); /* it is the provider's again */
	check_ex(ex, 10, true);
	ibv_end_poll(ex);

	/* a marker that nobody but the application polls, between two others */
	prompt = false;
	CHECK(!send_one(qp, 20, IBV_SEND_SIGNALED));
	CHECK(layer_suspend(1, &found) == ETIMEDOUT);
	CHECK(!send_one(qp, 21, IBV_SEND_SIGNALED));
	fake_finish(real, 3, IBV_WC_SUCCESS);
	CHECK(!ibv_start_poll(ex, &attr) && ex->wr_id == 20);
	CHECK(!ibv_next_poll(ex) && ex->wr_id == 21);
	CHECK(ibv_next_poll(ex) == ENOENT);
	ibv_end_poll(ex);
	CHECK(ibv_start_poll(ex, &attr) == ENOENT);
	SAW("start_poll", real_cq, &attr);
	prompt = true;

	/* the same CQ as a plain one */
	CHECK(!send_one(qp, 22, IBV_SEND_SIGNALED));
	suspend();
	POLLED(ibv_cq_ex_to_cq(ex), 4, 22);
	resume();
	CHECK(!ibv_destroy_qp(qp));
	CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(ex)));
	/* what was not asked for is not there */
	ex = new_cq_ex(IBV_WC_EX_WITH_QP_NUM, &real_cq);
	qp = new_qp(IBV_QPT_RC, ibv_cq_ex_to_cq(ex), &real);
	complete(real_cq, 1, true);
	suspend();
	CHECK(!ibv_start_poll(ex, &attr));
	CHECK(ex->read_qp_num && !ex->read_byte_len && !ex->read_tm_info);
	CHECK(ibv_wc_read_qp_num(ex) == 5);
	ibv_end_poll(ex);
	resume();
	CHECK(!ibv_destroy_qp(qp));
	CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(ex)));
}

/* Others poll meanwhile, and take the last one: the batch is the layer's until its end. */
static void test_last(void)
{
	struct ibv_poll_cq_attr attr = {};
	struct ibv_cq *cq, *real_cq;
	struct ibv_cq_ex *ex;
	struct ibv_wc wc;

	puts("a batch that goes on when all are taken");
	ex = new_cq_ex(0, &real_cq);
	cq = ibv_cq_ex_to_cq(ex);
	complete(real_cq, 1, true);
	complete(real_cq, 2, true);
	suspend();
	CHECK(!ibv_start_poll(ex, &attr) && ex->wr_id == 1);
	resume();
	CHECK(ibv_poll_cq(cq, 1, &wc) == 1 && wc.wr_id == 2);
	CHECK(to_cq(cq)->slow & CQ_SLOW);
	CHECK(ibv_next_poll(ex) == ENOENT);
	ibv_end_poll(ex);
	CHECK(!(to_cq(cq)->slow & CQ_SLOW));
	complete(real_cq, 3, true);
	CHECK(!ibv_start_poll(ex, &attr) && ex->wr_id == 3);
	ibv_end_poll(ex);
	CHECK(!ibv_destroy_cq(cq));
}

/* A provider forgets them, and so does the layer. */
static void test_gone(bool destroy)
{
	struct ibv_qp *a, *b, *real_a, *real_b;
	struct ibv_cq *cq, *real_cq;

	puts(destroy ? "completions of a QP that is destroyed" : "or reset");
	cq = new_cq(16, &real_cq);
	a = new_qp(IBV_QPT_RC, cq, &real_a);
	b = new_qp(IBV_QPT_RC, cq, &real_b);
	for (unsigned int i = 1; i <= 3; i++)
		CHECK(!send_one(i == 2 ? b : a, i, IBV_SEND_SIGNALED));
	suspend();
	CHECK(found.taken == 3);
	resume();
	if (destroy)
		CHECK(!ibv_destroy_qp(a));
	else
		set_state(a, IBV_QPS_RESET);
	POLLED(cq, 4, 2);
	check_nothing(cq);
	if (!destroy)
		CHECK(!ibv_destroy_qp(a));
	CHECK(!ibv_destroy_qp(b) && !ibv_destroy_cq(cq));
}

int main(void)
{
	rig_open();
	test_taken();
	test_taken_ex();
	test_last();
	test_gone(true);
	test_gone(false);
	return rig_close();
}
