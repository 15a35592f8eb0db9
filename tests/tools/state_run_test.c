// SPDX-License-Identifier: GPL-2.0
/*
 * What becomes of a QP whose peer is Stopped: the module's own rxe_migr_state.c
 * with as much kernel around it as it needs.
 */
#include "../check.h"
#include "rxe.h"

#define FIRST 0x9ffffe /* oldest unacknowledged PSN */
#define END 0xa00008   /* next PSN to be sent */

unsigned long jiffies = 5000;
unsigned int stub_warnings;
static unsigned int paused, timed_out, fatal;

/* it takes the lock, and before that the QP must not be seen Running and well */
void rxe_qp_error(struct rxe_qp *qp)
{
	stub_warnings += qp->state_lock;
	CHECK(qp->attr.qp_state == IB_QPS_ERR);
	qp->attr.qp_state = IB_QPS_ERR;
}

/* what has been sent, in two messages, and one that waits */
static struct rxe_send_wqe wqes[4] = {
	{ END - 4, END - 1 }, { 0, 0 }, { 0, 0 }, { FIRST - 2, END - 5 }
};
static struct rxe_queue sq = { wqes, 3, 2, 3 };

static void note_event(struct ib_event *event, void *context)
{
	(void)context;
	fatal += event->event == IB_EVENT_QP_FATAL;
}

void rxe_migr_count(struct rxe_qp *qp, enum rxe_counters index)
{
	(void)qp;
	if (index == RXE_CNT_MIGR_PAUSED)
		paused++;
	else
		timed_out++;
}

void rxe_migr_schedule(struct rxe_migr_qp *m, unsigned int delay_ms)
{
	(void)m;
	(void)delay_ms;
}

void rxe_migr_purge(struct rxe_qp *qp, struct sk_buff_head *list)
{
	(void)qp;
	list->qlen = 0;
}

static struct rxe_migr_qp new_qp(void)
{
	struct rxe_migr_qp m = { 0 };

	m.qp.ibqp.qp_type = IB_QPT_RC;
	m.qp.attr.qp_state = IB_QPS_RTS;
	m.qp.attr.retry_cnt = 3;
	m.qp.comp.psn = FIRST;
	m.qp.req.psn = END;
	m.qp.sq.queue = &sq;
	m.qp.ibqp.event_handler = note_event;
	paused = timed_out = fatal = 0;
	return m;
}

static struct rxe_migr_qp trying_qp(void)
{
	struct rxe_migr_qp m = new_qp();

	rxe_migr_pause(&m.qp);
	CHECK(m.qp.migr == RXE_MIGR_PAUSED && paused == 1);
	rxe_migr_try(&m.qp);
	CHECK(m.qp.migr == RXE_MIGR_TRYING);
	CHECK(m.qp.req.need_retry && m.qp.comp.started_retry);
	CHECK(m.qp.comp.retry_cnt == 3);
	return m;
}

static bool ignored(struct rxe_migr_qp *m, u32 psn)
{
	struct rxe_pkt_info pkt = { psn };

	return rxe_migr_ignores(&m->qp, &pkt);
}

/* a late or forged response: the retries are spent, and nothing is lost */
static void tries_in_vain(void)
{
	struct rxe_migr_qp m = trying_qp();
	unsigned long since = m.since;

	jiffies += 1000;
	m.qp.req.psn = FIRST + 1; /* it has sent one packet again */
	CHECK(ignored(&m, FIRST - 1));
	CHECK(ignored(&m, END));
	CHECK(ignored(&m, 0xffffff) && ignored(&m, 0));
	CHECK(!ignored(&m, FIRST) && !ignored(&m, END - 1));
	m.qp.comp.psn = END; /* late, too: all of this was sent before */
	CHECK(rxe_migr_spares(&m.qp));
	CHECK(m.qp.migr == RXE_MIGR_PAUSED && paused == 2);
	CHECK(m.since == since);
	rxe_migr_try(&m.qp);
	CHECK(m.qp.migr == RXE_MIGR_TRYING && m.qp.comp.retry_cnt == 3);
}

