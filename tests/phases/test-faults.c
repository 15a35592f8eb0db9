// SPDX-License-Identifier: GPL-2.0
/*
 * The checks of phase_mix are awake: over a NIC without mistakes its lanes pass, and each
 * mistake that this one can make, once and in a lane of each kind, is seen and named. Each
 * end is a thread, as a phase waits for what the other end sends.
 */
#include <pthread.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "pattern.h"
#include "phases.h"

#define LANES 3
#define ROUNDS (4 * PHASES)
#define HASTE 200 /* how much faster time goes for who waits in vain */

enum {
	PLAIN = 1,
	EXTENDED = 2,
	OVERRUN = 4,
	ROOMY = PLAIN | EXTENDED, /* no overrun */
	ALL = ROOMY | OVERRUN,
};

enum fault {
	NONE,
	RECV_LOST,
	SEND_LOST,
	FLUSH_LOST,
	TWICE,
	FLUSH_TWICE,
	SWAPPED,
	OLD_LIFE,
	STATUS,
	QPN,
	OPCODE,
	NO_IMM,
	IMM,
	LENGTH,
	BYTE,
	BEYOND,
	NOT_WRITTEN,
	READ_BYTE,
	NOT_DRAINED,
	DRAINED_TWICE,
	OVERRUN_UNASKED,
	OVERRUN_UNTOLD,
	NOT_RESIZED,
	STATE,
	DEST_QPN,
	DGID,
};

static const struct test {
	enum fault fault;
	unsigned int lanes;
	const char *expected;
} tests[] = {
	{ NONE, PLAIN, NULL },
	{ RECV_LOST, PLAIN, "what has completed" },
	{ SEND_LOST, PLAIN, "what has completed" },
	{ FLUSH_LOST, PLAIN, "what has completed" },
	{ TWICE, ALL, "a completion that is not due" },
	{ FLUSH_TWICE, ROOMY, "a completion that is not due" },
	{ SWAPPED, ALL, "what should come later" },
	{ OLD_LIFE, ALL, "wr_id" },
	{ STATUS, ALL, "status" },
	{ QPN, ALL, "qp_num" },
	{ OPCODE, ALL, "opcode" },
	{ NO_IMM, ALL, "immediate is" },
	{ IMM, ALL, "immediate data" },
	{ LENGTH, ALL, "byte_len" },
	{ BYTE, ALL, "the first wrong byte" },
	{ BEYOND, ALL, "the first byte behind it" },
	{ NOT_WRITTEN, ALL, "the first wrong byte" },
	{ READ_BYTE, ALL, "the first wrong byte" },
	{ NOT_DRAINED, ALL, "a completion that is not due" },
	{ DRAINED_TWICE, ALL, "drained once more" },
	{ OVERRUN_UNASKED, ROOMY, "may overrun" },
	{ OVERRUN_UNTOLD, OVERRUN, "completions and overruns" },
	{ NOT_RESIZED, ALL, "cqe" },
	{ STATE, ALL, "state" },
	{ DEST_QPN, ALL, "dest_qp_num" },
	{ DGID, ALL, "dgid" },
};

/* ---- the NIC: all of it under one lock ---- */

#define DEPTH 8 /* of a queue, and twice that of the events */

struct request {
	uint64_t wr_id, remote;
	enum ibv_wr_opcode opcode;
	char *at;
	uint32_t imm;
};

struct queue {
	struct request r[DEPTH];
	unsigned int head, tail;
};

struct nic_cq {
	struct ibv_cq_ex ex; /* which is an ibv_cq, too */
	struct ibv_wc wc[2 * MANY], read, held;
	unsigned int head, tail;
	bool holds;
};

struct nic_end;
struct nic_qp {
	struct ibv_qp qp;
	struct nic_end *end;
	struct nic_qp *peer;
	struct nic_cq *cq;
	enum ibv_qp_state state;
	uint32_t dest_qpn;
	union ibv_gid dgid;
	struct queue rq, sq;
};

