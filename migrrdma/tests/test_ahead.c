// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * QPs that are made before anybody is suspended, and destroyed when all go on
 */
#include "ahead.h"
#include "client.h"
#include "clock.h"
#include "gate.h"

static const union ibv_gid gid = { .raw = { 0xfe, [15] = 77 } };

static int prepare(const struct ibv_qp *qp)
{
	return layer_prepare(&qp->qp_num, 1, LONG, &swapped);
}

static void replace(const struct ibv_qp *qp)
{
	CHECK(!layer_replace(&qp->qp_num, 1, LONG, &swapped), "%s",
	      swapped.reason);
}

static void connect_one(const struct ibv_qp *qp)
{
	CHECK(!layer_set_peer(qp->qp_num, 0x5001, &gid, "mover", &swapped));
	CHECK(!layer_connect(&swapped) && swapped.qps == 1);
	resume();
}

/* what the application does meanwhile */
static void goes_on(struct ibv_qp *qp, struct ibv_qp *real)
{
	static uint64_t id = 1000;

	CHECK(!send_one(qp, ++id, IBV_SEND_SIGNALED));
	CHECK(fake_finish(real, 1, IBV_WC_SUCCESS) == 1);
	POLLED(w.cq, 4, id);
}

static void test_used(void)
{
	unsigned int qps;
	struct ibv_qp *next;

	puts("made ahead, and destroyed in the end");
	world_make();
	qps = fake_alive(FAKE_QP);
	CHECK(!prepare(w.qp) && swapped.objects == 1);
	CHECK(!prepare(w.qp) && swapped.objects == 0);
	next = fake_newest(FAKE_QP);
	CHECK(fake_alive(FAKE_QP) == qps + 1 && next != w.real);
	CHECK(next->state == IBV_QPS_INIT);
	goes_on(w.qp, w.real);

	CHECK(!suspend_one(w.qp, LONG));
	CHECK(prepare(w.qp) == EBUSY);
	replace(w.qp);
	CHECK(swapped.qps == 1 && swapped.objects == 0);
	CHECK(fake_alive(FAKE_QP) == qps + 1 && fake_newest(FAKE_QP) == next);
	w.real = next;
	connect_one(w.qp);
	goes_on(w.qp, w.real);
	ahead_end();
	CHECK(fake_alive(FAKE_QP) == qps && fake_newest(FAKE_QP) == next);
	goes_on(w.qp, w.real);

	puts("what was replaced is not taken for what is to come");
	CHECK(!suspend_one(w.qp, LONG));
	replace(w.qp);
	next = fake_newest(FAKE_QP);
	replace(w.qp);
	CHECK(swapped.objects == 1 && fake_newest(FAKE_QP) != next);
	CHECK(fake_alive(FAKE_QP) == qps + 1);
	w.real = fake_newest(FAKE_QP);
	connect_one(w.qp);
	CHECK(!prepare(w.qp) && swapped.objects == 1);
	CHECK(fake_alive(FAKE_QP) == qps + 1);
	ahead_end();
	CHECK(fake_alive(FAKE_QP) == qps && fake_newest(FAKE_QP) == w.real);
	goes_on(w.qp, w.real);
	world_destroy();
}

/* An application that has a verb all the time */
static atomic_uint verbs;
static atomic_bool goes;
static atomic_int calls_verbs; /* who does */

static void *many_verbs(void *arg)
{
	(void)arg;
	calls_verbs = gettid();
	while (goes) {
		gate_enter();
		verbs++;
		gate_leave();
	}
	return NULL;
}

/* It sleeps nowhere but at the gate. */
static bool sleeps(void)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", calls_verbs);
	f = fopen(path, "re");
	if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	if (f)
		fclose(f);
	return state == 'S';
}

