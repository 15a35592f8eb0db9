// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * An application arms a CQ while its process is about to let go of its device, and cannot:
 * what completes then wakes it.
 */
#include "clock.h"
#include "replace_rig.h"
#include "section.h"

enum {
	ROUNDS = 300,
	BUDGET_MS = 2,
	STEP_NS = 10000, /* up to after the budget */
};

static atomic_bool is_within, has_failed; /* which holds the layer up */

/* once, so much later than it is held */
static void *arm(void *later)
{
	struct shadow_channel *ch = to_channel(w.channel);
	uint64_t until;

	section_begin();
	is_within = true;
	while (!ch->held && !has_failed)
		;
	until = clock_ns() + *(uint64_t *)later;
	while (clock_ns() < until)
		;
	CHECK(!ibv_req_notify_cq(w.cq, 0));
	WAIT(has_failed);
	section_end();
	return NULL;
}

static void hold_fails(uint64_t later)
{
	pthread_t thread;

	is_within = has_failed = false;
	MUST(!pthread_create(&thread, NULL, arm, &later));
	WAIT(is_within);
	CHECK(layer_hold(BUDGET_MS, 100, &swapped) == ETIMEDOUT);
	CHECK(strstr(swapped.reason, "within a verb"), "%s", swapped.reason);
	has_failed = true;
	MUST(!pthread_join(thread, NULL));
}

/* Return: was there an event? It is read, and all that has completed. */
static bool woken(void)
{
	struct ibv_wc wc;
	struct ibv_cq *cq;
	void *context;
	bool is = readable(w.channel->fd);

	while (readable(w.channel->fd)) {
		MUST(!ibv_get_cq_event(w.channel, &cq, &context) && cq == w.cq);
		ibv_ack_cq_events(cq, 1);
	}
	while (ibv_poll_cq(w.cq, 1, &wc) == 1)
		;
	return is;
}

static void test_armed(void)
{
	puts("armed at any time while it cannot let go");
	for (uint64_t i = 0; i < ROUNDS; i++) {
		hold_fails(i * STEP_NS);
		fake_received(w.real, i, 8);
		CHECK(woken(), "round %ju", (uintmax_t)i);
	}
}

/* What the layer has taken is still there to wake up who arms, as on a device. */
static void test_unpolled(void)
{
	struct ibv_wc wc;

	puts("armed with completions that the layer has taken");
	CHECK(!ibv_req_notify_cq(w.cq, 0));
	fake_received(w.real, 1, 8);
	fake_received(w.real, 2, 8);
	suspend();
	resume();
	while (readable(w.channel->fd)) {
		struct ibv_cq *cq;
		void *context;

		MUST(!ibv_get_cq_event(w.channel, &cq, &context));
		ibv_ack_cq_events(cq, 1);
	}
	CHECK(!ibv_req_notify_cq(w.cq, 0));
	CHECK(ibv_poll_cq(w.cq, 1, &wc) == 1 && wc.wr_id == 1);
	CHECK(readable(w.channel->fd));
	CHECK(woken());
	fake_received(w.real, 3, 8);
	CHECK(!readable(w.channel->fd)); /* it was armed once */
	CHECK(!woken());
}

int main(void)
{
	rig_open();
	fake_work();
	world_make();
	test_unpolled();
	suspend();
	woken();
	CHECK(!woken());
	test_armed();
	resume();
	world_destroy();
	return rig_close();
}
