// SPDX-License-Identifier: GPL-2.0
/*
 * engine_bench [SECONDS]
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

struct end {
	struct roce_engine *engine;
	struct roce_qp *qp;
	struct end *peer;
	uint8_t *mem;
	struct {
		uint32_t len;
		uint8_t bytes[FRAME_BYTES];
	} *frames; /* on their way to this end */
	uint32_t head, count;
	enum roce_wr_opcode opcode;
	uint32_t len;
	uint64_t posted, completed, depth;
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

	(void)qp_ctx;
	if (!e->len || e->posted - e->completed >= e->depth)
		return 0;
	wqe->cookie = e->posted++;
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

	(void)qp_ctx;
	if (wc->status) {
		fprintf(stderr, "status %d\n", wc->status);
		exit(1);
	}
	e->completed++;
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
	.transmit = bench_transmit,
	.fetch_send = bench_fetch_send,
	.fetch_recv = bench_fetch_recv,
	.complete_send = bench_complete_send,
	.complete_recv = bench_complete_recv,
	.translate = bench_translate,
};

static void set_up(struct end *e, int index)
{
	const struct roce_config config = { .ops = &bench_ops, .ctx = e };
	const struct roce_qp_init init = {
		.type = ROCE_QPT_RC,
		.qpn = 17,
		.max_send_wr = 64,
		.max_send_sge = 1,
		.max_recv_sge = 1,
	};
	uint8_t mac[6] = { 2, [5] = index }, gid[16] = { 0xfd, [15] = index };
	struct roce_qp_attr attr = {
		.access = 0xf,
		.port = 1,
		.path_mtu = ROCE_MTU_4096,
		.timeout = 18,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 16,
		.max_dest_rd_atomic = 16,
		.dest_qpn = 17,
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

	e->mem = calloc(1, MEMORY);
	e->frames = calloc(FRAMES, sizeof(*e->frames));
	if (!e->mem || !e->frames || roce_engine_create(&config, &e->engine) ||
	    roce_set_gid(e->engine, 0, gid, mac) ||
	    roce_qp_create(e->engine, &init, &e->qp))
		exit(1);
	for (int s = ROCE_QPS_INIT; s <= ROCE_QPS_RTS; s++) {
		attr.state = s;
		if (roce_qp_modify(e->qp, &attr, ROCE_QP_STATE | masks[s]))
			exit(1);
	}
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
	roce_kick(ends[0].qp);
	do {
		for (int i = 0; i < 64; i++) {
			turn(&ends[0]);
			turn(&ends[1]);
			roce_kick(ends[0].qp);
		}
		s = (cpu_ns() - start) / 1e9;
	} while (s < seconds);
	n = ends[0].completed - before;
	printf("%-20s depth %2d: %10.0f messages/s, %8.1f MB/s\n", name,
	       (int)depth, n / s, n / s * len / 1e6);
	ends[0].len = 0;
	while (ends[0].posted != ends[0].completed) {
		turn(&ends[0]);
		turn(&ends[1]);
	}
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	static struct end ends[2];

	for (int i = 0; i < 2; i++) {
		ends[i].peer = &ends[!i];
		set_up(&ends[i], i);
	}
	measure(ends, "WRITE of 64 KiB", ROCE_WR_RDMA_WRITE, 65536, 16,
		seconds);
	measure(ends, "READ of 64 KiB", ROCE_WR_RDMA_READ, 65536, 16, seconds);
	measure(ends, "SEND of 64 KiB", ROCE_WR_SEND, 65536, 16, seconds);
	measure(ends, "SEND of 8 B", ROCE_WR_SEND, 8, 64, seconds);
	measure(ends, "SEND of 8 B", ROCE_WR_SEND, 8, 1, seconds);
	measure(ends, "WRITE of 8 B", ROCE_WR_RDMA_WRITE, 8, 64, seconds);
	for (int i = 0; i < 2; i++) {
		roce_engine_destroy(ends[i].engine);
		free(ends[i].mem);
		free(ends[i].frames);
	}
	return 0;
}
