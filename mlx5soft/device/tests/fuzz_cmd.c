// SPDX-License-Identifier: GPL-2.0
/*
 * libFuzzer target: a driver that sends any commands in any mailboxes, rings
 * any doorbells and changes its memory at any time, next to a device that has
 * something to do. See cmd_ops.h for the input.
 *
 *	mlx5soft_seeds CORPUS_FOLDER && fuzz_cmd CORPUS_FOLDER
 */
#include <stdlib.h>
#include <sys/socket.h>

#include "cmd_ops.h"
#include "cq.h"
#include "mkey.h"
#include "nic.h"
#include "rig.h"

#define INVARIANT(cond)          \
	do {                     \
		if (!(cond))     \
			abort(); \
	} while (0)
#define MAX_PIECES 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct rig *r;
static const uint8_t *in, *end;

static uint64_t take(size_t len)
{
	uint64_t value = 0;

	if (len > (size_t)(end - in))
		len = end - in;
	memcpy(&value, in, len);
	in += len;
	return value;
}

static const uint8_t *take_bytes(size_t *len)
{
	const uint8_t *at = in;

	if (*len > (size_t)(end - in))
		*len = end - in;
	in += *len;
	return at;
}

/* ---- operations ---- */

static void spoil(uint8_t how)
{
	unsigned int slot = OP_SLOT(how);
	uint8_t *s = host_mem(r->host, RIG_CMDQ + 64 * slot, 64);
	uint8_t *box = rig_mem(r, RIG_IN + slot * RIG_BOXES);
	uint8_t *out = rig_mem(r, RIG_OUT + slot * RIG_BOXES);

	switch (OP_DEFECT(how)) {
	case DEFECT_TOKEN:
		box[573]++;
		break;
	case DEFECT_BLOCK:
		box[571]++;
		break;
	case DEFECT_NOWHERE:
		put_be64(slot & 1 ? s + 8 : s + 48, RIG_NOWHERE);
		break;
	case DEFECT_CYCLE:
		put_be64(box + 560, get_be64(s + 8));
		put_be64(out + 560, get_be64(s + 48));
		break;
	case DEFECT_SHORT:
		put_be64(box + 560, 0);
		put_be64(out + 560, 0);
		break;
	case DEFECT_LONG:
		put_be32(s + 4, r->in_len << 8);
		put_be32(s + 56, r->out_len << 8);
		break;
	}
}

static void command(void)
{
	uint8_t how = take(1);
	uint32_t in_len = take(2), out_len = take(2);
	size_t n = take(2);
	const uint8_t *bytes = take_bytes(&n);

	rig_begin(r, 0, in_len, out_len);
	memcpy(r->in, bytes, n);
	rig_fill(r, OP_SLOT(how));
	spoil(how);
	if (OP_DEFECT(how) == DEFECT_SILENT)
		return;
	rig_ring(r, 1U << OP_SLOT(how));
	rig_result(r, OP_SLOT(how));
}

static void bar_access(void)
{
	uint32_t off = take(4) % BAR_SIZE;
	uint8_t len = take(1) % 8 + 1;
	uint64_t value = take(8);

	if (len > BAR_SIZE - off)
		len = BAR_SIZE - off;
	host_write(r->host, off, &value, len);
	host_read(r->host, off, &value, len);
}

static void memory_write(void)
{
	uint32_t at = take(4) % HOST_MEMORY;
	size_t n = take(1);
	const uint8_t *bytes = take_bytes(&n);
	uint8_t *p = host_mem(r->host, at, n);

	if (p)
		memcpy(p, bytes, n);
}

static void state(void)
{
	switch (take(1) % STATES) {
	case STATE_UNMAP:
		host_unmap(r->host, 0, HOST_MEMORY);
		host_unmap(r->host, 0, RIG_FREE + 16 * RIG_PAGE);
		break;
	case STATE_MAP:
		host_map(r->host, 0, 0, HOST_MEMORY);
		break;
	case STATE_MAP_LESS:
		host_map(r->host, 0, 0, RIG_FREE + 16 * RIG_PAGE);
		break;
	case STATE_RESET:
		host_reset(r->host);
		break;
	case STATE_FLR:
		host_flr(r->host);
		break;
	case STATE_BUS_MASTER:
		host_bus_master(r->host, true);
		host_write32(r->host, 0x10, 0);
		host_write32(r->host, 0x14, RIG_CMDQ);
		break;
	case STATE_NO_BUS_MASTER:
		host_bus_master(r->host, false);
		break;
	}
}

