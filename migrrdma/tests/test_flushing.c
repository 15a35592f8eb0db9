// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the application does while queues are being flushed
 */
#include <poll.h>

#include "replace_rig.h"
#include "section.h"

static void *replace_thread(void *arg)
{
	(void)arg;
	replace_all();
	return NULL;
}

/* Three RECVs, of which two are flushed, and a completion of the application's. */
static pthread_t begin(void)
{
	pthread_t thread;

	world_make();
	for (uint64_t i = 1; i <= 4; i++)
		CHECK(!recv_one(w.qp, i));
	CHECK(!ibv_req_notify_cq(w.cq, 1)); /* a failure is an event, too */
	suspend();
	fake_receive(w.real, 1);
	fake_flush(2);
	MUST(!pthread_create(&thread, NULL, replace_thread, NULL));
	WAIT(fake_next_recv(w.real) == 4 && !fake_completions(w.real_cq));
	return thread;
}

static void end(pthread_t thread)
{
	fake_flush(UINT_MAX);
	MUST(!pthread_join(thread, NULL));
	connect_all();
	resume();
	RECVS(w.real, 2, 3, 4);
	world_destroy();
}

static void test_events(void)
{
	struct pollfd p = { .events = POLLIN };
	pthread_t thread;

	puts("events of flushes do not wake up who waits");
	thread = begin();
	p.fd = w.channel->fd;
	CHECK(poll(&p, 1, 20) == 0);
	end(thread);
}

static void test_polls(void)
{
	pthread_t thread;

	puts("polls do not wait for flushes");
	thread = begin();
	POLLED(w.cq, 1, 1);
	check_nothing(w.cq);
	CHECK(fake_next_recv(w.real) == 4); /* that was not the end of it */
	end(thread);
}

static void test_late(void)
{
	puts("a message that arrives at the last moment");
	world_make();
	CHECK(!recv_srq(1) && !recv_srq(2));
	suspend();
	fake_linger(w.real_srq);
	replace_all();
	connect_all();
	resume();
	POLLED(w.cq, 1, 1);
	fake_receive(w.real_srq, 1);
	POLLED(w.cq, 1, 2);
	CHECK(!readable(ctx->async_fd));
	world_destroy();
}

static void is_moved(struct ibv_qp *real_qp)
{
	hold(100);
	CHECK(real_qp->state == IBV_QPS_ERR);
	replace_all();
	connect_all();
	resume();
}

/* It is asked for its state, and that is all. */
static void test_empty(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	puts("what has nothing to be flushed is not moved");
	world_make();
	hold(100);
	CHECK(w.real->state == IBV_QPS_RTS);
	CHECK(w.real_srq->state == IBV_QPS_ERR);
	/* and is not asked again: its device may be another one */
	fake_fail("ibv_query_qp", EIO);
	replace_all();
	CHECK(ibv_query_qp(w.real, &attr, 0, &init) == EIO);
	connect_all();
	resume();

	/* it has had something once */
	CHECK(!recv_one(w.qp, 1));
	fake_receive(w.real, 1);
	POLLED(w.cq, 1, 1);
	is_moved(w.real);
	world_destroy();
}

/* One that is not in RTS has never sent anything. */
static void test_rtr(void)
{
	struct ibv_qp *real_qp, *qp;

	puts("nor what can only receive, and does not");
	world_make();
	qp = new_qp(IBV_QPT_RC, w.cq, &real_qp);
	set_state(qp, IBV_QPS_RESET);
	to_rtr(qp);
	hold(100);
	CHECK(real_qp->state == IBV_QPS_RTR);
	replace_all();
	CHECK(!layer_set_peer(qp->qp_num, 0x6000, &(union ibv_gid){}, "peer",
			      &swapped));
	connect_all();
	CHECK(to_qp(qp)->real != real_qp);
	resume();
	CHECK(!ibv_destroy_qp(qp));
	world_destroy();
}

