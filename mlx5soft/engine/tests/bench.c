// SPDX-License-Identifier: GPL-2.0
/*
 * engine_bench [SECONDS]	seconds of processor time for each line
 *
 * Two engines back to back in one thread: what the transport costs in processor
 * time, without device, guest and network. Each frame is copied once, as a socket
 * would do it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "roce.h"

#define MEMORY (64U << 20)
#define FRAMES 1024
#define FRAME_BYTES 4352
#define KEY 7
#define FIRST_QPN 17

struct bench_qp {
	struct roce_qp *qp;
	uint64_t posted, completed;
};

struct end {
	struct roce_engine *engine;
	struct bench_qp *qps; /* connected with those of the same index */
	uint32_t num_qps;
	struct end *peer;
	uint8_t *mem;
	struct {
		uint32_t len;
		uint8_t bytes[FRAME_BYTES];
	} *frames; /* on their way to this end */
	uint32_t head, count;
	enum roce_wr_opcode opcode;
	uint32_t len;
	uint64_t completed, depth;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* of the processor, as others may want it, too */
static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static bool bench_has_room(void *ctx)
{
	return ((struct end *)ctx)->peer->count < FRAMES;
}

static int bench_transmit(void *ctx, const void *frame, size_t len)
{
	struct end *to = ((struct end *)ctx)->peer;
	uint32_t at = (to->head + to->count) % FRAMES;

	if (to->count == FRAMES)
		return -EAGAIN;
	memcpy(to->frames[at].bytes, frame, len);
	to->frames[at].len = len;
	to->count++;
	return 0;
}

static int bench_fetch_send(void *ctx, void *qp_ctx, struct roce_send_wqe *wqe)
{
	struct end *e = ctx;
	struct bench_qp *q = qp_ctx;

	if (!e->len || q->posted - q->completed >= e->depth)
		return 0;
	wqe->cookie = q->posted++;
	wqe->opcode = e->opcode;
	wqe->flags = ROCE_SEND_SIGNALED;
	wqe->rkey = KEY;
	wqe->remote_addr = (wqe->cookie % 64) << 16;
	wqe->num_sge = 1;
	wqe->sge[0] =
		(struct roce_sge){ (wqe->cookie % 64) << 16, e->len, KEY };
	return 1;
}

static int bench_fetch_recv(void *ctx, void *qp_ctx, struct roce_recv_wqe *wqe)
{
	(void)ctx;
	(void)qp_ctx;
	wqe->num_sge = 1;
	wqe->sge[0] = (struct roce_sge){ 0, 65536, KEY };
	return 1;
}

static int bench_complete_send(void *ctx, void *qp_ctx,
			       const struct roce_send_wc *wc)
{
	struct end *e = ctx;
	struct bench_qp *q = qp_ctx;

	if (wc->status) {
		fprintf(stderr, "status %d\n", wc->status);
		exit(1);
	}
	q->completed++;
	e->completed++;
	roce_kick(q->qp);
	return 0;
}

static int bench_complete_recv(void *ctx, void *qp_ctx,
			       const struct roce_recv_wc *wc)
{
	(void)ctx;
	(void)qp_ctx;
	return wc->status ? -EIO : 0;
}

static int bench_translate(void *ctx, void *qp_ctx, uint32_t pd, uint32_t key,
			   uint64_t addr, uint32_t len, unsigned int access,
			   bool remote, struct iovec *iov, int max)
{
	struct end *e = ctx;

	(void)qp_ctx;
	(void)pd;
	(void)access;
	(void)remote;
	if (key != KEY || addr > MEMORY || len > MEMORY - addr)
		return -EACCES;
	if (max)
		iov[0] = (struct iovec){ e->mem + addr, len };
	return max ? 1 : 0;
}

static const struct roce_ops bench_ops = {
	.has_room = bench_has_room,
	.transmit = bench_transmit,
	.fetch_send = bench_fetch_send,
	.fetch_recv = bench_fetch_recv,
	.complete_send = bench_complete_send,
	.complete_recv = bench_complete_recv,
	.translate = bench_translate,
};

static void connect_qp(struct end *e, int index, uint32_t n)
{
	const struct roce_qp_init init = {
		.type = ROCE_QPT_RC,
		.ctx = &e->qps[n],
		.qpn = FIRST_QPN + n,
		.max_send_wr = 64,
		.max_send_sge = 1,
		.max_recv_sge = 1,
	};
	struct roce_qp_attr attr = {
		.access = 0xf,
		.port = 1,
		.path_mtu = ROCE_MTU_4096,
		.timeout = 18,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 16,
		.max_dest_rd_atomic = 16,
		.dest_qpn = FIRST_QPN + n,
		.av = { .dmac = { 2, [5] = !index },
			.dgid = { 0xfd, [15] = !index } },
	};
	static const uint32_t masks[] = {
		0,
		ROCE_QP_PKEY_INDEX | ROCE_QP_PORT | ROCE_QP_ACCESS_FLAGS,
		ROCE_QP_AV | ROCE_QP_PATH_MTU | ROCE_QP_DEST_QPN |
			ROCE_QP_RQ_PSN | ROCE_QP_MAX_DEST_RD_ATOMIC |
			ROCE_QP_MIN_RNR_TIMER,
		ROCE_QP_TIMEOUT | ROCE_QP_RETRY_CNT | ROCE_QP_RNR_RETRY |
			ROCE_QP_SQ_PSN | ROCE_QP_MAX_QP_RD_ATOMIC,
	};

	if (roce_qp_create(e->engine, &init, &e->qps[n].qp))
		exit(1);
	for (int s = ROCE_QPS_INIT; s <= ROCE_QPS_RTS; s++) {
		attr.state = s;
		if (roce_qp_modify(e->qps[n].qp, &attr,
				   ROCE_QP_STATE | masks[s]))
			exit(1);
	}
}

