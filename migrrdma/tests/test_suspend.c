// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Who is suspended, and how: markers
 */
#include "suspend_rig.h"

/* --- what is made --- */

static void test_cq_made(void)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 7 }, before = attr;
	unsigned int alive = fake_alive(FAKE_CQ);
	struct ibv_cq_ex *ex;
	struct ibv_cq *cq, *real;

	puts("CQs are made for markers");
	fake_last.cqs = 0;
	cq = ibv_create_cq(ctx, 5, NULL, NULL, 1);
	MUST(cq);
	real = fake_newest(FAKE_CQ);
	SAW("ibv_create_cq", real_ctx, 5 + SPARE, NULL, 1);
	CHECK(fake_last.cqs == 1 && cq->cqe == real->cqe - SPARE);
	CHECK(!ibv_resize_cq(cq, 100));
	SAW("ibv_resize_cq", real, 100 + SPARE);
	CHECK(cq->cqe == 100 + 1);
	CHECK(!ibv_destroy_cq(cq));

	/* at the device's limit */
	fake_fail("ibv_create_cq", EINVAL);
	cq = ibv_create_cq(ctx, 5, NULL, NULL, 1);
	MUST(cq);
	real = fake_newest(FAKE_CQ);
	SAW("ibv_create_cq", real_ctx, 5, NULL, 1);
	CHECK(fake_last.cqs == 3 && cq->cqe == 6);
	CHECK(!ibv_resize_cq(cq, 100));
	SAW("ibv_resize_cq", real, 100);
	CHECK(!ibv_destroy_cq(cq));

	fake_fail_times("ibv_create_cq", EMFILE, 2);
	FAILS_WITH(EMFILE, ibv_create_cq(ctx, 5, NULL, NULL, 1));
	CHECK(fake_last.cqs == 5);

	ex = ibv_create_cq_ex(ctx, &attr);
	MUST(ex);
	CHECK(fake_last.cq.cqe == 7 + SPARE && ex->cqe == 7 + 1);
	CHECK(!memcmp(&attr, &before, sizeof(attr)));
	CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(ex)));
	fake_fail("create_cq_ex", EINVAL);
	ex = ibv_create_cq_ex(ctx, &attr);
	MUST(ex);
	CHECK(fake_last.cq.cqe == 7 && ex->cqe == 8);
	CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(ex)));
	fake_last.cqs = 0;
	fake_fail_times("create_cq_ex", EMFILE, 2);
	FAILS_WITH(EMFILE, ibv_create_cq_ex(ctx, &attr));
	CHECK(fake_last.cqs == 2);
	CHECK(!memcmp(&attr, &before, sizeof(attr)));
	CHECK(fake_alive(FAKE_CQ) == alive);
}

static unsigned int queried_access(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(!ibv_query_qp(qp, &attr, IBV_QP_ACCESS_FLAGS, &init));
	return attr.qp_access_flags;
}

static void check_access(enum ibv_qp_type type, struct ibv_cq *cq, bool added)
{
	const unsigned int write = IBV_ACCESS_REMOTE_WRITE,
			   read = IBV_ACCESS_REMOTE_READ;
	struct ibv_qp_attr attr = { .qp_access_flags = read }, before = attr,
			   got;
	struct ibv_qp_init_attr init = { .send_cq = cq,
					 .recv_cq = cq,
					 .cap = { 1, 2, 3, 4, 5 },
					 .qp_type = type };
	struct ibv_qp_cap asked = init.cap;
	struct ibv_qp *qp;

	qp = ibv_create_qp(pd, &init);
	MUST(qp);
	CHECK(init.cap.max_send_wr == asked.max_send_wr + GROWN);
	asked.max_send_wr += type != IBV_QPT_XRC_SEND;
	CHECK(!memcmp(&fake_last.qp.cap, &asked, sizeof(asked)));

	CHECK(!ibv_query_qp(qp, &got, IBV_QP_CAP, &init));
	CHECK(init.cap.max_send_wr == 123u - (type != IBV_QPT_XRC_SEND));

	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_ACCESS_FLAGS));
	CHECK(fake_last.modify.qp_access_flags ==
	      (added ? read | write : read));
	CHECK(!memcmp(&attr, &before, sizeof(attr)));
	CHECK(queried_access(qp) == read);
	attr.qp_access_flags = write;
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_ACCESS_FLAGS));
	CHECK(fake_last.modify.qp_access_flags == write);
	CHECK(queried_access(qp) == write);
	/* what failed has not been asked for; nor has what the mask leaves out */
	attr.qp_access_flags = 0;
	fake_fail("ibv_modify_qp", EINVAL);
	CHECK(ibv_modify_qp(qp, &attr, IBV_QP_ACCESS_FLAGS) == EINVAL);
	CHECK(queried_access(qp) == write);
	set_state(qp, IBV_QPS_INIT);
	CHECK(queried_access(qp) == write);
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_ACCESS_FLAGS));
	CHECK(fake_last.modify.qp_access_flags == (added ? write : 0));
	CHECK(queried_access(qp) == 0);
	CHECK(!ibv_destroy_qp(qp));
}

