// SPDX-License-Identifier: GPL-2.0
/*
 * Records that are wrong on purpose, signed as if a kernel had written them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "migr_fuzz.h"

#define WINDOW 0xabcde07 /* a key that no window has */

struct craft {
	const char *name;
	void (*change)(struct rxe_migr_rec_qp *rec);
	int want; /* -1: refused or not, as long as it survives */
};

/* the first packet of a message is here, but no receive WQE */
static void send_without_wqe(struct rxe_migr_rec_qp *r)
{
	memset(&r->wqe, 0, sizeof(r->wqe));
	r->resp_opcode = 0x00; /* SEND First */
	r->resp_psn = (r->resp_psn + 1) & 0xffffff;
}

static void send_middle_without_wqe(struct rxe_migr_rec_qp *r)
{
	send_without_wqe(r);
	r->resp_opcode = 0x01; /* SEND Middle */
}

static void send_with_wqe(struct rxe_migr_rec_qp *r)
{
	send_without_wqe(r);
	r->wqe.valid = 1;
	r->wqe.num_sge = 1;
	r->wqe.length = MSG;
	r->wqe.resid = MSG - 1024;
	r->wqe.sge_offset = 1024;
	r->wqe.sge[0].length = MSG;
}

static void wqe_offset(struct rxe_migr_rec_qp *r)
{
	send_with_wqe(r);
	r->wqe.sge_offset = MSG + 1;
}

static void wqe_many_sge(struct rxe_migr_rec_qp *r)
{
	send_with_wqe(r);
	r->wqe.num_sge = r->max_recv_sge + 1;
}

static void wqe_cur_sge(struct rxe_migr_rec_qp *r)
{
	send_with_wqe(r);
	r->wqe.cur_sge = 1;
}

static void write_middle(struct rxe_migr_rec_qp *r)
{
	r->resp_opcode = 0x07; /* RDMA WRITE Middle, of no known MR */
	r->resp_rkey = 0xdead00;
	r->resp_length = r->resp_resid = 1 << 20;
}

static void res_head(struct rxe_migr_rec_qp *r)
{
	r->resp_res_head = r->max_dest_rd_atomic;
}

static void wqe_index(struct rxe_migr_rec_qp *r)
{
	r->req_wqe_index = r->sq.producer + 1;
}

static void read_response(struct rxe_migr_rec_qp *r)
{
	r->comp_opcode = 0x0d; /* READ Response First, nothing asked */
	r->req_wqe_index = r->sq.producer = r->sq.consumer;
	r->req_psn = r->comp_psn;
}

static void psn_far(struct rxe_migr_rec_qp *r)
{
	r->req_psn = (r->comp_psn + 0x7fffff) & 0xffffff;
}

static void in_error(struct rxe_migr_rec_qp *r)
{
	r->state = IBV_QPS_ERR;
}

static void draining(struct rxe_migr_rec_qp *r)
{
	r->state = IBV_QPS_SQD;
	r->sq_draining = 1;
}

static void epoch_last(struct rxe_migr_rec_qp *r)
{
	r->epoch = 0xffffffff;
}

static const struct craft crafts[] = {
	{ "SEND without receive WQE", send_without_wqe, -EINVAL },
	{ "SEND, later, without one", send_middle_without_wqe, -EINVAL },
	{ "SEND with receive WQE", send_with_wqe, 0 },
	{ "receive WQE: offset", wqe_offset, -EINVAL },
	{ "receive WQE: many SGEs", wqe_many_sge, -EINVAL },
	{ "receive WQE: current SGE", wqe_cur_sge, -EINVAL },
	{ "RDMA WRITE into nothing", write_middle, -1 },
	{ "resource index", res_head, -EINVAL },
	{ "WQE index", wqe_index, -EINVAL },
	{ "READ response to nothing", read_response, -1 },
	{ "PSN far ahead", psn_far, -1 },
	{ "ERR, connected", in_error, -EINVAL },
	{ "SQD", draining, 0 },
	{ "last epoch", epoch_last, -EINVAL },
};

static void post_add(struct side *s, int i)
{
	struct ibv_sge sge = { (uintptr_t)s->mem + MSG, 8, s->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 4,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD };
	struct ibv_send_wr *bad;

	MUST(!ibv_post_send(s->qp[i], &wr, &bad));
}

/*
 * A READ of these bytes seems to have been answered, and the peer asks for them
 * again, or for an ATOMIC in its stead: is that answered? The key is that of a
 * window with access `window`, if that is not 0.
 */
