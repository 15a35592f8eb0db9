// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Connections that are made after a move: what is told at the daemon's socket
 */
#include <sys/wait.h>

#include "clock.h"
#include "meet_rig.h"

#define SECOND 1000000000UL /* ns */

/* --- telling --- */

static void test_told(void)
{
	struct ibv_qp *qp, *real;

	puts("who has moved tells its keys before it is connected");
	migrd.says = "met\n";
	CHECK(!called()); /* there was nothing to tell */
	world_replace();
	CHECK(!called());
	qp = make(&real);
	to_rts(qp);
	CHECK(called() == 1 && migrd.state == IBV_QPS_INIT, "%d", migrd.state);
	CHECK(fake_state(real) == IBV_QPS_RTS);
	check_heard(qp, 1);
	reset(qp);
	to_rts(qp);
	CHECK(called() == 1);
	CHECK(!ibv_destroy_qp(qp));
	world_replace();
	qp = make(&real);
	to_rts(qp);
	CHECK(called() == 1);
	check_heard(qp, 2);
	CHECK(!ibv_destroy_qp(qp));
}

static void *changes_rights(void *arg)
{
	for (unsigned int i = 0; i < 200; i++)
		CHECK(!ibv_rereg_mr(arg, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL,
				    0,
				    IBV_ACCESS_LOCAL_WRITE |
					    (i % 2 ? IBV_ACCESS_REMOTE_WRITE
						   : 0)));
	return arg;
}

/* for the thread sanitizer */
static void test_changed(void)
{
	struct ibv_qp *qp, *real;
	struct ibv_mr *mr;
	pthread_t thread;

	puts("while another thread changes what peers may do");
	MUST(mr = ibv_reg_mr(pd, w.memory, sizeof(w.memory), 0));
	MUST(!pthread_create(&thread, NULL, changes_rights, mr));
	for (unsigned int i = 0; i < 20; i++) {
		qp = make(&real);
		to_rts(qp);
		CHECK(!ibv_destroy_qp(qp));
	}
	MUST(!pthread_join(thread, NULL));
	CHECK(!ibv_dereg_mr(mr));
	called();
}

static void *says_met(void *arg)
{
	WAIT(migrd.calls >= 2);
	migrd.says = "met\n";
	return arg;
}

/* @says: until it has been called twice */
static void check_again(const char *says)
{
	struct ibv_qp *qp, *real;
	pthread_t thread;

	migrd.says = says;
	called();
	MUST(!pthread_create(&thread, NULL, says_met, NULL));
	qp = make(&real);
	to_rtr(qp);
	CHECK(migrd.calls >= 3, "%u", migrd.calls);
	CHECK(fake_state(real) == IBV_QPS_RTR);
	CHECK(!ibv_destroy_qp(qp));
	MUST(!pthread_join(thread, NULL));
	called();
}

static void test_again(void)
{
	puts("a peer that is busy, and a daemon that is");
	check_again("busy\n");
	check_again(NULL);
	puts("a refusal, and none of any sense");
	migrd.says = "failed as nobody is there\n";
	check_connects(1);
	migrd.says = "what?\n";
	check_connects(1);
}

/* @says: when it is called within a batch, which others wait for; so often, or 2: more than once */
static void check_in_batch(const char *says, unsigned int calls)
{
	bool again = calls > 1;
	struct ibv_qp *of_batch, *qp, *real;
	uint64_t begun = clock_ns();

	of_batch = new_qp_ex(IBV_QPT_RC, w.cq, EX_OPS, &real);
	qp = make(&real);
	migrd.says = says;
	migrd.ended = 0;
	ibv_wr_start(ibv_qp_to_qp_ex(of_batch));
	to_rtr(qp);
	ibv_wr_abort(ibv_qp_to_qp_ex(of_batch));
	CHECK(clock_ns() < begun + 10 * SECOND);
	CHECK(again ? migrd.calls > 1 : migrd.calls == calls, "%u",
	      migrd.calls);
	WAIT(migrd.ended == !*says);
	if (again) { /* it may have been hung up on in the last one */
		migrd_stop();
		migrd_start();
	}
	called();
	CHECK(fake_state(real) == IBV_QPS_RTR);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_qp(of_batch));
}