static void test_qp_made(void)
{
	struct ibv_qp_init_attr init = { .cap.max_send_wr = 1 };
	struct ibv_qp_attr attr;
	struct ibv_cq *cq, *real;
	struct ibv_qp *qp;

	puts("QPs allow markers");
	cq = new_cq(8, &real);
	check_access(IBV_QPT_RC, cq, true);
	check_access(IBV_QPT_UC, cq, true);
	check_access(IBV_QPT_XRC_SEND, cq, false);
	check_access(IBV_QPT_UD, cq, false);
	init.send_cq = init.recv_cq = cq;
	init.qp_type = IBV_QPT_RC;
	fake_last.qps = 0;
	fake_fail_times("ibv_create_qp", ENOMEM, 2);
	FAILS_WITH(ENOMEM, ibv_create_qp(pd, &init));
	CHECK(fake_last.qps == 2);

	/* at the device's limit */
	init.cap.max_send_wr = 1;
	fake_fail("ibv_create_qp", EINVAL);
	qp = ibv_create_qp(pd, &init);
	MUST(qp);
	CHECK(fake_last.qp.cap.max_send_wr == 1);
	CHECK(init.cap.max_send_wr == 1 + GROWN);
	CHECK(!ibv_query_qp(qp, &attr, IBV_QP_CAP, &init));
	CHECK(init.cap.max_send_wr == 123);
	CHECK(!ibv_destroy_qp(qp));

	/* without a send queue there is none */
	init = (struct ibv_qp_init_attr){ .send_cq = cq,
					  .recv_cq = cq,
					  .qp_type = IBV_QPT_RC };
	qp = ibv_create_qp(pd, &init);
	MUST(qp);
	CHECK(!fake_last.qp.cap.max_send_wr);
	CHECK(!ibv_destroy_qp(qp));
	CHECK(!ibv_destroy_cq(cq));
}

/* --- who is suspended --- */

static void refused(const char *why)
{
	int err = layer_suspend(LONG, &found);

	CHECK(err == EOPNOTSUPP, "%d", err);
	CHECK(strstr(found.reason, why), "%s", found.reason);
	CHECK(layer_resume(&found) == EINVAL);
}

