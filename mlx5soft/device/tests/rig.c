// SPDX-License-Identifier: GPL-2.0
/* Memory, commands and doorbells of the rig */
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rig.h"

#define SLOT 64
#define INLINE 16
#define BLOCK 512

/* the initialization segment */
#define SEG_CMDQ_HIGH 0x10
#define SEG_CMDQ_LOW 0x14
#define SEG_DOORBELL 0x18

static void log_line(void *priv, const char *line)
{
	struct rig *r = priv;

	r->lines++;
	snprintf(r->log, sizeof(r->log), "%s", line);
}

struct rig *rig_start(void)
{
	struct nic_config cfg = {
		.mac = { 0x52, 0x54, 0, 0x12, 0x5c, 1 },
		.log = log_line,
	};
	struct rig *r = calloc(1, sizeof(*r));
	int wire[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
		       wire))
		abort();
	cfg.log_priv = r;
	cfg.wire = wire[0];
	r->near = wire[0];
	r->wire = wire[1];
	r->free = RIG_FREE;
	if (nic_create(&cfg, &r->nic))
		abort();
	r->host = host_start(nic_vfu(r->nic));
	r->lines = 0; /* "client connected" */
	host_write32(r->host, SEG_CMDQ_HIGH, 0);
	host_write32(r->host, SEG_CMDQ_LOW, RIG_CMDQ);
	return r;
}

void rig_init_hca(struct rig *r)
{
	rig_begin(r, MLX5_CMD_OP_ENABLE_HCA, 16, 12);
	CHECK(!rig_run(r), "%s", r->log);
	rig_begin(r, MLX5_CMD_OP_INIT_HCA, 32, 16);
	CHECK(!rig_run(r), "%s", r->log);
	rig_begin(r, MLX5_CMD_OP_ALLOC_UAR, 16, 16);
	r->uar = rig_id(r);
	rig_begin(r, MLX5_CMD_OP_ALLOC_PD, 16, 16);
	r->pd = rig_id(r);
}

struct rig *rig_up(void)
{
	struct rig *r = rig_start();

	rig_init_hca(r);
	return r;
}

void rig_stop(struct rig *r)
{
	host_stop(r->host);
	nic_destroy(r->nic);
	close(r->near);
	close(r->wire);
	free(r);
}

uint64_t rig_pages(struct rig *r, unsigned int count)
{
	uint64_t at = r->free;
	uint8_t *p = host_mem(r->host, at, count * RIG_PAGE);

	if (!p)
		abort(); /* a test that wants too much */
	memset(p, 0, count * RIG_PAGE);
	r->free += count * RIG_PAGE;
	return at;
}

uint8_t *rig_mem(struct rig *r, uint64_t at)
{
	return host_mem(r->host, at, 1);
}

bool rig_wire(struct rig *r)
{
	struct pollfd near = { r->near, nic_wire_events(r->nic), 0 };

	return poll(&near, 1, 0) > 0 && nic_wire(r->nic, near.revents);
}

/* ---- commands ---- */

uint8_t *rig_begin(struct rig *r, uint16_t op, uint32_t in_len,
		   uint32_t out_len)
{
	memset(r->in, 0, in_len < INLINE ? INLINE : in_len);
	put_be16(r->in, op);
	r->in_len = in_len;
	r->out_len = out_len;
	return r->in;
}

uint8_t *rig_begin_id(struct rig *r, uint16_t op, uint32_t id)
{
	rig_begin(r, op, 16, 16);
	put_be32(r->in + 8, id);
	return r->in;
}

/* A chain of mailboxes for `len` bytes, which are those of `from` if given */
static void fill_chain(struct rig *r, uint64_t at, const uint8_t *from,
		       uint32_t len, uint8_t token)
{
	uint32_t done, n, block = 0;
	uint8_t *box;

	for (done = INLINE; done < len; done += BLOCK, at += RIG_BOX, block++) {
		box = host_mem(r->host, at, RIG_BOX);
		n = len - done < BLOCK ? len - done : BLOCK;
		memset(box, 0, RIG_BOX);
		if (from)
			memcpy(box, from + done, n);
		if (done + BLOCK < len)
			put_be64(box + 560, at + RIG_BOX);
		put_be32(box + 568, block);
		box[573] = token;
	}
}

void rig_fill(struct rig *r, unsigned int slot)
{
	uint8_t *s = host_mem(r->host, RIG_CMDQ + slot * SLOT, SLOT);
	uint64_t in = RIG_IN + slot * RIG_BOXES,
		 out = RIG_OUT + slot * RIG_BOXES;
	uint8_t token = slot + 1;

	if (r->record)
		r->record(r);
	memset(s, 0, SLOT);
	s[0] = 7; /* PCIe */
	put_be32(s + 4, r->in_len);
	put_be64(s + 8, in);
	memcpy(s + 16, r->in, INLINE);
	put_be64(s + 48, out);
	put_be32(s + 56, r->out_len);
	s[60] = token;
	s[63] = 1;
	fill_chain(r, in, r->in, r->in_len, token);
	fill_chain(r, out, NULL, r->out_len, token);
}

void rig_ring(struct rig *r, uint32_t slots)
{
	host_write32(r->host, SEG_DOORBELL, slots);
}

int rig_result(struct rig *r, unsigned int slot)
{
	const uint8_t *s = host_mem(r->host, RIG_CMDQ + slot * SLOT, SLOT);
	uint64_t at = RIG_OUT + slot * RIG_BOXES;
	uint32_t done, n, len = get_be32(s + 56);

	if (s[63] & 1)
		return RIG_PENDING;
	if (s[63] >> 1)
		return RIG_DELIVERY(s[63] >> 1);
	memcpy(r->out, s + 32, INLINE);
	for (done = INLINE; done < len && len <= RIG_CMD; done += BLOCK) {
		n = len - done < BLOCK ? len - done : BLOCK;
		memcpy(r->out + done, host_mem(r->host, at, n), n);
		at += RIG_BOX;
	}
	r->syndrome = get_be32(r->out + 4);
	return r->out[0];
}

int rig_run(struct rig *r)
{
	int result;

	do {
		rig_fill(r, 0);
		rig_ring(r, 1);
		result = rig_result(r, 0);
	} while (r->again && r->again(r, result));
	return result;
}

int rig_run_id(struct rig *r, uint16_t op, uint32_t id)
{
	rig_begin_id(r, op, id);
	return rig_run(r);
}

uint32_t rig_id(struct rig *r)
{
	int ret = rig_run(r);

	CHECK(!ret, "command 0x%x: %d: %s", get_be16(r->in), ret, r->log);
	return get_be32(r->out + 8) & 0xffffff;
}

/* ---- doorbells ---- */

void rig_eq_db(struct rig *r, uint32_t uar, const struct rig_ring *eq, bool arm)
{
	host_write32(r->host, uar * RIG_PAGE + (arm ? 0x40 : 0x48),
		     eq->id << 24 | (eq->ci & 0xffffff));
}

void rig_arm_cq(struct rig *r, uint32_t uar, const struct rig_ring *cq,
		bool solicited)
{
	host_write64(r->host, uar * RIG_PAGE + 0x20,
		     (uint64_t)((solicited ? 1U << 24 : 0) | (cq->ci & 0xffffff))
				     << 32 |
			     cq->id);
}

void rig_send_db(struct rig *r, uint32_t uar, uint32_t number)
{
	host_write64(r->host, uar * RIG_PAGE + 0x800, (uint64_t)number << 8);
	nic_tick(r->nic);
}
