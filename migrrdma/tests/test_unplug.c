// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Objects that nobody can make again end as if their devices had been unplugged.
 */
#include <fcntl.h>

#include "replace_rig.h"

enum {
	TRIES = 10
};

static bool seen[8]; /* flushes, by their ids */

static void begin(void)
{
	memset(seen, 0, sizeof(seen));
	world_make();
	for (uint64_t i = 1; i <= 3; i++)
		CHECK(!recv_one(w.qp, i) && !recv_srq(10 + i));
	CHECK(!ibv_req_notify_cq(w.cq, 1)); /* markers do not solicit */
	hold(1);
}

/* All can be destroyed. */
static void reopen(void)
{
	CHECK(!ibv_dealloc_pd(pd));
	app_close(ctx);
	ctx = app_open(0);
	real_ctx = fake_newest(FAKE_CONTEXT);
	MUST(pd = ibv_alloc_pd(ctx));
}

static void end(void)
{
	world_destroy();
	reopen();
}

/* from one try on */
static void give_up(unsigned int tries)
{
	fake_fail_times("ibv_open_device", ENODEV, TRIES - tries);
	while (tries++ < TRIES) {
		CHECK(layer_is_held());
		layer_tick();
	}
	CHECK(!layer_is_held() && !shows_sign());
}

static unsigned int flushes(void)
{
	unsigned int n = 0;
	struct ibv_wc wc;

	while (ibv_poll_cq(w.cq, 1, &wc) == 1) {
		CHECK(wc.status == IBV_WC_WR_FLUSH_ERR &&
		      wc.qp_num == w.qp->qp_num);
		MUST(wc.wr_id < 8);
		CHECK(!seen[wc.wr_id], "%d came twice", (int)wc.wr_id);
		seen[wc.wr_id] = true;
		n++;
	}
	return n;
}

static void check_async(enum ibv_event_type type, const void *element)
{
	struct ibv_async_event event;

	MUST(readable(ctx->async_fd));
	CHECK(!ibv_get_async_event(ctx, &event));
	CHECK(event.event_type == type, "it is %d", event.event_type);
	CHECK(!element || event.element.qp == element);
	ibv_ack_async_event(&event);
}

/* what was armed has an event; then there is nothing to wait for */
static void check_events(void)
{
	struct ibv_cq *cq = NULL;
	void *context;

	CHECK(readable(w.channel->fd));
	CHECK(!ibv_get_cq_event(w.channel, &cq, &context) && cq == w.cq);
	ibv_ack_cq_events(w.cq, 1);
	CHECK(readable(w.channel->fd));
	CHECK(ibv_get_cq_event(w.channel, &cq, &context) && errno == EIO);
	check_async(IBV_EVENT_QP_LAST_WQE_REACHED, w.of_srq);
	check_async(IBV_EVENT_DEVICE_FATAL, NULL);
	CHECK(!readable(ctx->async_fd));
}

static void check_verbs(void)
{
	struct ibv_srq_init_attr srq = { .attr = { 8, 2, 0 } };
	struct ibv_qp_init_attr init = { .send_cq = w.cq, .recv_cq = w.cq };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_recv_wr *bad_recv, recv = {};
	struct ibv_send_wr *bad_send, send = { .opcode = IBV_WR_SEND };

	CHECK(ibv_post_recv(w.qp, &recv, &bad_recv) == EIO);
	CHECK(bad_recv == &recv);
	CHECK(ibv_post_send(w.qp, &send, &bad_send) == EIO);
	CHECK(bad_send == &send);
	bad_recv = NULL;
	CHECK(ibv_post_srq_recv(w.srq, &recv, &bad_recv) == EIO);
	CHECK(bad_recv == &recv);
	CHECK(w.qp->state == IBV_QPS_ERR && w.of_srq->state == IBV_QPS_ERR);
	CHECK(ibv_modify_qp(w.qp, &attr, IBV_QP_STATE) == EIO);
	CHECK(w.qp->state == IBV_QPS_ERR);
	CHECK(ibv_query_qp(w.qp, &attr, IBV_QP_STATE, &init) == EIO);
	CHECK(ibv_req_notify_cq(w.cq, 0) == EIO);
	FAILS_WITH(EIO, ibv_alloc_pd(ctx));
	FAILS_WITH(EIO, ibv_reg_mr(pd, w.memory, 8, 0));
	FAILS_WITH(EIO, ibv_create_comp_channel(ctx));
	FAILS_WITH(EIO, ibv_create_cq(ctx, 8, NULL, NULL, 0));
	FAILS_WITH(EIO, ibv_create_srq(pd, &srq));
	FAILS_WITH(EIO, ibv_create_qp(pd, &init));
}

