/* SPDX-License-Identifier: GPL-2.0 */
/* Ethernet: queues, what leads to them, and their frames */
#ifndef MLX5SOFT_ETH_H
#define MLX5SOFT_ETH_H

#include <sys/queue.h>

#include "dma.h"
#include "object.h"

struct cq;
struct held;

/* an Ethernet queue, send or receive */
struct wq {
	struct obj obj;
	struct cq *cq;
	struct pas pas;
	uint8_t log_size, log_stride, state;
	bool rlky;
	uint32_t pd;
	uint64_t db;
	uint16_t ci;
	uint32_t sent;	 /* segments that are out of the large send at ci */
	bool starved;	 /* frames were dropped, as there was no buffer */
	bool bad_record; /* its doorbell record says nothing, which was logged */
	bool runnable;	 /* in nic.tx_run or nic.rx_flush[looks] */
	TAILQ_ENTRY(wq) next_run;
	/* a receive queue in ERR: what it waits, and until when; eth_flush() */
	uint8_t looks;
	uint64_t look_at;
	/* a receive queue: frames without a buffer; it is in nic.holding then */
	TAILQ_HEAD(, held) held;
	TAILQ_ENTRY(wq) next_holding;
	uint32_t held_count, held_bytes; /* bytes of memory */
	uint8_t ctx[BYTES(rqc) > BYTES(sqc) ? BYTES(rqc) : BYTES(sqc)];
};

TAILQ_HEAD(wq_list, wq);

/* what the CQE tells of a frame's hash */
struct rx_hash {
	uint32_t value;
	uint8_t type;
};

enum wq_state {
	WQ_RST = 0,
	WQ_RDY = 1,
	WQ_ERR = 3
};

struct tir {
	struct obj obj;
	uint8_t ctx[BYTES(tirc)];
};

struct tis {
	struct obj obj;
	uint8_t ctx[BYTES(tisc)];
};

#define MAX_LOG_RQT 8U
struct rqt {
	struct obj obj;
	uint32_t count, max;
	uint32_t rqn[1U << MAX_LOG_RQT];
};

/* There may be something to send, or to flush: with the next eth_tick() */
void sq_kick(struct nic *nic, struct wq *sq);
/* ...no more */
void sq_stop(struct nic *nic, struct wq *sq);
/* Send for a while. Returns whether there is more. */
bool eth_tick(struct nic *nic);
/*
 * The queue is in the error state now: its WQEs end with an error, those that
 * are posted later as well, if it was created so (flush_in_error_en).
 */
void rq_flush(struct nic *nic, struct wq *rq);
/* Nothing of it waits any more, frames or flushing. */
void rq_stop(struct nic *nic, struct wq *rq);
/*
 * Look again at receive queues, whose posts ring no doorbell: at once when
 * there is more, after a while when there was something, and each time that
 * there was nothing after twice as long, MAX_LOOKS in all.
 */
#define IDLE_RECV_NS 2000000
#define MAX_LOOKS 8
void eth_flush(struct nic *nic);
/* A frame to the wire; false: it has no room, it goes on when it has. */
bool eth_transmit(struct nic *nic, const uint8_t *frame, uint32_t len);
/*
 * A frame from the wire, or one of the guest's own that may come `back`, from
 * the transport domain `td`, 0: unknown. It is changed when it is delivered.
 * False: nobody wants it back.
 */
bool eth_receive(struct nic *nic, uint8_t *frame, uint32_t len, bool back,
		 uint32_t td);
/* Try again what waits for a buffer. Returns whether there is more. */
bool eth_retry_held(struct nic *nic);

#endif /* MLX5SOFT_ETH_H */