struct nic_end {
	struct ibv_context context;
	struct ibv_pd pd;
	struct ibv_mr mr;
	struct ibv_mw mw[LANES];
	struct nic_qp qp[LANES];
	struct nic_cq cq[LANES];
	struct ibv_async_event event[2 * DEPTH];
	unsigned int head, tail;
	char mem[LANES][SLOTS * SLOT];
};

static struct nic_end nic[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct test *test;
static unsigned int victim, made;

static bool mistake(enum fault fault, const struct nic_qp *q)
{
	if (fault != test->fault || q != &q->end->qp[victim] || made)
		return false;
	made++;
	return true;
}

static void tell(struct nic_end *e, struct ibv_async_event event)
{
	const uint64_t one = 1;

	MUST(e->tail - e->head < 2 * DEPTH);
	e->event[e->tail++ % (2 * DEPTH)] = event;
	MUST(write(e->context.async_fd, &one, sizeof(one)) == sizeof(one));
}

static void push(struct nic_qp *q, const struct ibv_wc *wc)
{
	struct nic_cq *cq = q->cq;
	const struct ibv_async_event overrun = {
		.element.cq = ibv_cq_ex_to_cq(&cq->ex),
		.event_type = IBV_EVENT_CQ_ERR,
	};

	if (cq->tail - cq->head < (unsigned int)cq->ex.cqe)
		cq->wc[cq->tail++ % (2 * MANY)] = *wc;
	else if (!mistake(OVERRUN_UNTOLD, q))
		tell(q->end, overrun);
	if (mistake(OVERRUN_UNASKED, q))
		tell(q->end, overrun);
}

static void flushed(struct nic_qp *q, struct queue *from)
{
	while (from->head != from->tail) {
		const struct request *r = &from->r[from->head++ % DEPTH];
		const struct ibv_wc wc = { .wr_id = r->wr_id,
					   .status = IBV_WC_WR_FLUSH_ERR,
					   .qp_num = q->qp.qp_num };

		if (mistake(FLUSH_LOST, q))
			continue;
		push(q, &wc);
		if (mistake(FLUSH_TWICE, q))
			push(q, &wc);
	}
}

static void done(struct nic_qp *q, const struct request *r,
		 enum ibv_wc_opcode opcode, uint32_t imm)
{
	struct ibv_wc wc = { .wr_id = r->wr_id,
			     .opcode = opcode,
			     .qp_num = q->qp.qp_num,
			     .byte_len = MSG };

	if (opcode == IBV_WC_RECV) {
		wc.wc_flags = mistake(NO_IMM, q) ? 0 : IBV_WC_WITH_IMM;
		wc.imm_data = mistake(IMM, q) ? ~imm : imm;
		wc.byte_len -= mistake(LENGTH, q);
	}
	if (mistake(OLD_LIFE, q))
		wc.wr_id -= 1 << 8;
	if (mistake(STATUS, q))
		wc.status = IBV_WC_GENERAL_ERR;
	if (mistake(QPN, q))
		wc.qp_num++;
	if (mistake(OPCODE, q))
		wc.opcode = IBV_WC_FETCH_ADD;
	if (mistake(opcode == IBV_WC_RECV ? RECV_LOST : SEND_LOST, q))
		return;
	if (opcode == IBV_WC_RDMA_WRITE && mistake(SWAPPED, q)) {
		q->cq->held = wc;
		q->cq->holds = true;
		return;
	}
	push(q, &wc);
	if (opcode != IBV_WC_RECV && q->cq->holds) {
		q->cq->holds = false;
		push(q, &q->cq->held);
	}
	if (mistake(TWICE, q))
		push(q, &wc);
}

static bool can_receive(const struct nic_qp *q)
{
	return q->state == IBV_QPS_RTR || q->state == IBV_QPS_RTS ||
	       q->state == IBV_QPS_SQD;
}

/* false: not yet */
static bool sent(struct nic_qp *q, const struct request *w)
{
	struct nic_qp *peer = q->peer;
	struct request *r = &peer->rq.r[peer->rq.head % DEPTH];
	char *remote = (char *)(uintptr_t)w->remote;

	if (w->opcode == IBV_WR_BIND_MW) {
		done(q, w, IBV_WC_BIND_MW, 0);
		return true;
	}
	if (!can_receive(peer))
		return false;
	if (w->opcode == IBV_WR_RDMA_WRITE) {
		if (!mistake(NOT_WRITTEN, q))
			memcpy(remote, w->at, MSG);
		done(q, w, IBV_WC_RDMA_WRITE, 0);
		return true;
	}
	if (w->opcode == IBV_WR_RDMA_READ) {
		memcpy(w->at, remote, MSG);
		w->at[MSG - 1] ^= mistake(READ_BYTE, q);
		done(q, w, IBV_WC_RDMA_READ, 0);
		return true;
	}
	if (peer->rq.head == peer->rq.tail)
		return false;
	peer->rq.head++;
	memcpy(r->at, w->at, MSG);
	r->at[MSG / 2] ^= mistake(BYTE, q);
	r->at[MSG] ^= mistake(BEYOND, q);
	done(peer, r, IBV_WC_RECV, w->imm);
	done(q, w, IBV_WC_SEND, 0);
	return true;
}

static void go_on(struct nic_qp *q)
{
	if (q->state == IBV_QPS_ERR) {
		flushed(q, &q->rq);
		flushed(q, &q->sq);
	}
	while (q->sq.head != q->sq.tail &&
	       (q->state == IBV_QPS_RTS ||
		(q->state == IBV_QPS_SQD && mistake(NOT_DRAINED, q))) &&
	       sent(q, &q->sq.r[q->sq.head % DEPTH]))
		q->sq.head++;
}

static int put(struct nic_qp *q, struct queue *to, struct request r)
{
	MUST(to->tail - to->head < DEPTH);
	to->r[to->tail++ % DEPTH] = r;
	go_on(q);
	go_on(q->peer);
	return 0;
}

/* ---- what the lanes call ---- */

static struct nic_qp *of(struct ibv_qp *qp)
{
	return (struct nic_qp *)qp;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		     struct ibv_send_wr **bad)
{
	(void)bad;
	pthread_mutex_lock(&lock);
	put(of(qp), &of(qp)->sq,
	    (struct request){ .wr_id = wr->wr_id,
			      .remote = wr->wr.rdma.remote_addr,
			      .opcode = wr->opcode,
			      .at = (char *)(uintptr_t)wr->sg_list->addr,
			      .imm = wr->imm_data });
	pthread_mutex_unlock(&lock);
	return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad)
{
	(void)bad;
	pthread_mutex_lock(&lock);
	put(of(qp), &of(qp)->rq,
	    (struct request){ .wr_id = wr->wr_id,
			      .at = (char *)(uintptr_t)wr->sg_list->addr });
	pthread_mutex_unlock(&lock);
	return 0;
}

static int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *b)
{
	pthread_mutex_lock(&lock);
	mw->rkey++;
	put(of(qp), &of(qp)->sq,
	    (struct request){ .wr_id = b->wr_id, .opcode = IBV_WR_BIND_MW });
	pthread_mutex_unlock(&lock);
	return 0;
}

