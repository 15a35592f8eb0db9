// SPDX-License-Identifier: GPL-2.0
/*
 * The command interface against a driver that does everything wrong: lengths,
 * opcodes, states, mailboxes. And what such a driver gets into the log.
 */
#include <stdlib.h>
#include <unistd.h>

#include "commands/cmd.h"
#include "nic.h"
#include "probe.h"

static struct rig *r;

static void for_rows(void (*f)(const struct cmd_desc *d))
{
	unsigned int count = 0;

	for (uint32_t op = 0; op < 0x1000; op++)
		if (cmd_find(op)) {
			f(cmd_find(op));
			count++;
		}
	CHECK(count > 80, "%u commands", count);
}

/* ---- lengths ---- */

static int run_empty(const struct cmd_desc *d, uint32_t in_len,
		     uint32_t out_len)
{
	rig_begin(r, d->op, in_len, out_len);
	return rig_run(r);
}

static void short_lengths(const struct cmd_desc *d)
{
	uint32_t dead;
	int ret;

	CHECK(d->in >= 8 && d->out >= 8, "%s: row", d->name);
	if (d->op == MLX5_CMD_OP_TEARDOWN_HCA ||
	    d->op == MLX5_CMD_OP_DISABLE_HCA)
		return; /* have the shortest lengths anyway */
	for (uint32_t len = 8; len < d->in; len += len < 32 ? 1 : 61) {
		ret = run_empty(d, len, d->out);
		CHECK(ret == CMD_BAD_INP_LEN, "%s: %d with %u bytes", d->name,
		      ret, len);
	}
	for (uint32_t len = 8; len < d->out; len += len < 32 ? 1 : 61) {
		ret = run_empty(d, d->in, len);
		CHECK(ret == CMD_BAD_OUTP_LEN, "%s: %d with %u bytes", d->name,
		      ret, len);
	}
	/* Both as short as they may be: any result, inside the buffers. A
	 * status comes with a syndrome that names the command.
	 */
	dead = r->nic->cmds;
	ret = run_empty(d, d->in, d->out);
	CHECK(ret >= 0 && r->nic->cmds == dead + 1, "%s: %d", d->name, ret);
	CHECK(!ret || r->syndrome >> 16 == d->op, "%s: %#x", d->name,
	      r->syndrome);
	/* all ones in all fields */
	rig_begin(r, d->op, d->in, d->out);
	memset(r->in + 2, 0xff, d->in - 2);
	ret = rig_run(r);
	CHECK(ret >= 0, "%s: %d", d->name, ret);
}

static void test_lengths(void)
{
	r = rig_up();
	for_rows(short_lengths);
	rig_stop(r);
}

static void test_delivery_lengths(void)
{
	static const struct {
		uint32_t in, out;
		int ret;
	} cases[] = {
		{ 0, 16, RIG_DELIVERY(7) },
		{ 7, 16, RIG_DELIVERY(7) },
		{ 8, 8, 0 },
		{ 16, 7, RIG_DELIVERY(8) },
		{ 16, 0, RIG_DELIVERY(8) },
		{ CMD_MAX, CMD_OUT_MAX, 0 },
		{ CMD_MAX + 1, 16, RIG_DELIVERY(7) },
		{ 16, CMD_OUT_MAX + 1, RIG_DELIVERY(8) },
		{ 16, 1 << 20, RIG_DELIVERY(8) },
		{ 0xffffffff, 16, RIG_DELIVERY(7) },
		{ 16, 0xffffffff, RIG_DELIVERY(8) },
		{ 0xfffffff0, 0xfffffff0, RIG_DELIVERY(7) },
	};
	uint8_t *slot;

	r = rig_up();
	slot = host_mem(r->host, RIG_CMDQ, 64);
	for (size_t i = 0; i < N_ELEM(cases); i++) {
		/* mailboxes as far as they fit, then the lie */
		rig_begin(r, MLX5_CMD_OP_NOP,
			  cases[i].in > CMD_MAX ? CMD_MAX : cases[i].in,
			  cases[i].out > CMD_OUT_MAX ? CMD_OUT_MAX
						     : cases[i].out);
		rig_fill(r, 0);
		put_be32(slot + 4, cases[i].in);
		put_be32(slot + 56, cases[i].out);
		rig_ring(r, 1);
		CHECK(rig_result(r, 0) == cases[i].ret, "case %zu: %d", i,
		      rig_result(r, 0));
	}
	rig_stop(r);
}

/* ---- opcodes and states ---- */

