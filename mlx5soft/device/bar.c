// SPDX-License-Identifier: GPL-2.0
/*
 * The register space: the initialization segment, and behind it a doorbell
 * page per UAR.
 */

#include "commands/cmd.h"
#include "cq.h"
#include "eq.h"
#include "nic.h"
#include "rdma/qp.h"
#include "rdma/rdma.h"
#include "record.h"

#define FW_MAJOR 16
#define FW_MINOR 35
#define FW_SUBMINOR 4506
#define CMDIF_REV 5
#define LOG_SLOTS 5
#define LOG_STRIDE 6

/* places in the initialization segment */
enum {
	SEG_FW_REV = 0x0,
	SEG_CMDIF_REV = 0x4,
	SEG_CMDQ_HIGH = 0x10,
	SEG_CMDQ_LOW = 0x14,
	SEG_DOORBELL = 0x18,
	SEG_INITIALIZING = 0x1fc,
	SEG_TIMER_HIGH = 0x1000,
	SEG_TIMER_LOW = 0x1004,
	SEG_HEALTH = 0x1010,
};

/* places in a doorbell page */
enum {
	UAR_CQ = 0x20,
	UAR_EQ_ARM = 0x40,
	UAR_EQ = 0x48,
	UAR_SEND = 0x800,
	UAR_SEND_END = 0x1000, /* four registers of two buffers */
};

static uint32_t segment(struct nic *nic, uint64_t off)
{
	switch (off) {
	case SEG_FW_REV:
		return FW_MINOR << 16 | FW_MAJOR;
	case SEG_CMDIF_REV:
		return CMDIF_REV << 16 | FW_SUBMINOR;
	case SEG_CMDQ_HIGH:
		return nic->cmdq >> 32;
	case SEG_CMDQ_LOW:
		return (nic->cmdq & 0xfffff000) | LOG_SLOTS << 4 | LOG_STRIDE;
	case SEG_TIMER_HIGH:
		return nic_now() >> 32;
	case SEG_TIMER_LOW:
		return nic_now();
	case SEG_HEALTH: /* whoever looks sees that it lives */
		return ++nic->health & 0xffffff;
	}
	return 0; /* SEG_INITIALIZING too: there is nothing to wait for */
}

int bar_read(void *priv, unsigned int bar, uint64_t off, void *buf, size_t len)
{
	struct nic *nic = priv;
	uint8_t word[4], *to = buf;
	size_t i;

	if (bar || off >= (uint64_t)FIRST_UAR * UAR_PAGE)
		return 0;
	for (i = 0; i < len; i++) {
		if (!i || !((off + i) & 3))
			put_be32(word, segment(nic, (off + i) & ~3ULL));
		to[i] = word[(off + i) & 3];
	}
	return 0;
}

static void segment_write(struct nic *nic, uint64_t off, uint32_t value)
{
	switch (off) {
	case SEG_CMDQ_HIGH:
		nic->cmd_rung = nic->cmd_slots = 0;
		nic->cmdq = (nic->cmdq & 0xffffffff) | (uint64_t)value << 32;
		break;
	case SEG_CMDQ_LOW:
		nic->cmd_rung = nic->cmd_slots = 0;
		/* the low bits are the NIC interface's mode */
		nic->cmdq = (nic->cmdq & ~0xffffffffULL) | (value & 0xfffff000);
		nic->cmdq_known = true;
		break;
	case SEG_DOORBELL:
		cmd_doorbell(nic, value);
		break;
	}
}

/*
 * A doorbell counts through the page alone that its object was created with:
 * a page belongs to a process. Drivers keep to it: mlx5_core and mlx5e ring in
 * the page they put into the context; libmlx5 gives each QP a doorbell register
 * of the page mlx5_ib chose, and arms CQs in the context's first page, or in
 * the one it named at creation.
 */
static void send_doorbell(struct nic *nic, uint32_t uar, uint32_t number)
{
	struct obj *obj = obj_find(nic, OBJ_QP, number);
	const uint8_t *wq;

	if (obj) {
		struct qp *qp = (struct qp *)obj;

		if (GET(qpc, qp->qpc, uar_page) == uar)
			qp_doorbell(nic, qp);
		return;
	}
	obj = obj_find(nic, OBJ_SQ, number);
	if (!obj)
		return;
	wq = AT_RO(sqc, ((struct wq *)obj)->ctx, wq);
	if (GET(wq, wq, uar_page) == uar)
		sq_kick(nic, (struct wq *)obj);
}

/* A doorbell of 8 bytes may come as two halves, the second of which counts. */
static void uar_write(struct nic *nic, uint32_t uar, uint32_t off,
		      const uint8_t *buf, size_t len)
{
	uint32_t first = get_be32(buf);

	if (off == UAR_EQ_ARM || off == UAR_EQ) {
		eq_doorbell(nic, uar, first, off == UAR_EQ_ARM);
	} else if (off == UAR_CQ && len >= 8) {
		cq_doorbell(nic, uar, first, get_be32(buf + 4));
	} else if (off == UAR_CQ) {
		nic->cq_half = first;
		nic->cq_half_uar = uar;
	} else if (off == UAR_CQ + 4 && nic->cq_half_uar == uar) {
		cq_doorbell(nic, uar, nic->cq_half, first);
	} else if (off >= UAR_SEND && off < UAR_SEND_END) {
		/* of a whole WQE the control segment's first 8 bytes matter */
		if (!(off & 0xff) && len >= 8)
			send_doorbell(nic, uar, get_be32(buf + 4) >> 8);
		else if ((off & 0xff) == 4)
			send_doorbell(nic, uar, first >> 8);
	}
}

int bar_write(void *priv, unsigned int bar, uint64_t off, const void *buf,
	      size_t len)
{
	const uint8_t *from = buf;
	struct nic *nic = priv;
	size_t i;

	if (bar || len < 4 || off & 3)
		return 0;
	if (off < (uint64_t)FIRST_UAR * UAR_PAGE) {
		for (i = 0; i + 4 <= len; i += 4)
			segment_write(nic, off + i, get_be32(from + i));
	} else if (obj_find(nic, OBJ_UAR, off / UAR_PAGE)) {
		record_bar(nic, off, buf, len);
		uar_write(nic, off / UAR_PAGE, off % UAR_PAGE, buf, len);
	}
	return 0;
}
