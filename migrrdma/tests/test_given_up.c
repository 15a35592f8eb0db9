// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Replacements that are given up: the application gets back what the layer has taken.
 */
#include <fcntl.h>
#include <sys/socket.h>

#include "replace_rig.h"
#include "tell.h"

/* three RECVs of a QP, of which @n are flushed in time */
static void stop_amid(unsigned int n)
{
	world_make();
	for (uint64_t i = 1; i <= 3; i++)
		CHECK(!recv_one(w.qp, i));
	suspend();
	fake_flush(n);
	CHECK(layer_replace(NULL, 0, 20, &swapped) == ETIMEDOUT);
	CHECK(strstr(swapped.reason, "is not flushed"));
}

/* flushes of the RECVs from this one to the last */
static void check_flushes(uint64_t first, uint64_t last)
{
	struct ibv_wc wc;

	for (uint64_t i = first; i <= last; i++) {
		MUST(ibv_poll_cq(w.cq, 1, &wc) == 1);
		CHECK(wc.wr_id == i && wc.status == IBV_WC_WR_FLUSH_ERR &&
		      wc.qp_num == w.qp->qp_num);
	}
	check_nothing(w.cq);
}

static void test_half(void)
{
	puts("a queue that is half flushed");
	for (unsigned int n = 0; n <= 3; n++) {
		stop_amid(n);
		check_nothing(w.cq);
		fake_flush(UINT_MAX);
		layer_give_up();
		check_flushes(1, 3);
		CHECK(!recv_one(w.qp, 4));
		set_state(w.qp, IBV_QPS_ERR);
		check_flushes(4, 4);
		world_destroy();
	}

	puts("and flushed later");
	stop_amid(2);
	layer_give_up();
	check_flushes(1, 2);
	fake_flush(UINT_MAX);
	set_state(w.qp, IBV_QPS_ERR);
	check_flushes(3, 3);
	world_destroy();

	puts("or stopped in the end");
	stop_amid(2);
	CHECK(layer_replace(&w.of_srq->qp_num, 1, LONG, &swapped) == EINVAL);
	CHECK(strstr(swapped.reason, "is not replaced yet"));
	fake_flush(UINT_MAX);
	replace_all();
	RECVS(w.real, 1, 2, 3);
	connect_all();
	resume();
	check_nothing(w.cq);
	world_destroy();
}

/* The marker at the end of a queue does not come, and is not waited for any more. */
static void test_marker(void)
{
	puts("a marker that is outstanding");
	for (int destroy = 0; destroy < 2; destroy++) {
		stop_amid(3);
		layer_give_up();
		check_flushes(1, 3);
		fake_flush(UINT_MAX);
		if (destroy) {
			CHECK(!ibv_destroy_qp(w.qp));
		} else {
			suspend(); /* nor while it is there */
			resume();
			set_state(w.qp, IBV_QPS_RESET);
		}
		check_direct(w.cq, w.real_cq);
		suspend();
		if (destroy) {
			resume();
			CHECK(!ibv_destroy_qp(w.of_srq) &&
			      !ibv_destroy_srq(w.srq) && !ibv_dereg_mr(w.mr));
			CHECK(!ibv_destroy_cq(w.cq) &&
			      !ibv_destroy_comp_channel(w.channel));
			continue;
		}
		replace_all();
		layer_give_up();
		world_destroy();
	}
}

/* --- events --- */

static bool had_event(struct ibv_cq *cq)
{
	struct ibv_cq *found_cq;
	void *context;

	if (!readable(w.channel->fd))
		return false;
	CHECK(!ibv_get_cq_event(w.channel, &found_cq, &context));
	CHECK(found_cq == cq);
	ibv_ack_cq_events(found_cq, 1);
	return true;
}

/* the event of a completion, which the layer has, is not there before the CQ is gone */
static void test_late_event(void)
{
	struct ibv_wc wc = { .wr_id = 7 };

	puts("an event that is late");
	for (int give_up = 0; give_up < 2; give_up++) {
		world_make();
		fake_complete(w.real_cq, &wc);	    /* without an event */
		CHECK(!ibv_req_notify_cq(w.cq, 1)); /* markers do not solicit */
		suspend();
		replace_all();
		if (!give_up)
			connect_all();
		layer_give_up();
		CHECK(had_event(w.cq));
		POLLED(w.cq, 1, 7);
		world_destroy();
	}
}

/* nothing else fails for the application, but it waits for this one */
static void test_not_armed(void)
{
	puts("a CQ that is not armed again");
	world_make();
	CHECK(!ibv_destroy_qp(w.qp) && !ibv_destroy_qp(w.of_srq));
	CHECK(!ibv_req_notify_cq(w.cq, 0));
	suspend();
	fake_fail("req_notify_cq", EIO);
	CHECK(layer_replace(NULL, 0, LONG, &swapped) == EIO);
	CHECK(layer_resume(&found) == EBUSY);
	CHECK(strstr(found.reason, "is not replaced yet"));
	layer_give_up();
	CHECK(had_event(w.cq) && !had_event(w.cq));
	CHECK(!ibv_destroy_srq(w.srq) && !ibv_dereg_mr(w.mr));
	CHECK(!ibv_destroy_cq(w.cq) && !ibv_destroy_comp_channel(w.channel));
}

