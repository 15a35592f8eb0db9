// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Replacements that fail, wherever they may, are undone, or tried again, or given up.
 */
#include "replace_rig.h"

static unsigned int alive(void)
{
	unsigned int n = 0;

	for (int kind = FAKE_CONTEXT; kind <= FAKE_QP; kind++)
		n += fake_alive(kind);
	return n;
}

/* a process that is busy, to its provider's last object */
static void begin(void)
{
	world_make();
	for (uint64_t i = 1; i <= 3; i++)
		CHECK(!recv_one(w.qp, i) && !recv_srq(10 + i));
	CHECK(!ibv_req_notify_cq(w.cq, 1)); /* markers do not solicit */
	suspend();
}

/* Was there an event? It is for what has failed, and that is not what is flushed. */
static bool had_event(void)
{
	struct ibv_cq *cq;
	void *context;

	if (!readable(w.channel->fd))
		return false;
	CHECK(!ibv_get_cq_event(w.channel, &cq, &context) && cq == w.cq);
	ibv_ack_cq_events(cq, 1);
	return true;
}

/* all it has comes, and nothing else */
static void check_whole(void)
{
	for (uint64_t i = 1; i <= 3; i++) {
		fake_receive(w.real, 1);
		fake_receive(w.real_srq, 1);
		POLLED(w.cq, 1, i, 10 + i);
	}
	CHECK(!fake_recvs(w.real) && !fake_recvs(w.real_srq));
	CHECK(!write_one(w.qp, 5, 1) && fake_waiting(w.real) == 1);
	fake_finish(w.real, 1, IBV_WC_SUCCESS);
	POLLED(w.cq, 1, 5);
	CHECK(!had_event());
}

static const struct point {
	const char *call;
	unsigned int after;
} before[] = {
	{ "ibv_open_device", 0 },  { "ibv_alloc_pd", 0 },
	{ "ibv_reg_mr_iova2", 0 }, { "ibv_create_comp_channel", 0 },
	{ "ibv_create_cq", 0 },	   { "ibv_create_srq", 0 },
	{ "ibv_create_qp", 0 },	   { "ibv_create_qp", 1 },
	{ "ibv_modify_qp", 0 },	   /* INIT */ { "ibv_modify_qp", 1 },
	{ "ibv_query_qp", 0 },	/* begin to flush */
	{ "ibv_modify_qp", 2 }, /* ERR */
};

/* Before something is flushed nothing has changed, whatever is posted meanwhile. */
static void test_undone(void)
{
	unsigned int objects;

	puts("what fails before QPs are flushed is undone");
	for (unsigned int i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
		begin();
		objects = alive();
		fake_fail_later(before[i].call, EAGAIN, before[i].after);
		CHECK(layer_replace(NULL, 0, LONG, &swapped) == EAGAIN, "%s %u",
		      before[i].call, before[i].after);
		CHECK(swapped.reason[0], "%s", before[i].call);
		CHECK(alive() == objects, "%s", before[i].call);
		CHECK(w.real == fake_older(fake_newest(FAKE_QP)));
		CHECK(w.real->state == IBV_QPS_RTS &&
		      w.real_srq->state == IBV_QPS_RTS);
		RECVS(w.real, 1, 2, 3);
		CHECK(w.qp->qp_num == w.real->qp_num);
		resume();
		check_whole();
		world_destroy();
	}
}

static const struct point after[] = {
	{ "ibv_query_qp", 1 }, /* of the second QP */
	{ "post_recv", 1 },    /* a RECV, behind the marker */
	{ "post_recv", 2 },	{ "post_srq_recv", 0 }, { "post_srq_recv", 2 },
	{ "ibv_query_srq", 0 }, { "req_notify_cq", 0 },
};

static void test_again(void)
{
	unsigned int objects;

	puts("what fails later is tried again");
	for (unsigned int i = 0; i < sizeof(after) / sizeof(after[0]); i++) {
		begin();
		objects = alive();
		fake_fail_later(after[i].call, EAGAIN, after[i].after);
		CHECK(layer_replace(NULL, 0, LONG, &swapped) == EAGAIN, "%s %u",
		      after[i].call, after[i].after);
		CHECK(swapped.reason[0]);
		CHECK(layer_resume(&found) == EBUSY);
		replace_all();
		CHECK(alive() == objects);
		connect_all();
		resume();
		check_whole();
		world_destroy();
	}

	puts("so is a connection");
	for (unsigned int i = 0; i < 4; i++) {
		begin();
		replace_all();
		fake_fail_later("ibv_modify_qp", EAGAIN, i);
		CHECK(!layer_set_peer(w.qp->qp_num, 1, &(union ibv_gid){},
				      "peer", &swapped));
		CHECK(!layer_set_peer(w.of_srq->qp_num, 1, &(union ibv_gid){},
				      "peer", &swapped));
		CHECK(layer_connect(&swapped) == EAGAIN);
		CHECK(strstr(swapped.reason, "to state"));
		CHECK(layer_resume(&found) == EBUSY);
		CHECK(!layer_connect(&swapped));
		CHECK(w.real->state == IBV_QPS_RTS);
		CHECK(w.real_srq->state == IBV_QPS_RTS);
		resume();
		check_whole();
		world_destroy();
	}
}

