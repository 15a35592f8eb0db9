// SPDX-License-Identifier: GPL-2.0
/*
 * A QP in SQD sends nothing new. What was posted there, or is to be sent again
 * after a STOP, is sent in RTS.
 */
#include <unistd.h>

#include "migr_fuzz.h"

#define PSN 0xfffff0
#define RNR_US 200000 /* some hundred times that of the responder */
#define LOOK_US 50000 /* the driver's worker finds nothing that it may send */

static int change(struct side *s, enum ibv_qp_state state)
{
	struct ibv_qp_attr a = { .qp_state = state };

	return ibv_modify_qp(s->qp[0], &a, IBV_QP_STATE);
}

/* nothing has been sent yet, nor has anything been said to be */
static void look(struct side *s, struct side *peer)
{
	usleep(LOOK_US);
	MUST(!qp_polled(peer) && !qp_polled(s));
}

/* not before the queue is drained */
static void to_rts(struct side *s)
{
	double end = fuzz_now() + 20;

	while (change(s, IBV_QPS_RTS))
		MUST(fuzz_now() < end);
}

void attack_sqd(struct rig *rig)
{
	struct rxe_migr_status st;
	struct side s = {}, peer = {};

	side_open(rig, &s);
	side_open(rig, &peer);
	qp_connect(rig, s.qp[0], peer.qp[0]->qp_num, PSN, PSN);
	qp_connect(rig, peer.qp[0], s.qp[0]->qp_num, PSN, PSN);

	MUST(!change(&s, IBV_QPS_SQD));
	MUST(!qp_post_recv(&peer, 0) && !qp_post_send(&s, 0));
	look(&s, &peer);
	to_rts(&s);
	side_wait(&s, 1);
	side_wait(&peer, 1);

	MUST(!qp_post_send(&s, 0));
	usleep(RNR_US); /* it is refused, and so outstanding */
	MUST(!change(&s, IBV_QPS_SQD));
	EXPECT(migr_cmd_stop(s.ctx->cmd_fd, 0, 0, &st), 0);
	close(st.guard_fd);
	MUST(!qp_post_recv(&peer, 0));
	look(&s, &peer);
	to_rts(&s);
	side_wait(&s, 1);
	side_wait(&peer, 1);

	side_close(&s);
	side_close(&peer);
}
