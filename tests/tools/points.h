/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parts of migr_points. Two ends, contexts of one process, are connected by
 * lanes: pairs of QPs, each with an exchange of its own. The module holds the moved
 * end of each lane at another packet, and one move takes them all to the other of
 * two addresses of the device.
 */
#ifndef POINTS_H
#define POINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#define MTU 1024
#define MESSAGES 3	      /* of the opcode; then one SEND, that says so */
#define SLOTS (MESSAGES + 2)  /* and one with which each end shows its life */
#define MAX_WC (MESSAGES + 2) /* that an end expects of a lane and CQ */
#define POINTS 8	      /* that are walked at once */

enum role {
	REQUESTER,
	RESPONDER
};
enum cq {
	SEND,
	RECV
};
enum at { /* what a task can have done with a packet */
	SENT,
	LOST,
	TAKEN,
	HANDLED,
	ATS
};

#define MAX_LANES (ATS * POINTS) /* one for each name in at_names, and point */

extern const char *const role_names[2];
extern const char *const srq_names[2];
extern const char *const at_names[ATS]; /* as the module calls them */

struct lane;
struct rig;

/* rdma_rxe gives the kernel's flag, which is another bit in user space */
#define WITH_INV IBV_WC_IP_CSUM_OK

struct op {
	const char *name;
	enum ibv_wc_opcode opcode; /* of what completes at the requester */
	unsigned int send_flags;
	enum ibv_wc_opcode recv_opcode;
	unsigned int recv_flags; /* 0: takes no receive */
	bool sized;		 /* else it has 8 bytes */
	void (*post)(struct rig *rig, struct lane *l, int i);
	void (*effect)(struct lane *l, int i); /* on memory */
};

/* what is walked at once; part 5 and 6 of the name are at and n of a lane */
struct points_case {
	const struct op *op;
	uint32_t size;
	enum role moved;
	bool srq;
};

/* one end of a lane */
struct half {
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx;
	struct ibv_srq *srq; /* or NULL */
	struct ibv_mw *mw[MESSAGES];
	char *mem;  /* SLOTS to send from, SLOTS to receive into */
	char *want; /* what mem must be in the end */
	struct ibv_wc wc[2][MAX_WC]; /* what its CQs must get, in this order */
	int wcs[2], got[2];
};

struct lane {
	const struct points_case *c;
	const char *at;
	unsigned int n;
	int index;
	struct half half[2]; /* enum role */
	bool held, failed;
	unsigned int moves;
};

/* one of the device, IPv4 and RoCE v2 */
struct address {
	union ibv_gid gid;
	uint8_t index;
};

/* all lanes of one role */
struct end {
	int at; /* of the rig's addresses */
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq[2];
	struct ibv_mr *mr;
	char *mem;
	size_t length;
};

struct rig {
	struct ibv_device *dev;
	struct address address[2];
	struct points_case c;
	struct end end[2]; /* enum role */
	struct lane lane[MAX_LANES];
	int lanes;
};

/* ---- migr_points.c ---- */

/* a line that names the case */
void lane_failed(struct lane *l, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void need_failed(const char *file, int line, const char *what);

/* the rest makes no sense without */
#define NEED(cond) ((cond) ? (void)0 : need_failed(__FILE__, __LINE__, #cond))

/* ---- ends and lanes (points_rig.c) ---- */

size_t slot_size(const struct points_case *c);
/* what a half has in slot i */
char *slot_from(const struct lane *l, enum role role, int i);
char *slot_to(const struct lane *l, enum role role, int i);
/* the addresses of the device, of which it must have two */
void rig_find_addresses(struct rig *rig);
/* lanes are there, with case, at and n */
void rig_open(struct rig *rig);
void rig_close(struct rig *rig);
/* stop, dump, destroy, restore at the other address: libibverbs does not notice */
void end_move(struct rig *rig, enum role role);
void end_resume(struct rig *rig, enum role role);
/* its peer knows where the end is that moves */
void lane_check_peer(struct rig *rig, struct lane *l);
/* what has not come by now does not come */
void lane_reset(struct rig *rig, struct lane *l);

/* ---- opcodes and what they come to (points_work.c) ---- */

extern const struct op ops[];
extern const int n_ops;

/* its messages invalidate windows of the responder */
static inline bool op_binds(const struct op *op)
{
	return op->recv_flags & WITH_INV;
}

/* fill memory, post receives, note what must come of all that is posted */
void work_prepare(struct rig *rig, struct lane *l);
void work_post(struct rig *rig, struct lane *l);
/* how many packets the exchange has at least at the place where the lane is held */
unsigned int work_packets(const struct lane *l);
/* what shows that both ends live on, and that windows are as they should be */
void work_prepare_last(struct rig *rig, struct lane *l);
void work_post_last(struct rig *rig, struct lane *l);
/* bind windows of the responder, and say how many */
int work_bind(struct rig *rig, struct lane *l);
void wc_check(struct lane *l, enum role role, enum cq cq,
	      const struct ibv_wc *wc);
void memory_check(struct rig *rig, struct lane *l);

#endif /* POINTS_H */
