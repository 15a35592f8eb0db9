// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Real objects are replaced, and the application does not notice.
 */
#include "replace_rig.h"

static unsigned int alive(void)
{
	unsigned int n = 0;

	for (int kind = FAKE_CONTEXT; kind <= FAKE_QP; kind++)
		n += fake_alive(kind);
	return n;
}

/* --- objects --- */

static void test_objects(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp *real, *real_srq;
	struct ibv_context *before;
	unsigned int objects;
	struct ibv_qp_attr attr;
	uint32_t qpn, lkey, rkey;
	int fd, async;

	puts("other objects, the same names");
	world_make();
	objects = alive();
	before = real_ctx;
	real = w.real;
	real_srq = w.real_srq;
	qpn = w.qp->qp_num;
	lkey = w.mr->lkey;
	rkey = w.mr->rkey;
	fd = w.channel->fd;
	async = ctx->async_fd;

	CHECK(layer_replace(NULL, 0, LONG, &swapped) == EINVAL);
	suspend();
	fake_last.qps = 0;
	replace_all();
	CHECK(swapped.qps == 2 && !swapped.recvs);
	/* a context, a PD, a channel, a CQ, an SRQ, an MR, two QPs */
	CHECK(swapped.objects == 8, "%u", swapped.objects);
	CHECK(alive() == objects && real_ctx != before);
	CHECK(w.real != real && w.real_srq != real_srq);
	CHECK(w.real->state == IBV_QPS_INIT && w.qp->state == IBV_QPS_RTS);
	CHECK(fake_last.qps == 2 && fake_last.qp.cap.max_send_wr == 6 + 1);
	SAW("ibv_create_cq", real_ctx, 64 + SPARE, fake_newest(FAKE_CHANNEL),
	    1);
	SAW("ibv_reg_mr_iova2", fake_newest(FAKE_PD), w.memory,
	    sizeof(w.memory), w.memory,
	    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

	CHECK(layer_resume(&found) == EBUSY && strstr(found.reason, "0x"));
	CHECK(layer_connect(&swapped) == EINVAL);
	CHECK(strstr(swapped.reason, "has no peer"));
	CHECK(w.real->state == IBV_QPS_INIT);
	connect_all();
	CHECK(swapped.qps == 2 && w.real->state == IBV_QPS_RTS);
	CHECK(!layer_connect(&swapped) && !swapped.qps);
	resume();

	CHECK(to_qp(w.qp)->slow == SLOW_NAMES);
	CHECK(to_qp(w.of_srq)->slow == SLOW_NAMES);
	CHECK(w.qp->qp_num == qpn && w.qp->qp_num != w.real->qp_num);
	CHECK(w.mr->lkey == lkey && w.mr->rkey == rkey);
	CHECK(w.channel->fd == fd && ctx->async_fd == async);
	CHECK(!ibv_query_qp(w.real, &attr, 0, &init)); /* what is real */
	CHECK(attr.dest_qp_num == 0x5001 && attr.rq_psn == PEER_PSN);
	CHECK(attr.sq_psn == OWN_PSN && attr.min_rnr_timer == 12);
	CHECK(attr.ah_attr.grh.dgid.raw[15] == 77);
	CHECK(attr.ah_attr.grh.sgid_index == SGID_INDEX);
	CHECK(attr.qp_access_flags ==
	      (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE));
	CHECK(!ibv_query_qp(w.qp, &attr, 0, &init));
	CHECK(attr.dest_qp_num == PEER_QPN);
	CHECK(attr.ah_attr.grh.dgid.raw[15] == 9);
	CHECK(attr.qp_access_flags == IBV_ACCESS_REMOTE_READ);
	CHECK(init.qp_context == w.qp->qp_context && init.send_cq == w.cq);

	puts("again and again");
	for (int i = 0; i < 5; i++)
		world_replace();
	CHECK(alive() == objects && w.qp->qp_num == qpn);
	world_destroy();
}

/* --- RECVs --- */

/* so many in one call; how many of them were taken */
static unsigned int recv_list(uint64_t first, unsigned int n)
{
	struct ibv_recv_wr wr[32], *bad = NULL;

	MUST(n <= 32);
	for (unsigned int i = 0; i < n; i++)
		wr[i] = (struct ibv_recv_wr){
			.wr_id = first + i,
			.next = i + 1 < n ? &wr[i + 1] : NULL,
		};
	if (!ibv_post_recv(w.qp, wr, &bad))
		return n;
	MUST(bad >= wr && bad < wr + n);
	return (unsigned int)(bad - wr);
}

/* what the provider has not taken is not posted again */
static void test_lists(void)
{
	struct ibv_wc wc;

	puts("lists of RECVs");
	world_make();
	for (int round = 0; round < 3; round++) {
		CHECK(recv_list(0, 10) == 10);
		fake_fail("post_recv", EINVAL);
		CHECK(recv_list(99, 5) == 0);
		CHECK(recv_list(10, 32) == cap.max_recv_wr - 10);
		world_replace();
		for (uint64_t i = 0; i < cap.max_recv_wr; i++) {
			fake_receive(w.real, 1);
			MUST(ibv_poll_cq(w.cq, 1, &wc) == 1);
			CHECK(wc.wr_id == i);
		}
		CHECK(!fake_recvs(w.real));
	}
	world_destroy();
}

static void test_recvs(void)
{
	struct ibv_wc wc;

	puts("RECVs are posted again, in their order");
	world_make();
	for (uint64_t i = 1; i <= 5; i++)
		CHECK(!recv_one(w.qp, i));
	for (uint64_t i = 11; i <= 14; i++)
		CHECK(!recv_srq(i));
	fake_receive(w.real, 8);
	fake_receive(w.real_srq, 9);
	suspend();
	fake_receive(w.real, 10); /* too late to be polled before */
	replace_all();
	CHECK(swapped.recvs == 3 + 3);
	RECVS(w.real, 3, 4, 5);
	/* it is collected no more */
	CHECK(!recv_one(w.qp, 6));
	RECVS(w.real, 3, 4, 5, 6);
	connect_all();
	resume();
	MUST(ibv_poll_cq(w.cq, 1, &wc) == 1);
	CHECK(wc.wr_id == 1 && wc.byte_len == 8 && wc.qp_num == w.qp->qp_num);
	MUST(ibv_poll_cq(w.cq, 1, &wc) == 1);
	CHECK(wc.wr_id == 11 && wc.byte_len == 9 &&
	      wc.qp_num == w.of_srq->qp_num);
	POLLED(w.cq, 4, 2);

	puts("and receive");
	for (uint64_t i = 3; i <= 6; i++) {
		fake_receive(w.real, 1);
		MUST(ibv_poll_cq(w.cq, 1, &wc) == 1);
		CHECK(wc.wr_id == i && wc.qp_num == w.qp->qp_num);
		CHECK(wc.status == IBV_WC_SUCCESS);
	}
	for (uint64_t i = 12; i <= 14; i++) {
		fake_receive(w.real_srq, 1);
		MUST(ibv_poll_cq(w.cq, 1, &wc) == 1);
		CHECK(wc.wr_id == i && wc.qp_num == w.of_srq->qp_num);
	}
	check_nothing(w.cq);

	puts("a queue that is full, many times round");
	for (uint64_t i = 0; i < 3 * cap.max_recv_wr; i++) {
		CHECK(!recv_one(w.qp, i));
		if (i < cap.max_recv_wr - 1)
			continue;
		fake_receive(w.real, 1);
		MUST(ibv_poll_cq(w.cq, 1, &wc) == 1);
		CHECK(wc.wr_id == i + 1 - cap.max_recv_wr);
	}
	CHECK(!recv_one(w.qp, 3 * cap.max_recv_wr));
	CHECK(recv_one(w.qp, 0) == ENOMEM);
	world_replace();
	CHECK(recv_one(w.qp, 0) == ENOMEM);
	for (uint64_t i = 0; i < cap.max_recv_wr; i++) {
		fake_receive(w.real, 1);
		MUST(ibv_poll_cq(w.cq, 1, &wc) == 1);
		CHECK(wc.wr_id == i + 1 + 2 * cap.max_recv_wr);
	}
	world_destroy();
}

/* --- keys --- */

/* one with its own keys, where the device gives this index first */
static struct ibv_mr *region_at(uint32_t index)
{
	struct ibv_mr *mr, *real_mr;

	fake_next_handle(index);
	MUST(mr = ibv_reg_mr(pd, w.memory, sizeof(w.memory), 0));
	real_mr = fake_newest(FAKE_MR);
	CHECK(mr->lkey == real_mr->lkey && mr->rkey == real_mr->rkey);
	return mr;
}

static void test_keys(void)
{
	const struct fake_sent *sent;
	struct ibv_mr *mr, *real_mr;
	uint32_t lkey, free_index;

	puts("keys of requests are the real ones");
	world_make();
	lkey = w.mr->lkey;
	CHECK(!write_one(w.qp, 1, 0x7701));
	CHECK(fake_sent(w.real, 0)->sge[0].lkey == lkey);
	CHECK(fake_sent(w.real, 0)->wr.wr.rdma.rkey == 0x7701);
	fake_finish(w.real, 1, IBV_WC_SUCCESS);
	POLLED(w.cq, 1, 1);
	world_replace();
	real_mr = fake_newest(FAKE_MR);
	CHECK(real_mr->lkey != lkey);

	CHECK(!recv_one(w.qp, 2) && !recv_srq(3));
	CHECK(fake_recvs(w.real)->sge[0].lkey == real_mr->lkey);
	CHECK(fake_recvs(w.real_srq)->sge[0].lkey == real_mr->lkey);
	CHECK(!write_one(w.qp, 4, 0x7701));
	sent = fake_sent(w.real, 0);
	CHECK(sent->sge[0].lkey == real_mr->lkey);
	CHECK(sent->wr.wr.rdma.rkey == 0x7701); /* the peer did not move */

	puts("and the peer's, when it has others; what it has not told is new, and real");
	CHECK(!peer_set_key(peer_get("peer"), 0x7701, 0x8802));
	CHECK(!write_one(w.qp, 5, 0x7701) && !write_one(w.qp, 6, 0x8802));
	CHECK(fake_sent(w.real, 1)->wr.wr.rdma.rkey == 0x8802);
	CHECK(fake_sent(w.real, 2)->wr.wr.rdma.rkey == 0x8802);
	CHECK(!peer_forget_keys(peer_get("peer")));
	CHECK(!write_one(w.qp, 7, 0x7701));
	CHECK(fake_sent(w.real, 3)->wr.wr.rdma.rkey == 0x7701);

	puts("a new region has its own, and none that peers take for another's");
	free_index = real_mr->handle + 1000;
	mr = region_at(free_index);
	CHECK(mr->handle == free_index);
	CHECK(!ibv_dereg_mr(mr));
	mr = region_at(lkey >> 8);
	CHECK(mr->handle != lkey >> 8 && fake_alive(FAKE_MR) == 2);
	CHECK(!ibv_dereg_mr(mr) && !ibv_dereg_mr(w.mr));
	w.mr = region_at(lkey >> 8); /* nor when that is gone */
	CHECK(w.mr->handle != lkey >> 8 && fake_alive(FAKE_MR) == 1);
	CHECK(!write_one(w.qp, 8, 0));
	CHECK(fake_sent(w.real, 4)->sge[0].lkey == w.mr->lkey);
	fake_finish(w.real, 9, IBV_WC_SUCCESS);

	puts("until they are told anew");
	fake_next_handle(free_index + 1);
	world_replace();
	mr = region_at(lkey >> 8);
	CHECK(mr->handle == lkey >> 8);
	CHECK(!ibv_dereg_mr(mr));
	world_destroy();
}

/* so many requests of so many SGEs each; a provider says which one is bad */
static void check_sges(unsigned int n, int sges)
{
	uint32_t real = ((struct ibv_mr *)fake_newest(FAKE_MR))->lkey;
	struct ibv_send_wr wr[2] = { { 0 } }, *bad = NULL;
	struct ibv_sge sge[8];
	unsigned int before;

	for (int i = 0; i < sges; i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)w.memory + i, 1 + i,
					   w.mr->lkey };
	for (unsigned int i = 0; i < n; i++)
		wr[i] = (struct ibv_send_wr){
			.wr_id = i,
			.next = i + 1 < n ? &wr[i + 1] : NULL,
			.sg_list = sge,
			.num_sge = sges,
			.opcode = IBV_WR_SEND_WITH_IMM,
			.imm_data = 77,
		};
	before = fake_sends(w.real);
	CHECK(!ibv_post_send(w.qp, wr, &bad));
	for (unsigned int i = 0; i < n; i++) {
		const struct fake_sent *s = fake_sent(w.real, before + i);

		MUST(s && s->wr.num_sge == sges && s->wr.wr_id == i);
		CHECK(s->wr.imm_data == 77);
		CHECK(s->wr.opcode == IBV_WR_SEND_WITH_IMM);
		for (int k = 0; k < sges; k++)
			CHECK(s->sge[k].lkey == real &&
			      s->sge[k].length == 1 + (uint32_t)k &&
			      s->sge[k].addr == (uintptr_t)w.memory + k);
	}
	fake_refuse(w.real, n - 1, EINVAL);
	CHECK(ibv_post_send(w.qp, wr, &bad) == EINVAL && bad == &wr[n - 1]);
	fake_finish(w.real, UINT_MAX, IBV_WC_SUCCESS);
}

