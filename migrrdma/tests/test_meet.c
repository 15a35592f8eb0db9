// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Connections that are made after a move: what is told at the daemon's socket
 */
#include <arpa/inet.h>
#include <sys/wait.h>

#include "meet_rig.h"

/* --- the daemon --- */

static struct sockaddr_un at = { .sun_family = AF_UNIX };
static struct migrd {
	pthread_t thread;
	int listener;
	atomic_uint calls, ended; /* those that the process has ended itself */
	const char *_Atomic says; /* "": nothing, until that; NULL: it hangs up */
	char heard[4096];	  /* in the last call */
	enum ibv_qp_state state; /* of the newest QP, when it was heard */
} migrd;

static void hear_call(int fd)
{
	size_t n = 0;
	ssize_t got;

	do {
		got = read(fd, migrd.heard + n, sizeof(migrd.heard) - 1 - n);
		n += got > 0 ? (size_t)got : 0;
		migrd.heard[n] = 0;
	} while (got > 0 && !strstr(migrd.heard, "\nend\n"));
	migrd.state = fake_state(fake_newest(FAKE_QP));
}

static void serve_call(int fd)
{
	const char *says;
	char byte;

	hear_call(fd);
	says = migrd.says;
	migrd.calls++;
	if (says && !*says)
		migrd.ended += read(fd, &byte, 1) <= 0;
	else if (says)
		MUST(write(fd, says, strlen(says)) == (ssize_t)strlen(says));
	close(fd);
}

static void *serve_calls(void *arg)
{
	int fd;

	while ((fd = accept(migrd.listener, NULL, NULL)) >= 0)
		serve_call(fd);
	return arg;
}

static void migrd_start(void)
{
	migrd.listener = socket(AF_UNIX, SOCK_STREAM, 0);
	MUST(migrd.listener >= 0 &&
	     !bind(migrd.listener, (struct sockaddr *)&at, sizeof(at)) &&
	     !listen(migrd.listener, 4));
	MUST(!pthread_create(&migrd.thread, NULL, serve_calls, NULL));
}

static void migrd_end(void)
{
	shutdown(migrd.listener, SHUT_RDWR);
	MUST(!pthread_join(migrd.thread, NULL));
	close(migrd.listener);
	MUST(!unlink(at.sun_path));
}

/* --- telling --- */

/* what is heard of this one, with the turn of its keys */
static void check_heard(const struct ibv_qp *qp, unsigned int turn)
{
	const struct ibv_mr *real = fake_newest(FAKE_MR);
	char gid[INET6_ADDRSTRLEN], text[512];
	union ibv_gid own;

	MUST(!ibv_query_gid(ctx, 1, SGID_INDEX, &own));
	inet_ntop(AF_INET6, own.raw, gid, sizeof(gid));
	snprintf(text, sizeof(text),
		 "meet %u %s %u " PEER_GID " %u\nkey %u %u\nend\n", qp->qp_num,
		 gid, PEER_QPN, turn, w.mr->rkey, real->rkey);
	CHECK(real->rkey != w.mr->rkey);
	CHECK(!strcmp(migrd.heard, text), "%s%s", migrd.heard, text);
}

/*
 * The daemon was called since the last time: once, or more often, if the layer has closed its
 * gate meanwhile for what was left of a suspension.
 */
static unsigned int called(void)
{
	return atomic_exchange(&migrd.calls, 0);
}

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
	CHECK(called() && migrd.state == IBV_QPS_INIT, "%d", migrd.state);
	CHECK(fake_state(real) == IBV_QPS_RTS);
	check_heard(qp, 1);
	reset(qp);
	to_rts(qp);
	CHECK(called());
	CHECK(!ibv_destroy_qp(qp));
	world_replace();
	qp = make(&real);
	to_rts(qp);
	CHECK(called());
	check_heard(qp, 2);
	CHECK(!ibv_destroy_qp(qp));
}

static void check_connects(bool calls)
{
	struct ibv_qp *qp, *real;

	qp = make(&real);
	to_rtr(qp);
	CHECK(!called() == !calls);
	CHECK(fake_state(real) == IBV_QPS_RTR);
	CHECK(!ibv_destroy_qp(qp));
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
	check_connects(true);
	migrd.says = "what?\n";
	check_connects(true);
}

static struct ibv_qp *waits;
static atomic_bool connected;

static void *connects(void *arg)
{
	to_rtr(waits);
	connected = true;
	return arg;
}

/* Is there a connection to the daemon? */
static bool has_stream(void)
{
	struct sockaddr_un to;
	socklen_t n;

	for (int fd = 3; fd < 1000; fd++) {
		n = sizeof(to);
		if (!getpeername(fd, (struct sockaddr *)&to, &n) &&
		    to.sun_family == AF_UNIX &&
		    !strcmp(to.sun_path, at.sun_path))
			return true;
	}
	return false;
}

static struct ibv_qp *real_waits;

static void begin_to_connect(void)
{
	migrd.says = "";
	migrd.calls = migrd.ended = 0;
	connected = false;
	waits = make(&real_waits);
	MUST(!pthread_create(&other.thread, NULL, connects, NULL));
	WAIT(migrd.calls);
}

static void end_to_connect(void)
{
	migrd.says = "met\n";
	replace_all();
	connect_all();
	resume();
	MUST(!pthread_join(other.thread, NULL));
	CHECK(waits->state == IBV_QPS_RTR);
	CHECK(!ibv_destroy_qp(waits));
	world_look();
}

/* Nothing is open when the process is dumped, nor does anybody wait for a daemon. */
static void test_held(void)
{
	unsigned int n;

	puts("a process that is held");
	begin_to_connect();
	suspend(); /* which does not wait for that */
	CHECK(!migrd.ended && has_stream());
	resume();
	hold(100);
	CHECK(!has_stream());
	WAIT(migrd.ended == migrd.calls);
	n = migrd.calls;
	usleep(50000);
	CHECK(migrd.calls == n && !connected);
	end_to_connect();
	CHECK(called() > n);
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
		_exit(has_stream());
	MUST(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(!status && has_stream());
	hold(100);
	end_to_connect();
	called();
}

int main(void)
{
	rig_open();
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/migrd", dir);
	MUST(!setenv("MIGRD_SOCKET", at.sun_path, 1));
	migrd_start();
	world_make();
	test_told();
	test_again();
	test_held();
	test_child();
	migrd_end();
	puts("there is no daemon");
	check_connects(false);
	world_destroy();
	return rig_close();
}