/* It is waited for, but not for ever: where all are busy that may be over before it runs. */
static void test_gate(void)
{
	enum {
		ROUNDS = 50,
		MOST_NS = 5000000
	};
	unsigned int before, rounds = 0;
	pthread_t thread;
	uint64_t begin;
	bool in_time;

	puts("who waits at the gate is let in before it is closed again");
	goes = true;
	MUST(!pthread_create(&thread, NULL, many_verbs, NULL));
	WAIT(verbs);
	CHECK(gate_close(UINT64_MAX / 2));
	for (int i = 0; i < 20 * ROUNDS && rounds < ROUNDS; i++) {
		WAIT(sleeps());
		before = verbs;
		begin = clock_ns();
		gate_let_in();
		in_time = clock_ns() - begin < MOST_NS;
		CHECK(gate_close(UINT64_MAX / 2));
		if (!in_time)
			continue;
		rounds++;
		CHECK(verbs != before, "round %u", rounds);
	}
	CHECK(rounds);
	goes = false;
	gate_open();
	MUST(!pthread_join(thread, NULL));
}

/* as long as it likes, within a verb */
static atomic_bool within;

static void *stay(void *arg)
{
	(void)arg;
	gate_enter();
	within = true;
	WAIT(!within);
	gate_leave();
	return NULL;
}

static void test_left(void)
{
	unsigned int qps;
	pthread_t thread;

	puts("what is left because of a verb is not used");
	world_make();
	qps = fake_alive(FAKE_QP);
	CHECK(!prepare(w.qp) && swapped.objects == 1);
	MUST(!pthread_create(&thread, NULL, stay, NULL));
	WAIT(within);
	ahead_end();
	CHECK(fake_alive(FAKE_QP) == qps + 1);
	within = false;
	MUST(!pthread_join(thread, NULL));
	CHECK(!prepare(w.qp) && swapped.objects == 1);
	ahead_end();
	CHECK(fake_alive(FAKE_QP) == qps);
	world_destroy();
}

static void test_changed(void)
{
	unsigned int qps;
	struct ibv_qp *b, *real_b;

	puts("of a QP that is changed or destroyed");
	world_make();
	b = new_qp(IBV_QPT_RC, w.cq, &real_b);
	qps = fake_alive(FAKE_QP);
	CHECK(!prepare(w.qp) && !prepare(b));
	set_state(w.qp, IBV_QPS_ERR);
	CHECK(fake_alive(FAKE_QP) == qps + 1);
	CHECK(!ibv_destroy_qp(b));
	CHECK(fake_alive(FAKE_QP) == qps - 1);

	puts("of a process that is suspended as a whole");
	CHECK(!prepare(w.of_srq) && fake_alive(FAKE_QP) == qps);
	suspend();
	CHECK(fake_alive(FAKE_QP) == qps - 1);
	replace(w.of_srq);
	CHECK(fake_alive(FAKE_QP) == qps - 1);
	CHECK(!layer_set_peer(w.of_srq->qp_num, 0x5001, &gid, "mover",
			      &swapped));
	CHECK(!layer_connect(&swapped) && swapped.qps == 1);
	resume();
	world_destroy();
}

static int lead(const struct ibv_qp *qp, uint32_t peer)
{
	return layer_lead(&qp->qp_num, &peer, 1, &gid, &swapped);
}

/* by one that is connected then */
static void replaced_anew(void)
{
	replace(w.qp);
	w.real = fake_newest(FAKE_QP);
	CHECK(w.real->state == IBV_QPS_INIT);
	connect_one(w.qp);
	goes_on(w.qp, w.real);
	ahead_end();
}

