/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The verbs objects of a side: device, PD, CQs, QPs, and how they connect.
 */
#ifndef MIX_VERBS_H
#define MIX_VERBS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "memory.h"
#include "stream.h"

struct traffic;
struct verdict;

/* What the user may say about them. */
struct verbs_options {
	const char *device; /* NULL: the first */
	int gid_index;	    /* -1: the RoCEv2 GID of an IPv4 address */
	unsigned int cqs;   /* 1: one for all, 2: one to send, one to receive */
	unsigned int timeout, retry_cnt;
	unsigned int events; /* EVENTS_...: see events.h */
	unsigned int srq;    /* QPs' worth of receives in it; 0: none */
	bool windows;	     /* see mw.h */
};

struct verbs {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq[2]; /* send, receive; may be the same */
	struct ibv_comp_channel *channel[2];
	struct ibv_srq *srq;
	uint32_t srq_size;
	struct ibv_qp **qp;
	uint32_t *psn;
	uint32_t qps;
	uint32_t max_inline;
	union ibv_gid gid;
	int gid_index;
	uint32_t mtu; /* bytes */
	uint8_t rd_atomic;
	struct verdict *verdict; /* of verbs_destroy() */
};

/* All return -1 after a message to stderr, else 0. */
int verbs_open(struct verbs *v, const struct verbs_options *o);
int verbs_create(struct verbs *v, const struct verbs_options *o,
		 const struct shape *s);
/*
 * destroy.c: all that @t has, its windows and MRs, too; what cannot be destroyed is a
 * violation. False if ibv_destroy_cq() takes longer than
 * @seconds, as it does when an event is thought to be unacknowledged: a thread is still
 * in it then.
 */
bool verbs_destroy(struct verbs *v, struct traffic *t, unsigned int seconds);

/*
 * Tells the peer over @fd all it must know, learns the same of the peer, and
 * brings all QPs to RTS. Receives must have been posted already.
 */
int verbs_connect(struct verbs *v, const struct verbs_options *o,
		  const struct shape *s, const struct memory *m,
		  struct remote *remote, int fd);

#endif
