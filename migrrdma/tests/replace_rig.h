/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What tests of replacement share: an application with one of each object
 */
#ifndef REPLACE_RIG_H
#define REPLACE_RIG_H

#include "names.h"
#include "peer.h"
#include "suspend_rig.h"
#include "swap.h"

enum {
	OWN_PSN = 111,
	PEER_PSN = 222,
	PEER_QPN = 0x4321, /* as the application has been told */
	SGID_INDEX = 3,
};

/* what the application has, and the provider behind that */
extern struct world {
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq, *real_cq;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct ibv_qp *qp, *real;	  /* with RECVs of its own */
	struct ibv_qp *of_srq, *real_srq; /* with those of the SRQ */
	char memory[64];
} w;

extern struct swap swapped;

/* is there an event at a descriptor? */
bool readable(int fd);

void world_make(void);
void to_rtr(struct ibv_qp *qp);
void to_rts(struct ibv_qp *qp);
void world_destroy(void);

/* the real objects that there are now */
void world_look(void);

int recv_one(struct ibv_qp *qp, uint64_t wr_id);
int recv_srq(uint64_t wr_id);
int write_one(struct ibv_qp *qp, uint64_t wr_id, uint32_t rkey);

void replace_all(void);
void tell_peers(void);
void connect_all(void);

/* replaced, connected and resumed */
void world_replace(void);

/* Does the process show that it holds still, by its own number? */
bool shows_sign(void);

/* suspended, and held for so long */
void hold(unsigned int seconds);
/* the real context's file is what the CRIU plug-in puts in its place, on another host */
void world_leaves_host(void);

/* its successor is destroyed: the fake's contexts have the same number again */
void world_is_back(void);

/* the ids of what is posted to receive, in this order */
void check_recvs(struct ibv_qp *real, const uint64_t *ids, unsigned int n);

#define RECVS(real, ...)                               \
	check_recvs(real, (uint64_t[]){ __VA_ARGS__ }, \
		    sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

#endif
