// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Who has armed a CQ is woken by what is his, and by nothing of the layer's: some programs
 * poll once for each event, and take it for a completion.
 */
#include <fcntl.h>
#include <sys/syscall.h>

#include "replace_rig.h"

static uint64_t id = 100;

static bool is_woken(void)
{
	return readable(w.channel->fd);
}

static void read_event(void)
{
	struct ibv_cq *cq;
	void *context;

	CHECK(!ibv_get_cq_event(w.channel, &cq, &context) && cq == w.cq);
	ibv_ack_cq_events(cq, 1);
}

static void arm(void)
{
	CHECK(!ibv_req_notify_cq(w.cq, 0));
}

/* one of the application's; it wakes once */
static void check_armed(void)
{
	CHECK(!is_woken());
	fake_received(w.real, ++id, 8);
	CHECK(is_woken());
	read_event();
	CHECK(!is_woken());
	POLLED(w.cq, 1, id);
}

static void test_markers(void)
{
	puts("markers wake nobody, before and after");
	world_make();
	arm();
	suspend();
	check_armed();
	arm();
	check_armed();
	check_nothing(w.cq);
	arm();
	resume();
	check_armed();
	suspend();
	resume();
	arm();
	check_armed();
	check_direct(w.cq, w.real_cq);

	puts("who waits for solicited ones waits for no marker, unless it fails");
	CHECK(!ibv_req_notify_cq(w.cq, 1));
	suspend();
	resume();
	check_direct(w.cq, w.real_cq);
	prompt = false;
	begin_suspend(LONG);
	WAIT(fake_waiting(w.real) && fake_waiting(w.real_srq));
	fake_finish(w.real, UINT32_MAX, IBV_WC_RETRY_EXC_ERR);
	fake_finish(w.real_srq, UINT32_MAX, IBV_WC_RETRY_EXC_ERR);
	CHECK(!end_suspend() && !is_woken());
	prompt = true;
	resume();
	arm();
	check_armed();

	puts("an event from before, of what is polled already");
	arm();
	fake_received(w.real, 1, 8);
	POLLED(w.cq, 1, 1);
	suspend();
	CHECK(is_woken());
	read_event();
	arm();
	resume();
	check_armed();

	puts("a marker's event that comes late");
	arm();
	fake_fail_later("ibv_get_cq_event", EAGAIN, 1);
	suspend();
	check_armed();
	resume();

	puts("of what came with markers");
	arm();
	CHECK(!write_one(w.qp, 2, 1));
	suspend();
	POLLED(w.cq, 1, 2);
	resume();
	CHECK(is_woken());
	read_event();
	arm();
	check_armed();
	world_destroy();
}

static void receive_once(struct ibv_cq *real)
{
	(void)real;
	fake_armed_hook = NULL;
	fake_received(w.real, 6, 8);
}

/* A completion from before a CQ is armed is an event of some devices; not when it is polled. */
static void test_polled(void)
{
	struct ibv_wc wc;

	puts("armed with something taken, which is polled then");
	world_make();
	arm();
	CHECK(!recv_one(w.qp, 1) && !recv_one(w.qp, 2));
	fake_received(w.real, 1, 8);
	fake_received(w.real, 2, 8);
	suspend();
	CHECK(is_woken());
	read_event();
	arm();
	CHECK(ibv_poll_cq(w.cq, 1, &wc) == 1 && wc.wr_id == 1);
	CHECK(is_woken());
	POLLED(w.cq, 1, 2);
	check_armed();

	puts("and something comes just then");
	fake_received(w.real, 8, 8);
	arm();
	fake_armed_hook = receive_once;
	CHECK(ibv_poll_cq(w.cq, 1, &wc) == 1 && wc.wr_id == 8);
	CHECK(!fake_armed_hook && is_woken());
	read_event();
	CHECK(!is_woken());
	POLLED(w.cq, 1, 6);
	arm();
	check_armed();

	puts("which is not");
	fake_received(w.real, 3, 8);
	arm();
	CHECK(is_woken());
	read_event();
	CHECK(!is_woken());
	POLLED(w.cq, 1, 3);
	CHECK(!is_woken()); /* nor armed */
	fake_received(w.real, 4, 8);
	CHECK(!is_woken());
	POLLED(w.cq, 1, 4);
	fake_received(w.real, 5, 8);
	arm();
	read_event();
	POLLED(w.cq, 1, 5);
	arm();
	resume();
	suspend();
	check_armed();

	resume();

	puts("and is not armed then, as the device is gone");
	fake_received(w.real, 7, 8);
	hold(100);
	arm();
	CHECK(is_woken());
	POLLED(w.cq, 1, 7);
	CHECK(!is_woken());
	replace_all();
	connect_all();
	resume();
	check_armed();
	world_destroy();
}

