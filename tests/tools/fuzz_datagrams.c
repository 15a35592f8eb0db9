// SPDX-License-Identifier: GPL-2.0
/*
 * What a QP of UD and address handles come to: restored as they were, from records
 * that are wrong on purpose, and without what their work needs.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "migr_fuzz.h"

#define QKEY 0x11
#define GRH 40
#define N_AHS 2
#define N_SENDS 2 /* that wait */
#define N_RECVS 3
#define MOVED 0	    /* the QP with work */
#define EVERY 32    /* of what is accepted one is started */
#define FLIPPED 256 /* bytes of the slots */

/* the image of a side with UD QPs, and who hears them */
struct datagrams {
	struct rig rig;
	struct side peer; /* QP 0 is UD */
	const struct rxe_migr_rec_ah *ah[N_AHS];
	const struct rxe_migr_rec *groups;
};

/* ---- live objects ---- */

static void change_ud(struct ibv_qp *qp, enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr a = {
		.qp_state = state, .port_num = 1, .qkey = QKEY, .sq_psn = 7
	};

	MUST(!ibv_modify_qp(qp, &a, mask | IBV_QP_STATE));
}

/* in the place of the side's others */
static void make_ud(struct side *s)
{
	struct ibv_qp_init_attr init = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.cap = { DEPTH, DEPTH, 2, 2, 0 },
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
	};

	for (int i = 0; i < N_QPS; i++)
		MUST(!ibv_destroy_qp(s->qp[i]));
	for (int i = 0; i < N_QPS; i++) {
		MUST(s->qp[i] = ibv_create_qp(s->pd, &init));
		change_ud(s->qp[i], IBV_QPS_INIT,
			  IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
		change_ud(s->qp[i], IBV_QPS_RTR, 0);
		change_ud(s->qp[i], IBV_QPS_RTS, IBV_QP_SQ_PSN);
	}
}

static struct ibv_ah *make_ah(const struct rig *rig, struct side *s)
{
	struct ibv_ah_attr to = { .is_global = 1,
				  .port_num = 1,
				  .grh = { .sgid_index = 1,
					   .dgid = rig->gid } };
	struct ibv_ah *ah;

	MUST(ah = ibv_create_ah(s->pd, &to));
	return ah;
}

static void post_datagram(struct side *s, struct ibv_ah *ah, uint32_t qpn)
{
	struct ibv_sge sge = { (uintptr_t)s->mem, 8, s->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 6, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND
	};
	struct ibv_send_wr *bad;

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = QKEY;
	MUST(!ibv_post_send(s->qp[MOVED], &wr, &bad));
}

/* sends of a QP in SQD wait; another QP is in groups */
static void datagrams_open(struct rig *rig, struct datagrams *d)
{
	union ibv_gid mgid = { .raw = { 0xff, 0x0e, [15] = 0x51 } };
	struct rxe_migr_status st;
	struct ibv_ah *ah[N_AHS];
	struct side s = {};
	size_t length;
	int n = 0;

	d->rig = *rig;
	side_open(&d->rig, &d->peer);
	make_ud(&d->peer);
	side_open(&d->rig, &s);
	make_ud(&s);
	for (int i = 0; i < N_AHS; i++)
		ah[i] = make_ah(rig, &s);
	MUST(!ibv_attach_mcast(s.qp[1], &mgid, 0));
	mgid.raw[15]++;
	MUST(!ibv_attach_mcast(s.qp[1], &mgid, 0));
	change_ud(s.qp[MOVED], IBV_QPS_SQD, 0);
	for (int i = 0; i < N_SENDS; i++)
		post_datagram(&s, ah[i % N_AHS], d->peer.qp[0]->qp_num);
	for (int i = 0; i < N_RECVS; i++)
		MUST(!qp_post_recv(&s, MOVED));

	MUST(!migr_cmd_stop(s.ctx->cmd_fd, 0, 0, &st));
	MUST(!migr_cmd_dump(s.ctx->cmd_fd, &d->rig.image, &length, NULL));
	close(st.guard_fd);
	MUST(!ibv_detach_mcast(s.qp[1], &mgid, 0));
	mgid.raw[15]--;
	MUST(!ibv_detach_mcast(s.qp[1], &mgid, 0));
	for (int i = 0; i < N_AHS; i++)
		MUST(!ibv_destroy_ah(ah[i]));
	d->rig.mem = s.mem;
	side_close(&s);
	rig_use_image(&d->rig, length);
	for (unsigned int i = 0; i < d->rig.img.count; i++) {
		const struct rxe_migr_rec *rec = d->rig.img.records[i];

		if (rec->type == RXE_MIGR_AH && n < N_AHS)
			d->ah[n++] = (const void *)rec;
		else if (rec->type == RXE_MIGR_MCAST)
			d->groups = rec;
	}
	MUST(n == N_AHS && d->groups);
}

