// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Threads that are cancelled within the layer leave none of its locks behind
 */
#include "replace_rig.h"

static atomic_bool passed, begun;

static void *modify(void *arg)
{
	(void)arg;
	begun = true;
	set_state(w.qp, IBV_QPS_RTS);
	passed = true;
	pthread_testcancel();
	return NULL;
}

static void *receive(void *arg)
{
	(void)arg;
	begun = true;
	CHECK(!recv_one(w.qp, 2));
	passed = true;
	pthread_testcancel();
	return NULL;
}

/* one that is cancelled already */
static void *get_event(void *arg)
{
	struct ibv_cq *cq;
	void *context;

	(void)arg;
	pthread_cancel(pthread_self());
	CHECK(!ibv_get_cq_event(w.channel, &cq, &context));
	ibv_ack_cq_events(cq, 1);
	passed = true;
	pthread_testcancel();
	return NULL;
}

static pthread_t start(void *(*call)(void *arg))
{
	pthread_t thread;

	passed = begun = false;
	MUST(!pthread_create(&thread, NULL, call, NULL));
	return thread;
}

/* it has ended its verb, and then itself */
static void check_cancelled(pthread_t thread)
{
	void *value;

	MUST(!pthread_join(thread, &value));
	CHECK(value == PTHREAD_CANCELED && passed);
}

/* a thread that waits, for sure or not; it is not seen from here */
static void cancel(pthread_t thread)
{
	WAIT(begun);
	usleep(20000);
	CHECK(!passed);
	pthread_cancel(thread);
	usleep(20000);
}

int main(void)
{
	pthread_t thread;

	rig_open();
	world_make();
	puts("a thread that waits for the end of a suspension");
	suspend();
	thread = start(modify);
	cancel(thread);
	resume();
	check_cancelled(thread);
	suspend();
	resume();

	puts("one that waits until RECVs are counted");
	CHECK(!recv_one(w.qp, 1));
	suspend();
	fake_flush(0);
	CHECK(layer_replace(NULL, 0, 20, &swapped) == ETIMEDOUT);
	thread = start(receive);
	cancel(thread);
	fake_flush(UINT_MAX);
	replace_all();
	check_cancelled(thread);
	RECVS(w.real, 1, 2);
	connect_all();
	resume();

	puts("and one that takes an event of the layer's");
	CHECK(!ibv_req_notify_cq(w.cq, 0));
	fake_receive(w.real, 1);
	world_replace();
	CHECK(readable(w.channel->fd));
	check_cancelled(start(get_event));
	CHECK(!readable(w.channel->fd));
	world_replace();
	world_destroy();
	return rig_close();
}
