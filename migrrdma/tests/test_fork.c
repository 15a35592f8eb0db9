// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A child of fork() waits for nobody; what is kept of SRQs, and told, is kept from nobody.
 */
#include <sys/socket.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "client.h"
#include "gate.h"
#include "slots_inner.h"
#include "tell.h"

/* what would wait for the layer, or for another thread */
static void call_all(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_wc wc;

	ibv_poll_cq(w.cq, 1, &wc);
	ibv_req_notify_cq(w.cq, 0);
	recv_one(w.qp, 1);
	recv_srq(2);
	write_one(w.qp, 3, 0);
	ibv_query_qp(w.qp, &attr, 0, &init);
	set_state(w.qp, IBV_QPS_RESET);
	ibv_destroy_qp(w.qp);
	ibv_destroy_qp(w.of_srq);
	ibv_destroy_cq(w.cq);
}

static void check_child(void)
{
	struct shadow_cq *cq = to_cq(w.cq);
	int status = -1;
	pid_t child;

	pthread_mutex_lock(&to_qp(w.qp)->lock);
	pthread_mutex_lock(&cq->lock);
	pthread_mutex_lock(&to_context(ctx)->lock);
	child = fork();
	if (!child) {
		alarm(10);
		call_all();
		_exit(0);
	}
	pthread_mutex_unlock(&to_context(ctx)->lock);
	pthread_mutex_unlock(&cq->lock);
	pthread_mutex_unlock(&to_qp(w.qp)->lock);
	MUST(child > 0 && waitpid(child, &status, 0) == child);
	CHECK(status == 0, "%#x", (unsigned int)status);
}

static void test_fork(void)
{
	puts("children of a process that is not suspended, is, or half replaced");
	world_make();
	CHECK(!recv_one(w.qp, 1) && !recv_one(w.qp, 2));
	check_child();
	suspend();
	check_child();
	fake_flush(1);
	CHECK(layer_replace(NULL, 0, 20, &swapped) == ETIMEDOUT);
	check_child();
	fake_flush(UINT_MAX);
	replace_all();
	check_child();
	connect_all();
	resume();
	RECVS(w.real, 1, 2);
	world_destroy();
}

/* Ids of SRQs that are gone are kept until CQs are that may have completions. */
static void test_retired(void)
{
	struct shadow_context *c = to_context(ctx);
	struct ibv_cq *cq, *real_cq;

	puts("SRQs that are destroyed");
	for (int i = 0; i < 3; i++) {
		world_make();
		CHECK(!recv_srq(1) && !recv_srq(2));
		fake_receive(w.real_srq, 1);
		CHECK(!ibv_destroy_qp(w.qp) && !ibv_destroy_qp(w.of_srq));
		CHECK(!ibv_destroy_srq(w.srq) && slots_retired(c) == 1);
		POLLED(w.cq, 4, 1);
		cq = new_cq(4, &real_cq); /* which is too young */
		CHECK(!ibv_destroy_cq(w.cq) && !slots_retired(c));
		CHECK(!ibv_destroy_cq(cq) && !ibv_dereg_mr(w.mr));
		CHECK(!ibv_destroy_comp_channel(w.channel));

		world_make();
		CHECK(!recv_srq(1));
		CHECK(!ibv_destroy_qp(w.qp) && !ibv_destroy_qp(w.of_srq));
		CHECK(!ibv_destroy_cq(w.cq) && !ibv_destroy_srq(w.srq));
		CHECK(!slots_retired(c) && !ibv_dereg_mr(w.mr));
		CHECK(!ibv_destroy_comp_channel(w.channel));
	}
}

static atomic_bool retired;

static void *destroy_srq(void *arg)
{
	(void)arg;
	CHECK(!ibv_destroy_srq(w.srq));
	retired = true;
	return NULL;
}

/* Who destroys it waits for who takes the last completion, and keeps nothing for that. */
static void test_last_taken(void)
{
	struct slots *s;
	pthread_t thread;

	puts("while another thread takes the last completion");
	world_make();
	s = to_srq(w.srq)->slots;
	CHECK(!recv_srq(1) && s->used == 1);
	CHECK(!ibv_destroy_qp(w.qp) && !ibv_destroy_qp(w.of_srq));
	pthread_mutex_lock(&s->lock);
	MUST(!pthread_create(&thread, NULL, destroy_srq, NULL));
	WAIT(!fake_alive(FAKE_SRQ));
	for (int i = 0; i < 500 && !retired; i++) /* it must not come so far */
		usleep(100);
	slot_put(s, 0);
	pthread_mutex_unlock(&s->lock);
	MUST(!pthread_join(thread, NULL));
	CHECK(!slots_retired(to_context(ctx)));
	CHECK(!ibv_destroy_cq(w.cq) && !ibv_dereg_mr(w.mr));
	CHECK(!ibv_destroy_comp_channel(w.channel));
}

