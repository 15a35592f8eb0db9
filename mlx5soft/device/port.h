/* SPDX-License-Identifier: GPL-2.0 */
/* What the port counts */
#ifndef MLX5SOFT_PORT_H
#define MLX5SOFT_PORT_H

#include "bits.h"

struct nic;

enum cast {
	UNICAST,
	MULTICAST,
	BROADCAST,
	CASTS
};

struct traffic {
	u64 frames[CASTS], bytes[CASTS];
};

#define SIZE_RANGES 10

struct port {
	struct traffic rx, tx;		   /* at the wire */
	struct traffic vport_rx, vport_tx; /* what the vport has to do with */
	struct traffic rdma_rx, rdma_tx;
	u64 prio_rx_frames[8], prio_rx_bytes[8];
	u64 prio_tx_frames[8], prio_tx_bytes[8];
	u64 rx_size[SIZE_RANGES];
	u64 rx_oversize, tx_discards;
	u64 steer_missed, rx_down, tx_down;
	u32 link_down;
};

void count_rx(struct nic *nic, const u8 *frame, u32 len);
void count_tx(struct nic *nic, const u8 *frame, u32 len);
void count_traffic(struct traffic *t, const u8 *frame, u32 len);
void ppcnt_fill(struct nic *nic, u8 *reg);

#endif /* MLX5SOFT_PORT_H */
