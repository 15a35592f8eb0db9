// SPDX-License-Identifier: GPL-2.0
/* Completion queues: CQEs, arming, overrun. */

#include <stdlib.h>

#include "commands/cmd.h"
#include "cq.h"
#include "eq.h"
#include "nic.h"

#define DB_SOLICITED_ONLY (1U << 24)
#define OVERRUN_SYNDROME 1
#define OP_MOD_RESIZE 1

static void cancel(struct nic *nic, struct cq *cq)
{
	if (cq->timed)
		TAILQ_REMOVE(&nic->cq_timed, cq, next_timed);
	cq->timed = false;
}

static void notify(struct nic *nic, struct cq *cq)
{
	cancel(nic, cq);
	if (cq->period)
		cq->notified_at = nic_now();
	cq->armed = cq->news = cq->solicited_news = false;
	cq->notified_pi = cq->pi;
	eq_post_cq(nic, cq->eq, cq);
}

/*
 * Armed, with CQEs to tell of. Moderation: the event comes after max_count of
 * them, or a time after the last event, or after the last CQE.
 */
static void moderate(struct nic *nic, struct cq *cq)
{
	uint64_t now;

	if (!cq->period || !cq->max_count ||
	    ((cq->pi - cq->notified_pi) & 0xffffff) >= cq->max_count) {
		notify(nic, cq);
		return;
	}
	now = nic_now();
	cq->due = (cq->from_cqe ? cq->posted_at : cq->notified_at) +
		  cq->period * 1000ULL;
	if (cq->due <= now) {
		notify(nic, cq);
		return;
	}
	if (!cq->timed)
		TAILQ_INSERT_TAIL(&nic->cq_timed, cq, next_timed);
	cq->timed = true;
	if (cq->due < nic->cq_due)
		nic->cq_due = cq->due;
}

void cq_tick(struct nic *nic, uint64_t now)
{
	struct cq *cq, *next;

	nic->cq_due = UINT64_MAX;
	for (cq = TAILQ_FIRST(&nic->cq_timed); cq; cq = next) {
		next = TAILQ_NEXT(cq, next_timed);
		if (cq->due <= now)
			notify(nic, cq);
		else if (cq->due < nic->cq_due)
			nic->cq_due = cq->due;
	}
}

static void overrun(struct nic *nic, struct cq *cq)
{
	uint8_t data[EQE_DATA] = { 0 };

	nic_log(nic, "CQ %u overrun", cq->obj.id);
	cq->failed = true;
	put_be32(data, cq->obj.id);
	data[11] = OVERRUN_SYNDROME;
	event_post(nic, EVENT_CQ_ERROR, 0, data);
}

/* as the consumer says in its doorbell record */
static uint32_t unread(const struct cq *cq, uint32_t ci)
{
	return (cq->pi - ci) & 0xffffff;
}

static bool full(struct nic *nic, const struct cq *cq)
{
	uint32_t ci;

	if (cq->ignore_overrun)
		return false;
	if (!dma_read_be32(nic, cq->db, &ci))
		return true;
	return unread(cq, ci) >= 1U << cq->log_size;
}

/* The last byte of an entry makes it the consumer's. False: not in memory. */
static bool put(struct nic *nic, struct cq *cq, const uint8_t cqe[64],
		uint8_t op_own)
{
	uint32_t size = cq->big ? 128 : 64;
	uint64_t at = (uint64_t)(cq->pi & ((1U << cq->log_size) - 1)) * size;
	uint8_t *to = pas_ptr_write(nic, &cq->pas, at + size - 64, 64);

	if (!to)
		return false;
	memcpy(to, cqe, 63);
	__atomic_store_n(to + 63, op_own | (cq->pi >> cq->log_size & 1),
			 __ATOMIC_RELEASE);
	cq->pi = (cq->pi + 1) & 0xffffff;
	return true;
}

bool cq_post(struct nic *nic, struct cq *cq, uint8_t cqe[64], enum cqe_op op,
	     bool solicited)
{
	if (cq->failed)
		return false;
	if (op != CQE_REQ_ERR && op != CQE_RESP_ERR) /* syndromes are there */
		put_be64(cqe + CQE_AT_TIMESTAMP, nic_now());
	if (full(nic, cq) || !put(nic, cq, cqe, op << 4 | solicited << 1)) {
		overrun(nic, cq);
		return false;
	}
	/* errors wake those who wait for solicited ones, IBA 11.4.2.2 */
	solicited |= op == CQE_REQ_ERR || op == CQE_RESP_ERR;
	cq->news = true;
	if (cq->from_cqe)
		cq->posted_at = nic_now();
	if (solicited) {
		cq->solicited_news = true;
		cq->solicited_pi = cq->pi;
	} else if (((cq->pi - cq->solicited_pi) & 0xffffff) >> cq->log_size) {
		/* a ring full of others is behind it: it has been seen */
		cq->solicited_news = false;
	}
	if (cq->armed && (solicited || !cq->armed_solicited))
		moderate(nic, cq);
	return true;
}