static int poll_cq(struct ibv_cq *c, int n, struct ibv_wc *wc)
{
	struct nic_cq *cq = (struct nic_cq *)c;
	int found;

	MUST(n == 1);
	pthread_mutex_lock(&lock);
	found = cq->head != cq->tail;
	if (found)
		*wc = cq->wc[cq->head++ % (2 * MANY)];
	pthread_mutex_unlock(&lock);
	return found;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct nic_cq *cq = (struct nic_cq *)ex;

	(void)attr;
	if (!poll_cq(ibv_cq_ex_to_cq(ex), 1, &cq->read))
		return ENOENT;
	ex->wr_id = cq->read.wr_id;
	ex->status = cq->read.status;
	return 0;
}

static void end_poll(struct ibv_cq_ex *ex)
{
	(void)ex;
}

#define READS(type, field)                                      \
	static type read_##field(struct ibv_cq_ex *ex)          \
	{                                                       \
		return (type)((struct nic_cq *)ex)->read.field; \
	}
READS(enum ibv_wc_opcode, opcode)
READS(uint32_t, byte_len)
READS(uint32_t, imm_data)
READS(uint32_t, qp_num)
READS(unsigned int, wc_flags)

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	struct nic_cq *c = (struct nic_cq *)cq;

	pthread_mutex_lock(&lock);
	if (!mistake(NOT_RESIZED,
		     &nic[c >= nic[1].cq].qp[c - nic[c >= nic[1].cq].cq]))
		cq->cqe = cqe;
	pthread_mutex_unlock(&lock);
	return 0;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct nic_qp *q = of(qp);
	const struct ibv_async_event drained = { .element.qp = qp,
						 .event_type =
							 IBV_EVENT_SQ_DRAINED };

	pthread_mutex_lock(&lock);
	q->state = attr->qp_state;
	if (mask & IBV_QP_AV)
		q->dgid = attr->ah_attr.grh.dgid;
	if (mask & IBV_QP_DEST_QPN)
		q->dest_qpn = attr->dest_qp_num;
	if (q->state == IBV_QPS_RESET)
		memset(&q->rq, 0, sizeof(q->rq));
	if (q->state == IBV_QPS_SQD) {
		MUST(q->sq.head == q->sq.tail);
		tell(q->end, drained);
		if (mistake(DRAINED_TWICE, q))
			tell(q->end, drained);
	}
	go_on(q);
	go_on(q->peer);
	pthread_mutex_unlock(&lock);
	return 0;
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	struct nic_qp *q = of(qp);

	(void)mask, (void)init;
	pthread_mutex_lock(&lock);
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = mistake(STATE, q) ? IBV_QPS_SQE : q->state;
	attr->dest_qp_num = q->dest_qpn;
	attr->ah_attr.grh.dgid = q->dgid;
	if (can_receive(q)) {
		attr->dest_qp_num += mistake(DEST_QPN, q);
		attr->ah_attr.grh.dgid.raw[15] += mistake(DGID, q);
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

int ibv_get_async_event(struct ibv_context *context,
			struct ibv_async_event *event)
{
	struct nic_end *e = (struct nic_end *)context;
	uint64_t one;

	MUST(read(context->async_fd, &one, sizeof(one)) == sizeof(one));
	pthread_mutex_lock(&lock);
	*event = e->event[e->head++ % (2 * DEPTH)];
	pthread_mutex_unlock(&lock);
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	(void)event;
}

/* ---- both ends ---- */

static struct phases ends[2];
static pthread_barrier_t meeting;

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return ((double)t.tv_sec + (double)t.tv_nsec / 1e9) * HASTE;
}

