// SPDX-License-Identifier: GPL-2.0
/*
 * Who keeps the driver busy for as long as he likes, be it with a page that does not
 * come or with a ring that never ends, holds up nobody who must not wait, and takes
 * nothing away under those who do.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rdma/rdma_user_rxe.h>

#include "migr_fuzz.h"

#define PAGE 4096
#define HELD_S 55 /* longer than a pool waits for what it destroys */
#define SPIN_S 20
#define LOOKS 20 /* in a row that have shown a thread asleep */
#define DONE 3	 /* rxe: wqe_state_done */
#define RINGS 64 /* mappings of a device, at most */

/* ---- a page that does not come ---- */

struct held {
	struct side s;
	char *page;
	atomic_int tid; /* of who stops */
	atomic_bool destroyed;
};

static void *load(void *arg)
{
	struct held *h = arg;

	EXPECT(migr_cmd_load(h->s.ctx->cmd_fd, h->page, PAGE), -EINVAL);
	return NULL;
}

static void *stop(void *arg)
{
	struct held *h = arg;
	struct rxe_migr_status st;

	h->tid = (int)syscall(SYS_gettid);
	if (!EXPECT(migr_cmd_stop(h->s.ctx->cmd_fd, 0, 0, &st), 0))
		close(st.guard_fd);
	return NULL;
}

static void *destroy(void *arg)
{
	struct held *h = arg;

	MUST(!ibv_destroy_qp(h->s.qp[0]));
	h->destroyed = true;
	return NULL;
}

static bool is_asleep(int tid)
{
	char path[64], stat[256] = "", state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "r");
	if (f) {
		if (fgets(stat, sizeof(stat), f) && strrchr(stat, ')'))
			state = strrchr(stat, ')')[2];
		fclose(f);
	}
	return state == 'D';
}

/* for good, and not just for memory or another short lock */
static bool sleeps(int tid)
{
	int n = 0;

	while (n < LOOKS && is_asleep(tid)) {
		usleep(10000);
		n++;
	}
	return n == LOOKS;
}

static void slow_page(struct rig *rig)
{
	struct held h = {};
	pthread_t t[3];
	double end;
	int faults;

	side_open(rig, &h.s);
	h.page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(h.page != MAP_FAILED);
	faults = faults_hold(h.page, PAGE);

	MUST(!pthread_create(&t[0], NULL, load, &h));
	faults_wait(faults); /* it has the context's lock */
	MUST(!pthread_create(&t[1], NULL, stop, &h));
	end = fuzz_now() + 20;
	while (!h.tid || !sleeps(h.tid)) /* with the QPs, for the lock */
		MUST(fuzz_now() < end);
	MUST(!pthread_create(&t[2], NULL, destroy, &h));
	end = fuzz_now() + HELD_S;
	while (fuzz_now() < end && !h.destroyed)
		usleep(100000);
	MUST(!h.destroyed);

	faults_serve(faults, h.page, PAGE);
	for (int i = 0; i < 3; i++)
		MUST(!pthread_join(t[i], NULL));
	munmap(h.page, PAGE);

	h.s.qp[0] =
		ibv_create_qp(h.s.pd, &(struct ibv_qp_init_attr){
					      .send_cq = h.s.cq,
					      .recv_cq = h.s.cq,
					      .cap = { DEPTH, DEPTH, 1, 1, 0 },
					      .qp_type = IBV_QPT_RC });
	MUST(h.s.qp[0]);
	side_close(&h.s);
}

/* ---- a send queue that never ends ---- */

struct spin {
	struct rxe_queue_buf *sq;
	atomic_bool end, late;
};

/* all requests are done, and there is always one more */
static void *spin(void *arg)
{
	struct spin *p = arg;
	struct rxe_queue_buf *q = p->sq;
	volatile uint32_t *producer = &q->producer_index;
	volatile uint32_t *consumer = &q->consumer_index;
	double end = fuzz_now() + SPIN_S;

	for (unsigned int n = 0; !p->end; n++) {
		*producer = (*consumer - 1) & q->index_mask;
		if (!(n % 65536) && fuzz_now() > end) {
			p->late = true;
			break;
		}
	}
	*producer = *consumer;
	return NULL;
}

/* the mappings that this process has of devices */
static int rings(void **at)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long start;
	char line[512];
	int n = 0;

	MUST(f);
	while (fgets(line, sizeof(line), f))
		if (strstr(line, "/uverbs") &&
		    sscanf(line, "%lx-", &start) == 1 && n < RINGS)
			at[n++] = (void *)start;
	fclose(f);
	return n;
}

/* the ring with so many slots that has come since there were `old` */
static struct rxe_queue_buf *new_ring(void *const *old, int n, uint32_t slots)
{
	struct rxe_queue_buf *q = NULL;
	void *now[RINGS];
	int all = rings(now);

	for (int i = 0; i < all; i++) {
		bool known = false;

		for (int k = 0; k < n; k++)
			known |= now[i] == old[k];
		if (!known &&
		    ((struct rxe_queue_buf *)now[i])->index_mask == slots - 1)
			q = now[i];
	}
	return q;
}

static void endless_ring(struct rig *rig)
{
	struct ibv_qp_init_attr init = { .cap = { 40, 4, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	struct rxe_migr_status st;
	struct spin p = {};
	struct side s = {};
	void *old[RINGS];
	struct ibv_qp *qp;
	pthread_t t;
	int n;

	side_open(rig, &s);
	init.send_cq = init.recv_cq = s.cq;
	n = rings(old);
	MUST(qp = ibv_create_qp(s.pd, &init)); /* unsignaled */
	qp_connect(rig, qp, qp->qp_num, 7, 7);
	MUST(p.sq = new_ring(old, n, 64));

	MUST(!ibv_post_send(qp, &wr, &bad)); /* it waits for a receive */
	for (uint32_t i = 0; i <= p.sq->index_mask; i++) {
		struct rxe_send_wqe *wqe =
			(void *)(p.sq->data +
				 ((size_t)i << p.sq->log2_elem_size));

		wqe->state = DONE;
		wqe->status = IBV_WC_SUCCESS;
		wqe->wr.send_flags = 0;
	}
	MUST(!pthread_create(&t, NULL, spin, &p));
	MUST(!migr_cmd_stop(s.ctx->cmd_fd, 0, 1000, &st));
	EXPECT(p.late, 0);
	p.end = true;
	MUST(!pthread_join(t, NULL));
	close(st.guard_fd);

	MUST(!ibv_destroy_qp(qp));
	side_close(&s);
}

void attack_held(struct rig *rig)
{
	endless_ring(rig);
	slow_page(rig);
}