static void test_refused(void)
{
	static const uint64_t ops[] = { IBV_QP_EX_WITH_TSO,
					IBV_QP_EX_WITH_FLUSH,
					IBV_QP_EX_WITH_ATOMIC_WRITE };
	struct ibv_cq *cq, *real_cq, *small;
	struct ibv_qp *rc, *real_rc, *qp, *real;

	puts("QPs that cannot be suspended");
	CHECK(layer_resume(&found) == EINVAL);
	suspend(); /* nothing at all */
	CHECK(!found.qps && !found.markers && !found.taken);
	CHECK(layer_suspend(LONG, &found) == EBUSY && found.reason[0]);
	resume();
	CHECK(layer_resume(&found) == EINVAL);

	cq = new_cq(64, &real_cq);
	rc = new_qp(IBV_QPT_RC, cq, &real_rc);
	qp = new_qp(IBV_QPT_XRC_SEND, cq, &real);
	refused("of a type that cannot");
	CHECK(!fake_sends(real_rc) && !fake_sends(real));
	CHECK(!send_one(rc, 1, IBV_SEND_SIGNALED));
	SENT(real_rc, 1); /* nothing has changed */
	fake_finish(real_rc, 1, IBV_WC_SUCCESS);
	POLLED(cq, 4, 1);
	check_direct(cq, real_cq);

	/* where it cannot send, it is none of our business */
	set_state(qp, IBV_QPS_INIT);
	suspend();
	CHECK(found.qps == 1 && found.markers == 1);
	resume();
	set_state(qp, IBV_QPS_RTS);
	CHECK(!send_one(qp, 1, 0));
	CHECK(fake_sends(real) == 1 && !markers_of(real));
	CHECK(!ibv_destroy_qp(qp));

	for (int i = 0; i < 3; i++) {
		qp = new_qp_ex(IBV_QPT_RC, cq, ops[i] | IBV_QP_EX_WITH_SEND,
			       &real);
		refused("what cannot be queued");
		set_state(qp, IBV_QPS_ERR);
		suspend();
		CHECK(found.qps == 1);
		resume();
		CHECK(!ibv_destroy_qp(qp));
	}

	fake_fail("ibv_create_cq", EINVAL);
	small = new_cq(4, &real_cq);
	qp = new_qp(IBV_QPT_RC, small, &real);
	refused("without room for markers");
	CHECK(!ibv_destroy_qp(qp));
	qp = new_qp(IBV_QPT_XRC_SEND, cq, &real);
	refused("of a type that cannot");
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(small));

	qp = new_qp(IBV_QPT_XRC_RECV, cq, &real);
	suspend();
	CHECK(found.qps == 1 && !fake_sends(real));
	resume();
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_qp(rc));
	CHECK(!ibv_destroy_cq(cq));
}

/* in other states requests go through, and are what the provider makes of them */
static void test_states(void)
{
	static const enum ibv_qp_state states[] = {
		IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
		IBV_QPS_SQD,   IBV_QPS_SQE,  IBV_QPS_ERR
	};
	struct ibv_qp *qp, *real;
	struct ibv_cq *cq, *real_cq;

	puts("QPs that do not send");
	cq = new_cq(8, &real_cq);
	for (int i = 0; i < 6; i++) {
		qp = new_qp(IBV_QPT_RC, cq, &real);
		set_state(qp, states[i]);
		suspend();
		CHECK(!found.qps && !found.markers && !fake_sends(real));
		CHECK(!send_one(qp, 1, 0));
		SENT(real, 1);
		resume();
		SENT(real, 1);
		CHECK(!ibv_destroy_qp(qp));
	}
	CHECK(!ibv_destroy_cq(cq));
}

/* --- markers --- */

static void test_markers(void)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC,
						  IBV_QPT_RC };
	struct ibv_qp *qp[3], *real[3];
	const struct fake_sent *marker;
	struct ibv_cq *cq, *real_cq;

	puts("markers");
	cq = new_cq(8, &real_cq);
	for (int i = 0; i < 3; i++)
		qp[i] = new_qp(types[i], cq, &real[i]);
	for (unsigned int round = 1; round <= 3; round++) {
		suspend();
		CHECK(found.qps == 3 && found.markers == 3 && !found.taken);
		for (int i = 0; i < 3; i++) {
			CHECK(fake_sends(real[i]) == round);
			CHECK(markers_of(real[i]) == round);
			marker = fake_sent(real[i], round - 1);
			CHECK(marker->wr.send_flags == IBV_SEND_SIGNALED);
			CHECK((marker->wr.wr_id & 0xffffff) == real[i]->qp_num);
			CHECK(marker->wr.wr_id >> 24);
		}
		check_nothing(cq);
		resume();
		check_direct(cq, real_cq);
	}

	/* what was posted before completes before */
	CHECK(!send_one(qp[0], 1, 0) && !send_one(qp[0], 2, IBV_SEND_SIGNALED));
	suspend();
	CHECK(found.taken == 1 && !fake_waiting(real[0]));
	POLLED(cq, 4, 2);
	resume();
	check_direct(cq, real_cq);
	for (int i = 0; i < 3; i++)
		CHECK(!ibv_destroy_qp(qp[i]));
	CHECK(!ibv_destroy_cq(cq));
}