static void nic_start(unsigned int side)
{
	struct nic_end *e = &nic[side];

	memset(e, 0, sizeof(*e));
	e->context.ops.post_send = post_send;
	e->context.ops.post_recv = post_recv;
	e->context.ops.poll_cq = poll_cq;
	e->context.ops.bind_mw = bind_mw;
	MUST((e->context.async_fd = eventfd(0, EFD_SEMAPHORE)) >= 0);
	e->mr.pd = &e->pd;
	for (unsigned int i = 0; i < LANES; i++) {
		struct ibv_cq_ex *ex = &e->cq[i].ex;

		ex->context = &e->context;
		ex->start_poll = start_poll;
		ex->end_poll = end_poll;
		ex->read_opcode = read_opcode;
		ex->read_byte_len = read_byte_len;
		ex->read_imm_data = read_imm_data;
		ex->read_qp_num = read_qp_num;
		ex->read_wc_flags = read_wc_flags;
		e->mw[i] = (struct ibv_mw){ .context = &e->context,
					    .pd = &e->pd,
					    .type = IBV_MW_TYPE_1 };
		e->qp[i].qp.context = &e->context;
		e->qp[i].qp.qp_num = 0x11 + 0x10 * side + i;
		e->qp[i].end = e;
		e->qp[i].peer = &nic[!side].qp[i];
		e->qp[i].cq = &e->cq[i];
	}
}

