// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "taken.h"

#include <string.h>

#include "armed.h"
#include "gate.h"
#include "stop.h"
#include "suspend.h"

struct taken {
	struct ibv_wc wc;
	/* of extended CQs, as far as they were asked for */
	uint64_t completion_ts, completion_wallclock_ns;
	uint32_t flow_tag;
	uint16_t cvlan;
	struct ibv_wc_tm_info tm_info;
};

/* --- taking --- */

static bool grow(struct taken **all, size_t *has, size_t room)
{
	struct taken *taken;

	if (room <= *has)
		return true;
	room *= 2;
	taken = realloc(*all, room * sizeof(*taken));
	if (!taken)
		return false;
	*all = taken;
	*has = room;
	return true;
}

/* room for some more behind the last one; all that is kept fits there, too */
static bool make_room(struct shadow_cq *cq, size_t more)
{
	size_t kept = cq->n_stopping ? cq->n_flushed + more : 0;

	if (cq->first_taken) {
		memmove(cq->taken, cq->taken + cq->first_taken,
			cq->n_taken * sizeof(*cq->taken));
		cq->first_taken = 0;
	}
	return grow(&cq->taken, &cq->room_taken, cq->n_taken + more + kept) &&
	       grow(&cq->flushed, &cq->room_flushed, kept);
}

/* there is room for it */
static void add(struct shadow_cq *cq, const struct taken *taken)
{
	struct taken *t = &cq->taken[cq->first_taken + cq->n_taken++];

	*t = *taken;
	cq->cause = CAUSE_THEIRS;
	cq_look(cq, &t->wc);
}

/* some are the layer's own */
static void take(struct shadow_cq *cq, const struct taken *taken)
{
	bool keep = false;

	if (suspend_is_marker(cq, &taken->wc)) {
		armed_took(cq, &taken->wc);
	} else if (!stop_is_flush(cq, &taken->wc, &keep)) {
		add(cq, taken);
	} else {
		armed_took(cq, &taken->wc);
		if (keep)
			cq->flushed[cq->n_flushed++] = *taken;
	}
}

static int fill_plain(struct shadow_cq *cq)
{
	struct ibv_wc wc[16];
	int n;

	do {
		if (!make_room(cq, 16))
			return ENOMEM;
		n = cq->poll(cq->real, 16, wc);
		for (int i = 0; i < n; i++)
			take(cq, &(struct taken){ .wc = wc[i] });
	} while (n == 16);

	return n < 0 ? EIO : 0;
}

/* what the CQ can tell of the completion it is at; of a failed one only some */
static struct taken read_taken(struct ibv_cq_ex *r)
{
	struct taken t = { .wc = { .wr_id = r->wr_id, .status = r->status } };

#define READ(reader, to)                   \
	do {                               \
		if (r->reader)             \
			to = r->reader(r); \
	} while (0)
	READ(read_qp_num, t.wc.qp_num);
	READ(read_vendor_err, t.wc.vendor_err);
	if (t.wc.status != IBV_WC_SUCCESS)
		return t;
	READ(read_opcode, t.wc.opcode);
	READ(read_wc_flags, t.wc.wc_flags);
	READ(read_byte_len, t.wc.byte_len);
	READ(read_imm_data, t.wc.imm_data);
	READ(read_src_qp, t.wc.src_qp);
	READ(read_slid, t.wc.slid);
	READ(read_sl, t.wc.sl);
	READ(read_dlid_path_bits, t.wc.dlid_path_bits);
	READ(read_completion_ts, t.completion_ts);
	READ(read_completion_wallclock_ns, t.completion_wallclock_ns);
	READ(read_cvlan, t.cvlan);
	READ(read_flow_tag, t.flow_tag);
#undef READ
	if (r->read_tm_info)
		r->read_tm_info(r, &t.tm_info);
	return t;
}

static int fill_ex(struct shadow_cq *cq)
{
	struct ibv_cq_ex *r = (struct ibv_cq_ex *)cq->real;
	struct ibv_poll_cq_attr attr = {};
	struct taken t;
	int err;

	if (!make_room(cq, 1))
		return ENOMEM;
	err = r->start_poll(r, &attr);
	if (err)
		return err == ENOENT ? 0 : err;
	do {
		t = read_taken(r);
		take(cq, &t);
		/* of the next one there is no way back */
		if (!make_room(cq, 1))
			break;
		err = r->next_poll(r);
	} while (!err);
	r->end_poll(r);
	return err == ENOENT ? 0 : err ? err : ENOMEM;
}

int taken_fill(struct shadow_cq *cq)
{
	/* before, a thread may be between start and end of its own polling */
	if (!(atomic_load(&cq->slow) & CQ_BATCHES) ||
	    is_unplugged(cq->cq.context))
		return 0;
	return cq->tells_more ? fill_ex(cq) : fill_plain(cq);
}

