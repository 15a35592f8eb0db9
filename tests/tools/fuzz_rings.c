// SPDX-License-Identifier: GPL-2.0
/*
 * The application runs on while its context is dumped, and posts receives: that
 * takes no system call. Each image is of one moment all the same.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/rdma_user_rxe.h>

#include "migr_fuzz.h"

struct poster {
	struct rxe_queue_buf *ring;
	atomic_bool end;
};

/* one more receive, and one less, as fast as can be */
static void *post(void *arg)
{
	struct poster *p = arg;
	volatile uint32_t *producer = &p->ring->producer_index;
	uint32_t none = *producer, one = (none + 1) & p->ring->index_mask;

	while (!p->end) {
		*producer = one;
		*producer = none;
	}
	return NULL;
}

/* what is posted is in the image; REFILL asks for it */
static bool complete(const struct rxe_migr_ring *ring)
{
	return ring->producer <= ring->slots &&
	       (ring->consumer <= ring->producer ||
		ring->slots == ring->index_mask + 1);
}

static bool rings_complete(const struct migr_image *img)
{
	const struct rxe_migr_rec_qp *qp;

	for (unsigned int i = 0; i < img->count; i++) {
		qp = (const void *)img->records[i];
		if (qp->rec.type == RXE_MIGR_QP &&
		    (!complete(&qp->sq) || !complete(&qp->rq)))
			return false;
	}
	return true;
}

static void dump_often(struct copy *c)
{
	unsigned int taken = 0, wrong = 0;
	struct rxe_migr_dump_resp resp;
	static char buf[1 << 18] __attribute__((aligned(8)));
	struct migr_error err;
	struct migr_image img;

	for (int i = 0; i < 2000; i++) {
		int ret = migr_cmd_dump_once(c->fd, buf, sizeof(buf), &resp);

		/* there was no room for what came meanwhile */
		if (EXPECT(ret, 0, -EAGAIN))
			continue;
		taken++;
		if (EXPECT(migr_image_parse(buf, resp.needed, &img, &err), 0)) {
			fprintf(stderr, "%s\n", err.text);
			continue;
		}
		wrong += !rings_complete(&img);
		migr_image_free(&img);
	}
	printf("%u images, %u of them wrong\n", taken, wrong);
	EXPECT(taken > 0, 1);
	EXPECT((int)wrong, 0);
}

void attack_rings(struct rig *rig)
{
	const struct rxe_migr_ring *rq = &rig->qp[0]->rq;
	struct rxe_migr_status st;
	struct poster p = {};
	struct copy c;
	pthread_t t;

	copy_open(rig, &c);
	copy_create(rig, &c);
	for (int i = 0; i < N_QPS; i++) {
		EXPECT(refill_qp(c.fd, rig->qp[i]->rec.handle), 0);
		rig_renew_peer(rig, i);
	}
	EXPECT(migr_cmd_attach(c.fd, &st), 0);
	EXPECT(migr_cmd_resume(c.fd, &st), 0);
	p.ring = mmap(NULL, rq->mmap_size, PROT_READ | PROT_WRITE, MAP_SHARED,
		      c.fd, (off_t)rq->mmap_offset);
	MUST(p.ring != MAP_FAILED);
	MUST(!EXPECT(migr_cmd_stop(c.fd, 0, 20000, &st), 0));

	MUST(!pthread_create(&t, NULL, post, &p));
	dump_often(&c);
	p.end = true;
	MUST(!pthread_join(t, NULL));

	close(st.guard_fd);
	munmap(p.ring, rq->mmap_size);
	copy_close(&c);
}
