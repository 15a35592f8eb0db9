// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory windows of processes that are replaced, and of their partners
 */
#include <sys/socket.h>

#include "tell.h"
#include "windows_rig.h"

enum {
	MANY = 20
};

/* the answer to `names` has this key */
static bool told(uint32_t virtual, uint32_t real)
{
	char answer[16384] = "", key[64];
	size_t n = 0;
	ssize_t got;
	int fd[2];

	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
	CHECK(!tell_names(fd[0]));
	close(fd[0]);
	while ((got = read(fd[1], answer + n, sizeof(answer) - 1 - n)) > 0)
		n += (size_t)got;
	close(fd[1]);
	snprintf(key, sizeof(key), "{\"virtual\": %u, \"real\": %u}", virtual,
		 real);
	return strstr(answer, key);
}

/* Send queues are small, and nothing of that is the application's to see. */
static void test_many(void)
{
	struct ibv_mw *mw[MANY], *type_1;
	uint32_t keys[MANY];

	puts("many, again and again");
	fake_exact = true;
	windows_make();
	for (int i = 0; i < MANY; i++) {
		mw[i] = new_window(IBV_MW_TYPE_2);
		for (int k = 0; k < i; k++) /* with other keys each */
			CHECK(!bind_2(w.qp, mw[i]) && !invalidate(w.qp, mw[i]));
		if (i % 3)
			CHECK(!bind_2(i % 2 ? w.qp : w.of_srq, mw[i]));
		keys[i] = mw[i]->rkey;
	}
	type_1 = new_window(IBV_MW_TYPE_1);
	CHECK(!bind_1(w.qp, type_1, BYTES));
	for (int round = 0; round < 3; round++) {
		CHECK(told(keys[1], real_key_of(mw[1])));
		suspend();
		replace_all();
		/* before they are connected, those that they will have */
		for (int i = 0; i < MANY; i++)
			CHECK(told(keys[i], real_key_of(mw[i])));
		CHECK(told(type_1->rkey, real_key_of(type_1)));
		CHECK(!fake_window(to_mw(mw[1])->real).valid);
		CHECK(layer_resume(&found) == EBUSY);
		connect_all();
		resume();
		check_nothing(w.cq);
		for (int i = 0; i < MANY; i++) {
			CHECK(mw[i]->rkey == keys[i]);
			if (i % 3)
				IS_BOUND(mw[i], i % 2 ? w.qp : w.of_srq);
			else
				IS_FREE(mw[i]);
		}
		IS_BOUND(type_1, w.qp);
		CHECK(fake_alive(FAKE_MW) == MANY + 1);
	}
	/* what has been told is so still, with the next keys */
	keys[1] = real_key_of(mw[1]);
	CHECK(!invalidate(w.qp, mw[1]) && !bind_2(w.qp, mw[1]));
	CHECK(real_key_of(mw[1]) == ibv_inc_rkey(keys[1]));
	IS_BOUND(mw[1], w.qp);
	keys[0] = type_1->rkey;
	CHECK(!bind_1(w.qp, type_1, BYTES));
	CHECK(type_1->rkey == ibv_inc_rkey(keys[0]));
	IS_BOUND(type_1, w.qp);
	for (int i = 0; i < MANY; i++)
		CHECK(!ibv_dealloc_mw(mw[i]));
	CHECK(!ibv_dealloc_mw(type_1));
	world_destroy();
	fake_exact = false;
}