/* There is no marker's completion within the time, but later. */
static void suspend_in_vain(void)
{
	prompt = false;
	CHECK(layer_suspend(1, &found) == ETIMEDOUT);
	prompt = true;
}

static void finish_late(void)
{
	fake_finish(w.real, UINT32_MAX, IBV_WC_SUCCESS);
	fake_finish(w.real_srq, UINT32_MAX, IBV_WC_SUCCESS);
}

static atomic_int waiter;
static atomic_uint armings;
static atomic_bool came;

static void *wait_for_event(void *arg)
{
	(void)arg;
	waiter = gettid();
	read_event();
	came = true;
	return NULL;
}

/* Has it looked, and waits for another one? */
static bool is_waiting(void)
{
	char path[64];
	long call = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", waiter);
	f = fopen(path, "r");
	if (!f)
		return false;
	if (fscanf(f, "%ld", &call) != 1)
		call = -1;
	fclose(f);
	return call == SYS_ppoll;
}

static void count_arming(struct ibv_cq *real)
{
	(void)real;
	armings++;
}

/* as if it had been there when the CQ was armed */
static void receive_unheard(struct ibv_cq *armed)
{
	struct ibv_cq *cq;
	void *context;

	fake_armed_hook = NULL;
	fake_received(w.real, 6, 8);
	CHECK(!real()->ibv_get_cq_event(armed->channel, &cq, &context));
	real()->ibv_ack_cq_events(cq, 1);
	CHECK(!armed->context->ops.req_notify_cq(armed, 0));
}

static void test_late(void)
{
	pthread_t thread;
	struct ibv_cq *cq;
	void *context;

	puts("who waits is not woken by a marker of a suspension that has failed");
	world_make();
	arm();
	suspend_in_vain();
	MUST(!pthread_create(&thread, NULL, wait_for_event, NULL));
	WAIT(is_waiting());
	fake_armed_hook = count_arming;
	finish_late();
	WAIT(armings == 1);
	fake_armed_hook = NULL;
	CHECK(!came);
	fake_received(w.real, 1, 8);
	MUST(!pthread_join(thread, NULL));
	POLLED(w.cq, 1, 1);

	puts("what comes just when it is armed again wakes him, once");
	arm();
	suspend_in_vain();
	came = false;
	MUST(!pthread_create(&thread, NULL, wait_for_event, NULL));
	WAIT(is_waiting());
	fake_armed_hook = receive_once;
	finish_late();
	MUST(!pthread_join(thread, NULL));
	CHECK(!fake_armed_hook && !is_woken());
	POLLED(w.cq, 1, 6);

	puts("also if it had come before");
	arm();
	suspend_in_vain();
	came = false;
	MUST(!pthread_create(&thread, NULL, wait_for_event, NULL));
	WAIT(is_waiting());
	fake_armed_hook = receive_unheard;
	finish_late();
	MUST(!pthread_join(thread, NULL));
	CHECK(!fake_armed_hook && !is_woken());
	POLLED(w.cq, 1, 6);
	arm();
	check_armed();

	puts("nor who asks and does not wait");
	CHECK(!fcntl(w.channel->fd, F_SETFL, O_NONBLOCK));
	arm();
	suspend_in_vain();
	finish_late();
	check_nothing(w.cq);
	FAILS_WITH(EAGAIN, !ibv_get_cq_event(w.channel, &cq, &context));
	check_armed();

	puts("he has one event of what comes just when it is armed again");
	arm();
	suspend_in_vain();
	finish_late();
	fake_armed_hook = receive_once;
	read_event();
	MUST(!fake_armed_hook);
	fake_received(w.real, 7, 8);
	POLLED(w.cq, 1, 6, 7);
	FAILS_WITH(EAGAIN, !ibv_get_cq_event(w.channel, &cq, &context));
	arm();
	check_armed();

	puts("it is not armed again: he is told");
	arm();
	suspend_in_vain();
	finish_late();
	fake_fail("req_notify_cq", EIO);
	read_event();
	arm();
	check_armed();

	puts("but who may have been told that there is one");
	CHECK(!fcntl(w.channel->fd, F_SETFL, 0));
	arm();
	suspend_in_vain();
	finish_late();
	CHECK(is_woken());
	read_event();
	arm();
	check_armed();

	arm();
	suspend_in_vain();
	finish_late();
	CHECK(is_woken()); /* and goes on only when it is suspended again */
	suspend();
	CHECK(is_woken());
	read_event();
	arm();
	resume();
	check_armed();

	puts("behind a marker");
	arm();
	suspend_in_vain();
	finish_late();
	fake_received(w.real, 2, 8);
	POLLED(w.cq, 1, 2);
	CHECK(is_woken());
	read_event();
	check_direct(w.cq, w.real_cq);
	world_destroy();
}