/* Nobody knows that it is drained, or what may come yet. */
static void test_not_empty(void)
{
	struct ibv_qp *real_qp, *uc;

	puts("what may have something is moved");
	world_make();
	uc = new_qp(IBV_QPT_UC, w.cq, &real_qp);
	suspend();
	to_qp(w.qp)->marker_status = IBV_WC_RETRY_EXC_ERR;
	CHECK(!layer_hold(LONG, 100, &swapped), "%s", swapped.reason);
	CHECK(w.real->state == IBV_QPS_ERR);
	CHECK(real_qp->state == IBV_QPS_ERR);
	replace_all();
	CHECK(!layer_set_peer(uc->qp_num, 0x6000, &(union ibv_gid){}, "peer",
			      &swapped));
	connect_all();
	resume();
	CHECK(!ibv_destroy_qp(uc));
	world_destroy();

	/* of which a RECV has come between two attempts */
	world_make();
	suspend();
	fake_fail_later("ibv_query_qp", EAGAIN, 1);
	CHECK(layer_replace(NULL, 0, LONG, &swapped) == EAGAIN);
	CHECK(w.real->state == IBV_QPS_RTS);
	CHECK(!recv_one(w.qp, 1));
	replace_all();
	connect_all();
	resume();
	RECVS(w.real, 1);
	world_destroy();
}

/* It can never have sent anything, and there is no place for a marker. */
static void test_no_sends(void)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .cap.max_recv_wr = 4,
					 .cap.max_recv_sge = 1 };
	struct ibv_qp *qp;

	puts("who has no send queue");
	world_make();
	init.send_cq = init.recv_cq = w.cq;
	fake_exact = true;
	qp = ibv_create_qp(pd, &init);
	fake_exact = false;
	MUST(qp && !init.cap.max_send_wr);
	to_rts(qp);
	CHECK(!recv_one(qp, 1));
	suspend();
	replace_all();
	CHECK(!layer_set_peer(qp->qp_num, 0x6000, &(union ibv_gid){}, "peer",
			      &swapped));
	connect_all();
	resume();
	RECVS(to_qp(qp)->real, 1);
	CHECK(!ibv_destroy_qp(qp));
	world_destroy();
}

enum {
	MANY = 40,
};

/* One of them has died, and is asked once more when it is its turn. */
static void test_many(void)
{
	struct ibv_qp *qp[MANY], *real_qp[MANY];

	puts("many are asked at once");
	world_make();
	for (int i = 0; i < MANY; i++)
		qp[i] = new_qp(IBV_QPT_RC, w.cq, &real_qp[i]);
	suspend();
	/* one cannot be asked: those that could are asked again */
	fake_fail_later("ibv_query_qp", EAGAIN, 30);
	CHECK(layer_replace(NULL, 0, LONG, &swapped) == EAGAIN);
	CHECK(strstr(swapped.reason, "is not flushed"), "%s", swapped.reason);
	for (int i = 0; i < MANY; i++)
		CHECK(real_qp[i]->state == IBV_QPS_RTS);
	fake_dies(real_qp[7]);
	fake_last.queries = fake_last.queries_at_once = 0;
	fake_slow = true;
	replace_all();
	fake_slow = false;
	/* with the two of the world's */
	CHECK(fake_last.queries == MANY + 3, "%u", fake_last.queries);
	CHECK(fake_last.queries_at_once > 1);
	for (int i = 0; i < MANY; i++)
		CHECK(!layer_set_peer(qp[i]->qp_num, 0x6000, &(union ibv_gid){},
				      "peer", &swapped));
	connect_all();
	resume();
	for (int i = 0; i < MANY; i++) {
		CHECK(to_qp(qp[i])->real->state ==
		      (i == 7 ? IBV_QPS_ERR : IBV_QPS_RTS));
		CHECK(!ibv_destroy_qp(qp[i]));
	}
	world_destroy();
}

/* Which of these are in ERR? */
static unsigned int moved(struct ibv_qp *const *real_qp, int n)
{
	unsigned int bits = 0;

	for (int i = 0; i < n; i++)
		bits |= (unsigned int)(fake_state(real_qp[i]) == IBV_QPS_ERR)
			<< i;
	return bits;
}

/*
 * A device flushes many at once: as many as their CQ has room for, if all they had comes
 * together. And each has its own.
 */
