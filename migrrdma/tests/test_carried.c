// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Events before, while and after objects are replaced
 */
#include <fcntl.h>

#include "replace_rig.h"

static void *event_thread(void *arg)
{
	struct ibv_cq *cq;
	void *context;

	CHECK(!ibv_get_cq_event(w.channel, &cq, &context));
	CHECK(cq == w.cq && context == &w);
	atomic_store((atomic_bool *)arg, true);
	return NULL;
}

static void test_events(void)
{
	struct ibv_async_event event = { .event_type = IBV_EVENT_SRQ_ERR };
	struct ibv_srq_attr limit = { .srq_limit = 5 };
	atomic_bool came = false;
	struct ibv_cq *cq;
	pthread_t thread;
	void *context;

	puts("an event that nobody has read is not lost, and those read are theirs");
	world_make();
	CHECK(!ibv_req_notify_cq(w.cq, 0));
	CHECK(!recv_one(w.qp, 1) && !recv_one(w.qp, 2) && !recv_one(w.qp, 3));
	fake_receive(w.real, 1);
	CHECK(readable(w.channel->fd));
	event.element.cq = (void *)fake_newest(FAKE_SRQ);
	fake_async_event(real_ctx, &event);
	CHECK(!ibv_modify_srq(w.srq, &limit, IBV_SRQ_LIMIT));
	suspend();
	replace_all();
	CHECK(readable(w.channel->fd) && readable(ctx->async_fd));
	connect_all();
	resume();
	CHECK(!ibv_get_cq_event(w.channel, &cq, &context));
	CHECK(cq == w.cq && context == &w && !readable(w.channel->fd));
	CHECK(!ibv_get_async_event(ctx, &event) && !readable(ctx->async_fd));
	CHECK(event.element.srq == w.srq);
	CHECK(event.event_type == IBV_EVENT_SRQ_ERR);
	ibv_ack_async_event(&event);
	limit.srq_limit = 0;
	CHECK(!ibv_query_srq(w.srq, &limit) && limit.srq_limit == 5);
	POLLED(w.cq, 4, 1);

	puts("it was not armed, so no other one comes");
	fake_receive(w.real, 1);
	CHECK(!readable(w.channel->fd));
	POLLED(w.cq, 4, 2);

	puts("one that is armed wakes who waits, after that as well");
	CHECK(!ibv_req_notify_cq(w.cq, 1));
	MUST(!pthread_create(&thread, NULL, event_thread, &came));
	world_replace();
	CHECK(!came && !readable(w.channel->fd));
	SAW("req_notify_cq", w.real_cq, 1);
	CHECK(!ibv_req_notify_cq(w.cq, 0));
	fake_receive(w.real, 1);
	MUST(!pthread_join(thread, NULL));
	POLLED(w.cq, 4, 3);
	ibv_ack_cq_events(w.cq, 2);
	world_destroy();
}

/* The limit of an SRQ is not lost when other things fail. */
static void test_limit(void)
{
	struct ibv_srq_attr limit = { .srq_limit = 5 };

	puts("a limit, when replacement is tried again, or given up");
	for (int give_up = 0; give_up < 2; give_up++) {
		world_make();
		CHECK(!recv_srq(1));
		CHECK(!ibv_modify_srq(w.srq, &limit, IBV_SRQ_LIMIT));
		suspend();
		fake_fail("post_srq_recv", EIO);
		CHECK(layer_replace(NULL, 0, LONG, &swapped) == EIO);
		if (!give_up) {
			replace_all();
			connect_all();
		}
		layer_give_up();
		limit.srq_limit = 0;
		CHECK(!ibv_query_srq(w.srq, &limit));
		CHECK(limit.srq_limit == 5);
		limit.srq_limit = 5;
		world_destroy();
	}
}

static atomic_bool destroyed;

static void *destroy_thread(void *cq)
{
	CHECK(!ibv_destroy_cq(cq));
	atomic_store(&destroyed, true);
	return NULL;
}

static void test_event_ends(void)
{
	struct ibv_async_event event = { .event_type = IBV_EVENT_CQ_ERR };
	struct ibv_cq *cq, *found_cq;
	pthread_t thread;
	void *context;

	puts("descriptors that do not block");
	world_make();
	CHECK(!fcntl(w.channel->fd, F_SETFL, O_NONBLOCK));
	CHECK(!fcntl(ctx->async_fd, F_SETFL, O_NONBLOCK));
	FAILS_WITH(EAGAIN, !ibv_get_cq_event(w.channel, &cq, &context));
	FAILS_WITH(EAGAIN, !ibv_get_async_event(ctx, &event));
	world_replace();
	CHECK(fcntl(w.channel->fd, F_GETFL) & O_NONBLOCK);
	FAILS_WITH(EAGAIN, !ibv_get_cq_event(w.channel, &cq, &context));
	FAILS_WITH(EAGAIN, !ibv_get_async_event(ctx, &event));

	puts("a CQ whose event has been read waits for the acknowledgement");
	cq = ibv_create_cq(ctx, 1, NULL, w.channel, 0);
	MUST(cq);
	fake_cq_event(fake_newest(FAKE_CQ));
	world_replace();
	CHECK(!ibv_get_cq_event(w.channel, &found_cq, &context));
	CHECK(found_cq == cq);
	atomic_store(&destroyed, false);
	MUST(!pthread_create(&thread, NULL, destroy_thread, cq));
	WAIT(fake_alive(FAKE_CQ) == 1);
	suspend(); /* that does not wait for the application */
	resume();
	CHECK(!destroyed);
	ibv_ack_cq_events(cq, 1);
	MUST(!pthread_join(thread, NULL));

	puts("one whose events have not been read has none");
	cq = ibv_create_cq(ctx, 1, NULL, w.channel, 0);
	MUST(cq);
	fake_cq_event(fake_newest(FAKE_CQ));
	event.element.cq = fake_newest(FAKE_CQ);
	fake_async_event(fake_newest(FAKE_CONTEXT), &event);
	world_replace();
	CHECK(readable(w.channel->fd) && readable(ctx->async_fd));
	CHECK(!ibv_destroy_cq(cq));
	CHECK(!readable(w.channel->fd) && !readable(ctx->async_fd));
	CHECK(!fcntl(ctx->async_fd, F_SETFL, 0));
	world_look();
	world_destroy();
}

int main(void)
{
	rig_open();
	test_events();
	test_limit();
	test_event_ends();
	return rig_close();
}
