// SPDX-License-Identifier: GPL-2.0
/* Event queues. An interrupt comes once for each arming. */

#include <stdlib.h>

#include "commands/cmd.h"
#include "cq.h"
#include "eq.h"
#include "nic.h"

#define EQE 64

static bool full(const struct eq *eq)
{
	return ((eq->pi - eq->ci) & 0xffffff) >= 1U << eq->log_size;
}

/* False: no room, no memory, or none that the device may touch. */
static bool put(struct nic *nic, struct eq *eq, uint8_t type, uint8_t subtype,
		const uint8_t data[EQE_DATA])
{
	uint32_t size = 1U << eq->log_size;
	uint8_t eqe[EQE] = { 0 }, *to;

	if (!vfu_bus_master(nic->vfu))
		return false;
	to = pas_ptr_write(nic, &eq->pas, (uint64_t)(eq->pi & (size - 1)) * EQE,
			   EQE);
	if (!to || full(eq))
		return false;
	eqe[1] = type;
	eqe[3] = subtype;
	memcpy(eqe + 32, data, EQE_DATA);
	memcpy(to, eqe, EQE - 1);
	/* The owner bit comes last: it makes the rest valid. */
	__atomic_store_n(to + EQE - 1, eq->pi >> eq->log_size & 1,
			 __ATOMIC_RELEASE);
	eq->pi = (eq->pi + 1) & 0xffffff;
	if (eq->armed) {
		eq->armed = false;
		vfu_irq(nic->vfu, eq->vector);
	}
	return true;
}

bool eq_post(struct nic *nic, struct eq *eq, uint8_t type, uint8_t subtype,
	     const uint8_t data[EQE_DATA])
{
	if (put(nic, eq, type, subtype, data))
		return true;
	if (!eq->loss_told)
		nic_log(nic, "EQ %u %s", eq->obj.id,
			full(eq) ? "overrun" : "is not in memory");
	eq->overrun = eq->loss_told = true;
	return false;
}

static bool put_cq(struct nic *nic, struct eq *eq, const struct cq *cq)
{
	uint8_t data[EQE_DATA] = { 0 };

	put_be32(data + 24, cq->obj.id);
	return put(nic, eq, EVENT_COMP, 0, data);
}

/*
 * There may be more CQs than the EQ has entries. One event tells of all CQEs up
 * to it, so a CQ waits at most once.
 */
void eq_post_cq(struct nic *nic, struct eq *eq, struct cq *cq)
{
	if (cq->waiting || (TAILQ_EMPTY(&eq->waiting) && put_cq(nic, eq, cq)))
		return;
	cq->waiting = true;
	TAILQ_INSERT_TAIL(&eq->waiting, cq, next_waiting);
}

void eq_forget_cq(struct cq *cq)
{
	if (cq->waiting)
		TAILQ_REMOVE(&cq->eq->waiting, cq, next_waiting);
	cq->waiting = false;
}

bool event_post(struct nic *nic, uint8_t type, uint8_t subtype,
		const uint8_t data[EQE_DATA])
{
	struct id_table *t = obj_table(nic, OBJ_EQ);
	struct eq *eq;
	uint32_t i;

	for (i = 0; i < t->size; i++) {
		eq = (struct eq *)t->slot[i];
		if (eq && eq->events[type / 64] >> type % 64 & 1) {
			eq_post(nic, eq, type, subtype, data);
			return true;
		}
	}
	return false;
}

void event_queue(struct nic *nic, uint8_t type, enum queue_type queue_type,
		 uint32_t number)
{
	uint8_t data[EQE_DATA] = { 0 };

	data[20] = queue_type;
	put_be32(data + 24, number);
	event_post(nic, type, 0, data);
}

/* Tell what has waited; an interrupt that is due. */
static void service(struct nic *nic, struct eq *eq)
{
	struct cq *cq;

	if (!vfu_bus_master(nic->vfu))
		return;
	while ((cq = TAILQ_FIRST(&eq->waiting)) && put_cq(nic, eq, cq))
		eq_forget_cq(cq);
	if (eq->armed && eq->pi != eq->ci) {
		eq->armed = false;
		vfu_irq(nic->vfu, eq->vector);
	}
}

