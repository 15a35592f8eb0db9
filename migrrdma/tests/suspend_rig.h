/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What tests of suspension share: an application with its peer, and who suspends it
 */
#ifndef SUSPEND_RIG_H
#define SUSPEND_RIG_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "app.h"
#include "suspend.h"

enum {
	SPARE = 16,  /* entries of a CQ for markers */
	GROWN = 10,  /* requests that the fake adds to what was asked for */
	LONG = 20000 /* ms, more than a test takes */
};

#define EX_OPS                                                            \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | \
	 IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |             \
	 IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |   \
	 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV | \
	 IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV)

extern char dir[]; /* MIGRRDMA_DIR */
extern struct ibv_context *ctx, *real_ctx;
extern struct ibv_pd *pd;
extern const struct ibv_qp_cap cap; /* of new_qp() */
extern atomic_bool prompt;	    /* the peer answers markers at once */
extern struct suspension found;

/* another thread that suspends */
extern struct other {
	pthread_t thread;
	unsigned int ms;
	uint32_t qpn; /* of this QP only, if it is not 0 */
	int err;
	atomic_bool done;
} other;

bool is_marker(const struct fake_sent *sent);
void rig_open(void);

/* what the kernel says of the first device: in its file "ibdev", or "dev" */
void say_of_device(const char *file, const char *text);
int rig_close(void);

struct ibv_cq *new_cq(int cqe, struct ibv_cq **real);
void set_state(struct ibv_qp *qp, enum ibv_qp_state state);
struct ibv_qp *new_qp(enum ibv_qp_type type, struct ibv_cq *cq,
		      struct ibv_qp **real);
struct ibv_qp *new_qp_ex(enum ibv_qp_type type, struct ibv_cq *cq, uint64_t ops,
			 struct ibv_qp **real);
int send_one(struct ibv_qp *qp, uint64_t wr_id, unsigned int flags);
void check_polled(struct ibv_cq *cq, int at_once, const uint64_t *ids,
		  unsigned int n);
void check_nothing(struct ibv_cq *cq);
void check_direct(struct ibv_cq *cq, struct ibv_cq *real);
unsigned int markers_of(struct ibv_qp *real);
void check_sent(struct ibv_qp *real, const uint64_t *ids, unsigned int n);
void suspend(void);
void resume(void);
void begin_suspend(unsigned int ms);
void begin_suspend_one(uint32_t qpn, unsigned int ms);
int end_suspend(void);
/* @a is to be suspended, @b goes on; on the same CQ */
extern struct two {
	struct ibv_cq *cq, *real_cq;
	struct ibv_qp *a, *b, *real_a, *real_b;
} two;
void two_make(void);
void two_destroy(void);
int suspend_one(struct ibv_qp *qp, unsigned int ms);
void suspend_a(void);

struct ibv_cq_ex *new_cq_ex(uint64_t flags, struct ibv_cq **real);

#define POLLED(cq, at_once, ...)                               \
	check_polled(cq, at_once, (uint64_t[]){ __VA_ARGS__ }, \
		     sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

#define SENT(real, ...)                               \
	check_sent(real, (uint64_t[]){ __VA_ARGS__ }, \
		   sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

#endif
