// SPDX-License-Identifier: GPL-2.0
/*
 * contexts: verbs objects to move, without traffic while they move.
 *
 *	contexts [-C] [-c CONTEXTS] [-p PROCESSES] [-e EXTRA]
 *		 [-d DEVICE] [-g GID_INDEX]
 *
 * Each process opens some contexts and makes a PD, an MR, a CQ and two QPs in
 * each. On SIGUSR1 it connects the two QPs to each other and writes from one
 * end of the MR to the other, with what it made before; with -C it connects
 * them at the start, and can then only move to the host where it is. They have
 * had events by then, of which the last one is acknowledged only afterwards.
 * "ready" and "PASS" or "FAIL: reason" go to stdout, one line per process.
 *
 * EXTRA is something that cannot be moved: "channel", "shared" (a context that
 * a child has, too), "orphan" (a child that has only the mapping).
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE 8192
#define MAX 16

struct ctx {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp[2];
	struct ibv_async_event event;
	char *mem;
};

static const char *device;
static int gid_index = 1;
static int connected;

#define NEED(what)                                                        \
	do {                                                              \
		if (!(what)) {                                            \
			printf("FAIL: %s: %s\n", #what, strerror(errno)); \
			exit(1);                                          \
		}                                                         \
	} while (0)

static void make(struct ctx *c)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 16,
			 .max_recv_wr = 16,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};

	NEED(list && list[0]);
	while (device && *list && strcmp(ibv_get_device_name(*list), device))
		list++;
	NEED(*list);
	NEED(c->verbs = ibv_open_device(*list));
	NEED(c->pd = ibv_alloc_pd(c->verbs));
	NEED(!posix_memalign((void **)&c->mem, 4096, SIZE));
	memset(c->mem, 0, SIZE);
	NEED(c->mr = ibv_reg_mr(c->pd, c->mem, SIZE,
				IBV_ACCESS_LOCAL_WRITE |
					IBV_ACCESS_REMOTE_WRITE));
	NEED(c->cq = ibv_create_cq(c->verbs, 32, c, NULL, 0));
	init.send_cq = init.recv_cq = c->cq;
	for (int i = 0; i < 2; i++) {
		NEED(c->qp[i] = ibv_create_qp(c->pd, &init));
		NEED(!ibv_modify_qp(c->qp[i], &attr,
				    IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					    IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	}
}

static void connect_to(struct ctx *c, int i)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = c->qp[!i]->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .sgid_index = gid_index,
				      .hop_limit = 64 } },
	};

	NEED(!ibv_query_gid(c->verbs, 1, gid_index, &attr.ah_attr.grh.dgid));
	NEED(!ibv_modify_qp(c->qp[i], &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER));
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 14;
	attr.retry_cnt = attr.rnr_retry = 7;
	attr.max_rd_atomic = 1;
	NEED(!ibv_modify_qp(c->qp[i], &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				    IBV_QP_MAX_QP_RD_ATOMIC));
}

/* an event, of the first QP */
static void get_event(struct ctx *c)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_SQD,
		.en_sqd_async_notify = 1,
	};

	NEED(!ibv_modify_qp(c->qp[0], &attr,
			    IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	NEED(!ibv_get_async_event(c->verbs, &c->event));
	NEED(c->event.event_type == IBV_EVENT_SQ_DRAINED);
	NEED(c->event.element.qp == c->qp[0]);
	attr.qp_state = IBV_QPS_RTS;
	NEED(!ibv_modify_qp(c->qp[0], &attr, IBV_QP_STATE));
}

static void start_connected(struct ctx *c)
{
	for (int i = 0; i < 2; i++)
		connect_to(c, i);
	get_event(c);
	ibv_ack_async_event(&c->event);
	get_event(c);
}

/* a write in each direction, so that both send queues are used */
static void use(struct ctx *c, int n)
{
	struct ibv_send_wr wr = { .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE },
			   *bad;
	struct ibv_sge sge = { .length = 64, .lkey = c->mr->lkey };
	struct ibv_wc wc = { .wr_id = 0 };
	int got = 0;

	for (int i = 0; i < 2 && !connected; i++)
		connect_to(c, i);
	for (int i = 0; i < 2; i++) {
		memset(c->mem + i * 256, 'a' + n + i, 64);
		wr.wr_id = 100 + i;
		wr.sg_list = &sge;
		sge.addr = (uintptr_t)c->mem + i * 256;
		wr.wr.rdma.remote_addr = (uintptr_t)c->mem + 4096 + i * 256;
		wr.wr.rdma.rkey = c->mr->rkey;
		errno = ibv_post_send(c->qp[i], &wr, &bad);
		NEED(!errno);
		for (int t = 0; t < 20000; t++) {
			got = ibv_poll_cq(c->cq, 1, &wc);
			if (got)
				break;
			usleep(1000);
		}
		NEED(got == 1);
		if (wc.status || wc.wr_id != wr.wr_id ||
		    wc.qp_num != c->qp[i]->qp_num ||
		    memcmp(c->mem + i * 256, c->mem + 4096 + i * 256, 64)) {
			printf("FAIL: context %d, QP %d: %s\n", n, i,
			       ibv_wc_status_str(wc.status));
			exit(1);
		}
	}
}

/* everything goes away in order, as an application would do it */
static void destroy(struct ctx *c)
{
	if (connected)
		ibv_ack_async_event(&c->event);
	for (int i = 0; i < 2; i++)
		NEED(!ibv_destroy_qp(c->qp[i]));
	NEED(!ibv_destroy_cq(c->cq));
	NEED(!ibv_dereg_mr(c->mr));
	NEED(!ibv_dealloc_pd(c->pd));
	NEED(!ibv_close_device(c->verbs));
}

static void wait_forever(void)
{
	for (;;)
		pause();
}

static void make_extra(const char *extra, struct ctx *c)
{
	if (!strcmp(extra, "channel"))
		NEED(ibv_create_comp_channel(c->verbs));
	else if (!strcmp(extra, "shared")) {
		if (!fork())
			wait_forever();
	} else if (!strcmp(extra, "orphan")) {
		if (!fork()) {
			close(c->verbs->cmd_fd);
			close(c->verbs->async_fd);
			wait_forever();
		}
	} else {
		printf("FAIL: unknown extra %s\n", extra);
		exit(2);
	}
}

static int process(int contexts, const char *extra)
{
	struct ctx c[MAX] = { { .mem = NULL } };
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (int i = 0; i < contexts; i++)
		make(c + i);
	for (int i = 0; i < contexts && connected; i++)
		start_connected(c + i);
	if (extra)
		make_extra(extra, c);
	puts("ready");
	sigwait(&set, &sig);
	for (int i = 0; i < contexts; i++)
		use(c + i, i);
	for (int i = 0; i < contexts; i++)
		destroy(c + i);
	puts("PASS");
	return 0;
}

int main(int argc, char **argv)
{
	int contexts = 1, processes = 1, opt, status, ret = 0;
	const char *extra = NULL;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((opt = getopt(argc, argv, "Cc:p:e:d:g:")) != -1) {
		if (opt == 'C')
			connected = 1;
		else if (opt == 'c')
			contexts = atoi(optarg);
		else if (opt == 'p')
			processes = atoi(optarg);
		else if (opt == 'e')
			extra = optarg;
		else if (opt == 'd')
			device = optarg;
		else if (opt == 'g')
			gid_index = atoi(optarg);
		else
			return 2;
	}
	if (contexts < 1 || contexts > MAX)
		return 2;
	for (int i = 1; i < processes; i++)
		if (!fork())
			return process(contexts, extra);
	ret = process(contexts, extra);
	while (wait(&status) > 0)
		ret |= status;
	return !!ret;
}