/* They have names of their own, and are found by them. */
static void test_later(void)
{
	struct ibv_mw *mw[3], *late;
	struct ibv_mr *mr;
	uint32_t index;

	puts("allocated later");
	windows_make();
	for (int i = 0; i < 3; i++) {
		mw[i] = new_window(IBV_MW_TYPE_2);
		CHECK(!bind_2(w.qp, mw[i]));
	}
	index = mw[1]->rkey >> 8;
	world_replace();
	fake_next_handle(index);
	late = new_window(IBV_MW_TYPE_2);
	CHECK(late->rkey >> 8 != index && late->rkey == real_key_of(late));
	CHECK(fake_alive(FAKE_MW) == 4);
	fake_next_handle(index); /* nor is it a region's */
	MUST(mr = ibv_reg_mr(pd, w.memory, sizeof(w.memory), 0));
	CHECK(mr->lkey >> 8 != index && mr->rkey >> 8 != index);
	CHECK(!ibv_dereg_mr(mr));
	CHECK(!bind_2(w.of_srq, late));
	/* the first one makes room, and others are found as before */
	CHECK(!ibv_dealloc_mw(mw[0]));
	CHECK(!invalidate(w.of_srq, late) && !invalidate(w.qp, mw[2]));
	world_replace();
	IS_BOUND(mw[1], w.qp);
	IS_FREE(mw[2]);
	IS_FREE(late);
	CHECK(!ibv_dealloc_mw(late));
	/* an index that was a name is free again when peers know that it is none */
	CHECK(!ibv_dealloc_mw(mw[1]));
	for (unsigned int i = 0; i < 2; i++) {
		fake_next_handle(index);
		mw[1] = new_window(IBV_MW_TYPE_2);
		CHECK(mw[1]->rkey == real_key_of(mw[1]));
		CHECK((mw[1]->rkey >> 8 == index) == i);
		CHECK(fake_alive(FAKE_MW) == 2 && !bind_2(w.qp, mw[1]));
		fake_next_handle(index + 1000 * (i + 1));
		world_replace();
		IS_BOUND(mw[1], w.qp);
		if (!i)
			CHECK(!ibv_dealloc_mw(mw[1]));
	}
	CHECK(!ibv_dealloc_mw(mw[1]) && !ibv_dealloc_mw(mw[2]));
	world_destroy();
}

static void test_other_host(void)
{
	struct ibv_mw *mw, *type_1;

	puts("on another host");
	windows_make();
	mw = new_window(IBV_MW_TYPE_2);
	type_1 = new_window(IBV_MW_TYPE_1);
	CHECK(!bind_2(w.qp, mw) && !bind_1(w.of_srq, type_1, BYTES));
	hold(100);
	world_leaves_host();
	replace_all();
	world_is_back();
	connect_all();
	resume();
	IS_BOUND(mw, w.qp);
	IS_BOUND(type_1, w.of_srq);
	CHECK(!ibv_dealloc_mw(mw) && !ibv_dealloc_mw(type_1));
	world_destroy();
}

/* --- what fails --- */

static void connect_fails(const struct ibv_mw *mw, const char *why)
{
	char reason[80];

	snprintf(reason, sizeof(reason),
		 "memory window 0x%08x is not bound: %s", mw->rkey, why);
	tell_peers();
	CHECK(layer_connect(&swapped));
	CHECK(strstr(swapped.reason, reason), "%s", swapped.reason);
	CHECK(layer_resume(&found) == EBUSY);
}

static void test_failures(void)
{
	struct ibv_mw *mw[3];

	puts("failures");
	windows_make();
	for (int i = 0; i < 3; i++) {
		mw[i] = new_window(i ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1);
		if (i)
			CHECK(!bind_2(i == 1 ? w.qp : w.of_srq, mw[i]));
	}
	CHECK(!bind_1(w.qp, mw[0], BYTES));
	for (int i = 0; i < 4; i++) {
		suspend();
		fake_fail_later("alloc_mw", ENOMEM, 1);
		CHECK(layer_replace(NULL, 0, LONG, &swapped) == ENOMEM);
		CHECK(strstr(swapped.reason, "no other memory window"), "%s",
		      swapped.reason);
		CHECK(fake_alive(FAKE_MW) == 3);
		replace_all();
		if (i == 0)
			fake_fail("bind_mw", EINVAL);
		else if (i == 1) /* behind the other one */
			fake_refuse(w.real, 1, EINVAL);
		else if (i == 2)
			fake_refuse(w.real_srq, 0, EINVAL);
		else /* posted, but not done */
			done_with = IBV_WC_MW_BIND_ERR;
		connect_fails(mw[i % 3],
			      i < 3 ? "Invalid" : "completion status 6");
		done_with = IBV_WC_SUCCESS;
		CHECK(!layer_connect(&swapped), "%s", swapped.reason);
		resume();
		for (int k = 0; k < 3; k++)
			IS_BOUND(mw[k], k == 2 ? w.of_srq : w.qp);
		check_nothing(w.cq);
	}

	puts("given up: of those that are not bound QPs are lost");
	suspend();
	replace_all();
	fake_refuse(w.real, 1, EINVAL);
	connect_fails(mw[1], "");
	layer_give_up();
	CHECK(w.real->state == IBV_QPS_ERR);
	CHECK(w.real_srq->state == IBV_QPS_RTS);
	IS_BOUND(mw[0], w.qp);
	IS_FREE(mw[1]);
	IS_BOUND(mw[2], w.of_srq);
	CHECK(!bind_2(w.of_srq, mw[1]));
	IS_BOUND(mw[1], w.of_srq);

	puts("and when they are not connected all");
	suspend();
	replace_all();
	layer_give_up();
	for (int i = 0; i < 3; i++) {
		IS_FREE(mw[i]);
		CHECK(!ibv_dealloc_mw(mw[i]));
	}
	world_destroy();
}

