// SPDX-License-Identifier: GPL-2.0
/*
 * A peer that is not connected, or is nobody: the driver says so in its place, and the
 * QP is stopped, and runs on without it; and when it comes, it follows.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "../connect.h"
#include "migr_fuzz.h"

#define PSN 0xfffff0

static void end(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };

	MUST(!ibv_modify_qp(qp, &a, IBV_QP_STATE));
}

static void exchange(struct side *from, struct side *to)
{
	MUST(!qp_post_recv(to, 0) && !qp_post_send(from, 0));
	side_wait(from, 1);
	side_wait(to, 1);
}

static void open_pair(struct rig *rig, struct side *a, struct side *b)
{
	side_open(rig, a);
	side_open(rig, b);
	qp_connect(rig, a->qp[0], b->qp[0]->qp_num, PSN, PSN);
	qp_connect(rig, b->qp[0], a->qp[0]->qp_num, PSN, PSN);
	exchange(a, b);
}

/* what the image of a Stopped context says of the peer of this QP */
static int says(int fd, uint32_t qpn)
{
	const struct rxe_migr_rec_qp *rec;
	struct migr_image img;
	struct migr_error err;
	int absent = -1;
	size_t length;
	void *image;

	MUST(!migr_cmd_dump(fd, &image, &length, &err));
	MUST(!migr_image_parse(image, length, &img, &err));
	for (unsigned int i = 0; i < img.count; i++) {
		rec = (const void *)img.records[i];
		if (rec->rec.type == RXE_MIGR_QP && rec->qpn == qpn)
			absent = rec->peer_absent;
	}
	migr_image_free(&img);
	free(image);
	return absent;
}

/* a STOP that succeeds, and its end */
static void stop_says(int fd, uint32_t qpn, int absent)
{
	struct rxe_migr_status st;

	if (EXPECT(migr_cmd_stop(fd, 0, 0, &st), 0))
		return;
	EXPECT(says(fd, qpn), absent);
	close(st.guard_fd);
}

/* the QP is in RTR, and its peer still at the end of their life before */
static void next_life(struct rig *rig)
{
	struct side a = {}, b = {};
	struct ibv_qp_attr attr;

	open_pair(rig, &a, &b);
	end(a.qp[0]);
	end(b.qp[0]);
	qp_reset(a.qp[0]);
	attr = rc_attr(&rig->gid, 1, b.qp[0]->qp_num);
	attr.rq_psn = attr.sq_psn = PSN;
	MUST(!rc_to_rtr(a.qp[0], &attr));
	stop_says(a.ctx->cmd_fd, a.qp[0]->qp_num, 1);
	qp_reset(b.qp[0]);
	qp_connect(rig, b.qp[0], a.qp[0]->qp_num, PSN, PSN);
	stop_says(a.ctx->cmd_fd, a.qp[0]->qp_num, 0);
	MUST(!rc_to_rts(a.qp[0], &attr));
	exchange(&a, &b);
	exchange(&b, &a);
	side_close(&a);
	side_close(&b);
}

/* connected to whom is in RESET and then in INIT; which has work that waits, or none */
static void early(struct rig *rig, bool busy)
{
	struct side a = {}, b = {};
	struct ibv_qp_attr attr;

	side_open(rig, &a);
	side_open(rig, &b);
	qp_connect(rig, a.qp[0], b.qp[0]->qp_num, PSN, PSN);
	if (busy)
		MUST(!qp_post_send(&a, 0));
	stop_says(a.ctx->cmd_fd, a.qp[0]->qp_num, 1);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT, .port_num = 1 };
	MUST(!ibv_modify_qp(b.qp[0], &attr,
			    IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
				    IBV_QP_ACCESS_FLAGS));
	stop_says(a.ctx->cmd_fd, a.qp[0]->qp_num, 1);
	qp_connect(rig, b.qp[0], a.qp[0]->qp_num, PSN, PSN);
	MUST(!qp_post_recv(&b, 0));
	if (!busy)
		MUST(!qp_post_send(&a, 0));
	side_wait(&a, 1);
	side_wait(&b, 1);
	exchange(&b, &a);
	stop_says(a.ctx->cmd_fd, a.qp[0]->qp_num, 0);
	side_close(&a);
	side_close(&b);
}

/* until one more QP is Paused than these */
static void wait_paused(const struct rig *rig, long paused)
{
	double until = fuzz_now() + 20;

	while (rig_counter(rig, "migr_qp_paused") == paused)
		MUST(fuzz_now() < until);
}

/* the peer is Stopped, and has said so; returns the guard */
static int pause_by(const struct rig *rig, const struct side *peer)
{
	long paused = rig_counter(rig, "migr_qp_paused");
	struct rxe_migr_status st;

	MUST(!migr_cmd_stop(peer->ctx->cmd_fd, 0, 0, &st));
	wait_paused(rig, paused);
	return st.guard_fd;
}

enum when {
	BEFORE_STOP,
	BEFORE_DUMP,
	AFTER_DUMP,
	BETWEEN_TWO,
};

