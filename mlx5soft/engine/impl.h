/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of the engine have in common. Internal.
 */
#ifndef IMPL_H
#define IMPL_H

#include <errno.h>
#include <sys/queue.h>

#include "packet.h"
#include "roce.h"

#define MAX_MTU 4096
/* Each element of a gather list may be split at a page once more. */
#define MAX_PAYLOAD_IOV (2 * ROCE_MAX_SGE + 4)
#define NEVER UINT64_MAX
/* where the payload stands in roce_engine.out: headers go in front of it */
#define OUT_PAYLOAD 128

/* a send WQE that was fetched and has not completed */
struct slot {
	struct roce_send_wqe wqe;
	uint32_t length;
	uint32_t psn;  /* of the first packet */
	uint32_t psns; /* how many it takes; 0 for local operations */
	enum roce_wc_status status; /* not success: fails when its turn comes */
	bool started;		    /* has its PSNs */
	bool done;	  /* local operation, or service without ACK */
	bool rd_atomic;	  /* counts in req.rd_atomic */
	uint32_t rd_next; /* index of the next such, if there is one */
	uint32_t sge_end; /* behind its elements in req.sges */
};

struct requester {
	struct slot *slots;
	uint32_t mask;	       /* of indices into slots */
	struct roce_sge *sges; /* a ring: the lists of WQEs */
	uint32_t sge_size;
	uint32_t sge_head, sge_tail; /* of the oldest, behind the newest */
	/* free running: [head, cur) was sent, cur is next, of [head, tail) */
	uint32_t head, cur, tail;
	uint32_t pkt;		    /* the packet of cur to send next */
	uint32_t psn;		    /* for the next WQE that starts */
	uint32_t una;		    /* oldest PSN without ACK */
	uint32_t high;		    /* behind the last PSN that was sent */
	uint32_t rd_atomic;	    /* READs and atomics under way... */
	uint32_t rd_first, rd_last; /* ...indices of the oldest and newest */
	uint32_t rd_psns; /* PSNs of READs that wait for their response */
	uint32_t retries, rnr_retries; /* left */
	uint64_t ack_deadline;	       /* NEVER if nothing is outstanding */
	uint64_t rnr_deadline;	       /* NEVER if there is no RNR wait */
	uint32_t nak_una; /* una of the last step back, if nak_valid */
	bool nak_valid;
};

/* what a READ or an atomic left, for its response and for duplicates */
struct resource {
	uint32_t psn, psns;
	uint32_t next; /* response packet to send next */
	uint32_t rkey;
	uint32_t pd;
	uint64_t addr;
	uint32_t length;
	uint32_t msn;
	uint64_t original; /* atomics */
	bool atomic;
	bool answered; /* all of the response was sent once */
};

struct responder {
	uint32_t psn; /* expected */
	uint32_t msn;
	uint32_t message; /* PKT_SEND or PKT_WRITE while within one */
	bool nak_sent;	  /* for this expected PSN */
	uint32_t dropped; /* from psn on, to behind the last one that was */
	bool dropping;	  /* UC: until the next message starts */
	bool fatal;	  /* QP goes to ERR when the NAK is sent */
	enum roce_event fatal_event; /* or 0 */
	bool ack_pending;
	uint8_t ack_syndrome;
	uint32_t ack_psn;

	uint32_t srqn; /* XRC: of the last good packet */
	uint32_t pd;   /* of what the peer names: the QP's, XRC: the SRQ's */

	struct roce_recv_wqe wqe; /* being filled, if have_wqe */
	struct roce_sge *sges;
	bool have_wqe;
	uint64_t wqe_len;
	uint32_t offset; /* into the message */

	uint64_t addr; /* of the RDMA WRITE */
	uint32_t rkey;
	uint32_t length;

	struct resource *resources; /* a ring, in the order of PSNs */
	uint32_t res_size, res_head, res_count;
	/* a bit for each: not all of the response is sent */
	uint64_t res_pending[ROCE_MAX_RD_ATOMIC / 64];
};

struct roce_qp {
	struct roce_engine *engine;
	struct roce_qp *hash_next;
	struct roce_qp *run_next, **run_prev; /* run_prev NULL: not on it... */
	struct run_list *run_list;	      /* ...and on this one otherwise */
	TAILQ_ENTRY(roce_qp) ack_next;
	bool ack_waits; /* on the list of them, perhaps without one by now */
	struct roce_qp *all_next, **all_prev;
	struct roce_qp_init init;
	uint32_t wire_qpn;
	struct roce_qp_attr attr;
	uint32_t mtu; /* bytes */
	bool sq_draining;
	bool comm_est;
	bool flush_recv;	/* ERR: the receive queue may have something */
	uint64_t look_deadline; /* when to look at queues again, or NEVER */
	uint64_t look_wait;	/* since last time; 0: there was something */
	bool last_wqe;		/* the event was given */
	uint64_t deadline;	/* as in the heap */
	uint32_t heap_index;	/* + 1; 0: not in it */
	struct requester req;
	struct responder resp;
	struct roce_qp_counters counters;
};

