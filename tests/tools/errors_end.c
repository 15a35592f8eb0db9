// SPDX-License-Identifier: GPL-2.0
/* One end of a case: its queues, how they connect, and what came of it. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../mix/conn.h"
#include "verbs_errors.h"

#define DEPTH 16
#define AWAIT_MS 2000
#define PEER_SECONDS 120

static void __attribute__((format(printf, 2, 3)))
append(char text[TEXT], const char *format, ...)
{
	size_t at = strlen(text);
	va_list ap;

	va_start(ap, format);
	vsnprintf(text + at, TEXT - at, format, ap);
	va_end(ap);
}

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

void end_create(struct end *e, struct rig *rig, const struct test *t)
{
	struct ibv_qp_init_attr init = {
		.qp_type = t->type,
		.cap = { .max_send_wr = DEPTH,
			 .max_recv_wr = DEPTH,
			 .max_send_sge = 2,
			 .max_recv_sge = 2,
			 .max_inline_data = MSG },
	};

	memset(e, 0, sizeof(*e));
	e->rig = rig;
	e->test = t;
	e->send_cq = ibv_create_cq(rig->v.context,
				   t->small_cq && !rig->server ? 1 : DEPTH,
				   NULL, NULL, 0);
	e->recv_cq = ibv_create_cq(rig->v.context,
				   t->small_recv_cq && rig->server ? 1 : DEPTH,
				   NULL, NULL, 0);
	if (!e->send_cq || !e->recv_cq)
		errors_die("ibv_create_cq");
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
	    ibv_destroy_cq(e->recv_cq))
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
	    conn_recv(rig->fd, w, WORDS, PEER_SECONDS))
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

/* ---- what came ---- */

static const char *const status_names[] = {
#define STATUS(name) [IBV_WC_##name] = #name
	[IBV_WC_SUCCESS] = "ok",   [IBV_WC_WR_FLUSH_ERR] = "flush",
	STATUS(LOC_LEN_ERR),	   STATUS(LOC_QP_OP_ERR),
	STATUS(LOC_EEC_OP_ERR),	   STATUS(LOC_PROT_ERR),
	STATUS(MW_BIND_ERR),	   STATUS(BAD_RESP_ERR),
	STATUS(LOC_ACCESS_ERR),	   STATUS(REM_INV_REQ_ERR),
	STATUS(REM_ACCESS_ERR),	   STATUS(REM_OP_ERR),
	STATUS(RETRY_EXC_ERR),	   STATUS(RNR_RETRY_EXC_ERR),
	STATUS(LOC_RDD_VIOL_ERR),  STATUS(REM_INV_RD_REQ_ERR),
	STATUS(REM_ABORT_ERR),	   STATUS(INV_EECN_ERR),
	STATUS(INV_EEC_STATE_ERR), STATUS(FATAL_ERR),
	STATUS(RESP_TIMEOUT_ERR),  STATUS(GENERAL_ERR),
};

static const char *const event_names[] = {
#define EVENT(name) [IBV_EVENT_##name] = #name
	EVENT(CQ_ERR),
	EVENT(QP_FATAL),
	EVENT(QP_REQ_ERR),
	EVENT(QP_ACCESS_ERR),
	EVENT(COMM_EST),
	EVENT(SQ_DRAINED),
	EVENT(SRQ_ERR),
	EVENT(SRQ_LIMIT_REACHED),
	EVENT(QP_LAST_WQE_REACHED),
};

static const char *name_of(const char *const *names, size_t count, int n)
{
	return n >= 0 && (size_t)n < count && names[n] ? names[n] : "unknown";
}

#define NAME(names, n) name_of(names, sizeof(names) / sizeof(*(names)), n)

static bool collect_cq(struct end *e, struct ibv_cq *cq, char text[TEXT])
{
	struct ibv_wc wc;
	bool some = false;

	/* what stands in a CQ that overran is not defined */
	if (e->rig->server ? e->test->small_recv_cq && cq == e->recv_cq
			   : e->test->small_cq && cq == e->send_cq)
		return false;
	while (ibv_poll_cq(cq, 1, &wc) == 1) {
		some = true;
		append(text, "%s%llu:%s", *text ? " " : "",
		       (unsigned long long)wc.wr_id,
		       NAME(status_names, wc.status));
		if (wc.qp_num != e->qp->qp_num)
			append(text, "(QPN %u)", wc.qp_num);
		if (wc.status == IBV_WC_SUCCESS && cq == e->recv_cq)
			append(text, "(%u%s)", wc.byte_len,
			       wc.wc_flags & IBV_WC_WITH_IMM ? "i" : "");
	}
	return some;
}

static bool is_mine(const struct end *e, const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
		return event->element.cq == e->send_cq ||
		       event->element.cq == e->recv_cq;
	case IBV_EVENT_SRQ_LIMIT_REACHED:
	case IBV_EVENT_SRQ_ERR:
		return event->element.srq == e->srq;
	default:
		return event->element.qp == e->qp;
	}
}

/* An event that comes again gets a "+", however often. */
static void add_event(struct end *e, const struct ibv_async_event *event)
{
	const char *name = NAME(event_names, event->event_type);
	char *last = strrchr(e->events, ' ');

	if (!is_mine(e, event))
		append(e->events, " %s(of another)", name);
	else if (!last || strncmp(last + 1, name, strlen(name)))
		append(e->events, " %s", name);
	else if (last[1 + strlen(name)] != '+')
		append(e->events, "+");
}

static bool collect_events(struct end *e)
{
	struct ibv_context *ctx = e->rig->v.context;
	struct pollfd p = { .fd = ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;
	bool some = false;

	while (poll(&p, 1, 0) == 1 && !ibv_get_async_event(ctx, &event)) {
		some = true;
		add_event(e, &event);
		ibv_ack_async_event(&event);
	}
	return some;
}

bool end_collect(struct end *e)
{
	/* not ||: all of them */
	return collect_cq(e, e->send_cq, e->sends) |
	       collect_cq(e, e->recv_cq, e->recvs) | collect_events(e);
}

static enum ibv_qp_state state_of(struct end *e)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	errno = ibv_query_qp(e->qp, &attr, IBV_QP_STATE, &init);
	if (errno)
		errors_die("ibv_query_qp");
	return attr.qp_state;
}

bool end_await(struct end *e, enum ibv_qp_state state)
{
	for (int i = 0; i < AWAIT_MS && state_of(e) != state; i++) {
		if (state_of(e) == IBV_QPS_ERR)
			return false;
		usleep(1000);
	}
	return state_of(e) == state;
}

void end_text(struct end *e, char text[TEXT])
{
	static const char *const states[] = { "RESET", "INIT", "RTR", "RTS",
					      "SQD",   "SQE",  "ERR" };

	*text = 0;
	append(text, "%sS[%s] R[%s] %s%s", e->posting, e->sends, e->recvs,
	       NAME(states, (int)state_of(e)), e->events);
}