/* an aborted migration: the peer acknowledges what is new */
static void heals(void)
{
	struct rxe_migr_qp m = trying_qp();

	m.qp.req.psn = END + 2;
	CHECK(!ignored(&m, END + 1));
	CHECK(m.qp.migr == RXE_MIGR_TRYING);
	m.qp.comp.psn = END + 1;
	CHECK(!rxe_migr_spares(&m.qp)); /* a dead peer is a dead peer */
	CHECK(!ignored(&m, 0));
	CHECK(m.qp.migr == RXE_MIGR_RUNNING);
	CHECK(!rxe_migr_spares(&m.qp));
}

/* it was just sending again when it was paused: proof is what it had never sent */
static void tries_again(void)
{
	struct rxe_migr_qp m = new_qp();

	m.qp.req.psn = FIRST + 1;
	rxe_migr_pause(&m.qp);
	rxe_migr_try(&m.qp);
	m.qp.comp.psn = END; /* late: it was sent before */
	CHECK(!ignored(&m, END - 1));
	CHECK(m.qp.migr == RXE_MIGR_TRYING && rxe_migr_spares(&m.qp));
	rxe_migr_try(&m.qp);
	m.qp.comp.psn = END + 1;
	CHECK(!ignored(&m, END));
	CHECK(m.qp.migr == RXE_MIGR_RUNNING);
}

/* what the timer and the peer do at the same time */
static void times_out(void)
{
	struct rxe_migr_qp m = trying_qp();

	jiffies += 601 * HZ;
	CHECK(!rxe_migr_timed_out(&m)); /* it tries, it does not wait */
	CHECK(m.qp.migr == RXE_MIGR_TRYING && !timed_out);
	CHECK(rxe_migr_spares(&m.qp));
	/* to the completer it would end the time-out */
	m.qp.resp_pkts.qlen = 1;
	CHECK(rxe_migr_timed_out(&m));
	CHECK(!m.qp.resp_pkts.qlen);
	CHECK(m.qp.migr == RXE_MIGR_RUNNING && timed_out == 1);
	CHECK(!m.qp.comp.retry_cnt && m.qp.comp.timeout);
	CHECK(!rxe_migr_spares(&m.qp));
	CHECK(!rxe_migr_timed_out(&m));
	CHECK(m.qp.attr.qp_state == IB_QPS_RTS && !fatal); /* the completer */
}

/* there is no work request whose completion could tell the application */
static void times_out_idle(void)
{
	struct rxe_migr_qp m = new_qp();

	m.qp.comp.psn = END;
	rxe_migr_pause(&m.qp);
	CHECK(!rxe_migr_timed_out(&m));
	jiffies += 601 * HZ;
	CHECK(rxe_migr_timed_out(&m));
	CHECK(m.qp.migr == RXE_MIGR_RUNNING && timed_out == 1);
	CHECK(m.qp.attr.qp_state == IB_QPS_ERR && fatal == 1);
	CHECK(!m.qp.comp.timeout);
}

/* RTR: nothing has been sent, whatever the PSNs of an earlier life say */
static void times_out_in_rtr(void)
{
	struct rxe_migr_qp m = new_qp();

	m.qp.attr.qp_state = IB_QPS_RTR;
	rxe_migr_stop(&m.qp);
	rxe_migr_run(&m.qp, RXE_MIGR_RESUMING);
	CHECK(!m.qp.comp.started_retry);
	jiffies += 601 * HZ;
	CHECK(rxe_migr_timed_out(&m));
	CHECK(m.qp.migr == RXE_MIGR_RUNNING && timed_out == 1);
	CHECK(m.qp.attr.qp_state == IB_QPS_ERR && fatal == 1);
	CHECK(!m.qp.comp.timeout);
}