static void test_last_wqe(void)
{
	struct ibv_async_event event;

	puts("the event that says that no message is under way");
	world_make();
	suspend();
	fake_fail_times("post_send", ENOMEM, 1000000); /* markers of SENDs */
	CHECK(layer_replace(&w.of_srq->qp_num, 1, 20, &swapped) == ETIMEDOUT);
	fake_fail("post_send", 0);
	CHECK(!readable(ctx->async_fd));
	layer_give_up();
	CHECK(readable(ctx->async_fd));
	CHECK(!ibv_get_async_event(ctx, &event));
	CHECK(event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED);
	CHECK(event.element.qp == w.of_srq);
	ibv_ack_async_event(&event);
	CHECK(!readable(ctx->async_fd));
	world_destroy();
}

/* --- QPs that end in ERR --- */

static void check_flushed_write(uint64_t id)
{
	struct ibv_wc wc;

	CHECK(w.real->state == IBV_QPS_ERR && fake_waiting(w.real) == 1);
	set_state(w.qp, IBV_QPS_ERR); /* this provider looks only then */
	MUST(ibv_poll_cq(w.cq, 1, &wc) == 1);
	CHECK(wc.wr_id == id && wc.status == IBV_WC_WR_FLUSH_ERR);
	CHECK(wc.qp_num == w.qp->qp_num);
	check_nothing(w.cq);
}

static void check_own_peer(struct ibv_qp *real)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(!ibv_query_qp(real, &attr, 0, &init)); /* what is real */
	CHECK(attr.dest_qp_num == real->qp_num);
	CHECK(!memcmp(&attr.ah_attr.grh.dgid, &fake_gids[SGID_INDEX].gid,
		      sizeof(union ibv_gid)));
}

/* The provider takes requests only of who has been in RTS. */
static void test_sends(void)
{
	const union ibv_gid gid = { .raw = { 0xfe, [15] = 77 } };

	puts("what was posted to a QP that is given up");
	fake_needs_rts = true;
	world_make();
	suspend();
	CHECK(!write_one(w.qp, 5, 1));
	replace_all();
	layer_give_up();
	check_flushed_write(5);
	world_destroy();

	puts("or whose peer is gone");
	world_make();
	suspend();
	CHECK(!write_one(w.qp, 5, 1));
	replace_all();
	CHECK(!layer_set_peer(w.qp->qp_num, 0, &gid, "gone", &swapped));
	CHECK(!layer_set_peer(w.of_srq->qp_num, 1, &gid, "there", &swapped));
	CHECK(!layer_connect(&swapped), "%s", swapped.reason);
	check_own_peer(w.real);
	resume();
	CHECK(w.real_srq->state == IBV_QPS_RTS);
	check_flushed_write(5);
	world_destroy();
	fake_needs_rts = false;

	puts("or that was brought to RESET meanwhile");
	world_make();
	suspend();
	CHECK(!write_one(w.qp, 5, 1));
	w.real->state = IBV_QPS_RESET;
	fake_fail_times("post_send", EINVAL, 1000000);
	resume();
	fake_fail("post_send", 0);
	set_state(w.qp, IBV_QPS_RTS);
	CHECK(!fake_waiting(w.real));
	check_nothing(w.cq);
	world_destroy();
}

/* of how many QPs it is told */
static unsigned int told_in(const char *state)
{
	char text[4096] = "";
	unsigned int n = 0;
	int fd[2];

	MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd));
	CHECK(!tell_names(fd[0]));
	MUST(recv(fd[1], text, sizeof(text) - 1, 0) > 0);
	for (const char *at = text; (at = strstr(at, "\"state\": \"")); n++) {
		at += strlen("\"state\": \"");
		if (strncmp(at, state, strlen(state)))
			n--;
	}
	close(fd[0]);
	close(fd[1]);
	return n;
}

/* Nobody has told the application, and the layer must not look for the peer. */
static void test_told(void)
{
	puts("the state of a QP that has failed");
	world_make();
	CHECK(told_in("RTS") == 2);
	w.real->state = IBV_QPS_ERR;
	CHECK(told_in("ERR") == 1 && told_in("RTS") == 1);
	suspend();
	CHECK(told_in("ERR") == 1 && told_in("RTS") == 1);
	replace_all();
	connect_all();
	CHECK(told_in("ERR") == 1 && told_in("RTS") == 1);
	resume();
	world_destroy();
}

static bool had_last_wqe(void)
{
	struct ibv_async_event event;

	/* there may be one that only the layer gets */
	MUST(!fcntl(ctx->async_fd, F_SETFL, O_NONBLOCK));
	if (ibv_get_async_event(ctx, &event)) {
		CHECK(errno == EAGAIN);
		return false;
	}
	CHECK(event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED &&
	      event.element.qp == w.of_srq);
	ibv_ack_async_event(&event);
	return true;
}

static void test_once(void)
{
	puts("the end of a QP with an SRQ is told once");
	world_make();
	set_state(w.of_srq, IBV_QPS_ERR);
	CHECK(had_last_wqe());
	suspend();
	replace_all();
	connect_all();
	resume();
	CHECK(w.real_srq->state == IBV_QPS_ERR);
	CHECK(!had_last_wqe());

	puts("and of one that is in use again, once more");
	set_state(w.of_srq, IBV_QPS_RESET);
	to_rts(w.of_srq);
	set_state(w.of_srq, IBV_QPS_ERR);
	CHECK(had_last_wqe() && !had_last_wqe());
	world_destroy();

	puts("also if it is given up");
	world_make();
	suspend();
	replace_all();
	layer_give_up();
	CHECK(had_last_wqe() && !had_last_wqe());
	world_destroy();
}

int main(void)
{
	rig_open();
	test_half();
	test_marker();
	test_late_event();
	test_not_armed();
	test_last_wqe();
	test_sends();
	test_told();
	test_once();
	return rig_close();
}
