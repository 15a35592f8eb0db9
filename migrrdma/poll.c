// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ibv_poll_cq()
 */
#include "bound.h"
#include "elsewhere.h"
#include "names.h"
#include "section.h"
#include "slots.h"
#include "taken.h"

void cq_name(struct shadow_cq *s, struct ibv_wc *wc)
{
	unsigned char slow =
		atomic_load_explicit(&s->slow, memory_order_acquire);
	void *grh;

	if (slow & CQ_SLOTS) {
		wc->wr_id = slots_done(wc->wr_id, &grh);
		if (grh && wc->status == IBV_WC_SUCCESS &&
		    wc->wc_flags & IBV_WC_GRH)
			wc->src_qp = elsewhere_source(s->cq.context, grh,
						      wc->src_qp);
	}
	if (slow & CQ_NAMES)
		wc->qp_num =
			names_qpn(to_context(s->cq.context)->qpns, wc->qp_num);
}

static int poll_named(struct shadow_cq *s, int num_entries, struct ibv_wc *wc)
{
	int n = s->poll(s->real, num_entries, wc);

	for (int i = 0; i < n; i++)
		cq_name(s, &wc[i]);
	return n;
}

void cq_look(struct shadow_cq *s, struct ibv_wc *wc)
{
	if (atomic_load(&s->slow) & CQ_WINDOWS)
		bound_completed(to_context(s->cq.context), wc);
	cq_name(s, wc);
}

int cq_poll_real(struct shadow_cq *s, int num_entries, struct ibv_wc *wc)
{
	int n = s->poll(s->real, num_entries, wc);

	for (int i = 0; i < n; i++)
		cq_look(s, &wc[i]);
	return n;
}

/* with completions that are the layer's, or windows */
static __attribute__((noinline)) int
poll_slower(struct shadow_cq *s, int num_entries, struct ibv_wc *wc)
{
	int n;

	if (atomic_load(&s->slow) & CQ_SLOW) {
		section_end(); /* who waits for its end may have the lock */
		pthread_mutex_lock(&s->lock);
		n = taken_poll(s, num_entries, wc);
		pthread_mutex_unlock(&s->lock);
	} else {
		n = cq_poll_real(s, num_entries, wc);
		section_end();
	}
	return n;
}

/* a thread's first poll, and those of which something is the layer's; within a section */
static __attribute__((noinline)) int
poll_slow(struct shadow_cq *s, int num_entries, struct ibv_wc *wc)
{
	int n;

	if (atomic_load(&s->slow) & (CQ_SLOW | CQ_WINDOWS))
		return poll_slower(s, num_entries, wc);
	n = poll_named(s, num_entries, wc);
	section_end();
	return n;
}

static __attribute__((noinline)) int
poll_first(struct shadow_cq *s, int num_entries, struct ibv_wc *wc)
{
	section_enlist();
	return poll_slow(s, num_entries, wc);
}

int shadow_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	struct shadow_cq *s = to_cq(cq);
	int n;

	if (unlikely(!section_enter()))
		return poll_first(s, num_entries, wc);
	if (unlikely(atomic_load_explicit(&s->slow, memory_order_acquire)))
		return poll_slow(s, num_entries, wc);
	n = s->poll(s->real, num_entries, wc);
	section_end();
	return n;
}