/*
 * Is this CQE behind that one, which the consumer sees next? Numbers of 24 bits
 * wrap: who says that it is in front of the producer has seen everything.
 */
static bool behind(uint32_t pi, uint32_t from)
{
	return ((from - pi) & 0xffffff) > 0x7fffff;
}

/*
 * Arm: the consumer says how far it has seen. An event for what is behind
 * comes at once, else with the next CQE; but a CQE makes one event only, or
 * consumers that arm before they poll would be woken twice for each. Whether it
 * has made one is a flag and no distance: any number of CQEs may have been
 * polled since. An arming lasts until its event, and who then asks for less
 * than before does not take it back, IBA 11.4.2.2.
 */
void cq_doorbell(struct nic *nic, uint32_t uar, uint32_t first, uint32_t number)
{
	struct cq *cq = (struct cq *)obj_find(nic, OBJ_CQ, number & 0xffffff);
	bool only = first & DB_SOLICITED_ONLY;

	if (!cq || cq->failed || cq->uar != uar)
		return;
	cancel(nic, cq);
	cq->armed_solicited = only && (!cq->armed || cq->armed_solicited);
	cq->armed = true;
	if (cq->armed_solicited
		    ? cq->solicited_news && behind(cq->solicited_pi, first)
		    : cq->news && behind(cq->pi, first))
		moderate(nic, cq);
}

static void cq_free(struct nic *nic, struct obj *obj)
{
	struct cq *cq = (struct cq *)obj;

	cancel(nic, cq);
	eq_forget_cq(cq);
	pas_free(&cq->pas);
	free(cq);
}

static void set_moderation(struct cq *cq)
{
	cq->period = GET(cqc, cq->cqc, cq_period);
	cq->max_count = GET(cqc, cq->cqc, cq_max_count);
	cq->from_cqe = GET(cqc, cq->cqc, cq_period_mode) ==
		       MLX5_CQ_PERIOD_MODE_START_FROM_CQE;
}

/* size, format and place of the entries; `list` is behind the command */
static int ring_init(struct cq *cq, const struct cmd *cmd, const uint8_t *cqc,
		     uint32_t list)
{
	unsigned int shift = GET(cqc, cqc, log_page_size) + PAGE_SHIFT_MIN;

	cq->log_size = GET(cqc, cqc, log_cq_size);
	cq->big = GET(cqc, cqc, cqe_sz) == 1;
	if (cq->log_size > MAX_LOG_QUEUE || GET(cqc, cqc, cqe_sz) > 1 ||
	    cmd->in_len < list)
		return -EINVAL;
	return pas_init(&cq->pas, cmd->in + list, cmd->in_len - list, shift,
			GET(cqc, cqc, page_offset) << (shift - 6),
			(cq->big ? 128ULL : 64ULL) << cq->log_size);
}

static int create_cq(struct nic *nic, struct cmd *cmd)
{
	const uint8_t *cqc = AT_RO(create_cq_in, cmd->in, cq_context);
	struct cq *cq = calloc(1, sizeof(*cq));
	int ret = -EINVAL;

	if (!cq)
		return FAIL(LIMIT, "no memory");
	cq->obj.free = cq_free;
	memcpy(cq->cqc, cqc, sizeof(cq->cqc));
	cq->ignore_overrun = GET(cqc, cqc, oi);
	set_moderation(cq);
	cq->db = GET(cqc, cqc, dbr_addr);
	cq->uar = GET(cqc, cqc, uar_page);
	cq->eq = (struct eq *)cmd_hold(nic, &cq->obj, OBJ_EQ,
				       GET(cqc, cqc, c_eqn_or_apu_element));
	/* not held: a process that ends may give back the UAR first */
	if (!cq->eq || !obj_find(nic, OBJ_UAR, cq->uar)) {
		obj_destroy(nic, &cq->obj);
		return FAIL(BAD_RES, "no such EQ or UAR");
	}
	if (!GET(cqc, cqc, cqe_comp_en) && !(cq->db & 7))
		ret = ring_init(cq, cmd, cqc, BYTES(create_cq_in));
	if (ret) {
		obj_destroy(nic, &cq->obj);
		return FAIL_WITH(ret, "size, doorbell record or pages");
	}
	return cmd_created(nic, cmd, &cq->obj, OBJ_CQ);
}

/*
 * The old ring gets a last CQE that says so, and the next goes to the new ring.
 * The consumer copies what it has not seen yet, each CQE to the place behind its
 * own.
 */
