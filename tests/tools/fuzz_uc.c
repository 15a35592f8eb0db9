// SPDX-License-Identifier: GPL-2.0
/*
 * QPs of UC: a peer that stays follows, what is lost is lost whole, and records
 * that are wrong on purpose.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../connect.h"
#include "migr_fuzz.h"

#define PSN 0xfffff0
#define SEND_FIRST 0x20
#define WRITE_FIRST 0x26
#define HEARD_US 50000 /* what is to come has come */
#define EVERY 32       /* of what is accepted one is started */
#define STOPS 300      /* of a QP whose peer sends */
#define ACCESS                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ)

/* ---- live objects ---- */

static void uc_connect(const struct rig *rig, struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = ACCESS,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer,
		.rq_psn = PSN,
		.sq_psn = PSN,
		.ah_attr = { .is_global = 1, .port_num = 1 },
	};

	a.ah_attr.grh.dgid = rig->gid;
	a.ah_attr.grh.sgid_index = 1;
	a.ah_attr.grh.hop_limit = 64;
	MUST(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS));
	a.qp_state = IBV_QPS_RTR;
	MUST(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN));
	a.qp_state = IBV_QPS_RTS;
	MUST(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

/* all of its receives are for messages, and nobody wants to know how few there are */
static void renew_srq(struct side *s)
{
	struct ibv_srq_init_attr init = { .attr = { DEPTH, 2, 0 } };

	MUST(!ibv_destroy_srq(s->srq));
	MUST(s->srq = ibv_create_srq(s->pd, &init));
}

/* in the place of the side's others */
static void make_uc(struct side *s, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.cap = { DEPTH, DEPTH, 2, 2, 0 },
		.qp_type = IBV_QPT_UC,
		.sq_sig_all = 1,
		.srq = srq,
	};

	for (int i = 0; i < N_QPS; i++)
		MUST(!ibv_destroy_qp(s->qp[i]));
	for (int i = 0; i < N_QPS; i++)
		MUST(s->qp[i] = ibv_create_qp(s->pd, &init));
}

static void connect_all(const struct rig *rig, struct side *a, struct side *b)
{
	for (int i = 0; i < N_QPS; i++) {
		uc_connect(rig, a->qp[i], b->qp[i]->qp_num);
		uc_connect(rig, b->qp[i], a->qp[i]->qp_num);
	}
}

/* the peer's message, of several packets, or a WRITE of it, to memory of the copy */
static void peer_sends(struct rig *rig, char what, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = { (uintptr_t)rig->peer.mem, MSG,
			       rig->peer.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcode };
	struct ibv_send_wr *bad;

	memset(rig->peer.mem, what, MSG);
	if (opcode == IBV_WR_RDMA_WRITE) {
		wr.wr.rdma.remote_addr = (uintptr_t)rig->mem + MSG;
		wr.wr.rdma.rkey = rig->mr->key;
	}
	MUST(!ibv_post_send(rig->peer.qp[VICTIM], &wr, &bad));
	side_wait(&rig->peer, 1);
}

/* has all of it arrived where the copy receives? */
static bool arrived(const struct rig *rig, char what)
{
	const volatile char *p = rig->mem + MSG;
	double end = fuzz_now() + 20;
	int n;

	do
		for (n = 0; n < MSG && p[n] == what; n++)
			;
	while (n < MSG && fuzz_now() < end);
	return n == MSG;
}

