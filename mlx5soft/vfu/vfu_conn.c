// SPDX-License-Identifier: GPL-2.0
/* The client's connection: messages in, replies out, never waiting */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vfu_priv.h"

#define BUDGET 64 /* steps of one vfu_process() */

/* What a step returns; negative: the client has to go */
enum {
	WAIT,
	MORE,
	DONE
};

/* ---- connection ---- */

/* While there is a client, others wait in the backlog. */
static void listen_for(struct vfu *vfu, uint32_t events)
{
	struct epoll_event ev = { .events = events };

	if (vfu->lfd >= 0)
		epoll_ctl(vfu->epfd, EPOLL_CTL_MOD, vfu->lfd, &ev);
}

int vfu_attach(struct vfu *vfu, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int err = EBUSY;

	if (vfu->fd < 0) {
		if (!epoll_ctl(vfu->epfd, EPOLL_CTL_ADD, fd, &ev)) {
			vfu->fd = fd;
			vfu->events = EPOLLIN;
			listen_for(vfu, 0);
			vfu_log(vfu, "client connected");
			return 0;
		}
		err = errno;
	}
	close(fd);
	return -err;
}

static void close_fds(struct vfu *vfu)
{
	for (unsigned int i = 0; i < vfu->nfds; i++)
		if (vfu->fds[i] >= 0)
			close(vfu->fds[i]);
	vfu->nfds = 0;
	vfu->fds_lost = false;
}

void vfu_release_client(struct vfu *vfu)
{
	if (vfu->fd < 0)
		return;
	/* closing alone is not enough if another process has a duplicate */
	epoll_ctl(vfu->epfd, EPOLL_CTL_DEL, vfu->fd, NULL);
	close(vfu->fd);
	vfu->fd = -1;
	close_fds(vfu);
	vfu->ready = vfu->drop = false;
	vfu->got = vfu->skip = vfu->out = vfu->sent = 0;
	vfu_unmap_all(vfu);
	vfu_irq_close(vfu, 0, vfu->cfg.vectors);
	listen_for(vfu, EPOLLIN);
}

void vfu_disconnect(struct vfu *vfu)
{
	if (vfu->fd < 0)
		return;
	vfu_release_client(vfu);
	vfu_do_reset(vfu, VFU_RESET_DISCONNECT);
}

bool vfu_connected(const struct vfu *vfu)
{
	return vfu->fd >= 0;
}

int vfu_fd(const struct vfu *vfu)
{
	return vfu->epfd;
}

/* ---- in ---- */

static void take_fds(struct vfu *vfu, struct msghdr *m)
{
	size_t n;
	int fd;

	if (m->msg_flags & MSG_CTRUNC)
		vfu->fds_lost = true;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(fd);
		for (size_t i = 0; i < n; i++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (vfu->nfds < VFU_MAX_FDS) {
				vfu->fds[vfu->nfds++] = fd;
			} else {
				close(fd);
				vfu->fds_lost = true;
			}
		}
	}
}