static void test_sges(void)
{
	puts("requests with few SGEs, and with many");
	world_make();
	world_replace();
	for (int sges = 0; sges <= 8; sges++) {
		check_sges(1, sges);
		check_sges(2, sges);
	}
	world_destroy();
}

/* --- some QPs --- */

static bool dropped;

/* when a QP with an SRQ is in ERR, and a marker comes */
static void drop_one(struct ibv_qp *real, const struct fake_sent *sent)
{
	(void)sent;
	if (real->state == IBV_QPS_ERR && real->srq && !dropped) {
		dropped = true;
		fake_drop(real);
	} else if (real->state == IBV_QPS_RTS) {
		fake_finish(real, UINT_MAX, IBV_WC_SUCCESS);
	}
}

/* A message that was under way had a RECV of the SRQ in hand. */
static void test_in_hand(void)
{
	puts("a RECV of an SRQ that is flushed");
	for (unsigned int some = 0; some < 2; some++) {
		world_make();
		for (uint64_t i = 1; i <= 3; i++)
			CHECK(!recv_srq(i));
		fake_posted_hook = drop_one;
		dropped = false;
		suspend();
		CHECK(!layer_replace(&w.of_srq->qp_num, some, LONG, &swapped));
		CHECK(dropped && swapped.recvs == (some ? 1 : 3));
		world_look();
		layer_give_up();
		fake_receive(w.real_srq, 1);
		fake_receive(w.real_srq, 1);
		fake_receive(w.real_srq, 1);
		if (some)
			POLLED(w.cq, 4, 2, 3, 1);
		else
			POLLED(w.cq, 4, 1, 2, 3);
		world_destroy();
	}
}

