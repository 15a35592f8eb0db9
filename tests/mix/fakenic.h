/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A NIC without hardware, kernel or network, which can make one mistake.
 *
 * It implements the calls of the data path behind struct ibv_context, and
 * those of libibverbs that fetch events, see to an SRQ and destroy, so that the
 * traffic code runs on it unchanged, both sides in one process.
 * It proves that the checks are awake: for each mistake there is one.
 */
#ifndef MIX_FAKENIC_H
#define MIX_FAKENIC_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

enum fault {
	FAULT_NONE,
	/* bytes */
	FAULT_SEND_BYTE, /* one byte of a SEND is wrong */
	FAULT_WRITE_BYTE,
	FAULT_READ_BYTE,
	FAULT_WRITE_BEYOND, /* a byte behind the end is changed */
	FAULT_RECV_BEYOND,
	FAULT_READ_BEYOND,
	FAULT_WRITE_LOST,  /* completes, but nothing was written */
	FAULT_WRITE_AGAIN, /* an old WRITE is executed again at the end */
	FAULT_INLINE_LATE, /* inline data is fetched after the post */
	FAULT_FENCE,	   /* a fenced SEND overtakes a READ */
	/* completions */
	FAULT_SQ_TWICE,
	FAULT_SQ_LOST,
	FAULT_SQ_SWAPPED,    /* two of one QP change places */
	FAULT_SQ_UNSIGNALED, /* completes what was not signaled */
	FAULT_RQ_TWICE,
	FAULT_RQ_LOST,
	FAULT_RQ_SWAPPED,
	FAULT_SEND_LOST,  /* completes, but nothing arrives */
	FAULT_SEND_TWICE, /* arrives twice */
	/* fields */
	FAULT_SQ_OPCODE,
	FAULT_SQ_QPN,
	FAULT_SQ_LEN,
	FAULT_SQ_STATUS,
	FAULT_SQ_WR_ID,
	FAULT_RQ_OPCODE,
	FAULT_RQ_QPN,
	FAULT_RQ_LEN,
	FAULT_RQ_IMM,
	FAULT_RQ_NO_IMM, /* the flag is missing */
	/* atomics */
	FAULT_ADD_LOST,
	FAULT_ADD_TWICE,
	FAULT_SHARED_LOST,
	FAULT_SHARED_TWICE,
	FAULT_SHARED_OLD,   /* returns less than it has before */
	FAULT_SHARED_EMPTY, /* completes without its result */
	FAULT_SWAP_LOST,
	/* events */
	FAULT_EVENT_LOST,
	FAULT_EVENT_TWICE,
	FAULT_EVENT_UNARMED,
	FAULT_EVENT_UNSOLICITED, /* nothing has come that asks for one */
	FAULT_EVENT_CQ,		 /* of another side */
	FAULT_EVENT_CONTEXT,
	FAULT_EVENT_CHANNEL, /* on that of another CQ */
	FAULT_EVENT_BLOCKS,  /* the fd is non-blocking no more */
	FAULT_ASYNC_EVENT,
	FAULT_ASYNC_BLOCKS,
	/* shared receive queues */
	FAULT_SRQ_TWICE, /* two messages in one element */
	FAULT_SRQ_SKIPPED,
	FAULT_SRQ_LEFT,	   /* skipped just before the end */
	FAULT_SRQ_MANY,	   /* skips several */
	FAULT_SRQ_SWAPPED, /* two elements of one QP */
	FAULT_SRQ_WR_ID,
	FAULT_SRQ_QPN,	     /* no QP's */
	FAULT_SRQ_QPN_OTHER, /* of another QP */
	FAULT_LIMIT_LOST,
	FAULT_LIMIT_TWICE,
	FAULT_LIMIT_UNARMED,
	FAULT_LIMIT_EARLY, /* more than the limit are left */
	FAULT_LIMIT_SRQ,   /* of another SRQ */
	FAULT_LIMIT_QUERY, /* ibv_query_srq() tells another one */
	FAULT_SRQ_SIZE,	   /* ... or too few elements */
	/* memory windows */
	FAULT_BIND_LOST, /* completes, but the window is not there */
	FAULT_BIND_KEY,	 /* has its old key */
	FAULT_BIND_QP,	 /* belongs to another QP */
	FAULT_BIND_SHORT,
	FAULT_BIND_ACCESS, /* cannot be written */
	FAULT_BIND_OPCODE,
	FAULT_LOCAL_INV_LOST, /* completes, but was not executed */
	FAULT_LOCAL_INV_OPCODE,
	FAULT_SEND_INV_LOST,
	FAULT_SEND_INV_SILENT, /* executed, but the flag is missing */
	FAULT_SEND_INV_KEY,
	FAULT_SEND_INV_FENCE, /* overtakes a READ through the window */
	FAULT_INV_UNASKED,    /* the flag is there, but nobody invalidates */
	FAULT_INV_STALE,      /* the key that it had is still good */
	FAULT_INV_OTHER,      /* takes another window along */
	/* the end: the object is thought to be needed */
	FAULT_DESTROY_QP,
	FAULT_DESTROY_CQ,
	FAULT_DESTROY_SRQ,
	FAULT_DESTROY_CHANNEL,
	FAULT_DEREG_MR,
	FAULT_DEALLOC_MW,
	FAULT_DEALLOC_PD,
	FAULT_CLOSE,
	FAULTS
};

struct fake_net;

/* What a side has. */
struct fake_setup {
	unsigned int qps;
	unsigned int cqs;
	bool shared;	  /* one channel for both CQs */
	unsigned int srq; /* its elements; 0: none */
	bool slow;	  /* works when told to, seldom when polled */
	bool ud;	  /* all that is received has a GRH, of zeros */
	bool sig_all;	  /* as sq_sig_all */
	bool shorter;	  /* behind a message its place goes on */
};

/* Two sides alike, their QPs connected pairwise. */
struct fake_net *fake_net_new(const struct fake_setup *setup, enum fault fault,
			      unsigned int after);
void fake_net_free(struct fake_net *net);
struct ibv_qp **fake_qps(struct fake_net *net, unsigned int side);
/* The array of its CQs; the context of each is its place there. */
struct ibv_cq **fake_cqs(struct fake_net *net, unsigned int side);
struct ibv_srq *fake_srq(struct fake_net *net, unsigned int side);
struct ibv_comp_channel *fake_channel(struct fake_net *net, unsigned int side,
				      unsigned int i);
struct ibv_context *fake_context(struct fake_net *net, unsigned int side);
/* Works a little, as it also does when a CQ is polled. */
void fake_work(struct fake_net *net);
/* Completion events that were read and not acknowledged. */
unsigned int fake_unacknowledged(const struct fake_net *net);
/* Where the counter lies that all QPs add to, seen from @side. */
void fake_set_shared(struct fake_net *net, unsigned int side, uint64_t addr);
bool fake_made_mistake(const struct fake_net *net);
/* How many objects have been destroyed. */
unsigned int fake_destroyed(const struct fake_net *net);
/* The traffic is over: what is to happen late happens now. */
void fake_finish(struct fake_net *net);

#endif
