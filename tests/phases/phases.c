// SPDX-License-Identifier: GPL-2.0
/* What phase_mix does with a lane in each phase, and what it finds there. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <poll.h>
#include <unistd.h>

#include "check.h"
#include "connect.h"
#include "pattern.h"
#include "phases.h"

#define EMPTY 0xee

static void wrong(struct phases *p, const struct lane *l, const char *what,
		  long found, long expected)
{
	violation_fatal(&p->verdict,
			"lane %td (%s, %s CQ), life %" PRIu64
			", after phase %d: %s is %ld, not %ld",
			l - p->lane, l->kind,
			l->cq_ex      ? "extended"
			: l->overruns ? "overrun"
				      : "plain",
			l->life, l->phase, what, found, expected);
}

static void must_be(struct phases *p, const struct lane *l, const char *what,
		    long found, long expected)
{
	if (found != expected)
		wrong(p, l, what, found, expected);
}

/* ---- completions ---- */

static const struct {
	enum ibv_wc_opcode opcode;
	enum ibv_wc_status status;
	bool imm;
} works[WORKS] = {
	[RECV1] = { IBV_WC_RECV, IBV_WC_SUCCESS, true },
	[RECV2] = { IBV_WC_RECV, IBV_WC_SUCCESS, true },
	[BIND] = { IBV_WC_BIND_MW, IBV_WC_SUCCESS, false },
	[SEND1] = { IBV_WC_SEND, IBV_WC_SUCCESS, false },
	[WRITE] = { IBV_WC_RDMA_WRITE, IBV_WC_SUCCESS, false },
	[SEND2] = { IBV_WC_SEND, IBV_WC_SUCCESS, false },
	[READ] = { IBV_WC_RDMA_READ, IBV_WC_SUCCESS, false },
	[FLUSHED_RECV1] = { 0, IBV_WC_WR_FLUSH_ERR, false },
	[FLUSHED_RECV2] = { 0, IBV_WC_WR_FLUSH_ERR, false },
	[FLUSHED_SEND] = { 0, IBV_WC_WR_FLUSH_ERR, false },
};

static uint64_t name_of(const struct lane *l, enum work work)
{
	return l->life << 8 | work;
}

static uint32_t imm_of(const struct lane *l, enum work work)
{
	return htonl(
		(uint32_t)(l->life << 8 | (work == RECV1 ? SEND1 : SEND2)));
}

/* is there one? An extended CQ says the same in other words. */
static bool poll_one(struct lane *l, struct ibv_wc *wc)
{
	struct ibv_poll_cq_attr attr = {};
	int ret;

	if (!l->cq_ex) {
		ret = ibv_poll_cq(l->cq, 1, wc);
		MUST(ret >= 0);
		return ret;
	}

	ret = ibv_start_poll(l->cq_ex, &attr);
	MUST(!ret || ret == ENOENT);
	if (ret)
		return false;
	memset(wc, 0, sizeof(*wc));
	wc->wr_id = l->cq_ex->wr_id;
	wc->status = l->cq_ex->status;
	wc->qp_num = ibv_wc_read_qp_num(l->cq_ex);
	if (wc->status == IBV_WC_SUCCESS) {
		wc->opcode = ibv_wc_read_opcode(l->cq_ex);
		wc->byte_len = ibv_wc_read_byte_len(l->cq_ex);
		wc->wc_flags = ibv_wc_read_wc_flags(l->cq_ex);
		wc->imm_data = ibv_wc_read_imm_data(l->cq_ex);
	}
	ibv_end_poll(l->cq_ex);
	return true;
}