static void test_unknown(void)
{
	unsigned int lines;

	r = rig_up();
	for (uint32_t op = 0; op < 0x1000; op += 7) {
		if (cmd_find(op))
			continue;
		lines = r->lines;
		rig_begin(r, op, 16, 16);
		CHECK(rig_run(r) == CMD_BAD_OP, "0x%x", op);
		CHECK(r->syndrome >> 16 == op, "%#x", r->syndrome);
		if (!lines)
			CHECK(strstr(r->log, "unknown"), "%s", r->log);
	}
	rig_begin(r, 0xffff, 16, 16);
	CHECK(rig_run(r) == CMD_BAD_OP, "0xffff");
	rig_stop(r);
}

static bool before_init(uint16_t op)
{
	switch (op) {
	case MLX5_CMD_OP_ENABLE_HCA:
	case MLX5_CMD_OP_DISABLE_HCA:
	case MLX5_CMD_OP_QUERY_ISSI:
	case MLX5_CMD_OP_SET_ISSI:
	case MLX5_CMD_OP_QUERY_PAGES:
	case MLX5_CMD_OP_MANAGE_PAGES:
	case MLX5_CMD_OP_QUERY_HCA_CAP:
	case MLX5_CMD_OP_SET_HCA_CAP:
	case MLX5_CMD_OP_INIT_HCA:
	case MLX5_CMD_OP_QUERY_ADAPTER:
	case MLX5_CMD_OP_SET_DRIVER_VERSION:
	case MLX5_CMD_OP_ACCESS_REG:
	case MLX5_CMD_OP_NOP:
		return true;
	}
	return false;
}

static void before_enable(const struct cmd_desc *d)
{
	if (d->op != MLX5_CMD_OP_ENABLE_HCA)
		CHECK(run_empty(d, d->in, d->out) == CMD_BAD_SYS_STATE, "%s",
		      d->name);
}

static void enabled(const struct cmd_desc *d)
{
	int ret;

	if (d->op == MLX5_CMD_OP_DISABLE_HCA || d->op == MLX5_CMD_OP_INIT_HCA)
		return;
	ret = run_empty(d, d->in, d->out);
	CHECK((ret != CMD_BAD_SYS_STATE) == before_init(d->op), "%s: %d",
	      d->name, ret);
}

static void test_states(void)
{
	r = rig_start();
	for_rows(before_enable);
	rig_begin(r, MLX5_CMD_OP_ENABLE_HCA, 16, 16);
	CHECK(!rig_run(r), "%s", r->log);
	CHECK(!rig_run(r), "twice is fine: %s", r->log);
	for_rows(enabled);
	rig_begin(r, MLX5_CMD_OP_INIT_HCA, 16, 16);
	CHECK(!rig_run(r), "%s", r->log);
	CHECK(rig_run(r) == CMD_BAD_SYS_STATE, "twice");
	rig_begin(r, MLX5_CMD_OP_SET_HCA_CAP, 16, 16);
	CHECK(rig_run(r) == CMD_BAD_SYS_STATE, "after INIT_HCA");
	CHECK(!rig_run_id(r, MLX5_CMD_OP_TEARDOWN_HCA, 0), "%s", r->log);
	for_rows(enabled);
	CHECK(!rig_run_id(r, MLX5_CMD_OP_DISABLE_HCA, 0), "%s", r->log);
	for_rows(before_enable);
	rig_init_hca(r);
	rig_stop(r);
}

/* ---- mailboxes ---- */

/* SET_HCA_CAP, and the slot and a mailbox of it */
static uint8_t *slot;

static uint8_t *large_input(unsigned int box)
{
	rig_begin(r, MLX5_CMD_OP_SET_HCA_CAP, 4112, 16);
	rig_fill(r, 0);
	return rig_mem(r, RIG_IN + box * RIG_BOX);
}

static uint8_t *large_output(unsigned int box)
{
	rig_begin(r, MLX5_CMD_OP_QUERY_HCA_CAP, 16, 4112);
	rig_fill(r, 0);
	return rig_mem(r, RIG_OUT + box * RIG_BOX);
}

static int ring(void)
{
	rig_ring(r, 1);
	return rig_result(r, 0);
}

