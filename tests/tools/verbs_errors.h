/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parts of verbs_errors. What an end saw of a case is a line of text:
 *
 *	post:ENOMEM S[0:ok 1:LOC_PROT_ERR 2:flush] R[10:ok(64)] ERR QP_FATAL
 *
 * errors of posting, what the send and the receive queue completed in this
 * order, each with its wr_id, the QP's state, and the asynchronous events, COMP
 * for one of a completion channel. The text that the specification wants stands in
 * the table of cases (errors_*.c); where a device differs, errors_differs.c has it
 * with the reason.
 */
#ifndef VERBS_ERRORS_H
#define VERBS_ERRORS_H

#include "../mix/verbs.h"

#define PORT 1
#define MSG 64	       /* bytes of an ordinary message */
#define RECV_BYTES 512 /* of an ordinary receive, after the GRH of UD */
#define REGION 6000    /* of all memory regions */
#define REGION_AT 4200 /* 8-aligned, not at a page; the buffer goes further */
#define BUFFER (4 * 4096)
#define QKEY 0x11111111
#define OTHER_QPN 0x00a000 /* bits by which a QPN is nobody's */
#define TEXT 256
#define DEEP 600 /* work requests */

/* The keys that a work request can use; all are of the same memory. */
enum key {
	K_GOOD,
	K_UNKNOWN, /* no such key */
	K_STALE,   /* right but for its lowest byte */
	K_OTHER_PD,
	K_LOCAL_READ, /* no right at all but local read */
	K_NO_WRITE,   /* all remote rights but this one */
	K_NO_READ,
	K_NO_ATOMIC,
	K_GONE, /* deregistered */
	KEYS
};

/* where in the region */
enum place {
	AT_START,
	AT_END,	      /* the last bytes */
	BEFORE_START, /* begins 8 bytes before */
	PAST_END,     /* ends 8 bytes behind */
	WRAPS,	      /* begins 16 bytes before the end of the address space */
	MISALIGNED,   /* to 8 bytes */
};

/* the work request that is wrong */
struct wrong {
	enum ibv_wr_opcode opcode; /* 0 is RDMA WRITE */
	enum key lkey, rkey;
	enum place local, remote;
	uint32_t length; /* 0: MSG, or 8 for atomics */
	bool empty;	 /* no element at all */
	bool inlined;
	uint32_t elements; /* 0: one */
	uint32_t flags;	   /* besides IBV_SEND_SIGNALED */
	bool unsignaled;
	uint32_t qkey;
};

/* to which QP the client connects its own */
enum dest {
	TO_PEER,
	TO_NOBODY, /* a QPN that does not exist */
	TO_RESET,
	TO_ERR,
};

struct end;

struct test {
	const char *name;
	const char *clause; /* of IBA vol. 1 */
	enum ibv_qp_type type;
	struct wrong wr;
	/* the texts; what else the specification allows follows " | " */
	const char *client, *server;

	enum dest dest;
	/* the server's receives: three good ones if nothing is said */
	bool no_receives;
	uint32_t recv_bytes;
	enum key recv_key;
	enum place recv_at;
	bool no_right;	   /* the server's QP allows nothing to the peer */
	bool no_rd_atomic; /* the client's QP may not have READs under way */
	bool no_dest_rd_atomic; /* the server's QP takes none */
	/* the client's QP gives up after so many retries of one kind */
	bool few_rnr_retries, few_retries;
	uint8_t retries;
	bool srq; /* of the server */
	uint32_t srq_limit;
	bool small_cq;	    /* for what the client sends */
	bool deep;	    /* queues of DEEP */
	bool armed;	    /* the server's receive CQ, for solicited ones */
	bool small_recv_cq; /* for what the server receives */
	/* instead of posting wr and two good ones */
	void (*run_client)(struct end *e);
	void (*run_server)(struct end *e);
};

/*
 * What a device does otherwise. The first one whose conditions hold and that
 * has a text for an end replaces that end's text; NULL: any, or nothing.
 */
struct difference {
	const char *device;		   /* that is the reason */
	bool responder;			   /* ... as this, else as requester */
	const char *name;		   /* how the case's name begins */
	const char *client_is, *server_is; /* its texts */
	const char *client, *server;
	const char *why;
};

/* ---- tables ---- */

extern const struct test *const all_tests[]; /* ends with NULL */
extern const struct test local_tests[], remote_tests[], transport_tests[];
extern const struct test queue_tests[], datagram_tests[];
extern const struct difference differences[];

/* ---- what is made once (errors_rig.c) ---- */

struct rig {
	struct verbs v;
	const char *device; /* "mlx5" or "rxe" */
	bool server;
	int fd; /* to the other end */
	struct ibv_pd *pd, *other_pd;
	struct ibv_mr *mr[KEYS];
	uint32_t lkey[KEYS], rkey[KEYS];
	char *buffer;
};

extern int errors_factor; /* of every time there is, on a slow machine */

/* These end the program with a message if something fails that must not. */
void errors_die(const char *what);
void rig_open(struct rig *rig, const struct verbs_options *o);
void rig_close(struct rig *rig);
/* wait until the other end has come here too */
void rig_meet(struct rig *rig);

/* ---- one end of a case (errors_end.c) ---- */

struct end {
	struct rig *rig;
	const struct test *test;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_comp_channel *channel;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct ibv_qp_cap cap;
	uint32_t psn;
	/* of the peer */
	uint32_t peer_qpn, peer_psn;
	uint64_t peer_addr;
	uint32_t peer_rkey[KEYS];
	union ibv_gid peer_gid;
	/* what was seen so far; see above */
	char posting[TEXT], sends[TEXT], recvs[TEXT], events[TEXT];
};

void end_create(struct end *e, struct rig *rig, const struct test *t);
void end_connect(struct end *e);
void end_destroy(struct end *e);
void end_modify(struct end *e, enum ibv_qp_state state);

/* ---- what it sees (errors_seen.c) ---- */

/* collect what has come since */
void end_collect(struct end *e);
/* false if the QP does not come to this state */
bool end_await(struct end *e, enum ibv_qp_state state);
/* all that was seen, with the present state */
void end_text(struct end *e, char text[TEXT]);

/* ---- work (errors_post.c) ---- */

void post_send(struct end *e, const struct wrong *w, uint64_t wr_id);
/* as many good sends, wr_id from @first on */
void post_good(struct end *e, uint64_t first, unsigned int count);
void post_recvs(struct end *e, uint64_t first, unsigned int count);

#endif /* VERBS_ERRORS_H */
