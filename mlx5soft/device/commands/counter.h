/* SPDX-License-Identifier: GPL-2.0 */
/* Counters: of the port, of queues, and of commands */
#ifndef MLX5SOFT_COUNTER_H
#define MLX5SOFT_COUNTER_H

#include "object.h"
#include "roce.h"

struct qp;

enum cast {
	UNICAST,
	MULTICAST,
	BROADCAST,
	CASTS
};

struct traffic {
	uint64_t frames[CASTS], bytes[CASTS];
};

/* Of an opcode; of opcode 0, which there is not: those that are unknown */
struct cmd_count {
	uint64_t count, ns;
};

#define CMD_OPS 0x1000U /* opcodes are below */

#define SIZE_RANGES 10

struct port {
	struct traffic rx, tx;		   /* at the wire */
	struct traffic vport_rx, vport_tx; /* what the vport has to do with */
	struct traffic rdma_rx, rdma_tx;
	uint64_t prio_rx_frames[8], prio_rx_bytes[8];
	uint64_t prio_tx_frames[8], prio_tx_bytes[8];
	uint64_t rx_size[SIZE_RANGES];
	uint64_t rx_oversize, tx_discards;
	uint64_t steer_missed, rx_down, tx_down;
	uint32_t link_down;
};

void count_rx(struct nic *nic, const uint8_t *frame, uint32_t len);
void count_tx(struct nic *nic, const uint8_t *frame, uint32_t len);
void count_traffic(struct traffic *t, const uint8_t *frame, uint32_t len);
void ppcnt_fill(struct nic *nic, uint8_t *reg);

struct q_counter {
	struct obj obj;
	uint32_t out_of_buffer; /* Ethernet's */
	struct roce_qp_counters rdma;
	uint32_t retries_exceeded, rnr_retries_exceeded;
};

/* What it has counted since last time goes to its Q counter. */
void q_account(struct nic *nic, struct qp *qp);
/* A send WQE of it has failed. */
void q_failed(struct nic *nic, const struct qp *qp, enum roce_wc_status why);

#endif /* MLX5SOFT_COUNTER_H */
