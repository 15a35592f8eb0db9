// SPDX-License-Identifier: GPL-2.0
/*
 * async: files of asynchronous events.
 *
 *	async [-d DEVICE] [-g GID_INDEX]
 *
 * A process has three contexts. The event file of one does not block, is duplicated
 * and watched by epoll; of its events, which tell of a QP and of a CQ that has
 * overrun, one is read and not acknowledged, and the others are not read. For those
 * of the second a thread waits. Those of the third tell that an SRQ has come to its
 * limit: one is read and not acknowledged, one is not read, and the limit is armed
 * again. "ready" goes to stdout; on SIGUSR1 all of that must
 * be as it was, and the CQ hold what it held. Then "PASS", else "FAIL: reason".
 */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "loop.h"

#define SIZE 64
#define ROOM 3 /* of the CQ, of which rdma_rxe makes no more */
#define LOST 2
#define ALL (ROOM + LOST)

/* a context, and a QP of it */
struct end {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq; /* of `limited` */
	struct ibv_qp *qp;   /* its own peer */
	char mem[SIZE];
};

static struct end watched, waited, limited;
static struct watched file;
static struct ibv_async_event unacked, told; /* of `watched`, and of `waited` */
static struct ibv_async_event unacked_limit;
static pthread_t waiter;

static void make(struct end *e, const char *device, int gid_index)
{
	struct ibv_srq_init_attr srq_init = { .attr = { ALL, 1, 0 } };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .sq_sig_all = 1,
					 .cap = { ALL, ALL, 1, 1, 0 } };

	e->verbs = loop_open(device);
	NEED(e->pd = ibv_alloc_pd(e->verbs));
	NEED(e->mr = ibv_reg_mr(e->pd, e->mem, SIZE, IBV_ACCESS_LOCAL_WRITE));
	NEED(e->send_cq = ibv_create_cq(e->verbs, ROOM, NULL, NULL, 0));
	NEED(e->send_cq->cqe == ROOM);
	NEED(e->recv_cq = ibv_create_cq(e->verbs, ALL, NULL, NULL, 0));
	init.send_cq = e->send_cq;
	init.recv_cq = e->recv_cq;
	if (e == &limited)
		NEED(init.srq = e->srq = ibv_create_srq(e->pd, &srq_init));
	NEED(e->qp = ibv_create_qp(e->pd, &init));
	loop_connect(e->qp, e->qp->qp_num, gid_index, 0);
}

/* ---- what tells of itself ---- */

/* SQ_DRAINED */
static void drain(const struct end *e)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD,
				    .en_sqd_async_notify = 1 };
	struct ibv_qp_init_attr init;

	NEED(!ibv_modify_qp(e->qp, &attr,
			    IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	do
		NEED(!ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init));
	while (attr.sq_draining);
	attr.qp_state = IBV_QPS_RTS;
	NEED(!ibv_modify_qp(e->qp, &attr, IBV_QP_STATE));
}

static void need_drained(const struct ibv_async_event *event,
			 const struct end *e)
{
	NEED(event->event_type == IBV_EVENT_SQ_DRAINED);
	NEED(event->element.qp == e->qp);
}

static void post(struct end *e, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)e->mem, SIZE, e->mr->lkey };
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .wr_id = id,
				    .sg_list = &sge,
				    .num_sge = 1,
				    .opcode = IBV_WR_SEND },
			   *bad_send;

	recv.wr_id = id;
	NEED(!(e->srq ? ibv_post_srq_recv(e->srq, &recv, &bad_recv)
		      : ibv_post_recv(e->qp, &recv, &bad_recv)));
	NEED(!ibv_post_send(e->qp, &send, &bad_send));
}

static void complete(const struct end *e, struct ibv_cq *cq, uint64_t id)
{
	struct ibv_wc wc;
	int n;

	for (int t = 0; !(n = ibv_poll_cq(cq, 1, &wc)); t++) {
		NEED(t < 30000);
		usleep(1000);
	}
	NEED(n == 1 && !wc.status && wc.wr_id == id);
	NEED(wc.qp_num == e->qp->qp_num);
}

/* one more than the CQ of sends has room for; nobody polls that */
static void overrun(struct end *e, uint64_t first, int lost)
{
	for (int i = 0; i < ROOM + lost; i++)
		post(e, first + i);
	for (int i = 0; i < ROOM + lost; i++)
		complete(e, e->recv_cq, first + i);
}

/* what it holds is all that it had room for, and in order */
static void check_overrun(const struct end *e, uint64_t first)
{
	struct ibv_wc wc;

	for (int i = 0; i < ROOM; i++)
		complete(e, e->send_cq, first + i);
	NEED(!ibv_poll_cq(e->send_cq, 1, &wc));
}