/* each once, and each queue's in their order */
static void note(struct phases *p, struct lane *l, const struct ibv_wc *wc,
		 uint32_t allowed)
{
	enum work work = wc->wr_id & 0xff;
	uint32_t later;

	must_be(p, l, "wr_id", (long)(wc->wr_id >> 8), (long)l->life);
	if (work >= WORKS || !(allowed & ~l->seen & BIT(work))) {
		wrong(p, l, "a completion that is not due", work, allowed);
		return;
	}
	later = ~(BIT(work) - 1);
	if (work < FIRST_SENT)
		later &= BIT(FIRST_SENT) - 1;
	must_be(p, l, "what should come later", l->seen & later, 0);
	l->seen |= BIT(work);

	must_be(p, l, "status", wc->status, works[work].status);
	must_be(p, l, "qp_num", wc->qp_num, l->qpn);
	if (wc->status != IBV_WC_SUCCESS)
		return;
	must_be(p, l, "opcode", wc->opcode, works[work].opcode);
	if (works[work].imm) {
		must_be(p, l, "immediate", !!(wc->wc_flags & IBV_WC_WITH_IMM),
			true);
		must_be(p, l, "immediate data", wc->imm_data, imm_of(l, work));
		must_be(p, l, "byte_len", wc->byte_len, MSG);
	}
}

static bool poll_all(struct phases *p, struct lane *l, uint32_t allowed)
{
	struct ibv_wc wc;
	bool any = false;

	while (!verdict_fatal(&p->verdict) && poll_one(l, &wc)) {
		note(p, l, &wc, allowed);
		any = true;
	}
	return any;
}

/* until all of these have completed */
static void complete(struct phases *p, struct lane *l, uint32_t due)
{
	double end = now() + PATIENCE;

	while (!verdict_fatal(&p->verdict) && (l->seen & due) != due) {
		if (!poll_all(p, l, due))
			usleep(500);
		if (now() > end)
			wrong(p, l, "what has completed", l->seen, due);
	}
}

/* ---- what is posted ---- */

static void receive(struct lane *l, enum work work, enum part part)
{
	struct ibv_sge sge = { (uintptr_t)lane_slot(l, part), SLOT,
			       l->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = name_of(l, work),
				  .sg_list = &sge,
				  .num_sge = 1 };
	struct ibv_recv_wr *bad;

	memset(lane_slot(l, part), EMPTY, SLOT);
	MUST(!ibv_post_recv(l->qp, &wr, &bad));
}

static void post(struct lane *l, enum work work, enum ibv_wr_opcode opcode,
		 enum part part)
{
	struct ibv_sge sge = { (uintptr_t)lane_slot(l, part), MSG,
			       l->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = name_of(l, work),
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.imm_data = htonl((uint32_t)(l->life << 8 | work)),
	};
	struct ibv_send_wr *bad;

	if (opcode != IBV_WR_SEND_WITH_IMM) {
		wr.wr.rdma.remote_addr = l->peer_addr + WINDOW * SLOT;
		wr.wr.rdma.rkey = l->peer_rkey;
	}
	MUST(!ibv_post_send(l->qp, &wr, &bad));
}

static void bind_window(struct lane *l)
{
	struct ibv_mw_bind bind = {
		.wr_id = name_of(l, BIND),
		.bind_info = { .mr = l->mr,
			       .addr = (uintptr_t)lane_slot(l, WINDOW),
			       .length = SLOT,
			       .mw_access_flags = IBV_ACCESS_REMOTE_WRITE |
						  IBV_ACCESS_REMOTE_READ },
	};

	memset(lane_slot(l, WINDOW), EMPTY, SLOT);
	MUST(!ibv_bind_mw(l->qp, l->mw, &bind));
}

static uint64_t key(const struct lane *l, bool end, enum work work)
{
	return key_of(key_of(l->key[end], l->life), work);
}

static void fill(const struct phases *p, struct lane *l, enum work work)
{
	pattern_fill(lane_slot(l, SENT), key(l, p->server, work), 0, MSG);
}

/* a slot has this end's, or the other's, message, and nothing behind it */
static void holds(struct phases *p, struct lane *l, enum part part, bool end,
		  enum work work)
{
	const char *at = lane_slot(l, part);
	int rest = MSG;

