/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An InfiniBand transport over RoCEv2 in user space: RC, UC, UD, GSI and XRC as
 * the InfiniBand Architecture Specification (IBA) vol. 1 has them, chapters 9
 * and 10 and annexes A14 and A17. It knows QPs and packets; queues, completion
 * queues and memory keys belong to a front end, that is reached through struct
 * roce_ops.
 *
 * The caller owns the loop and the clock: nothing here blocks, sleeps, starts
 * threads or reads the time. An engine and its QPs must be used by one thread
 * at a time. Callbacks must not call the engine, except for roce_kick(),
 * roce_kick_recv() and roce_qp_state().
 *
 * Functions that can fail return 0 or a negative errno.
 */
#ifndef ROCE_H
#define ROCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define ROCE_UDP_PORT 4791
#define ROCE_GSI_QPN 1
#define ROCE_GSI_QKEY 0x80010000U
#define ROCE_MAX_MESSAGE 0x80000000U /* bytes, C9-94 */
#define ROCE_MAX_SGE 32
#define ROCE_MAX_GIDS 256
#define ROCE_MAX_FETCHED 256 /* send WQEs of a QP under way */
#define ROCE_MAX_RD_ATOMIC 128
#define ROCE_LOG_MAX_GROUPS 7U
#define ROCE_MAX_GROUPS (1U << ROCE_LOG_MAX_GROUPS)
#define ROCE_MAX_GROUP_QPS 32U
#define ROCE_MULTICAST_QPN 0xffffffU
#define ROCE_GRH_BYTES 40
/* in front of the BTH's payload and behind it, at most */
#define ROCE_MAX_OVERHEAD 128

struct roce_engine;
struct roce_qp;

/* ---- numbers that are those of libibverbs ---- */

enum roce_qp_type {
	ROCE_QPT_GSI = 1,
	ROCE_QPT_RC = 2,
	ROCE_QPT_UC = 3,
	ROCE_QPT_UD = 4,
	ROCE_QPT_XRC_SEND = 9,	/* initiator: sends requests only */
	ROCE_QPT_XRC_RECV = 10, /* target: answers them only */
};

enum roce_qp_state {
	ROCE_QPS_RESET,
	ROCE_QPS_INIT,
	ROCE_QPS_RTR,
	ROCE_QPS_RTS,
	ROCE_QPS_SQD,
	ROCE_QPS_SQE,
	ROCE_QPS_ERR,
};

enum roce_mtu {
	ROCE_MTU_256 = 1,
	ROCE_MTU_512,
	ROCE_MTU_1024,
	ROCE_MTU_2048,
	ROCE_MTU_4096,
};

/* IBA 11.6.2 */
enum roce_wc_status {
	ROCE_WC_SUCCESS,
	ROCE_WC_LOC_LEN_ERR,
	ROCE_WC_LOC_QP_OP_ERR,
	ROCE_WC_LOC_EEC_OP_ERR,
	ROCE_WC_LOC_PROT_ERR,
	ROCE_WC_WR_FLUSH_ERR,
	ROCE_WC_MW_BIND_ERR,
	ROCE_WC_BAD_RESP_ERR,
	ROCE_WC_LOC_ACCESS_ERR,
	ROCE_WC_REM_INV_REQ_ERR,
	ROCE_WC_REM_ACCESS_ERR,
	ROCE_WC_REM_OP_ERR,
	ROCE_WC_RETRY_EXC_ERR,
	ROCE_WC_RNR_RETRY_EXC_ERR,
	ROCE_WC_LOC_RDD_VIOL_ERR,
	ROCE_WC_REM_INV_RD_REQ_ERR,
	ROCE_WC_REM_ABORT_ERR,
	ROCE_WC_INV_EECN_ERR,
	ROCE_WC_INV_EEC_STATE_ERR,
	ROCE_WC_FATAL_ERR,
	ROCE_WC_RESP_TIMEOUT_ERR,
	ROCE_WC_GENERAL_ERR,
};

