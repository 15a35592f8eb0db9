// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What counts as bound when a process is replaced: what was done, by whomever
 */
#include <sched.h>

#include "windows_rig.h"

/* of type 2, bound and not, by lists of requests */
static void test_posted(void)
{
	struct ibv_mw *mw[4];
	struct ibv_send_wr wr[3], *bad;

	puts("posted");
	windows_make();
	for (int i = 0; i < 4; i++)
		mw[i] = new_window(IBV_MW_TYPE_2);
	CHECK(!bind_2(w.qp, mw[0]));
	CHECK(!bind_2(w.qp, mw[1]) && !invalidate(w.qp, mw[1]));
	CHECK(!bind_2(w.of_srq, mw[2]) && !invalidate(w.of_srq, mw[2]));
	CHECK(!bind_2(w.of_srq, mw[2]));
	world_replace();
	IS_BOUND(mw[0], w.qp);
	IS_FREE(mw[1]);
	IS_BOUND(mw[2], w.of_srq);
	IS_FREE(mw[3]);

	puts("of a list, that before the one that is refused");
	wr[0] = inv_wr(mw[0]->rkey);
	wr[1] = bind_wr(mw[1], BYTES);
	wr[2] = bind_wr(mw[3], BYTES);
	wr[0].next = &wr[1];
	wr[1].next = &wr[2];
	fake_refuse(w.real, 2, EINVAL);
	CHECK(ibv_post_send(w.qp, wr, &bad) == EINVAL && bad == &wr[2]);
	mw[1]->rkey = wr[1].bind_mw.rkey;
	world_replace();
	IS_FREE(mw[0]);
	IS_BOUND(mw[1], w.qp);
	IS_FREE(mw[3]);

	puts("and nothing that is refused changes what was");
	wr[0] = inv_wr(mw[1]->rkey);
	wr[1] = bind_wr(mw[1], BYTES);
	wr[0].next = &wr[1];
	fake_refuse(w.real, 0, EINVAL);
	CHECK(ibv_post_send(w.qp, wr, &bad) == EINVAL && bad == wr);
	world_replace();
	IS_BOUND(mw[1], w.qp);
	check_nothing(w.cq);
	for (int i = 0; i < 4; i++)
		CHECK(!ibv_dealloc_mw(mw[i]));
	world_destroy();
}

static void test_type_1(void)
{
	struct ibv_mw *mw[3];

	puts("of type 1");
	windows_make();
	for (int i = 0; i < 3; i++)
		mw[i] = new_window(IBV_MW_TYPE_1);
	CHECK(!bind_1(w.qp, mw[0], BYTES) && !bind_1(w.of_srq, mw[0], BYTES));
	CHECK(!bind_1(w.qp, mw[1], BYTES) && !bind_1(w.qp, mw[1], 0));
	fake_fail("bind_mw", ENOMEM);
	CHECK(bind_1(w.qp, mw[2], BYTES) == ENOMEM);
	world_replace();
	IS_BOUND(mw[0], w.of_srq);
	IS_FREE(mw[1]);
	IS_FREE(mw[2]);
	/* what is not posted changes nothing */
	fake_fail("bind_mw", ENOMEM);
	CHECK(bind_1(w.qp, mw[0], 0) == ENOMEM);
	CHECK(!bind_1(w.qp, mw[1], BYTES));
	IS_BOUND(mw[1], w.qp);
	world_replace();
	IS_BOUND(mw[0], w.qp);
	IS_BOUND(mw[1], w.qp);
	check_nothing(w.cq);
	for (int i = 0; i < 3; i++)
		CHECK(!ibv_dealloc_mw(mw[i]));
	world_destroy();
}

/* --- ibv_wr_*() --- */

static void begin(struct ibv_qp_ex *ex)
{
	ibv_wr_start(ex);
	ex->wr_id = 5;
	ex->wr_flags = 0;
}

