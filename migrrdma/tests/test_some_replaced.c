// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Some QPs are replaced, and the others of the process go on
 */
#include "replace_rig.h"

static void b_goes_on(struct ibv_qp *b, struct ibv_qp *real_b)
{
	static uint64_t id = 1000;

	CHECK(real_b->state == IBV_QPS_RTS && !markers_of(real_b));
	CHECK(!send_one(b, ++id, IBV_SEND_SIGNALED));
	CHECK(fake_finish(real_b, 1, IBV_WC_SUCCESS) == 1);
	POLLED(w.cq, 4, id);
}

static void test_replace(void)
{
	const union ibv_gid gid = { .raw = { 0xfe, [15] = 77 } };
	struct ibv_qp *b, *real_b;
	uint32_t qpn;

	puts("replaced, while others go on");
	world_make();
	b = new_qp(IBV_QPT_RC, w.cq, &real_b);
	qpn = w.qp->qp_num;
	CHECK(!recv_one(w.qp, 1) && !recv_one(w.qp, 2));
	CHECK(!suspend_one(w.qp, LONG));
	CHECK(!write_one(w.qp, 5, 0x7701));
	b_goes_on(b, real_b);
	CHECK(layer_replace(NULL, 0, LONG, &swapped) == EINVAL);
	CHECK(!strcmp(swapped.reason, "only some QPs are suspended"));
	CHECK(layer_hold(LONG, 9, &swapped) == EINVAL);
	CHECK(!strcmp(swapped.reason, "only some QPs are suspended"));
	CHECK(layer_replace(&b->qp_num, 1, LONG, &swapped) == EINVAL);
	CHECK(strstr(swapped.reason, "is not suspended"));
	CHECK(layer_connect(&swapped) == 0 && !swapped.qps);
	CHECK(!layer_replace(&qpn, 1, LONG, &swapped), "%s", swapped.reason);
	CHECK(swapped.qps == 1 && swapped.objects == 1 && swapped.recvs == 2);
	w.real = fake_newest(FAKE_QP);
	b_goes_on(b, real_b);
	CHECK(layer_set_peer(b->qp_num, 3, &gid, "mover", &swapped) == EINVAL);
	CHECK(!layer_set_peer(qpn, 0x5001, &gid, "mover", &swapped));
	CHECK(!layer_forget_keys("mover", &swapped));
	CHECK(!layer_set_key("mover", 0x7701, 0x8802, &swapped));
	CHECK(layer_resume(&found) == EBUSY);
	CHECK(!layer_connect(&swapped) && swapped.qps == 1);
	b_goes_on(b, real_b);
	resume();
	RECVS(w.real, 1, 2);
	CHECK(fake_sent(w.real, 0)->wr.wr.rdma.rkey == 0x8802);
	fake_finish(w.real, 1, IBV_WC_SUCCESS);
	POLLED(w.cq, 4, 5);

	puts("keys of a process that others lead to");
	CHECK(!suspend_one(b, LONG));
	CHECK(layer_forget_keys("mover", &swapped) == EBUSY);
	CHECK(strstr(swapped.reason, "leads there and is not suspended"));
	CHECK(!layer_set_key("mover", 0x7801, 0x8803, &swapped));
	CHECK(!layer_forget_keys("another", &swapped));
	resume();

	puts("given up: the others are as before");
	CHECK(!suspend_one(w.qp, LONG));
	CHECK(!layer_replace(&qpn, 1, LONG, &swapped));
	w.real = fake_newest(FAKE_QP);
	layer_give_up();
	CHECK(w.real->state == IBV_QPS_ERR);
	POLLED(w.cq, 4, 1, 2);
	CHECK(real_b->state == IBV_QPS_RTS && !send_one(b, 7, 0));
	CHECK(layer_resume(&found) == EINVAL);

	puts("processes that no QP leads to");
	CHECK(!suspend_one(b, LONG));
	CHECK(peer_find("mover") && !peer_find("another"));
	resume();
	set_state(w.qp, IBV_QPS_RESET); /* it may lead there again */
	for (int i = 0; i < 3; i++) {
		if (i == 1)
			CHECK(!ibv_destroy_qp(w.qp));
		CHECK(!suspend_one(b, LONG));
		CHECK(!peer_find("mover") == (i > 0));
		resume();
	}
	w.qp = new_qp(IBV_QPT_RC, w.cq, &w.real);
	CHECK(!ibv_destroy_qp(b));
	world_destroy();
}

int main(void)
{
	rig_open();
	test_replace();
	return rig_close();
}