static bool answered_again(struct rig *rig, uint32_t rkey, const void *from,
			   bool atomic, int window)
{
	const struct rxe_migr_res wanted = { .kind = RXE_MIGR_RES_READ,
					     .rkey = rkey,
					     .length = MSG,
					     .value = (uintptr_t)from };
	const struct rxe_migr_rec_qp *good = rig->qp[VICTIM];
	struct rxe_migr_rec_qp *rec = malloc(good->rec.length);
	struct rxe_migr_res *res = (struct rxe_migr_res *)(rec + 1);
	uint32_t psn = good->resp_psn - MSG / 1024;
	struct ibv_qp *peer = rig->peer.qp[VICTIM];
	const uint64_t base =
		window & IBV_ACCESS_ZERO_BASED ? rig->mr->iova : 0;
	struct rxe_migr_status st;
	struct ibv_wc wc;
	struct copy c;
	double end;
	int n;

	memcpy(rec, good, good->rec.length);
	memset(res, 0, rec->max_dest_rd_atomic * sizeof(*res));
	*res = wanted;
	res->first_psn = res->cur_psn = psn & 0xffffff;
	res->last_psn = (good->resp_psn - 1) & 0xffffff;

	copy_open(rig, &c);
	copy_create(rig, &c);
	if (window)
		fuzz_window(rig, &c, rkey, window);
	EXPECT(refill_as(rig, c.fd, UVERBS_OBJECT_QP, rec->rec.handle, rec,
			 rec->rec.length),
	       0);
	refill_all_but(rig, &c, &good->rec);
	qp_reset(peer);
	while (qp_polled(&rig->peer))
		;
	qp_connect(rig, peer, rec->qpn, psn, rec->comp_psn);
	EXPECT(migr_cmd_attach(c.fd, &st), 0);
	EXPECT(migr_cmd_resume(c.fd, &st), 0);
	if (atomic)
		post_add(&rig->peer, VICTIM);
	else
		MUST(!qp_post_read(&rig->peer, VICTIM, rkey, from - base));
	end = fuzz_now() + 20; /* it is refused, if not answered */
	do
		n = ibv_poll_cq(rig->peer.cq, 1, &wc);
	while (!n && fuzz_now() < end);
	qp_reset(peer);
	copy_close(&c);
	free(rec);
	return n && !wc.status;
}

static void foreign_reads(struct rig *rig)
{
	struct side other = {};

	side_open(rig, &other);
	EXPECT(answered_again(rig, other.mr->rkey, other.mem, false, 0), false);
	EXPECT(answered_again(rig, rig->mr->key, rig->mem, false, 0), true);
	/* the driver keeps both in a union, where an address is an old value */
	EXPECT(answered_again(rig, rig->mr->key, rig->mem, true, 0), false);
	EXPECT(answered_again(rig, WINDOW, rig->mem, false,
			      IBV_ACCESS_REMOTE_READ),
	       true);
	EXPECT(answered_again(rig, WINDOW, rig->mem, false,
			      IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED),
	       true);
	EXPECT(answered_again(rig, WINDOW, rig->mem, false,
			      IBV_ACCESS_REMOTE_WRITE),
	       false);
	EXPECT(answered_again(rig, WINDOW, rig->mem, false, 0), false);
	side_close(&other);
}

void attack_crafted(struct rig *rig)
{
	const struct rxe_migr_rec_qp *good = rig->qp[VICTIM];
	struct rxe_migr_rec_qp *rec = malloc(good->rec.length);
	struct copy c;
	int ret;

	copy_open(rig, &c);
	copy_create(rig, &c);
	for (size_t i = 0; i < sizeof(crafts) / sizeof(*crafts); i++) {
		memcpy(rec, good, good->rec.length);
		crafts[i].change(rec);
		/* what must be a lkey is known here only */
		rec->wqe.sge[0].addr = (uintptr_t)rig->mem + MSG;
		rec->wqe.sge[0].lkey = rig->mr->key;
		ret = try_record(rig, &c, rec, rec->rec.length, true);
		if (crafts[i].want != -1 && ret != crafts[i].want) {
			fprintf(stderr, "%s: %d, not %d\n", crafts[i].name, ret,
				crafts[i].want);
			fuzz_failures++;
		}
	}
	/* and the good one after all that */
	EXPECT(try_record(rig, &c, good, good->rec.length, true), 0);
	copy_close(&c);
	free(rec);
	foreign_reads(rig);
}
