/* SPDX-License-Identifier: GPL-2.0 */
/* Event queues */
#ifndef MLX5SOFT_EQ_H
#define MLX5SOFT_EQ_H

#include <sys/queue.h>

#include "dma.h"
#include "object.h"

struct cq;

enum event {
	EVENT_COMP = 0x00,
	EVENT_COMM_EST = 0x02,
	EVENT_CQ_ERROR = 0x04,
	EVENT_QP_FATAL = 0x05,
	EVENT_PORT_CHANGE = 0x09,
	EVENT_CMD = 0x0a,
	EVENT_QP_REQ_ERR = 0x10,
	EVENT_QP_ACCESS_ERR = 0x11,
	EVENT_SRQ_ERROR = 0x12,
	EVENT_SRQ_LAST_WQE = 0x13,
	EVENT_SRQ_LIMIT = 0x14,
};

#define EQE_DATA 28

struct eq {
	struct obj obj;
	struct pas pas;
	uint8_t log_size;
	uint16_t vector;
	uint32_t uar;
	bool armed, overrun;
	bool loss_told; /* to the log, since the consumer made room */
	uint32_t pi, ci;
	uint64_t events[4];
	/* CQs with an event that had no room */
	TAILQ_HEAD(, cq) waiting;
	uint8_t eqc[BYTES(eqc)];
};

/* False: it had no room and is lost. */
bool eq_post(struct nic *nic, struct eq *eq, uint8_t type, uint8_t subtype,
	     const uint8_t data[EQE_DATA]);
/* A completion event, which is not lost: without room it waits. */
void eq_post_cq(struct nic *nic, struct eq *eq, struct cq *cq);
/* The CQ goes away. */
void eq_forget_cq(struct cq *cq);
/* to the EQ that wants events of this type; false: there is none */
bool event_post(struct nic *nic, uint8_t type, uint8_t subtype,
		const uint8_t data[EQE_DATA]);
/* about a queue of this type, or an SRQ */
enum queue_type {
	QUEUE_QP,
	QUEUE_RQ,
	QUEUE_SQ
};
void event_queue(struct nic *nic, uint8_t type, enum queue_type queue_type,
		 uint32_t number);
void eq_doorbell(struct nic *nic, uint32_t uar, uint32_t value, bool arm);
/* The device is bus master again: what could not be told or raised is. */
void eq_resume(struct nic *nic);

#endif /* MLX5SOFT_EQ_H */