static void datagrams_close(struct datagrams *d)
{
	side_close(&d->peer);
	migr_image_free(&d->rig.img);
	free(d->rig.image);
}

/* ---- commands ---- */

/* the command leads to `dgid`, the record to where it will */
static int create_ah(int fd, const void *dgid, uint32_t pd, uint32_t record,
		     uint32_t *handle)
{
	struct ib_uverbs_create_ah in = {
		.pd_handle = pd,
		.attr = { .is_global = 1, .port_num = 1, .grh.sgid_index = 1 }
	};
	const struct rxe_migr_restore restore = { .handle = record };
	struct ib_uverbs_create_ah_resp out = {};
	uint32_t made[2];
	const struct migr_write cmd = {
		.command = IB_USER_VERBS_CMD_CREATE_AH,
		.in = &in,
		.in_length = sizeof(in),
		.out = &out,
		.out_length = sizeof(out),
		.driver_out = made,
		.driver_out_length = sizeof(made),
		.restore = &restore,
	};
	int ret;

	memcpy(in.attr.grh.dgid, dgid, sizeof(in.attr.grh.dgid));
	ret = migr_write_run(fd, &cmd);
	*handle = out.ah_handle;
	return ret;
}

static int join_twice(int fd, const struct rxe_migr_rec_mcast *rec)
{
	struct ib_uverbs_attach_mcast in = { .qp_handle = rec->qp };
	const struct migr_write cmd = {
		.command = IB_USER_VERBS_CMD_ATTACH_MCAST,
		.in = &in,
		.in_length = sizeof(in),
	};

	memcpy(in.gid, rec + 1, sizeof(in.gid));
	return migr_write_run(fd, &cmd) ?: migr_write_run(fd, &cmd);
}

static int to_rts(int fd, uint32_t handle)
{
	const struct ib_uverbs_modify_qp in = {
		.qp_handle = handle,
		.qp_state = IBV_QPS_RTS,
		.attr_mask = IBV_QP_STATE,
	};
	const struct migr_write cmd = {
		.command = IB_USER_VERBS_CMD_MODIFY_QP,
		.in = &in,
		.in_length = sizeof(in),
	};

	return migr_write_run(fd, &cmd);
}

/* ---- restored ---- */

static void refill_rest(struct datagrams *d, struct copy *c)
{
	EXPECT(refill_cq(c->fd, d->rig.cq->rec.handle), 0);
	EXPECT(refill_srq(c->fd, d->rig.srq->rec.handle), 0);
	EXPECT(refill_qp(c->fd, d->rig.qp[1]->rec.handle), 0);
	EXPECT(migr_refill_object(&c->r, d->groups), 0);
}

/* all is filled; how many datagrams that waited arrive within this time? */
static int arrive(struct datagrams *d, struct copy *c, double seconds)
{
	struct rxe_migr_status st;
	double end;
	int n = 0;

	while (qp_polled(&d->peer))
		;
	/* those for what has not arrived before are still there */
	for (int i = 0; i < N_SENDS; i++)
		if (qp_post_recv(&d->peer, 0))
			break;
	EXPECT(migr_cmd_attach(c->fd, &st), 0);
	EXPECT(migr_cmd_resume(c->fd, &st), 0);
	end = fuzz_now() + seconds;
	while (to_rts(c->fd, d->rig.qp[MOVED]->rec.handle) && fuzz_now() < end)
		;
	while (n < N_SENDS && fuzz_now() < end)
		n += qp_polled(&d->peer);
	return n;
}

