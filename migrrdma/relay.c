// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "relay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cancel.h"
#include "wait.h"

static int add(struct relay *r, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(r->fd, EPOLL_CTL_ADD, fd, &event) ? errno : 0;
}

int relay_add(struct relay *r, int real)
{
	int flags = fcntl(real, F_GETFL);

	if (flags < 0 || fcntl(real, F_SETFL, flags | O_NONBLOCK))
		return errno;
	return add(r, real);
}

void relay_remove(struct relay *r, int real)
{
	epoll_ctl(r->fd, EPOLL_CTL_DEL, real, NULL);
}

void relay_mute(struct relay *r, int real, bool on)
{
	struct epoll_event event = { .events = on ? 0 : EPOLLIN };

	epoll_ctl(r->fd, EPOLL_CTL_MOD, real, &event);
}

int relay_open(struct relay *r, int real)
{
	int err = 0;

	r->fd = epoll_create1(EPOLL_CLOEXEC);
	if (r->fd < 0)
		return errno;
	r->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (r->bell < 0)
		err = errno;
	else
		err = add(r, r->bell);
	if (!err)
		err = relay_add(r, real);
	if (err)
		relay_close(r);
	return err;
}

void relay_close(struct relay *r)
{
	if (r->bell >= 0)
		close(r->bell);
	close(r->fd);
}

void relay_ring(struct relay *r, bool on)
{
	int cancel = cancel_off();
	ssize_t bytes;
	uint64_t n = 1;

	/* neither fails: it is read when it is rung only, and rung at most so often */
	bytes = on ? write(r->bell, &n, sizeof(n))
		   : read(r->bell, &n, sizeof(n));
	(void)bytes;
	cancel_back(cancel);
}

bool relay_waits(const struct relay *r)
{
	return !(fcntl(r->fd, F_GETFL) & O_NONBLOCK);
}

int relay_wait(const struct relay *r)
{
	int flags = fcntl(r->fd, F_GETFL);

	if (flags < 0)
		return errno;
	if (flags & O_NONBLOCK)
		return EAGAIN;
	return wait_readable(r->fd);
}