void eq_doorbell(struct nic *nic, uint32_t uar, uint32_t value, bool arm)
{
	struct eq *eq = (struct eq *)obj_find(nic, OBJ_EQ, value >> 24);

	if (!eq || eq->uar != uar)
		return;
	eq->ci = value & 0xffffff;
	eq->armed |= arm;
	if (!full(eq))
		eq->loss_told = false;
	service(nic, eq);
}

void eq_resume(struct nic *nic)
{
	const struct id_table *t = obj_table(nic, OBJ_EQ);
	uint32_t i;

	for (i = 0; i < t->size; i++)
		if (t->slot[i])
			service(nic, (struct eq *)t->slot[i]);
}

static void eq_free(struct nic *nic, struct obj *obj)
{
	struct eq *eq = (struct eq *)obj;
	struct cq *cq;

	(void)nic;
	while ((cq = TAILQ_FIRST(&eq->waiting))) /* all go at once */
		eq_forget_cq(cq);
	pas_free(&eq->pas);
	free(eq);
}

static int create_eq(struct nic *nic, struct cmd *cmd)
{
	const uint8_t *eqc = AT_RO(create_eq_in, cmd->in, eq_context_entry);
	struct eq *eq = calloc(1, sizeof(*eq));
	int ret = -EINVAL, i;

	if (!eq)
		return FAIL(LIMIT, "no memory");
	eq->obj.free = eq_free;
	TAILQ_INIT(&eq->waiting);
	memcpy(eq->eqc, eqc, sizeof(eq->eqc));
	eq->log_size = GET(eqc, eqc, log_eq_size);
	eq->vector = GET(eqc, eqc, intr);
	eq->uar = GET(eqc, eqc, uar_page);
	for (i = 0; i < 4; i++)
		eq->events[i] = get_be64(
			cmd->in + BYTE_OF(create_eq_in, event_bitmask) + 8 * i);
	if (eq->log_size <= MAX_LOG_QUEUE && eq->vector < VECTORS)
		ret = pas_init(&eq->pas, cmd->in + BYTES(create_eq_in),
			       cmd->in_len - BYTES(create_eq_in),
			       GET(eqc, eqc, log_page_size) + PAGE_SHIFT_MIN,
			       GET(eqc, eqc, page_offset) * 64,
			       (uint64_t)EQE << eq->log_size);
	if (ret) {
		obj_destroy(nic, &eq->obj);
		return FAIL_WITH(ret, "size, vector or pages");
	}
	if (!cmd_hold(nic, &eq->obj, OBJ_UAR, eq->uar)) {
		obj_destroy(nic, &eq->obj);
		return FAIL(BAD_RES, "no such UAR");
	}
	return cmd_created(nic, cmd, &eq->obj, OBJ_EQ);
}

static int query_eq(struct nic *nic, struct cmd *cmd)
{
	struct eq *eq = (struct eq *)obj_find(nic, OBJ_EQ, cmd_id(cmd));
	uint8_t *eqc = AT(query_eq_out, cmd->out, eq_context_entry);

	if (!eq)
		return FAIL(BAD_RES, "no such EQ");
	memcpy(eqc, eq->eqc, sizeof(eq->eqc));
	SET(eqc, eqc, st, eq->armed ? 9 : 0xa);
	SET(eqc, eqc, status, eq->overrun ? 9 : 0);
	SET(eqc, eqc, consumer_counter, eq->ci);
	SET(eqc, eqc, producer_counter, eq->pi);
	return CMD_OK;
}

static const struct cmd_desc rows[] = {
	ROW(CREATE_EQ, create_eq, BYTES(create_eq_in), 16, 0),
	ROW(DESTROY_EQ, cmd_destroy, 16, 16, OBJ_EQ),
	ROW(QUERY_EQ, query_eq, 16, BYTES(query_eq_out), 0),
};

const struct cmd_rows rows_eq = { rows, N_ELEM(rows) };