static void test_some(void)
{
	struct ibv_qp *real, *real_srq;
	struct ibv_context *before;
	struct ibv_cq *real_cq;
	uint32_t no_such = 5;
	struct ibv_wc wc;

	puts("some QPs, on what they are on");
	world_make();
	before = real_ctx;
	real_cq = w.real_cq;
	real = w.real;
	real_srq = w.real_srq;
	CHECK(!recv_one(w.qp, 1) && !recv_one(w.qp, 2) && !recv_srq(3));
	suspend();
	CHECK(layer_replace(&no_such, 1, LONG, &swapped) == EINVAL);
	CHECK(strstr(swapped.reason, "no QP is 0x000005"));
	CHECK(!layer_replace(&w.qp->qp_num, 1, LONG, &swapped));
	CHECK(swapped.qps == 1 && swapped.objects == 1 && swapped.recvs == 2);
	CHECK(fake_newest(FAKE_CONTEXT) == before);
	CHECK(fake_newest(FAKE_CQ) == real_cq);
	w.real = fake_newest(FAKE_QP);
	w.real_srq = real_srq;
	CHECK(w.real != real && real_srq->state == IBV_QPS_RTS);
	CHECK(w.real->send_cq == real_cq);
	RECVS(w.real, 1, 2);
	CHECK(!layer_set_peer(w.qp->qp_num, 0x5001, &(union ibv_gid){}, "peer",
			      &swapped));
	CHECK(layer_set_peer(w.of_srq->qp_num, 1, &(union ibv_gid){}, "peer",
			     &swapped) == EINVAL);
	CHECK(!layer_connect(&swapped) && swapped.qps == 1);
	resume();
	fake_receive(w.real, 1);
	fake_receive(w.real_srq, 2);
	MUST(ibv_poll_cq(w.cq, 1, &wc) == 1);
	CHECK(wc.wr_id == 1 && wc.qp_num == w.qp->qp_num);
	MUST(ibv_poll_cq(w.cq, 1, &wc) == 1);
	CHECK(wc.wr_id == 3 && wc.qp_num == w.of_srq->qp_num);
	CHECK(!write_one(w.qp, 4, 0x7701));
	CHECK(fake_sent(w.real, 0)->sge[0].lkey == w.mr->lkey);
	fake_finish(w.real, 1, IBV_WC_SUCCESS);
	POLLED(w.cq, 4, 4);

	puts("one with an SRQ, whose last message has been seen");
	CHECK(!recv_srq(5));
	suspend();
	CHECK(!layer_replace(&w.of_srq->qp_num, 1, LONG, &swapped));
	w.real_srq = fake_newest(FAKE_QP);
	CHECK(!layer_set_peer(w.of_srq->qp_num, 0x5002, &(union ibv_gid){},
			      "peer", &swapped));
	CHECK(!layer_connect(&swapped));
	resume();
	CHECK(!readable(ctx->async_fd)); /* that was for the layer */
	fake_receive(w.real_srq, 2);
	POLLED(w.cq, 4, 5);

	puts("and then all");
	real_srq = w.real_srq;
	suspend();
	replace_all();
	CHECK(swapped.recvs == 1);
	/* made in the order of the application's */
	connect_all();
	resume();
	fake_receive(w.real, 1);
	MUST(ibv_poll_cq(w.cq, 1, &wc) == 1);
	CHECK(wc.wr_id == 2 && wc.qp_num == w.qp->qp_num);
	world_destroy();
}

/* The other one is connected. */
static void test_gone(void)
{
	puts("one whose peer is gone");
	world_make();
	suspend();
	replace_all();
	CHECK(!layer_set_peer(w.qp->qp_num, 0, &(union ibv_gid){}, "gone",
			      &swapped));
	CHECK(!layer_set_peer(w.of_srq->qp_num, 0x5002, &(union ibv_gid){},
			      "peer", &swapped));
	CHECK(!layer_connect(&swapped) && swapped.qps == 2, "%s",
	      swapped.reason);
	CHECK(w.real->state == IBV_QPS_ERR);
	CHECK(w.real_srq->state == IBV_QPS_RTS);
	resume();
	world_destroy();
}

int main(void)
{
	rig_open();
	test_objects();
	test_recvs();
	test_lists();
	test_keys();
	test_sges();
	test_some();
	test_gone();
	test_in_hand();
	return rig_close();
}
