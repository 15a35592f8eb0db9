// SPDX-License-Identifier: GPL-2.0
/*
 * Many threads on the same two contexts: some stop and dump all the time, the
 * others create, change and destroy what they stop. What is dumped is an image;
 * else nothing is expected of the results, but of the kernel.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "migr_fuzz.h"

struct race {
	struct rig *rig;
	struct side s; /* live, connected to itself */
	struct copy c; /* restored, never started */
	double end;
	atomic_uint stops, dumps, rounds;
	atomic_bool wrong; /* an image was */
};

/* not before what is fought for has been had; ten minutes are enough for any */
static bool over(struct race *r)
{
	double late = fuzz_now() - r->end;

	return late >= 600 ||
	       (late >= 0 && r->stops >= 10 && r->dumps >= 10 && r->rounds);
}

static void dump(struct race *r, void *buf, size_t length)
{
	struct rxe_migr_dump_resp resp;
	struct migr_image img;
	struct migr_error err;

	if (migr_cmd_dump_once(r->s.ctx->cmd_fd, buf, length, &resp))
		return;
	r->dumps++;
	if (!migr_image_parse(buf, resp.needed, &img, &err))
		migr_image_free(&img);
	else if (!atomic_exchange(&r->wrong, true))
		fprintf(stderr, "%s\n", err.text);
}

/* does not wait for a STOP: it may come in the middle of one */
static void *dumper(void *arg)
{
	struct race *r = arg;
	size_t length = 1 << 18;
	void *buf = malloc(length);

	while (!over(r))
		dump(r, buf, length);
	free(buf);
	return NULL;
}

/* two of these run at a time */
static void *stopper(void *arg)
{
	struct rxe_migr_status st;
	struct race *r = arg;
	size_t length = 1 << 18;
	void *buf = malloc(length);

	while (!over(r)) {
		int fd = r->s.ctx->cmd_fd;

		if (migr_cmd_stop(fd, 0, 100, &st))
			continue;
		r->stops++;
		for (int i = 0; i < 10; i++)
			dump(r, buf, length);
		close(st.guard_fd);
		/* some time for the traffic */
		usleep((unsigned int)random() % 2000);
	}
	free(buf);
	return NULL;
}

static void *qps(void *arg)
{
	struct race *r = arg;
	struct ibv_qp_init_attr init = {
		.send_cq = r->s.cq,
		.recv_cq = r->s.cq,
		.cap = { 4, 4, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_srq_init_attr srq_init = { .attr = { 4, 1, 0 } };
	struct ibv_qp *qp[4];
	struct ibv_srq *srq;
	unsigned int round = 0;

	while (!over(r)) {
		/* mostly what can be stopped, or STOP would never succeed */
		bool odd = round++ % 8 == 7;

		srq = odd ? ibv_create_srq(r->s.pd, &srq_init) : NULL;
		for (int i = 0; i < 4; i++) {
			init.srq = i == 1 ? srq : NULL;
			init.qp_type = odd && i == 2 ? IBV_QPT_UD : IBV_QPT_RC;
			qp[i] = ibv_create_qp(r->s.pd, &init);
		}
		if (qp[0] && qp[3]) {
			qp_connect(r->rig, qp[0], qp[3]->qp_num, 7, 7);
			qp_connect(r->rig, qp[3], qp[0]->qp_num, 7, 7);
		}
		for (int i = 0; i < 4; i++)
			if (qp[i])
				ibv_destroy_qp(qp[i]);
		if (srq)
			ibv_destroy_srq(srq);
		r->rounds++;
		/* what is connected after a STOP cannot be dumped */
		usleep((unsigned int)random() % 5000);
	}
	return NULL;
}

/* the second pair goes through its states, with other sizes each time */
static void *states(void *arg)
{
	struct race *r = arg;

	while (!over(r)) {
		qp_reset(r->s.qp[1]);
		qp_connect(r->rig, r->s.qp[1], r->s.qp[1]->qp_num, 9, 9);
		qp_post_recv(&r->s, 1);
		qp_post_send(&r->s, 1);
	}
	return NULL;
}

/* of the first pair; when its patience is over it begins anew */
static void *traffic(void *arg)
{
	struct race *r = arg;
	struct ibv_qp *qp = r->s.qp[0];
	struct ibv_wc wc;
	bool failed;

	while (!over(r)) {
		failed = false;
		qp_post_recv(&r->s, 0);
		qp_post_send(&r->s, 0);
		while (ibv_poll_cq(r->s.cq, 1, &wc) > 0)
			failed |= wc.status && wc.qp_num == qp->qp_num;
		if (!failed)
			continue;
		qp_reset(qp);
		qp_connect(r->rig, qp, qp->qp_num, 5, 5);
	}
	return NULL;
}

static void *memory(void *arg)
{
	struct race *r = arg;
	char *p = aligned_alloc(4096, 65536);
	struct ibv_cq *cq;
	struct ibv_mr *mr;

	while (!over(r)) {
		mr = ibv_reg_mr(r->s.pd, p, 65536, IBV_ACCESS_LOCAL_WRITE);
		cq = ibv_create_cq(r->s.ctx, 4, NULL, NULL, 0);
		for (int n = 8; cq && n < 128; n *= 2)
			ibv_resize_cq(cq, n);
		if (cq)
			ibv_destroy_cq(cq);
		if (mr)
			ibv_dereg_mr(mr);
	}
	free(p);
	return NULL;
}

/* all of these threads fight for the same QPN and the same record */
static void *restorer(void *arg)
{
	struct race *r = arg;
	const struct rxe_migr_rec_qp *qp = r->rig->qp[1];
	struct rxe_migr_status st;
	struct migr_error err;
	struct migr_restore m;

	migr_restore_init(&m, r->c.fd, &err);
	while (!over(r)) {
		if (!migr_create_object(&m, &qp->rec))
			migr_connect_qp(&m, &qp->rec);
		refill_qp(r->c.fd, qp->rec.handle);
		migr_cmd_attach(r->c.fd, &st);
		migr_cmd_resume(r->c.fd, &st);
		raw_destroy_qp(r->c.fd, qp->rec.handle);
	}
	migr_restore_release(&m);
	return NULL;
}

void attack_races(struct rig *rig, double seconds)
{
	static void *(*const threads[])(void *) = {
		stopper, stopper, dumper,   qps,      qps,	states,
		memory,	 traffic, restorer, restorer, restorer,
	};
	enum {
		N = sizeof(threads) / sizeof(*threads)
	};
	struct race r = { .rig = rig, .end = fuzz_now() + seconds };
	pthread_t t[N];

	side_open(rig, &r.s);
	qp_connect(rig, r.s.qp[0], r.s.qp[0]->qp_num, 5, 5);
	copy_open(rig, &r.c);
	copy_create(rig, &r.c);
	for (int i = 0; i < N; i++)
		MUST(!pthread_create(&t[i], NULL, threads[i], &r));
	for (int i = 0; i < N; i++)
		MUST(!pthread_join(t[i], NULL));
	printf("%u times stopped, %u dumps, %u rounds of QPs\n", r.stops,
	       r.dumps, r.rounds);
	MUST(r.stops && r.dumps);
	EXPECT(r.wrong, false);
	copy_close(&r.c);
	side_close(&r.s);
}