static void test_several(int cqe, unsigned int first)
{
	struct ibv_qp *qp[10], *real_qp[10];
	struct ibv_cq *cq;
	pthread_t thread;

	printf("ten of a CQ with %d entries\n", cqe);
	world_make();
	cq = ibv_create_cq(ctx, cqe, NULL, NULL, 0);
	MUST(cq);
	for (unsigned int i = 0; i < 10; i++) {
		qp[i] = new_qp(IBV_QPT_RC, cq, &real_qp[i]);
		CHECK(!recv_one(qp[i], 10 * i) &&
		      !recv_one(qp[i], 10 * i + 1) &&
		      !recv_one(qp[i], 10 * i + 2));
	}
	suspend();
	for (unsigned int i = 0; i < 10; i++)
		fake_receive(real_qp[i], 1);
	fake_flush(0);
	MUST(!pthread_create(&thread, NULL, replace_thread, NULL));
	WAIT(moved(real_qp, 10) == first);
	usleep(10000);
	CHECK(moved(real_qp, 10) == first);
	fake_flush(UINT_MAX);
	MUST(!pthread_join(thread, NULL));
	CHECK(swapped.recvs == 20, "%u", swapped.recvs);
	for (unsigned int i = 0; i < 10; i++)
		CHECK(!layer_set_peer(qp[i]->qp_num, 0x6000 + i,
				      &(union ibv_gid){}, "peer", &swapped));
	connect_all();
	resume();
	POLLED(cq, 4, 0, 10, 20, 30, 40, 50, 60, 70, 80, 90);
	check_nothing(cq);
	for (unsigned int i = 0; i < 10; i++) {
		RECVS(to_qp(qp[i])->real, 10 * i + 1, 10 * i + 2);
		CHECK(!ibv_destroy_qp(qp[i]));
	}
	CHECK(!ibv_destroy_cq(cq));
	world_destroy();
}

/* Nobody waits for them any more: then all is the application's, of either. */
static void test_two_given_up(void)
{
	struct ibv_qp *qp[2], *real_qp;
	unsigned int seen = 0, n = 0;
	struct ibv_cq *cq;
	struct ibv_wc wc;

	puts("two that are given up");
	world_make();
	cq = ibv_create_cq(ctx, 200, NULL, NULL, 0);
	MUST(cq);
	for (unsigned int i = 0; i < 2; i++) {
		qp[i] = new_qp(IBV_QPT_RC, cq, &real_qp);
		CHECK(!recv_one(qp[i], 2 * i) && !recv_one(qp[i], 2 * i + 1));
	}
	suspend();
	fake_flush(3);
	CHECK(layer_replace(NULL, 0, 100, &swapped) == ETIMEDOUT);
	check_nothing(cq);
	fake_flush(UINT_MAX);
	layer_give_up();
	for (; ibv_poll_cq(cq, 1, &wc) == 1; n++) {
		CHECK(wc.wr_id < 4 && wc.status == IBV_WC_WR_FLUSH_ERR);
		CHECK(wc.qp_num == qp[wc.wr_id / 2]->qp_num);
		seen |= 1U << wc.wr_id;
	}
	CHECK(n == 4 && seen == 15, "%u, 0x%x", n, seen);
	for (int i = 0; i < 2; i++)
		CHECK(!ibv_destroy_qp(qp[i]));
	CHECK(!ibv_destroy_cq(cq));
	world_destroy();
}

static struct ibv_cq_ex *ex;
static atomic_bool begun;

static bool is_locked(struct ibv_cq *cq)
{
	bool locked = pthread_mutex_trylock(&to_cq(cq)->lock);

	if (!locked)
		pthread_mutex_unlock(&to_cq(cq)->lock);
	return locked;
}

/* the other one when the layer has it, if that is ever seen */
static void *poll_within(void *arg)
{
	struct ibv_poll_cq_attr attr = {};
	struct ibv_wc wc;

	(void)arg;
	CHECK(!ibv_start_poll(ex, &attr) && ex->wr_id == 7);
	begun = true;
	for (int i = 0; i < 20000 && !is_locked(w.cq); i++)
		usleep(100);
	CHECK(!ibv_poll_cq(w.cq, 1, &wc));
	ibv_end_poll(ex);
	return NULL;
}

static atomic_bool enough;

static void *stay_within(void *arg)
{
	(void)arg;
	section_begin();
	begun = true;
	WAIT(enough);
	section_end();
	return NULL;
}

/* What was posted meanwhile is not for the old one. */
static void test_held(void)
{
	pthread_t thread;

	puts("what is empty and held, and cannot be replaced at first");
	world_make();
	set_state(w.of_srq, IBV_QPS_RESET);
	hold(100);
	CHECK(!recv_one(w.qp, 1));
	begun = enough = false;
	MUST(!pthread_create(&thread, NULL, stay_within, NULL));
	WAIT(begun);
	CHECK(layer_replace(NULL, 0, 100, &swapped) == ETIMEDOUT);
	CHECK(!recv_one(w.qp, 2));
	enough = true;
	MUST(!pthread_join(thread, NULL));
	replace_all();
	CHECK(!layer_set_peer(w.qp->qp_num, 0x5001, &(union ibv_gid){}, "peer",
			      &swapped));
	CHECK(!layer_connect(&swapped), "%s", swapped.reason);
	resume();
	RECVS(w.real, 1, 2);
	world_destroy();
}