static int post_recv(struct side *s)
{
	struct ibv_sge sge = { (uintptr_t)s->mem + MSG, MSG, s->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 3, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	return s->qp[VICTIM]->srq ? ibv_post_srq_recv(s->srq, &wr, &bad)
				  : qp_post_recv(s, VICTIM);
}

/* the image has receives that wait, of an SRQ or not, and in SQD a SEND */
static void uc_open(struct rig *rig, struct rig *uc, bool srq)
{
	struct ibv_qp_attr sqd = { .qp_state = IBV_QPS_SQD };
	struct side s = {};

	*uc = *rig;
	memset(&uc->peer, 0, sizeof(uc->peer));
	side_open(uc, &uc->peer);
	make_uc(&uc->peer, NULL);
	side_open(uc, &s);
	if (srq)
		renew_srq(&s);
	make_uc(&s, srq ? s.srq : NULL);
	connect_all(uc, &s, &uc->peer);
	for (int k = 0; k < 4; k++)
		MUST(!post_recv(&s));
	MUST(!qp_post_recv(&uc->peer, VICTIM));
	MUST(!qp_post_send(&s, VICTIM) && !qp_post_send(&uc->peer, VICTIM));
	side_wait(&uc->peer, 2);
	usleep(HEARD_US);
	MUST(!ibv_modify_qp(s.qp[VICTIM], &sqd, IBV_QP_STATE));
	MUST(!qp_post_send(&s, VICTIM));
	rig_take(uc, &s);
	MUST(uc->qp[VICTIM]->qp_type == IBV_QPT_UC);
}

static void uc_close(struct rig *uc)
{
	side_close(&uc->peer);
	migr_image_free(&uc->img);
	free(uc->image);
}

/* as it was when the image was taken */
static void renew_peer(struct rig *uc)
{
	for (int i = 0; i < N_QPS; i++) {
		qp_reset(uc->peer.qp[i]);
		uc_connect(uc, uc->peer.qp[i], uc->qp[i]->qpn);
	}
	while (qp_polled(&uc->peer))
		;
}

static int change(int fd, uint32_t handle, enum ibv_qp_state state)
{
	const struct ib_uverbs_modify_qp in = {
		.qp_handle = handle,
		.qp_state = (uint8_t)state,
		.attr_mask = IBV_QP_STATE,
	};
	const struct migr_write cmd = {
		.command = IB_USER_VERBS_CMD_MODIFY_QP,
		.in = &in,
		.in_length = sizeof(in),
	};

	return migr_write_run(fd, &cmd);
}

static int to_rts(int fd, uint32_t handle)
{
	return change(fd, handle, IBV_QPS_RTS);
}

/* ---- restored ---- */

static void start(struct rig *uc, struct copy *c)
{
	struct rxe_migr_status st;

	EXPECT(refill_cq(c->fd, uc->cq->rec.handle), 0);
	EXPECT(refill_srq(c->fd, uc->srq->rec.handle), 0);
	EXPECT(refill_qp(c->fd, uc->qp[!VICTIM]->rec.handle), 0);
	renew_peer(uc);
	EXPECT(migr_cmd_attach(c->fd, &st), 0);
	memset(uc->mem + MSG, 0, MSG);
	/* not what it is connected to is wrong, but what the image says of it */
	if (migr_cmd_resume(c->fd, &st))
		EXPECT((int)st.why, RXE_MIGR_WHY_ELSEWHERE);
}

static void works(struct rig *uc)
{
	const struct rxe_migr_rec_qp *good = uc->qp[VICTIM];
	struct rxe_migr_status st;
	long dropped, lost;
	struct copy c;
	double end;

	copy_open(uc, &c);
	copy_create(uc, &c);
	EXPECT(refill_qp(c.fd, good->rec.handle), 0);
	start(uc, &c);
	/* the peer has followed: what waits goes out, and can be stopped again */
	MUST(!qp_post_recv(&uc->peer, VICTIM));
	end = fuzz_now() + 10;
	while (to_rts(c.fd, good->rec.handle) && fuzz_now() < end)
		;
	side_wait(&uc->peer, 1);
	peer_sends(uc, 'a', IBV_WR_SEND);
	EXPECT(arrived(uc, 'a'), true);
	EXPECT(migr_cmd_stop(c.fd, 0, 0, &st), 0);
	dropped = rig_counter(uc, "migr_stopped_dropped");
	peer_sends(uc, 'b', IBV_WR_SEND);
	end = fuzz_now() + 10;
	do
		lost = rig_counter(uc, "migr_stopped_dropped") - dropped;
	while (lost < MSG / 1024 && fuzz_now() < end);
	EXPECT((int)lost, MSG / 1024);
	EXPECT(uc->mem[MSG] == 'a', true);
	close(st.guard_fd);
	peer_sends(uc, 'c', IBV_WR_SEND);
	EXPECT(arrived(uc, 'c'), true);
	peer_sends(uc, 'd', IBV_WR_RDMA_WRITE);
	EXPECT(arrived(uc, 'd'), true);
	/* connected anew to a peer that has followed it, and knows its epoch */
	MUST(!change(c.fd, good->rec.handle, IBV_QPS_RESET));
	MUST(!migr_connect_qp(&c.r, &good->rec));
	if (!EXPECT(migr_cmd_stop(c.fd, 0, 300, &st), 0))
		close(st.guard_fd);
	copy_close(&c);
}

/* a message was begun, and its end does not come: the next one is whole */
static void half_message(struct rig *uc, uint32_t opcode, uint32_t psn)
{
	const struct rxe_migr_rec_qp *good = uc->qp[VICTIM];
	struct rxe_migr_rec_qp *rec = malloc(good->rec.length);
	struct copy c;

	memcpy(rec, good, good->rec.length);
	rec->resp_opcode = opcode;
	rec->resp_psn = psn & 0xffffff;
	if (opcode == SEND_FIRST) {
		rec->wqe.valid = 1;
		rec->wqe.num_sge = 1;
		rec->wqe.length = MSG;
		rec->wqe.resid = MSG - 1024;
		rec->wqe.sge_offset = 1024;
		rec->wqe.sge[0].addr = (uintptr_t)uc->mem + MSG;
		rec->wqe.sge[0].length = MSG;
		rec->wqe.sge[0].lkey = uc->mr->key;
	} else {
		rec->resp_rkey = uc->mr->key;
		rec->resp_va = (uintptr_t)uc->mem;
		rec->resp_length = MSG;
		rec->resp_resid = MSG - 1024;
		rec->resp_offset = 1024;
	}
	copy_open(uc, &c);
	copy_create(uc, &c);
	EXPECT(refill_as(uc, c.fd, UVERBS_OBJECT_QP, rec->rec.handle, rec,
			 rec->rec.length),
	       0);
	start(uc, &c);
	peer_sends(uc, 'e', IBV_WR_SEND);
	EXPECT(arrived(uc, 'e'), true);
	peer_sends(uc, 'f', IBV_WR_RDMA_WRITE);
	EXPECT(arrived(uc, 'f'), true);
	copy_close(&c);
	free(rec);
}

/* ---- refused ---- */

static void refused(struct side *s)
{
	struct rxe_migr_status st;

	if (!EXPECT(migr_cmd_stop(s->ctx->cmd_fd, 0, 300, &st), -ETIMEDOUT))
		close(st.guard_fd);
	EXPECT((int)st.why, RXE_MIGR_WHY_SILENT);
	EXPECT((int)st.qpn, (int)s->qp[0]->qp_num);
}

static void stops(struct side *s)
{
	close(side_stop(s));
}

/* whose peer is nobody, or takes another one for its peer, which alone is silent */
static void silent(struct rig *rig)
{
	struct side a = {}, b = {};

	side_open(rig, &a);
	make_uc(&a, NULL);
	side_open(rig, &b);
	make_uc(&b, NULL);
	uc_connect(rig, a.qp[0], 0xfffff0);
	stops(&a);
	qp_reset(a.qp[0]);
	uc_connect(rig, a.qp[0], b.qp[0]->qp_num);
	stops(&a); /* it is in RESET */
	uc_connect(rig, b.qp[0], a.qp[1]->qp_num);
	refused(&a);
	qp_reset(b.qp[0]);
	uc_connect(rig, b.qp[0], a.qp[0]->qp_num);
	stops(&a);
	side_close(&a);
	side_close(&b);
}

static void open_pair(struct rig *rig, struct side *a, struct side *b)
{
	side_open(rig, a);
	make_uc(a, NULL);
	side_open(rig, b);
	make_uc(b, NULL);
	uc_connect(rig, a->qp[0], b->qp[0]->qp_num);
	uc_connect(rig, b->qp[0], a->qp[0]->qp_num);
}

/* one that was dumped and is gone may be restored: nobody says that it is not there */
static void has_left(struct rig *rig)
{
	struct side a = {}, b = {};
	int guard;

	open_pair(rig, &a, &b);
	guard = side_stop(&b);
	side_dump(&b);
	side_close(&b);
	close(guard);
	refused(&a);
	side_close(&a);
}

/* nobody answers its RESUME, but another one sends to it */
static void runs_on(struct rig *rig)
{
	struct side a = {}, b = {}, c = {};
	struct side *const all[] = { &a, &b, &c };
	int guard, peer;

	for (int i = 0; i < 3; i++) {
		side_open(rig, all[i]);
		make_uc(all[i], NULL);
	}
	uc_connect(rig, a.qp[0], b.qp[0]->qp_num);
	uc_connect(rig, b.qp[0], a.qp[0]->qp_num);
	uc_connect(rig, c.qp[0], a.qp[0]->qp_num);
	MUST(!qp_post_recv(&a, 0));
	guard = side_stop(&a);
	side_dump(&a);
	peer = side_stop(&b);
	close(guard);
	rig_wait_more(rig, "migr_resume_sent", 2);
	MUST(!qp_post_send(&c, 0));
	side_wait(&c, 1);
	side_wait(&a, 1);
	close(peer);
	for (int i = 0; i < 3; i++)
		side_close(all[i]);
}

struct chatter {
	struct side *side, *peer;
	volatile bool end;
};

/* as fast as it can, small WRITEs */
static void *chat(void *arg)
{
	struct chatter *c = arg;
	struct ibv_sge sge = { (uintptr_t)c->side->mem, 8, c->side->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE };
	struct ibv_send_wr *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)c->peer->mem;
	wr.wr.rdma.rkey = c->peer->mr->rkey;
	while (!c->end) {
		MUST(!ibv_post_send(c->side->qp[0], &wr, &bad));
		side_wait(c->side, 1);
	}
	return NULL;
}