static void end_start(unsigned int side)
{
	struct phases *p = &ends[side];

	*p = (struct phases){ .verdict = VERDICT_INIT,
			      .v.context = &nic[side].context,
			      .server = side,
			      .lanes = LANES,
			      .peer.raw[15] = 2 };
	for (unsigned int i = 0; i < LANES; i++)
		p->lane[i] = (struct lane){
			.qp = &nic[side].qp[i].qp,
			.cq = ibv_cq_ex_to_cq(&nic[side].cq[i].ex),
			.cq_ex =
				1 << i == EXTENDED ? &nic[side].cq[i].ex : NULL,
			.overruns = 1 << i == OVERRUN,
			.mw = &nic[side].mw[i],
			.mr = &nic[side].mr,
			.mem = nic[side].mem[i],
			.kind = "fake",
			.qpn = nic[side].qp[i].qp.qp_num,
			.peer_qpn = nic[!side].qp[i].qp.qp_num,
			.peer_addr = (uintptr_t)nic[!side].mem[i],
			.key = { key_of(7, 2 * i), key_of(7, 2 * i + 1) },
			.phase = POLLED,
		};
}

/* who finds something ends both */
static void *end_run(void *arg)
{
	struct phases *p = arg, *other = &ends[!p->server];

	for (p->rounds = 0; p->rounds < ROUNDS; p->rounds++) {
		pthread_barrier_wait(&meeting);
		if (verdict_fatal(&p->verdict))
			break;
		for (unsigned int i = 0; i < LANES; i++)
			p->lane[i].peer_rkey = other->lane[i].mw->rkey;
		pthread_barrier_wait(&meeting);
		for (unsigned int i = 0; i < LANES; i++)
			if (p->lane[i].life || (p->rounds + i) % PHASES == 0)
				lane_next(p, &p->lane[i]);
		if (verdict_fatal(&p->verdict))
			violation_fatal(&other->verdict, "the other one ended");
	}
	return NULL;
}

static void try(unsigned int lane)
{
	pthread_t thread;
	bool ok = true;

	victim = lane;
	made = 0;
	for (unsigned int side = 0; side < 2; side++) {
		nic_start(side);
		end_start(side);
	}
	MUST(!pthread_barrier_init(&meeting, NULL, 2));
	MUST(!pthread_create(&thread, NULL, end_run, &ends[1]));
	end_run(&ends[0]);
	MUST(!pthread_join(thread, NULL));
	pthread_barrier_destroy(&meeting);
	for (unsigned int side = 0; side < 2; side++)
		MUST(!close(nic[side].context.async_fd));

	if (test->expected)
		ok = made && (strstr(ends[0].verdict.text[0], test->expected) ||
			      strstr(ends[1].verdict.text[0], test->expected));
	for (unsigned int side = 0; side < 2 && !test->expected; side++)
		ok &= !ends[side].verdict.count && ends[side].overruns &&
		      ends[side].lives > LANES;
	printf("%-4s fault %u, lane %u: %s; %s\n", ok ? "ok" : "FAIL",
	       test->fault, lane, ends[0].verdict.text[0],
	       ends[1].verdict.text[0]);
	CHECK(ok);
}

int main(void)
{
	for (test = tests; test < tests + sizeof(tests) / sizeof(*tests);
	     test++)
		for (unsigned int lane = 0; lane < LANES; lane++)
			if (test->lanes & 1 << lane)
				try(lane);
	return check_result();
}
