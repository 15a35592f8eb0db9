// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the application does while queues are being flushed
 */
#include <poll.h>

#include "replace_rig.h"

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
	hold(100);
	CHECK(w.real->state == IBV_QPS_ERR);
	replace_all();
	connect_all();
	resume();

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
	test_events();
	test_polls();
	test_late();
	test_nested(true);
	test_nested(false);
	return rig_close();
}
