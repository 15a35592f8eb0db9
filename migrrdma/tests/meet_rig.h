/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What tests of connections after a move share
 */
#ifndef MEET_RIG_H
#define MEET_RIG_H

#include "client.h"

#define PEER_GID "fe00::9" /* as to_rtr() has it */

static inline struct ibv_qp *make(struct ibv_qp **real)
{
	struct ibv_qp_init_attr attr = { .send_cq = w.cq,
					 .recv_cq = w.cq,
					 .cap = { 6, 1, 2, 1, 14 },
					 .qp_type = IBV_QPT_RC };
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);

	MUST(qp);
	*real = fake_newest(FAKE_QP);
	return qp;
}

static inline void reset(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	MUST(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
}

/* --- the thread that tells it, and the daemon: meet_rig.c --- */

extern struct teller {
	atomic_bool stays; /* in its pauses */
	atomic_bool late;  /* to wait for an answer */
	atomic_uint pauses, polls;
	atomic_uint naps;     /* until there is room to call */
	atomic_uint waits;    /* at the gate */
	_Atomic time_t clock; /* is ahead by as much: of another host */
	atomic_uint full;     /* is what it has called the daemon by */
	atomic_bool narrow;   /* so that it soon is */
	atomic_bool fails;    /* to get memory for what it is to say */
} teller;

extern struct migrd {
	pthread_t thread;
	int listener;
	atomic_uint accepted;
	atomic_uint calls, ended; /* those that the process has ended itself */
	const char *_Atomic says; /* "": nothing yet; NULL: it hangs up */
	atomic_bool looks;	  /* for the peer, and says so at once */
	atomic_bool waits;	  /* until that is full, with hearing it */
	char heard[65536];	  /* in the last call */
	enum ibv_qp_state state;  /* of the newest QP, when it was heard */
} migrd;

void migrd_start(void);
void migrd_stop(void);
void migrd_end(void);

/* how often the daemon was called since the last time */
unsigned int called(void);

/* what is heard of this one, with the turn of its keys */
void check_heard(const struct ibv_qp *qp, unsigned int turn);

/* a new QP, for which the daemon is called so often */
void check_connects(unsigned int calls);

/* the connection to the daemon; -1: there is none */
int stream(void);

/* another thread connects a new QP */
extern struct ibv_qp *waits, *real_waits;
extern atomic_bool connected;
void start_to_connect(void);

/* and has called a daemon that says nothing */
void begin_to_connect(void);

/* @calls: since the last time; what is heard in these is what is true now */
void end_to_connect(unsigned int calls);

#endif
