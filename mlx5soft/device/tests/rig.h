/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A NIC and a driver that does what a test wants: commands through the command
 * queue, objects, doorbells.
 *
 * A command is made in `in` by one of the rig_*_in() functions, changed by the
 * test, and run by rig_run(). rig_id() runs one that must succeed.
 */
#ifndef RIG_H
#define RIG_H

#include "bits.h"
#include "device.h"
#include "host.h"
#include "../../../tests/check.h"

#define RIG_CMD (1U << 20) /* bytes of a command at most */
#define RIG_PAGE 4096U
#define RIG_USER_INDEX 0x5a5a5a /* of an XRC SRQ */
/* where things are in the host's memory */
#define RIG_CMDQ 0x1000U
#define RIG_IN 0x100000U /* mailboxes of slot 0; room for the largest */
#define RIG_OUT 0x400000U
#define RIG_BOXES 0x8000U /* from slot to slot */
#define RIG_BOX 1024U	  /* from mailbox to mailbox */
#define RIG_FREE 0x800000U
#define RIG_NOWHERE 0x40000000ULL /* not mapped */

/* results of rig_run() that are no status of the command */
#define RIG_PENDING -1		       /* the device did not touch it */
#define RIG_DELIVERY(n) (-0x100 - (n)) /* never got to the command */

struct rig_ring {
	u32 id;
	u8 log_size;
	u64 buf, db;
	u32 ci;
};

struct rig {
	struct nic *nic;
	struct host *host;
	int near, wire; /* the far end of it: a datagram is a frame */
	u64 free;	/* memory from here on is unused */
	u32 uar;	/* of rig_up() */
	u32 pd;
	u8 in[RIG_CMD], out[RIG_CMD];
	u32 in_len, out_len;
	u64 buf, db; /* buffer and doorbell record of the object in `in` */
	u32 syndrome;
	char log[256]; /* the last line */
	unsigned int lines;
	/* called with each command, before it runs */
	void (*record)(struct rig *r);
	/* called with the result of each: is it to run once more? */
	bool (*again)(struct rig *r, int result);
};

/* Before any command */
struct rig *rig_start(void);
/* ...with the command queue known, after INIT_HCA, a UAR and a PD */
struct rig *rig_up(void);
void rig_init_hca(struct rig *r);
void rig_stop(struct rig *r);

/* `count` pages, zeroed */
u64 rig_pages(struct rig *r, unsigned int count);
u8 *rig_mem(struct rig *r, u64 at);

/* ---- commands ---- */

/* An empty command in `in` */
u8 *rig_begin(struct rig *r, u16 op, u32 in_len, u32 out_len);
/* ...with a number where most have it */
u8 *rig_begin_id(struct rig *r, u16 op, u32 id);
/* Put it into a slot, with its mailboxes */
void rig_fill(struct rig *r, unsigned int slot);
void rig_ring(struct rig *r, u32 slots);
/* The result of what is in the slot; its output goes to `out` */
int rig_result(struct rig *r, unsigned int slot);
/* All of this in slot 0. Returns the status, or as above. */
int rig_run(struct rig *r);
int rig_run_id(struct rig *r, u16 op, u32 id);
/* A command that must succeed, and gives a number */
u32 rig_id(struct rig *r);

/* ---- objects ---- */

void rig_eq_in(struct rig *r, u8 log_size, u8 vector, u64 events);
void rig_cq_in(struct rig *r, u8 log_size, u32 eqn);
/* an address, and a QP to RTS that has its peer at the same one */
void rig_address(struct rig *r);
void rig_connect(struct rig *r, u32 qp, u32 peer);
void rig_cq_resize_in(struct rig *r, u8 log_size, u32 cqn);
/* all rights, 4-KiB pages of `buf` */
void rig_mkey_in(struct rig *r, u64 buf, u64 start, u64 len);
void rig_srq_in(struct rig *r);
void rig_xrc_srq_in(struct rig *r, u32 xrcd, u32 cqn);
void rig_rmp_in(struct rig *r);
void rig_qp_in(struct rig *r, u8 type, u32 cqn);
void rig_sq_in(struct rig *r, u32 cqn);
void rig_rq_in(struct rig *r, u32 cqn);

struct rig_ring rig_eq(struct rig *r, u8 log_size, u8 vector, u64 events);
struct rig_ring rig_cq(struct rig *r, u8 log_size, u32 eqn);

/* Take the next EQE; false: there is none */
bool rig_eqe(struct rig *r, struct rig_ring *eq, u8 eqe[64]);
/* ...and the next CQE of 64 bytes, without a write to the doorbell record */
bool rig_cqe(struct rig *r, struct rig_ring *cq, u8 cqe[64]);

/* doorbells through page `uar` */
void rig_eq_db(struct rig *r, u32 uar, const struct rig_ring *eq, bool arm);
void rig_arm_cq(struct rig *r, u32 uar, const struct rig_ring *cq,
		bool solicited);
/* ...with a turn of the loop behind it */
void rig_send_db(struct rig *r, u32 uar, u32 number);

#endif /* RIG_H */
