// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that is not there. Each allocation of each command fails once: the
 * command is refused, and succeeds when it is repeated, as if nothing had been.
 */
#include "commands/cmd.h"
#include "cq.h"
#include "nic.h"
#include "probe.h"
#include "rdma/wqe.h"

static unsigned int fail_at, seen; /* 0: never */
static bool fail_on;		   /* all that follow fail, too */
static unsigned int failed;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);

static bool fails(void)
{
	return fail_at && (++seen == fail_at || (fail_on && seen > fail_at));
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails() ? NULL : __real_realloc(p, size);
}

static bool fail_next(struct rig *r, int result)
{
	bool hit = seen >= fail_at;

	seen = 0;
	if (!hit) {
		fail_at = 1;
		return false;
	}
	CHECK(result == CMD_LIMIT, /* that is ENOMEM; NO_RES would be EAGAIN */
	      "command 0x%x without its allocation %u: %d: %s", get_be16(r->in),
	      fail_at, result, r->log);
	failed++;
	fail_at++;
	return result; /* or it would be done twice */
}

static void create(struct rig *r, uint16_t destroy)
{
	uint32_t id = rig_id(r);

	CHECK(!rig_run_id(r, destroy, id), "0x%x: %s", destroy, r->log);
}

/* what the probe has not */
static void others(struct rig *r, uint32_t cqn)
{
	rig_srq_in(r);
	create(r, MLX5_CMD_OP_DESTROY_SRQ);
	rig_begin(r, MLX5_CMD_OP_ALLOC_Q_COUNTER, 16, 16);
	create(r, MLX5_CMD_OP_DEALLOC_Q_COUNTER);
	rig_cq_resize_in(r, 9, cqn);
	CHECK(!rig_run(r), "%s", r->log);
}

/* A QP to RTS needs memory of the transport on its way. */
static void transport(struct rig *r, uint32_t cqn)
{
	uint32_t qp;

	rig_address(r);
	rig_qp_in(r, 0, cqn);
	qp = rig_id(r);
	rig_connect(r, qp, qp);
	CHECK(!rig_run_id(r, MLX5_CMD_OP_DESTROY_QP, qp), "%s", r->log);
}

/*
 * A device without memory for inline data tries again, and nothing is lost; to
 * flush them it needs none.
 */
static void inline_send(struct rig *r, uint32_t cqn, bool flush)
{
	struct rig_ring cq = { .log_size = 4 };
	uint64_t sq, wait;
	uint8_t *wqe, cqe[64];
	uint32_t qp;

	rig_cq_in(r, cq.log_size, cqn);
	cq.buf = r->buf;
	cq.db = r->db;
	cq.id = rig_id(r);
	rig_qp_in(r, 1, cq.id);
	sq = r->buf + (32 << 4);
	qp = rig_id(r);
	rig_connect(r, qp, qp);
	wqe = rig_mem(r, sq);
	for (uint32_t i = 0; i < 2; i++, wqe += 64) {
		put_be32(wqe, i << 8 | WQE_SEND);
		put_be32(wqe + 4, qp << 8 | 2);
		wqe[11] = 8; /* signaled */
		put_be32(wqe + 16, 0x80000000U | 4);
	}
	put_be32(rig_mem(r, r->db) + 4, 2);
	seen = 0;
	fail_at = 1;
	rig_send_db(r, r->uar, qp);
	CHECK(seen == 1, "%u allocations", seen);
	CHECK(!rig_cqe(r, &cq, cqe), "completed without memory");
	CHECK(nic_due(r->nic) >= 0, "does not look again");
	fail_on = flush;
	if (flush)
		CHECK(!rig_run_id(r, MLX5_CMD_OP_2ERR_QP, qp), "%s", r->log);
	else
		fail_at = 0;
	wait = nic_now() + 100000000;
	while (nic_due(r->nic) >= 0 && nic_now() < wait)
		nic_tick(r->nic);
	fail_at = 0;
	fail_on = false;
	for (uint32_t i = 0; i < 2; i++)
		CHECK(rig_cqe(r, &cq, cqe) &&
			      cqe[63] >> 4 == (flush ? CQE_REQ_ERR : CQE_REQ) &&
			      (!flush || cqe[CQE_AT_SYNDROME] == 5) &&
			      get_be16(cqe + CQE_AT_WQE_COUNTER) == i,
		      "%u: opcode %u", i, cqe[63] >> 4);
	CHECK(!rig_run_id(r, MLX5_CMD_OP_DESTROY_QP, qp), "%s", r->log);
	CHECK(!rig_run_id(r, MLX5_CMD_OP_DESTROY_CQ, cq.id), "%s", r->log);
}

/* A link costs memory; without, the device stays without one. */
static void limit(struct rig *r)
{
	seen = 0;
	fail_at = 1;
	CHECK(nic_limit(r->nic, 1000000, 0) == -ENOMEM && seen == 1 &&
		      !r->nic->wire.limit,
	      "limited without memory");
	fail_at = 0;
	CHECK(!nic_limit(r->nic, 1000000, 0) && r->nic->wire.limit, "limit");
	CHECK(!nic_limit(r->nic, 0, 0), "no limit");
	nic_tick(r->nic);
	CHECK(!r->nic->wire.limit, "is still there");
}

int main(void)
{
	struct rig *r = rig_start();
	struct probe p;

	r->again = fail_next;
	fail_at = 1;
	probe_run(r, &p);
	others(r, p.rx_cq.id);
	transport(r, p.rx_cq.id);
	fail_at = 0;
	r->again = NULL;
	inline_send(r, p.comp_eq.id, false);
	inline_send(r, p.comp_eq.id, true);
	r->again = fail_next;
	fail_at = 1;
	seen = 0;
	probe_remove(r, &p);
	fail_at = 0;
	r->again = NULL;
	limit(r);
	CHECK(failed > 40, "only %u failures", failed);
	rig_stop(r);
	return check_result();
}