	must_be(p, l, "the first wrong byte of a slot",
		pattern_check(at, key(l, end, work), 0, MSG), -1);
	while (rest < SLOT && at[rest] == (char)EMPTY)
		rest++;
	must_be(p, l, "the first byte behind it", rest, SLOT);
}

/* ---- the phases ---- */

static uint32_t psn(const struct lane *l, bool end)
{
	return (uint32_t)key_of(l->key[end], l->life) & 0xffffff;
}

static struct ibv_qp_attr attributes(const struct phases *p,
				     const struct lane *l)
{
	struct ibv_qp_attr a = rc_attr(&p->peer, p->v.gid_index, l->peer_qpn);

	a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	a.sq_psn = psn(l, p->server);
	a.rq_psn = psn(l, !p->server);
	return a;
}

static void modify(struct lane *l, enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr a = { .qp_state = state,
				 .port_num = 1,
				 .en_sqd_async_notify = 1 };

	MUST(!(errno = ibv_modify_qp(l->qp, &a, IBV_QP_STATE | mask)));
}

static void resize(struct phases *p, struct lane *l, int cqe)
{
	MUST(!(errno = ibv_resize_cq(l->cq, cqe)));
	must_be(p, l, "cqe", l->cq->cqe, cqe);
}

static void to_reset(struct phases *p, struct lane *l)
{
	modify(l, IBV_QPS_RESET, 0);
	l->life++;
	l->seen = 0;
	l->lost = 0;
	p->lives++;
	resize(p, l, l->life & 1 ? FEW : MANY);
}