static void add_bind(struct ibv_qp_ex *ex, struct ibv_mw *mw)
{
	struct ibv_send_wr wr = bind_wr(mw, BYTES);

	ibv_wr_bind_mw(ex, mw, wr.bind_mw.rkey, &wr.bind_mw.bind_info);
}

static void test_batches(void)
{
	struct ibv_mw *mw[7];
	struct ibv_qp_ex *ex;
	struct ibv_qp *qp, *real;

	puts("in batches");
	windows_make();
	for (int i = 0; i < 7; i++)
		mw[i] = new_window(IBV_MW_TYPE_2);
	MUST(qp = new_qp_ex(IBV_QPT_RC, w.cq, EX_OPS, &real));
	set_state(qp, IBV_QPS_RESET);
	to_rts(qp);
	ex = ibv_qp_to_qp_ex(qp);
	begin(ex); /* more than there was room for at first */
	for (int i = 0; i < 5; i++) {
		add_bind(ex, mw[i]);
		mw[i]->rkey = ibv_inc_rkey(mw[i]->rkey);
	}
	ibv_wr_local_inv(ex, mw[0]->rkey);
	CHECK(!ibv_wr_complete(ex));
	fake_finish(real, UINT_MAX, IBV_WC_SUCCESS);
	begin(ex);
	ibv_wr_local_inv(ex, mw[2]->rkey);
	add_bind(ex, mw[6]);
	fake_fail("wr_complete", ENOMEM);
	CHECK(ibv_wr_complete(ex) == ENOMEM);
	begin(ex);
	add_bind(ex, mw[5]);
	ibv_wr_local_inv(ex, mw[1]->rkey);
	ibv_wr_abort(ex);
	begin(ex); /* with none of them */
	ibv_wr_send(ex);
	CHECK(!ibv_wr_complete(ex));
	fake_finish(real, UINT_MAX, IBV_WC_SUCCESS);

	suspend();
	replace_all();
	tell_peers();
	CHECK(!layer_set_peer(qp->qp_num, 0x5003, &(union ibv_gid){}, "peer",
			      &swapped));
	CHECK(!layer_connect(&swapped), "%s", swapped.reason);
	resume();
	IS_FREE(mw[0]);
	for (int i = 1; i < 5; i++)
		IS_BOUND(mw[i], qp);
	IS_FREE(mw[5]);
	IS_FREE(mw[6]);

	puts("with names, and while they are collected");
	real = to_qp(qp)->real;
	ex = ibv_qp_to_qp_ex(qp);
	begin(ex);
	ibv_wr_local_inv(ex, mw[1]->rkey);
	add_bind(ex, mw[5]);
	CHECK(!ibv_wr_complete(ex));
	mw[5]->rkey = ibv_inc_rkey(mw[5]->rkey);
	fake_finish(real, UINT_MAX, IBV_WC_SUCCESS);
	IS_FREE(mw[1]);
	IS_BOUND(mw[5], qp);
	suspend();
	begin(ex);
	ibv_wr_local_inv(ex, mw[2]->rkey);
	add_bind(ex, mw[6]);
	CHECK(!ibv_wr_complete(ex));
	mw[6]->rkey = ibv_inc_rkey(mw[6]->rkey);
	/* and the next one already: it is the key of then that counts */
	ibv_wr_start(ex);
	ibv_wr_local_inv(ex, mw[6]->rkey);
	add_bind(ex, mw[6]);
	CHECK(!ibv_wr_complete(ex));
	mw[6]->rkey = ibv_inc_rkey(mw[6]->rkey);
	resume();
	IS_FREE(mw[2]);
	IS_BOUND(mw[6], qp);
	check_nothing(w.cq);
	CHECK(!invalidate(qp, mw[5]));
	for (int i = 0; i < 7; i++)
		CHECK(!ibv_dealloc_mw(mw[i]));
	CHECK(!ibv_destroy_qp(qp));
	world_destroy();
}

