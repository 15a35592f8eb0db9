// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "control.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "ahead.h"
#include "arena.h"
#include "clock.h"
#include "device.h"
#include "elsewhere.h"
#include "meet.h"
#include "section.h"
#include "sign.h"
#include "suspend.h"
#include "swap.h"
#include "words.h"

enum {
	CLIENT_MS =
		1000, /* after which it is looked whether it is still that file */
};

static int sock = -1;
static struct sockaddr_un own_name; /* of it */
static atomic_int client = -1;
static atomic_int served = -1; /* the same, until it is closed */
static struct stat connection; /* of the client */
static atomic_bool is_on; /* written before there is any object, and in a child */

/* Whoever may write into the process' memory anyhow: its user, and root. */
static bool may_ask(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) &&
	       (!peer.uid || peer.uid == geteuid());
}

/*
 * A lease is of so many seconds in which the process runs, whatever its clients do
 * meanwhile. Nor does what is left of a resumption wait for them. Return: how long the next
 * one takes at most, in ms for poll(2).
 */
static int tick(void)
{
	const uint64_t second = 1000000000;
	static _Thread_local uint64_t
		next; /* tests have others than the listener */
	uint64_t now = clock_ns();

	if (!layer_is_held()) {
		next = 0;
		return suspend_go_on() ? -1 : 1;
	}
	if (next && now >= next) {
		layer_tick();
		next = 0;
	}
	/* the clock of another host is another one */
	if (!next || next > now + second)
		next = now + second;
	return (int)((next - now) / 1000000) + 1;
}

/* Or somebody has gone away; but it was not CRIU, which ends a poll. */
static bool is_ready(int fd, short events, int most_ms)
{
	struct pollfd p = { .fd = fd, .events = events };
	int ms = tick();

	if (most_ms >= 0 && (ms < 0 || ms > most_ms))
		ms = most_ms;
	return poll(&p, 1, ms) > 0;
}

void control_wait_for_reader(int fd)
{
	is_ready(fd, POLLOUT, CLIENT_MS);
}

/* what a client has said: a line, or a part of it */
struct said {
	char text[MOST_OF_A_LINE + 1];
	size_t bytes;
	bool is_rest; /* of a line that is too long, which is none */
};

/*
 * The program may have closed it, as all that it does not know, and have another file of that
 * number, which is none of ours.
 */
static bool is_connection(int fd)
{
	struct stat now;

	return !fstat(fd, &now) && now.st_dev == connection.st_dev &&
	       now.st_ino == connection.st_ino;
}

bool control_may_answer(int fd)
{
	return fd != client || is_connection(fd);
}