static void test_led(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	struct ibv_qp *next;

	puts("connected ahead");
	world_make();
	CHECK(lead(w.qp, 0x5001) == EINVAL);
	CHECK(strstr(swapped.reason, "none made ahead"));
	CHECK(!prepare(w.qp) && !lead(w.qp, 0x5001));
	next = fake_newest(FAKE_QP);
	CHECK(next->state == IBV_QPS_RTS && w.real->state == IBV_QPS_RTS);
	CHECK(lead(w.qp, 0x5001) == EINVAL);
	goes_on(w.qp, w.real);
	CHECK(!suspend_one(w.qp, LONG));
	CHECK(lead(w.qp, 0x5001) == EBUSY);
	replace(w.qp);
	w.real = next;
	CHECK(layer_resume(&found) == EBUSY);
	CHECK(layer_connect(&swapped) == EINVAL);
	CHECK(strstr(swapped.reason, "has no peer"));
	fake_fail("ibv_modify_qp", EIO); /* there is nothing to be said */
	connect_one(w.qp);
	CHECK(w.real->state == IBV_QPS_RTS);
	goes_on(w.qp, w.real);
	ahead_end();
	CHECK(ibv_modify_qp(w.qp, &attr, IBV_QP_STATE) == EIO);

	puts("and its peer is another one in the end");
	CHECK(!prepare(w.qp) && !lead(w.qp, 0x5001));
	CHECK(!prepare(w.qp) && swapped.objects == 1);
	CHECK(!lead(w.qp, 0x5002));
	CHECK(!suspend_one(w.qp, LONG));
	replace(w.qp);
	CHECK(!layer_set_peer(w.qp->qp_num, 0x5001, &gid, "mover", &swapped));
	CHECK(layer_connect(&swapped) == EINVAL);
	CHECK(strstr(swapped.reason, "leads elsewhere"));
	replaced_anew();

	puts("and changed by the application");
	CHECK(!prepare(w.qp) && !lead(w.qp, 0x5002));
	set_state(w.qp, IBV_QPS_RTS);
	CHECK(!suspend_one(w.qp, LONG));
	replaced_anew();

	puts("and given up");
	CHECK(!prepare(w.qp) && !lead(w.qp, 0x5001));
	CHECK(!suspend_one(w.qp, LONG));
	replace(w.qp);
	layer_give_up();
	CHECK(((struct ibv_qp *)fake_newest(FAKE_QP))->state == IBV_QPS_ERR);
	world_destroy();
}

static void test_refused(void)
{
	struct ibv_qp *ud, *real_ud;
	uint32_t qpns[] = { 0, 0xabcdef };
	unsigned int qps;

	puts("refused, and nothing is left");
	world_make();
	ud = new_qp(IBV_QPT_UD, w.cq, &real_ud);
	qps = fake_alive(FAKE_QP);
	qpns[0] = w.qp->qp_num;
	CHECK(layer_prepare(qpns, 2, LONG, &swapped) == EINVAL);
	CHECK(strstr(swapped.reason, "no QP is 0xabcdef"));
	CHECK(fake_alive(FAKE_QP) == qps);
	CHECK(prepare(ud) == EINVAL && strstr(swapped.reason, "no other"));
	fake_fail("ibv_create_qp", ENOMEM);
	CHECK(prepare(w.qp) == ENOMEM && fake_alive(FAKE_QP) == qps);
	fake_fail("ibv_modify_qp", EIO);
	CHECK(prepare(w.qp) == EIO && fake_alive(FAKE_QP) == qps);
	goes_on(w.qp, w.real);
	CHECK(!ibv_destroy_qp(ud));
	world_destroy();
}

/* the number of the next one, as the last answer tells it; 0 if there is none */
static unsigned int next_number(void)
{
	const char *at = strstr(answer, "\"next\": ");

	return at ? (unsigned int)strtoul(at + 8, NULL, 10) : 0;
}

static void test_connection(void)
{
	char line[64];
	unsigned int qps;
	int f;

	puts("by words, until the connection ends");
	world_make();
	qps = fake_alive(FAKE_QP);
	f = dial();
	CHECK(!does(f, "prepare 100\n") && !does(f, "prepare\n"));
	snprintf(line, sizeof(line), "prepare 1000 %u\n", w.qp->qp_num);
	CHECK(does(f, line) && strstr(answer, "\"qps\": 1"));
	CHECK(does(f, "names\n"));
	CHECK(next_number() == ((struct ibv_qp *)fake_newest(FAKE_QP))->qp_num);
	CHECK(fake_alive(FAKE_QP) == qps + 1);
	snprintf(line, sizeof(line), "lead %u 0x5001 fe00::77 host-2:1234\n",
		 w.qp->qp_num);
	CHECK(does(f, line) && !does(f, line));
	CHECK(!does(f, "lead 1 2 fe80::1\n"));
	close(f);
	WAIT(fake_alive(FAKE_QP) == qps);
	f = dial();
	CHECK(does(f, "names\n") && !next_number());
	close(f);
	world_destroy();
}

int main(void)
{
	rig_open();
	test_used();
	test_gate();
	test_left();
	test_changed();
	test_led();
	test_refused();
	test_connection();
	return rig_close();
}