/* Nor do they hold up a child, of an SRQ that is gone. */
static void test_retired_in_child(void)
{
	struct slots *s;
	int status = -1;
	struct ibv_wc wc;
	pid_t child;

	puts("and a child that has completions of it");
	world_make();
	CHECK(!recv_srq(1) && !recv_srq(2));
	fake_receive(w.real_srq, 1);
	CHECK(!ibv_destroy_qp(w.qp) && !ibv_destroy_qp(w.of_srq));
	CHECK(!ibv_destroy_srq(w.srq));
	MUST(s = LIST_FIRST(&to_context(ctx)->slots));
	pthread_mutex_lock(&s->lock);
	child = fork();
	if (!child) {
		alarm(10);
		_exit(ibv_poll_cq(w.cq, 1, &wc) != 1 || wc.wr_id != 1);
	}
	pthread_mutex_unlock(&s->lock);
	MUST(child > 0 && waitpid(child, &status, 0) == child);
	CHECK(status == 0, "%#x", (unsigned int)status);
	CHECK(!ibv_destroy_cq(w.cq) && !ibv_dereg_mr(w.mr));
	CHECK(!ibv_destroy_comp_channel(w.channel));
}

static void *tell_thread(void *fd)
{
	CHECK(!tell_names(*(int *)fd));
	return NULL;
}

/* Who asks and does not read the answer holds nobody up. */
static void test_tell(void)
{
	char text[4096] = { 0 };
	pthread_t thread;
	ssize_t n;
	int fd[2];

	puts("names for nobody");
	MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
			 fd));
	while (write(fd[1], text, sizeof(text)) > 0)
		;
	MUST(!fcntl(fd[0], F_SETFL, 0) && !fcntl(fd[1], F_SETFL, 0));
	MUST(!pthread_create(&thread, NULL, tell_thread, &fd[1]));
	usleep(50000);
	suspend();
	resume();
	while ((n = read(fd[0], text, sizeof(text))) > 0 && !text[0])
		;
	MUST(!pthread_join(thread, NULL));
	CHECK(n > 0 && !memcmp(text, "{\"ok\": true, ", 13));
	close(fd[0]);
	close(fd[1]);
}

static void test_unplugged(void)
{
	puts("a process whose devices are unplugged");
	world_make();
	hold(1);
	fake_fail_times("ibv_open_device", ENODEV, 10);
	while (layer_is_held())
		layer_tick();
	check_child();
	fake_fail("ibv_close_device", EBUSY); /* then it is where it was */
	CHECK(ibv_close_device(ctx) == EBUSY && !TAILQ_FIRST(&contexts));
	check_child();
	world_destroy();
}

static int has_sign(void)
{
	char path[64], link[256];
	ssize_t n;

	for (int fd = 0; fd < 1000; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, link, sizeof(link) - 1);
		if (n > 0 && (link[n] = 0, strstr(link, "libmigrrdma:")))
			return 1;
	}
	return 0;
}

/* The daemon learns of the end of a connection, and the plug-in of no sign that is another's. */
static void test_files(void)
{
	int f = dial(), status = -1;
	pid_t child, other;

	puts("a child has no files of the layer");
	world_make();
	CHECK(does(f, "suspend 20000\n"));
	child = fork();
	if (!child) {
		alarm(60);
		pause();
		_exit(0);
	}
	MUST(child > 0);
	hold_and_hang_up(f, "hold 20000 5\n");
	MUST(has_sign());
	other = fork();
	if (!other)
		_exit(has_sign());
	MUST(other > 0 && waitpid(other, &status, 0) == other);
	CHECK(status == 0, "%#x", (unsigned int)status);
	MUST(!kill(child, SIGKILL) && waitpid(child, &status, 0) == child);
	check_lease_ends();
}

int main(void)
{
	rig_open();
	test_fork();
	test_retired();
	test_last_taken();
	test_retired_in_child();
	test_tell();
	test_files();
	test_unplugged();
	return rig_close();
}
