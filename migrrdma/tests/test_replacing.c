// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Objects are replaced while threads post and poll.
 */
#include <sched.h>

#include "replace_rig.h"

enum {
	ROUNDS = 200
};

static struct {
	atomic_uint round, recvs[2], sends;
	atomic_bool posted_all, done;
	atomic_uint seen[3]; /* of two threads that receive, and one that sends */
	unsigned int of_srq;
} t;

#define ID(thread, n) ((uint64_t)(thread) << 32 | (n))

/* both to one QP; at first only one of them, which has the ring for itself */
static void *post_recvs(void *arg)
{
	unsigned int thread = arg != NULL, n = 0;

	while (thread && t.round < ROUNDS / 4)
		sched_yield();
	while (!t.posted_all) {
		if (recv_one(w.qp, ID(thread, n)))
			sched_yield();
		else
			t.recvs[thread] = ++n;
	}
	return NULL;
}

/* Only markers let sends finish, so there has to be room for one. */
static void *post_sends(void *arg)
{
	unsigned int n = 0;

	(void)arg;
	while (!t.posted_all) {
		if (n - t.seen[2] >= cap.max_send_wr / 2 ||
		    write_one(w.qp, ID(2, n), 0x7701))
			sched_yield();
		else
			n++;
	}
	t.sends = n;
	return NULL;
}

static void *poll_all(void *arg)
{
	struct ibv_wc wc[5];
	unsigned int thread;
	bool any = true;
	int n;

	(void)arg;
	for (int at_once = 1; !t.done || any; at_once = at_once % 5 + 1) {
		n = ibv_poll_cq(w.cq, at_once, wc);
		MUST(n >= 0);
		any = n;
		for (int i = 0; i < n; i++) {
			MUST(wc[i].status == IBV_WC_SUCCESS);
			thread = (unsigned int)(wc[i].wr_id >> 32);
			if (thread == 3) {
				MUST(wc[i].qp_num == w.of_srq->qp_num);
				CHECK((uint32_t)wc[i].wr_id == t.of_srq++);
				continue;
			}
			MUST(thread < 3 && wc[i].qp_num == w.qp->qp_num);
			CHECK((uint32_t)wc[i].wr_id == t.seen[thread]++);
		}
	}
	return NULL;
}

/* Events of what the layer does to QPs are never the application's. */
static void *wait_async(void *arg)
{
	struct ibv_async_event event;

	(void)arg;
	CHECK(!ibv_get_async_event(ctx, &event));
	CHECK(event.event_type == IBV_EVENT_PORT_ACTIVE);
	CHECK(atomic_load(&t.done)); /* the one that ends it */
	ibv_ack_async_event(&event);
	return NULL;
}

static bool has_recv(const struct ibv_qp *real)
{
	return fake_next_recv(real) != FAKE_NO_RECV;
}

/* some messages, as far as there is something to receive them, and room */
static void receive_some(void)
{
	unsigned int n = t.round % 20;

	while (n-- && has_recv(w.real) &&
	       fake_completions(w.real_cq) < (unsigned int)w.real_cq->cqe / 2)
		fake_receive(w.real, 1);
	if (has_recv(w.real_srq))
		fake_receive(w.real_srq, 1);
}

/* Threads are not so fast as rounds: who has the ring, or shares it, posts something. */
static void let_post(void)
{
	atomic_uint *posted = &t.recvs[t.round >= ROUNDS / 4];
	unsigned int before = *posted;

	for (int i = 0; *posted == before; i++) {
		MUST(i < 200000);
		if (has_recv(w.real) &&
		    fake_completions(w.real_cq) <
			    (unsigned int)w.real_cq->cqe / 2)
			fake_receive(w.real, 1);
		usleep(100);
	}
}

int main(void)
{
	struct ibv_async_event last = { .event_type = IBV_EVENT_PORT_ACTIVE };
	pthread_t recvs[2], sends, poller, events;
	uint32_t srq_next = 0;

	rig_open();
	world_make();
	MUST(!pthread_create(&poller, NULL, poll_all, NULL));
	MUST(!pthread_create(&recvs[0], NULL, post_recvs, NULL));
	MUST(!pthread_create(&recvs[1], NULL, post_recvs, &t));
	MUST(!pthread_create(&sends, NULL, post_sends, NULL));
	MUST(!pthread_create(&events, NULL, wait_async, NULL));
	for (; t.round < ROUNDS; t.round++) {
		for (int i = 0; i < 2; i++)
			CHECK(!recv_srq(ID(3, srq_next++)));
		receive_some();
		suspend();
		CHECK(!fake_waiting(w.real));
		if (t.round % 3) {
			replace_all();
			connect_all();
		}
		resume();
		let_post();
	}
	t.posted_all = true;
	for (int i = 0; i < 2; i++)
		pthread_join(recvs[i], NULL);
	pthread_join(sends, NULL);
	suspend();
	resume();
	while (has_recv(w.real)) {
		fake_receive(w.real, 1);
		WAIT(!fake_completions(w.real_cq));
	}
	while (has_recv(w.real_srq)) {
		fake_receive(w.real_srq, 1);
		WAIT(!fake_completions(w.real_cq));
	}
	WAIT(!fake_completions(w.real_cq));
	t.done = true;
	pthread_join(poller, NULL);
	fake_async_event(real_ctx, &last);
	pthread_join(events, NULL);
	CHECK(t.seen[0] == t.recvs[0] && t.seen[1] == t.recvs[1]);
	CHECK(t.seen[2] == t.sends && t.of_srq == srq_next);
	CHECK(t.seen[1] > ROUNDS / 2 && t.seen[2] > ROUNDS / 2);
	world_destroy();
	return rig_close();
}