/* Its windows are free then, for others. */
static void test_peer_gone(void)
{
	struct ibv_mw *mw, *type_1;

	puts("a peer that is gone");
	windows_make();
	mw = new_window(IBV_MW_TYPE_2);
	type_1 = new_window(IBV_MW_TYPE_1);
	CHECK(!bind_2(w.qp, mw) && !bind_1(w.qp, type_1, BYTES));
	suspend();
	replace_all();
	tell_peers();
	CHECK(!layer_set_peer(w.qp->qp_num, 0, &(union ibv_gid){}, "peer",
			      &swapped));
	CHECK(!layer_connect(&swapped));
	resume();
	CHECK(w.real->state == IBV_QPS_ERR);
	IS_FREE(mw);
	IS_BOUND(type_1, w.of_srq);
	CHECK(!bind_2(w.of_srq, mw));
	IS_BOUND(mw, w.of_srq);
	CHECK(!ibv_dealloc_mw(mw) && !ibv_dealloc_mw(type_1));
	world_destroy();
}

static void refused(struct ibv_mw *mw, const char *why)
{
	char name[16];

	snprintf(name, sizeof(name), "0x%08x", mw->rkey);
	suspend();
	CHECK(layer_check(&swapped) == EOPNOTSUPP, "%s", why);
	CHECK(strstr(swapped.reason, name) && strstr(swapped.reason, why), "%s",
	      swapped.reason);
	CHECK(layer_replace(NULL, 0, LONG, &swapped) == EOPNOTSUPP);
	CHECK(fake_alive(FAKE_CONTEXT) == 1);
	resume();
}

static void test_refused(void)
{
	struct ibv_mw *mw, *two;
	struct ibv_wc wc;

	puts("refused");
	windows_make();
	mw = new_window(IBV_MW_TYPE_1);
	two = new_window(IBV_MW_TYPE_2);
	/* that was not done, or not as the provider has it */
	done_with = IBV_WC_MW_BIND_ERR;
	CHECK(!bind_1(w.qp, mw, BYTES));
	done_with = IBV_WC_SUCCESS;
	MUST(ibv_poll_cq(w.cq, 1, &wc) == 1 && wc.wr_id == 77);
	refused(mw, "may be bound or not");
	mw->rkey = fake_window(to_mw(mw)->real).rkey;
	CHECK(!bind_1(w.qp, mw, BYTES));
	world_replace();
	IS_BOUND(mw, w.qp);
	fake_bells = true; /* it has taken it, and not told the kernel */
	CHECK(bind_2(w.qp, two));
	fake_bells = false;
	two->rkey++;
	refused(two, "may be bound or not");
	CHECK(!invalidate(w.qp, two));
	world_replace();
	IS_FREE(two);
	set_state(w.qp, IBV_QPS_ERR);
	set_state(w.of_srq, IBV_QPS_ERR);
	refused(mw, "no QP could");
	CHECK(!ibv_dealloc_mw(mw) && !ibv_dealloc_mw(two));
	world_replace();
	world_destroy();
}

