// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Lists of RECVs, and what a provider says that has not taken all of one
 */
#include "replace_rig.h"

enum {
	MANY = 40,
	SRQ_ROOM = 1000 /* of the fake */
};

static struct ibv_recv_wr wr[MANY], *bad;
static struct ibv_sge sge;

static void make_list(uint64_t first, unsigned int n)
{
	sge = (struct ibv_sge){ (uintptr_t)w.memory, 8, w.mr->lkey };
	for (unsigned int i = 0; i < n; i++)
		wr[i] = (struct ibv_recv_wr){
			.wr_id = first + i,
			.next = i + 1 < n ? &wr[i + 1] : NULL,
			.sg_list = &sge,
			.num_sge = 1,
		};
	bad = NULL;
}

static int post_srq(uint64_t first, unsigned int n)
{
	make_list(first, n);
	fake_forget(-1, true); /* to count calls */
	return ibv_post_srq_recv(w.srq, wr, &bad);
}

/* these complete, and then there are no more */
static void check_received(uint64_t first, uint64_t n)
{
	uint32_t lkey = ((struct ibv_mr *)fake_newest(FAKE_MR))->lkey;

	for (uint64_t i = first; i < first + n; i++) {
		MUST(fake_recvs(w.real_srq));
		CHECK(fake_recvs(w.real_srq)->sge[0].lkey == lkey);
		fake_receive(w.real_srq, 1);
		POLLED(w.cq, 1, i);
	}
	CHECK(!fake_recvs(w.real_srq));
}

static void test_calls(void)
{
	puts("lists for an SRQ, before its keys are others and after");
	world_make();
	for (int i = 0; i < 2; i++) {
		CHECK(!post_srq(0, 20) && fake_posts == 1);
		check_received(0, 20);
		CHECK(!post_srq(0, MANY) && fake_posts == 2);
		check_received(0, MANY);

		make_list(0, 10);
		wr[5].num_sge = 99;
		CHECK(ibv_post_srq_recv(w.srq, wr, &bad) == EINVAL);
		CHECK(bad == &wr[5]);
		check_received(0, 5);

		puts("that is full");
		for (uint64_t n = 0; n < SRQ_ROOM - 10; n += 10)
			CHECK(!post_srq(n, 10));
		CHECK(post_srq(SRQ_ROOM - 10, 30) == ENOMEM);
		CHECK(bad == &wr[10]);
		check_received(0, SRQ_ROOM);
		world_replace();
	}
	world_destroy();
}

static void refused(void)
{
	suspend();
	CHECK(layer_replace(NULL, 0, LONG, &swapped) == EOPNOTSUPP);
	CHECK(strstr(swapped.reason, "not said what it has taken"), "%s",
	      swapped.reason);
	resume();
}

/* What is wrong may be nothing, or a request that is not in the list. */
static void test_untold(struct ibv_recv_wr *wrong)
{
	puts("a provider that does not say which one it has not taken");
	world_make();
	for (unsigned int i = 0; i < cap.max_recv_wr; i++)
		CHECK(!recv_one(w.qp, i));
	fake_tell(false, wrong);
	make_list(99, 1);
	CHECK(ibv_post_recv(w.qp, wr, &bad) == ENOMEM);
	CHECK(bad == wr); /* there is no other one */
	world_replace();
	make_list(99, 1);
	CHECK(ibv_post_recv(w.qp, wr, &bad) == ENOMEM && bad == wr);
	fake_receive(w.real, 1);
	POLLED(w.cq, 1, 0);

	make_list(100, 2);
	CHECK(ibv_post_recv(w.qp, wr, &bad) == ENOMEM && !bad);
	refused();
	set_state(w.qp, IBV_QPS_RESET);
	suspend();
	replace_all();
	layer_give_up();

	puts("of an SRQ");
	for (uint64_t n = 0; n < SRQ_ROOM; n += 10)
		CHECK(!post_srq(n, 10));
	CHECK(post_srq(SRQ_ROOM, 1) == ENOMEM && bad == wr);
	fake_receive(w.real_srq, 1);
	POLLED(w.cq, 1, 0);
	CHECK(post_srq(SRQ_ROOM, 2) == ENOMEM && !bad);
	refused();
	check_received(1, SRQ_ROOM); /* one of the list was taken */
	fake_tell(true, NULL);
	world_destroy();
}

int main(void)
{
	struct ibv_recv_wr strange;

	rig_open();
	test_calls();
	test_untold(NULL);
	test_untold(&strange);
	return rig_close();
}
