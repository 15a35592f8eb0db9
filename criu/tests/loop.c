// SPDX-License-Identifier: GPL-2.0
#include <signal.h>

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
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.qp_access_flags = access,
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .sgid_index = (uint8_t)gid_index,
				      .hop_limit = 64 } },
	};

	NEED(!ibv_query_gid(qp->context, 1, gid_index, &attr.ah_attr.grh.dgid));
	NEED(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS));
	attr.qp_state = IBV_QPS_RTR;
	NEED(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER));
	attr.qp_state = IBV_QPS_RTS;
	NEED(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				    IBV_QP_MAX_QP_RD_ATOMIC));
}

void loop_wait(void)
{
	int sig;

	puts("ready");
	NEED(!sigwait(&usr1, &sig));
}
