// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Some QPs are suspended, and the others of the process go on
 */
#include <sys/wait.h>

#include "suspend_rig.h"

static void test_who(void)
{
	struct ibv_qp *xrc, *real_xrc;
	uint32_t qpns[3];

	puts("those that are named");
	two_make();
	xrc = new_qp(IBV_QPT_XRC_SEND, two.cq, &real_xrc);
	qpns[0] = two.a->qp_num;
	qpns[1] = 5;
	CHECK(layer_suspend_some(qpns, 2, LONG, &found) == EINVAL);
	CHECK(!strcmp(found.reason, "no QP is 0x000005"), "%s", found.reason);
	qpns[1] = xrc->qp_num;
	CHECK(layer_suspend_some(qpns, 2, LONG, &found) == EOPNOTSUPP);
	CHECK(!fake_sends(two.real_a) && layer_resume(&found) == EINVAL);
	CHECK(!send_one(two.a, 1, 0)); /* nothing has changed */
	SENT(two.real_a, 1);
	set_state(two.a, IBV_QPS_RTS);

	/* what cannot be suspended goes on; who is named twice is one */
	qpns[1] = qpns[0];
	CHECK(!layer_suspend_some(qpns, 2, LONG, &found), "%s", found.reason);
	CHECK(found.qps == 1 && found.markers == 1);
	CHECK(layer_suspend(LONG, &found) == EBUSY);
	CHECK(suspend_one(two.b, LONG) == EBUSY);
	resume();
	CHECK(layer_resume(&found) == EINVAL);
	qpns[1] = two.b->qp_num;
	CHECK(!layer_suspend_some(qpns, 2, LONG, &found));
	CHECK(found.qps == 2 && found.markers == 2);
	resume();
	CHECK(!ibv_destroy_qp(xrc));
	two_destroy();
}

/* --- a CQ of both --- */

static void test_shared(void)
{
	struct ibv_cq *cq, *real_cq;

	puts("a CQ of both kinds");
	two_make();
	prompt = false;
	CHECK(!send_one(two.b, 1, IBV_SEND_SIGNALED));
	CHECK(!send_one(two.a, 2, IBV_SEND_SIGNALED));
	fake_finish(two.real_b, 1, IBV_WC_SUCCESS);
	fake_finish(two.real_a, 1, IBV_WC_SUCCESS);
	CHECK(!send_one(two.b, 3, IBV_SEND_SIGNALED));
	prompt = true;
	suspend_a();
	CHECK(found.taken == 2 && fake_waiting(two.real_b) == 1);
	CHECK(!send_one(two.a, 4, IBV_SEND_SIGNALED));
	CHECK(!send_one(two.b, 5, IBV_SEND_SIGNALED));
	SENT(two.real_a, 2);
	SENT(two.real_b, 1, 3, 5);
	fake_finish(two.real_b, 1, IBV_WC_SUCCESS);
	POLLED(two.cq, 1, 1, 2, 3);
	fake_finish(two.real_b, 1, IBV_WC_SUCCESS);
	POLLED(two.cq, 4, 5);
	CHECK(!send_one(two.b, 6, IBV_SEND_SIGNALED));
	fake_finish(two.real_b, 1, IBV_WC_SUCCESS);
	resume();
	SENT(two.real_a, 2, 4);
	fake_finish(two.real_a, 1, IBV_WC_SUCCESS);
	POLLED(two.cq, 1, 6, 4);
	check_direct(two.cq, two.real_cq);

	puts("a CQ of others is polled as it is");
	cq = new_cq(8, &real_cq);
	suspend_a();
	check_direct(cq, real_cq);
	CHECK(!ibv_destroy_cq(cq));
	resume();
	two_destroy();
}

/* --- ends --- */

static void test_timeout(void)
{
	puts("a peer that does not answer, and the others");
	two_make();
	prompt = false;
	CHECK(!send_one(two.a, 1, IBV_SEND_SIGNALED));
	begin_suspend_one(two.a->qp_num, 200);
	WAIT(markers_of(two.real_a) == 1);
	CHECK(!send_one(two.a, 2, 0) && !send_one(two.b, 3, IBV_SEND_SIGNALED));
	SENT(two.real_b, 3);
	fake_finish(two.real_b, 1, IBV_WC_SUCCESS);
	CHECK(end_suspend() == ETIMEDOUT);
	CHECK(strstr(found.reason, "not drained: QP 0x") &&
		      strstr(found.reason, "is not completed"),
	      "%s", found.reason);
	SENT(two.real_a, 1, 2);
	CHECK(!markers_of(two.real_b));
	set_state(two.a, IBV_QPS_RTS); /* does not wait */
	POLLED(two.cq, 4, 3);

	puts("its marker does not hold up who has other peers");
	prompt = true;
	CHECK(!suspend_one(two.b, LONG), "%s", found.reason);
	CHECK(found.markers == 1 && fake_waiting(two.real_a) == 3);
	resume();
	fake_finish(two.real_a, UINT_MAX, IBV_WC_SUCCESS);
	POLLED(two.cq, 4, 1);
	check_direct(two.cq, two.real_cq);
	two_destroy();
}

