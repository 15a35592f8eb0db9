// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "control.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "section.h"
#include "suspend.h"
#include "swap.h"
#include "words.h"

static int sock = -1;
static bool is_on; /* written before there is any object, and in a child */

/* Whoever may write into the process' memory anyhow: its user, and root. */
static bool may_ask(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) &&
	       (!peer.uid || peer.uid == geteuid());
}

/*
 * One at a time. Who goes away leaves nothing suspended. Who is held has no connection
 * any more, for that cannot be dumped.
 */
static void serve(int fd)
{
	FILE *peer = may_ask(fd) ? fdopen(fd, "r") : NULL;
	bool begins = true, was_held = layer_is_held(), hangs_up = false;
	char line[MOST_OF_A_LINE], *ends;

	if (!peer) {
		close(fd);
		return;
	}
	while (!hangs_up && fgets(line, sizeof(line), peer)) {
		ends = strchr(line, '\n');
		if (ends && begins)
			words_obey(fd, line);
		else if (ends)
			words_obey(fd, ends); /* which is none */
		begins = ends; /* the rest of a line that is too long is none */
		hangs_up = !was_held && layer_is_held();
		was_held = layer_is_held();
	}
	if (!layer_is_held())
		layer_give_up();
	fclose(peer);
}

/* Somebody comes, or it has been held for long enough. */
static bool is_called(void)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	int n = poll(&p, 1, layer_is_held() ? 1000 : -1);

	if (!n)
		layer_tick();
	return n > 0; /* not by CRIU, which ends a poll */
}

static void *listener(void *arg)
{
	const struct timespec pause = { .tv_nsec = 100000000 };
	int fd;

	(void)arg;
	for (;;) {
		if (!is_called())
			continue;
		fd = accept4(sock, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			serve(fd);
		else if (errno == EBADF || errno == ENOTSOCK || errno == EINVAL)
			return NULL;	  /* the application has closed it */
		else if (errno != EAGAIN) /* who has called is gone */
			nanosleep(&pause, NULL);
	}
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
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd, n;

	n = snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%d.sock", dir,
		     getpid());
	if (n < 0 || (size_t)n >= sizeof(addr.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (is_served(&addr)) {
		errno = EADDRINUSE;
		return -1;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	unlink(addr.sun_path); /* of a process that is no more */
	if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) || listen(fd, 4)) {
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

static void in_child(void)
{
	if (!is_on)
		return;
	is_on = false;
	close(sock);
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