/* the next event, which there is, is of the CQ */
static struct ibv_async_event get_overrun(const struct end *e)
{
	struct ibv_async_event event;

	NEED(!ibv_get_async_event(e->verbs, &event));
	NEED(event.event_type == IBV_EVENT_CQ_ERR);
	NEED(event.element.cq == e->send_cq);
	return event;
}

static unsigned int limit(void)
{
	struct ibv_srq_attr attr;

	NEED(!ibv_query_srq(limited.srq, &attr));
	return attr.srq_limit;
}

static void arm(void)
{
	struct ibv_srq_attr attr = { .srq_limit = 1 };

	NEED(!ibv_modify_srq(limited.srq, &attr, IBV_SRQ_LIMIT));
	NEED(limit() == 1);
}

/* the receive is the last one; with its event the limit is armed no more */
static void reach_limit(uint64_t id)
{
	post(&limited, id);
	complete(&limited, limited.recv_cq, id);
	complete(&limited, limited.send_cq, id);
	NEED(!limit());
}

static struct ibv_async_event get_limit(void)
{
	struct ibv_async_event event;

	NEED(!ibv_get_async_event(limited.verbs, &event));
	NEED(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED);
	NEED(event.element.srq == limited.srq);
	return event;
}

static void *wait_for_event(void *arg)
{
	NEED(!ibv_get_async_event(waited.verbs, &told));
	return arg;
}

/* ---- before and after ---- */

static void before(void)
{
	/* with each that is lost comes an event */
	overrun(&watched, 0, LOST);
	unacked = get_overrun(&watched);
	file = loop_watch(watched.verbs->async_fd);
	NEED(loop_is_ready(&file, 30000));
	drain(&watched);
	NEED(!pthread_create(&waiter, NULL, wait_for_event, NULL));

	arm();
	reach_limit(0);
	unacked_limit = get_limit();
	arm();
	reach_limit(1);
	arm();
}

static void check_watched(void)
{
	struct ibv_async_event event;

	loop_need_watched(&file);
	NEED(loop_is_ready(&file, 0));
	event = get_overrun(&watched);
	ibv_ack_async_event(&event);
	NEED(!ibv_get_async_event(watched.verbs, &event));
	need_drained(&event, &watched);
	ibv_ack_async_event(&event);
	NEED(ibv_get_async_event(watched.verbs, &event) && errno == EAGAIN);
	NEED(!loop_is_ready(&file, 0));
	ibv_ack_async_event(&unacked);

	/* it holds no more than before, and overruns again */
	check_overrun(&watched, 0);
	overrun(&watched, 10, 1);
	NEED(loop_is_ready(&file, 30000));
	event = get_overrun(&watched);
	ibv_ack_async_event(&event);
	check_overrun(&watched, 10);
}

static void check_waited(void)
{
	drain(&waited);
	NEED(!pthread_join(waiter, NULL));
	need_drained(&told, &waited);
	ibv_ack_async_event(&told);
}

/* those from before, and one that comes now; there are no others */
static void check_limited(void)
{
	struct ibv_async_event event;

	NEED(limit() == 1);
	event = get_limit();
	ibv_ack_async_event(&event);
	ibv_ack_async_event(&unacked_limit);
	NEED(!fcntl(limited.verbs->async_fd, F_SETFL, O_NONBLOCK));
	NEED(ibv_get_async_event(limited.verbs, &event) && errno == EAGAIN);
	reach_limit(2);
	event = get_limit();
	ibv_ack_async_event(&event);
	NEED(ibv_get_async_event(limited.verbs, &event) && errno == EAGAIN);
}

/* waits for ever if an event was not told, or told twice */
static void destroy(struct end *e)
{
	NEED(!ibv_destroy_qp(e->qp) && (!e->srq || !ibv_destroy_srq(e->srq)));
	NEED(!ibv_destroy_cq(e->send_cq) && !ibv_destroy_cq(e->recv_cq));
	NEED(!ibv_dereg_mr(e->mr) && !ibv_dealloc_pd(e->pd));
	NEED(!ibv_close_device(e->verbs));
}

int main(int argc, char **argv)
{
	const char *device = NULL;
	int opt, gid_index = 1;

	while ((opt = getopt(argc, argv, "d:g:")) != -1) {
		if (opt == 'd')
			device = optarg;
		else if (opt == 'g')
			gid_index = atoi(optarg);
		else
			return 2;
	}
	make(&watched, device, gid_index);
	make(&waited, device, gid_index);
	make(&limited, device, gid_index);
	before();
	loop_wait();
	check_watched();
	check_waited();
	check_limited();
	destroy(&watched);
	destroy(&waited);
	destroy(&limited);
	puts("PASS");
	return 0;
}
