// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Connections that are made after a move: what is told at the daemon's socket
 */
#include <arpa/inet.h>
#include <poll.h>
#include <sys/wait.h>

#include "clock.h"
#include "meet_rig.h"

#define SECOND 1000000000UL /* ns */

/* --- the thread that tells it --- */

static struct {
	atomic_bool stays; /* in its pauses */
	atomic_uint pauses;
	atomic_uint waits;    /* at the gate */
	_Atomic time_t clock; /* is ahead by as much: of another host */
} teller;
static _Thread_local bool is_teller;

int __real_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_nanosleep(const struct timespec *t, struct timespec *left);
int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock);

int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
	int err = __real_clock_gettime(id, t);

	t->tv_sec += teller.clock;
	return err;
}

/* Those that are longer are of who is told to wait, and calls again. */
int __wrap_nanosleep(const struct timespec *t, struct timespec *left)
{
	(void)left;
	teller.pauses += t->tv_nsec >= 100000000;
	do {
		usleep(100);
	} while (teller.stays && t->tv_nsec >= 100000000);
	return 0;
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
	teller.waits += is_teller;
	return __real_pthread_cond_wait(cond, lock);
}

/* --- the daemon --- */

static struct sockaddr_un at = { .sun_family = AF_UNIX };
static struct migrd {
	pthread_t thread;
	int listener;
	atomic_uint calls, ended; /* those that the process has ended itself */
	const char *_Atomic says; /* "": nothing yet; NULL: it hangs up */
	char heard[4096];	  /* in the last call */
	enum ibv_qp_state state;  /* of the newest QP, when it was heard */
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

static bool is_ended(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) > 0;
}

static void serve_call(int fd)
{
	const char *says;

	hear_call(fd);
	migrd.calls++;
	while ((says = migrd.says) && !*says && !is_ended(fd))
		usleep(100);
	if (says && !*says)
		migrd.ended++;
	else if (says)
		MUST(send(fd, says, strlen(says), MSG_NOSIGNAL) > 0);
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

/* how often the daemon was called since the last time */
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

static void check_connects(unsigned int calls)
{
	struct ibv_qp *qp, *real;

	qp = make(&real);
	to_rtr(qp);
	CHECK(called() == calls);
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
	check_connects(1);
	migrd.says = "what?\n";
	check_connects(1);
}

/* @says: when it has been called within a batch, which others wait for */
static void check_in_batch(const char *says)
{
	struct ibv_qp *of_batch, *qp, *real;
	uint64_t begun = clock_ns();

	of_batch = new_qp_ex(IBV_QPT_RC, w.cq, EX_OPS, &real);
	qp = make(&real);
	migrd.says = says;
	migrd.ended = 0;
	ibv_wr_start(ibv_qp_to_qp_ex(of_batch));
	to_rtr(qp);
	ibv_wr_abort(ibv_qp_to_qp_ex(of_batch));
	CHECK(called() == 1 && clock_ns() < begun + 10 * SECOND);
	WAIT(migrd.ended == !*says);
	CHECK(fake_state(real) == IBV_QPS_RTR);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_qp(of_batch));
}

static void test_in_batch(void)
{
	puts("in a batch");
	check_in_batch("met\n");
	check_in_batch("busy\n");
	check_in_batch("");
}

static struct ibv_qp *waits;
static atomic_bool connected;

static void *connects(void *arg)
{
	is_teller = true;
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

/* @calls: since the last time; what is heard in these is what is true now */
static void end_to_connect(unsigned int calls)
{
	MUST(!pthread_join(other.thread, NULL));
	CHECK(waits->state == IBV_QPS_RTR);
	CHECK(called() == calls);
	if (calls)
		check_heard(waits, names_turn());
	CHECK(!ibv_destroy_qp(waits));
	world_look();
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
	CHECK(!migrd.ended && has_stream());
	resume();
	n = teller.waits;
	hold(100);
	CHECK(!has_stream());
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
		_exit(has_stream());
	MUST(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(!status && has_stream());
	migrd.says = "met\n";
	end_to_connect(1);
}

int main(void)
{
	rig_open();
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/migrd", dir);
	MUST(!setenv("MIGRD_SOCKET", at.sun_path, 1));
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