enum roce_access {
	ROCE_ACCESS_LOCAL_WRITE = 1 << 0,
	ROCE_ACCESS_REMOTE_WRITE = 1 << 1,
	ROCE_ACCESS_REMOTE_READ = 1 << 2,
	ROCE_ACCESS_REMOTE_ATOMIC = 1 << 3,
};

enum roce_qp_attr_mask {
	ROCE_QP_STATE = 1 << 0,
	ROCE_QP_CUR_STATE = 1 << 1,
	ROCE_QP_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	ROCE_QP_ACCESS_FLAGS = 1 << 3,
	ROCE_QP_PKEY_INDEX = 1 << 4,
	ROCE_QP_PORT = 1 << 5,
	ROCE_QP_QKEY = 1 << 6,
	ROCE_QP_AV = 1 << 7,
	ROCE_QP_PATH_MTU = 1 << 8,
	ROCE_QP_TIMEOUT = 1 << 9,
	ROCE_QP_RETRY_CNT = 1 << 10,
	ROCE_QP_RNR_RETRY = 1 << 11,
	ROCE_QP_RQ_PSN = 1 << 12,
	ROCE_QP_MAX_QP_RD_ATOMIC = 1 << 13,
	ROCE_QP_MIN_RNR_TIMER = 1 << 15,
	ROCE_QP_SQ_PSN = 1 << 16,
	ROCE_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
	ROCE_QP_DEST_QPN = 1 << 20,
};

enum roce_event {
	ROCE_EVENT_QP_FATAL = 1,
	ROCE_EVENT_QP_REQ_ERR = 2,
	ROCE_EVENT_QP_ACCESS_ERR = 3,
	ROCE_EVENT_COMM_EST = 4,
	ROCE_EVENT_SQ_DRAINED = 5,
	ROCE_EVENT_QP_LAST_WQE_REACHED = 16,
};

/* ---- work ---- */

enum roce_wr_opcode {
	ROCE_WR_RDMA_WRITE,
	ROCE_WR_RDMA_WRITE_WITH_IMM,
	ROCE_WR_SEND,
	ROCE_WR_SEND_WITH_IMM,
	ROCE_WR_RDMA_READ,
	ROCE_WR_ATOMIC_CMP_AND_SWP,
	ROCE_WR_ATOMIC_FETCH_AND_ADD,
	ROCE_WR_LOCAL_INV,
	ROCE_WR_SEND_WITH_INV = 9,
	/*
	 * Anything that sends no packet: roce_ops.local_op does it in its turn.
	 * Outside of libibverbs' numbers.
	 */
	ROCE_WR_LOCAL = 64,
};

enum roce_send_flags {
	ROCE_SEND_FENCE = 1 << 0,
	ROCE_SEND_SIGNALED = 1 << 1,
	ROCE_SEND_SOLICITED = 1 << 2,
	/* roce_sge.addr are pointers, valid until the WQE completes: owned */
	ROCE_SEND_INLINE = 1 << 3,
};

struct roce_sge {
	uint64_t addr;
	uint32_t length;
	uint32_t key;
};

/* Where packets go. All numbers in host byte order. */
struct roce_av {
	uint8_t dmac[6];
	uint8_t dgid[16]; /* ::ffff:a.b.c.d for IPv4, A17.4.5 */
	uint8_t sgid_index;
	uint8_t tclass;	     /* DSCP and ECN */
	uint8_t hop_limit;   /* 0: 64 */
	uint32_t flow_label; /* 20 bits, IPv6 only */
	uint16_t udp_sport;  /* 0: made from the QPNs, 0xc000 to 0xffff */
};