/* What is collected while all is suspended is posted to the new ones, and counts then. */
static void test_collected(void)
{
	struct ibv_mw *mw[3];

	puts("collected");
	windows_make();
	for (int i = 0; i < 3; i++)
		mw[i] = new_window(IBV_MW_TYPE_2);
	CHECK(!bind_2(w.qp, mw[0]));
	suspend();
	CHECK(!invalidate(w.qp, mw[0]) && !bind_2(w.qp, mw[1]));
	CHECK(!bind_2(w.qp, mw[0]));
	replace_all();
	CHECK(!bind_2(w.of_srq, mw[2]));
	connect_all();
	resume();
	IS_BOUND(mw[0], w.qp);
	IS_BOUND(mw[1], w.qp);
	IS_BOUND(mw[2], w.of_srq);

	puts("and refused then: it completes with that, and nothing is bound");
	CHECK(!invalidate(w.qp, mw[0]) && !invalidate(w.qp, mw[1]));
	suspend();
	CHECK(!bind_2(w.qp, mw[0]));
	mw[0]->rkey -= 1;
	at_once = false;
	fake_refuse(w.real, 0, EINVAL);
	resume();
	at_once = true;
	fake_finish(w.real, UINT_MAX, IBV_WC_SUCCESS);
	POLLED(w.cq, 4, 0);
	world_replace();
	IS_FREE(mw[0]);
	IS_FREE(mw[1]);
	IS_BOUND(mw[2], w.of_srq);
	for (int i = 0; i < 3; i++)
		CHECK(!ibv_dealloc_mw(mw[i]));
	world_destroy();
}

/* --- by the peer --- */

static void check_wc(struct ibv_mw *mw)
{
	struct ibv_wc wc;

	MUST(ibv_poll_cq(w.cq, 1, &wc) == 1);
	CHECK(wc.wc_flags & fake_inv_flag);
	CHECK(wc.invalidated_rkey == mw->rkey, "%#x", wc.invalidated_rkey);
	CHECK(wc.qp_num == w.qp->qp_num);
}

static void test_remote(unsigned int flag)
{
	struct ibv_mw *mw[4];

	printf("invalidated by the peer, as flag %u says\n", flag);
	fake_inv_flag = flag;
	windows_make();
	for (int i = 0; i < 4; i++) {
		mw[i] = new_window(IBV_MW_TYPE_2);
		CHECK(!bind_2(w.qp, mw[i]));
	}
	for (int i = 0; i < 2; i++) {
		/* polled, and taken before or while it is suspended */
		fake_invalidated(w.real, real_key_of(mw[i]));
		check_wc(mw[i]);
		fake_invalidated(w.real, real_key_of(mw[2 + i]));
		suspend();
		replace_all();
		check_wc(mw[2 + i]);
		connect_all();
		resume();
		for (int k = 0; k < 4; k++)
			if (k % 2 <= i)
				IS_FREE(mw[k]);
			else
				IS_BOUND(mw[k], w.qp);
	}
	/* a key of before is nobody's, of the new one, which has been bound since */
	CHECK(!bind_2(w.qp, mw[0]));
	fake_complete(w.real_cq,
		      &(struct ibv_wc){ .wc_flags = flag,
					.invalidated_rkey =
						real_key_of(mw[0]) - 1,
					.qp_num = w.real->qp_num });
	mw[0]->rkey--;
	check_wc(mw[0]);
	mw[0]->rkey++;
	world_replace();
	IS_BOUND(mw[0], w.qp);
	for (int i = 0; i < 4; i++)
		CHECK(!ibv_dealloc_mw(mw[i]));
	CHECK(!(to_cq(w.cq)->slow & CQ_WINDOWS));
	world_destroy();
}

