// SPDX-License-Identifier: GPL-2.0
/*
 * migr_probe - one connection in a state in which the answer to a probe may
 *              complete work that was not done, or cost a retry
 *
 *   migr_probe -s CASE          be the responder, for one client
 *   migr_probe CASE HOST        be the requester
 *
 * CASE rnr: the first SENDs wait for a receive. The responder posts some when
 * it gets SIGUSR1; nothing may complete before. The PSNs are those of the upper
 * half, of which 0xffffff seems to be the future.
 *
 * CASE late: the same, but the requester posts them when it gets SIGUSR1.
 *
 * CASE read: on SIGUSR1 the requester posts a READ and a SEND. It has neither
 * retries nor a time-out; all must complete although the first responses are
 * lost.
 *
 * Says "ready" when it waits for the signal, "received" when the responder has
 * got all SENDs, and in the end PASS or FAIL. Exit code: 0, 1, or 2 for other
 * errors.
 */
#include <arpa/inet.h>
#include <err.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../mix/conn.h"
#include "../mix/verbs.h"

#define PORT "18610"
#define PSN 0x900000
#define SENDS 8
#define MSG 64
#define READ_BYTES 8192 /* several packets */
#define READ_AT (SENDS * MSG)
#define BUFFER (READ_AT + READ_BYTES)
#define READ_ID 100

static struct {
	struct verbs v;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buffer;
	int fd;
	bool server, read, late;
	uint64_t peer_addr;
	uint32_t peer_rkey;
} s;

static void fail(const char *what)
{
	printf("FAIL: %s\n", what);
	exit(1);
}

static void must(int rc, const char *what)
{
	if (rc)
		errx(2, "%s: %s", what, strerror(rc));
}

/* wait until the other end has come here, too */
static void meet(void)
{
	uint64_t word = 0;

	if (conn_send(s.fd, &word, 1) || conn_recv(s.fd, &word, 1, 0))
		exit(2);
}

static void await_signal(void)
{
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	puts("ready");
	must(sigwait(&set, &sig), "sigwait");
}

static int sends(void)
{
	return s.read ? 1 : SENDS;
}

static void create(void)
{
	const struct verbs_options o = { .gid_index = -1 };
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {
			.max_send_wr = SENDS,
			.max_recv_wr = SENDS,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;

	if (verbs_open(&s.v, &o))
		exit(2);
	s.pd = ibv_alloc_pd(s.v.context);
	s.cq = ibv_create_cq(s.v.context, 2 * SENDS, NULL, NULL, 0);
	s.buffer = aligned_alloc(4096, 4 * 4096);
	if (!s.pd || !s.cq || !s.buffer)
		err(2, "resources");
	memset(s.buffer, 0, BUFFER);
	s.mr = ibv_reg_mr(s.pd, s.buffer, BUFFER, access);
	init.send_cq = s.cq;
	init.recv_cq = s.cq;
	s.qp = s.mr ? ibv_create_qp(s.pd, &init) : NULL;
	if (!s.qp)
		err(2, "resources");
}

static void to_init(void)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qp_access_flags = IBV_ACCESS_REMOTE_READ };

	must(ibv_modify_qp(s.qp, &a,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				   IBV_QP_ACCESS_FLAGS),
	     "INIT");
}

static void to_rts(uint32_t qpn, const union ibv_gid *gid)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qpn,
		.rq_psn = PSN,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 18, /* 5 ms */
		.ah_attr = {
			.is_global = 1,
			.port_num = 1,
			.grh = {
				.dgid = *gid,
				.sgid_index = s.v.gid_index,
				.hop_limit = 64,
			},
		},
	};

	must(ibv_modify_qp(s.qp, &a,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				   IBV_QP_MAX_DEST_RD_ATOMIC |
				   IBV_QP_MIN_RNR_TIMER),
	     "RTR");
	a.qp_state = IBV_QPS_RTS;
	a.sq_psn = PSN;
	a.timeout = s.read ? 0 : 17;
	a.retry_cnt = s.read ? 0 : 7;
	a.rnr_retry = 7; /* for ever */
	a.max_rd_atomic = 1;
	must(ibv_modify_qp(s.qp, &a,
			   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				   IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				   IBV_QP_MAX_QP_RD_ATOMIC),
	     "RTS");
}