/* It waits for the end of the suspension with what it has polled. */
static void *verb_within(void *arg)
{
	struct ibv_poll_cq_attr attr = {};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr of;

	(void)arg;
	CHECK(!ibv_start_poll(ex, &attr) && ex->wr_id == 7);
	begun = true;
	CHECK(!ibv_query_qp(w.qp, &of, IBV_QP_STATE, &init));
	CHECK(ibv_wc_read_opcode(ex) == IBV_WC_RECV);
	CHECK(!ibv_next_poll(ex) && ex->wr_id == 8);
	CHECK(ibv_next_poll(ex) == ENOENT);
	ibv_end_poll(ex);
	return NULL;
}

/* It waits for what is flushed of a QP with the same CQ. */
static void *recv_within(void *arg)
{
	struct ibv_poll_cq_attr attr = {};

	CHECK(!ibv_start_poll(ex, &attr) && ex->wr_id == 7);
	begun = true;
	CHECK(!recv_one(arg, 2));
	ibv_end_poll(ex);
	return NULL;
}

/* Nothing of it is locked: it may wait for the layer. */
static void test_within(void)
{
	const struct ibv_wc wc[] = {
		{ .wr_id = 7, .opcode = IBV_WC_RECV },
		{ .wr_id = 8, .opcode = IBV_WC_RECV },
	};
	struct ibv_qp *qp, *real_qp;
	struct ibv_cq *cq, *real_cq;
	pthread_t thread, within;

	puts("a thread with a verb within a batch of polls");
	world_make();
	ex = new_cq_ex(0, &real_cq);
	cq = ibv_cq_ex_to_cq(ex);
	fake_complete(real_cq, &wc[0]);
	fake_complete(real_cq, &wc[1]);
	suspend();
	begun = false;
	MUST(!pthread_create(&thread, NULL, verb_within, NULL));
	WAIT(begun);
	CHECK(!layer_hold(LONG, 100, &swapped), "%s", swapped.reason);
	replace_all();
	connect_all();
	resume();
	MUST(!pthread_join(thread, NULL));

	puts("or who receives");
	qp = new_qp(IBV_QPT_RC, cq, &real_qp);
	real_cq = to_cq(cq)->real;
	CHECK(!recv_one(qp, 1));
	suspend();
	fake_complete(real_cq, &wc[0]);
	fake_flush(0);
	begun = false;
	MUST(!pthread_create(&thread, NULL, replace_thread, NULL));
	WAIT(fake_state(real_qp) == IBV_QPS_ERR);
	MUST(!pthread_create(&within, NULL, recv_within, qp));
	WAIT(begun);
	fake_flush(UINT_MAX);
	MUST(!pthread_join(thread, NULL));
	CHECK(!layer_set_peer(qp->qp_num, 0x6000, &(union ibv_gid){}, "peer",
			      &swapped));
	connect_all();
	resume();
	MUST(!pthread_join(within, NULL));
	RECVS(to_qp(qp)->real, 1, 2);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
	world_destroy();
}

static void test_nested(bool older)
{
	struct ibv_cq *real_cq;
	pthread_t thread;

	printf("a thread that polls a CQ within a batch of %s one\n",
	       older ? "an older" : "a newer");
	if (older)
		ex = new_cq_ex(0, &real_cq);
	world_make();
	if (!older)
		ex = new_cq_ex(0, &real_cq);
	fake_complete(real_cq, &(struct ibv_wc){ .wr_id = 7 });
	suspend();
	begun = false;
	MUST(!pthread_create(&thread, NULL, poll_within, NULL));
	WAIT(begun);
	replace_all();
	MUST(!pthread_join(thread, NULL));
	connect_all();
	resume();
	CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(ex)));
	world_destroy();
}

int main(void)
{
	rig_open();
	test_empty();
	test_rtr();
	test_not_empty();
	test_no_sends();
	test_many();
	test_several(400, 0x3f);
	test_several(110, 3);
	test_two_given_up();
	test_held();
	test_within();
	test_events();
	test_polls();
	test_late();
	test_nested(true);
	test_nested(false);
	return rig_close();
}