static void set_up(struct end *e, int index, uint32_t num_qps)
{
	const struct roce_config config = { .ops = &bench_ops, .ctx = e };
	uint8_t mac[6] = { 2, [5] = index }, gid[16] = { 0xfd, [15] = index };

	e->mem = calloc(1, MEMORY);
	e->frames = calloc(FRAMES, sizeof(*e->frames));
	e->qps = calloc(num_qps, sizeof(*e->qps));
	e->num_qps = num_qps;
	e->head = e->count = 0;
	if (!e->mem || !e->frames || !e->qps ||
	    roce_engine_create(&config, &e->engine) ||
	    roce_set_gid(e->engine, 0, gid, mac))
		exit(1);
	for (uint32_t n = 0; n < num_qps; n++)
		connect_qp(e, index, n);
}

static void set_up_both(struct end *ends, uint32_t num_qps)
{
	for (int i = 0; i < 2; i++) {
		ends[i].peer = &ends[!i];
		set_up(&ends[i], i, num_qps);
	}
}

/* Returns the seconds that it took. */
static double tear_down(struct end *ends)
{
	uint64_t start = cpu_ns();

	for (int i = 0; i < 2; i++) {
		roce_engine_destroy(ends[i].engine);
		free(ends[i].mem);
		free(ends[i].frames);
		free(ends[i].qps);
	}
	return (cpu_ns() - start) / 1e9;
}

static void turn(struct end *e)
{
	uint64_t now = now_ns();

	for (int n = 0; e->count && n < 64; n++) {
		roce_rx(e->engine, now, e->frames[e->head].bytes,
			e->frames[e->head].len);
		e->head = (e->head + 1) % FRAMES;
		e->count--;
	}
	roce_tick(e->engine, now);
}

static void measure(struct end *ends, const char *name,
		    enum roce_wr_opcode opcode, uint32_t len, uint64_t depth,
		    double seconds)
{
	uint64_t start = cpu_ns(), before = ends[0].completed, n;
	double s;

	ends[0].opcode = opcode;
	ends[0].len = len;
	ends[0].depth = depth;
	for (uint32_t q = 0; q < ends[0].num_qps; q++)
		roce_kick(ends[0].qps[q].qp);
	do {
		for (int i = 0; i < 64; i++) {
			turn(&ends[0]);
			turn(&ends[1]);
		}
		s = (cpu_ns() - start) / 1e9;
	} while (s < seconds);
	n = ends[0].completed - before;
	printf("%-16s %5u QPs, depth %2d: %8.0f messages/s, %7.1f MB/s, "
	       "%6.0f ns each\n",
	       name, ends[0].num_qps, (int)depth, n / s, n / s * len / 1e6,
	       s / n * 1e9);
	ends[0].len = 0;
	for (uint32_t q = 0; q < ends[0].num_qps; q++)
		while (ends[0].qps[q].posted != ends[0].qps[q].completed) {
			turn(&ends[0]);
			turn(&ends[1]);
		}
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	static const uint32_t many[] = { 16, 1024, 16384 };
	static struct end ends[2];

	set_up_both(ends, 1);
	measure(ends, "WRITE of 64 KiB", ROCE_WR_RDMA_WRITE, 65536, 16,
		seconds);
	measure(ends, "READ of 64 KiB", ROCE_WR_RDMA_READ, 65536, 16, seconds);
	measure(ends, "SEND of 64 KiB", ROCE_WR_SEND, 65536, 16, seconds);
	measure(ends, "SEND of 8 B", ROCE_WR_SEND, 8, 64, seconds);
	measure(ends, "SEND of 8 B", ROCE_WR_SEND, 8, 1, seconds);
	measure(ends, "WRITE of 8 B", ROCE_WR_RDMA_WRITE, 8, 64, seconds);
	tear_down(ends);
	for (size_t i = 0; i < sizeof(many) / sizeof(*many); i++) {
		set_up_both(ends, many[i]);
		measure(ends, "WRITE of 8 B", ROCE_WR_RDMA_WRITE, 8, 4,
			seconds);
		for (uint32_t q = 0; q < many[i]; q++)
			roce_kick(ends[0].qps[q].qp);
		printf("%u QPs with work destroyed in %.3f s\n", many[i],
		       tear_down(ends));
	}
	return 0;
}
