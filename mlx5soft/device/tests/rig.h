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

#define RIG_CMD ((8U << 20) + 4096) /* bytes of a command at most */
#define RIG_PAGE 4096U
#define RIG_USER_INDEX 0x5a5a5a /* of an XRC SRQ */
/* where things are in the host's memory */
#define RIG_CMDQ 0x1000U
#define RIG_IN 0x100000U /* mailboxes of slot 0; room for the largest */
#define RIG_OUT 0x1200000U
#define RIG_BOXES 0x8000U /* from slot to slot */
#define RIG_BOX 1024U	  /* from mailbox to mailbox */
#define RIG_FREE 0x2400000U
#define RIG_NOWHERE 0x40000000ULL /* not mapped */

/* results of rig_run() that are no status of the command */
#define RIG_PENDING -1		       /* the device did not touch it */
#define RIG_DELIVERY(n) (-0x100 - (n)) /* never got to the command */

struct rig_ring {
	uint32_t id;
	uint8_t log_size;
	uint64_t buf, db;
	uint32_t ci;
};

struct rig {
	struct nic *nic;
	struct host *host;
	int near, wire; /* the far end of it: a datagram is a frame */
	uint64_t free;	/* memory from here on is unused */
	uint32_t uar;	/* of rig_up() */
	uint32_t pd;
	uint8_t in[RIG_CMD], out[RIG_CMD];
	uint32_t in_len, out_len;
	uint64_t buf, db; /* buffer and doorbell record of the object in `in` */
	uint32_t syndrome;
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
uint64_t rig_pages(struct rig *r, unsigned int count);
uint8_t *rig_mem(struct rig *r, uint64_t at);

/* What the program does with the wire, if poll() tells anything of it. False: no
 * frame has come.
 */
bool rig_wire(struct rig *r);

/* ---- commands ---- */

/* An empty command in `in` */
uint8_t *rig_begin(struct rig *r, uint16_t op, uint32_t in_len,
		   uint32_t out_len);
/* ...with a number where most have it */
uint8_t *rig_begin_id(struct rig *r, uint16_t op, uint32_t id);
/* Put it into a slot, with its mailboxes */
void rig_fill(struct rig *r, unsigned int slot);
void rig_ring(struct rig *r, uint32_t slots);
/* The result of what is in the slot; its output goes to `out` */
int rig_result(struct rig *r, unsigned int slot);
/* All of this in slot 0. Returns the status, or as above. */
int rig_run(struct rig *r);
int rig_run_id(struct rig *r, uint16_t op, uint32_t id);
/* A command that must succeed, and gives a number */
uint32_t rig_id(struct rig *r);

/* ---- objects ---- */

void rig_eq_in(struct rig *r, uint8_t log_size, uint8_t vector,
	       uint64_t events);
void rig_cq_in(struct rig *r, uint8_t log_size, uint32_t eqn);
/* an address, and a QP to RTS that has its peer at the same one */
void rig_address(struct rig *r);
void rig_connect(struct rig *r, uint32_t qp, uint32_t peer);
void rig_cq_resize_in(struct rig *r, uint8_t log_size, uint32_t cqn);
/* all rights, 4-KiB pages of `buf` */
void rig_mkey_in(struct rig *r, uint64_t buf, uint64_t start, uint64_t len);
void rig_srq_in(struct rig *r);
void rig_xrc_srq_in(struct rig *r, uint32_t xrcd, uint32_t cqn);
void rig_rmp_in(struct rig *r);
void rig_qp_in(struct rig *r, uint8_t type, uint32_t cqn);
void rig_sq_in(struct rig *r, uint32_t cqn);
void rig_rq_in(struct rig *r, uint32_t cqn);
/* MODIFY_SQ or MODIFY_RQ, which must succeed */
void rig_wq_state(struct rig *r, uint16_t op, uint32_t id, uint8_t from,
		  uint8_t to);
/* A send queue of this transport domain that is ready, with `buf` and `db` */
uint32_t rig_sq(struct rig *r, uint32_t td, uint32_t cqn);

struct rig_ring rig_eq(struct rig *r, uint8_t log_size, uint8_t vector,
		       uint64_t events);
struct rig_ring rig_cq(struct rig *r, uint8_t log_size, uint32_t eqn);

/* Take the next EQE; false: there is none */
bool rig_eqe(struct rig *r, struct rig_ring *eq, uint8_t eqe[64]);
/* ...and the next CQE of 64 bytes, without a write to the doorbell record */
bool rig_cqe(struct rig *r, struct rig_ring *cq, uint8_t cqe[64]);

/* doorbells through page `uar` */
void rig_eq_db(struct rig *r, uint32_t uar, const struct rig_ring *eq,
	       bool arm);
void rig_arm_cq(struct rig *r, uint32_t uar, const struct rig_ring *cq,
		bool solicited);
/* ...with a turn of the loop behind it */
void rig_send_db(struct rig *r, uint32_t uar, uint32_t number);

#endif /* RIG_H */
