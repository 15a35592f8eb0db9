// SPDX-License-Identifier: GPL-2.0
/*
 * QPs of RC that have not come further than RTR: one that moves, the partner of one
 * that moves, and one that has been connected before.
 */
#include <stdlib.h>
#include <unistd.h>

#include "../connect.h"
#include "migr_fuzz.h"

#define PSN 0xfffff0
#define ACCESS                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ)

static struct ibv_qp_attr to_rtr(const struct rig *rig, struct ibv_qp *qp,
				 uint32_t peer)
{
	struct ibv_qp_attr a = rc_attr(&rig->gid, 1, peer);

	a.qp_access_flags = ACCESS;
	a.rq_psn = a.sq_psn = PSN;
	MUST(!rc_to_rtr(qp, &a));
	return a;
}

static void fill_and_start(const struct rig *rig, struct copy *c)
{
	struct rxe_migr_status st;

	EXPECT(refill_cq(c->fd, rig->cq->rec.handle), 0);
	EXPECT(refill_srq(c->fd, rig->srq->rec.handle), 0);
	for (int i = 0; i < N_QPS; i++)
		EXPECT(refill_qp(c->fd, rig->qp[i]->rec.handle), 0);
	EXPECT(migr_cmd_attach(c->fd, &st), 0);
	EXPECT(migr_cmd_resume(c->fd, &st), 0);
}

static void close_all(struct rig *rig, struct copy *c)
{
	copy_close(c);
	side_close(&rig->peer);
	migr_image_free(&rig->img);
	free(rig->image);
}

/* it has received, and receives where it is restored, and answers a READ */
static void moves(struct rig rtr)
{
	struct side s = {};
	struct copy c;

	rtr.peer = (struct side){};
	side_open(&rtr, &rtr.peer);
	side_open(&rtr, &s);
	for (int i = 0; i < N_QPS; i++) {
		to_rtr(&rtr, s.qp[i], rtr.peer.qp[i]->qp_num);
		qp_connect(&rtr, rtr.peer.qp[i], s.qp[i]->qp_num, PSN, PSN);
		MUST(!qp_post_recv(&s, i) && !qp_post_recv(&s, i));
		MUST(!qp_post_send(&rtr.peer, i));
	}
	side_wait(&rtr.peer, N_QPS);
	rig_take(&rtr, &s);
	MUST(rtr.qp[0]->state == IBV_QPS_RTR);

	copy_open(&rtr, &c);
	copy_create(&rtr, &c);
	for (int i = 0; i < N_QPS; i++) {
		MUST(!qp_post_send(&rtr.peer, i));
		MUST(!qp_post_read(&rtr.peer, i, rtr.mr->key, rtr.mem));
	}
	fill_and_start(&rtr, &c);
	side_wait(&rtr.peer, 2 * N_QPS);
	close_all(&rtr, &c);
}

/* until the device has counted more of this than before */
static void wait_counted(const struct rig *rig, const char *name, long before)
{
	double until = fuzz_now() + 20;

	while (rig_counter(rig, name) <= before)
		MUST(fuzz_now() < until);
}

/*
 * It hears in RTR that its peer is away, and so waits with what it sends in RTS, although
 * it would have no patience: 67 ms, while the second probe goes out 200 ms after the
 * first
 */
static void peer_moves(struct rig rtr)
{
	long paused = rig_counter(&rtr, "migr_qp_paused"), probes;
	struct ibv_qp_attr attr[N_QPS];
	struct side s = {};
	struct copy c;

	rtr.peer = (struct side){};
	side_open(&rtr, &rtr.peer);
	side_open(&rtr, &s);
	for (int i = 0; i < N_QPS; i++) {
		attr[i] = to_rtr(&rtr, rtr.peer.qp[i], s.qp[i]->qp_num);
		qp_connect(&rtr, s.qp[i], rtr.peer.qp[i]->qp_num, PSN, PSN);
		MUST(!qp_post_recv(&s, i));
	}
	rig_take(&rtr, &s);
	rig_wait_for(&rtr, "migr_qp_paused", paused + N_QPS);
	EXPECT((int)(rig_counter(&rtr, "migr_qp_paused") - paused), N_QPS);

	probes = rig_counter(&rtr, "migr_probe_sent");
	for (int i = 0; i < N_QPS; i++) {
		attr[i].timeout = 14;
		attr[i].retry_cnt = 0;
		MUST(!rc_to_rts(rtr.peer.qp[i], &attr[i]));
		MUST(!qp_post_send(&rtr.peer, i));
	}
	wait_counted(&rtr, "migr_probe_sent", probes + 2 * N_QPS - 1);
	copy_open(&rtr, &c);
	copy_create(&rtr, &c);
	fill_and_start(&rtr, &c);
	side_wait(&rtr.peer, N_QPS);
	close_all(&rtr, &c);
}

/* a message of one packet */
static void exchange_small(struct side *from, struct side *to)
{
	struct ibv_sge sge = { (uintptr_t)from->mem, 8, from->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND };
	double until = fuzz_now() + 20;
	struct ibv_send_wr *bad;
	struct ibv_wc wc = {};

	MUST(!ibv_post_send(from->qp[0], &wr, &bad));
	side_wait(from, 1);
	while (!ibv_poll_cq(to->cq, 1, &wc))
		MUST(fuzz_now() < until);
	MUST(!wc.status);
	EXPECT((int)wc.byte_len, 8);
}

/*
 * In both of its lives its PSNs are the same, and in the first one it has sent one
 * packet. When STOP asks in the second one the peer gets no message.
 */
static void lives_again(struct rig *rig)
{
	struct rxe_migr_status st;
	struct side a = {}, b = {};
	struct ibv_qp_attr attr;

	side_open(rig, &a);
	side_open(rig, &b);
	for (int life = 0; life < 2; life++) {
		qp_reset(a.qp[0]);
		qp_reset(b.qp[0]);
		qp_connect(rig, b.qp[0], a.qp[0]->qp_num, PSN, PSN);
		MUST(!qp_post_recv(&b, 0));
		attr = to_rtr(rig, a.qp[0], b.qp[0]->qp_num);
		if (life) {
			EXPECT(migr_cmd_stop(a.ctx->cmd_fd, 0, 0, &st), 0);
			close(st.guard_fd);
		}
		MUST(!rc_to_rts(a.qp[0], &attr));
		exchange_small(&a, &b);
	}
	side_close(&a);
	side_close(&b);
}

void attack_rtr(struct rig *rig)
{
	moves(*rig);
	peer_moves(*rig);
	lives_again(rig);
}