static void test_app_polls(void)
{
	struct ibv_qp *qp, *real;
	struct ibv_cq *cq, *real_cq;

	puts("markers that the application itself polls");
	cq = new_cq(8, &real_cq);
	qp = new_qp(IBV_QPT_RC, cq, &real);
	prompt = false;
	CHECK(!send_one(qp, 1, IBV_SEND_SIGNALED));
	begin_suspend(LONG);
	WAIT(markers_of(real) == 1);
	check_nothing(cq);
	fake_finish(real, 1, IBV_WC_SUCCESS);
	POLLED(cq, 1, 1);
	CHECK(!other.done);
	fake_finish(real, 1, IBV_WC_SUCCESS);
	check_nothing(cq); /* whoever of both takes it */
	CHECK(!end_suspend());
	CHECK(found.markers == 1);
	check_nothing(cq);
	resume();
	check_direct(cq, real_cq);

	/* the peer is gone: what was under way fails, but it does end */
	CHECK(!send_one(qp, 2, 0));
	begin_suspend(LONG);
	WAIT(markers_of(real) == 2);
	fake_finish(real, 2, IBV_WC_RETRY_EXC_ERR);
	CHECK(!end_suspend());
	POLLED(cq, 4, 2);
	resume();
	prompt = true;
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
}

static unsigned int sends_of(struct ibv_qp **real, int n)
{
	unsigned int sum = 0;

	while (n--)
		sum += fake_sends(real[n]);
	return sum;
}

static void test_many(void)
{
	enum {
		MANY = 2 * SPARE + 3
	};
	struct ibv_qp *qp[MANY], *real[MANY];
	struct ibv_cq *cq, *real_cq;
	unsigned int most, finished = 0;

	puts("more QPs than a CQ has room for markers");
	cq = new_cq(1,
		    &real_cq); /* the fake sees to it that it is not overrun */
	for (int i = 0; i < MANY; i++)
		qp[i] = new_qp(IBV_QPT_RC, cq, &real[i]);
	prompt = false;
	begin_suspend(LONG);
	while (finished < MANY) {
		most = finished + SPARE - 1; /* one is left to others */
		if (most > MANY)
			most = MANY;
		WAIT(sends_of(real, MANY) == most);
		for (int i = 0; i < MANY; i++)
			if (fake_waiting(real[i])) {
				finished +=
					fake_finish(real[i], 1, IBV_WC_SUCCESS);
				break;
			}
		CHECK(finished == MANY || !other.done);
	}
	CHECK(!end_suspend());
	CHECK(found.markers == MANY && found.qps == MANY && !found.taken);
	for (int i = 0; i < MANY; i++)
		CHECK(markers_of(real[i]) == 1);
	check_nothing(cq);
	resume();
	check_direct(cq, real_cq);
	prompt = true;
	for (int i = 0; i < MANY; i++)
		CHECK(!ibv_destroy_qp(qp[i]));
	CHECK(!ibv_destroy_cq(cq));
}

static void test_full(void)
{
	struct ibv_qp *qp, *real;
	struct ibv_cq *cq, *real_cq;

	puts("a send queue that is full");
	cq = new_cq(8, &real_cq);
	qp = new_qp(IBV_QPT_RC, cq, &real);
	prompt = false;
	/* who asks for no room finds that for a marker, too */
	for (unsigned int i = 0; i <= cap.max_send_wr; i++)
		CHECK(!send_one(qp, i, i == 5 ? IBV_SEND_SIGNALED : 0));
	CHECK(send_one(qp, 99, 0) == ENOMEM);
	begin_suspend(LONG);
	WAIT(fake_fulls(real) > 3);
	CHECK(!other.done && !markers_of(real));
	fake_finish(real, 6, IBV_WC_SUCCESS);
	WAIT(markers_of(real) == 1);
	CHECK(!other.done);
	fake_finish(real, UINT_MAX, IBV_WC_SUCCESS);
	CHECK(!end_suspend());
	CHECK(found.markers == 1 && found.taken == 1);
	resume();
	POLLED(cq, 8, 5);
	check_direct(cq, real_cq);
	prompt = true;
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
}