/* the peer is Stopped, and ends before or after; of one that was dumped an image lives */
static void stopped(struct rig *rig, enum when ends)
{
	struct side a = {}, b = {};
	struct rxe_migr_status st;

	open_pair(rig, &a, &b);
	if (ends == BEFORE_STOP) {
		end(b.qp[0]);
		MUST(!migr_cmd_stop(b.ctx->cmd_fd, 0, 0, &st));
	} else {
		st.guard_fd = pause_by(rig, &b);
		if (ends >= AFTER_DUMP)
			EXPECT(says(b.ctx->cmd_fd, b.qp[0]->qp_num), 0);
		end(b.qp[0]);
		if (ends == BETWEEN_TWO)
			says(b.ctx->cmd_fd, b.qp[0]->qp_num);
	}
	stop_says(a.ctx->cmd_fd, a.qp[0]->qp_num, ends < AFTER_DUMP);
	close(st.guard_fd);
	side_close(&a);
	side_close(&b);
}

/* of two QPs of a context one ends when both are Stopped, before they are dumped */
static void together(struct rig *rig)
{
	struct rxe_migr_status st;
	struct side s = {};

	side_open(rig, &s);
	for (int i = 0; i < 2; i++)
		qp_connect(rig, s.qp[i], s.qp[!i]->qp_num, PSN, PSN);
	MUST(!qp_post_recv(&s, 0) && !qp_post_send(&s, 1));
	side_wait(&s, 2);
	MUST(!qp_post_recv(&s, 1) && !qp_post_send(&s, 0));
	side_wait(&s, 2);
	MUST(!migr_cmd_stop(s.ctx->cmd_fd, 0, 0, &st));
	end(s.qp[1]);
	EXPECT(says(s.ctx->cmd_fd, s.qp[0]->qp_num), 1);
	close(st.guard_fd);
	side_close(&s);
}

/*
 * The peer runs on after it was Stopped, has ended, and is Stopped again. This side is
 * Paused all the time, also when the peer is gone.
 */
static void ran_on(struct rig *rig)
{
	struct side a = {}, b = {};
	struct rxe_migr_status st;

	open_pair(rig, &a, &b);
	close(pause_by(rig, &b));
	end(b.qp[0]);
	MUST(!migr_cmd_stop(b.ctx->cmd_fd, 0, 0, &st));
	stop_says(a.ctx->cmd_fd, a.qp[0]->qp_num, 1);
	close(st.guard_fd);
	side_close(&b);
	stop_says(a.ctx->cmd_fd, a.qp[0]->qp_num, 1);
	side_close(&a);
}

/* it ends, and then is gone */
static void gone(struct rig *rig)
{
	struct side a = {}, b = {};

	open_pair(rig, &a, &b);
	end(b.qp[0]);
	stop_says(a.ctx->cmd_fd, a.qp[0]->qp_num, 1);
	side_close(&b);
	stop_says(a.ctx->cmd_fd, a.qp[0]->qp_num, 1);
	side_close(&a);
}

/* it ends after STOP, and is gone after DUMP: that is what the next STOP is told, too */
static void gone_since(struct rig *rig)
{
	struct side a = {}, b = {};
	struct rxe_migr_status st;

	open_pair(rig, &a, &b);
	MUST(!migr_cmd_stop(a.ctx->cmd_fd, 0, 0, &st));
	end(b.qp[0]);
	EXPECT(says(a.ctx->cmd_fd, a.qp[0]->qp_num), 1);
	side_close(&b);
	EXPECT(says(a.ctx->cmd_fd, a.qp[0]->qp_num), 1);
	close(st.guard_fd);
	stop_says(a.ctx->cmd_fd, a.qp[0]->qp_num, 1);
	side_close(&a);
}

/* to where its peer is, which has sent so many packets and received none */
static void connect_again(const struct rig *rig, const struct side *s,
			  const struct side *peer, uint32_t sent)
{
	qp_reset(s->qp[0]);
	qp_connect(rig, s->qp[0], peer->qp[0]->qp_num, PSN, PSN + sent);
}

/*
 * The peer had ended when this side was Stopped, and then is back, and speaks. What it
 * says is not signed: it has to wait until it is told by who is restored, or runs on.
 */
static void is_back(struct rig *rig)
{
	struct side a = {}, b = {};
	struct rxe_migr_status st;
	long told;

	open_pair(rig, &a, &b);
	end(b.qp[0]);
	MUST(!migr_cmd_stop(a.ctx->cmd_fd, 0, 0, &st));
	EXPECT(says(a.ctx->cmd_fd, a.qp[0]->qp_num), 1);
	told = rig_counter(rig, "migr_qp_paused");
	connect_again(rig, &b, &a, 1);
	MUST(!qp_post_send(&b, 0));
	wait_paused(rig, told);
	EXPECT(says(a.ctx->cmd_fd, a.qp[0]->qp_num), 1);
	MUST(!qp_post_recv(&a, 0));
	close(st.guard_fd);
	side_wait(&b, 1);
	stop_says(a.ctx->cmd_fd, a.qp[0]->qp_num, 0);
	side_close(&a);
	side_close(&b);
}

