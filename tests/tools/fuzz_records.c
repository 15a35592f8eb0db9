// SPDX-License-Identifier: GPL-2.0
/*
 * Corrupted records. What REFILL refuses leaves the object as it was, so that
 * the next one can be tried on it. What it accepts is started and gets traffic.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "migr_fuzz.h"

#define PAGE 4096
#define VICTIM (N_QPS - 1) /* the QP with work in its send queue */

static unsigned int tried, accepted, started;

/* a record of `length` bytes that ends where unmapped memory begins */
static char *at_end_of_memory(size_t length)
{
	size_t size = (length / PAGE + 1) * PAGE;
	char *p = mmap(NULL, size + PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(p != MAP_FAILED);
	MUST(!munmap(p + size, PAGE));
	return p + size - length;
}

static void free_at_end(char *p, size_t length)
{
	size_t size = (length / PAGE + 1) * PAGE;

	MUST(!munmap(p + length - size, size));
}

/* the other QP and the CQ get what is theirs */
static void refill_others(struct rig *rig, struct copy *c)
{
	refill_cq(c->fd, rig->cq->rec.handle, rig->cq, rig->cq->rec.length);
	for (int i = 0; i < N_QPS; i++)
		if (i != VICTIM)
			EXPECT(refill_qp(c->fd, rig->qp[i]->rec.handle,
					 rig->qp[i], rig->qp[i]->rec.length),
			       0);
}

/* then all is started */
static void start(struct rig *rig, struct copy *c)
{
	struct rxe_migr_status st;
	struct ibv_wc wc;
	double end;

	refill_others(rig, c);
	rig_renew_peer(rig, VICTIM);
	EXPECT(migr_cmd_attach(c->fd, &st), 0);
	EXPECT(migr_cmd_resume(c->fd, &st), 0);
	qp_post_send(&rig->peer, VICTIM);
	qp_post_send(&rig->peer, VICTIM);
	end = fuzz_now() + 0.03;
	while (fuzz_now() < end)
		ibv_poll_cq(rig->peer.cq, 1, &wc);
	started++;
}

static void renew(struct rig *rig, struct copy *c)
{
	copy_close(c);
	copy_open(rig, c);
	copy_create(rig, c);
}

/* one bad record of the victim; `go`: start it if it is accepted */
static int try_qp(struct rig *rig, struct copy *c, const void *rec,
		  size_t length, bool go)
{
	int ret = refill_qp(c->fd, rig->qp[VICTIM]->rec.handle, rec, length);

	tried++;
	if (ret) {
		EXPECT(ret, -EINVAL, -EFAULT);
		return ret;
	}
	accepted++;
	if (go) {
		start(rig, c);
		renew(rig, c);
	} else {
		copy_renew_qp(rig, c, VICTIM);
	}
	return 0;
}

/* the numbers below n in an order that the seed decides */
static size_t *shuffled(size_t n)
{
	size_t *order = malloc(n * sizeof(*order));

	MUST(order);
	for (size_t i = 0; i < n; i++) {
		size_t j = (size_t)random() % (i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	return order;
}

static void flip_qp(struct rig *rig, struct copy *c, size_t part)
{
	const struct rxe_migr_rec_qp *good = rig->qp[VICTIM];
	size_t length = good->rec.length;
	char *rec = at_end_of_memory(length);
	size_t *order = shuffled(sizeof(*good));
	size_t done;

	memcpy(rec, good, length);
	/* every bit, and all bits, of a byte */
	for (done = 0; done * part < sizeof(*good); done++) {
		size_t at = order[done];

		for (int bit = 0; bit < 9; bit++) {
			char flip = (char)(bit < 8 ? 1 << bit : 0xff);

			rec[at] ^= flip;
			try_qp(rig, c, rec, length, bit == (int)(done % 9));
			rec[at] ^= flip;
		}
	}
	printf("QP: %zu of %zu bytes flipped\n", done, sizeof(*good));
	free(order);
	free_at_end(rec, length);
}

/* words that are just beyond what can be */
static void extremes_qp(struct rig *rig, struct copy *c, size_t part)
{
	static const uint32_t values[] = { 0,	       1,	   0x7fffffff,
					   0x80000000, 0xffffffff, 0xffffff,
					   0x1000000 };
	const struct rxe_migr_rec_qp *good = rig->qp[VICTIM];
	size_t length = good->rec.length, n = sizeof(*good) / 4, done;
	size_t *order = shuffled(n);
	uint32_t *rec = malloc(length);

	memcpy(rec, good, length);
	for (done = 0; done * part < n; done++) {
		size_t at = order[done];
		uint32_t old = rec[at];

		for (size_t v = 0; v < sizeof(values) / sizeof(*values); v++) {
			rec[at] = values[v];
			try_qp(rig, c, rec, length, v == done % 7);
		}
		rec[at] = old;
	}
	printf("QP: %zu of %zu words set\n", done, n);
	free(order);
	free(rec);
}

/* the slots: what an application could write there anyhow, and more */
static void random_slots(struct rig *rig, struct copy *c, size_t part)
{
	const struct rxe_migr_rec_qp *good = rig->qp[VICTIM];
	size_t length = good->rec.length;
	char *rec = malloc(length);
	unsigned int done;

	for (done = 0; done * part < 400; done++) {
		size_t tail = length - sizeof(*good);

		memcpy(rec, good, length);
		for (long n = random() % 4; n >= 0; n--)
			rec[sizeof(*good) + (size_t)random() % tail] =
				(char)random();
		try_qp(rig, c, rec, length, done % 8 == 0);
	}
	printf("QP: %u times random slots\n", done);
	free(rec);
}

/* buffer cut, with and without the record knowing */
static void truncate_qp(struct rig *rig, struct copy *c)
{
	const struct rxe_migr_rec_qp *good = rig->qp[VICTIM];
	size_t step = 1;

	for (size_t n = 0; n < good->rec.length; n += step) {
		char *rec = at_end_of_memory(n);

		memcpy(rec, good, n);
		EXPECT(try_qp(rig, c, rec, n, false), -EINVAL, -EFAULT);
		EXPECT(try_qp(rig, c, rec, n + 64, false), -EINVAL, -EFAULT);
		if (n >= sizeof(good->rec)) {
			((struct rxe_migr_rec *)rec)->length = (uint32_t)n;
			EXPECT(try_qp(rig, c, rec, n, false), -EINVAL);
		}
		free_at_end(rec, n);
		if (n > 64)
			step = 8;
	}
}

static void flip_cq(struct rig *rig, struct copy *c)
{
	const struct rxe_migr_rec_cq *good = rig->cq;
	size_t length = good->rec.length;
	char *rec = malloc(length);
	int ret;

	memcpy(rec, good, length);
	for (size_t at = 0; at < sizeof(*good); at++) {
		for (int bit = 0; bit < 9; bit++) {
			char flip = (char)(bit < 8 ? 1 << bit : 0xff);

			rec[at] ^= flip;
			ret = refill_cq(c->fd, good->rec.handle, rec, length);
			rec[at] ^= flip;
			tried++;
			if (ret) {
				EXPECT(ret, -EINVAL);
				continue;
			}
			accepted++;
			renew(rig, c);
		}
	}
	for (size_t n = 0; n < length; n++) {
		char *cut = at_end_of_memory(n);

		memcpy(cut, good, n);
		EXPECT(refill_cq(c->fd, good->rec.handle, cut, n), -EINVAL,
		       -EFAULT);
		EXPECT(refill_cq(c->fd, good->rec.handle, cut, n + 8), -EINVAL,
		       -EFAULT);
		free_at_end(cut, n);
	}
	free(rec);
}

void attack_records(struct rig *rig, size_t part)
{
	double begin = fuzz_now();
	struct copy c;

	copy_open(rig, &c);
	copy_create(rig, &c);
	flip_cq(rig, &c);
	truncate_qp(rig, &c);
	flip_qp(rig, &c, part);
	extremes_qp(rig, &c, part);
	random_slots(rig, &c, part);
	copy_close(&c);
	printf("%u records, %u accepted, %u of them started, %.0f s\n", tried,
	       accepted, started, fuzz_now() - begin);
}

/* ---- records that are wrong on purpose ---- */

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
 * again, or for an ATOMIC in its stead: is that answered?
 */
static bool answered_again(struct rig *rig, uint32_t rkey, const void *from,
			   bool atomic)
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
	EXPECT(refill_qp(c.fd, rec->rec.handle, rec, rec->rec.length), 0);
	refill_others(rig, &c);
	qp_reset(peer);
	while (qp_polled(&rig->peer))
		;
	qp_connect(rig, peer, rec->qpn, psn, rec->comp_psn);
	EXPECT(migr_cmd_attach(c.fd, &st), 0);
	EXPECT(migr_cmd_resume(c.fd, &st), 0);
	if (atomic)
		post_add(&rig->peer, VICTIM);
	else
		MUST(!qp_post_read(&rig->peer, VICTIM, rkey, from));
	end = fuzz_now() + 2;
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
	EXPECT(answered_again(rig, other.mr->rkey, other.mem, false), false);
	EXPECT(answered_again(rig, rig->mr->key, rig->mem, false), true);
	/* the driver keeps both in a union, where an address is an old value */
	EXPECT(answered_again(rig, rig->mr->key, rig->mem, true), false);
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
		ret = try_qp(rig, &c, rec, rec->rec.length, true);
		if (crafts[i].want != -1 && ret != crafts[i].want) {
			fprintf(stderr, "%s: %d, not %d\n", crafts[i].name, ret,
				crafts[i].want);
			fuzz_failures++;
		}
	}
	/* and the good one after all that */
	EXPECT(try_qp(rig, &c, good, good->rec.length, true), 0);
	copy_close(&c);
	free(rec);
	foreign_reads(rig);
}