static void test_in_batch(void)
{
	puts("in a batch");
	check_in_batch("met\n", 1);
	check_in_batch("busy\n", 2);
	check_in_batch("", 1);
	migrd.looks = true;
	check_in_batch("", 1);
	migrd.looks = false;
	migrd_stop();
	teller.pauses = 0;
	check_in_batch("met\n", 0);
	CHECK(!teller.pauses);
	migrd_start();
}

static void go_on(void)
{
	connect_all();
	resume();
}

/* of an object that is made now */
static uint32_t next_handle(void)
{
	struct ibv_pd *probe = ibv_alloc_pd(ctx);
	uint32_t handle;

	MUST(probe);
	handle = ((struct ibv_pd *)fake_newest(FAKE_PD))->handle;
	MUST(!ibv_dealloc_pd(probe));
	return handle;
}

static uint32_t
	nth; /* the new QP for @waits is, of all objects that are replaced */

static void find_nth(void)
{
	uint32_t first;

	waits = make(&real_waits);
	first = next_handle();
	world_replace();
	nth = ((struct ibv_qp *)fake_newest(FAKE_QP))->handle - first;
	CHECK(!ibv_destroy_qp(waits));
	world_look();
}

/* On another host, where time is another, too, that one has the number of before by chance. */
static void replace_elsewhere(void)
{
	const struct ibv_qp *real;

	fake_next_handle(real_waits->handle - nth + 1);
	fake_gids[SGID_INDEX].gid.raw[15] ^= 0x40;
	teller.clock += 3600;
	replace_all();
	real = fake_newest(FAKE_QP);
	CHECK(real != real_waits && real->qp_num == waits->qp_num);
}

/* Nothing is open when the process is dumped, nor does anybody wait for a daemon. */
static void test_held(void)
{
	unsigned int n;

	puts("a process that is held");
	begin_to_connect();
	suspend(); /* which does not wait for that */
	CHECK(!migrd.ended && stream() >= 0);
	resume();
	n = teller.waits;
	hold(100);
	CHECK(stream() < 0);
	WAIT(teller.waits > n && migrd.ended); /* it is at the gate */
	CHECK(migrd.ended == 1 && called() == 1 && !connected);
	migrd.says = "met\n";
	replace_elsewhere();
	go_on();
	end_to_connect(1);
}

static void test_held_in_pause(void)
{
	puts("and has not noticed");
	teller.stays = true;
	begin_to_connect();
	migrd.says = "busy\n";
	teller.pauses = 0;
	WAIT(teller.pauses);
	hold(100);
	migrd.says = "met\n";
	replace_elsewhere();
	go_on();
	CHECK(called() == 1 && !connected);
	teller.stays = false;
	end_to_connect(1);

	puts("and has another number");
	begin_to_connect();
	called();
	hold(100);
	WAIT(migrd.ended);
	migrd.says = "met\n";
	replace_all();
	go_on();
	end_to_connect(0);
}

/* It is told once, and anew when its peer has been told what is not true any more. */
static void test_answered(bool is_held)
{
	unsigned int n;

	printf("an answer while it is suspended%s\n",
	       is_held ? ", and held" : "");
	begin_to_connect();
	suspend();
	n = teller.waits;
	migrd.says = "met\n";
	WAIT(teller.waits > n);
	CHECK(called() == 1 && !connected);
	if (is_held) {
		migrd.says = "busy\n";
		teller.stays = true;
		CHECK(!layer_hold(LONG, 100, &swapped), "%s", swapped.reason);
		replace_elsewhere();
		go_on();
		WAIT(migrd.calls);
		migrd.says = "met\n";
		teller.stays = false;
	} else {
		resume();
	}
	end_to_connect(is_held ? 2 : 0);
}

/* What a child has of it would keep its parent from being dumped. */
static void test_child(void)
{
	int status;
	pid_t pid;

	puts("a child");
	begin_to_connect();
	pid = fork();
	if (!pid)
		_exit(stream() >= 0);
	MUST(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(!status && stream() >= 0);
	migrd.says = "met\n";
	end_to_connect(1);
}

int main(void)
{
	rig_open();
	migrd_start();
	world_make();
	test_told();
	test_changed();
	test_again();
	test_in_batch();
	find_nth();
	test_held();
	test_held_in_pause();
	test_answered(false);
	test_answered(true);
	test_child();
	migrd_end();
	puts("there is no daemon");
	check_connects(0);
	world_destroy();
	return rig_close();
}