static void test_timeout(void)
{
	struct ibv_wc late = { .opcode = IBV_WC_RDMA_WRITE };
	struct ibv_qp *qp, *real, *stuck, *real_stuck;
	struct ibv_cq *cq, *real_cq;

	puts("a peer that does not answer");
	cq = new_cq(8, &real_cq);
	stuck = new_qp(IBV_QPT_RC, cq, &real_stuck);
	qp = new_qp(IBV_QPT_RC, cq, &real);
	prompt = false;
	CHECK(!send_one(stuck, 1, IBV_SEND_SIGNALED));
	begin_suspend(200);
	WAIT(markers_of(real_stuck) == 1 && markers_of(real) == 1);
	CHECK(!send_one(stuck, 2, 0) && !send_one(stuck, 3, 0));
	if (!other.done)
		CHECK(fake_sends(real_stuck) == 2);
	fake_finish(real, 1, IBV_WC_SUCCESS);
	CHECK(end_suspend() == ETIMEDOUT);
	CHECK(strstr(found.reason, "not drained"));
	CHECK(layer_resume(&found) == EINVAL);
	SENT(real_stuck, 1, 2, 3);
	CHECK(!send_one(stuck, 4, IBV_SEND_SIGNALED));
	SENT(real_stuck, 1, 2, 3, 4); /* at once */
	check_nothing(cq);
	fake_finish(real_stuck, 2, IBV_WC_SUCCESS); /* and the marker */
	POLLED(cq, 1, 1);
	fake_finish(real_stuck, 3, IBV_WC_SUCCESS);
	POLLED(cq, 4, 4);
	check_direct(cq, real_cq);
	prompt = true;
	suspend();
	resume();
	CHECK(markers_of(real_stuck) == 2 && markers_of(real) == 2);

	puts("the marker of a QP that is destroyed");
	prompt = false;
	CHECK(layer_suspend(1, &found) == ETIMEDOUT);
	CHECK(markers_of(real_stuck) == 3);
	late.wr_id =
		fake_sent(real_stuck, fake_sends(real_stuck) - 1)->wr.wr_id;
	late.qp_num = stuck->qp_num;
	CHECK(!ibv_destroy_qp(stuck));
	/* some providers leave it in the CQ */
	fake_complete(real_cq, &late);
	check_nothing(cq);
	fake_finish(real, 1, IBV_WC_SUCCESS);
	check_nothing(cq);
	check_direct(cq, real_cq);
	prompt = true;
	suspend();
	CHECK(found.qps == 1);
	resume();
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
}

static struct ibv_qp *marked_qp(struct ibv_cq *cq, struct ibv_qp **real)
{
	struct ibv_qp *qp = new_qp(IBV_QPT_RC, cq, real);

	prompt = false;
	CHECK(layer_suspend(1, &found) == ETIMEDOUT);
	CHECK(markers_of(*real) == 1);
	return qp;
}

