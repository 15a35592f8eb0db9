// SPDX-License-Identifier: GPL-2.0
#include <signal.h>

#include "../../tests/connect.h"
#include "loop.h"

static sigset_t usr1;

struct ibv_context *loop_open(const char *device)
{
	struct ibv_device **list = ibv_get_device_list(NULL), **d = list;
	struct ibv_context *verbs;

	setvbuf(stdout, NULL, _IOLBF, 0);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	NEED(!sigprocmask(SIG_BLOCK, &usr1, NULL));
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

void loop_wait(void)
{
	int sig;

	puts("ready");
	NEED(!sigwait(&usr1, &sig));
}
