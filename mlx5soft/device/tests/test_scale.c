// SPDX-License-Identifier: GPL-2.0
/*
 * As many QPs as a large application has, in one device: connected in pairs,
 * each with room for 128 WQEs and several under way, within the memory that a
 * guest may have us allocate. All use the same ring and doorbell record: what
 * counts is the device's memory.
 */
#include <sys/resource.h>

#include "commands/cmd.h"
#include "cq.h"
#include "nic.h"
#include "rig.h"
#include "rdma/wqe.h"

#define QPS 16384U
#define LOG_SQ 7U
#define RQ_BYTES (32U << 4)
#define WRITES 8U
#define DATA RIG_FREE

static struct rig *r;
static uint32_t mkey, qpn[QPS];

/* As main.c does it; with the address sanitizer, what was allocated is seen. */
static void limit_memory(void)
{
#ifndef __SANITIZE_ADDRESS__
	const struct rlimit limit = { NIC_MAX_MEMORY, NIC_MAX_MEMORY };

	MUST(!setrlimit(RLIMIT_DATA, &limit));
#endif
}

static void check_memory(void)
{
#ifdef __SANITIZE_ADDRESS__
	extern size_t __sanitizer_get_current_allocated_bytes(void);
	size_t n = __sanitizer_get_current_allocated_bytes();

	printf("%zu MiB for %u QPs\n", n >> 20, QPS);
	CHECK(n < NIC_MAX_MEMORY, "%zu bytes", n);
#endif
}

static uint32_t create(uint32_t cqn)
{
	uint64_t again = r->free;
	uint8_t *in;

	rig_qp_in(r, 0, cqn);
	r->free = again;
	in = r->in;
	SET(create_qp_in, in, qpc.log_sq_size, LOG_SQ);
	for (uint32_t at = RIG_PAGE; at < RQ_BYTES + (64U << LOG_SQ);
	     at += RIG_PAGE, r->in_len += 8)
		put_be64(in + r->in_len, r->buf);
	return rig_id(r);
}

/* The last one is signaled. */
static void fill_ring(void)
{
	uint8_t *wqe = rig_mem(r, r->buf + RQ_BYTES);

	for (uint32_t i = 0; i < WRITES; i++, wqe += WQE_BB) {
		put_be32(wqe, i << 8 | WQE_WRITE);
		put_be32(wqe + 4, 3);
		wqe[11] = i == WRITES - 1 ? 8 : 0;
		put_be64(wqe + 16, DATA + 8);
		put_be32(wqe + 24, mkey);
		put_be32(wqe + 32, 8);
		put_be32(wqe + 36, mkey);
		put_be64(wqe + 40, DATA);
	}
	put_be32(rig_mem(r, r->db) + 4, WRITES);
}

int main(void)
{
	struct rig_ring eq, cq;
	static bool done[QPS];
	uint8_t cqe[64];

	limit_memory();
	r = rig_up();
	rig_address(r);
	rig_pages(r, 1); /* DATA */
	eq = rig_eq(r, 4, 0, 0);
	cq = rig_cq(r, 15, eq.id);
	rig_mkey_in(r, DATA, DATA, RIG_PAGE);
	mkey = rig_id(r) << 8 | 0x5a;
	for (uint32_t i = 0; i < QPS; i++)
		qpn[i] = create(cq.id);
	for (uint32_t i = 0; i < QPS; i++)
		rig_connect(r, qpn[i], qpn[i ^ 1]);
	fill_ring();
	put_be64(rig_mem(r, DATA), 0x0123456789abcdef);
	for (uint32_t i = 0; i < QPS; i++)
		rig_send_db(r, r->uar, qpn[i]);
	check_memory();
	while (!nic_due(r->nic))
		nic_tick(r->nic);
	check_memory();
	for (uint32_t i = 0; i < QPS; i++) {
		uint32_t from;

		MUST(rig_cqe(r, &cq, cqe));
		from = (get_be32(cqe + 56) & 0xffffff) - qpn[0];
		CHECK(cqe[63] >> 4 == CQE_REQ && from < QPS && !done[from],
		      "CQE %u", i);
		done[from % QPS] = true;
	}
	CHECK(!rig_cqe(r, &cq, cqe), "no more");
	CHECK(!memcmp(rig_mem(r, DATA), rig_mem(r, DATA + 8), 8), "data");
	/* all of them go at once, with work */
	for (uint32_t i = 0; i < QPS; i++)
		rig_send_db(r, r->uar, qpn[i]);
	for (uint32_t i = QPS; i--;)
		CHECK(!rig_run_id(r, MLX5_CMD_OP_DESTROY_QP, qpn[i]), "%s",
		      r->log);
	CHECK(nic_due(r->nic) == -1, "nothing left");
	rig_stop(r);
	return check_result();
}
