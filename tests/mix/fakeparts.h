/* SPDX-License-Identifier: GPL-2.0 */
/* What the parts of the NIC know of each other: the wire, events, the SRQ. */
#ifndef MIX_FAKEPARTS_H
#define MIX_FAKEPARTS_H

#include "fakenic.h"

#define DEPTH 256 /* of every queue; a power of two */
#define CQ_DEPTH 65536
#define MOST_SGES 3
#define MOST_INLINE 64
#define MOST_BYTES 65536
#define GRH_BYTES 40
#define MOST_MWS 16

struct fake_channel {
	struct ibv_comp_channel channel; /* first, to cast */
	int write_fd;
};

struct fake_cq {
	struct ibv_cq cq; /* first, to cast */
	struct fake_net *net;
	unsigned int side;
	struct ibv_wc wc[CQ_DEPTH];
	uint32_t head, tail;
	struct ibv_wc held; /* to change places with the next one */
	bool holds;
	bool armed, solicited;
};

struct fake_send {
	struct ibv_send_wr wr;
	struct ibv_sge sge[MOST_SGES];
	uint8_t data[MOST_INLINE];
	uint32_t old_key; /* of the window that is bound */
};

struct fake_recv {
	uint64_t wr_id;
	struct ibv_sge sge[MOST_SGES];
	int num_sge;
};

struct fake_srq {
	struct ibv_srq srq; /* first, to cast */
	struct fake_net *net;
	unsigned int side;
	struct fake_recv element[DEPTH];
	uint32_t head, tail, size, limit;
};

struct fake_qp {
	struct ibv_qp qp; /* first, to cast */
	struct fake_qp *peer;
	struct fake_net *net;
	unsigned int side;
	struct fake_send sq[DEPTH];
	struct fake_recv rq[DEPTH];
	uint32_t sq_head, sq_tail, rq_head, rq_tail;
	struct fake_recv late; /* FAULT_SRQ_SWAPPED */
	bool has_late;
	bool error; /* nothing comes in, and nothing goes out */
};

struct fake_mw {
	struct ibv_mw mw;   /* first, to cast */
	struct fake_qp *qp; /* to which it is bound; NULL: free */
	uint32_t key, stale;
	uint64_t addr, length;
	int access;
};

struct fake_net {
	struct ibv_context context[2];
	struct fake_setup setup;
	enum fault fault;
	unsigned int after, ops, polls, pause;
	bool made;
	struct fake_qp *qp[2];
	struct ibv_qp **list[2];
	struct ibv_cq *cq[2][2];
	struct fake_channel channel[2][2];
	struct fake_srq srq[2];
	struct fake_mw mw[MOST_MWS];
	unsigned int mws, destroyed;
	bool stale_keys; /* FAULT_INV_STALE */
	int async_fd[2]; /* the ends that are written to */
	unsigned int unacknowledged;
	uint64_t shared[2];
	uint64_t again_at; /* FAULT_WRITE_AGAIN */
	uint32_t again_len;
	uint8_t again[MOST_BYTES];
};

/* The one place in which the mistake is made, if it fits. */
bool fake_mistake(struct fake_net *net, enum fault fault, bool fits);

static inline struct fake_net *fake_net_of(const struct ibv_context *context)
{
	return context->abi_compat;
}

/* fakenic.c */
void fake_execute(struct fake_qp *q, struct fake_send *s);
uint32_t fake_gather(uint8_t *buf, const struct ibv_sge *sge, int n);
void fake_flush(struct fake_qp *q);

/* fakequeue.c */
void fake_data_path(struct ibv_context_ops *ops);

/* fakeevents.c */
void fake_events_new(struct fake_net *net);
void fake_events_free(struct fake_net *net);
int fake_arm(struct ibv_cq *cq, int solicited_only);
/* Something was added to @cq; @solicited: it asks for an event. */
void fake_notify(struct fake_cq *cq, bool solicited);
void fake_async(struct fake_net *net, unsigned int side,
		const struct ibv_async_event *ev);

/* fakedestroy.c: and what the call says that has done it */
int fake_destroyed_one(struct fake_net *net, enum fault fault);

/* fakesrq.c */
void fake_srq_new(struct fake_net *net, unsigned int side);
int fake_post_srq(struct ibv_srq *srq, struct ibv_recv_wr *wr,
		  struct ibv_recv_wr **bad);
void fake_keep(struct fake_recv *r, const struct ibv_recv_wr *wr);
/* The receive that the next message on @q goes to; there is one. */
const struct fake_recv *fake_take(struct fake_qp *q);
bool fake_srq_empty(const struct fake_qp *q);
/* What a receive from an SRQ says wrongly. */
void fake_spoil(struct fake_qp *q, struct ibv_wc *wc);

/* fakemw.c */
void fake_mw_new(struct fake_net *net, unsigned int side);
enum ibv_wc_status fake_bind(struct fake_qp *q, const struct fake_send *s);
/* @local: by a request of @q itself, else by its peer's SEND. */
enum ibv_wc_status fake_invalidate(struct fake_qp *q, uint32_t key, bool local);
/* May @q's request have @len bytes of its peer's memory? */
bool fake_reaches(struct fake_qp *q, const struct ibv_send_wr *wr,
		  uint32_t len);
/* What the receive on @q of @wr says of invalidation, perhaps wrongly. */
void fake_spoil_inv(struct fake_qp *q, const struct ibv_send_wr *wr,
		    struct ibv_wc *wc);

#endif
