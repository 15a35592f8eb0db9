/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The work of one QP in one direction, as a pure function.
 *
 * Operation number n of a stream (kind, length, layout, immediate, content)
 * follows from the shape of the run, the QP, the direction and n alone. So
 * the sender needs no script, and the receiver knows without being told what
 * must arrive next and what must lie in its memory by then.
 */
#ifndef MIX_STREAM_H
#define MIX_STREAM_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

enum op_kind {
	OP_SEND,
	OP_SEND_IMM,
	OP_WRITE,
	OP_WRITE_IMM,
	OP_READ,
	OP_FETCH_ADD,
	OP_CMP_SWAP,
	OP_STREAM_KINDS,
	OP_SEND_INV = OP_STREAM_KINDS, /* what a SEND may become: see mw.h */
	OP_CREDIT, /* between streams, as are the next: see traffic.h */
	OP_BIND,
	OP_LOCAL_INV,
	OP_KINDS
};

enum {
	F_RECV = 1, /* consumes a receive */
	F_IMM = 2,
	F_OUT = 4,   /* moves bytes to the peer */
	F_SLOT = 8,  /* ... into the peer's slot of this operation */
	F_BACK = 16, /* moves bytes back: local memory is written */
	F_INV = 32,  /* invalidates a window of the peer */
};

struct op_info {
	const char *name;
	enum ibv_wr_opcode wr;
	enum ibv_wc_opcode wc;	    /* at the sender */
	enum ibv_wc_opcode recv_wc; /* at the receiver, with F_RECV */
	unsigned int flags;
};

extern const struct op_info op_info[OP_KINDS];

enum {
	OP_PIECES = 3,	 /* most SGEs of an operation */
	OP_GAP = 64,	 /* bytes between pieces that nobody may touch */
	OP_ROUND = 8,	 /* the last one of so many consumes a receive */
	OP_LOOKBACK = 4, /* how far a READ looks back for a WRITE */
	OP_MIN_WINDOW = 2 * OP_ROUND,
};

/* What both sides agree on before anything is created. */
struct shape {
	uint64_t seed;
	uint32_t qps;
	uint32_t window; /* a power of two */
	uint32_t max;	 /* bytes in a message */
	uint32_t mtu;
	uint32_t without; /* kinds of operations, a bit for each, and */
};

/* One slot holds one message in up to OP_PIECES pieces, with gaps. */
static inline uint32_t slot_size(const struct shape *s)
{
	return (s->max + OP_PIECES * OP_GAP + 63) & ~63u;
}

/* The region that is only ever read; as large as makes offsets interesting. */
static inline uint32_t pattern_size(const struct shape *s)
{
	return 4 * slot_size(s);
}

#define WITHOUT_FENCE (1u << OP_KINDS)
#define WITHOUT_EMPTY (2u << OP_KINDS) /* messages without a byte */
#define RECV_KINDS (1u << OP_SEND | 1u << OP_SEND_IMM | 1u << OP_WRITE_IMM)

/* The bit called @name ("read", "fence"), or 0. */
uint32_t without_bit(const char *name);

/* @side owns the memory. */
uint64_t pattern_key(const struct shape *s, unsigned int side);

struct stream {
	const struct shape *shape;
	uint64_t key;
	uint64_t peer_pattern; /* key of the target's pattern region */
};

struct op {
	uint64_t seq;
	enum op_kind kind;
	uint32_t len;
	uint64_t key, off; /* the bytes that move: pattern and offset */
	uint64_t from;	   /* local slot, as a sequence number */
	uint64_t back_to;  /* READ: the WRITE it reads back */
	uint32_t imm;
	uint32_t inv;		 /* key of the window that this is about */
	uint32_t cut[OP_PIECES]; /* end of each piece */
	uint8_t pieces;
	bool signaled, fenced, inlined;
	bool solicited; /* asks for an event, if the peer wants that */
	bool forward;	/* sends on what the READ before it fetched */
	bool read_back; /* reads a slot, not the pattern region */
	bool shared;	/* FETCH_ADD on the counter of all QPs */
	uint64_t add;
};

/* @side posts this stream. */
void stream_init(struct stream *st, const struct shape *s, unsigned int qp,
		 unsigned int side);
void stream_op(const struct stream *st, uint64_t seq, struct op *op);

/* The pattern that operation @seq sends or writes. */
uint64_t stream_data_key(const struct stream *st, uint64_t seq);

/* The k-th value of the CMP_SWAP cell; every one swaps k for k + 1. */
uint64_t stream_cas(const struct stream *st, uint64_t k);

/*
 * How receive buffer @index is cut: bytes in its first of two pieces. The
 * same each time the buffer comes round, so that its guards stay in place.
 */
uint32_t recv_cut(const struct shape *s, uint64_t index);

static inline bool op_has(const struct op *op, unsigned int flag)
{
	return op_info[op->kind].flags & flag;
}

/* A piece of a message: @off in the message, @at in the slot. */
struct piece {
	uint32_t off, at, len;
};

unsigned int cut_pieces(struct piece *p, const uint32_t *cut, unsigned int n,
			uint32_t len);

#endif
