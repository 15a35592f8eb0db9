// SPDX-License-Identifier: GPL-2.0
/*
 * A driver's life: registers, the commands of a probe, polled and with events,
 * and what is left after a removal and after resets.
 */
#include "eq.h"
#include "nic.h"
#include "probe.h"

static struct rig *r;

static unsigned int objects(void)
{
	unsigned int count = 0;

	for (int kind = 0; kind < OBJ_KINDS; kind++)
		count += r->nic->table[kind].count;
	return count;
}

static void test_registers(void)
{
	uint8_t bytes[16];

	r = rig_start();
	CHECK(host_read32(r->host, 4) >> 16 == 5, "cmdif_rev");
	CHECK(host_read32(r->host, 0x14) == (RIG_CMDQ | 5 << 4 | 6), "queue");
	CHECK(!host_read32(r->host, 0x1fc), "initializing");
	CHECK(host_read32(r->host, 0x1010) != host_read32(r->host, 0x1010),
	      "health counter");
	CHECK(!host_read32(r->host, BAR_SIZE - 4),
	      "a doorbell page reads as 0");
	/* any bytes, over the end of the segment */
	host_read(r->host, 0x13, bytes, 5);
	CHECK(bytes[1] == 0 && get_be16(bytes + 3) == 0x1056, "odd address");
	host_read(r->host, FIRST_UAR * UAR_PAGE - 8, bytes, 16);
	/* both halves of the address at once */
	host_write64(r->host, 0x10, 0x123456000ULL);
	CHECK(host_read32(r->host, 0x10) == 1, "high");
	CHECK(host_read32(r->host, 0x14) >> 12 == 0x23456, "low");
	/* too short or not aligned: nothing */
	host_write(r->host, 0x10, bytes, 2);
	host_write(r->host, 0x12, bytes, 4);
	host_write(r->host, BAR_SIZE - 1, bytes, 1);
	CHECK(host_read32(r->host, 0x10) == 1, "high");
	rig_stop(r);
}

static void test_polled(void)
{
	struct probe p;

	r = rig_start();
	for (int i = 0; i < 3; i++) {
		probe_run(r, &p);
		CHECK(objects() == 20, "%u objects", objects());
		probe_remove(r, &p);
		CHECK(!objects(), "%u objects", objects());
		CHECK(!r->nic->up && !r->nic->enabled, "state");
	}
	CHECK(!r->lines, "%s", r->log);
	/* TEARDOWN_HCA leaves nothing behind either; nor does DISABLE_HCA */
	probe_run(r, &p);
	CHECK(!rig_run_id(r, MLX5_CMD_OP_TEARDOWN_HCA, 0), "%s", r->log);
	CHECK(!objects(), "%u objects", objects());
	probe_run(r, &p);
	CHECK(!rig_run_id(r, MLX5_CMD_OP_DISABLE_HCA, 0), "%s", r->log);
	CHECK(!objects() && !r->nic->up, "%u objects", objects());
	rig_stop(r);
}

static uint32_t next_slot(struct rig_ring *eq)
{
	uint8_t eqe[64];

	if (!rig_eqe(r, eq, eqe))
		return 0;
	CHECK(eqe[1] == EVENT_CMD, "type %u", eqe[1]);
	return get_be32(eqe + 32);
}

static void test_events(void)
{
	struct rig_ring eq;
	uint32_t seen = 0, slot;

	r = rig_up();
	eq = rig_eq(r, 6, 3, 1ULL << EVENT_CMD);
	CHECK(!next_slot(&eq), "an event about the EQ's own creation");
	rig_eq_db(r, r->uar, &eq, true);
	CHECK(!host_irqs(r->host, 3), "nothing happened yet");
	rig_begin(r, MLX5_CMD_OP_NOP, 16, 16);
	CHECK(!rig_run(r), "%s", r->log);
	CHECK(host_irqs(r->host, 3) == 1 && next_slot(&eq) == 1, "event");
	rig_eq_db(r, r->uar, &eq, true);

	/* all slots at once; those not rung stay as they are */
	for (int i = 0; i < 32; i++) {
		rig_begin(r, i & 1 ? MLX5_CMD_OP_ALLOC_PD : MLX5_CMD_OP_NOP, 16,
			  16);
		rig_fill(r, i);
	}
	rig_ring(r, 0x7fffffff);
	for (int i = 0; i < 31; i++)
		CHECK(!rig_result(r, i), "slot %d", i);
	CHECK(rig_result(r, 31) == RIG_PENDING, "was not rung");
	rig_ring(r, 0xffffffff); /* the others are the driver's already */
	CHECK(!rig_result(r, 31), "slot 31");
	while ((slot = next_slot(&eq))) {
		CHECK(!(slot & (slot - 1)) && !(seen & slot), "%#x", slot);
		seen |= slot;
	}
	CHECK(seen == 0xffffffff, "%#x", seen);
	CHECK(host_irqs(r->host, 3) == 1, "one interrupt for one arming");
	/* what comes before the next arming is told with it */
	CHECK(!rig_run(r), "%s", r->log);
	CHECK(!host_irqs(r->host, 3), "not armed");
	rig_eq_db(r, r->uar, &eq, true);
	CHECK(host_irqs(r->host, 3) == 1, "armed with something there");
	CHECK(next_slot(&eq) == 1, "event");
	/* a failing delivery is told as well */
	rig_fill(r, 0);
	host_mem(r->host, RIG_CMDQ, 64)[0] = 0;
	rig_ring(r, 1);
	CHECK(rig_result(r, 0) == RIG_DELIVERY(0x10), "type");
	CHECK(next_slot(&eq) == 1, "event");
	rig_stop(r);
}

static void test_resets(void)
{
	struct probe p;

	r = rig_start();
	for (int i = 0; i < 4; i++) {
		probe_run(r, &p);
		if (i & 1)
			host_flr(r->host);
		else
			host_reset(r->host);
		CHECK(!objects() && !r->nic->up && !r->nic->enabled, "state");
		/* nothing works before the host has set it up again */
		rig_begin(r, MLX5_CMD_OP_ENABLE_HCA, 16, 16);
		CHECK(rig_run(r) == RIG_PENDING, "no queue");
		host_write32(r->host, 0x10, 0);
		host_write32(r->host, 0x14, RIG_CMDQ);
		CHECK(rig_run(r) == RIG_PENDING, "not bus master");
		host_bus_master(r->host, true);
		r->free = RIG_FREE;
	}
	/* a host that goes while all is in use */
	probe_run(r, &p);
	host_stop(r->host);
	CHECK(!objects() && !r->nic->up, "%u objects", objects());
	r->host = host_start(nic_vfu(r->nic));
	host_write32(r->host, 0x14, RIG_CMDQ);
	r->free = RIG_FREE;
	probe_run(r, &p);
	rig_stop(r);
}

int main(void)
{
	test_registers();
	test_polled();
	test_events();
	test_resets();
	return check_result();
}
