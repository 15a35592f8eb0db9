/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The QPs of states.c, work with them, and what they were before the move. What is
 * not as it must be is said, and ends the program.
 */
#ifndef STATES_H
#define STATES_H

#include "loop.h"

#define SLOTS 16 /* no more work of a queue waits at a time */

/* who is whose peer: 0 and 1, 2 and 3, ... */
enum {
	SQD, /* with sends that wait */
	SQD_PEER,
	DRAINING, /* in SQD, with a send that nobody acknowledges */
	DEAF,	  /* to that: it waits for an older one */
	RTR,	  /* with an SRQ */
	RTR_PEER, /* was in SQD, and is in RTS again */
	INIT,	  /* with receives */
	RESET,
	LEFT, /* in RTS, and its peer has ended */
	ENDED,
	ERR,	  /* with work that was flushed, by a modify */
	ERR_PEER, /* with receives that were posted in ERR */
	REFUSED,  /* its WRITE, and what was behind it flushed */
	REFUSER,  /* with the SRQ of RTR */
	UNHEARD,  /* its peer is RESET, in which nobody answers */
	QPS
};

enum {
	SENT,
	RECEIVED,
	QUEUES
};

extern struct ibv_context *verbs;
extern struct ibv_qp *qp[QPS];
extern struct ibv_qp_attr before[QPS]; /* the move */

/* the QPs, in RESET, and all that they need; no WRITE is allowed */
void make(const char *device);
void destroy(void);

/* ---- work is numbered, by QP and queue ---- */

void post_send(int q, enum ibv_wr_opcode opcode);
/* SENDs, or receives: to the SRQ, if the QP has one */
void post(int q, int queue, int n);
/* the next of a queue, with this status; then `n` of them, flushed */
struct ibv_wc complete(int q, int queue, enum ibv_wc_status status);
void flushed(int q, int queue, int n);
void nothing(int q, int queue); /* has completed */
/* the next `n` SENDs that wait, by the next receives that wait */
void delivered(int from, int to, int n);
void exchange(int from, int to, int n);
/* with what is in it; and it is as large as it was made then, or more */
void resize_srq(unsigned int max_wr);
void check_srq(void);

/* ---- the next event that nobody has read, or none ---- */

void event_is(enum ibv_event_type type, int q);
void no_event(void);

/* ---- attributes ---- */

struct ibv_qp_attr query(int q);
void note(int q); /* before[q]; it has the state that its name says */
void as_before(int q);

#endif /* STATES_H */