/*
 * The peer is Stopped at the end of a life, and then begins and ends another one, of which
 * there is no image
 */
static void lives_on(struct rig *rig)
{
	struct side a = {}, b = {};
	struct rxe_migr_status st;
	long told;

	open_pair(rig, &a, &b);
	end(b.qp[0]);
	MUST(!migr_cmd_stop(b.ctx->cmd_fd, 0, 0, &st));
	connect_again(rig, &b, &a, 1);
	told = rig_counter(rig, "migr_qp_paused");
	MUST(!qp_post_send(&a, 0));
	wait_paused(rig, told);
	end(b.qp[0]);
	stop_says(a.ctx->cmd_fd, a.qp[0]->qp_num, 1);
	close(st.guard_fd);
	side_close(&a);
	side_close(&b);
}

static void fill(struct rig *rig, struct copy *c)
{
	copy_open(rig, c);
	copy_create(rig, c);
	EXPECT(refill_cq(c->fd, rig->cq->rec.handle), 0);
	EXPECT(refill_srq(c->fd, rig->srq->rec.handle), 0);
	for (int i = 0; i < N_QPS; i++)
		EXPECT(refill_qp(c->fd, rig->qp[i]->rec.handle), 0);
}

static void restore(struct rig *rig, struct copy *c)
{
	struct rxe_migr_status st;

	fill(rig, c);
	EXPECT(migr_cmd_attach(c->fd, &st), 0);
	EXPECT(migr_cmd_resume(c->fd, &st), 0);
}

static void leave(struct rig *own)
{
	side_close(&own->peer);
	migr_image_free(&own->img);
	free(own->image);
}

/* it has left, and a restore here does not come to its end: its image lives */
static void given_up(const struct rig *rig)
{
	struct rig own = *rig;
	struct side s = {};
	struct copy c;

	own.peer = (struct side){};
	open_pair(&own, &s, &own.peer);
	rig_take(&own, &s);
	fill(&own, &c);
	copy_close(&c);
	stop_says(own.peer.ctx->cmd_fd, own.peer.qp[0]->qp_num, 0);
	leave(&own);
}

/* the image is of another address, where there is somebody */
static void came_from_elsewhere(struct rig *own)
{
	struct rxe_migr_rec_qp *rec = (struct rxe_migr_rec_qp *)own->qp[0];

	own->gid.raw[15] = own->gid.raw[15] == 1 ? 2 : 1;
	memcpy(rec->sgid, own->gid.raw, sizeof(rec->sgid));
	image_sign(own->image, own->img.length);
}

/*
 * The QP is restored while its peer is not there, and tells it when it comes, even if it
 * was dumped in between; as it has left, and come back, it may be said to be gone when
 * it is
 */
static void came_back(const struct rig *rig, bool from_elsewhere)
{
	const struct rxe_migr_rec_qp *rec;
	struct rig own = *rig;
	struct side s = {};
	struct copy c;
	long acked;

	own.peer = (struct side){};
	open_pair(&own, &s, &own.peer);
	end(own.peer.qp[0]);
	rig_take(&own, &s);
	rec = own.qp[0];
	EXPECT(rec->peer_absent, 1);
	if (from_elsewhere)
		came_from_elsewhere(&own);
	qp_reset(own.peer.qp[0]);
	restore(&own, &c);
	rig_wait_more(&own, "migr_resume_sent", 2);
	stop_says(c.fd, rec->qpn, 1);
	acked = rig_counter(&own, "migr_resume_ack_rcvd");
	qp_connect(&own, own.peer.qp[0], rec->qpn, rec->resp_psn,
		   rec->comp_psn);
	rig_wait_for(&own, "migr_resume_ack_rcvd", acked + 1);
	stop_says(c.fd, rec->qpn, 0);
	copy_close(&c);
	stop_says(own.peer.ctx->cmd_fd, own.peer.qp[0]->qp_num, 1);
	leave(&own);
}

/* it runs on after a dump, and tells its peer when that comes */
static void tells_late(struct rig *rig)
{
	struct side a = {}, b = {};
	long acked;

	open_pair(rig, &a, &b);
	end(b.qp[0]);
	side_runs_on(&a);
	rig_wait_more(rig, "migr_resume_sent", 2);
	acked = rig_counter(rig, "migr_resume_ack_rcvd");
	connect_again(rig, &b, &a, 1);
	rig_wait_for(rig, "migr_resume_ack_rcvd", acked + 1);
	exchange(&b, &a);
	side_close(&a);
	side_close(&b);
}

void attack_absent(struct rig *rig)
{
	next_life(rig);
	early(rig, false);
	early(rig, true);
	stopped(rig, BEFORE_STOP);
	stopped(rig, BEFORE_DUMP);
	stopped(rig, AFTER_DUMP);
	stopped(rig, BETWEEN_TWO);
	together(rig);
	ran_on(rig);
	gone(rig);
	gone_since(rig);
	is_back(rig);
	lives_on(rig);
	given_up(rig);
	came_back(rig, false);
	came_back(rig, true);
	tells_late(rig);
}