static void test_meanwhile(void)
{
	puts("what completes while a marker is awaited wakes him");
	world_make();
	arm();
	prompt = false;
	begin_suspend(LONG);
	WAIT(markers_of(w.real) && markers_of(w.real_srq));
	fake_received(w.real, 1, 8);
	WAIT(is_woken());
	CHECK(!other.done);
	read_event();
	POLLED(w.cq, 1, 1);
	arm();
	finish_late();
	CHECK(!end_suspend());
	prompt = true;
	check_armed();
	resume();
	world_destroy();
}

/* another thread that replaces this many QPs, or all */
static struct {
	pthread_t thread;
	unsigned int n, ms;
	int err;
} replacing;

static void *replace_thread(void *arg)
{
	(void)arg;
	replacing.err = layer_replace(&w.qp->qp_num, replacing.n, replacing.ms,
				      &swapped);
	return NULL;
}

static void begin_replace(unsigned int n, unsigned int ms)
{
	replacing.n = n;
	replacing.ms = ms;
	MUST(!pthread_create(&replacing.thread, NULL, replace_thread, NULL));
}

static int end_replace(void)
{
	MUST(!pthread_join(replacing.thread, NULL));
	return replacing.err;
}

/* RECVs of the QP are flushed, to a CQ that stays. */
static void test_some(void)
{
	const union ibv_gid gid = { .raw = { 0xfe, [15] = 77 } };
	uint32_t qpn;

	puts("flushes wake nobody");
	world_make();
	qpn = w.qp->qp_num;
	CHECK(!recv_one(w.qp, 1) && !recv_one(w.qp, 2));
	CHECK(!suspend_one(w.qp, LONG));
	arm();
	fake_flush(1); /* and no more yet */
	CHECK(layer_replace(&qpn, 1, 2, &swapped) == ETIMEDOUT);
	CHECK(!is_woken());
	begin_replace(1, LONG);
	WAIT(to_channel(w.channel)->muted);
	fake_received(w.real_srq, 9, 8);
	WAIT(is_woken());
	read_event();
	POLLED(w.cq, 1, 9);
	arm();
	fake_flush(UINT32_MAX);
	CHECK(!end_replace(), "%s", swapped.reason);
	w.real = fake_newest(FAKE_QP);
	CHECK(!is_woken());
	CHECK(!layer_set_peer(qpn, 0x5001, &gid, "mover", &swapped));
	CHECK(!layer_connect(&swapped));
	check_armed();
	arm();
	resume();
	check_armed();
	world_destroy();
}

static void test_in_vain(void)
{
	puts("what completes while replacement fails wakes him");
	world_make();
	CHECK(!recv_one(w.qp, 1) && !recv_one(w.qp, 2));
	suspend();
	arm();
	fake_flush(1);
	begin_replace(0, 300);
	WAIT(__atomic_load_n(&w.real->state, __ATOMIC_RELAXED) == IBV_QPS_ERR);
	fake_received(w.real, 9, 8);
	CHECK(end_replace() == ETIMEDOUT && is_woken());
	fake_flush(UINT32_MAX);
	replace_all();
	connect_all();
	resume();
	world_destroy();
}

int main(void)
{
	rig_open();
	test_markers();
	test_polled();
	test_late();
	test_meanwhile();
	test_some();
	test_in_vain();
	return rig_close();
}
