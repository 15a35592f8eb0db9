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
	WAIT(fake_recvs(w.real) && fake_recvs(w.real)->wr_id == 4 &&
	     !fake_completions(w.real_cq));
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
	CHECK(fake_recvs(w.real)); /* that was not the end of it */
	end(thread);
}

int main(void)
{
	rig_open();
	test_events();
	test_polls();
	return rig_close();
}
