// SPDX-License-Identifier: GPL-2.0
/*
 * A restored context of which no peer wants to know: nobody acknowledges its
 * RESUME. It must not move on, and whatever comes in, it can be destroyed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

#include "migr_fuzz.h"
#include "migr_uverbs.h"

#define NOBODY 0x123456

static void must(struct copy *c, int ret)
{
	if (!ret)
		return;
	fprintf(stderr, "cannot restore: %s\n", c->err.text);
	exit(2);
}

/* who resumes signs for its connection, and for no other */
static void finds_another(struct rig *rig, struct copy *c)
{
	struct ib_uverbs_modify_qp in = {
		.qp_handle = rig->qp[0]->rec.handle,
		.dest_qp_num = rig->peer.qp[0]->qp_num,
		.dest = { .is_global = 1, .port_num = 1 },
	};
	const struct migr_write cmd = { .command = IB_USER_VERBS_CMD_MODIFY_QP,
					.in = &in,
					.in_length = sizeof(in) };

	memcpy(in.dest.dgid, rig->gid.raw, sizeof(in.dest.dgid));
	in.attr_mask = IBV_QP_DEST_QPN;
	EXPECT(migr_write_run(c->fd, &cmd), -EINVAL);
	in.attr_mask = IBV_QP_AV;
	EXPECT(migr_write_run(c->fd, &cmd), -EINVAL);
	in.attr_mask = IBV_QP_MIN_RNR_TIMER;
	EXPECT(migr_write_run(c->fd, &cmd), 0);
}

/* all that copy_create() makes, but with peers that are not there; started */
static void clone_open(struct rig *rig, struct copy *c)
{
	struct rxe_migr_rec_qp *rec[N_QPS];
	struct rxe_migr_status st;

	copy_open(rig, c);
	for (unsigned int i = 0; i < rig->img.count; i++)
		if (rig->img.records[i]->type != RXE_MIGR_QP &&
		    rig->img.records[i]->type != RXE_MIGR_ASYNC_FD)
			must(c, migr_create_object(&c->r, rig->img.records[i]));
	for (int i = 0; i < N_QPS; i++) {
		size_t length = rig->qp[i]->rec.length;

		MUST(rec[i] = malloc(length));
		memcpy(rec[i], rig->qp[i], length);
		rec[i]->dest_qpn = NOBODY;
		must(c, migr_create_object(&c->r, &rec[i]->rec));
		must(c, migr_connect_qp(&c->r, &rec[i]->rec));
		EXPECT(refill_as(rig, c->fd, UVERBS_OBJECT_QP,
				 rec[i]->rec.handle, rec[i], length),
		       0);
	}
	finds_another(rig, c);
	EXPECT(migr_cmd_attach(c->fd, &st), 0);
	EXPECT(migr_cmd_resume(c->fd, &st), 0);
	for (int i = 0; i < N_QPS; i++)
		free(rec[i]);
}

static void moves_on(struct rig *rig, struct copy *c)
{
	struct rxe_migr_status st;

	if (!EXPECT(migr_cmd_stop(c->fd, 0, 500, &st), -ETIMEDOUT))
		close(st.guard_fd);
	EXPECT(st.why, RXE_MIGR_WHY_SILENT);
	EXPECT((int)st.qpn == (int)rig->qp[0]->qpn ||
		       (int)st.qpn == (int)rig->qp[1]->qpn,
	       1);
}

/* a third QP sends to the peer, and the peer acknowledges that to the clone */
static void hears_responses(struct rig *rig)
{
	struct side third = {};
	double end = fuzz_now() + 20;

	side_open(rig, &third);
	qp_reset(rig->peer.qp[0]);
	while (qp_polled(&rig->peer))
		;
	qp_connect(rig, rig->peer.qp[0], rig->qp[0]->qpn, 1, 1);
	qp_connect(rig, third.qp[0], rig->peer.qp[0]->qp_num, 1, 1);
	MUST(!qp_post_recv(&rig->peer, 0));
	MUST(!qp_post_send(&third, 0));
	while (!qp_polled(&rig->peer))
		MUST(fuzz_now() < end);
	side_close(&third);
}

void attack_clones(struct rig *rig)
{
	struct copy c;
	double begin;

	clone_open(rig, &c);
	finds_another(rig, &c);
	moves_on(rig, &c);
	hears_responses(rig);
	begin = fuzz_now();
	copy_close(&c);
	EXPECT(fuzz_now() - begin < 20, 1);
}
