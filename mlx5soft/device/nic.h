/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The NIC itself. What comes from the guest (commands, doorbells, rings) is
 * untrusted: numbers are looked up, lengths checked, guest memory is read once.
 */
#ifndef MLX5SOFT_NIC_H
#define MLX5SOFT_NIC_H

#include <stdio.h>
#include <time.h>

#include "commands/counter.h"
#include "device.h"
#include "ethernet/eth.h"
#include "object.h"
#include "vfu.h"
#include "wire.h"

#define N_ELEM(a) (sizeof(a) / sizeof((a)[0]))

#define VECTORS 16
#define UAR_PAGE 4096U
#define BAR_SIZE (8U << 20)
#define FIRST_UAR 16U /* the pages before hold the initialization segment */

#define MAX_LOG_QUEUE 20U /* of entries, for CQ and EQ */
#define MAX_LOG_WQ 15U
#define MAX_LOG_RQ_STRIDE 11U
#define MAX_WQE 1024U
#define SEND_MAX ((1U << 19) + MAX_WQE) /* of a large send */
#define ROCE_ADDRESSES 32U
#define DEFAULT_PKEY 0xffffU

#define CAP_TYPES 0x40
#define CAP_BYTES 4096

struct nic {
	struct vfu *vfu;
	struct nic_config cfg;
	struct id_table table[OBJ_KINDS];

	/* command queue */
	uint64_t cmdq;
	bool cmdq_known;
	uint32_t cmd_rung;     /* slots, while the device was not bus master */
	uint64_t cmd_time;     /* ns that each takes; 0: as long as it takes */
	uint32_t cmd_slots;    /* that wait for that */
	unsigned int cmd_next; /* of them that has its turn */
	uint64_t cmd_began;    /* ns: since when it has */
	uint32_t health;
	uint8_t *cmd_in, *cmd_out;
	uint16_t issi;
	bool enabled; /* between ENABLE_HCA and DISABLE_HCA */
	bool up;      /* between INIT_HCA and TEARDOWN_HCA */
	uint64_t cmds;
	struct cmd_count cmd_count[CMD_OPS];
	uint64_t counted_from; /* ns: since then */

	uint32_t root_ft;
	uint8_t nic_vport[BYTES(nic_vport_context)];
	uint8_t uc_list[32][6], mc_list[32][6];
	uint32_t uc_count, mc_count;
	uint8_t roce_addr[ROCE_ADDRESSES][BYTES(roce_addr_layout)];
	uint8_t *cap[CAP_TYPES]; /* NULL: all zero */
	uint64_t guid;
	uint16_t mtu;
	bool port_down;

	struct roce_engine *roce;
	uint64_t flush_due; /* of Ethernet receive queues in ERR, 0: there are none */

	TAILQ_HEAD(, cq) cq_timed;
	uint64_t cq_due;
	uint32_t cq_half, cq_half_uar; /* first half of a CQ doorbell */

	struct {
		time_t second;
		unsigned int lines, lost;
	} log;

	struct port port;
	FILE *record, *record_vfu;

	/* the wire has no room: send queues wait */
	bool tx_blocked;
	bool tx_waits;	       /* ...did so last time, and have not caught up */
	bool eth_first;	       /* RDMA sent the last frame */
	struct wq_list tx_run; /* send queues with something to do */
	/* receive queues in the error state, in the order of wq.look_at */
	struct wq_list rx_flush[MAX_LOOKS + 1];
	struct wq_list holding; /* ...with frames that wait for a buffer */
	uint32_t held_bytes;
	struct wire wire;
	uint8_t tx_frame[SEND_MAX]; /* of a large send, before it is cut */
};

/* At most 64 lines a second: what a guest does must not fill the disk. */
void nic_log(struct nic *nic, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
#define nic_debug(nic, ...)                        \
	do {                                       \
		if ((nic)->cfg.verbose)            \
			nic_log(nic, __VA_ARGS__); \
	} while (0)

/* the device's clock, ns */
uint64_t nic_now(void);

bool caps_init(struct nic *nic);
void caps_free(struct nic *nic);
void vport_reset(struct nic *nic);
void port_event(struct nic *nic, bool down);
int bar_read(void *priv, unsigned int bar, uint64_t off, void *buf, size_t len);
int bar_write(void *priv, unsigned int bar, uint64_t off, const void *buf,
	      size_t len);

#endif /* MLX5SOFT_NIC_H */
