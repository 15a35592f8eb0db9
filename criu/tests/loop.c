// SPDX-License-Identifier: GPL-2.0
#include <fcntl.h>
#include <rdma/ib_user_verbs.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../../tests/connect.h"
#include "loop.h"

static sigset_t usr1(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	return set;
}

struct ibv_context *loop_open(const char *device)
{
	struct ibv_device **list = ibv_get_device_list(NULL), **d = list;
	const sigset_t set = usr1();
	struct ibv_context *verbs;

	setvbuf(stdout, NULL, _IOLBF, 0);
	NEED(!sigprocmask(SIG_BLOCK, &set, NULL));
	NEED(list);
	while (*d && device && strcmp(ibv_get_device_name(*d), device))
		d++;
	NEED(*d && (verbs = ibv_open_device(*d)));
	ibv_free_device_list(list);
	return verbs;
}

void loop_connect(struct ibv_qp *qp, uint32_t peer, int gid_index, int access)
{
	struct ibv_qp_attr attr;
	union ibv_gid gid;

	NEED(!ibv_query_gid(qp->context, 1, gid_index, &gid));
	attr = rc_attr(&gid, gid_index, peer);
	attr.qp_access_flags = (unsigned int)access;
	attr.max_rd_atomic = attr.max_dest_rd_atomic = 1;
	NEED(!rc_to_rtr(qp, &attr) && !rc_to_rts(qp, &attr));
}

int loop_rereg(struct ibv_mr *mr, int flags, struct ibv_pd *pd, int access)
{
	struct ib_uverbs_rereg_mr_resp resp;
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_rereg_mr in;
	} cmd = {
		.hdr = { .command = IB_USER_VERBS_CMD_REREG_MR,
			 .in_words = sizeof(cmd) / 4,
			 .out_words = sizeof(resp) / 4 },
		.in = { .response = (uintptr_t)&resp,
			.mr_handle = mr->handle,
			.flags = (uint32_t)flags,
			.start = (uintptr_t)mr->addr,
			.length = mr->length,
			.hca_va = (uintptr_t)mr->addr,
			.pd_handle = pd->handle,
			.access_flags = (uint32_t)access },
	};

	if (write(mr->context->cmd_fd, &cmd, sizeof(cmd)) < 0)
		return errno;
	if (flags & IBV_REREG_MR_CHANGE_PD)
		mr->pd = pd;
	return 0;
}

void loop_wait(void)
{
	const sigset_t set = usr1();
	int sig;

	puts("ready");
	NEED(!sigwait(&set, &sig));
}

struct watched loop_watch(int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };
	struct watched w = { .fd = fd };

	NEED(!fcntl(fd, F_SETFL, O_NONBLOCK));
	NEED((w.dup = dup(fd)) >= 0);
	NEED((w.epoll = epoll_create1(EPOLL_CLOEXEC)) >= 0);
	NEED(!epoll_ctl(w.epoll, EPOLL_CTL_ADD, fd, &event));
	return w;
}

int loop_is_ready(const struct watched *w, int ms)
{
	struct epoll_event seen;
	int n = epoll_wait(w->epoll, &seen, 1, ms);

	NEED(!n || (n == 1 && seen.data.fd == w->fd));
	return n;
}

void loop_need_watched(const struct watched *w)
{
	NEED(fcntl(w->fd, F_GETFL) & O_NONBLOCK);
	NEED(fcntl(w->dup, F_GETFL) & O_NONBLOCK);
	NEED(!fcntl(w->dup, F_SETFL, 0));
	NEED(!(fcntl(w->fd, F_GETFL) & O_NONBLOCK));
	NEED(!fcntl(w->fd, F_SETFL, O_NONBLOCK));
}