/* @key: that was invalidated, if any; what the application has asked for is to be read */
static void next_wc(struct ibv_cq_ex *ex, uint32_t key, bool reads)
{
	struct ibv_poll_cq_attr attr = {};

	MUST(!ibv_start_poll(ex, &attr));
	CHECK(!(ibv_wc_read_wc_flags(ex) & IBV_WC_WITH_INV) == !key);
	if (reads && key)
		CHECK(ibv_wc_read_invalidated_rkey(ex) == key);
	else if (reads)
		CHECK(ibv_wc_read_imm_data(ex) == 99);
	ibv_end_poll(ex);
}

/* the second of two is met by ibv_next_poll() */
static void next_two(struct ibv_cq_ex *ex, uint32_t key, bool reads)
{
	struct ibv_poll_cq_attr attr = {};

	MUST(!ibv_start_poll(ex, &attr));
	CHECK(!reads || ibv_wc_read_imm_data(ex) == 99);
	MUST(!ibv_next_poll(ex));
	CHECK(!reads || ibv_wc_read_invalidated_rkey(ex) == key);
	CHECK(ibv_next_poll(ex) == ENOENT);
	ibv_end_poll(ex);
}

static void immediate(struct ibv_qp *real)
{
	const struct ibv_wc wc = { .wc_flags = IBV_WC_WITH_IMM,
				   .imm_data = 99,
				   .qp_num = real->qp_num };

	fake_complete(real->recv_cq, &wc);
}

/* @flags: what the application asks for; with a time the layer reads member by member */
static void test_ex(uint64_t flags)
{
	bool reads = flags & IBV_WC_EX_WITH_IMM;
	struct ibv_mw *mw[2];
	struct ibv_cq *real_cq;
	struct ibv_cq_ex *ex;
	struct ibv_qp *qp, *real;

	printf("on an extended CQ, %#llx\n", (unsigned long long)flags);
	windows_make();
	mw[0] = new_window(IBV_MW_TYPE_2);
	ex = new_cq_ex(flags, &real_cq);
	qp = new_qp(IBV_QPT_RC, ibv_cq_ex_to_cq(ex), &real);
	set_state(qp, IBV_QPS_RESET);
	to_rts(qp);
	mw[1] = new_window(IBV_MW_TYPE_2);
	for (int i = 0; i < 2; i++)
		CHECK(!bind_2(qp, mw[i]));
	for (int i = 0; i < 2; i++) {
		immediate(real);
		next_wc(ex, 0, reads);
		/* what is polled now is not taken by the layer before */
		immediate(real);
		fake_invalidated(real, real_key_of(mw[0]));
		next_two(ex, mw[0]->rkey, reads);
		immediate(real);
		next_wc(ex, 0, reads);
		fake_invalidated(real, real_key_of(mw[1]));
		suspend();
		replace_all();
		real = to_qp(qp)->real;
		next_wc(ex, mw[1]->rkey, reads);
		tell_peers();
		CHECK(!layer_set_peer(qp->qp_num, 0x5003, &(union ibv_gid){},
				      "peer", &swapped));
		CHECK(!layer_connect(&swapped), "%s", swapped.reason);
		resume();
		for (int k = 0; k < 2; k++) {
			IS_FREE(mw[k]);
			CHECK(!bind_2(qp, mw[k]));
		}
	}
	immediate(real);
	next_wc(ex, 0, reads);
	fake_invalidated(real, real_key_of(mw[0]));
	next_wc(ex, mw[0]->rkey, reads);
	for (int i = 0; i < 2; i++)
		CHECK(!ibv_dealloc_mw(mw[i]));
	/* there are none any more */
	immediate(real);
	next_wc(ex, 0, reads);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(ibv_cq_ex_to_cq(ex)));
	world_destroy();
}

/* --- what ends a binding --- */