struct run_list {
	struct roce_qp *head, **tail;
};

struct gid_entry {
	bool valid;
	uint8_t gid[16];
	uint8_t mac[6];
};

/* the first @count of @qp are its members; 0: free */
struct group {
	uint8_t gid[16];
	uint32_t count;
	struct roce_qp *qp[ROCE_MAX_GROUP_QPS];
};

struct loopback {
	uint8_t *frames;
	uint32_t *lengths;
	uint32_t size, head, count;
};

struct roce_engine {
	struct roce_config config;
	uint64_t now;
	uint32_t port_mtu;	  /* bytes */
	struct roce_qp **buckets; /* by QPN; as many as there are QPs */
	uint32_t bucket_mask;
	struct roce_qp *all;
	struct run_list run;
	struct run_list waiting;    /* for room at the wire */
	bool full;		    /* the loopback is, or transmit says so */
	TAILQ_HEAD(, roce_qp) acks; /* who has one to send, or a NAK */
	uint32_t acks_ahead; /* so many were sent since a QP had its turn */
	struct roce_qp **heap;
	uint32_t heap_count, heap_size, qps;
	uint16_t ip_id; /* IPv4 identification, counts packets */
	/* The packet that is made: the ICRC is that of the bytes which leave. */
	uint8_t out[OUT_PAYLOAD + MAX_MTU + MAX_TAIL_BYTES]
		__attribute__((aligned(64)));
	struct gid_entry gids[ROCE_MAX_GIDS];
	unsigned int gid_end; /* behind the last valid one */
	struct group groups[ROCE_MAX_GROUPS];
	struct loopback loopback;
	struct roce_counters counters;
};

/* what a step of a QP came to */
enum step {
	STEP_SENT,    /* or did what sends nothing */
	STEP_IDLE,    /* nothing to do, or it waits for something */
	STEP_BLOCKED, /* no room for the packet */
};

/* a packet to send; its payload is in roce_engine.out */
struct tx {
	uint8_t op; /* without service */
	bool solicited;
	bool ack_req;
	uint32_t dest_qpn;
	uint32_t psn;
	uint32_t ext_len;
	uint8_t ext[MAX_EXT_BYTES];
	uint32_t payload_len;
};

static inline uint32_t psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & PSN_MASK;
}

/* how far @psn is behind @from */
static inline uint32_t psn_sub(uint32_t psn, uint32_t from)
{
	return (psn - from) & PSN_MASK;
}

static inline bool psn_before(uint32_t a, uint32_t b)
{
	return psn_sub(a, b) >= MAX_PSNS;
}

static inline struct slot *qp_slot(struct roce_qp *qp, uint32_t index)
{
	return &qp->req.slots[index & qp->req.mask];
}

static inline bool is_datagram(const struct roce_qp *qp)
{
	return qp->init.type == ROCE_QPT_UD || qp->init.type == ROCE_QPT_GSI;
}

static inline bool is_xrc(const struct roce_qp *qp)
{
	return qp->init.type == ROCE_QPT_XRC_SEND ||
	       qp->init.type == ROCE_QPT_XRC_RECV;
}

/* XRC is RC, but for the SRQ in requests. */
static inline bool is_reliable(const struct roce_qp *qp)
{
	return qp->init.type == ROCE_QPT_RC || is_xrc(qp);
}

static inline bool is_read(const struct slot *slot)
{
	return slot->wqe.opcode == ROCE_WR_RDMA_READ;
}

static inline bool is_atomic(const struct slot *slot)
{
	return slot->wqe.opcode == ROCE_WR_ATOMIC_CMP_AND_SWP ||
	       slot->wqe.opcode == ROCE_WR_ATOMIC_FETCH_AND_ADD;
}

/* engine.c */
void engine_make_runnable(struct roce_qp *qp);
void engine_remove_runnable(struct roce_qp *qp);
/* It has an ACK or a NAK to send. */
void engine_queue_ack(struct roce_qp *qp);
void engine_remove_ack(struct roce_qp *qp);
struct roce_qp *engine_find_qp(struct roce_engine *engine, uint32_t qpn);
/* Is it of use to make a packet for this address? */
bool engine_has_room(struct roce_qp *qp, const struct roce_av *av);
/* 0 if the packet is away, or lost; -EAGAIN */
int engine_send(struct roce_qp *qp, const struct roce_av *av,
		const struct tx *tx);

