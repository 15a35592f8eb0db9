// SPDX-License-Identifier: GPL-2.0
/*
 * events: event files in all the states in which a program can leave them.
 *
 *	events [-d DEVICE] [-g GID_INDEX] [-e EXTRA]
 *
 * A process with queue pairs that are connected to each other has completion
 * channels with events unread, read and not acknowledged, on their way, armed
 * for any completion or for solicited ones; watched by epoll, duplicated, not
 * blocking, waited for by a thread, without a CQ, closed; and asynchronous events
 * that nobody has read. "ready" goes to stdout; on SIGUSR1 all of that must be
 * as it was, in the same order, work on and go away. Then "PASS", else "FAIL:
 * reason".
 *
 * EXTRA is something that cannot be moved: "flight" (a channel that is open only
 * in a message which nobody has received), "child" (another process that has a
 * channel of this one's context, and nothing else of it).
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop.h"

/* who has what: a QP completes its sends and receives in the CQ of its number */
enum {
	UNREAD,	   /* events wait in the channel that it shares with MIXED */
	MIXED,	   /* one more event is read and not acknowledged */
	SOLICITED, /* armed for solicited completions, on a channel of its own */
	WAITED,	   /* a thread waits for it */
	CLOSED,	   /* the application has closed its channel */
	LATE,	   /* gets the channel without a CQ after the move */
	N
};

#define SIZE 64
#define DEPTH 16

static struct ibv_context *verbs;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static struct ibv_comp_channel *shared, *own, *waited, *closed, *late;
static struct ibv_cq *cq[N];
static struct ibv_qp *qp[N]; /* pairs: 0 and 1, 2 and 3, 4 and 5 */
static char mem[SIZE];
static struct watched watched_shared;
static pthread_t waiter;
static pid_t child;

/* ---- making ---- */

static void open_device(const char *name)
{
	verbs = loop_open(name);
	NEED(pd = ibv_alloc_pd(verbs));
	NEED(mr = ibv_reg_mr(pd, mem, SIZE, IBV_ACCESS_LOCAL_WRITE));
}

static void make_cq(int i, struct ibv_comp_channel *channel)
{
	NEED(cq[i] = ibv_create_cq(verbs, 2 * DEPTH, &cq[i], channel, 0));
}

static void make_qp(int i)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq[i],
		.recv_cq = cq[i],
		.qp_type = IBV_QPT_RC,
		.cap = { DEPTH, DEPTH, 1, 1, 0 },
	};

	NEED(qp[i] = ibv_create_qp(pd, &init));
}

/* ---- using ---- */

/* a message to QP `to`, whose CQ gets a completion; the sender's gets none */
static void message(int to, unsigned int flags)
{
	struct ibv_sge sge = { (uintptr_t)mem, SIZE, mr->lkey };
	struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .sg_list = &sge,
				    .num_sge = 1,
				    .opcode = IBV_WR_SEND,
				    .send_flags = flags },
			   *bad_send;
	struct ibv_wc wc;
	int got = 0;

	NEED(!ibv_post_recv(qp[to], &recv, &bad_recv));
	NEED(!ibv_post_send(qp[to ^ 1], &send, &bad_send));
	for (int t = 0; t < 20000 && !got; t++) {
		got = ibv_poll_cq(cq[to], 1, &wc);
		if (!got)
			usleep(1000);
	}
	NEED(got == 1 && !wc.status && wc.qp_num == qp[to]->qp_num);
}

static void event_at(int i, int solicited)
{
	NEED(!ibv_req_notify_cq(cq[i], solicited));
	message(i, solicited ? IBV_SEND_SOLICITED : 0);
}

/* the next event in the channel is that of CQ `i`, which its context names */
static void get_event(struct ibv_comp_channel *channel, int i)
{
	struct ibv_cq *from;
	void *context;

	NEED(!ibv_get_cq_event(channel, &from, &context));
	NEED(from == cq[i] && context == &cq[i]);
}

static int has_event(struct ibv_comp_channel *channel)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };

	return poll(&p, 1, 0);
}

static void *wait_for_event(void *arg)
{
	get_event(waited, WAITED);
	return arg;
}

/* SQ_DRAINED of QP `i` */
static void drain(int i)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD,
				    .en_sqd_async_notify = 1 };
	struct ibv_qp_init_attr init;

	NEED(!ibv_modify_qp(qp[i], &attr,
			    IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	do
		NEED(!ibv_query_qp(qp[i], &attr, IBV_QP_STATE, &init));
	while (attr.sq_draining);
	attr.qp_state = IBV_QPS_RTS;
	NEED(!ibv_modify_qp(qp[i], &attr, IBV_QP_STATE));
}

static void drained(int i)
{
	struct ibv_async_event event;

	NEED(!ibv_get_async_event(verbs, &event));
	NEED(event.event_type == IBV_EVENT_SQ_DRAINED);
	NEED(event.element.qp == qp[i]);
	ibv_ack_async_event(&event);
}

/* ---- before and after ---- */

/* the only file of a channel goes into a socket, and comes back from it */
static int flight[2];

static void send_away(struct ibv_comp_channel *channel)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr hdr;
	} control = { .hdr = { .cmsg_len = CMSG_LEN(sizeof(int)),
			       .cmsg_level = SOL_SOCKET,
			       .cmsg_type = SCM_RIGHTS } };
	struct iovec data = { mem, 1 };
	struct msghdr msg = { .msg_iov = &data,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.hdr), &channel->fd, sizeof(int));
	NEED(!socketpair(AF_UNIX, SOCK_DGRAM, 0, flight));
	NEED(sendmsg(flight[0], &msg, 0) == 1);
	NEED(!close(channel->fd));
}