static int resize(struct nic *nic, struct cmd *cmd, struct cq *cq)
{
	const uint8_t *cqc = AT_RO(modify_cq_in, cmd->in, cq_context);
	uint8_t cqe[64] = { 0 };
	struct cq to = { 0 };
	uint32_t ci;
	int ret = ring_init(&to, cmd, cqc, BYTES(modify_cq_in));

	if (ret)
		return FAIL_WITH(ret, "size or pages");
	if (cq->failed || !dma_read_be32(nic, cq->db, &ci) ||
	    unread(cq, ci) >= 1U << cq->log_size ||
	    unread(cq, ci) > 1U << to.log_size ||
	    !put(nic, cq, cqe, CQE_RESIZE << 4)) {
		pas_free(&to.pas);
		return FAIL(BAD_RES_STATE, "CQEs that do not fit");
	}
	/* where it is in the new ring, if it was not seen */
	cq->solicited_pi = (cq->solicited_pi + 1) & 0xffffff;
	pas_free(&cq->pas);
	cq->pas = to.pas;
	cq->log_size = to.log_size;
	cq->big = to.big;
	COPY(cqc, cq->cqc, cqc, log_cq_size);
	COPY(cqc, cq->cqc, cqc, log_page_size);
	COPY(cqc, cq->cqc, cqc, page_offset);
	COPY(cqc, cq->cqc, cqc, cqe_sz);
	return CMD_OK;
}

/* what MODIFY_CQ changes */
#define CHANGE_PERIOD (1 << 0)
#define CHANGE_COUNT (1 << 1)
#define CHANGE_OVERRUN (1 << 2)
#define CHANGE_PERIOD_MODE (1 << 4)
#define CHANGE_KNOWN \
	(CHANGE_PERIOD | CHANGE_COUNT | CHANGE_OVERRUN | CHANGE_PERIOD_MODE)

static int modify_cq(struct nic *nic, struct cmd *cmd)
{
	const uint8_t *cqc = AT_RO(modify_cq_in, cmd->in, cq_context);
	struct cq *cq = (struct cq *)obj_find(nic, OBJ_CQ, cmd_id(cmd));
	uint32_t fields = get_be32(
		cmd->in +
		BYTE_OF(modify_cq_in, modify_field_select_resize_field_select));

	if (!cq)
		return FAIL(BAD_RES, "no such CQ");
	if (cmd->op_mod == OP_MOD_RESIZE)
		return resize(nic, cmd, cq);
	if (fields & ~CHANGE_KNOWN)
		return FAIL(BAD_PARAM, "fields that cannot change");
	if (fields & CHANGE_PERIOD)
		COPY(cqc, cq->cqc, cqc, cq_period);
	if (fields & CHANGE_COUNT)
		COPY(cqc, cq->cqc, cqc, cq_max_count);
	if (fields & CHANGE_PERIOD_MODE)
		COPY(cqc, cq->cqc, cqc, cq_period_mode);
	if (fields & CHANGE_OVERRUN) {
		COPY(cqc, cq->cqc, cqc, oi);
		cq->ignore_overrun = GET(cqc, cqc, oi);
	}
	set_moderation(cq);
	if (cq->timed)
		moderate(nic, cq);
	return CMD_OK;
}

static int query_cq(struct nic *nic, struct cmd *cmd)
{
	struct cq *cq = (struct cq *)obj_find(nic, OBJ_CQ, cmd_id(cmd));
	uint8_t *cqc = AT(query_cq_out, cmd->out, cq_context);

	if (!cq)
		return FAIL(BAD_RES, "no such CQ");
	memcpy(cqc, cq->cqc, sizeof(cq->cqc));
	SET(cqc, cqc, status, cq->failed ? 9 : 0);
	SET(cqc, cqc, st, !cq->armed ? 0xa : cq->armed_solicited ? 6 : 9);
	SET(cqc, cqc, last_notified_index, cq->notified_pi);
	SET(cqc, cqc, last_solicit_index, cq->solicited_pi);
	SET(cqc, cqc, producer_counter, cq->pi);
	return CMD_OK;
}

static const struct cmd_desc rows[] = {
	ROW(CREATE_CQ, create_cq, BYTES(create_cq_in), 16, 0),
	ROW(DESTROY_CQ, cmd_destroy, 16, 16, OBJ_CQ),
	ROW(MODIFY_CQ, modify_cq,
	    BYTE_OF(modify_cq_in, cq_context) + BYTES(cqc), 16, 0),
	ROW(QUERY_CQ, query_cq, 16, BYTES(query_cq_out), 0),
};

const struct cmd_rows rows_cq = { rows, N_ELEM(rows) };
