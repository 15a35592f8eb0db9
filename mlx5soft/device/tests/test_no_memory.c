// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that is not there. Each allocation of each command fails once: the
 * command is refused, and succeeds when it is repeated, as if nothing had been.
 */
#include "nic.h"
#include "probe.h"

static unsigned int fail_at, seen; /* 0: never */
static unsigned int failed;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);

static bool fails(void)
{
	return fail_at && ++seen == fail_at;
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
	CHECK(result > 0, "command 0x%x without its allocation %u: %d",
	      get_be16(r->in), fail_at, result);
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

int main(void)
{
	struct rig *r = rig_start();
	struct probe p;

	r->again = fail_next;
	fail_at = 1;
	probe_run(r, &p);
	others(r, p.rx_cq.id);
	transport(r, p.rx_cq.id);
	probe_remove(r, &p);
	fail_at = 0;
	r->again = NULL;
	CHECK(failed > 40, "only %u failures", failed);
	rig_stop(r);
	return check_result();
}
