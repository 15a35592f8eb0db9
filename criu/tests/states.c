// SPDX-License-Identifier: GPL-2.0
/*
 * states: RC QPs in all states.
 *
 *	states [-d DEVICE] [-g GID_INDEX]
 *
 * "ready" goes to stdout; on SIGUSR1 every QP must have the state and the
 * attributes that it had, what waits in it must be done when it may be, and not
 * before, and what was flushed be polled once and in order. Then each goes where
 * it can go from its state. Then "PASS", else "FAIL: reason", behind what it was
 * about.
 */
#include <unistd.h>

#include "../../tests/connect.h"
#include "states.h"

#define LOOK_US 50000 /* in which the driver would do what it may not do */

static int gid_index = 1;

/* ---- states ---- */

/* by an error, too: what has to be flushed is, soon after */
static void wait_for_error(int q)
{
	for (int t = 0; query(q).qp_state != IBV_QPS_ERR; t++) {
		NEED(t < 30000);
		usleep(1000);
	}
}

static void change(int q, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	NEED(!ibv_modify_qp(qp[q], &attr, IBV_QP_STATE));
}

/* and an event says that it is drained */
static void to_sqd(int q)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD,
				    .en_sqd_async_notify = 1 };

	NEED(!ibv_modify_qp(qp[q], &attr,
			    IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	for (int t = 0; query(q).sq_draining; t++) {
		NEED(t < 30000);
		usleep(1000);
	}
}

static int deaf = 1; /* DEAF is */

/* nothing in it is what it would be if nobody had set it */
static struct ibv_qp_attr attr_of(int q)
{
	const int peer = q == UNHEARD ? RESET : q ^ 1;
	struct ibv_qp_attr attr;
	union ibv_gid gid;

	NEED(!ibv_query_gid(verbs, 1, gid_index, &gid));
	attr = rc_attr(&gid, gid_index, qp[peer]->qp_num);
	attr.path_mtu = IBV_MTU_512;
	attr.sq_psn = 0xfffff0U + (unsigned int)q; /* wraps soon */
	attr.rq_psn = 0xfffff0U + (unsigned int)peer;
	if (q == DEAF && deaf)
		attr.rq_psn -= 5;
	attr.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
	attr.max_rd_atomic = 2;
	attr.max_dest_rd_atomic = 8;
	attr.min_rnr_timer = 14;
	attr.timeout = q == UNHEARD ? 10 : q == LEFT ? 14 : 18;
	if (q == DRAINING)
		attr.timeout = 0; /* it does not ask again */
	attr.retry_cnt = q == UNHEARD ? 1 : 6;
	attr.rnr_retry = q == ERR ? 7 : 5; /* its sends wait for receives */
	attr.ah_attr.grh.flow_label = 0x12345;
	attr.ah_attr.grh.traffic_class = 0x20;
	return attr;
}

static void to_init(int q)
{
	struct ibv_qp_attr attr = attr_of(q);

	attr.qp_state = IBV_QPS_INIT;
	NEED(!ibv_modify_qp(qp[q], &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS));
}

static void to_rtr(int q)
{
	struct ibv_qp_attr attr = attr_of(q);

	NEED(!rc_to_rtr(qp[q], &attr));
}

static void to_rts(int q)
{
	struct ibv_qp_attr attr = attr_of(q);

	NEED(!rc_to_rts(qp[q], &attr));
}

static void connect_pair(int q)
{
	to_rtr(q);
	to_rtr(q ^ 1);
	to_rts(q);
	to_rts(q ^ 1);
}

/* ---- before and after ---- */

static void prepare_errors(void)
{
	connect_pair(ERR);
	exchange(ERR, ERR_PEER, 2);
	exchange(ERR_PEER, ERR, 1);
	post(ERR, RECEIVED, 4);
	post(ERR, SENT, 4); /* and nobody receives it */
	usleep(LOOK_US);
	nothing(ERR, SENT);
	change(ERR, IBV_QPS_ERR);
	flushed(ERR, SENT, 1);
	flushed(ERR, RECEIVED, 2);
	change(ERR_PEER, IBV_QPS_ERR);
	usleep(LOOK_US);
	post(ERR_PEER, RECEIVED, 2);

	connect_pair(LEFT);
	exchange(LEFT, ENDED, 1);
	change(ENDED, IBV_QPS_ERR);

	to_rtr(UNHEARD);
	to_rts(UNHEARD);
	post(UNHEARD, SENT, 3);
	wait_for_error(UNHEARD);

	connect_pair(REFUSED);
	exchange(REFUSER, REFUSED, 1);
	post(REFUSED, RECEIVED, 2);
	post_send(REFUSED, IBV_WR_RDMA_WRITE);
	post(REFUSED, SENT, 2);
	wait_for_error(REFUSED);
	wait_for_error(REFUSER);
}

static void prepare(void)
{
	connect_pair(SQD);
	/* once around the ring: what lies behind the last one is an old one */
	for (int i = 0; i < 20; i++)
		exchange(SQD, SQD_PEER, 1);
	exchange(SQD_PEER, SQD, 3);
	post(SQD_PEER, RECEIVED, 3);
	to_sqd(SQD);
	note(SQD);
	post(SQD, SENT, 3);

	connect_pair(DRAINING);
	post(DRAINING, SENT, 1);
	usleep(LOOK_US);
	change(DRAINING, IBV_QPS_SQD);

	to_rtr(RTR);
	to_rtr(RTR_PEER);
	to_rts(RTR_PEER);
	post(RTR, RECEIVED, 4);
	resize_srq(SLOTS);
	post(RTR_PEER, SENT, 1);
	delivered(RTR_PEER, RTR, 1);
	to_sqd(RTR_PEER);
	change(RTR_PEER, IBV_QPS_RTS);

	to_init(INIT);
	post(INIT, RECEIVED, 3);
	prepare_errors();

	usleep(LOOK_US);
	nothing(SQD_PEER, RECEIVED);
	as_before(SQD);
	for (int i = 0; i < QPS; i++)
		note(i);
	NEED(before[DRAINING].sq_draining);
}

static void check_sqd(void)
{
	/* it receives and acknowledges, and that makes it send nothing */
	exchange(SQD_PEER, SQD, 2);
	usleep(LOOK_US);
	nothing(SQD, SENT);
	nothing(SQD_PEER, RECEIVED);
	NEED(query(SQD).qp_state == IBV_QPS_SQD);
	NEED(query(SQD).sq_psn == before[SQD].sq_psn);
	change(SQD, IBV_QPS_RTS);
	delivered(SQD, SQD_PEER, 3);
	exchange(SQD, SQD_PEER, 8);
	exchange(SQD_PEER, SQD, 8);
}

/* what is to be sent again is not under way any more, and waits for RTS */
static void check_draining(void)
{
	event_is(IBV_EVENT_SQ_DRAINED, DRAINING);
	before[DRAINING].sq_draining = 0;
	before[DRAINING].sq_psn--;
	as_before(DRAINING);
	usleep(LOOK_US);
	nothing(DRAINING, SENT);

	deaf = 0;
	change(DEAF, IBV_QPS_RESET);
	to_init(DEAF);
	to_rtr(DEAF);
	to_rts(DEAF);
	post(DEAF, RECEIVED, 1);
	usleep(LOOK_US);
	nothing(DEAF, RECEIVED);
	change(DRAINING, IBV_QPS_RTS);
	delivered(DRAINING, DEAF, 1);
	exchange(DRAINING, DEAF, 3);
	exchange(DEAF, DRAINING, 3);
}

static void check_errors(void)
{
	flushed(ERR, SENT, 3);
	flushed(ERR, RECEIVED, 2);
	complete(UNHEARD, SENT, IBV_WC_RETRY_EXC_ERR);
	flushed(UNHEARD, SENT, 2);
	complete(REFUSED, SENT, IBV_WC_REM_ACCESS_ERR);
	flushed(REFUSED, SENT, 2);
	flushed(REFUSED, RECEIVED, 2);

	for (int i = ERR; i < QPS; i++) {
		post(i, SENT, 2);
		flushed(i, SENT, 2);
	}
	/* rdma_rxe does not see a receive that is posted in ERR, but then */
	post(ERR, RECEIVED, 2);
	change(ERR, IBV_QPS_ERR);
	flushed(ERR, RECEIVED, 2);
	change(ERR_PEER, IBV_QPS_ERR);
	flushed(ERR_PEER, RECEIVED, 2);

	/* it runs into the end of its retries, as if nothing had moved */
	post(LEFT, SENT, 2);
	complete(LEFT, SENT, IBV_WC_RETRY_EXC_ERR);
	flushed(LEFT, SENT, 1);
	for (int i = LEFT; i <= ERR; i += 2) {
		change(i, IBV_QPS_RESET);
		change(i ^ 1, IBV_QPS_RESET);
		connect_pair(i);
		exchange(i, i ^ 1, 3);
		exchange(i ^ 1, i, 3);
	}
}

/* RTR's SRQ was made larger, and is again */
static void check_resized(void)
{
	check_srq();
	post(RTR, RECEIVED, SLOTS - 3); /* three were there */
	resize_srq(10 * SLOTS);
	for (int i = 0; i < SLOTS; i++) {
		post(RTR_PEER, SENT, 1);
		delivered(RTR_PEER, RTR, 1);
	}
}

static void check(void)
{
	for (int i = 0; i < QPS; i++)
		if (i != DRAINING)
			as_before(i);
	usleep(LOOK_US);
	nothing(SQD, SENT);
	nothing(SQD_PEER, RECEIVED);

	check_resized();
	to_rts(RTR);
	exchange(RTR, RTR_PEER, 3);
	exchange(RTR_PEER, RTR, 2);

	to_rtr(RESET);
	to_rts(RESET);
	to_rtr(INIT);
	post(RESET, SENT, 3);
	delivered(RESET, INIT, 3);
	to_rts(INIT);
	exchange(INIT, RESET, 3);

	check_sqd();
	check_errors();
	event_is(IBV_EVENT_SQ_DRAINED, SQD);
	event_is(IBV_EVENT_SQ_DRAINED, RTR_PEER);
	event_is(IBV_EVENT_QP_LAST_WQE_REACHED, REFUSER);
	check_draining();

	usleep(LOOK_US);
	no_event();
	for (int i = 0; i < QPS; i++)
		for (int k = 0; k < QUEUES; k++)
			nothing(i, k);
}

int main(int argc, char **argv)
{
	const char *device = NULL;
	int opt;

	while ((opt = getopt(argc, argv, "d:g:")) != -1) {
		if (opt == 'd')
			device = optarg;
		else if (opt == 'g')
			gid_index = atoi(optarg);
		else
			return 2;
	}
	make(device);
	prepare();
	loop_wait();
	check();
	destroy();
	puts("PASS");
	return 0;
}