struct roce_send_wqe {
	uint64_t cookie;
	uint32_t opcode;   /* enum roce_wr_opcode */
	uint32_t flags;	   /* enum roce_send_flags */
	uint32_t imm_data; /* network byte order */
	uint32_t invalidate_key;
	uint64_t remote_addr;
	uint32_t rkey;
	uint64_t compare_add; /* CMP_AND_SWP: compare; FETCH_AND_ADD: add */
	uint64_t swap;
	uint32_t srqn; /* XRC: the SRQ of the target */
	/* UD and GSI */
	struct roce_av av;
	uint32_t remote_qpn;
	uint32_t remote_qkey; /* bit 31 set: the QP's own, IBA 10.2.5 */
	bool flush; /* set by the engine: it completes, and sends nothing */
	/* from malloc() or NULL; the engine frees it when the WQE is done */
	void *owned;
	/* The array is the engine's, of roce_qp_init.max_send_sge elements. */
	uint32_t num_sge;
	struct roce_sge *sge;
};

struct roce_recv_wqe {
	uint64_t cookie;
	uint32_t pd;   /* the QP's, unless fetch_recv says another: an SRQ's */
	uint32_t srqn; /* XRC: whose WQE it is to be; set by the engine */
	/* The array is the engine's, of roce_qp_init.max_recv_sge elements. */
	uint32_t num_sge;
	struct roce_sge *sge;
};

enum roce_wc_flags {
	ROCE_WC_GRH = 1 << 0,
	ROCE_WC_WITH_IMM = 1 << 1,
	ROCE_WC_WITH_INV = 1 << 3,
	ROCE_WC_SOLICITED = 1 << 8,
	ROCE_WC_IPV6 = 1 << 9,	/* else IPv4 */
	ROCE_WC_RDMA = 1 << 10, /* RDMA WRITE with immediate, else SEND */
};

struct roce_send_wc {
	uint64_t cookie;
	enum roce_wc_status status;
	uint32_t opcode;   /* of the WQE */
	bool signaled;	   /* the WQE's flag */
	uint32_t byte_len; /* of the message; 8 for atomics; 0 on errors */
	uint8_t syndrome;  /* AETH of the NAK that was the reason, or 0 */
};

struct roce_recv_wc {
	uint64_t cookie;
	enum roce_wc_status status;
	uint32_t flags;	   /* enum roce_wc_flags */
	uint32_t byte_len; /* UD: with the 40 bytes of GRH */
	uint32_t imm_data; /* network byte order */
	uint32_t invalidated_key;
	uint32_t src_qpn; /* UD, GSI: from the DETH, else the peer's */
	uint32_t srqn;	  /* XRC: as in roce_recv_wqe */
	uint8_t smac[6];  /* UD, GSI */
	uint8_t tclass;
};

/* ---- the front end ---- */

/*
 * @ctx is roce_config.ctx and @qp_ctx is roce_qp_init.ctx everywhere.
 *
 * Completions come exactly once per fetched WQE and in the order of fetching,
 * also for unsignaled ones: the front end tells its consumer what it wants to
 * know. Errors and flushes must be told whatever the flag says (IBA 10.7.3.1).
 * A completion callback returns 0, or a negative errno if the completion got
 * lost: the QP goes to ERR with ROCE_EVENT_QP_FATAL (class G, IBA 9.9.3.1).
 */
struct roce_ops {
	/* Is there room for a frame? While there is none, none is made. */
	bool (*has_room)(void *ctx);

	/*
	 * Send a frame, with Ethernet header and without FCS. It is valid
	 * until the return, and a copy: memory of the payload may change.
	 * -EAGAIN: no room, has_room() says so from now on; it comes again with
	 * roce_tick() when there is. Any other error is the same as a lost
	 * packet.
	 */
	int (*transmit)(void *ctx, const void *frame, size_t len);

	/*
	 * Take the next posted WQE off the send queue.
	 * @wqe: all zero, but for the array at wqe->sge and wqe->flush, with
	 *	which nobody looks at its data
	 * Returns 1, or 0 when nothing is posted, or -EINVAL when the WQE
	 * cannot be read: wqe->cookie still names it, and it completes with
	 * LOC_QP_OP_ERR. -EAGAIN: there is no memory for it now, and it stays
	 * posted; the engine comes again after a while. -EIO: nobody knows what
	 * is posted, and no WQE was taken; the QP goes to ERR with
	 * ROCE_EVENT_QP_FATAL.
	 */
	int (*fetch_send)(void *ctx, void *qp_ctx, struct roce_send_wqe *wqe);

