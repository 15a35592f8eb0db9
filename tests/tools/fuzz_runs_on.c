// SPDX-License-Identifier: GPL-2.0
/*
 * Who runs on after a dump, or after a STOP: when its peer is away, or does not
 * answer, and what still reaches it.
 */
#include <unistd.h>

#include "migr_fuzz.h"

#define PSN 0xfffff0
#define RUN_ON_S 60 /* longer than an answer is waited for */

static void pair_open(struct rig *rig, struct side *a, struct side *b)
{
	side_open(rig, a);
	side_open(rig, b);
	qp_connect(rig, a->qp[0], b->qp[0]->qp_num, PSN, PSN);
	qp_connect(rig, b->qp[0], a->qp[0]->qp_num, PSN, PSN);
}

/* as long as it resumes it cannot be stopped */
static void wait_run_on(const struct side *s)
{
	double end = fuzz_now() + RUN_ON_S;
	struct rxe_migr_status st;

	while (migr_cmd_stop(s->ctx->cmd_fd, 0, 0, &st))
		MUST(fuzz_now() < end);
	close(st.guard_fd);
}

/* a request waits for the peer, and does not end */
static void waits(const struct rig *rig, struct side *s)
{
	MUST(!qp_post_send(s, 0));
	rig_wait_more(rig, "migr_probe_sent", 3);
	EXPECT(qp_polled(s), 0);
}

/*
 * The peer is Stopped when this side runs on, and then is gone; that of another one
 * does not listen until much later
 */
static void nobody_answers(struct rig *rig)
{
	struct side a = {}, b = {}, c = {}, d = {};
	int guard, peer;
	long acked;

	pair_open(rig, &a, &b);
	pair_open(rig, &c, &d);
	peer = side_stop(&b);
	guard = side_stop(&c);
	side_dump(&c);
	qp_reset(d.qp[0]);
	close(guard);
	side_runs_on(&a);
	side_close(&b);
	close(peer);

	wait_run_on(&a);
	waits(rig, &a);
	side_close(&a);

	/* and so has the other */
	rig_wait_more(rig, "migr_resume_sent", 2);
	acked = rig_counter(rig, "migr_resume_ack_rcvd");
	qp_connect(rig, d.qp[0], c.qp[0]->qp_num, PSN, PSN);
	rig_wait_for(rig, "migr_resume_ack_rcvd", acked + 1);
	MUST(!qp_post_recv(&d, 0) && !qp_post_send(&c, 0));
	side_wait(&c, 1);
	side_wait(&d, 1);
	side_close(&c);
	side_close(&d);
}

/* the peer says that it is Stopped while this side is, too, and then is gone */
static void heard_when_stopped(struct rig *rig)
{
	struct side a = {}, b = {};
	int guard, peer;
	long heard;

	pair_open(rig, &a, &b);
	heard = rig_counter(rig, "migr_nak_stopped_rcvd");
	guard = side_stop(&a);
	peer = side_stop(&b);
	/* each of the other */
	rig_wait_for(rig, "migr_nak_stopped_rcvd", heard + 2);
	side_close(&b);
	close(peer);
	close(guard);
	waits(rig, &a);
	side_close(&a);
}

void attack_runs_on(struct rig *rig)
{
	heard_when_stopped(rig);
	nobody_answers(rig);
}