static void to_init(struct phases *p, struct lane *l)
{
	(void)p;
	modify(l, IBV_QPS_INIT,
	       IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	receive(l, RECV1, RECEIVED1);
	receive(l, RECV2, RECEIVED2);
}

static void to_rtr(struct phases *p, struct lane *l)
{
	struct ibv_qp_attr a = attributes(p, l);

	MUST(!(errno = rc_to_rtr(l->qp, &a)));
}

static void to_rts(struct phases *p, struct lane *l)
{
	struct ibv_qp_attr a = attributes(p, l);

	MUST(!(errno = rc_to_rts(l->qp, &a)));
	bind_window(l);
	fill(p, l, SEND1);
	post(l, SEND1, IBV_WR_SEND_WITH_IMM, SENT);
	complete(p, l, BIT(BIND) | BIT(SEND1) | BIT(RECV1));
	holds(p, l, RECEIVED1, !p->server, SEND1);
}

static void to_sqd(struct phases *p, struct lane *l)
{
	l->drained = false;
	modify(l, IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY);
	fill(p, l, SEND2);
	post(l, WRITE, IBV_WR_RDMA_WRITE, SENT);
	post(l, SEND2, IBV_WR_SEND_WITH_IMM, SENT);
	memset(lane_slot(l, READ_BACK), EMPTY, SLOT);
	post(l, READ, IBV_WR_RDMA_READ, READ_BACK);
}

static bool is_of(const struct lane *l, const struct ibv_async_event *event)
{
	return event->event_type == IBV_EVENT_CQ_ERR
		       ? l->cq == event->element.cq
		       : l->qp == event->element.qp;
}

/* the next one, of whatever lane */
static void read_event(struct phases *p)
{
	struct ibv_async_event event;
	struct lane *of = p->lane;

	MUST(!ibv_get_async_event(p->v.context, &event));
	MUST(event.event_type == IBV_EVENT_CQ_ERR ||
	     event.event_type == IBV_EVENT_SQ_DRAINED);
	while (of < p->lane + p->lanes && !is_of(of, &event))
		of++;
	MUST(of < p->lane + p->lanes);
	if (event.event_type == IBV_EVENT_CQ_ERR) {
		must_be(p, of, "may overrun", of->overruns, true);
		of->lost++;
		p->overruns++;
	} else {
		must_be(p, of, "drained once more", of->drained, false);
		of->drained = true;
	}
	ibv_ack_async_event(&event);
}

static void to_rts_again(struct phases *p, struct lane *l)
{
	while (!l->drained && !verdict_fatal(&p->verdict))
		read_event(p);
	modify(l, IBV_QPS_RTS, 0);
	complete(p, l, BIT(WRITE) | BIT(SEND2) | BIT(READ) | BIT(RECV2));
	holds(p, l, RECEIVED2, !p->server, SEND2);
	holds(p, l, WINDOW, !p->server, SEND2);
	holds(p, l, READ_BACK, p->server, SEND2);
}

static void to_err(struct phases *p, struct lane *l)
{
	receive(l, FLUSHED_RECV1, RECEIVED1);
	/* of a queue rdma_rxe tells one overrun alone */
	if (l->overruns)
		resize(p, l, ONE);
	else
		receive(l, FLUSHED_RECV2, RECEIVED2);
	modify(l, IBV_QPS_ERR, 0);
	post(l, FLUSHED_SEND, IBV_WR_SEND_WITH_IMM, SENT);
}

#define FLUSHED (BIT(FLUSHED_RECV1) | BIT(FLUSHED_RECV2) | BIT(FLUSHED_SEND))

/* what there was no room for has an event instead */
static void complete_or_lose(struct phases *p, struct lane *l, uint32_t due)
{
	struct pollfd events = { .fd = p->v.context->async_fd,
				 .events = POLLIN };
	long all = __builtin_popcount(due);
	double end = now() + PATIENCE;
	long n;

	do {
		if (poll(&events, 1, 1) > 0)
			read_event(p);
		poll_all(p, l, due);
		n = __builtin_popcount(l->seen & due) + (long)l->lost;
	} while (n < all && now() < end && !verdict_fatal(&p->verdict));
	must_be(p, l, "completions and overruns", n, all);
}

static void poll_flushed(struct phases *p, struct lane *l)
{
	if (l->overruns)
		complete_or_lose(p, l, FLUSHED & ~BIT(FLUSHED_RECV2));
	else
		complete(p, l, FLUSHED);
}

/* how it comes to each phase, the state of that, and what may come in it unasked */
static const struct {
	void (*come)(struct phases *p, struct lane *l);
	enum ibv_qp_state state;
	uint32_t early;
} phase[PHASES] = {
	[RESET] = { to_reset, IBV_QPS_RESET, 0 },
	[INIT] = { to_init, IBV_QPS_INIT, 0 },
	[RTR] = { to_rtr, IBV_QPS_RTR, BIT(RECV1) },
	[RTS] = { to_rts, IBV_QPS_RTS, 0 },
	[SQD] = { to_sqd, IBV_QPS_SQD, BIT(RECV2) },
	[AGAIN] = { to_rts_again, IBV_QPS_RTS, 0 },
	[ERR] = { to_err, IBV_QPS_ERR, FLUSHED },
	[POLLED] = { poll_flushed, IBV_QPS_ERR, 0 },
};

static void check_state(struct phases *p, struct lane *l)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	MUST(!(errno = ibv_query_qp(l->qp, &a,
				    IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN,
				    &init)));
	must_be(p, l, "state", a.qp_state,
		l->life ? phase[l->phase].state : IBV_QPS_RESET);
	if (l->phase < RTR || l->phase > AGAIN)
		return;
	must_be(p, l, "dest_qp_num", a.dest_qp_num, l->peer_qpn);
	must_be(p, l, "dgid",
		memcmp(&a.ah_attr.grh.dgid, &p->peer, sizeof(p->peer)), 0);
}

void lane_next(struct phases *p, struct lane *l)
{
	check_state(p, l);
	poll_all(p, l, phase[l->phase].early);
	if (verdict_fatal(&p->verdict))
		return;
	l->phase = (l->phase + 1) % PHASES;
	phase[l->phase].come(p, l);
}