/* What was posted before it has yet to be: it does not come before that. */
static void test_collected_still(void)
{
	uint64_t ids[cap.max_send_wr + 2];
	struct ibv_mw *mw;
	struct ibv_wc wc;
	uint32_t key;

	puts("while what was collected waits for room in a send queue");
	windows_make();
	mw = new_window(IBV_MW_TYPE_1);
	key = mw->rkey;
	prompt = false;
	for (unsigned int i = 0; i <= cap.max_send_wr; i++)
		ids[i] = i;
	ids[cap.max_send_wr + 1] = 77; /* the bind */
	CHECK(!write_one(w.qp, 0, 0));
	begin_suspend(200);
	WAIT(markers_of(w.real) == 1);
	for (unsigned int i = 1; i <= cap.max_send_wr; i++)
		CHECK(!write_one(w.qp, i, 0));
	CHECK(end_suspend() == ETIMEDOUT);
	fake_finish(w.real, 1, IBV_WC_SUCCESS);
	CHECK(bind_1(w.qp, mw, BYTES) == ENOMEM && mw->rkey == key);
	WAIT(suspend_go_on());
	fake_finish(w.real, 1, IBV_WC_SUCCESS);
	CHECK(!bind_1(w.qp, mw, BYTES));
	check_sent(w.real, ids, cap.max_send_wr + 2);
	IS_BOUND(mw, w.qp);
	fake_finish(w.real_srq, 1, IBV_WC_SUCCESS);
	prompt = true;
	while (ibv_poll_cq(w.cq, 1, &wc) > 0)
		;
	CHECK(!ibv_dealloc_mw(mw));
	world_destroy();
}

/* --- a partner: its windows, regions and keys stay --- */

static const union ibv_gid gid = { .raw = { 0xfe, [15] = 77 } };

static void replace_one(void)
{
	CHECK(!suspend_one(w.qp, LONG), "%s", found.reason);
	CHECK(!layer_replace(&w.qp->qp_num, 1, LONG, &swapped), "%s",
	      swapped.reason);
	CHECK(!layer_set_peer(w.qp->qp_num, 0x5001, &gid, "mover", &swapped));
}

static void test_partner(void)
{
	struct ibv_mw *mw[5];
	uint32_t keys[5];

	puts("of a partner");
	windows_make();
	for (int i = 0; i < 5; i++)
		mw[i] = new_window(i ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1);
	CHECK(!bind_1(w.qp, mw[0], BYTES));
	CHECK(!bind_2(w.qp, mw[1]) && !bind_2(w.qp, mw[2]));
	CHECK(!bind_2(w.of_srq, mw[3]));
	for (int round = 0; round < 3; round++) {
		if (round ==
		    1) /* as those of the one that was replaced as a whole */
			world_replace();
		for (int i = 0; i < 5; i++)
			keys[i] = real_key_of(mw[i]);
		replace_one();
		IS_BOUND(mw[0], w.qp);
		IS_FREE(mw[1]);
		IS_BOUND(mw[3], w.of_srq);
		CHECK(layer_resume(&found) == EBUSY);
		/* others go on meanwhile, and this one's requests wait */
		CHECK(!bind_2(w.of_srq, mw[4]));
		CHECK(!invalidate(w.qp, mw[2]) && !bind_2(w.qp, mw[2]));
		CHECK(!layer_connect(&swapped), "%s", swapped.reason);
		resume();
		IS_BOUND(mw[0], w.qp);
		for (int i = 1; i < 5; i++) {
			IS_BOUND(mw[i], i < 3 ? w.qp : w.of_srq);
			if (i % 2)
				CHECK(real_key_of(mw[i]) == keys[i]);
		}
		CHECK(!invalidate(w.of_srq, mw[4]));
		check_nothing(w.cq);
	}
	for (int i = 0; i < 5; i++)
		CHECK(!ibv_dealloc_mw(mw[i]));
	world_destroy();
}

/* What has RECVs is asked when windows are unbound: they are bound again. */
static void test_partner_not_asked(void)
{
	struct ibv_mw *mw;
	uint32_t key;

	puts("which cannot be asked");
	windows_make();
	mw = new_window(IBV_MW_TYPE_2);
	CHECK(!bind_2(w.qp, mw));
	key = real_key_of(mw);
	CHECK(!recv_one(w.qp, 1));
	CHECK(!suspend_one(w.qp, LONG));
	fake_fail("ibv_query_qp", EAGAIN);
	CHECK(layer_replace(&w.qp->qp_num, 1, LONG, &swapped) == EAGAIN);
	CHECK(strstr(swapped.reason, "not flushed"), "%s", swapped.reason);
	IS_BOUND(mw, w.qp);
	CHECK(real_key_of(mw) == key);
	resume();
	CHECK(!ibv_dealloc_mw(mw));
	world_destroy();
}

