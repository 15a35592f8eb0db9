/* SPDX-License-Identifier: GPL-2.0 */
/* Completion queues */
#ifndef MLX5SOFT_CQ_H
#define MLX5SOFT_CQ_H

#include <sys/queue.h>

#include "dma.h"
#include "object.h"

struct cq {
	struct obj obj;
	struct eq *eq;
	struct pas pas;
	uint8_t log_size;
	bool big; /* entries of 128 bytes, the CQE in the second half */
	bool ignore_overrun, failed;
	bool armed, armed_solicited;
	bool news, solicited_news; /* CQEs that no event has told of yet */
	uint32_t pi, solicited_pi; /* behind the last such CQE */
	uint32_t notified_pi;	   /* behind the last that had an event */
	uint32_t uar;
	uint64_t db;
	/* moderation: CQEs and microseconds from event to event; 0: none */
	uint16_t max_count, period;
	bool from_cqe;	      /* the time counts from the last CQE */
	uint64_t posted_at;   /* ns, of the last CQE, if from_cqe */
	uint64_t notified_at; /* ...of the last event */
	bool timed;	      /* in nic.cq_timed, an event is due at... */
	uint64_t due;
	TAILQ_ENTRY(cq) next_timed;
	bool waiting; /* in eq->waiting */
	TAILQ_ENTRY(cq) next_waiting;
	uint8_t cqc[BYTES(cqc)];
};

/* where the fields of a CQE are, in bytes */
enum cqe_at {
	CQE_AT_FLAGS_RQPN = 24,
	CQE_AT_SRQN = 32, /* or the user's index */
	CQE_AT_IMM = 36,
	CQE_AT_BYTE_CNT = 44,
	CQE_AT_TIMESTAMP = 48,
	CQE_AT_VENDOR_SYNDROME = 54, /* of errors, which have no time stamp */
	CQE_AT_SYNDROME = 55,
	CQE_AT_QPN = 56, /* with the opcode of a send WQE in front */
	CQE_AT_WQE_COUNTER = 60,
};

enum cqe_op {
	CQE_REQ = 0x0,
	CQE_RESP_WRITE_IMM = 0x1,
	CQE_RESP_SEND = 0x2,
	CQE_RESP_SEND_IMM = 0x3,
	CQE_RESP_SEND_INV = 0x4,
	CQE_RESIZE = 0x5,
	CQE_REQ_ERR = 0xd,
	CQE_RESP_ERR = 0xe,
};

/*
 * Whom a CQE is about, as user space counts. Queues of the kernel and of old
 * libraries have no such number.
 */
#define NO_USER_INDEX 0xffffffU
static inline void cqe_set_user_index(uint8_t cqe[64], uint32_t index)
{
	if (index != NO_USER_INDEX)
		put_be32(cqe + CQE_AT_SRQN, index);
}

/* Post a CQE; op_own of it is made here. False: the CQ is full or broken. */
bool cq_post(struct nic *nic, struct cq *cq, uint8_t cqe[64], enum cqe_op op,
	     bool solicited);
void cq_doorbell(struct nic *nic, uint32_t uar, uint32_t first,
		 uint32_t number);
/* Events that moderation has kept, from nic.cq_due on */
void cq_tick(struct nic *nic, uint64_t now);

#endif /* MLX5SOFT_CQ_H */
