// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "meet_rig.h"

#include <arpa/inet.h>
#include <poll.h>

#include "clock.h"

/* --- the thread that tells it --- */

struct teller teller;
static _Thread_local bool is_teller;

int __real_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_nanosleep(const struct timespec *t, struct timespec *left);
FILE *__real_open_memstream(char **text, size_t *bytes);
FILE *__wrap_open_memstream(char **text, size_t *bytes);
int __real_poll(struct pollfd *p, nfds_t n, int ms);
int __wrap_poll(struct pollfd *p, nfds_t n, int ms);
int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol);
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
	teller.naps += is_teller && t->tv_nsec < 100000000;
	teller.pauses += t->tv_nsec >= 100000000;
	do {
		usleep(100);
	} while (teller.stays && t->tv_nsec >= 100000000);
	return 0;
}

FILE *__wrap_open_memstream(char **text, size_t *bytes)
{
	return teller.fails ? NULL : __real_open_memstream(text, bytes);
}

/* It looks at the clock often, unless it has been late. */
int __wrap_poll(struct pollfd *p, nfds_t n, int ms)
{
	bool late = is_teller && teller.late;

	teller.polls += is_teller;
	teller.full += is_teller && p->events == POLLOUT;
	while (late && teller.late)
		usleep(100);
	return __real_poll(p, n, is_teller && !late && ms > 10 ? 10 : ms);
}

int __wrap_socket(int domain, int type, int protocol)
{
	int fd = __real_socket(domain, type, protocol);

	if (is_teller && teller.narrow)
		MUST(!setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){ 1 },
				 sizeof(int)));
	return fd;
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
	teller.waits += is_teller;
	return __real_pthread_cond_wait(cond, lock);
}

/* --- the daemon --- */

/* where it is called, and where it was before it was moved there */
static struct sockaddr_un at = { .sun_family = AF_UNIX },
			  new = { .sun_family = AF_UNIX };
struct migrd migrd;

static void hear_call(int fd)
{
	size_t n = 0;
	ssize_t got;

	while (migrd.waits && !teller.full)
		usleep(100);
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
	if (migrd.looks)
		send(fd, "wait\n", 5, MSG_NOSIGNAL);
	migrd.calls++;
	while ((says = migrd.says) && !*says && !is_ended(fd))
		usleep(100);
	if (says && !*says)
		migrd.ended++;
	else if (says) /* in time, or not */
		MUST(send(fd, says, strlen(says), MSG_NOSIGNAL) > 0 ||
		     errno == EPIPE);
	close(fd);
}

static void *serve_calls(void *arg)
{
	int fd;

	while ((fd = accept(migrd.listener, NULL, NULL)) >= 0) {
		migrd.accepted++;
		serve_call(fd);
	}
	return arg;
}

/* There is one at any time, also when it was stopped. */
void migrd_start(void)
{
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/migrd", dir);
	snprintf(new.sun_path, sizeof(new.sun_path), "%s/new", dir);
	MUST(!setenv("MIGRD_SOCKET", at.sun_path, 1));
	migrd.listener = socket(AF_UNIX, SOCK_STREAM, 0);
	MUST(migrd.listener >= 0 &&
	     !bind(migrd.listener, (struct sockaddr *)&new, sizeof(new)) &&
	     !listen(migrd.listener, 4) && !rename(new.sun_path, at.sun_path));
	MUST(!pthread_create(&migrd.thread, NULL, serve_calls, NULL));
}

void migrd_stop(void)
{
	shutdown(migrd.listener, SHUT_RDWR);
	MUST(!pthread_join(migrd.thread, NULL));
	close(migrd.listener);
}

void migrd_end(void)
{
	migrd_stop();
	MUST(!unlink(at.sun_path));
}

void check_heard(const struct ibv_qp *qp, unsigned int turn)
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

unsigned int called(void)
{
	return atomic_exchange(&migrd.calls, 0);
}

void check_connects(unsigned int calls)
{
	struct ibv_qp *qp, *real;

	qp = make(&real);
	to_rtr(qp);
	CHECK(called() == calls);
	CHECK(fake_state(real) == IBV_QPS_RTR);
	CHECK(!ibv_destroy_qp(qp));
}

struct ibv_qp *waits, *real_waits;
atomic_bool connected;

static void *connects(void *arg)
{
	is_teller = true;
	to_rtr(waits);
	connected = true;
	return arg;
}

int stream(void)
{
	struct sockaddr_un to;
	socklen_t n;

	for (int fd = 3; fd < 1000; fd++) {
		n = sizeof(to);
		if (!getpeername(fd, (struct sockaddr *)&to, &n) &&
		    to.sun_family == AF_UNIX &&
		    !strcmp(to.sun_path, new.sun_path))
			return fd;
	}
	return -1;
}

void start_to_connect(void)
{
	migrd.calls = migrd.ended = 0;
	connected = false;
	waits = make(&real_waits);
	teller.pauses = teller.polls = 0;
	MUST(!pthread_create(&other.thread, NULL, connects, NULL));
}

void begin_to_connect(void)
{
	migrd.says = "";
	start_to_connect();
	WAIT(migrd.calls);
}

void end_to_connect(unsigned int calls)
{
	MUST(!pthread_join(other.thread, NULL));
	CHECK(waits->state == IBV_QPS_RTR);
	CHECK(called() == calls);
	if (calls)
		check_heard(waits, names_turn());
	CHECK(!ibv_destroy_qp(waits));
	world_look();
}
