// SPDX-License-Identifier: GPL-2.0
/* Completion queues: CQEs, arming, overrun. */

#include <stdlib.h>

#include "nic.h"
#include "queue.h"

#define DB_SOLICITED_ONLY (1U << 24)
#define OVERRUN_SYNDROME 1

static void notify(struct nic *nic, struct cq *cq)
{
	u8 data[EQE_DATA] = { 0 };

	cq->armed = false;
	put_be32(data + 24, cq->obj.id);
	eq_post(nic, cq->eq, EVENT_COMP, 0, data);
}

static void overrun(struct nic *nic, struct cq *cq)
{
	u8 data[EQE_DATA] = { 0 };

	nic_log(nic, "CQ %u overrun", cq->obj.id);
	cq->failed = true;
	put_be32(data, cq->obj.id);
	data[11] = OVERRUN_SYNDROME;
	event_post(nic, EVENT_CQ_ERROR, 0, data);
}

static bool full(struct nic *nic, const struct cq *cq)
{
	u8 db[4];

	if (cq->ignore_overrun)
		return false;
	if (vfu_dma_read(nic->vfu, cq->db, db, sizeof(db)))
		return true;
	return ((cq->pi - get_be32(db)) & 0xffffff) >= 1U << cq->log_size;
}

bool cq_post(struct nic *nic, struct cq *cq, u8 cqe[64], enum cqe_op op,
	     bool solicited)
{
	u32 size = cq->big ? 128 : 64;
	u64 at = (u64)(cq->pi & ((1U << cq->log_size) - 1)) * size;
	u8 *to;

	if (cq->failed)
		return false;
	to = pas_ptr(nic, &cq->pas, at + size - 64, 64);
	if (!to || full(nic, cq)) {
		overrun(nic, cq);
		return false;
	}
	if (op != CQE_REQ_ERR && op != CQE_RESP_ERR) /* syndromes are there */
		put_be64(cqe + 48, nic_now());
	memcpy(to, cqe, 63);
	__atomic_store_n(to + 63,
			 op << 4 | (solicited ? 2 : 0) |
				 (cq->pi >> cq->log_size & 1),
			 __ATOMIC_RELEASE);
	cq->pi = (cq->pi + 1) & 0xffffff;
	/* errors wake those who wait for solicited ones, IBA 11.4.2.2 */
	solicited |= op == CQE_REQ_ERR || op == CQE_RESP_ERR;
	if (solicited)
		cq->solicited_pi = cq->pi;
	if (cq->armed && (solicited || !cq->armed_solicited))
		notify(nic, cq);
	return true;
}

/*
 * Arm: the consumer says how far it has seen. An event for what is behind
 * comes at once, else with the next CQE.
 */
void cq_doorbell(struct nic *nic, u32 first, u32 number)
{
	struct cq *cq = (struct cq *)obj_find(nic, OBJ_CQ, number & 0xffffff);
	u32 last;

	if (!cq || cq->failed)
		return;
	cq->armed = true;
	cq->armed_solicited = first & DB_SOLICITED_ONLY;
	last = cq->armed_solicited ? cq->solicited_pi : cq->pi;
	last = (last - first) & 0xffffff;
	if (last && last <= 1U << cq->log_size)
		notify(nic, cq);
}

static void cq_free(struct nic *nic, struct obj *obj)
{
	struct cq *cq = (struct cq *)obj;

	(void)nic;
	pas_free(&cq->pas);
	free(cq);
}

int create_cq(struct nic *nic, struct cmd *cmd)
{
	const u8 *cqc = AT_RO(create_cq_in, cmd->in, cq_context);
	unsigned int shift = GET(cqc, cqc, log_page_size) + PAGE_SHIFT_MIN;
	struct cq *cq = calloc(1, sizeof(*cq));

	if (!cq)
		return FAIL(INTERNAL, "no memory");
	cq->obj.free = cq_free;
	memcpy(cq->cqc, cqc, sizeof(cq->cqc));
	cq->log_size = GET(cqc, cqc, log_cq_size);
	cq->big = GET(cqc, cqc, cqe_sz) == 1;
	cq->ignore_overrun = GET(cqc, cqc, oi);
	cq->db = GET(cqc, cqc, dbr_addr);
	cq->eq = (struct eq *)cmd_hold(nic, &cq->obj, OBJ_EQ,
				       GET(cqc, cqc, c_eqn_or_apu_element));
	if (!cq->eq) {
		obj_destroy(nic, &cq->obj);
		return FAIL(BAD_RES, "no such EQ");
	}
	if (cq->log_size > MAX_LOG_QUEUE || GET(cqc, cqc, cqe_sz) > 1 ||
	    GET(cqc, cqc, cqe_comp_en) || cq->db & 7 ||
	    !pas_init(&cq->pas, cmd->in + BYTES(create_cq_in),
		      cmd->in_len - BYTES(create_cq_in), shift,
		      GET(cqc, cqc, page_offset) << (shift - 6),
		      (cq->big ? 128ULL : 64ULL) << cq->log_size)) {
		obj_destroy(nic, &cq->obj);
		return FAIL(BAD_PARAM, "size, doorbell record or pages");
	}
	return cmd_created(nic, cmd, &cq->obj, OBJ_CQ);
}

/* Moderation is accepted: every CQE counts. Resizing is not offered. */
int modify_cq(struct nic *nic, struct cmd *cmd)
{
	if (!obj_find(nic, OBJ_CQ, cmd_id(cmd)))
		return FAIL(BAD_RES, "no such CQ");
	if (cmd->op_mod)
		return FAIL(BAD_PARAM, "cannot resize");
	return CMD_OK;
}

int query_cq(struct nic *nic, struct cmd *cmd)
{
	struct cq *cq = (struct cq *)obj_find(nic, OBJ_CQ, cmd_id(cmd));
	u8 *cqc = AT(query_cq_out, cmd->out, cq_context);

	if (!cq)
		return FAIL(BAD_RES, "no such CQ");
	memcpy(cqc, cq->cqc, sizeof(cq->cqc));
	SET(cqc, cqc, status, cq->failed ? 9 : 0);
	SET(cqc, cqc, st, !cq->armed ? 0xa : cq->armed_solicited ? 6 : 9);
	SET(cqc, cqc, producer_counter, cq->pi);
	return CMD_OK;
}