static void test_partner_fails(void)
{
	struct ibv_mw *mw, *other;
	uint32_t key, qpns[2];

	puts("which fails");
	windows_make();
	mw = new_window(IBV_MW_TYPE_2);
	CHECK(!bind_2(w.qp, mw));
	key = real_key_of(mw);
	/* before it is flushed all is as it was */
	for (int i = 0; i < 2; i++) {
		CHECK(!suspend_one(w.qp, LONG));
		if (i)
			fake_fail("ibv_query_qp", EAGAIN);
		else
			fake_refuse(w.real, 0, EAGAIN);
		CHECK(layer_replace(&w.qp->qp_num, 1, LONG, &swapped) ==
		      EAGAIN);
		CHECK(strstr(swapped.reason, i ? "not flushed" : "not unbound"),
		      "%s", swapped.reason);
		CHECK(w.real == to_qp(w.qp)->real && fake_alive(FAKE_QP) == 2);
		IS_BOUND(mw, w.qp);
		CHECK(real_key_of(mw) == key);
		resume();
	}
	/* in any of the steps of binding it */
	for (unsigned int i = 0; i < 3; i++) {
		replace_one();
		fake_refuse(to_qp(w.qp)->real, i, EAGAIN);
		CHECK(layer_connect(&swapped) == EAGAIN);
		CHECK(strstr(swapped.reason, "is not bound"));
		CHECK(layer_resume(&found) == EBUSY);
		CHECK(!layer_connect(&swapped), "%s", swapped.reason);
		resume();
		IS_BOUND(mw, w.qp);
		CHECK(real_key_of(mw) == key);
	}
	/* tried again, and given up: then what has not been flushed goes on */
	other = new_window(IBV_MW_TYPE_2);
	CHECK(!bind_2(w.of_srq, other));
	qpns[0] = w.qp->qp_num;
	qpns[1] = w.of_srq->qp_num;
	/* one that has nothing to be flushed is as it was */
	CHECK(!layer_suspend_some(qpns, 2, LONG, &found));
	fake_fail_later("ibv_query_qp", EAGAIN, 1);
	CHECK(layer_replace(qpns, 2, LONG, &swapped) == EAGAIN);
	resume();
	IS_BOUND(mw, w.qp);
	IS_BOUND(other, w.of_srq);
	CHECK(!recv_one(w.qp, 1));
	for (int i = 0; i < 2; i++) {
		CHECK(!layer_suspend_some(qpns, 2, LONG, &found));
		fake_fail_later("ibv_query_qp", EAGAIN, 1);
		CHECK(layer_replace(qpns, 2, LONG, &swapped) == EAGAIN);
		IS_FREE(other);
		CHECK(layer_resume(&found) == EBUSY);
		if (i)
			break;
		CHECK(!layer_replace(qpns, 2, LONG, &swapped), "%s",
		      swapped.reason);
		connect_all();
		resume();
		IS_BOUND(mw, w.qp);
		IS_BOUND(other, w.of_srq);
	}
	layer_give_up();
	CHECK(to_qp(w.qp)->real->state == IBV_QPS_ERR);
	IS_FREE(mw);
	IS_BOUND(other, w.of_srq);
	CHECK(!ibv_dealloc_mw(other));

	set_state(w.qp, IBV_QPS_RESET);
	to_rts(w.qp);
	CHECK(!bind_2(w.qp, mw));
	replace_one();
	layer_give_up();
	CHECK(to_qp(w.qp)->real->state == IBV_QPS_ERR);
	IS_FREE(mw);
	CHECK(!bind_2(w.of_srq, mw));
	IS_BOUND(mw, w.of_srq);

	/* such a QP has no way to let go of it */
	set_state(w.of_srq, IBV_QPS_ERR);
	CHECK(!suspend_one(w.of_srq, LONG));
	CHECK(layer_replace(&w.of_srq->qp_num, 1, LONG, &swapped) ==
	      EOPNOTSUPP);
	CHECK(strstr(swapped.reason, "has a memory window bound"), "%s",
	      swapped.reason);
	resume();
	CHECK(!ibv_dealloc_mw(mw));
	world_destroy();
}

int main(void)
{
	rig_open();
	test_many();
	test_later();
	test_other_host();
	test_failures();
	test_peer_gone();
	test_refused();
	test_collected_still();
	test_partner();
	test_partner_not_asked();
	test_partner_fails();
	return rig_close();
}