/* what the peer sends meanwhile does not say what it is: the answer does */
static void talkative(struct rig *rig)
{
	struct rxe_migr_status st;
	struct side a = {}, b = {};
	struct chatter c = { &b, &a, false };
	pthread_t thread;

	open_pair(rig, &a, &b);
	MUST(!pthread_create(&thread, NULL, chat, &c));
	for (int i = 0; i < STOPS; i++)
		if (!EXPECT(migr_cmd_stop(a.ctx->cmd_fd, 0, 0, &st), 0))
			close(st.guard_fd);
	c.end = true;
	MUST(!pthread_join(thread, NULL));
	side_close(&a);
	side_close(&b);
}

struct craft {
	const char *name;
	uint32_t resp_opcode, req_opcode, comp_opcode, state, qp_type;
	uint16_t peer_absent;
};

static const struct craft crafts[] = {
	{ "SEND without WQE", SEND_FIRST, ~0U, ~0U, IBV_QPS_SQD, 3, 0 },
	{ "SEND, later, without one", 0x21, ~0U, ~0U, IBV_QPS_SQD, 3, 0 },
	{ "received of RC", 0x04, ~0U, ~0U, IBV_QPS_SQD, 3, 0 },
	{ "received of UD", 0x64, ~0U, ~0U, IBV_QPS_SQD, 3, 0 },
	{ "received unknown", 0x2c, ~0U, ~0U, IBV_QPS_SQD, 3, 0 },
	{ "sent of RC", ~0U, 0x04, ~0U, IBV_QPS_SQD, 3, 0 },
	{ "a response", ~0U, ~0U, 0x0d, IBV_QPS_SQD, 3, 0 },
	{ "SQE", ~0U, ~0U, ~0U, IBV_QPS_SQE, 3, 0 },
	{ "of RC", ~0U, ~0U, ~0U, IBV_QPS_SQD, IBV_QPT_RC, 0 },
	{ "of UD", ~0U, ~0U, ~0U, IBV_QPS_SQD, IBV_QPT_UD, 0 },
	{ "absent or not", ~0U, ~0U, ~0U, IBV_QPS_SQD, 3, 2 },
};