static void test_input_boxes(void)
{
	static const uint64_t bad[] = {
		RIG_IN + 8,  RIG_IN + 0x100,
		RIG_NOWHERE, HOST_MEMORY - 512, /* ends behind the memory */
		-512ULL,     -1ULL,
	};

	large_input(0);
	CHECK(!ring(), "%s", r->log);
	for (int box = 0; box < 8; box += 7) {
		large_input(box)[573] ^= 1;
		CHECK(ring() == RIG_DELIVERY(2), "token of %d", box);
		large_input(box)[571] ^= 8;
		CHECK(ring() == RIG_DELIVERY(3), "number of %d", box);
		large_input(box)[568] ^= 1;
		CHECK(ring() == RIG_DELIVERY(3), "number of %d", box);
	}
	large_input(0);
	slot[60] ^= 0x80;
	CHECK(ring() == RIG_DELIVERY(2), "token of the slot");
	/* Signatures do not count: cmdif_checksum says so. */
	large_input(1)[575] ^= 0xff;
	slot[61] ^= 0xff;
	CHECK(!ring(), "%s", r->log);
	for (size_t i = 0; i < N_ELEM(bad); i++) {
		large_input(0);
		put_be64(slot + 8, bad[i]);
		CHECK(ring() == RIG_DELIVERY(5), "%#lx", bad[i]);
		put_be64(large_input(3) + 560, bad[i]);
		CHECK(ring() == RIG_DELIVERY(5), "%#lx", bad[i]);
	}
	put_be64(large_input(7) + 560, RIG_NOWHERE);
	CHECK(!ring(), "nobody follows the last one: %s", r->log);
	/* to itself, to the first, an end too early */
	put_be64(large_input(0) + 560, RIG_IN);
	CHECK(ring() == RIG_DELIVERY(3), "cycle");
	put_be64(large_input(5) + 560, RIG_IN);
	CHECK(ring() == RIG_DELIVERY(3), "cycle");
	put_be64(large_input(2) + 560, 0);
	CHECK(ring() < RIG_DELIVERY(0), "short chain");
	/* the chain is in the command queue itself */
	large_input(0);
	put_be64(slot + 8, RIG_CMDQ);
	CHECK(ring() < RIG_DELIVERY(0), "not a mailbox");
}

static void test_output_boxes(void)
{
	static const uint64_t bad[] = {
		RIG_OUT + 4, RIG_NOWHERE, HOST_MEMORY - 512, -512ULL, -8ULL,
	};

	large_output(0);
	CHECK(!ring() && GET(cmd_hca_cap, r->out + 16, roce), "%s", r->log);
	for (size_t i = 0; i < N_ELEM(bad); i++) {
		large_output(0);
		put_be64(slot + 48, bad[i]);
		CHECK(ring() == RIG_DELIVERY(4), "%#lx", bad[i]);
		put_be64(large_output(3) + 560, bad[i]);
		CHECK(ring() == RIG_DELIVERY(4), "%#lx", bad[i]);
	}
	/* a cycle ends with the output */
	put_be64(large_output(1) + 560, RIG_OUT);
	CHECK(!ring(), "%s", r->log);
	/* output over the slot and the queue: the driver's problem alone */
	large_output(0);
	put_be64(slot + 48, RIG_CMDQ);
	ring();
}

static void test_slots(void)
{
	large_input(0);
	slot[0] = 0;
	CHECK(ring() == RIG_DELIVERY(0x10), "type");
	large_input(0);
	slot[63] = 0;
	CHECK(ring() == 0, "the slot is the driver's");
	/* a queue that is not in memory, or at the end of it */
	host_write32(r->host, 0x14, RIG_NOWHERE);
	rig_ring(r, 0xffffffff);
	CHECK(strstr(r->log, "not in memory") || r->lines > 60, "%s", r->log);
	host_write32(r->host, 0x10, 0xffffffff);
	host_write32(r->host, 0x14, 0xfffff000);
	rig_ring(r, 0xffffffff);
	host_write32(r->host, 0x10, 0);
	host_write32(r->host, 0x14, RIG_CMDQ);
	rig_begin(r, MLX5_CMD_OP_NOP, 16, 16);
	CHECK(!rig_run(r), "%s", r->log);
}

static void test_mailboxes(void)
{
	r = rig_start();
	slot = host_mem(r->host, RIG_CMDQ, 64);
	rig_begin(r, MLX5_CMD_OP_ENABLE_HCA, 16, 16);
	CHECK(!rig_run(r), "%s", r->log);
	test_input_boxes();
	test_output_boxes();
	test_slots();
	rig_stop(r);
}

/* ---- the log ---- */

static void test_log(void)
{
	unsigned int lines;

	r = rig_start();
	while (r->lines < 65) /* the burst, and the summary of a new second */
		rig_run_id(r, 0xfff, 0);
	sleep(1);
	for (int i = 0; i < 1000; i++)
		rig_run_id(r, 0xfff, 0);
	CHECK(r->lines < 65 * 3, "%u lines", r->lines);
	sleep(1);
	lines = r->lines;
	rig_run_id(r, 0xfff, 0);
	CHECK(r->lines == lines + 2, "a summary and the line, not %u",
	      r->lines - lines);
	rig_run_id(r, 0xfff, 0);
	CHECK(strstr(r->log, "unknown"), "%s", r->log);
	rig_stop(r);
}

int main(void)
{
	test_lengths();
	test_delivery_lengths();
	test_unknown();
	test_states();
	test_mailboxes();
	test_log();
	return check_result();
}
