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

/* Nor is it armed again, with what the SRQ was made, when that was long ago. */
static void test_limit_reached(void)
{
	struct ibv_srq_init_attr attr = { .attr = { 8, 2, 2 } };
	struct ibv_async_event event;
	struct ibv_srq_attr is;
	struct ibv_srq *srq;

	puts("a limit that was reached");
	srq = ibv_create_srq(pd, &attr);
	MUST(srq);
	for (int reached = 0; reached < 2; reached++) {
		if (reached) {
			fake_limit_reached(fake_newest(FAKE_SRQ));
			CHECK(!ibv_get_async_event(ctx, &event));
			ibv_ack_async_event(&event);
		}
		suspend();
		CHECK(!layer_replace(NULL, 0, LONG, &swapped));
		CHECK(!layer_connect(&swapped));
		resume();
		CHECK(!ibv_query_srq(srq, &is));
		CHECK(is.srq_limit == (reached ? 0 : 2), "%u", is.srq_limit);
	}
	CHECK(!ibv_destroy_srq(srq));
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
	CHECK(!ibv_req_notify_cq(cq, 0));
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
	CHECK(!ibv_req_notify_cq(cq, 0));
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

static struct ibv_cq *second;
static pthread_t armer;

static void *arm(void *arg)
{
	(void)arg;
	CHECK(!ibv_req_notify_cq(second, 0));
	return NULL;
}

/* The first new CQ is armed as the old one was; what is armed now, is armed itself. */
static void begin_to_arm(struct ibv_cq *real)
{
	(void)real;
	fake_armed_hook = NULL;
	CHECK(!atomic_load(&to_channel(w.channel)->held));
	MUST(!pthread_create(&armer, NULL, arm, NULL));
}

static void test_armed_meanwhile(void)
{
	struct ibv_qp *qp, *real;
	struct ibv_cq *cq;
	void *context;

	puts("a CQ that is armed while it is replaced");
	world_make();
	MUST(second = ibv_create_cq(ctx, 64, NULL, w.channel, 0));
	qp = new_qp(IBV_QPT_RC, second, &real);
	set_state(qp, IBV_QPS_INIT);
	CHECK(!ibv_req_notify_cq(w.cq, 1)); /* markers do not solicit */
	suspend();
	fake_armed_hook = begin_to_arm;
	replace_all();
	MUST(!fake_armed_hook && !pthread_join(armer, NULL));
	connect_all();
	resume();
	real = fake_newest(FAKE_QP);
	fake_received(real, 5, 1);
	MUST(readable(w.channel->fd));
	CHECK(!ibv_get_cq_event(w.channel, &cq, &context) && cq == second);
	ibv_ack_cq_events(cq, 1);
	POLLED(second, 1, 5);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(second));
	world_destroy();
}

int main(void)
{
	rig_open();
	test_events();
	test_limit();
	test_limit_reached();
	test_event_ends();
	test_armed_meanwhile();
	return rig_close();
}