/* What is found is memory of the host, as much as was asked for. */
static void use_key(void)
{
	const uint8_t *memory = vfu_dma_ptr(nic_vfu(r->nic), 0, 1);
	struct iovec iov[MAX_PIECES];
	uint32_t pd = take(4), key = take(4), len;
	uint64_t addr = take(8), sum = 0;
	bool reserved;
	uint8_t access;
	int n;

	len = take(4);
	access = take(1);
	reserved = access & 0x80;
	access &= 0xf;
	n = mkey_translate(r->nic, pd, key, addr, len, access, reserved, iov,
			   MAX_PIECES);
	INVARIANT(n <= MAX_PIECES && n >= -200);
	for (int i = 0; i < n; i++) {
		const uint8_t *base = iov[i].iov_base;

		INVARIANT(iov[i].iov_len && base >= memory &&
			  iov[i].iov_len <= HOST_MEMORY &&
			  base + iov[i].iov_len <= memory + HOST_MEMORY);
		sum += iov[i].iov_len;
		for (size_t at = 0; at < iov[i].iov_len; at += 4096)
			((volatile uint8_t *)base)[at]++;
	}
	INVARIANT(n < 0 || sum == len);
	mkey_invalidate(r->nic, pd, key ^ (access & 1));
}

static void completion(void)
{
	struct obj *obj = obj_find(r->nic, OBJ_CQ, take(2));
	uint8_t cqe[64] = { 0 }, op = take(1);

	if (obj)
		cq_post(r->nic, (struct cq *)obj, cqe, op & 0xf, op >> 7);
}

static void frame(void)
{
	static uint8_t buf[65536];
	size_t n = take(1);
	const uint8_t *bytes = take_bytes(&n);
	ssize_t got;

	send(r->wire, bytes, n, MSG_DONTWAIT);
	rig_wire(r); /* which is perhaps full */
	/* without a frame: what the device sent comes back to it */
	for (int i = 0; i < 100; i++) {
		got = recv(r->wire, buf, sizeof(buf), MSG_DONTWAIT);
		if (got > 0 && !n) {
			send(r->wire, buf, got, MSG_DONTWAIT);
			rig_wire(r);
			nic_tick(r->nic);
		}
	}
}

/* ---- one input ---- */

/* Everybody who is needed knows by how many. */
static void check_objects(void)
{
	struct nic *nic = r->nic;
	struct id_table *t;
	uint32_t i, d, count, held = 0, users = 0;

	for (int kind = 0; kind < OBJ_KINDS; kind++) {
		t = &nic->table[kind];
		for (i = count = 0; i < t->size; i++) {
			const struct obj *obj = t->slot[i];

			if (!obj)
				continue;
			count++;
			INVARIANT(obj->id == i && i >= t->first &&
				  i < t->limit);
			users += obj->users;
			held += obj->ndeps;
			for (d = 0; d < obj->ndeps; d++)
				INVARIANT(obj_find(nic, obj->dep[d]->kind,
						   obj->dep[d]->id) ==
					  obj->dep[d]);
		}
		INVARIANT(count == t->count);
	}
	/* flow table entries hold where they lead, too */
	INVARIANT(users >= held);
	INVARIANT(nic->enabled || !nic->up);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const ops[OPS])(void) = {
		[OP_CMD] = command,	 [OP_BAR] = bar_access,
		[OP_MEM] = memory_write, [OP_STATE] = state,
		[OP_KEY] = use_key,	 [OP_CQE] = completion,
		[OP_FRAME] = frame,
	};

	in = data;
	end = data + size;
	r = rig_start();
	while (in < end) {
		ops[take(1) % OPS]();
		for (int i = 0; i < 50 && nic_tick(r->nic); i++)
			;
		check_objects();
	}
	rig_stop(r);
	INVARIANT(!check_failures);
	return 0;
}