static void renew(struct datagrams *d, struct copy *c)
{
	copy_close(c);
	copy_open(&d->rig, c);
	copy_create(&d->rig, c);
}

/*
 * Has a send that found no AH ended the QP? Then all of its work is flushed: rdma_rxe
 * tells that one not apart.
 */
static bool has_failed(struct copy *c)
{
	const struct rxe_migr_rec_cq *cq = NULL;
	const struct ib_uverbs_wc *wc;
	struct rxe_migr_status st;
	unsigned int flushed = 0;
	struct migr_image img;
	size_t length;
	void *image;

	MUST(!migr_cmd_stop(c->fd, 0, 0, &st));
	MUST(!migr_cmd_dump(c->fd, &image, &length, NULL));
	close(st.guard_fd);
	MUST(!migr_image_parse(image, length, &img, NULL));
	for (unsigned int i = 0; i < img.count; i++)
		if (img.records[i]->type == RXE_MIGR_CQ)
			cq = (const void *)img.records[i];
	MUST(cq);
	for (unsigned int i = 0; i < cq->ring.slots; i++) {
		wc = (const void *)((const char *)(cq + 1) +
				    ((size_t)i << cq->ring.log2_elem));
		MUST(wc->status == IBV_WC_WR_FLUSH_ERR);
		flushed++;
	}
	migr_image_free(&img);
	free(image);
	return flushed == N_SENDS + N_RECVS;
}

static void fails(struct datagrams *d, struct copy *c)
{
	double end = fuzz_now() + 20;

	EXPECT(arrive(d, c, 0), 0);
	while (!has_failed(c) && fuzz_now() < end)
		to_rts(c->fd, d->rig.qp[MOVED]->rec.handle);
	EXPECT(has_failed(c), true);
	EXPECT(qp_polled(&d->peer), false);
}

/* with its AHs, without one, and with one of another PD */
static void works(struct datagrams *d)
{
	struct rxe_migr_rec_ah other = *d->ah[0];
	uint32_t handle, none;
	struct copy c;

	copy_open(&d->rig, &c);
	copy_create(&d->rig, &c);
	EXPECT(refill_qp(c.fd, d->rig.qp[MOVED]->rec.handle), 0);
	refill_rest(d, &c);
	EXPECT(join_twice(c.fd, (const void *)d->groups), 0);
	EXPECT(arrive(d, &c, 20), N_SENDS);

	renew(d, &c);
	EXPECT(refill_qp(c.fd, d->rig.qp[MOVED]->rec.handle), 0);
	refill_rest(d, &c);
	EXPECT(raw_destroy_ah(c.fd, d->ah[0]->rec.handle), 0);
	fails(d, &c);

	renew(d, &c);
	EXPECT(raw_destroy_ah(c.fd, d->ah[0]->rec.handle), 0);
	MUST(!migr_alloc_pd(c.fd, &other.pd));
	MUST(!load_as(&d->rig, c.fd, other.rec.handle, &other, sizeof(other)));
	EXPECT(create_ah(c.fd, other.dgid, other.pd, other.rec.handle, &handle),
	       0);
	EXPECT(refill_qp(c.fd, d->rig.qp[MOVED]->rec.handle), 0);
	refill_rest(d, &c);
	fails(d, &c);
	EXPECT(create_ah(c.fd, other.dgid, other.pd, other.rec.handle, &none),
	       -ENOENT); /* the image is gone */
	copy_close(&c);
}

/* ---- what can be wrong ---- */