	/*
	 * Take the next WQE off the receive queue or the shared one. Values as
	 * fetch_send, but for -EAGAIN; 0 makes an RNR NAK. -EIO: nobody knows
	 * what is posted to the queue, and no WQE was taken; the QP goes to ERR
	 * with ROCE_EVENT_QP_FATAL, without a completion. In ERR it is called to
	 * flush the queue, for a QP without SRQ (roce_qp_init.srq).
	 */
	int (*fetch_recv)(void *ctx, void *qp_ctx, struct roce_recv_wqe *wqe);

	/*
	 * XRC: a request names SRQ @srqn. Returns 0 and its PD, or a negative
	 * errno if there is none in the QP's XRC domain: NAK, invalid request.
	 * It may go away while a message uses its WQE. May be NULL: no XRC_RECV.
	 */
	int (*find_srq)(void *ctx, void *qp_ctx, uint32_t srqn, uint32_t *pd);

	int (*complete_send)(void *ctx, void *qp_ctx,
			     const struct roce_send_wc *wc);
	int (*complete_recv)(void *ctx, void *qp_ctx,
			     const struct roce_recv_wc *wc);

	/*
	 * Find the host memory behind a key.
	 * @pd: roce_qp_init.pd, or roce_recv_wqe.pd
	 * @access: enum roce_access, what the memory must allow; 0 is local
	 *	read
	 * @remote: the key is an rkey from the wire, else an lkey of a WQE
	 * @len: up to ROCE_MAX_MESSAGE, not 0
	 * @iov, @max: NULL and 0: only check. Otherwise @len is at most one
	 *	path MTU, and there is room for any split at 4 KiB boundaries.
	 * Returns how many elements it filled, that together have @len bytes,
	 * and for a mere check >= 0; or a negative errno: no such key, another
	 * PD, outside of the region, right missing, memory gone.
	 * The result is used before the engine returns or calls again.
	 */
	int (*translate)(void *ctx, void *qp_ctx, uint32_t pd, uint32_t key,
			 uint64_t addr, uint32_t len, unsigned int access,
			 bool remote, struct iovec *iov, int max);

	/*
	 * Invalidate a key: for the peer (SEND with invalidate) or for a
	 * LOCAL_INV WQE. A negative errno: not possible. May be NULL.
	 */
	int (*invalidate)(void *ctx, void *qp_ctx, uint32_t pd, uint32_t key,
			  bool remote);

	/*
	 * A ROCE_WR_LOCAL WQE is next. Returns its completion status.
	 * May be NULL: then it does nothing and succeeds.
	 */
	enum roce_wc_status (*local_op)(void *ctx, void *qp_ctx,
					const struct roce_send_wqe *wqe);

	/* An affiliated asynchronous event, IBA 11.6.3. */
	void (*event)(void *ctx, void *qp_ctx, enum roce_event event);
};

/* ---- the engine ---- */

struct roce_config {
	const struct roce_ops *ops;
	void *ctx;
	enum roce_mtu port_mtu; /* 0: 4096; the largest path MTU, and UD's */
	uint32_t max_unacked;	/* packets per QP; 0: 128, as rdma_rxe has it */
	uint32_t burst;		/* packets of a QP, or ACKs, in a turn; 0: 16 */
	uint32_t budget;	/* packets per roce_tick(); 0: 256 */
	uint32_t loopback_frames; /* packets to itself under way; 0: 256 */
};

/*
 * Create an engine without QPs and without addresses.
 * Returns 0, -EINVAL for a configuration out of range, or -ENOMEM.
 */
int roce_engine_create(const struct roce_config *config,
		       struct roce_engine **engine);

/* Destroy an engine with all of its QPs; no completions come from it. */
void roce_engine_destroy(struct roce_engine *engine);

/*
 * Set an entry of the GID table, or with a NULL @gid clear it. QPs use what
 * stands there when they send.
 * @mac: of the port as it has this address
 * Returns 0 or -EINVAL if @index >= ROCE_MAX_GIDS.
 */
