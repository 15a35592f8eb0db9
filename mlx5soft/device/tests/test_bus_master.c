// SPDX-License-Identifier: GPL-2.0
/*
 * The Bus Master bit of the command register: without it the device leaves
 * memory and interrupts alone, and goes on when it is set again.
 */
#include <stdlib.h>
#include <unistd.h>

#include "eq.h"
#include "nic.h"
#include "probe.h"
#include "rdma/wqe.h"
#include "rig.h"

#define RC 0
#define SIZE 100U
#define FRAME 64U
#define VECTOR 5

static struct rig *r;
static struct rig_ring eq, cq;
static uint8_t *before; /* memory when the bit was cleared */
static uint64_t from, to, qp_buf, qp_db;
static uint32_t qp;

static void off(void)
{
	for (unsigned int i = 0; i < HOST_VECTORS; i++)
		host_irqs(r->host, i);
	host_bus_master(r->host, false);
	memcpy(before, rig_mem(r, 0), HOST_MEMORY);
}

/* The host's own writes are to be taken over into `before` first. */
static void expect_silence(const char *what)
{
	uint8_t frame[256];

	CHECK(nic_due(r->nic) < 0, "%s: due", what);
	for (int i = 0; i < 50; i++)
		CHECK(!nic_tick(r->nic), "%s: something to do", what);
	CHECK(!memcmp(before, rig_mem(r, 0), HOST_MEMORY), "%s: DMA", what);
	for (unsigned int i = 0; i < HOST_VECTORS; i++)
		CHECK(!host_irqs(r->host, i), "%s: vector %u", what, i);
	CHECK(read(r->wire, frame, sizeof(frame)) < 0, "%s: a frame", what);
}

static void on(void)
{
	host_bus_master(r->host, true);
	for (int i = 0; i < 50; i++)
		nic_tick(r->nic);
}

/* one QP that is its own peer */
static void setup(void)
{
	uint8_t *wqe;
	uint32_t key;

	r = rig_up();
	eq = rig_eq(r, 4, VECTOR, 0);
	cq = rig_cq(r, 4, eq.id);
	from = rig_pages(r, 2);
	to = from + RIG_PAGE;
	memset(rig_mem(r, from), 0x5a, SIZE);
	rig_mkey_in(r, from, from, 2 * RIG_PAGE);
	key = rig_id(r) << 8 | 0x5a;
	rig_qp_in(r, RC, cq.id);
	qp_buf = r->buf + (32 << 4); /* behind the receive queue */
	qp_db = r->db;
	qp = rig_id(r);
	rig_address(r);
	rig_connect(r, qp, qp);
	for (uint32_t i = 0; i < 2; i++) {
		wqe = rig_mem(r, qp_buf) + 64 * i;
		put_be32(wqe, i << 8 | WQE_WRITE);
		put_be32(wqe + 4, qp << 8 | 3);
		wqe[11] = 8; /* signaled */
		put_be64(wqe + 16, to + i * SIZE);
		put_be32(wqe + 24, key);
		put_be32(wqe + 32, SIZE);
		put_be32(wqe + 36, key);
		put_be64(wqe + 40, from);
	}
}

static bool arrived(uint32_t i)
{
	return !memcmp(rig_mem(r, from), rig_mem(r, to) + i * SIZE, SIZE);
}

/* posted before, and rung while it is off */
static void test_rdma(void)
{
	uint8_t cqe[64], eqe[64];

	setup();
	put_be32(rig_mem(r, qp_db) + 4, 1);
	host_write64(r->host, r->uar * RIG_PAGE + 0x800, (uint64_t)qp << 8);
	off();
	expect_silence("rung before");
	on();
	CHECK(arrived(0) && rig_cqe(r, &cq, cqe), "the first");

	put_be32(rig_mem(r, qp_db) + 4, 2);
	off();
	host_write64(r->host, r->uar * RIG_PAGE + 0x800, (uint64_t)qp << 8);
	rig_eq_db(r, r->uar, &eq, true);
	rig_arm_cq(r, r->uar, &cq, false);
	expect_silence("rung meanwhile");
	CHECK(!arrived(1), "it is on its way");
	on();
	CHECK(arrived(1) && rig_cqe(r, &cq, cqe), "the second");
	CHECK(rig_eqe(r, &eq, eqe) && eqe[1] == EVENT_COMP, "its event");
	CHECK(host_irqs(r->host, VECTOR) == 1, "its interrupt");
	rig_stop(r);
}

