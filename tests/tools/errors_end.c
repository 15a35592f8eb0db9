// SPDX-License-Identifier: GPL-2.0
/* One end of a case: its queues, how they connect. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../mix/conn.h"
#include "verbs_errors.h"

#define DEPTH 16
#define PEER_SECONDS 120

/* ---- objects ---- */

static void create_srq(struct end *e)
{
	struct ibv_srq_init_attr init = {
		.attr = { .max_wr = DEPTH, .max_sge = 1 },
	};

	e->srq = ibv_create_srq(e->rig->pd, &init);
	if (!e->srq)
		errors_die("ibv_create_srq");
}

static void to_init(struct end *e)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT,
		.qkey = QKEY,
	};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	if (e->test->type == IBV_QPT_UD) {
		mask |= IBV_QP_QKEY;
	} else {
		mask |= IBV_QP_ACCESS_FLAGS;
		if (!e->test->no_right || !e->rig->server)
			attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
					       IBV_ACCESS_REMOTE_READ |
					       IBV_ACCESS_REMOTE_ATOMIC;
		if (e->test->type == IBV_QPT_UC)
			attr.qp_access_flags &= IBV_ACCESS_REMOTE_WRITE;
	}
	errno = ibv_modify_qp(e->qp, &attr, mask);
	if (errno)
		errors_die("QP to INIT");
}

static void create_cqs(struct end *e, uint32_t depth)
{
	struct ibv_context *ctx = e->rig->v.context;
	const struct test *t = e->test;
	bool server = e->rig->server;

	if (server && t->armed) {
		e->channel = ibv_create_comp_channel(ctx);
		if (!e->channel)
			errors_die("ibv_create_comp_channel");
	}
	e->send_cq = ibv_create_cq(ctx, t->small_cq && !server ? 1 : 2 * depth,
				   NULL, NULL, 0);
	e->recv_cq = ibv_create_cq(ctx, t->small_recv_cq && server ? 1 : DEPTH,
				   NULL, e->channel, 0);
	if (!e->send_cq || !e->recv_cq ||
	    (e->channel && ibv_req_notify_cq(e->recv_cq, 1)))
		errors_die("CQs");
}

void end_create(struct end *e, struct rig *rig, const struct test *t)
{
	uint32_t depth = t->deep ? DEEP : DEPTH;
	struct ibv_qp_init_attr init = {
		.qp_type = t->type,
		.cap = { .max_send_wr = depth,
			 .max_recv_wr = DEPTH,
			 .max_send_sge = 2,
			 .max_recv_sge = 2,
			 .max_inline_data = MSG },
	};

	memset(e, 0, sizeof(*e));
	e->rig = rig;
	e->test = t;
	create_cqs(e, depth);
	if (t->srq && rig->server)
		create_srq(e);
	init.send_cq = e->send_cq;
	init.recv_cq = e->recv_cq;
	init.srq = e->srq;
	e->qp = ibv_create_qp(rig->pd, &init);
	if (!e->qp)
		errors_die("ibv_create_qp");
	e->cap = init.cap;
	e->psn = e->qp->qp_num * 77 & 0xffffff;
	to_init(e);
}

void end_destroy(struct end *e)
{
	if (ibv_destroy_qp(e->qp) || (e->ah && ibv_destroy_ah(e->ah)) ||
	    (e->srq && ibv_destroy_srq(e->srq)) || ibv_destroy_cq(e->send_cq) ||
	    ibv_destroy_cq(e->recv_cq) ||
	    (e->channel && ibv_destroy_comp_channel(e->channel)))
		errors_die("the end of a case");
}

/* ---- connection ---- */

enum {
	W_GID_HIGH,
	W_GID_LOW,
	W_QPN,
	W_PSN,
	W_ADDR,
	W_KEYS,
	WORDS = W_KEYS + KEYS,
};

static void exchange(struct end *e)
{
	struct rig *rig = e->rig;
	uint64_t w[WORDS] = {
		[W_QPN] = e->qp->qp_num,
		[W_PSN] = e->psn,
		[W_ADDR] = (uintptr_t)rig->buffer + REGION_AT,
	};

	memcpy(&w[W_GID_HIGH], &rig->v.gid, sizeof(rig->v.gid));
	for (int i = 0; i < KEYS; i++)
		w[W_KEYS + i] = rig->rkey[i];
	if (conn_send(rig->fd, w, WORDS) ||
	    conn_recv(rig->fd, w, WORDS, PEER_SECONDS * errors_factor))
		exit(2);
	memcpy(&e->peer_gid, &w[W_GID_HIGH], sizeof(e->peer_gid));
	e->peer_qpn = w[W_QPN];
	e->peer_psn = w[W_PSN];
	e->peer_addr = w[W_ADDR];
	for (int i = 0; i < KEYS; i++)
		e->peer_rkey[i] = w[W_KEYS + i];
}

static void to_rtr(struct end *e, const struct ibv_ah_attr *ah)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = e->peer_qpn,
		.rq_psn = e->peer_psn,
		.min_rnr_timer = 12,
		.ah_attr = *ah,
	};
	int mask = IBV_QP_STATE;

	if (!e->test->no_dest_rd_atomic || !e->rig->server)
		attr.max_dest_rd_atomic = 4;
	if (e->test->dest == TO_NOBODY && !e->rig->server)
		attr.dest_qp_num ^= OTHER_QPN;
	if (e->test->type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN;
	if (e->test->type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	errno = ibv_modify_qp(e->qp, &attr, mask);
	if (errno)
		errors_die("QP to RTR");
}

static void to_rts(struct end *e)
{
	const struct test *t = e->test;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = e->psn,
		/* nodes are slow: half a second, or a quarter */
		.timeout = t->few_retries ? 16 : 17,
		.retry_cnt = t->few_retries ? t->retries : 7,
		.rnr_retry = t->few_rnr_retries ? t->retries : 7,
		.max_rd_atomic = t->no_rd_atomic ? 0 : 4,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (e->test->type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	errno = ibv_modify_qp(e->qp, &attr, mask);
	if (errno)
		errors_die("QP to RTS");
}

void end_connect(struct end *e)
{
	struct ibv_ah_attr ah = {
		.is_global = 1,
		.port_num = PORT,
		.grh = { .sgid_index = e->rig->v.gid_index, .hop_limit = 64 },
	};

	exchange(e);
	ah.grh.dgid = e->peer_gid;
	if (e->rig->server && e->test->dest == TO_RESET) {
		end_modify(e, IBV_QPS_RESET);
		return;
	}
	to_rtr(e, &ah);
	to_rts(e);
	if (e->test->type == IBV_QPT_UD) {
		e->ah = ibv_create_ah(e->rig->pd, &ah);
		if (!e->ah)
			errors_die("ibv_create_ah");
	}
	if (e->rig->server && e->test->dest == TO_ERR)
		end_modify(e, IBV_QPS_ERR);
}

void end_modify(struct end *e, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	errno = ibv_modify_qp(e->qp, &attr, IBV_QP_STATE);
	if (errno)
		errors_die("modify QP");
}