static void try_ahs(struct datagrams *d)
{
	const struct rxe_migr_rec_ah *good = d->ah[0];
	static const uint8_t group[16] = { 0xff, 0x0e, [15] = 0x51 };
	const uint32_t h = good->rec.handle;
	struct {
		struct rxe_migr_rec_ah ah;
		uint64_t more;
	} r = { .ah = *good };
	uint32_t handle, pd;
	struct copy c;

	copy_open(&d->rig, &c);
	copy_create(&d->rig, &c);
	MUST(!load_good(&d->rig, c.fd));
	EXPECT(create_ah(c.fd, good->dgid, good->pd, h, &handle), -EBUSY);
	MUST(!raw_destroy_ah(c.fd, h));
	MUST(!migr_alloc_pd(c.fd, &pd));
	EXPECT(create_ah(c.fd, good->dgid, pd, h, &handle), -EINVAL);
	EXPECT(create_ah(c.fd, good->dgid, good->pd, 0x9000, &handle), -ENOENT);
	EXPECT(create_ah(c.fd, good->dgid, good->pd, d->rig.mr->rec.handle,
			 &handle),
	       -ENOENT);
	EXPECT(create_ah(c.fd, group, good->pd, h, &handle), -EINVAL);
	/* of the other family, or to where nobody answers */
	for (int i = 0; i < 16; i++) {
		r.ah.dgid[i] ^= 1;
		MUST(!load_as(&d->rig, c.fd, h, &r, sizeof(r.ah)));
		r.ah.dgid[i] ^= 1;
		if (!EXPECT(create_ah(c.fd, good->dgid, good->pd, h, &handle),
			    i < 12 ? -EINVAL : 0))
			MUST(!raw_destroy_ah(c.fd, handle));
	}
	memcpy(r.ah.dgid, group, sizeof(group));
	MUST(!load_as(&d->rig, c.fd, h, &r, sizeof(r.ah)));
	EXPECT(create_ah(c.fd, good->dgid, good->pd, h, &handle), -EINVAL);
	r.ah = *good;
	for (int bit = 0; bit < 32; bit++) {
		r.ah.ah_num = 1U << bit;
		MUST(!load_as(&d->rig, c.fd, h, &r, sizeof(r.ah)));
		if (!EXPECT(create_ah(c.fd, good->dgid, good->pd, h, &handle),
			    bit < 15 ? 0 : -ERANGE, bit < 15 ? -EBUSY : 0))
			MUST(!raw_destroy_ah(c.fd, handle));
	}
	r.ah.ah_num = 0;
	MUST(!load_as(&d->rig, c.fd, h, &r, sizeof(r.ah)));
	EXPECT(create_ah(c.fd, good->dgid, good->pd, h, &handle), -ERANGE);
	r.ah = *good;
	r.ah.pd = pd;
	MUST(!load_as(&d->rig, c.fd, h, &r, sizeof(r.ah)));
	EXPECT(create_ah(c.fd, good->dgid, good->pd, h, &handle), -EINVAL);
	r.ah = *good;
	EXPECT(load_as(&d->rig, c.fd, h, &r, sizeof(r.ah) - 8), -EINVAL);
	r.ah.rec.length -= 8;
	EXPECT(load_as(&d->rig, c.fd, h, &r, sizeof(r.ah) - 8), -EINVAL);
	r.ah.rec.length = sizeof(r);
	MUST(!load_as(&d->rig, c.fd, h, &r, sizeof(r)));
	EXPECT(create_ah(c.fd, good->dgid, good->pd, h, &handle), -EINVAL);
	MUST(!load_good(&d->rig, c.fd));
	EXPECT(create_ah(c.fd, good->dgid, good->pd, h, &handle), 0);
	copy_close(&c);
}

/* whoever may not migrate gets no number that he asks for */
static void by_nobody(struct datagrams *d)
{
	const struct rxe_migr_rec_ah *ah = d->ah[0];
	struct copy c;
	uint32_t handle;
	int status;
	pid_t pid;

	copy_open(&d->rig, &c);
	copy_create(&d->rig, &c);
	MUST(!raw_destroy_ah(c.fd, ah->rec.handle));
	fflush(stdout);
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		MUST(!setuid(65534));
		_exit(create_ah(c.fd, ah->dgid, ah->pd, ah->rec.handle,
				&handle) != -EPERM);
	}
	MUST(waitpid(pid, &status, 0) == pid);
	EXPECT(status, 0);
	copy_close(&c);
}

