// SPDX-License-Identifier: GPL-2.0
/* What an end sees of a case, as text. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "verbs_errors.h"

#define AWAIT_MS 2000

static void __attribute__((format(printf, 2, 3)))
append(char text[TEXT], const char *format, ...)
{
	size_t at = strlen(text);
	va_list ap;

	va_start(ap, format);
	vsnprintf(text + at, TEXT - at, format, ap);
	va_end(ap);
}

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

static void collect_cq(struct end *e, struct ibv_cq *cq, char text[TEXT])
{
	struct ibv_wc wc;

	/* what stands in a CQ that overran is not defined */
	if (e->rig->server ? e->test->small_recv_cq && cq == e->recv_cq
			   : e->test->small_cq && cq == e->send_cq)
		return;
	while (ibv_poll_cq(cq, 1, &wc) == 1) {
		append(text, "%s%llu:%s", *text ? " " : "",
		       (unsigned long long)wc.wr_id,
		       NAME(status_names, wc.status));
		if (wc.qp_num != e->qp->qp_num)
			append(text, "(QPN %u)", wc.qp_num);
		if (wc.status == IBV_WC_SUCCESS && cq == e->recv_cq)
			append(text, "(%u%s)", wc.byte_len,
			       wc.wc_flags & IBV_WC_WITH_IMM ? "i" : "");
	}
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

static void collect_events(struct end *e)
{
	struct ibv_context *ctx = e->rig->v.context;
	struct pollfd p = { .fd = ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	while (poll(&p, 1, 0) == 1 && !ibv_get_async_event(ctx, &event)) {
		add_event(e, &event);
		ibv_ack_async_event(&event);
	}
}

static void collect_channel(struct end *e)
{
	struct pollfd p = { .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (!e->channel)
		return;
	p.fd = e->channel->fd;
	if (poll(&p, 1, 0) != 1)
		return;
	if (ibv_get_cq_event(e->channel, &cq, &context))
		errors_die("ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	append(e->events, " COMP");
}

void end_collect(struct end *e)
{
	collect_cq(e, e->send_cq, e->sends);
	collect_cq(e, e->recv_cq, e->recvs);
	collect_events(e);
	collect_channel(e);
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
	for (int i = 0; i < AWAIT_MS * errors_factor && state_of(e) != state;
	     i++) {
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