/* group.c */
/* NULL: it has no members */
struct group *group_find(struct roce_engine *engine, const uint8_t gid[16]);
void group_leave_all(struct roce_qp *qp);

/* timer.c */
int timer_reserve(struct roce_engine *engine, uint32_t count);
void timer_update(struct roce_qp *qp);
void timer_remove(struct roce_qp *qp);
/* the first one that is due, or NULL */
struct roce_qp *timer_expired(struct roce_engine *engine);

/* mem.c */
int mem_check_list(struct roce_qp *qp, const struct roce_sge *sge,
		   uint32_t count, unsigned int access);
/* Copy to the packet that is made, from a message or from what the peer names */
int mem_gather(struct roce_qp *qp, const struct slot *slot, uint32_t offset,
	       uint32_t len);
int mem_remote_read(struct roce_qp *qp, uint32_t pd, uint32_t rkey,
		    uint64_t addr, uint32_t len);
int mem_scatter(struct roce_qp *qp, uint32_t pd, const struct roce_sge *sge,
		uint32_t count, uint32_t offset, const void *data,
		uint32_t len);
int mem_remote(struct roce_qp *qp, uint32_t pd, uint32_t rkey, uint64_t addr,
	       uint32_t len, unsigned int access, struct iovec *iov, int max);
int mem_remote_write(struct roce_qp *qp, uint32_t rkey, uint64_t addr,
		     const void *data, uint32_t len);

/* error.c */
void qp_complete_send(struct roce_qp *qp, struct slot *slot,
		      enum roce_wc_status status, uint8_t syndrome);
void qp_complete_recv(struct roce_qp *qp, struct roce_recv_wc *wc);
void qp_event(struct roce_qp *qp, enum roce_event event);
void qp_error(struct roce_qp *qp);
/* ...with an event, as no completion can tell: IBA 11.6.3 */
void qp_fatal(struct roce_qp *qp);
/* Returns the number of completions; if there may be more, it is runnable. */
uint32_t qp_flush(struct roce_qp *qp, uint32_t max);
/* Is there memory now? ERR: has anything been posted to the receive queue? */
void qp_look_again(struct roce_qp *qp);
/* a completion or a WQE for a message that could not be received */
void qp_recv_error(struct roce_qp *qp, enum roce_wc_status status);

/* qp.c */
void qp_reset(struct roce_qp *qp);

/* slots.c */
int slots_init(struct roce_qp *qp);
void slots_free(struct roce_qp *qp);
/* room for one more WQE and its list, or NULL: not now */
struct slot *slots_next(struct roce_qp *qp);
/* ...it is there */
void slots_push(struct roce_qp *qp, struct slot *slot);
/* The oldest one is done. It may be looked at until the next is fetched. */
struct slot *slots_pop(struct roce_qp *qp);
/* Forget all. */
void slots_drop(struct roce_qp *qp);

/* requester.c */
enum step req_step(struct roce_qp *qp);
/* the next WQE; false: there is none, or no room or memory for it */
bool req_fetch(struct roce_qp *qp);
void req_check_drained(struct roce_qp *qp);
/* send again, from @psn on */
void req_go_back(struct roce_qp *qp, uint32_t psn);
void req_arm(struct roce_qp *qp);

/* completer.c */
void comp_receive(struct roce_qp *qp, const struct packet *pkt);
void comp_timeout(struct roce_qp *qp);
/* complete all that can be */
void comp_retire(struct roce_qp *qp);

/* responder.c */
void resp_receive(struct roce_qp *qp, const struct packet *pkt);
int resp_get_wqe(struct roce_qp *qp);
void resp_acknowledge(struct roce_qp *qp, uint8_t syndrome, uint32_t psn);
void resp_fatal(struct roce_qp *qp, uint8_t syndrome,
		enum roce_wc_status status, enum roce_event event);

/* reply.c: READ and atomics, and sending of all responses */
void reply_read(struct roce_qp *qp, const struct packet *pkt);
void reply_atomic(struct roce_qp *qp, const struct packet *pkt);
void reply_duplicate(struct roce_qp *qp, const struct packet *pkt);
enum step reply_step(struct roce_qp *qp);
/* ...of the list of ACKs: none is sent if another response is due first */
enum step reply_ack(struct roce_qp *qp);

/* ud.c */
enum step ud_send(struct roce_qp *qp, struct slot *slot);
void ud_receive(struct roce_qp *qp, const struct packet *pkt);

#endif /* IMPL_H */
