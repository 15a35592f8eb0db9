// SPDX-License-Identifier: GPL-2.0
#include "rpc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
	struct cmsghdr align;
	char room[CMSG_SPACE(RPC_FILES * sizeof(int))];
};

int rpc_peek(int fd)
{
	static unsigned char data[RPC_BYTES];
	CriuReq *request;
	int type = -1;
	ssize_t n;

	do
		n = recv(fd, data, sizeof(data), MSG_PEEK | MSG_TRUNC);
	while (n < 0 && errno == EINTR);
	if (n <= 0 || n > RPC_BYTES)
		return -1;
	request = criu_req__unpack(NULL, (size_t)n, data);
	if (request)
		type = (int)request->type;
	criu_req__free_unpacked(request, NULL);
	return type;
}

static void take_files(struct rpc_message *m, struct msghdr *h)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		m->n_files = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(m->files, CMSG_DATA(c),
		       (size_t)m->n_files * sizeof(int));
	}
}

int rpc_receive(int fd, struct rpc_message *m)
{
	union control control;
	struct iovec iov = { m->data, sizeof(m->data) };
	struct msghdr h = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	ssize_t n;

	m->n_files = 0;
	do
		n = recvmsg(fd, &h, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return (int)n;
	m->bytes = (size_t)n;
	take_files(m, &h);
	if (!(h.msg_flags & (MSG_TRUNC | MSG_CTRUNC)))
		return 1;
	rpc_close_files(m);
	errno = EBADMSG;
	return -1;
}

bool rpc_send(int fd, const struct rpc_message *m)
{
	size_t files = (size_t)m->n_files * sizeof(int);
	union control control = { .align = { .cmsg_level = SOL_SOCKET,
					     .cmsg_type = SCM_RIGHTS,
					     .cmsg_len = CMSG_LEN(files) } };
	struct iovec iov = { (void *)m->data, m->bytes };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (m->n_files) {
		memcpy(CMSG_DATA(&control.align), m->files, files);
		h.msg_control = &control;
		h.msg_controllen = CMSG_SPACE(files);
	}
	do
		n = sendmsg(fd, &h, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n >= 0;
}

void rpc_close_files(struct rpc_message *m)
{
	while (m->n_files)
		close(m->files[--m->n_files]);
}

static bool take_folder(pid_t of, int32_t *number)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)of, (int)*number);
	*number = open(path, O_RDONLY | O_DIRECTORY);
	return *number >= 0;
}

static bool take_folders(pid_t of, CriuOpts *o)
{
	return (o->images_dir_fd < 0 || take_folder(of, &o->images_dir_fd)) &&
	       (!o->has_work_dir_fd || take_folder(of, &o->work_dir_fd));
}

static bool replace(struct rpc_message *m, const CriuReq *q)
{
	if (criu_req__get_packed_size(q) > sizeof(m->data)) {
		errno = EMSGSIZE;
		return false;
	}
	m->bytes = criu_req__pack(q, m->data);
	return true;
}

bool rpc_take_folders(int asker, struct rpc_message *request)
{
	CriuReq *q = criu_req__unpack(NULL, request->bytes, request->data);
	struct ucred of;
	socklen_t size = sizeof(of);
	bool ok = false;

	errno = EBADMSG;
	if (q && q->opts)
		ok = !getsockopt(asker, SOL_SOCKET, SO_PEERCRED, &of, &size) &&
		     take_folders(of.pid, q->opts) && replace(request, q);
	criu_req__free_unpacked(q, NULL);
	return ok;
}

bool rpc_acknowledge(int fd, bool success)
{
	CriuReq answer = CRIU_REQ__INIT;
	unsigned char data[32];

	answer.type = CRIU_REQ_TYPE__NOTIFY;
	answer.has_notify_success = true;
	answer.notify_success = success;
	return send(fd, data, criu_req__pack(&answer, data), MSG_NOSIGNAL) > 0;
}

CriuResp *rpc_response(const struct rpc_message *m)
{
	return criu_resp__unpack(NULL, m->bytes, m->data);
}