/* Bytes received, 0 if there is nothing now, negative if the client is gone */
static ssize_t receive(struct vfu *vfu, void *buf, size_t len)
{
	struct iovec iov = { buf, len };
	union {
		char space[CMSG_SPACE(VFU_MAX_FDS * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n;

	do {
		n = recvmsg(vfu->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? WAIT : -errno;
	take_fds(vfu, &m);
	return n ? n : -ECONNRESET;
}

/* ---- out ---- */

static int flush(struct vfu *vfu)
{
	ssize_t n;

	while (vfu->sent < vfu->out) {
		n = send(vfu->fd, (char *)&vfu->msg + vfu->sent,
			 vfu->out - vfu->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0) {
			if (errno == EINTR)
				continue;
			return errno == EAGAIN ? WAIT : -errno;
		}
		vfu->sent += n;
	}
	vfu->sent = vfu->out = 0;
	return MORE;
}

/* The message is done: `ret` as from vfu_do_message() */
static int finish(struct vfu *vfu, ssize_t ret)
{
	struct vfu_hdr *hdr = &vfu->msg.hdr;
	uint32_t flags = hdr->flags;

	close_fds(vfu);
	vfu->got = 0;
	if (vfu->drop)
		return -ECONNABORTED;
	if (flags & (VFU_HDR_NO_REPLY | VFU_HDR_TYPE))
		return DONE;
	hdr->flags = VFU_HDR_REPLY | (ret < 0 ? VFU_HDR_ERROR : 0);
	hdr->error = ret < 0 ? -ret : 0;
	hdr->size = sizeof(*hdr) + (ret > 0 ? ret : 0);
	vfu->out = hdr->size;
	return flush(vfu) < 0 ? -EPIPE : DONE;
}

/* ---- steps ---- */

/* A complete header: what follows is skipped, or fits */
static int check_header(struct vfu *vfu)
{
	const struct vfu_hdr *hdr = &vfu->msg.hdr;

	if (hdr->size < sizeof(*hdr)) {
		/* where the next one begins is anyone's guess */
		vfu_refuse(vfu, EBADMSG, "message of %u bytes", hdr->size);
		return -EBADMSG;
	}
	if (hdr->size > sizeof(*hdr) + VFU_MAX_BODY) {
		vfu_refuse(vfu, EMSGSIZE, "message of %u bytes", hdr->size);
		vfu->skip = hdr->size - sizeof(*hdr);
	}
	return 0;
}

static int skip(struct vfu *vfu)
{
	size_t len = vfu->skip;
	ssize_t n;

	if (len > VFU_MAX_BODY)
		len = VFU_MAX_BODY;
	n = receive(vfu, vfu->msg.body, len);
	if (n <= 0)
		return n;
	vfu->skip -= n;
	return vfu->skip ? MORE : finish(vfu, -EMSGSIZE);
}

static int step(struct vfu *vfu)
{
	struct vfu_hdr *hdr = &vfu->msg.hdr;
	size_t want = sizeof(*hdr);
	ssize_t n;
	int ret;

	if (vfu->out)
		return flush(vfu);
	if (vfu->skip)
		return skip(vfu);
	if (vfu->got >= sizeof(*hdr))
		want = hdr->size;
	/* never into the next message: its descriptors come with its bytes */
	n = receive(vfu, (char *)&vfu->msg + vfu->got, want - vfu->got);
	if (n <= 0)
		return n;
	vfu->got += n;
	if (vfu->got == sizeof(*hdr)) {
		ret = check_header(vfu);
		if (ret)
			return ret;
		if (vfu->skip)
			return MORE;
	}
	if (vfu->got < sizeof(*hdr) || vfu->got < hdr->size)
		return MORE;
	return finish(vfu, vfu_do_message(vfu));
}

static void wait_for(struct vfu *vfu, uint32_t events)
{
	struct epoll_event ev = { .events = events };

	if (vfu->events != events &&
	    !epoll_ctl(vfu->epfd, EPOLL_CTL_MOD, vfu->fd, &ev))
		vfu->events = events;
}

/* true: there is a client */
static bool accept_client(struct vfu *vfu)
{
	int fd;

	if (vfu->lfd < 0)
		return false;
	fd = accept4(vfu->lfd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		return !vfu_attach(vfu, fd);
	if (errno != EAGAIN)
		vfu_log(vfu, "accept: %s", strerror(errno));
	return false;
}

int vfu_process(struct vfu *vfu)
{
	int done = 0, ret;

	for (int i = 0; i < BUDGET; i++) {
		if (vfu->fd < 0 && !accept_client(vfu))
			break;
		ret = step(vfu);
		if (ret == WAIT)
			break;
		if (ret < 0) {
			vfu_log(vfu, "client gone%s: %s",
				vfu->got || vfu->skip ? " in mid-message" : "",
				strerrorname_np(-ret));
			vfu_disconnect(vfu);
		}
		done += ret == DONE;
	}
	if (vfu->fd >= 0)
		wait_for(vfu, vfu->out ? EPOLLOUT : EPOLLIN);
	return done;
}
