// SPDX-License-Identifier: GPL-2.0
/*
 * op_event send|write [-d DEVICE] [-x GID_INDEX] [-s BYTES] [-n COUNT]
 *
 * How long a SEND (with the receive that it takes) or an RDMA WRITE takes, in
 * microseconds, from the post to the completion event of the requester: one at a
 * time, between two queue pairs of this process. perftest's programs for WRITE cannot
 * wait for events, only poll; and those for SEND are two processes, so that the
 * scheduler's part is larger than what is to be measured.
 */

#include <getopt.h>
#include <stdint.h>
#include <time.h>

#include <infiniband/verbs.h>

#include "check.h"
#include "connect.h"

static struct ibv_context *ctx;
static union ibv_gid gid;
static int gid_index = 1;

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	MUST(list);
	for (int i = 0; list[i] && !ctx; i++)
		if (!strcmp(name, ibv_get_device_name(list[i])))
			MUST(ctx = ibv_open_device(list[i]));
	MUST(ctx);
	ibv_free_device_list(list);
	MUST(!ibv_query_gid(ctx, 1, gid_index, &gid));
}

static void connect_qp(struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_qp_attr a = rc_attr(&gid, gid_index, peer);

	a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	a.timeout = 20; /* would only be noise */
	MUST(!rc_to_rtr(qp, &a) && !rc_to_rts(qp, &a));
}

static void take_one(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	MUST(ibv_poll_cq(cq, 1, &wc) == 1);
	MUST(wc.status == IBV_WC_SUCCESS);
}

/* the responder completes before it acknowledges, and is not waited for */
static void do_once(struct ibv_qp *qp, struct ibv_send_wr *wr,
		    struct ibv_qp *to, struct ibv_recv_wr *recv)
{
	struct ibv_recv_wr *bad_recv;
	struct ibv_send_wr *bad;
	struct ibv_cq *cq;
	void *user;

	if (wr->opcode == IBV_WR_SEND)
		MUST(!ibv_post_recv(to, recv, &bad_recv));
	MUST(!ibv_req_notify_cq(qp->send_cq, 0));
	MUST(!ibv_post_send(qp, wr, &bad));
	MUST(!ibv_get_cq_event(qp->send_cq->channel, &cq, &user));
	ibv_ack_cq_events(cq, 1);
	take_one(cq);
	if (wr->opcode == IBV_WR_SEND)
		take_one(to->recv_cq);
}

static int usage(void)
{
	fputs("usage: op_event send|write [-d DEVICE] [-x GID_INDEX] "
	      "[-s BYTES] [-n COUNT]\n",
	      stderr);
	return 2;
}

int main(int argc, char **argv)
{
	struct ibv_qp_init_attr init = {
		.cap = { 1, 1, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct ibv_send_wr wr = { .num_sge = 1 };
	struct ibv_recv_wr recv = { .num_sge = 1 };
	struct ibv_sge from_mem, to_mem;
	struct ibv_qp *from, *to;
	struct ibv_comp_channel *channel;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	const char *device = "rxe0";
	unsigned int bytes = 2, count = 1000;
	double begin;
	char *mem;
	int c;

	if (argc < 2)
		return usage();
	if (!strcmp(argv[1], "send"))
		wr.opcode = IBV_WR_SEND;
	else if (!strcmp(argv[1], "write"))
		wr.opcode = IBV_WR_RDMA_WRITE;
	else
		return usage();
	optind = 2;
	while ((c = getopt(argc, argv, "d:x:s:n:")) != -1) {
		switch (c) {
		case 'd':
			device = optarg;
			break;
		case 'x':
			gid_index = atoi(optarg);
			break;
		case 's':
			bytes = (unsigned int)atoi(optarg);
			break;
		case 'n':
			count = (unsigned int)atoi(optarg);
			break;
		default:
			return usage();
		}
	}
	MUST(count && bytes);
	open_device(device);
	MUST(pd = ibv_alloc_pd(ctx));
	MUST(mem = calloc(2, bytes));
	MUST(mr = ibv_reg_mr(pd, mem, 2 * (size_t)bytes,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
	MUST(channel = ibv_create_comp_channel(ctx));
	MUST(init.send_cq = ibv_create_cq(ctx, 1, NULL, channel, 0));
	MUST(init.recv_cq = ibv_create_cq(ctx, 1, NULL, NULL, 0));
	MUST(from = ibv_create_qp(pd, &init));
	MUST(to = ibv_create_qp(pd, &init));
	connect_qp(from, to->qp_num);
	connect_qp(to, from->qp_num);

	from_mem = (struct ibv_sge){ (uintptr_t)mem, bytes, mr->lkey };
	to_mem = (struct ibv_sge){ from_mem.addr + bytes, bytes, mr->lkey };
	wr.sg_list = &from_mem;
	recv.sg_list = &to_mem;
	wr.wr.rdma.remote_addr = to_mem.addr;
	wr.wr.rdma.rkey = mr->rkey;
	/* the first ones are not like the others */
	for (unsigned int i = 0; i < count / 10; i++)
		do_once(from, &wr, to, &recv);
	begin = now_us();
	for (unsigned int i = 0; i < count; i++)
		do_once(from, &wr, to, &recv);
	printf("%.3f\n", (now_us() - begin) / count);
	return 0;
}