int roce_set_gid(struct roce_engine *engine, unsigned int index,
		 const uint8_t gid[16], const uint8_t mac[6]);

/*
 * Take a received frame, from the Ethernet header on and without FCS; padding
 * behind the IP packet does not matter. IBA 9.6, A17.3.
 * @now: monotonic time in ns, here and everywhere; may not go back
 * @frame: must not change before the return; it is not written to
 * Returns true if it was RoCEv2 for one of the GIDs or a multicast group with
 * members, also if it had to be dropped; false: the frame is for someone else.
 * Answers wait for roce_tick(), so that several frames get one ACK.
 */
bool roce_rx(struct roce_engine *engine, uint64_t now, const void *frame,
	     size_t len);

/*
 * Do what is due: timers, packets to itself, answers, posted work; QPs take
 * turns. About roce_config.budget packets are sent at most.
 * Returns true if there is more that can be done at once.
 */
bool roce_tick(struct roce_engine *engine, uint64_t now);

/*
 * When roce_tick() is due: 0 for at once, UINT64_MAX for never. May be
 * earlier than needed. After a transmit of -EAGAIN this is not 0 because of
 * what waits for room: call roce_tick() when there is.
 */
uint64_t roce_next_deadline(const struct roce_engine *engine);

/* ---- queue pairs ---- */

struct roce_qp_init {
	enum roce_qp_type type;
	void *ctx;
	uint32_t qpn; /* 24 bits, unique; GSI: any, on the wire it is 1 */
	uint32_t pd;
	/* receives come from a shared receive queue; XRC_RECV: always */
	bool srq;
	/* Receives ring no doorbell: in ERR the queue is looked at by itself. */
	bool poll_recv;
	uint32_t max_send_wr;  /* depth of the send queue; at least 1 */
	uint32_t max_send_sge; /* 0 to ROCE_MAX_SGE */
	uint32_t max_recv_sge;
};

struct roce_qp_attr {
	enum roce_qp_state state;
	enum roce_qp_state cur_state;
	bool en_sqd_async_notify;
	uint32_t access;     /* enum roce_access, the remote ones */
	uint16_t pkey_index; /* 0, the default partition, is all there is */
	uint8_t port;	     /* 1 */
	uint32_t qkey;
	struct roce_av av;
	enum roce_mtu path_mtu;
	uint8_t timeout;	    /* 4.096 us * 2^timeout, 5 bits; 0: never */
	uint8_t retry_cnt;	    /* 0 to 7 */
	uint8_t rnr_retry;	    /* 0 to 7; 7: for ever */
	uint8_t min_rnr_timer;	    /* 5 bits, IBA table 45 */
	uint8_t max_rd_atomic;	    /* as initiator, up to ROCE_MAX_RD_ATOMIC */
	uint8_t max_dest_rd_atomic; /* as responder */
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint32_t dest_qpn;
};

/*
 * Create a QP in RESET, IBA 11.2.5.1.
 * Returns 0, -EINVAL for attributes out of range, -EEXIST if the QPN is in
 * use, or -ENOMEM.
 */
int roce_qp_create(struct roce_engine *engine, const struct roce_qp_init *init,
		   struct roce_qp **qp);

/* Destroy a QP, IBA 11.2.5.5. WQEs that it has fetched do not complete. */
void roce_qp_destroy(struct roce_qp *qp);

/*
 * Change state or attributes, IBA 11.2.5.3 and tables 91 ff.
 * @mask: enum roce_qp_attr_mask, what is valid in @attr. All that the
 *	transition needs must be there. What it does not allow is refused.
 * To RESET forgets fetched WQEs. To ERR flushes everything with the following
 * roce_tick() calls. SQD stops with the message that is under way. From SQE to
 * RTS flushes at once what is left in the send queue.
 * Returns 0 or -EINVAL, then nothing has changed, but that the flush may have broken
 * the QP, which is in ERR; -ENOMEM.
 */
int roce_qp_modify(struct roce_qp *qp, const struct roce_qp_attr *attr,
		   uint32_t mask);