/* The marker finds no room as long as it cannot be posted. */
static void test_timeout(void)
{
	puts("a QP that is not flushed in time");
	begin();
	fake_fail_times("post_recv", ENOMEM, 1000000);
	CHECK(layer_replace(NULL, 0, 20, &swapped) == ETIMEDOUT);
	CHECK(strstr(swapped.reason, "is not flushed"));
	fake_fail("post_recv", 0);
	replace_all();
	connect_all();
	resume();
	check_whole();
	world_destroy();
}

/* RECVs of an SRQ are collected meanwhile, but no more than the provider has room for */
static void test_full_srq(void)
{
	uint64_t n = 0;

	puts("an SRQ is filled while a QP is not flushed");
	begin();
	fake_fail_times("post_recv", ENOMEM, 1000000);
	CHECK(layer_replace(NULL, 0, 20, &swapped) == ETIMEDOUT);
	fake_fail("post_recv", 0);
	while (n < 10000 && !recv_srq(n))
		n++;
	CHECK(n && n < 10000);
	CHECK(recv_srq(n) == ENOMEM);
	replace_all();
	connect_all();
	resume();
	world_destroy();
}

static unsigned int flushed(unsigned int n)
{
	struct ibv_wc wc[8];
	int got = ibv_poll_cq(w.cq, 8, wc);

	MUST(got >= 0);
	for (int i = 0; i < got; i++)
		CHECK(wc[i].status == IBV_WC_WR_FLUSH_ERR &&
		      wc[i].qp_num == w.qp->qp_num);
	return n + (unsigned int)got;
}

static void check_dead(void)
{
	unsigned int n = 0;

	CHECK(layer_resume(&found) == EINVAL);
	CHECK(w.real->state == IBV_QPS_ERR);
	n = flushed(flushed(n));
	CHECK(n == 3, "%u flushes", n);
	check_nothing(w.cq);
	CHECK(had_event());
	world_destroy();
}

static void test_given_up(void)
{
	puts("who replaces goes away before QPs are connected");
	begin();
	replace_all();
	layer_give_up();
	check_dead();

	puts("and before they are replaced");
	begin();
	fake_fail_later("ibv_query_qp", EAGAIN, 1);
	CHECK(layer_replace(NULL, 0, LONG, &swapped) == EAGAIN);
	layer_give_up();
	check_dead();

	puts("and before new CQs are armed");
	begin();
	fake_fail("post_srq_recv", EINVAL);
	CHECK(layer_replace(NULL, 0, LONG, &swapped) == EINVAL);
	world_look();
	layer_give_up();
	check_dead();

	puts("but not when they are connected");
	begin();
	replace_all();
	connect_all();
	layer_give_up();
	check_whole();
	world_destroy();
}

/* What was not stopped yet goes on when the replacement is given up. */
static void test_left_alone(void)
{
	puts("who replaces goes away before all QPs are stopped");
	begin();
	fake_fail_later("ibv_query_qp", EAGAIN, 1);
	CHECK(layer_replace(NULL, 0, LONG, &swapped) == EAGAIN);
	CHECK(!recv_srq(14));
	layer_give_up();
	CHECK(w.real->state == IBV_QPS_ERR);
	CHECK(w.real_srq->state == IBV_QPS_RTS);
	CHECK(flushed(flushed(0)) == 3);
	CHECK(!recv_srq(15));
	for (int i = 0; i < 5; i++)
		fake_receive(w.real_srq, 1);
	POLLED(w.cq, 5, 11, 12, 13, 14, 15);
	world_destroy();
}

/* and RECVs of a QP of its own */
static void test_left_recvs(void)
{
	struct ibv_qp *other, *real;

	puts("and one with a queue of its own");
	begin();
	resume();
	other = new_qp_ex(IBV_QPT_RC, w.cq, EX_OPS, &real);
	set_state(other, IBV_QPS_INIT);
	CHECK(!recv_one(other, 20));
	suspend();
	fake_fail_later("ibv_query_qp", EAGAIN, 2);
	CHECK(layer_replace(NULL, 0, LONG, &swapped) == EAGAIN);
	layer_give_up();
	CHECK(!recv_one(other, 21));
	set_state(other, IBV_QPS_ERR);
	CHECK(fake_recvs(real) == NULL);
	CHECK(!ibv_destroy_qp(other));
	world_destroy();
}

/* One that has failed by itself fails for the application, and so does its successor. */
static void test_err(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	puts("QPs in ERR");
	for (int i = 0; i < 3; i++) {
		begin();
		if (i) /* the application does not know */
			MUST(!ibv_modify_qp(w.real, &attr, IBV_QP_STATE));
		else
			resume();
		if (!i)
			set_state(w.qp, IBV_QPS_ERR);
		if (!i)
			suspend();
		if (i == 2) { /* nor at the second attempt */
			fake_fail("post_srq_recv", EAGAIN);
			CHECK(layer_replace(NULL, 0, LONG, &swapped) == EAGAIN);
		}
		replace_all();
		connect_all();
		CHECK(w.real->state == IBV_QPS_ERR);
		CHECK(w.real_srq->state == IBV_QPS_RTS);
		CHECK(!recv_one(w.qp, 4));
		resume();
		CHECK(flushed(0) == 3);
		set_state(w.qp, IBV_QPS_ERR); /* once more */
		CHECK(flushed(0) == 1);
		CHECK(had_event());
		world_destroy();
	}
}

int main(void)
{
	rig_open();
	test_undone();
	test_again();
	test_timeout();
	test_full_srq();
	test_given_up();
	test_left_alone();
	test_left_recvs();
	test_err();
	return rig_close();
}