/* Return: is it still there? */
static bool hear(int fd, struct said *s)
{
	ssize_t n;

	if (s->bytes == MOST_OF_A_LINE) {
		s->bytes = 0;
		s->is_rest = true;
	}
	n = read(fd, s->text + s->bytes, MOST_OF_A_LINE - s->bytes);
	if (n > 0)
		s->bytes += (size_t)n;
	return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

/* Return: does the connection go on? That of who is held now cannot be dumped. */
static bool obey_lines(int fd, struct said *s)
{
	bool was_held, hangs_up = false;
	char *end, next;

	while (!hangs_up && is_connection(fd) &&
	       (end = memchr(s->text, '\n', s->bytes))) {
		if (!is_ready(fd, POLLOUT, CLIENT_MS))
			continue; /* it does not read answers */
		was_held = layer_is_held();
		next = end[1];
		end[1] = 0;
		words_obey(fd, s->is_rest ? end : s->text);
		end[1] = next;
		s->is_rest = false;
		s->bytes -= (size_t)(end + 1 - s->text);
		memmove(s->text, end + 1, s->bytes);
		hangs_up = !was_held && layer_is_held();
	}
	return !hangs_up;
}

/* One at a time. Who goes away leaves nothing suspended. */
static void serve(int fd)
{
	struct said s = {};
	bool goes_on = !fstat(fd, &connection);

	served = fd;
	if (!goes_on || !may_ask(fd)) {
		close(fd);
		served = -1;
		return;
	}
	client = fd;
	while (goes_on && is_connection(fd))
		if (is_ready(fd, POLLIN, CLIENT_MS))
			goes_on = is_connection(fd) && hear(fd, &s) &&
				  obey_lines(fd, &s);
	client = -1;
	if (!layer_is_held())
		layer_give_up();
	ahead_end();
	elsewhere_forget();
	if (is_connection(fd))
		close(fd);
	served = -1;
}

bool control_is_left(void)
{
	struct pollfd p = { .fd = client, .events = POLLRDHUP };

	return p.fd >= 0 && poll(&p, 1, 0) > 0;
}

/*
 * The program may have closed it, and have another file of that number. A name tells them
 * apart, also when the process was restored: then the socket is another inode.
 */
static bool is_our_socket(void)
{
	struct sockaddr_un name = { 0 };
	socklen_t length = sizeof(name);

	return !getsockname(sock, (struct sockaddr *)&name, &length) &&
	       name.sun_family == AF_UNIX &&
	       !strncmp(name.sun_path, own_name.sun_path,
			sizeof(name.sun_path));
}

static void *listener(void *arg)
{
	const struct timespec pause = { .tv_nsec = 100000000 };
	int fd;

	(void)arg;
	for (;;) {
		if (!is_ready(sock, POLLIN, -1))
			continue;
		if (!is_our_socket())
			break;
		fd = accept4(sock, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			serve(fd);
		else if (errno == EBADF || errno == ENOTSOCK || errno == EINVAL)
			break;		  /* closed since, or shut down */
		else if (errno != EAGAIN) /* who has called is gone */
			nanosleep(&pause, NULL);
	}
	while (layer_is_held() || !suspend_go_on())
		is_ready(-1, 0, -1);
	return NULL;
}

/* Is there somebody of the same number, as in another PID namespace? */
static bool is_served(const struct sockaddr_un *addr)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool served;

	if (fd < 0)
		return true;
	served = !connect(fd, (const struct sockaddr *)addr, sizeof(*addr));
	close(fd);
	return served;
}

static int listen_at(const char *dir)
{
	struct sockaddr_un *addr = &own_name;
	int fd, n;

	addr->sun_family = AF_UNIX;
	n = snprintf(addr->sun_path, sizeof(addr->sun_path), "%s/%d.sock", dir,
		     getpid());
	if (n < 0 || (size_t)n >= sizeof(addr->sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (is_served(addr)) {
		errno = EADDRINUSE;
		return -1;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	unlink(addr->sun_path); /* of a process that is no more */
	if (bind(fd, (struct sockaddr *)addr, sizeof(*addr)) || listen(fd, 4)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* the application's signals are none of the thread's business */
static int start_thread(void)
{
	sigset_t all, before;
	pthread_t thread;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, NULL, listener, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!err)
		pthread_detach(thread);
	return err;
}

/* What it has open of the layer would outlive the parent, and others wait for its end. */
static void in_child(void)
{
	if (!is_on)
		return;
	is_on = false;
	if (is_our_socket())
		close(sock);
	if (served >= 0 && is_connection(served))
		close(served);
	client = served = -1;
	meet_in_child();
	sign_hide();
	device_in_child();
	suspend_in_child();
}

static void start(void)
{
	const char *dir = secure_getenv("MIGRRDMA_DIR");
	int err;

	if (!dir)
		return;
	err = sections_init();
	if (!err)
		err = pthread_atfork(NULL, NULL, in_child);
	if (!err) {
		sock = listen_at(dir);
		err = sock < 0 ? errno : start_thread();
	}
	is_on = !err;
	if (is_on)
		arena_reserve();
	if (err)
		fprintf(stderr, "libmigrrdma: %s: %s\n", dir, strerror(err));
}

bool control_is_on(void)
{
	return is_on;
}

void control_start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, start);
}