static void connect_qp(const char *host)
{
	union ibv_gid gid;
	uint64_t w[5];

	s.fd = host ? conn_connect(host, PORT) : conn_listen(PORT);
	if (s.fd < 0)
		exit(2);
	memcpy(w, s.v.gid.raw, 16);
	w[2] = s.qp->qp_num;
	w[3] = (uintptr_t)s.buffer;
	w[4] = s.mr->rkey;
	if (conn_send(s.fd, w, 5) || conn_recv(s.fd, w, 5, 0))
		exit(2);
	memcpy(gid.raw, w, 16);
	s.peer_addr = w[3];
	s.peer_rkey = w[4];
	to_rts(w[2], &gid);
	meet();
}

static struct ibv_sge at(size_t offset, uint32_t length)
{
	return (struct ibv_sge){ (uintptr_t)s.buffer + offset, length,
				 s.mr->lkey };
}

static void post_receives(void)
{
	for (int i = 0; i < sends(); i++) {
		struct ibv_sge sge = at(i * MSG, MSG);
		struct ibv_recv_wr wr = { .wr_id = i,
					  .sg_list = &sge,
					  .num_sge = 1 };
		struct ibv_recv_wr *bad;

		must(ibv_post_recv(s.qp, &wr, &bad), "ibv_post_recv");
	}
}

static void post_send(struct ibv_send_wr *wr, struct ibv_sge sge)
{
	struct ibv_send_wr *bad;

	wr->sg_list = &sge;
	wr->num_sge = 1;
	must(ibv_post_send(s.qp, wr, &bad), "ibv_post_send");
}

static void post_work(void)
{
	if (s.read) {
		struct ibv_send_wr wr = { .wr_id = READ_ID,
					  .opcode = IBV_WR_RDMA_READ };

		wr.wr.rdma.remote_addr = s.peer_addr + READ_AT;
		wr.wr.rdma.rkey = s.peer_rkey;
		post_send(&wr, at(READ_AT, READ_BYTES));
	}
	for (int i = 0; i < sends(); i++) {
		struct ibv_send_wr wr = { .wr_id = i, .opcode = IBV_WR_SEND };

		memset(s.buffer + i * MSG, i + 1, MSG);
		post_send(&wr, at(i * MSG, MSG));
	}
}

static bool poll_one(struct ibv_wc *wc)
{
	int n = ibv_poll_cq(s.cq, 1, wc);

	if (n < 0)
		errx(2, "ibv_poll_cq");
	if (n && wc->status) {
		printf("FAIL: %lu: %s\n", (unsigned long)wc->wr_id,
		       ibv_wc_status_str(wc->status));
		exit(1);
	}
	return n;
}

static void expect(uint64_t wr_id)
{
	struct ibv_wc wc;

	while (!poll_one(&wc))
		usleep(1000);
	if (wc.wr_id != wr_id)
		fail("completions in the wrong order");
}

static void check_bytes(size_t offset, size_t length, uint8_t value)
{
	for (size_t i = 0; i < length; i++)
		if (s.buffer[offset + i] != value)
			fail("wrong data");
}

static void run_server(void)
{
	if (!s.read) {
		await_signal();
		meet();
		post_receives();
	}
	for (int i = 0; i < sends(); i++) {
		expect(i);
		check_bytes(i * MSG, MSG, i + 1);
	}
	puts("received");
}

/* nothing may complete until the server says that it posts receives */
static void watch(void)
{
	struct pollfd p = { .fd = s.fd, .events = POLLIN };
	struct ibv_wc wc;

	while (!poll(&p, 1, 1))
		if (poll_one(&wc))
			fail("completed, and there is no receive");
	meet();
}

static void run_client(void)
{
	if (s.read || s.late)
		await_signal();
	post_work();
	if (!s.read)
		watch();
	if (s.read) {
		expect(READ_ID);
		check_bytes(READ_AT, READ_BYTES, 0x5a);
	}
	for (int i = 0; i < sends(); i++)
		expect(i);
}

int main(int argc, char **argv)
{
	sigset_t set;
	const char *name;

	setvbuf(stdout, NULL, _IOLBF, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s.server = argc == 3 && !strcmp(argv[1], "-s");
	name = argc == 3 ? argv[1 + s.server] : "";
	s.read = !strcmp(name, "read");
	s.late = !strcmp(name, "late");
	if (!s.read && !s.late && strcmp(name, "rnr"))
		errx(2, "usage: migr_probe -s CASE | CASE HOST; CASE is rnr, "
			"late or read");

	create();
	to_init();
	if (s.server)
		memset(s.buffer + READ_AT, 0x5a, READ_BYTES);
	if (s.server && s.read)
		post_receives();
	connect_qp(s.server ? NULL : argv[2]);
	if (s.server)
		run_server();
	else
		run_client();
	meet();
	puts("PASS");
	return 0;
}