/* CQEs and EQEs that are there already, armed while it is off */
static void test_arming(void)
{
	uint8_t eqe[64];

	setup();
	put_be32(rig_mem(r, qp_db) + 4, 2);
	rig_send_db(r, r->uar, qp);
	on();
	off();
	rig_eq_db(r, r->uar, &eq, true);
	rig_arm_cq(r, r->uar, &cq, false);
	expect_silence("the CQ is armed");
	host_bus_master(r->host, true);
	CHECK(rig_eqe(r, &eq, eqe), "event");
	CHECK(host_irqs(r->host, VECTOR) == 1, "interrupt");
	rig_arm_cq(r, r->uar, &cq, false); /* no news */
	eq.ci--;
	off();
	rig_eq_db(r, r->uar, &eq, true);
	expect_silence("the EQ is armed");
	host_bus_master(r->host, true);
	CHECK(host_irqs(r->host, VECTOR) == 1, "interrupt");
	rig_stop(r);
}

static void test_commands(void)
{
	r = rig_up();
	rig_begin(r, MLX5_CMD_OP_ALLOC_PD, 16, 16);
	rig_fill(r, 0);
	rig_fill(r, 7);
	off();
	rig_ring(r, 1);
	rig_ring(r, 0x80);
	expect_silence("commands");
	host_bus_master(r->host, true);
	CHECK(!rig_result(r, 0) && !rig_result(r, 7), "done when it is on");
	/* a reset forgets them */
	rig_fill(r, 0);
	off();
	rig_ring(r, 1);
	host_reset(r->host);
	host_write32(r->host, 0x10, 0);
	host_write32(r->host, 0x14, RIG_CMDQ);
	host_bus_master(r->host, true);
	CHECK(rig_result(r, 0) == RIG_PENDING, "before the reset");
	rig_stop(r);
}

/* Ethernet, both ways */
static void test_frames(void)
{
	uint8_t frame[FRAME] = { 255, 255, 255, 255, 255, 255 }, cqe[64], *wqe;
	struct probe p;

	r = rig_start();
	probe_run(r, &p);
	r->nic->mtu = 1522;
	wqe = rig_mem(r, p.rq_buf);
	put_be32(wqe, 2 * FRAME);
	put_be32(wqe + 4, p.mkey);
	put_be64(wqe + 8, rig_pages(r, 1));
	put_be32(wqe + 20, END_LKEY);
	CHECK(write(r->wire, frame, FRAME) > 0, "frame");
	rig_wire(r); /* no buffer: it waits */
	put_be32(rig_mem(r, p.rq_db), 1);
	off();
	CHECK(write(r->wire, frame, FRAME - 1) > 0, "frame");
	rig_wire(r);
	expect_silence("frames");
	on();
	CHECK(rig_cqe(r, &p.rx_cq, cqe) && get_be32(cqe + 44) == FRAME,
	      "the one that waited");
	put_be32(rig_mem(r, p.rq_db), 2);
	on();
	CHECK(!rig_cqe(r, &p.rx_cq, cqe), "the other is lost");
	rig_stop(r);
}

/* What has arrived at the end of a limited link by the time that nothing is due */
static uint32_t arrives(void)
{
	uint8_t frame[512];
	uint32_t n = 0;

	while (nic_due(r->nic) >= 0)
		nic_tick(r->nic);
	while (read(r->wire, frame, sizeof(frame)) > 0)
		n++;
	return n;
}

/* A packet is on the link, and one waits for room: of that nobody knows yet. */
static void test_blocked(void)
{
	setup();
	rig_address(r); /* ...becomes another: the peer is somebody else now */
	((uint8_t *)AT(roce_addr_layout,
		       AT(set_roce_address_in, r->in, roce_address),
		       source_mac_47_32))[5] ^= 1;
	CHECK(!rig_run(r), "%s", r->log);
	CHECK(!nic_limit(r->nic, 1000000, 0), "limit");
	put_be32(rig_mem(r, qp_db) + 4, 2);
	rig_send_db(r, r->uar, qp);
	CHECK(r->nic->tx_blocked && r->nic->wire.count == 1, "there is room");
	host_reset(r->host);
	CHECK(arrives() == 1, "what was on the link");
	on();
	CHECK(!arrives(), "sent before the reset, on the wire after it");
	rig_stop(r);
}

int main(void)
{
	before = malloc(HOST_MEMORY);
	test_rdma();
	test_arming();
	test_commands();
	test_frames();
	test_blocked();
	free(before);
	return check_result();
}