/* one bit of each byte of the fixed part and of a slot, and all of its bits */
static void flip_qp(struct datagrams *d)
{
	const struct rxe_migr_rec_qp *good = d->rig.qp[MOVED];
	unsigned int accepted = 0, refused = 0;
	char *rec = malloc(good->rec.length);
	struct copy c;
	int ret;

	copy_open(&d->rig, &c);
	copy_create(&d->rig, &c);
	memcpy(rec, good, good->rec.length);
	for (size_t at = 0; at < 2 * (sizeof(*good) + FLIPPED); at++) {
		char flip = (char)(at & 1 ? 0xff : 1 << at / 2 % 8);

		rec[at / 2] ^= flip;
		ret = refill_as(&d->rig, c.fd, UVERBS_OBJECT_QP,
				good->rec.handle, rec, good->rec.length);
		rec[at / 2] ^= flip;
		MUST(!load_good(&d->rig, c.fd));
		if (ret) {
			EXPECT(ret, -EINVAL, -ENOENT);
			refused++;
			continue;
		}
		if (++accepted % EVERY) {
			copy_renew_qp(&d->rig, &c, MOVED);
			continue;
		}
		refill_rest(d, &c);
		arrive(d, &c, 0.05);
		renew(d, &c);
	}
	printf("UD: %u accepted, %u refused\n", accepted, refused);
	copy_close(&c);
	free(rec);
}

struct craft {
	const char *name;
	void (*change)(struct rxe_migr_rec_qp *rec);
	int want;
};

#define CRAFT(name, field, value)                   \
	static void name(struct rxe_migr_rec_qp *r) \
	{                                           \
		r->field = (value);                 \
	}

CRAFT(of_rc, qp_type, IBV_QPT_RC)
CRAFT(of_uc, qp_type, IBV_QPT_UC)
CRAFT(of_gsi, qp_type, 1)
CRAFT(rc_request, req_opcode, 0x04)
CRAFT(rc_received, resp_opcode, 0x00)
CRAFT(ud_first, resp_opcode, 0x60)
CRAFT(far_opcode, resp_opcode, 0x164)
CRAFT(response, comp_opcode, 0x0d)
CRAFT(resources, max_dest_rd_atomic, 4)
CRAFT(sqe, state, IBV_QPS_SQE)
CRAFT(in_error, state, IBV_QPS_ERR)
CRAFT(in_rtr, state, IBV_QPS_RTR)
CRAFT(psns, comp_psn, 0x123456)
CRAFT(other_qkey, qkey, 0x80010000)

static const struct craft crafts[] = {
	{ "of RC", of_rc, -EINVAL },
	{ "of UC", of_uc, -EINVAL },
	{ "of GSI", of_gsi, -EINVAL },
	{ "opcode of RC", rc_request, -EINVAL },
	{ "received opcode of RC", rc_received, -EINVAL },
	{ "UD has no FIRST", ud_first, -EINVAL },
	{ "opcode out of the table", far_opcode, -EINVAL },
	{ "a response", response, -EINVAL },
	{ "resources", resources, -EINVAL },
	{ "SQE", sqe, -EINVAL },
	{ "ERR, in RTS", in_error, -EINVAL },
	{ "RTR, in RTS", in_rtr, -EINVAL },
	{ "PSNs that mean nothing", psns, 0 },
	{ "Q_Key", other_qkey, 0 },
};

static void craft_qp(struct datagrams *d)
{
	const struct rxe_migr_rec_qp *good = d->rig.qp[MOVED];
	struct rxe_migr_rec_qp *rec = malloc(good->rec.length);
	struct copy c;
	int ret;

	copy_open(&d->rig, &c);
	copy_create(&d->rig, &c);
	for (size_t i = 0; i < sizeof(crafts) / sizeof(*crafts); i++) {
		memcpy(rec, good, good->rec.length);
		crafts[i].change(rec);
		ret = refill_as(&d->rig, c.fd, UVERBS_OBJECT_QP,
				rec->rec.handle, rec, rec->rec.length);
		MUST(!load_good(&d->rig, c.fd));
		if (!ret) {
			refill_rest(d, &c);
			arrive(d, &c, 0.05);
			renew(d, &c);
		}
		if (ret == crafts[i].want)
			continue;
		fprintf(stderr, "UD, %s: %d, not %d\n", crafts[i].name, ret,
			crafts[i].want);
		fuzz_failures++;
	}
	copy_close(&c);
	free(rec);
}

void attack_datagrams(struct rig *rig)
{
	struct datagrams d = {};

	datagrams_open(rig, &d);
	works(&d);
	try_ahs(&d);
	by_nobody(&d);
	craft_qp(&d);
	flip_qp(&d);
	works(&d);
	datagrams_close(&d);
}