static void fetch(struct ibv_comp_channel *channel)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr hdr;
	} control;
	struct iovec data = { mem, 1 };
	struct msghdr msg = { .msg_iov = &data,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };

	NEED(recvmsg(flight[1], &msg, 0) == 1);
	NEED(control.hdr.cmsg_type == SCM_RIGHTS);
	memcpy(&channel->fd, CMSG_DATA(&control.hdr), sizeof(int));
}

/* a child that keeps, of all that it inherits, the one file that exec leaves it */
static void start_child(void)
{
	child = fork();
	NEED(child >= 0);
	if (child)
		return;
	execlp("sleep", "sleep", "10000", NULL);
	_exit(127);
}

static void before(int gid_index)
{
	NEED(shared = ibv_create_comp_channel(verbs));
	NEED(own = ibv_create_comp_channel(verbs));
	NEED(waited = ibv_create_comp_channel(verbs));
	NEED(closed = ibv_create_comp_channel(verbs));
	NEED(late = ibv_create_comp_channel(verbs));
	make_cq(MIXED, shared); /* not in the order of use */
	make_cq(UNREAD, shared);
	make_cq(SOLICITED, own);
	make_cq(WAITED, waited);
	make_cq(CLOSED, closed);
	make_cq(LATE, NULL);
	for (int i = 0; i < N; i++)
		make_qp(i);
	for (int i = 0; i < N; i++)
		loop_connect(qp[i], qp[i ^ 1]->qp_num, gid_index, 0);

	event_at(MIXED, 0);
	get_event(shared, MIXED); /* and does not acknowledge it */
	event_at(UNREAD, 0);
	event_at(MIXED, 0);
	event_at(UNREAD, 1);
	NEED(!ibv_req_notify_cq(cq[MIXED], 0)); /* armed again */
	watched_shared = loop_watch(shared->fd);

	NEED(!ibv_req_notify_cq(cq[SOLICITED], 1));
	NEED(!ibv_req_notify_cq(cq[WAITED], 0));
	NEED(!pthread_create(&waiter, NULL, wait_for_event, NULL));
	NEED(!ibv_req_notify_cq(cq[CLOSED], 0));
	NEED(!close(closed->fd));

	drain(SOLICITED);
	drain(UNREAD);
}

static void check_shared(void)
{
	struct ibv_cq *from;
	void *context;

	loop_need_watched(&watched_shared);
	NEED(loop_is_ready(&watched_shared, 0));
	get_event(shared, UNREAD);
	get_event(shared, MIXED);
	get_event(shared, UNREAD);
	NEED(ibv_get_cq_event(shared, &from, &context) && errno == EAGAIN);
	NEED(!loop_is_ready(&watched_shared, 0));
	message(UNREAD, 0); /* not armed */
	NEED(!has_event(shared));
	message(MIXED, 0); /* armed before */
	NEED(loop_is_ready(&watched_shared, 10000));
	get_event(shared, MIXED);
	ibv_ack_cq_events(cq[UNREAD], 2);
	ibv_ack_cq_events(cq[MIXED], 3); /* the first one, too */
}

static void check_others(void)
{
	struct pollfd async = { .fd = verbs->async_fd, .events = POLLIN };

	message(SOLICITED, 0);
	NEED(!has_event(own));
	message(SOLICITED, IBV_SEND_SOLICITED);
	get_event(own, SOLICITED);
	ibv_ack_cq_events(cq[SOLICITED], 1);

	message(WAITED, 0);
	NEED(!pthread_join(waiter, NULL));
	ibv_ack_cq_events(cq[WAITED], 1);
	NEED(!has_event(shared) && !has_event(own) && !has_event(waited));

	message(CLOSED, 0);
	drained(SOLICITED);
	drained(UNREAD);
	NEED(!poll(&async, 1, 0));

	NEED(!ibv_destroy_qp(qp[LATE]));
	NEED(!ibv_destroy_cq(cq[LATE]));
	make_cq(LATE, late);
	NEED(!ibv_req_notify_cq(cq[LATE], 0));
}

/* waits for ever if an event was not told, or told twice */
static void destroy(void)
{
	for (int i = 0; i < N; i++)
		NEED(i == LATE || !ibv_destroy_qp(qp[i]));
	for (int i = 0; i < N; i++)
		NEED(!ibv_destroy_cq(cq[i]));
	NEED(!ibv_destroy_comp_channel(shared));
	NEED(!ibv_destroy_comp_channel(own));
	NEED(!ibv_destroy_comp_channel(waited));
	NEED(!ibv_destroy_comp_channel(late));
	NEED(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd));
	NEED(!ibv_close_device(verbs));
}

int main(int argc, char **argv)
{
	const char *device = NULL;
	const char *extra = "";
	int opt, gid_index = 1;

	while ((opt = getopt(argc, argv, "d:g:e:")) != -1) {
		if (opt == 'd')
			device = optarg;
		else if (opt == 'g')
			gid_index = atoi(optarg);
		else if (opt == 'e')
			extra = optarg;
		else
			return 2;
	}
	open_device(device);
	before(gid_index);
	if (!strcmp(extra, "flight"))
		send_away(own);
	else if (!strcmp(extra, "child"))
		start_child();
	loop_wait();
	if (!strcmp(extra, "flight"))
		fetch(own);
	if (child)
		NEED(!kill(child, SIGKILL) && wait(NULL) == child);
	check_shared();
	check_others();
	destroy();
	puts("PASS");
	return 0;
}