/*
 * The attributes as they were set, and the present state: IBA 11.2.5.4. What
 * else the QP knows cannot be asked for: as with a NIC.
 */
void roce_qp_query(const struct roce_qp *qp, struct roce_qp_attr *attr,
		   bool *sq_draining);

enum roce_qp_state roce_qp_state(const struct roce_qp *qp);

/*
 * Make a UD QP a member of a multicast group, IBA 10.5: ff00::/8, or for IPv4
 * ::ffff:224.0.0.0/4. A datagram to it comes once to each member on this
 * engine, whoever sent it. To be a member twice is the same as once. It lasts
 * until roce_detach() or roce_qp_destroy(), through all states: drivers count
 * on it that what they attached can be detached.
 * Returns 0, -EINVAL for another GID or service, or -ENOSPC.
 */
int roce_attach(struct roce_qp *qp, const uint8_t gid[16]);

/* Returns 0, or -ENOENT if the QP is no member. */
int roce_detach(struct roce_qp *qp, const uint8_t gid[16]);

/* There is new work in the send queue. Cheap; roce_tick() does it. */
void roce_kick(struct roce_qp *qp);

/*
 * There is new work in the receive queue. Only needed in ERR, where it is
 * flushed, and without roce_qp_init.poll_recv.
 */
void roce_kick_recv(struct roce_qp *qp);

/* ---- counters ---- */

/* Of a QP; names and meaning as in mlx5's Q counter. All count up only. */
struct roce_qp_counters {
	uint64_t rx_write_requests;
	uint64_t rx_read_requests;
	uint64_t rx_atomic_requests;
	uint64_t rx_packets, tx_packets;
	uint64_t rx_bytes, tx_bytes; /* payload */
	uint64_t out_of_buffer;	     /* no receive WQE */
	uint64_t out_of_sequence;
	uint64_t duplicate_request;
	uint64_t rnr_nak_retry_err;
	uint64_t packet_seq_err;
	uint64_t implied_nak_seq_err;
	uint64_t local_ack_timeout_err;
	uint64_t retransmits; /* packets */
	uint64_t resp_local_length_error;
	uint64_t resp_cqe_error;
	uint64_t resp_cqe_flush_error;
	uint64_t resp_remote_access_errors;
	uint64_t req_cqe_error;
	uint64_t req_cqe_flush_error;
	uint64_t req_remote_invalid_request;
	uint64_t req_remote_access_errors;
	uint64_t rx_dropped; /* for this QP, by a check of transport */
};

/* Of an engine: frames for it that reached no QP. */
struct roce_counters {
	uint64_t rx_frames;
	uint64_t rx_malformed; /* lengths or versions do not fit */
	uint64_t rx_bad_icrc;
	uint64_t rx_no_qp;	 /* no such QP, wrong state or service */
	uint64_t rx_bad_address; /* not from the QP's peer */
	uint64_t rx_bad_pkey;
	uint64_t rx_bad_qkey;
	uint64_t rx_ecn_marked; /* congestion experienced; not dropped */
	uint64_t tx_frames;
	uint64_t tx_no_address; /* the GID table entry is empty */
	uint64_t tx_blocked;	/* -EAGAIN */
	uint64_t loopback_frames;
};

/*
 * What all QPs together have under way as requesters. Whether a response has
 * arrived nobody knows at its sender: the requester's engine does.
 */
struct roce_load {
	uint64_t qps;
	uint64_t packets;      /* sent and not acknowledged... */
	uint64_t bytes;	       /* ...their payload */
	uint64_t read_bytes;   /* asked for, and not there yet */
	uint64_t unsent_bytes; /* of WQEs that were fetched: the rest of them */
};

/* Takes a time that is linear in QPs and in WQEs under way. */
struct roce_load roce_load(const struct roce_engine *engine);

const struct roce_qp_counters *roce_qp_counters(const struct roce_qp *qp);
const struct roce_counters *roce_counters(const struct roce_engine *engine);

#endif /* ROCE_H */
