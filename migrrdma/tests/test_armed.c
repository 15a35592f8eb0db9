// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * An application arms a CQ while its process is about to let go of its device, and cannot:
 * what completes then wakes it.
 */
#include "clock.h"
#include "replace_rig.h"

enum {
	ROUNDS = 300,
	BUDGET_MS = 2,
	STEP_NS = 10000, /* up to after the budget */
};

static struct ibv_cq *busy, *real_busy; /* whoever has it holds the layer up */
static atomic_bool has_busy, has_failed;

/* once, so much later than it is held */
static void *arm(void *later)
{
	struct shadow_channel *ch = to_channel(w.channel);
	uint64_t until;

	pthread_mutex_lock(&to_cq(busy)->lock);
	has_busy = true;
	while (!ch->held && !has_failed)
		;
	until = clock_ns() + *(uint64_t *)later;
	while (clock_ns() < until)
		;
	CHECK(!ibv_req_notify_cq(w.cq, 0));
	WAIT(has_failed);
	pthread_mutex_unlock(&to_cq(busy)->lock);
	return NULL;
}

static void hold_fails(uint64_t later)
{
	pthread_t thread;

	has_busy = has_failed = false;
	MUST(!pthread_create(&thread, NULL, arm, &later));
	WAIT(has_busy);
	CHECK(layer_hold(BUDGET_MS, 100, &swapped) == ETIMEDOUT);
	CHECK(strstr(swapped.reason, "batch of polls"), "%s", swapped.reason);
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

int main(void)
{
	rig_open();
	fake_work();
	world_make();
	busy = new_cq(8, &real_busy);
	suspend();
	woken();
	CHECK(!woken());
	test_armed();
	resume();
	CHECK(!ibv_destroy_cq(busy));
	world_destroy();
	return rig_close();
}