size_t taken_end_flush(struct shadow_cq *cq, const struct shadow_qp *qp,
		       bool give)
{
	size_t all = cq->n_flushed, others = 0;

	for (unsigned int i = 0; i < cq->n_stopping; i++)
		if (cq->stopping[i] == qp) {
			cq->stopping[i] = cq->stopping[--cq->n_stopping];
			break;
		}
	for (size_t i = 0; i < all; i++)
		if (cq->flushed[i].wc.qp_num != qp->real_num)
			cq->flushed[others++] = cq->flushed[i];
		else if (give)
			add(cq, &cq->flushed[i]);
	cq->n_flushed = others;
	return all - others;
}

bool taken_flush(struct shadow_cq *cq, uint32_t qp_num, uint64_t wr_id)
{
	if (!make_room(cq, 1))
		return false;
	cq->taken[cq->n_taken++] =
		(struct taken){ .wc = { .wr_id = wr_id,
					.status = IBV_WC_WR_FLUSH_ERR,
					.qp_num = qp_num } };
	return true;
}

void taken_forget(struct shadow_cq *cq, uint32_t qp_num)
{
	struct taken *t = cq->taken + cq->first_taken;
	size_t left = 0;

	for (size_t i = 0; i < cq->n_taken; i++)
		if (t[i].wc.qp_num != qp_num)
			t[left++] = t[i];
	cq->n_taken = left;
}

void taken_clear(struct shadow_cq *cq)
{
	free(cq->flushed);
	cq->flushed = NULL;
	cq->n_flushed = cq->room_flushed = 0;
	free(cq->taken);
	cq->taken = NULL;
	cq->first_taken = cq->n_taken = cq->room_taken = 0;
}

/* --- giving --- */

/* What an event is of that is to come is seen only here. */
static bool is_to_take(const struct shadow_cq *cq)
{
	return cq->draining || cq->markers || cq->cause == CAUSE_OURS;
}

void taken_settle(struct shadow_cq *cq)
{
	if (!cq->n_taken)
		armed_polled(cq);
	if (!cq->n_taken && !is_to_take(cq) && !cq->in_batch)
		atomic_fetch_and(&cq->slow,
				 (unsigned char)~(CQ_SLOW | CQ_BATCHES));
}

static void give(struct shadow_cq *cq, struct taken *taken)
{
	*taken = cq->taken[cq->first_taken++];
	cq->n_taken--;
}

/* Is something to come that only the layer may see? */
static bool is_taking(const struct shadow_cq *cq)
{
	return is_to_take(cq) && atomic_load(&cq->slow) & CQ_BATCHES;
}

int taken_poll(struct shadow_cq *cq, int num_entries, struct ibv_wc *wc)
{
	int n = 0, more, err = 0;
	struct taken t;

	if (is_taking(cq) && cq->n_taken < (size_t)num_entries)
		err = taken_fill(cq);
	while (n < num_entries && cq->n_taken) {
		give(cq, &t);
		wc[n++] = t.wc;
	}
	taken_settle(cq);
	if (is_taking(cq) || n == num_entries)
		return err && !n ? -1 : n;
	more = cq_poll_real(cq, num_entries - n, wc + n);
	return more > 0 ? n + more : n ? n : more;
}

static struct shadow_cq *of(struct ibv_cq_ex *ex)
{
	return container_of(ex, struct shadow_cq, ex);
}

static int give_next(struct shadow_cq *cq)
{
	int err = 0;

	if (!cq->n_taken)
		err = taken_fill(cq);
	if (!cq->n_taken)
		return err ? err : ENOENT;
	give(cq, cq->current);
	cq->ex.status = cq->current->wc.status;
	cq->ex.wr_id = cq->current->wc.wr_id;
	return 0;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	struct shadow_cq *cq = of(ex);
	int err;

	pthread_mutex_lock(&cq->lock);
	err = give_next(cq);
	pthread_mutex_unlock(&cq->lock);
	return err;
}

static void end_poll(struct ibv_cq_ex *ex)
{
	struct shadow_cq *cq = of(ex);

	pthread_mutex_lock(&cq->lock);
	shadow_cq_ex_init(cq, (struct ibv_cq_ex *)cq->real);
	cq->in_batch = false;
	taken_settle(cq);
	pthread_mutex_unlock(&cq->lock);
	pthread_mutex_unlock(&cq->batch);
}

#define READER(type, name, member)                    \
	static type read_##name(struct ibv_cq_ex *ex) \
	{                                             \
		return of(ex)->current->member;       \
	}
CQ_READERS(READER)
#undef READER

static void read_tm_info(struct ibv_cq_ex *ex, struct ibv_wc_tm_info *tm_info)
{
	*tm_info = of(ex)->current->tm_info;
}

int taken_start(struct shadow_cq *cq, struct ibv_poll_cq_attr *attr)
{
	struct ibv_cq_ex *ex = &cq->ex;
	int err;

	if (attr->comp_mask)
		return EINVAL;
	if (!cq->current)
		cq->current = malloc(sizeof(*cq->current));
	if (!cq->current)
		return ENOMEM;
	err = give_next(cq);
	if (err) {
		taken_settle(cq);
		return err;
	}
	cq->in_batch = true;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
#define OFFER(type, name, member) \
	if (ex->read_##name)      \
		ex->read_##name = read_##name;
	CQ_READERS(OFFER)
#undef OFFER
	if (ex->read_tm_info)
		ex->read_tm_info = read_tm_info;
	return 0;
}
