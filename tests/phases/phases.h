/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parts of phase_mix. A lane is an RC QP with a CQ, a window and memory of its
 * own; its life goes through all phases, a round each.
 */
#ifndef PHASES_H
#define PHASES_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "verbs.h"
#include "verdict.h"

#define MOST_LANES 32
#define MSG 6000 /* bytes: six packets */
#define SLOT 8192
#define FEW 31	     /* entries of a CQ, or */
#define MANY 255     /* when it has been resized */
#define ONE 1	     /* of one that is to overrun */
#define PATIENCE 300 /* s, for what must come */

enum phase {
	RESET,
	INIT, /* receives wait */
	RTR,
	RTS,   /* a window is bound, and a message goes each way */
	SQD,   /* drained, of which the event is unread; sends wait */
	AGAIN, /* RTS: they go, through the peer's window, and back */
	ERR,   /* unpolled: what was flushed; unread: events of what was lost */
	POLLED, /* still in ERR */
	PHASES
};

/* work requests of a life, those of a queue in their order */
enum work {
	RECV1,
	RECV2,
	FLUSHED_RECV1,
	FLUSHED_RECV2,
	BIND,
	SEND1,
	WRITE,
	SEND2,
	READ,
	FLUSHED_SEND,
	WORKS
};
#define FIRST_SENT BIND
#define BIT(work) (1u << (work))

/* of a lane's memory */
enum part {
	SENT,
	RECEIVED1,
	RECEIVED2,
	WINDOW, /* which the peer writes, and reads back */
	READ_BACK,
	SLOTS
};

struct lane {
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_cq_ex *cq_ex; /* the same, or NULL */
	bool overruns;		 /* it has room for one flushed request alone */
	struct ibv_mw *mw;
	struct ibv_mr *mr;
	char *mem;
	const char *kind; /* of memory */
	uint32_t qpn, peer_qpn;
	uint64_t peer_addr; /* of its slots */
	uint32_t peer_rkey; /* of its window, from SQD on */
	uint64_t key[2];    /* of what the client, and the server, send */
	uint64_t life;	    /* 0: none yet */
	enum phase phase;
	uint32_t seen; /* of this life's work, bits of enum work */
	bool drained;  /* its event has been read */
	uint32_t lost; /* requests for which there was no room, by their events */
};

struct phases {
	struct verbs v; /* device and GID alone */
	struct verbs_options vo;
	struct verdict verdict;
	bool server;
	uint64_t seed;
	union ibv_gid peer;
	struct ibv_pd *pd;
	uint32_t lanes;
	struct lane lane[MOST_LANES];
	uint64_t rounds, lives, overruns;
};

/* lanes.c: nothing comes back that has failed, but when they are closed */
void lanes_open(struct phases *p);
void lanes_hello(struct phases *p, int fd);
void lanes_close(struct phases *p);
static inline char *lane_slot(const struct lane *l, enum part part)
{
	return l->mem + part * SLOT;
}

/* phases.c: the lane's next one; what is not as it must be is a violation */
void lane_next(struct phases *p, struct lane *l);

double now(void); /* s */

#endif