static void craft_uc(struct rig *uc)
{
	const struct rxe_migr_rec_qp *good = uc->qp[VICTIM];
	struct rxe_migr_rec_qp *rec = malloc(good->rec.length);
	struct copy c;
	int ret;

	copy_open(uc, &c);
	copy_create(uc, &c);
	for (size_t i = 0; i < sizeof(crafts) / sizeof(*crafts); i++) {
		memcpy(rec, good, good->rec.length);
		memset(&rec->wqe, 0, sizeof(rec->wqe));
		rec->resp_opcode = crafts[i].resp_opcode;
		rec->req_opcode = crafts[i].req_opcode;
		rec->comp_opcode = crafts[i].comp_opcode;
		rec->state = crafts[i].state;
		rec->qp_type = crafts[i].qp_type;
		rec->peer_absent = crafts[i].peer_absent;
		ret = refill_as(uc, c.fd, UVERBS_OBJECT_QP, rec->rec.handle,
				rec, rec->rec.length);
		if (ret == -EINVAL)
			continue;
		fprintf(stderr, "UC, %s: %d\n", crafts[i].name, ret);
		fuzz_failures++;
	}
	copy_close(&c);
	free(rec);
}

/* a bit of each byte, and all: refused, or it does no harm */
static void flip_uc(struct rig *uc)
{
	const struct rxe_migr_rec_qp *good = uc->qp[VICTIM];
	unsigned int accepted = 0, refused = 0;
	char *rec = malloc(good->rec.length);
	struct copy c;
	int ret;

	copy_open(uc, &c);
	copy_create(uc, &c);
	memcpy(rec, good, good->rec.length);
	for (size_t at = 0; at < 2 * sizeof(*good); at++) {
		char flip = (char)(at & 1 ? 0xff : 1 << at / 2 % 8);

		rec[at / 2] ^= flip;
		ret = refill_as(uc, c.fd, UVERBS_OBJECT_QP, good->rec.handle,
				rec, good->rec.length);
		rec[at / 2] ^= flip;
		MUST(!load_good(uc, c.fd));
		if (ret) {
			EXPECT(ret, -EINVAL, -ENOENT);
			refused++;
			continue;
		}
		if (++accepted % EVERY) {
			copy_renew_qp(uc, &c, VICTIM);
			continue;
		}
		start(uc, &c);
		to_rts(c.fd, good->rec.handle);
		peer_sends(uc, 'g', IBV_WR_SEND);
		peer_sends(uc, 'h', IBV_WR_RDMA_WRITE);
		usleep(HEARD_US);
		copy_close(&c);
		copy_open(uc, &c);
		copy_create(uc, &c);
	}
	printf("UC: %u accepted, %u refused\n", accepted, refused);
	copy_close(&c);
	free(rec);
}

/* the next one has the PSN that is expected, or does not */
static void half_messages(struct rig *uc)
{
	half_message(uc, SEND_FIRST, PSN);
	half_message(uc, SEND_FIRST, PSN + 1);
	half_message(uc, WRITE_FIRST, PSN);
	half_message(uc, WRITE_FIRST, PSN + 1);
}

void attack_uc(struct rig *rig)
{
	struct rig uc;

	silent(rig);
	has_left(rig);
	runs_on(rig);
	talkative(rig);
	uc_open(rig, &uc, true);
	half_messages(&uc);
	uc_close(&uc);
	uc_open(rig, &uc, false);
	works(&uc);
	half_messages(&uc);
	craft_uc(&uc);
	flip_uc(&uc);
	works(&uc);
	uc_close(&uc);
}
