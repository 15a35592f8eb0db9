// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Signals while a thread waits for an event, as libibverbs has it in read(2)
 */
#include <signal.h>

#include "replace_rig.h"

static atomic_uint handled, threads_done;

static void handle(int number)
{
	(void)number;
	handled++;
}

static void handle_with(int flags)
{
	struct sigaction action = { .sa_handler = handle, .sa_flags = flags };

	MUST(!sigaction(SIGUSR1, &action, NULL));
}

static void *get_cq_event(void *err)
{
	struct ibv_cq *cq;
	void *context;

	*(int *)err = ibv_get_cq_event(w.channel, &cq, &context) ? errno : 0;
	if (!*(int *)err)
		ibv_ack_cq_events(cq, 1);
	threads_done++;
	return NULL;
}

static void *get_async_event(void *err)
{
	struct ibv_async_event event;

	*(int *)err = ibv_get_async_event(ctx, &event) ? errno : 0;
	if (!*(int *)err)
		ibv_ack_async_event(&event);
	threads_done++;
	return NULL;
}

static void cq_event(void)
{
	CHECK(!ibv_req_notify_cq(w.cq, 0));
	fake_cq_event(w.real_cq);
}

static void async_event(void)
{
	struct ibv_async_event event = { .event_type = IBV_EVENT_PORT_ACTIVE };

	fake_async_event(real_ctx, &event);
}

static void test(void *(*get)(void *err), void (*come)(void))
{
	pthread_t thread[2];
	int err[2];

	puts("a handler with SA_RESTART");
	threads_done = 0;
	handle_with(SA_RESTART);
	for (int i = 0; i < 2; i++)
		MUST(!pthread_create(&thread[i], NULL, get, &err[i]));
	for (unsigned int i = 1; i <= 10; i++) {
		usleep(2000);
		pthread_kill(thread[0], SIGUSR1);
		WAIT(handled == i);
	}
	usleep(20000);
	CHECK(!threads_done);
	come();
	WAIT(threads_done == 1);
	usleep(20000);
	CHECK(threads_done == 1); /* it was one event */
	come();
	for (int i = 0; i < 2; i++) {
		MUST(!pthread_join(thread[i], NULL));
		CHECK(!err[i], "%d", err[i]);
	}

	puts("and without");
	handle_with(0);
	handled = 0;
	threads_done = 0;
	MUST(!pthread_create(&thread[0], NULL, get, &err[0]));
	while (!threads_done) {
		usleep(2000);
		pthread_kill(thread[0], SIGUSR1);
	}
	MUST(!pthread_join(thread[0], NULL));
	CHECK(err[0] == EINTR && handled);
	handled = 0;
	come();
	get(&err[0]);
	CHECK(!err[0]);
}

/* What it waits at is replaced in between. */
static void test_replaced(void)
{
	pthread_t thread;
	int err;

	puts("the object is replaced meanwhile");
	threads_done = 0;
	MUST(!pthread_create(&thread, NULL, get_cq_event, &err));
	usleep(20000);
	world_replace();
	usleep(20000);
	CHECK(!threads_done);
	cq_event();
	MUST(!pthread_join(thread, NULL));
	CHECK(!err);
}

/* One that is cancelled takes nothing from those that still wait. */
static void test_cancelled(void)
{
	pthread_t thread[2];
	int err[2];

	puts("a thread that is cancelled while it waits");
	for (int i = 0; i < 2; i++)
		MUST(!pthread_create(&thread[i], NULL, get_cq_event, &err[i]));
	usleep(20000);
	pthread_cancel(thread[0]);
	MUST(!pthread_join(thread[0], NULL));
	cq_event();
	MUST(!pthread_join(thread[1], NULL));
	CHECK(!err[1]);
}

int main(void)
{
	rig_open();
	world_make();
	test(get_cq_event, cq_event);
	test(get_async_event, async_event);
	test_replaced();
	test_cancelled();
	world_destroy();
	return rig_close();
}
