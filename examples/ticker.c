// SPDX-License-Identifier: GPL-2.0
/*
 * ticker: numbers, one after another, over one RC queue pair. Nothing in here
 * knows of migration.
 *
 *	ticker [-d DEVICE] [-g GID_INDEX] [SERVER]
 *
 * Without SERVER it waits for a client, whose numbers it expects in order; the
 * client sends one when the last one has been acknowledged, until it is told to end
 * (SIGINT, SIGTERM). Both sleep between, on a completion channel. The TCP connection
 * by which they tell each other where they are stays open, and moves as well.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PORT "18700"
#define DEPTH 16 /* receives that wait */

#define NEED(what)                           \
	do {                                 \
		if (!(what))                 \
			err(1, "%s", #what); \
	} while (0)

static const char *device = "rxe0", *server;
static int gid_index = 1;
static uint64_t *buffer; /* DEPTH numbers */
static volatile sig_atomic_t ended;
static struct ibv_comp_channel *channel;
static struct ibv_context *context;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qp;

static void make_objects(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1,
			 .max_recv_wr = DEPTH,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_device **list = ibv_get_device_list(NULL), **l = list;
	struct ibv_pd *pd;

	NEED(list);
	while (*l && strcmp(ibv_get_device_name(*l), device))
		l++;
	if (!*l)
		errx(1, "there is no device %s", device);
	NEED((context = ibv_open_device(*l)));
	ibv_free_device_list(list);
	NEED((pd = ibv_alloc_pd(context)));
	NEED((buffer = calloc(DEPTH, sizeof(*buffer))));
	NEED((mr = ibv_reg_mr(pd, buffer, DEPTH * sizeof(*buffer),
			      IBV_ACCESS_LOCAL_WRITE)));
	NEED((channel = ibv_create_comp_channel(context)));
	NEED((cq = ibv_create_cq(context, 2 * DEPTH, NULL, channel, 0)));
	init.send_cq = init.recv_cq = cq;
	NEED((qp = ibv_create_qp(pd, &init)));
}

/* a connected TCP socket */
static int meet(void)
{
	struct addrinfo hints = { .ai_family = AF_INET,
				  .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_PASSIVE },
			*ai;
	int on = 1, tries = 100, fd, code;

	code = getaddrinfo(server, PORT, &hints, &ai);
	if (code)
		errx(1, "%s: %s", server, gai_strerror(code));
	NEED((fd = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
	if (server) {
		while (connect(fd, ai->ai_addr, ai->ai_addrlen)) {
			if (errno != ECONNREFUSED || !tries--)
				err(1, "%s", server);
			usleep(100000); /* it may just be starting */
		}
		return fd;
	}
	NEED(!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
	NEED(!bind(fd, ai->ai_addr, ai->ai_addrlen) && !listen(fd, 1));
	NEED((fd = accept(fd, NULL, NULL)) >= 0);
	return fd;
}

static void post_receive(uint64_t slot)
{
	struct ibv_sge sge = { .addr = (uintptr_t)(buffer + slot),
			       .length = sizeof(*buffer),
			       .lkey = mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot,
				  .sg_list = &sge,
				  .num_sge = 1 },
			   *bad;

	NEED(!ibv_post_recv(qp, &wr, &bad));
}

static void connect_to_peer(int fd)
{
	struct {
		union ibv_gid gid;
		uint32_t qpn;
	} self = { .qpn = qp->qp_num }, peer;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	NEED(!ibv_query_gid(context, 1, gid_index, &self.gid));
	NEED(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS));
	for (int i = 0; i < DEPTH; i++)
		post_receive(i);
	NEED(write(fd, &self, sizeof(self)) == sizeof(self));
	NEED(recv(fd, &peer, sizeof(peer), MSG_WAITALL) == sizeof(peer));
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer.qpn,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = peer.gid,
				      .sgid_index = gid_index,
				      .hop_limit = 64 } },
	};
	NEED(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER));
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 14;
	attr.retry_cnt = attr.rnr_retry = 7;
	NEED(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				    IBV_QP_MAX_QP_RD_ATOMIC));
	/* neither may send before the other can receive */
	NEED(write(fd, &self, 1) == 1 && read(fd, &peer, 1) == 1);
}

static struct ibv_wc next_completion(void)
{
	struct ibv_cq *from;
	struct ibv_wc wc;
	void *unused;
	int got;

	while (!(got = ibv_poll_cq(cq, 1, &wc))) {
		NEED(!ibv_req_notify_cq(cq, 0));
		/* one may have come before it was asked for */
		if ((got = ibv_poll_cq(cq, 1, &wc)))
			break;
		NEED(!ibv_get_cq_event(channel, &from, &unused));
		ibv_ack_cq_events(from, 1);
	}
	NEED(got == 1);
	if (wc.status)
		errx(1, "a completion says: %s", ibv_wc_status_str(wc.status));
	return wc;
}

static void send_number(uint64_t number)
{
	struct ibv_sge sge = { .addr = (uintptr_t)buffer,
			       .length = sizeof(*buffer),
			       .lkey = mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	*buffer = number;
	NEED(!ibv_post_send(qp, &wr, &bad));
	next_completion();
	usleep(10000);
}

/* false if it was the last one, 0 */
static bool receive_number(uint64_t number)
{
	uint64_t slot = next_completion().wr_id, got = buffer[slot];

	if (got && got != number)
		errx(1, "%lu instead of %lu", got, number);
	post_receive(slot);
	return got;
}

static void end(int sig)
{
	(void)sig;
	ended = 1;
}

int main(int argc, char **argv)
{
	uint64_t i;
	int opt, fd;

	setlinebuf(stdout);
	while ((opt = getopt(argc, argv, "d:g:")) != -1) {
		if (opt == 'd')
			device = optarg;
		else if (opt == 'g')
			gid_index = atoi(optarg);
		else
			return 2;
	}
	server = argv[optind];
	make_objects();
	fd = meet();
	connect_to_peer(fd);
	if (server) {
		signal(SIGINT, end);
		signal(SIGTERM, end);
	}
	for (i = 1; server ? !ended : receive_number(i); i++) {
		if (server)
			send_number(i);
		if (i % 100 == 0)
			printf("%lu\n", i);
	}
	if (server)
		send_number(0);
	printf("%lu, in order\n", i - 1);
	/* who leaves first would take the last acknowledgement along */
	NEED(!shutdown(fd, SHUT_WR));
	return read(fd, &opt, 1) != 0;
}
