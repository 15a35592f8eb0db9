// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Extended completion queues
 */
#include <sched.h>

#include "bound.h"
#include "elsewhere.h"
#include "gate.h"
#include "names.h"
#include "section.h"
#include "slots.h"
#include "taken.h"

static struct ibv_cq_ex *real_ex(struct ibv_cq_ex *ex)
{
	return (struct ibv_cq_ex *)container_of(ex, struct shadow_cq, ex)->real;
}

#define READER(type, name, member)                    \
	static type read_##name(struct ibv_cq_ex *ex) \
	{                                             \
		struct ibv_cq_ex *r = real_ex(ex);    \
                                                      \
		return r->read_##name(r);             \
	}
CQ_READERS(READER)
#undef READER

/* Before the application looks at what has come. A provider tells of all that is needed. */
static __attribute__((noinline)) void find_source(struct shadow_cq *s,
						  struct ibv_cq_ex *r)
{
	void *grh;

	s->ex.wr_id = slots_done(s->ex.wr_id, &grh);
	s->has_source = grh && atomic_load(&elsewhere_is_told) &&
			r->status == IBV_WC_SUCCESS && r->read_src_qp &&
			r->read_wc_flags && r->read_wc_flags(r) & IBV_WC_GRH;
	if (s->has_source)
		s->src_qp =
			elsewhere_source(s->ex.context, grh, r->read_src_qp(r));
}

/* What is there to be read without a function, if there is a completion. */
static int found(struct ibv_cq_ex *ex, struct ibv_cq_ex *r, int err)
{
	struct shadow_cq *s = container_of(ex, struct shadow_cq, ex);

	if (err)
		return err;
	ex->status = r->status;
	ex->wr_id = r->wr_id;
	if (unlikely(atomic_load_explicit(&s->slow, memory_order_relaxed) &
		     CQ_SLOTS))
		find_source(s, r);
	return 0;
}

static int start_slow(struct shadow_cq *s, struct ibv_poll_cq_attr *attr)
{
	int err = EAGAIN;

	pthread_mutex_lock(&s->batch); /* as with a provider's, one at a time */
	pthread_mutex_lock(&s->lock);
	if (atomic_load(&s->slow) & CQ_BATCHES)
		err = taken_start(s, attr);
	else
		taken_settle(s);
	pthread_mutex_unlock(&s->lock);
	if (err)
		pthread_mutex_unlock(&s->batch);
	return err;
}

/* --- where there are windows, from a start to its end --- */

static int next_poll(struct ibv_cq_ex *ex);
static void end_poll(struct ibv_cq_ex *ex);

static void look(struct shadow_cq *s, struct ibv_cq_ex *r)
{
	struct ibv_wc wc = { .wr_id = s->ex.wr_id, .status = r->status };

	if (r->status != IBV_WC_SUCCESS)
		wc.qp_num = r->read_qp_num(r);
	else
		wc.wc_flags = r->read_wc_flags(r);
	s->has_invalidated = bound_is_inv(wc.wc_flags);
	if (s->has_invalidated)
		wc.invalidated_rkey = r->read_imm_data(r);
	bound_completed(to_context(s->ex.context), &wc);
	s->invalidated = wc.invalidated_rkey;
}

static uint32_t read_invalidated(struct ibv_cq_ex *ex)
{
	struct shadow_cq *s = container_of(ex, struct shadow_cq, ex);

	return s->has_invalidated ? s->invalidated : read_imm_data(ex);
}

static int next_look(struct ibv_cq_ex *ex)
{
	int err = next_poll(ex);

	if (!err)
		look(container_of(ex, struct shadow_cq, ex), real_ex(ex));
	return err;
}

static void end_look(struct ibv_cq_ex *ex)
{
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_imm_data = read_imm_data;
	end_poll(ex);
}

/* within a section, which goes on if there is something */
static __attribute__((noinline)) int start_look(struct ibv_cq_ex *ex,
						struct ibv_poll_cq_attr *attr)
{
	struct ibv_cq_ex *r = real_ex(ex);
	int err = found(ex, r, r->start_poll(r, attr));

	if (err) {
		section_end();
		return err;
	}
	look(container_of(ex, struct shadow_cq, ex), r);
	ex->next_poll = next_look;
	ex->end_poll = end_look;
	ex->read_imm_data = read_invalidated;
	return 0;
}

/* --- from start to end --- */

/*
 * What is between start and end is one section. While threads are in batches of the
 * provider's, those of the layer wait.
 */
static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct shadow_cq *s = container_of(ex, struct shadow_cq, ex);
	struct ibv_cq_ex *r;
	unsigned char slow;
	int err;

	for (;;) {
		section_begin();
		slow = atomic_load_explicit(&s->slow, memory_order_acquire);
		if (likely(!(slow & (CQ_SLOW | CQ_WINDOWS))))
			break;
		if (!(slow & CQ_SLOW))
			return start_look(ex, attr);
		section_end();
		err = start_slow(s, attr);
		if (err != EAGAIN)
			return err;
		sched_yield();
	}
	r = real_ex(ex);
	err = found(ex, r, r->start_poll(r, attr));
	if (err)
		section_end();
	return err;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	struct ibv_cq_ex *r = real_ex(ex);

	return found(ex, r, r->next_poll(r));
}

static void end_poll(struct ibv_cq_ex *ex)
{
	struct ibv_cq_ex *r = real_ex(ex);

	r->end_poll(r);
	section_end();
}

static uint32_t read_named_qpn(struct ibv_cq_ex *ex)
{
	struct shadow_cq *s = container_of(ex, struct shadow_cq, ex);
	uint32_t num = read_qp_num(ex);

	if (unlikely(atomic_load_explicit(&s->slow, memory_order_acquire) &
		     CQ_NAMES))
		num = names_qpn(to_context(ex->context)->qpns, num);
	return num;
}

static uint32_t read_named_source(struct ibv_cq_ex *ex)
{
	struct shadow_cq *s = container_of(ex, struct shadow_cq, ex);

	return unlikely(s->has_source) ? s->src_qp : read_src_qp(ex);
}

static void read_tm_info(struct ibv_cq_ex *ex, struct ibv_wc_tm_info *tm_info)
{
	struct ibv_cq_ex *r = real_ex(ex);

	r->read_tm_info(r, tm_info);
}

/* A provider offers the readers of what has been asked for. */
void shadow_cq_ex_init(struct shadow_cq *cq, struct ibv_cq_ex *r)
{
	struct ibv_cq_ex *ex = &cq->ex;

	ex->comp_mask = r->comp_mask;
	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
#define OFFER(type, name, member) \
	ex->read_##name = r->read_##name ? read_##name : NULL;
	CQ_READERS(OFFER)
#undef OFFER
	if (ex->read_qp_num)
		ex->read_qp_num = read_named_qpn;
	if (ex->read_src_qp)
		ex->read_src_qp = read_named_source;
	ex->read_tm_info = r->read_tm_info ? read_tm_info : NULL;
	cq->tells_more = r->read_completion_ts ||
			 r->read_completion_wallclock_ns || r->read_cvlan ||
			 r->read_flow_tag || r->read_tm_info;
}