static void test_room(void)
{
	enum {
		MANY = SPARE + 3, /* of that peer, and two of others */
		ALL = MANY + 2
	};
	struct ibv_qp *qp[ALL], *real[ALL];
	struct ibv_cq *cq, *real_cq;
	unsigned int markers = 0;
	uint32_t qpns[ALL];

	puts("however many QPs lead to it, and however often it is tried");
	cq = new_cq(1, &real_cq);
	for (int i = 0; i < ALL; i++) {
		qp[i] = new_qp(IBV_QPT_RC, cq, &real[i]);
		qpns[i] = qp[i]->qp_num;
	}
	prompt = false;
	for (int i = 0; i < 2; i++)
		CHECK(layer_suspend_some(qpns, MANY, 200, &found) == ETIMEDOUT);
	for (int i = 0; i < MANY; i++)
		markers += markers_of(real[i]);
	CHECK(markers == SPARE - 1, "%u", markers);
	prompt = true;
	CHECK(!layer_suspend_some(qpns + MANY, 2, LONG, &found), "%s",
	      found.reason);
	CHECK(found.markers == 2);
	resume();
	for (int i = 0; i < MANY; i++)
		fake_finish(real[i], UINT_MAX, IBV_WC_SUCCESS);
	CHECK(!layer_suspend_some(qpns, MANY, LONG, &found), "%s",
	      found.reason);
	CHECK(found.markers == MANY);
	resume();
	check_direct(cq, real_cq);
	for (int i = 0; i < ALL; i++)
		CHECK(!ibv_destroy_qp(qp[i]));
	CHECK(!ibv_destroy_cq(cq));
}

static void test_rest(void)
{
	uint64_t ids[cap.max_send_wr + 2];

	puts("nor does what is left for it");
	two_make();
	prompt = false;
	for (unsigned int i = 0; i < cap.max_send_wr + 2; i++)
		ids[i] = i;
	for (unsigned int i = 0; i <= cap.max_send_wr; i++)
		CHECK(!send_one(two.a, i, 0));
	begin_suspend_one(two.a->qp_num, 200);
	WAIT(fake_fulls(two.real_a));
	CHECK(!send_one(two.a, cap.max_send_wr + 1, 0));
	CHECK(end_suspend() == ETIMEDOUT);
	prompt = true;
	CHECK(suspend_one(two.a, 20) == ETIMEDOUT);
	CHECK(strstr(found.reason, "collected before"), "%s", found.reason);
	CHECK(layer_suspend(20, &found) == ETIMEDOUT);
	CHECK(strstr(found.reason, "collected before"), "%s", found.reason);
	CHECK(!suspend_one(two.b, LONG), "%s", found.reason);
	CHECK(found.qps == 1 && found.markers == 1);
	CHECK(!send_one(two.b, 1, 0));
	CHECK(!suspend_go_on());
	fake_finish(two.real_a, 1, IBV_WC_SUCCESS);
	CHECK(suspend_go_on());
	check_sent(two.real_a, ids, cap.max_send_wr + 2);
	check_sent(two.real_b, NULL, 0);
	CHECK(fake_waiting(two.real_a) == cap.max_send_wr + 1);
	resume();
	SENT(two.real_b, 1);
	CHECK(suspend_go_on() && !markers_of(two.real_a));
	fake_finish(two.real_a, UINT_MAX, IBV_WC_SUCCESS);
	fake_finish(two.real_b, UINT_MAX, IBV_WC_SUCCESS);
	suspend_a();
	resume();
	check_direct(two.cq, two.real_cq);
	two_destroy();
}

static int query_a(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ibv_query_qp(two.a, &attr, IBV_QP_STATE, &init);
}

static void test_child(void)
{
	int status;
	pid_t pid;

	puts("a child has nothing suspended");
	two_make();
	suspend_a();
	fflush(stdout);
	pid = fork();
	if (!pid) {
		alarm(20);
		_exit(query_a() || send_one(two.a, 1, 0) ||
		      fake_sends(two.real_a) != 2);
	}
	MUST(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(!status, "%#x", (unsigned int)status);
	resume();
	two_destroy();
}

/* --- traffic --- */

enum {
	ROUNDS = 300
};

static struct {
	atomic_bool end;
	atomic_uint seen;
} others;

/* One posts, and polls what both have; the network is prompt. */
static void *go_on(void *arg)
{
	uint64_t next = 1, posted = 0;
	struct ibv_wc wc[4];
	int n;

	(void)arg;
	while (!others.end || next <= posted) {
		if (!others.end && posted + 1 - next < 5 &&
		    !send_one(two.b, posted + 1, IBV_SEND_SIGNALED)) {
			posted++;
			fake_finish(two.real_b, 1, IBV_WC_SUCCESS);
		}
		n = ibv_poll_cq(two.cq, 4, wc);
		MUST(n >= 0);
		for (int i = 0; i < n; i++) {
			if (wc[i].qp_num == two.a->qp_num)
				continue;
			CHECK(wc[i].wr_id == next);
			others.seen = (unsigned int)next++;
		}
	}
	return NULL;
}

static void test_traffic(void)
{
	unsigned int before;
	pthread_t thread;

	puts("traffic of others");
	two_make();
	MUST(!pthread_create(&thread, NULL, go_on, NULL));
	for (unsigned int i = 0; i < ROUNDS; i++) {
		suspend_a();
		before = others.seen;
		CHECK(!send_one(two.a, i, 0));
		WAIT(others.seen > before + 3);
		CHECK(fake_sends(two.real_a) == 2 * i + 1);
		resume();
		CHECK(fake_sends(two.real_a) == 2 * i + 2);
		fake_finish(two.real_a, UINT_MAX, IBV_WC_SUCCESS);
	}
	others.end = true;
	MUST(!pthread_join(thread, NULL));
	CHECK(!markers_of(two.real_b));
	two_destroy();
}

int main(void)
{
	rig_open();
	test_who();
	test_shared();
	test_timeout();
	test_room();
	test_rest();
	test_child();
	test_traffic();
	return rig_close();
}