static void test_ends(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_mw *one, *two, *three;
	struct ibv_qp *qp, *real;

	puts("QPs and regions that are gone");
	windows_make();
	one = new_window(IBV_MW_TYPE_1);
	two = new_window(IBV_MW_TYPE_2);
	three = new_window(IBV_MW_TYPE_2);
	qp = new_qp(IBV_QPT_RC, w.cq, &real);
	CHECK(!bind_1(qp, one, BYTES) && !bind_2(qp, two));
	CHECK(ibv_dereg_mr(w.mr) == EBUSY && ibv_destroy_qp(qp) == EBUSY);
	fake_binds = false; /* there are providers that allow it */
	CHECK(!ibv_destroy_qp(qp));
	fake_binds = true;
	CHECK(!bind_2(w.of_srq, three));
	set_state(w.of_srq, IBV_QPS_ERR);
	world_replace();
	IS_BOUND(one, w.qp);
	IS_FREE(two);
	IS_FREE(three);
	CHECK(!bind_2(w.qp, two) && !bind_2(w.qp, three));
	IS_BOUND(two, w.qp);
	IS_BOUND(three, w.qp);

	puts("and one that is in ERR, which nobody knows");
	set_state(w.of_srq, IBV_QPS_RESET);
	to_rts(w.of_srq);
	MUST(!ibv_modify_qp(w.real, &attr, IBV_QP_STATE));
	world_replace();
	IS_BOUND(one, w.of_srq);
	IS_FREE(two);
	IS_FREE(three);
	fake_binds = false;
	CHECK(!ibv_dereg_mr(w.mr));
	fake_binds = true;
	MUST(w.mr = ibv_reg_mr(pd, w.memory, sizeof(w.memory), 0));
	world_replace();
	IS_FREE(one);
	IS_FREE(two);
	CHECK(!ibv_dealloc_mw(one) && !ibv_dealloc_mw(two));
	CHECK(!ibv_dealloc_mw(three));
	world_destroy();
}

/* --- threads: each has its windows, and they share the context and a CQ --- */

enum {
	ROUNDS = 200,
	OWN = 4
};

static void *bind_many(void *arg)
{
	struct ibv_qp *qp = arg;
	struct ibv_mw *mw[OWN];

	for (int i = 0; i < ROUNDS; i++) {
		while (fake_completions(w.real_cq) > 2 * OWN)
			sched_yield();
		for (int k = 0; k < OWN; k++) {
			mw[k] = new_window(IBV_MW_TYPE_2);
			CHECK(!bind_2(qp, mw[k]));
		}
		for (int k = 0; k < OWN; k++) {
			if (k % 2) /* the peer does it, or this end */
				fake_invalidated(to_qp(qp)->real, mw[k]->rkey);
			else
				CHECK(!invalidate(qp, mw[k]));
		}
		for (int k = 0; k < OWN; k++)
			CHECK(!ibv_dealloc_mw(mw[k]));
	}
	return NULL;
}

static void test_threads(void)
{
	struct ibv_qp *qps[] = { NULL, NULL };
	unsigned int left = 2 * ROUNDS * OWN / 2;
	struct ibv_mw *mw;
	pthread_t threads[2];
	struct ibv_wc wc;
	int n;

	puts("threads");
	windows_make();
	mw = new_window(IBV_MW_TYPE_2);
	qps[0] = w.qp;
	qps[1] = w.of_srq;
	CHECK(!bind_2(w.qp, mw));
	for (int i = 0; i < 2; i++)
		MUST(!pthread_create(&threads[i], NULL, bind_many, qps[i]));
	while (left) {
		n = ibv_poll_cq(w.cq, 1, &wc);
		MUST(n >= 0);
		CHECK(!n || wc.wc_flags & IBV_WC_WITH_INV);
		left -= (unsigned int)n;
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	world_replace();
	IS_BOUND(mw, w.qp);
	CHECK(!ibv_dealloc_mw(mw));
	world_destroy();
}

int main(void)
{
	rig_open();
	test_posted();
	test_type_1();
	test_batches();
	test_collected();
	test_remote(IBV_WC_IP_CSUM_OK);
	test_remote(IBV_WC_WITH_INV);
	test_ex(0);
	test_ex(IBV_WC_EX_WITH_IMM);
	test_ex(IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP);
	test_ends();
	test_threads();
	return rig_close();
}
