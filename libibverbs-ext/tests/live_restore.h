/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The parts of live_restore.
 */
#ifndef LIVE_RESTORE_H
#define LIVE_RESTORE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_user_rxe.h>

#include "migr_cmd.h"

#define LIVE_MSG 4096

struct side {
	struct ibv_context *ctx;
	struct ibv_pd *gap, *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_srq *srq; /* of all QPs; NULL: each has its receive queue */
	struct ibv_qp **qp;
	struct rxe_queue_buf *ring; /* of cq */
	char *mem;
	int gid_index;
	union ibv_gid gid;
};

extern int n_qps;
extern uint8_t qp_timeout;
extern bool with_srq, measure;

/* milliseconds */
extern struct live_times {
	double stop, dump, restore, map, attach, resume, flow;
} took;

#define say(...) ((void)(measure || printf(__VA_ARGS__)))

double now(void);

/* live_side.c */
void open_side(struct side *s, struct ibv_device *dev);
void connect_qp(struct side *s, const struct side *peer, int i);
void post_recv(struct side *s, int i, uint64_t wr_id);
void post_send(struct side *s, int i, uint64_t wr_id);
void wait_for(struct side *s, int n);
void wait_in_ring(const struct side *s, uint32_t n);
void close_side(struct side *s);

/* live_image.c */
int get_context(int fd, const struct migr_image *img, struct migr_error *err);
void restore_single(int fd, const struct migr_image *img);
struct rxe_queue_buf *map_rings(int fd, const struct migr_image *img);
uint32_t completions(const struct rxe_queue_buf *ring,
		     const struct migr_image *img);
void dump_again(int fd, const struct migr_image *img);
void report(const struct migr_image *img, size_t length);

/* live_fail.c */
void stop_failing(struct side *s, struct side *peer);
void dump_failing(struct side *s);
void restore_failing(const char *path, const struct migr_image *img);

#endif /* LIVE_RESTORE_H */
