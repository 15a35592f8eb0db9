/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parts of lossy_mix. A lane is a QP with its traffic in both directions.
 */
#ifndef LOSSY_H
#define LOSSY_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "verbs.h"
#include "verdict.h"

#define WINDOW 16	      /* messages under way that nobody has answered */
#define RECEIVES (4 * WINDOW) /* of each lane: who is stuck sends more */
#define PATH_MTU 1024
#define MOST_UC 4000 /* bytes of a message: four packets */
#define MOST_UD PATH_MTU
#define GRH 40 /* bytes before what UD brings */
#define SLOT 4096
#define NOTHING 0xee  /* in a slot where no message has come */
#define LOOKED_AT 32  /* bytes behind one */
#define MOST_LANES 64 /* a bit for each */
#define MOST_FOLLOWED 64
#define QKEY 0x11112222
#define GROUP_QPN 0xffffff

/* with which a message begins; the rest is pattern */
struct header {
	uint64_t seq;
	uint64_t ack; /* all before have come, or will not come any more */
	uint32_t bytes;
	uint32_t kind;
};

enum kind {
	SEND,
	SEND_IMM,
	WRITE_IMM, /* UC only */
	KINDS
};

/* what a side tells the other of a lane: words of the control connection */
enum word {
	W_QPN_PSN,
	W_ADDR,
	W_RKEY,
	WORDS
};

/* A slot that is posted again and again, each time with another wr_id. */
struct receive {
	uint64_t wr_id;
	uint64_t not_of; /* lanes that have taken a later one of the SRQ */
	bool posted;
};

struct lane {
	struct ibv_qp *qp;
	uint32_t qpn, peer_qpn;
	uint64_t peer_addr; /* WINDOW slots for WRITE_IMM */
	uint32_t peer_rkey;
	bool group; /* UD: each side sends to the other's multicast group */
	struct ibv_ah
		*ah; /* UD: to that, or to where the last message came from */
	struct ibv_ah *old_ah[MOST_FOLLOWED]; /* what waits may name it */
	union ibv_gid peer;
	char *send, *recv, *slots; /* WINDOW, RECEIVES, WINDOW of SLOT bytes */
	uint64_t key_out, key_in;
	uint64_t next, done;	    /* to send; sent */
	enum kind kind[WINDOW];	    /* of what is between these */
	uint64_t posted, completed; /* receives, if it has a queue of its own */
	uint64_t answered;
	uint64_t expected, told; /* in; what of it the peer knows */
	uint64_t received, lost, cut, followed;
	double last_sent, patience;
};

struct lossy {
	struct verbs v; /* device and GID alone */
	struct verbs_options vo;
	struct verdict verdict;
	bool server, ud, groups, srq_wanted;
	uint32_t lanes;
	uint64_t seed;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	char *mem;
	struct lane *lane;
	struct receive *receive; /* RECEIVES of each lane */
	uint64_t posted;	 /* to the SRQ */
	bool ending;		 /* what is posted is flushed */
};

double now(void); /* s */

/* lanes.c: nothing comes back that has failed */
void lanes_open(struct lossy *l);
void lanes_alloc(struct lossy *l); /* all that is no object */
void lanes_free(struct lossy *l);
void lanes_connect(struct lossy *l, int fd);
void lanes_close(struct lossy *l);
struct ibv_ah *lane_ah(struct lossy *l, const union ibv_gid *to);
void lane_receive(struct lossy *l, uint32_t slot);
void slot_clear(char *slot);
/* is nothing behind the message? */
bool slot_ends(const char *slot, uint32_t bytes);

/* messages.c */
void messages_send(struct lossy *l, struct lane *lane);
unsigned int messages_poll(struct lossy *l);

/* books.c: what was posted, and in its turn has completed */
uint64_t send_wr_id(const struct lossy *l, const struct lane *lane, uint64_t n);
bool is_send(const struct ibv_wc *wc);
void send_completed(struct lossy *l, struct lane *lane,
		    const struct ibv_wc *wc);
void receive_posted(struct lossy *l, uint32_t slot);
/* true: it was @slot's turn */
bool receive_completed(struct lossy *l, struct lane *lane,
		       const struct ibv_wc *wc, uint32_t *slot);

/* end.c: nothing is sent any more; has all completed? */
void lossy_end(struct lossy *l);

#endif
