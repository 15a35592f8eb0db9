// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "wait.h"

#include <errno.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * No system call that waits at other descriptors is restarted by SA_RESTART, and who
 * got EINTR cannot tell what the handler's flags were. A read(2) is restarted. So the
 * kernel is asked to poll, and to say the end of that at an eventfd, which is read.
 * Where it does not do that, poll(2) has to do.
 */

enum {
	UNKNOWN,
	WORKS,
	FAILS
};

/* of a thread */
static _Thread_local struct waiter {
	int state;
	int ready; /* the eventfd */
	aio_context_t ctx;
	struct iocb iocb;
	bool asked; /* its end has not been read */
} own;

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;

static void close_waiter(void *waiter)
{
	struct waiter *w = waiter;

	syscall(SYS_io_destroy, w->ctx);
	close(w->ready);
	*w = (struct waiter){};
}

static void make_key(void)
{
	has_key = !pthread_key_create(&key, close_waiter);
}

static bool open_waiter(struct waiter *w)
{
	pthread_once(&once, make_key);
	if (!has_key)
		return false;
	w->ctx = 0;
	if (syscall(SYS_io_setup, 1, &w->ctx))
		return false;
	w->ready = eventfd(0, EFD_CLOEXEC);
	if (w->ready >= 0 && !pthread_setspecific(key, w))
		return true;
	if (w->ready >= 0)
		close(w->ready);
	syscall(SYS_io_destroy, w->ctx);
	return false;
}

static bool ask(struct waiter *w, int fd)
{
	struct iocb *iocb = &w->iocb;

	*iocb = (struct iocb){
		.aio_lio_opcode = IOCB_CMD_POLL,
		.aio_fildes = (uint32_t)fd,
		.aio_buf = POLLIN,
		.aio_flags = IOCB_FLAG_RESFD,
		.aio_resfd = (uint32_t)w->ready,
	};
	w->asked = syscall(SYS_io_submit, w->ctx, 1, &iocb) == 1;
	return w->asked;
}

/* the end of it, which is in the ring before the eventfd says so */
static int read_end(struct waiter *w)
{
	struct io_event event;
	uint64_t n;

	if (read(w->ready, &n, sizeof(n)) < 0)
		return errno;
	while (syscall(SYS_io_getevents, w->ctx, 1, 1, &event, NULL) < 0 &&
	       errno == EINTR)
		;
	w->asked = false;
	return 0;
}

/* It is waited for no more, as by a thread that was cancelled. */
static void take_back(struct waiter *w)
{
	struct io_event event;

	syscall(SYS_io_cancel, w->ctx, &w->iocb, &event);
	while (read_end(w) == EINTR)
		;
}

int wait_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct waiter *w = &own;
	int err;

	if (w->state == UNKNOWN)
		w->state = open_waiter(w) ? WORKS : FAILS;
	if (w->asked)
		take_back(w);
	if (w->state == FAILS || !ask(w, fd))
		return poll(&p, 1, -1) < 0 ? errno : 0;
	err = read_end(w);
	if (err)
		take_back(w);
	return err;
}