static void test_no_device(void)
{
	char told[4096] = "", path[64];
	int fd, err = dup(2);

	puts("a process that has no device any more");
	snprintf(path, sizeof(path), "%s/stderr", dir);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	MUST(fd >= 0 && !unlink(path));
	begin();
	CHECK(!recv_one(w.qp, 4) && !write_one(w.qp, 5, 1));
	CHECK(!write_one(w.qp, 6, 1));
	MUST(dup2(fd, 2) == 2);
	give_up(0);
	MUST(dup2(err, 2) == 2 && !close(err));
	CHECK(flushes() == 6);
	check_events();
	check_verbs();
	CHECK(!flushes());
	MUST(pread(fd, told, sizeof(told) - 1, 0) > 0 && !close(fd));
	CHECK(strstr(told, "No such device") &&
		      strchr(told, '\n') == told + strlen(told) - 1,
	      "%s", told);
	layer_tick(); /* of nobody */
	end();
}

/* New QPs have some of the RECVs, or all, and may have got more since. */
static void test_half(void)
{
	static const struct {
		const char *call;
		unsigned int after;
	} points[] = {
		{ "ibv_create_qp", 1 }, { "post_recv", 0 },
		{ "post_recv", 1 },	{ "post_srq_recv", 0 },
		{ "post_srq_recv", 2 },
	};

	puts("one that was half replaced");
	for (unsigned int i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		begin();
		fake_fail_later(points[i].call, EAGAIN, points[i].after);
		layer_tick();
		CHECK(layer_is_held());
		CHECK(!recv_one(w.qp, 4) && !write_one(w.qp, 5, 1));
		give_up(1);
		CHECK(flushes() == 5, "%s", points[i].call);
		check_events();
		check_verbs();
		end();
	}

	puts("and one of which that has not been flushed again");
	begin();
	fake_fail("post_srq_recv", EAGAIN);
	CHECK(layer_replace(NULL, 0, LONG, &swapped) == EAGAIN);
	CHECK(!recv_one(w.qp, 4));
	fake_flush(2);
	CHECK(layer_replace(NULL, 0, 20, &swapped) == ETIMEDOUT);
	fake_flush(UINT_MAX);
	give_up(0);
	world_look();
	fake_drop(w.real); /* which nobody looks at any more */
	CHECK(flushes() == 4);
	check_verbs();
	end();
}

static void *tick(void *arg)
{
	(void)arg;
	give_up(0);
	return NULL;
}

/* A thread is in a batch of requests and one of completions, and destroys something. */
static void test_batches(void)
{
	struct ibv_poll_cq_attr attr = {};
	struct ibv_qp *qp, *real;
	struct ibv_cq *real_cq;
	struct ibv_cq_ex *cq;
	struct ibv_qp_ex *ex;
	pthread_t thread;

	puts("threads in batches");
	world_make();
	cq = new_cq_ex(0, &real_cq);
	qp = new_qp_ex(IBV_QPT_RC, ibv_cq_ex_to_cq(cq), EX_OPS, &real);
	ex = ibv_qp_to_qp_ex(qp);
	CHECK(!recv_one(qp, 1) && !recv_one(qp, 2));
	fake_receive(real, 8);
	hold(1);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	CHECK(!ibv_start_poll(cq, &attr) && cq->wr_id == 1);
	MUST(!pthread_create(&thread, NULL, tick, NULL));
	WAIT(to_context(ctx)->unplugged);
	CHECK(!ibv_destroy_qp(w.of_srq) && !ibv_destroy_srq(w.srq));
	WAIT(!ibv_next_poll(cq));
	CHECK(cq->wr_id == 2 && cq->status == IBV_WC_WR_FLUSH_ERR);
	CHECK(ibv_next_poll(cq) == ENOENT);
	ibv_end_poll(cq);
	CHECK(ibv_wr_complete(ex) == EIO);
	MUST(!pthread_join(thread, NULL));
	CHECK(ibv_start_poll(cq, &attr) == ENOENT);
	check_async(IBV_EVENT_DEVICE_FATAL, NULL);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	CHECK(!ibv_destroy_qp(w.qp) && !ibv_dereg_mr(w.mr));
	CHECK(!ibv_destroy_cq(w.cq) && !ibv_destroy_comp_channel(w.channel));
	reopen();
}

/* It may open another device, or the same one when it is there again. */
static void test_another(void)
{
	struct ibv_context *old = ctx, *old_real = real_ctx;
	struct ibv_pd *old_pd = pd;
	struct world old_world;

	puts("and another device");
	begin();
	give_up(0);
	old_world = w;
	ctx = app_open(1);
	MUST(pd = ibv_alloc_pd(ctx));
	world_make();
	CHECK(!recv_one(w.qp, 1));
	suspend();
	CHECK(found.qps == 2);
	replace_all();
	connect_all();
	resume();
	RECVS(w.real, 1);
	world_destroy();
	CHECK(!ibv_dealloc_pd(pd) && !ibv_close_device(ctx));
	ctx = old;
	real_ctx = old_real;
	pd = old_pd;
	w = old_world;
	CHECK(flushes() == 3);
	check_events();
	check_verbs();
	end();
}

int main(void)
{
	rig_open();
	test_no_device();
	test_half();
	test_batches();
	test_another();
	return rig_close();
}
