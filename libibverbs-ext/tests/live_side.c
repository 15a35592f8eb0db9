// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * live_restore: the two ends of its connections.
 */

#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../../tests/check.h"
#include "../../tests/connect.h"
#include "live_restore.h"

#define MSG LIVE_MSG
#define DEPTH 4

int n_qps = 2;
uint8_t qp_timeout = 14;
bool with_srq, measure;

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/*
 * What was mapped last of an rxe device: rdma-core does not say where its rings
 * are. Their offsets only grow.
 */
static void *last_ring(void)
{
	unsigned long at, offset, last = 0;
	void *ring = NULL;
	char line[512];
	FILE *maps;

	MUST(maps = fopen("/proc/self/maps", "r"));
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "/dev/infiniband/uverbs") &&
		    sscanf(line, "%lx-%*x %*s %lx", &at, &offset) == 2 &&
		    offset > last) {
			ring = (void *)at;
			last = offset;
		}
	fclose(maps);
	return ring;
}

/* One for all QPs of the context, which receive from it */
static void make_srq(struct side *s)
{
	struct ibv_srq_init_attr init = {
		.attr = { .max_wr = DEPTH * (uint32_t)n_qps, .max_sge = 2 },
	};

	MUST(s->srq = ibv_create_srq(s->pd, &init));
}

void open_side(struct side *s, struct ibv_device *dev)
{
	struct ibv_qp_init_attr init = {
		.cap = { DEPTH, DEPTH, 2, 2, 0 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	int i;

	MUST(s->ctx = ibv_open_device(dev));
	MUST(!ibv_query_gid(s->ctx, 1, s->gid_index, &s->gid));
	MUST(s->gap = ibv_alloc_pd(s->ctx));
	MUST(s->pd = ibv_alloc_pd(s->ctx));
	MUST(s->cq = ibv_create_cq(s->ctx, DEPTH * n_qps, s, NULL, 0));
	MUST(s->ring = last_ring());
	s->mem = mmap(NULL, 2 * MSG, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(s->mem != MAP_FAILED);
	MUST(s->mr = ibv_reg_mr(s->pd, s->mem, 2 * MSG,
				IBV_ACCESS_LOCAL_WRITE |
					IBV_ACCESS_REMOTE_WRITE));
	if (with_srq)
		make_srq(s);
	MUST(!ibv_dealloc_pd(s->gap));
	init.srq = s->srq;
	init.send_cq = init.recv_cq = s->cq;
	MUST(s->qp = calloc((size_t)n_qps, sizeof(*s->qp)));
	for (i = 0; i < n_qps; i++)
		MUST(s->qp[i] = ibv_create_qp(s->pd, &init));
}

void connect_qp(struct side *s, const struct side *peer, int i)
{
	struct ibv_qp_attr a =
		rc_attr(&peer->gid, s->gid_index, peer->qp[i]->qp_num);

	a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	a.rq_psn = a.sq_psn = 0xfffff0;
	a.timeout = qp_timeout;
	a.retry_cnt = a.rnr_retry = 6;
	MUST(!rc_to_rtr(s->qp[i], &a) && !rc_to_rts(s->qp[i], &a));
}

void post_recv(struct side *s, int i, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)s->mem + MSG, MSG, s->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id,
				  .sg_list = &sge,
				  .num_sge = 1 };
	struct ibv_recv_wr *bad;

	if (s->srq)
		MUST(!ibv_post_srq_recv(s->srq, &wr, &bad));
	else
		MUST(!ibv_post_recv(s->qp[i], &wr, &bad));
}

void post_send(struct side *s, int i, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)s->mem, MSG, s->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = wr_id,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND };
	struct ibv_send_wr *bad;

	MUST(!ibv_post_send(s->qp[i], &wr, &bad));
}

/* n good completions of one side within a minute */
void wait_for(struct side *s, int n)
{
	double end = now() + 60000;
	struct ibv_wc wc;
	int got;

	while (n && now() < end) {
		MUST((got = ibv_poll_cq(s->cq, 1, &wc)) >= 0);
		if (!got)
			continue;
		CHECK(wc.status == IBV_WC_SUCCESS, "%s",
		      ibv_wc_status_str(wc.status));
		n--;
	}
	CHECK(!n, "%d completions are missing", n);
}

/* n completions, within a minute, that nobody takes away */
void wait_in_ring(const struct side *s, uint32_t n)
{
	double end = now() + 60000;
	uint32_t got;

	while ((got = (__atomic_load_n(&s->ring->producer_index,
				       __ATOMIC_ACQUIRE) -
		       s->ring->consumer_index) &
		      s->ring->index_mask) < n &&
	       now() < end)
		usleep(1000);
	CHECK(got == n, "%u completions in the ring, not %u", got, n);
}

void close_side(struct side *s)
{
	int i;

	for (i = 0; i < n_qps; i++)
		MUST(!ibv_destroy_qp(s->qp[i]));
	if (s->srq)
		MUST(!ibv_destroy_srq(s->srq));
	MUST(!ibv_destroy_cq(s->cq));
	MUST(!ibv_dereg_mr(s->mr));
	MUST(!ibv_dealloc_pd(s->pd));
	MUST(!ibv_close_device(s->ctx));
	free(s->qp);
}