/* It says nothing of what was posted since. */
static void test_stale(void)
{
	struct ibv_cq *cq, *real_cq;
	struct ibv_qp *qp, *real;

	puts("a marker of a suspension that has failed");
	cq = new_cq(8, &real_cq);
	qp = marked_qp(cq, &real);
	CHECK(!send_one(qp, 1, IBV_SEND_SIGNALED));
	begin_suspend(LONG);
	fake_finish(real, 1, IBV_WC_SUCCESS);
	WAIT(markers_of(real) == 2);
	CHECK(!other.done);
	fake_finish(real, 2, IBV_WC_SUCCESS);
	CHECK(!end_suspend() && !fake_waiting(real));
	resume();
	POLLED(cq, 4, 1);
	CHECK(!ibv_destroy_qp(qp));

	puts("has a place of its own in the queue");
	qp = marked_qp(cq, &real);
	for (unsigned int i = 0; i < cap.max_send_wr; i++)
		CHECK(!send_one(qp, i, IBV_SEND_SIGNALED * !i));
	begin_suspend(LONG); /* and so has that of the next one */
	fake_finish(real, 1, IBV_WC_SUCCESS);
	WAIT(markers_of(real) == 2);
	fake_finish(real, UINT_MAX, IBV_WC_SUCCESS);
	CHECK(!end_suspend());
	resume();
	POLLED(cq, 4, 0);
	CHECK(!ibv_destroy_qp(qp));

	puts("in RESET there is none any more");
	qp = marked_qp(cq, &real);
	set_state(qp, IBV_QPS_RESET);
	set_state(qp, IBV_QPS_RTS);
	prompt = true;
	suspend();
	resume();
	CHECK(!ibv_destroy_qp(qp));

	puts("nor of a QP that is gone");
	qp = marked_qp(cq, &real);
	fake_finish(real, 1, IBV_WC_SUCCESS);
	CHECK(!ibv_destroy_qp(qp));
	check_nothing(cq);
	CHECK(!ibv_destroy_cq(cq));
	prompt = true;
}

/* What is collected then waits for room: that is not what the provider refuses. */
static void test_no_room(void)
{
	struct ibv_cq *cq, *real_cq;
	struct ibv_qp *qp, *real;

	puts("a suspension that fails with a send queue full");
	cq = new_cq(32, &real_cq);
	qp = new_qp(IBV_QPT_RC, cq, &real);
	prompt = false;
	CHECK(!send_one(qp, 99, 0));
	begin_suspend(200);
	WAIT(markers_of(real) == 1);
	for (unsigned int i = 0; i < cap.max_send_wr; i++)
		CHECK(!send_one(qp, i, IBV_SEND_SIGNALED));
	WAIT(fake_sends(real) == cap.max_send_wr + 1); /* and a marker */
	fake_finish(real, 1, IBV_WC_SUCCESS);
	CHECK(end_suspend() == ETIMEDOUT);
	CHECK(real->state == IBV_QPS_RTS);
	WAIT(suspend_go_on());
	CHECK(fake_sends(real) == cap.max_send_wr + 2);
	fake_finish(real, UINT_MAX, IBV_WC_SUCCESS);
	for (uint64_t i = 0; i < cap.max_send_wr; i++) {
		struct ibv_wc wc;

		MUST(ibv_poll_cq(cq, 1, &wc) == 1);
		CHECK(wc.wr_id == i);
	}
	check_direct(cq, real_cq);
	prompt = true;
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
}

/* An extended CQ need not tell of which QP a completion is. */
static void test_nameless(void)
{
	struct ibv_cq *real_cq;
	struct ibv_qp *qp, *real;
	struct ibv_cq_ex *ex;
	struct ibv_wc wc;

	puts("extended CQs that tell little");
	ex = new_cq_ex(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, &real_cq);
	qp = new_qp(IBV_QPT_RC, ibv_cq_ex_to_cq(ex), &real);
	suspend();
	resume();
	CHECK(!ibv_destroy_qp(qp));
	CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(ex)));

	/* as UCX and perftest have them */
	ex = new_cq_ex(0, &real_cq);
	qp = new_qp(IBV_QPT_RC, ibv_cq_ex_to_cq(ex), &real);
	CHECK(!send_one(qp, 7, IBV_SEND_SIGNALED));
	fake_finish(real, 1, IBV_WC_SUCCESS);
	suspend();
	resume();
	MUST(ibv_poll_cq(ibv_cq_ex_to_cq(ex), 1, &wc) == 1);
	CHECK(wc.wr_id == 7 && wc.qp_num == qp->qp_num);
	CHECK(!ibv_destroy_qp(qp));
	CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(ex)));
}

int main(void)
{
	rig_open();
	test_cq_made();
	test_qp_made();
	test_refused();
	test_states();
	test_markers();
	test_app_polls();
	test_many();
	test_full();
	test_timeout();
	test_stale();
	test_no_room();
	test_nameless();
	return rig_close();
}