/* it is told in RTR, and begins to wait in RTS */
static void pauses_in_rtr(void)
{
	struct rxe_migr_qp m = new_qp();

	m.qp.attr.qp_state = IB_QPS_RTR;
	rxe_migr_pause(&m.qp);
	CHECK(m.qp.migr == RXE_MIGR_PAUSED && paused == 1);
	jiffies += 601 * HZ;
	m.qp.attr.qp_state = IB_QPS_RTS;
	rxe_migr_wait_anew(&m.qp);
	CHECK(rxe_migr_due(&m) && !rxe_migr_timed_out(&m));
	jiffies += 601 * HZ;
	CHECK(rxe_migr_timed_out(&m));
}

static void stops(void)
{
	struct rxe_migr_qp m = trying_qp();

	rxe_migr_stop(&m.qp);
	rxe_migr_stop(&m.qp);
	CHECK(m.qp.migr == RXE_MIGR_STOPPED);
	rxe_migr_pause(&m.qp);
	rxe_migr_try(&m.qp);
	CHECK(m.qp.migr == RXE_MIGR_STOPPED);
	CHECK(rxe_migr_spares(&m.qp));
	rxe_migr_unstop(&m.qp);
	CHECK(m.qp.migr == RXE_MIGR_PAUSED);
	rxe_migr_run(&m.qp, RXE_MIGR_RUNNING); /* Paused is not left so */
	CHECK(m.qp.migr == RXE_MIGR_PAUSED);
	m.qp.attr.qp_state = IB_QPS_ERR;
	rxe_migr_change(&m.qp, RXE_MIGR_IN(PAUSED), RXE_MIGR_RUNNING);
	rxe_migr_pause(&m.qp);
	CHECK(m.qp.migr == RXE_MIGR_RUNNING);
}

/* NAK_STOPPED is signed by nobody: STOP has to ask whose peer never did */
static void pauses_unasked(void)
{
	struct rxe_migr_qp m = new_qp();

	m.peer = RXE_MIGR_PEER_ABSENT;
	rxe_migr_pause(&m.qp);
	CHECK(m.qp.migr == RXE_MIGR_PAUSED && m.peer == RXE_MIGR_PEER_UNKNOWN);
	m = new_qp();
	m.peer = RXE_MIGR_PEER_CAPABLE;
	rxe_migr_pause(&m.qp);
	CHECK(m.peer == RXE_MIGR_PEER_CAPABLE);
}

/* the first lost packet after a pause is one that is asked for again */
static void idles(void)
{
	struct rxe_migr_qp m = new_qp();

	m.qp.comp.psn = END;
	rxe_migr_pause(&m.qp);
	rxe_migr_try(&m.qp);
	CHECK(!m.qp.comp.started_retry);
	rxe_migr_stop(&m.qp);
	rxe_migr_unstop(&m.qp);
	rxe_migr_stop(&m.qp);
	rxe_migr_run(&m.qp, RXE_MIGR_RUNNING);
	CHECK(!m.qp.comp.started_retry);
}

/* what nobody acknowledges is not sent again: the requester goes on */
static void goes_on(enum ib_qp_type type)
{
	struct rxe_migr_qp m = new_qp();

	m.qp.ibqp.qp_type = type;
	rxe_migr_stop(&m.qp);
	rxe_migr_unstop(&m.qp);
	CHECK(m.qp.migr == RXE_MIGR_RUNNING);
	CHECK(!m.qp.req.need_retry && !m.qp.comp.started_retry);
	CHECK(m.qp.send_task && m.qp.recv_task);
}

int main(void)
{
	tries_in_vain();
	heals();
	tries_again();
	times_out();
	times_out_idle();
	times_out_in_rtr();
	pauses_in_rtr();
	stops();
	pauses_unasked();
	idles();
	goes_on(IB_QPT_UC);
	goes_on(IB_QPT_UD);
	CHECK(!stub_warnings);
	return check_result();
}
