// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "post.h"

#include <string.h>

#include "bound.h"
#include "elsewhere.h"
#include "recvq.h"
#include "section.h"
#include "sendq.h"
#include "slots.h"

/*
 * The application's requests must not be changed, so copies are posted, some at a time.
 * It learns which one was bad by its own address; some providers tell nothing.
 */
enum {
	AT_ONCE = 8,
	FEW_SGES = 4
};

/* --- names --- */

int post_name_sges(const struct ibv_context *ctx, struct ibv_sge *to,
		   const struct ibv_sge *from, int n)
{
	for (int i = 0; i < n; i++) {
		to[i] = from[i];
		to[i].lkey = post_lkey(ctx, from[i].lkey);
	}
	return n > 0 ? n : 0;
}

/* --- windows --- */

/* of the copies, those that have to do with windows */
struct noted {
	int n;
	struct {
		int at;
		struct bound_note note;
	} all[AT_ONCE];
};

static void note(struct noted *noted, struct shadow_qp *s,
		 const struct ibv_send_wr *wr, int at)
{
	noted->all[noted->n].at = at;
	bound_post(s, wr, &noted->all[noted->n++].note);
}

/* those from @bad on were not posted; -1: nobody knows which */
static void refused(const struct noted *noted, int bad)
{
	for (int i = noted->n - 1; i >= 0 && noted->all[i].at >= bad; i--)
		bound_refused(&noted->all[i].note, bad < 0);
}

/* @key: of the window, when the application has posted this */
static void name_bind(struct ibv_send_wr *wr, uint32_t key)
{
	wr->bind_mw.mw =
		real_mw_to_bind(wr->bind_mw.mw, key, &wr->bind_mw.rkey);
	wr->bind_mw.bind_info = real_bind_info(&wr->bind_mw.bind_info);
}

/* --- send --- */

/* the copy at @at of a request becomes one of real objects; its SGEs stay as they are */
static void name_wr(struct shadow_qp *s, struct ibv_send_wr *wr,
		    struct noted *noted, int at)
{
	if (s->qp.qp_type == IBV_QPT_UD && wr->opcode != IBV_WR_BIND_MW &&
	    wr->opcode != IBV_WR_LOCAL_INV) {
		wr->wr.ud.ah =
			elsewhere_ah(wr->wr.ud.ah, &wr->wr.ud.remote_qpn);
		return;
	}
	switch (wr->opcode) {
	case IBV_WR_BIND_MW:
		note(noted, s, wr, at);
		name_bind(wr, wr->bind_mw.mw->rkey);
		break;
	case IBV_WR_RDMA_READ:
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_FLUSH:
	case IBV_WR_ATOMIC_WRITE:
		wr->wr.rdma.rkey = post_rkey(s, wr->wr.rdma.rkey);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wr->wr.atomic.rkey = post_rkey(s, wr->wr.atomic.rkey);
		break;
	case IBV_WR_SEND_WITH_INV:
		wr->invalidate_rkey = post_rkey(s, wr->invalidate_rkey);
		break;
	case IBV_WR_LOCAL_INV:
		note(noted, s, wr, at);
		wr->invalidate_rkey =
			post_lkey(s->qp.context, wr->invalidate_rkey);
		break;
	default:
		break;
	}
}

/* the application's request of a copy; a provider may say anything, or nothing */
#define BAD(bad, copy, of, n) \
	((bad) >= (copy) && (bad) < (copy) + (n) ? (of)[(bad) - (copy)] : NULL)

static int post_copies(struct shadow_qp *s, struct ibv_send_wr *wr,
		       struct ibv_send_wr **bad_wr)
{
	bool names = atomic_load(&s->slow) & SLOW_NAMES;
	struct ibv_send_wr copy[AT_ONCE], *of[AT_ONCE], *bad = NULL;
	struct ibv_sge sge[MOST_SGES];
	struct noted noted;
	int n, sges, err;

	do {
		noted.n = sges = 0;
		for (n = 0; wr && n < AT_ONCE; n++, wr = wr->next) {
			if (names && wr->num_sge > MOST_SGES - sges)
				break;
			of[n] = wr;
			copy[n] = *wr;
			name_wr(s, &copy[n], &noted, n);
			if (names) {
				copy[n].sg_list = &sge[sges];
				sges += post_name_sges(s->qp.context,
						       &sge[sges], wr->sg_list,
						       wr->num_sge);
			}
			copy[n].next = NULL;
			if (n)
				copy[n - 1].next = &copy[n];
		}
		if (wr && !n) {
			*bad_wr = wr;
			return EINVAL;
		}
		err = s->post_send(s->real, n ? copy : NULL, &bad);
	} while (!err && wr);

	if (err) {
		*bad_wr = BAD(bad, copy, of, n);
		refused(&noted, *bad_wr ? (int)(bad - copy) : -1);
	}
	return err;
}

int post_bind(struct shadow_qp *s, const struct ibv_send_wr *wr, uint32_t key)
{
	struct ibv_send_wr copy = *wr, *bad = NULL;
	struct bound_note note;
	int err;

	bound_post(s, wr, &note);
	name_bind(&copy, key);
	err = s->post_send(s->real, &copy, &bad);
	if (err)
		bound_refused(&note, bad != &copy);
	return err;
}

/* no more of a request than a SEND, WRITE or READ has; the rest is not looked at */
#define USUAL_BYTES offsetof(struct ibv_send_wr, bind_mw)

/* the usual request, alone */
static inline int post_usual(struct shadow_qp *s, struct ibv_send_wr *wr,
			     struct ibv_send_wr **bad_wr)
{
	struct ibv_send_wr copy, *bad = NULL;
	struct ibv_sge sge[FEW_SGES];
	int err;

	memcpy(&copy, wr, USUAL_BYTES);
	copy.sg_list = sge;
	for (int i = 0; i < wr->num_sge; i++) {
		sge[i] = wr->sg_list[i];
		sge[i].lkey = post_lkey(s->qp.context, sge[i].lkey);
	}
	if (wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_IMM)
		copy.wr.rdma.rkey = post_rkey(s, wr->wr.rdma.rkey);
	err = s->post_send(s->real, &copy, &bad);
	if (unlikely(err))
		*bad_wr = bad == &copy ? wr : NULL;
	return err;
}

static bool is_usual(const struct shadow_qp *s, const struct ibv_send_wr *wr)
{
	const unsigned int usual =
		1U << IBV_WR_RDMA_WRITE | 1U << IBV_WR_RDMA_WRITE_WITH_IMM |
		1U << IBV_WR_SEND | 1U << IBV_WR_SEND_WITH_IMM |
		1U << IBV_WR_RDMA_READ;

	return wr && !wr->next && wr->num_sge <= FEW_SGES &&
	       (unsigned int)wr->opcode < 32 && usual >> wr->opcode & 1 &&
	       s->qp.qp_type != IBV_QPT_UD;
}

int post_send_real(struct shadow_qp *s, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad_wr)
{
	unsigned char slow = atomic_load(&s->slow);

	if (slow & SLOW_NAMES && is_usual(s, wr))
		return post_usual(s, wr, bad_wr);
	if (slow & (SLOW_AH | SLOW_MW | SLOW_NAMES))
		return post_copies(s, wr, bad_wr);
	return s->post_send(s->real, wr, bad_wr);
}

/*
 * A thread's first post, and those that need more than the provider; within a section.
 * A batch may have the lock for long, and nobody is to wait for us meanwhile.
 */
static __attribute__((noinline)) int post_slow(struct shadow_qp *s,
					       struct ibv_send_wr *wr,
					       struct ibv_send_wr **bad_wr)
{
	bool suspended;
	int err = 0;

	while (atomic_load(&s->slow) & SLOW_SUSPENDED) {
		section_end();
		pthread_mutex_lock(&s->lock);
		suspended = atomic_load(&s->slow) & SLOW_SUSPENDED;
		if (suspended)
			err = sendq_add(s, wr, bad_wr);
		pthread_mutex_unlock(&s->lock);
		if (suspended)
			return err;
		section_begin();
	}
	err = post_send_real(s, wr, bad_wr);
	section_end();
	return err;
}

static __attribute__((noinline)) int post_first(struct shadow_qp *s,
						struct ibv_send_wr *wr,
						struct ibv_send_wr **bad_wr)
{
	section_enlist();
	return post_slow(s, wr, bad_wr);
}

/* as long as nothing is replaced again; within a section */
static __attribute__((noinline)) int post_named(struct shadow_qp *s,
						struct ibv_send_wr *wr,
						struct ibv_send_wr **bad_wr)
{
	int err = likely(is_usual(s, wr)) ? post_usual(s, wr, bad_wr)
					  : post_copies(s, wr, bad_wr);

	section_end();
	return err;
}

int shadow_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		     struct ibv_send_wr **bad_wr)
{
	struct shadow_qp *s = to_qp(qp);
	unsigned char slow;
	int err;

	if (unlikely(!section_enter()))
		return post_first(s, wr, bad_wr);
	slow = atomic_load_explicit(&s->slow, memory_order_acquire);
	if (unlikely(slow))
		return slow == SLOW_NAMES ? post_named(s, wr, bad_wr)
					  : post_slow(s, wr, bad_wr);
	err = s->post_send(s->real, wr, bad_wr);
	section_end();
	return err;
}

/* --- receive --- */

int post_recv_named(struct shadow_qp *s, struct ibv_recv_wr *wr,
		    struct ibv_recv_wr **bad_wr)
{
	struct ibv_recv_wr copy[AT_ONCE], *of[AT_ONCE], *bad = NULL;
	struct ibv_sge sge[MOST_SGES];
	int n, sges, err;

	if (s->slots)
		return slots_post_qp(s, wr, bad_wr);
	do {
		sges = 0;
		for (n = 0; wr && n < AT_ONCE; n++, wr = wr->next) {
			if (wr->num_sge > MOST_SGES - sges)
				break;
			of[n] = wr;
			copy[n] = *wr;
			copy[n].sg_list = &sge[sges];
			sges += post_name_sges(s->qp.context, &sge[sges],
					       wr->sg_list, wr->num_sge);
			copy[n].next = NULL;
			if (n)
				copy[n - 1].next = &copy[n];
		}
		if (wr && !n) {
			*bad_wr = wr;
			return EINVAL;
		}
		err = s->post_recv(s->real, n ? copy : NULL, &bad);
	} while (!err && wr);

	if (err)
		*bad_wr = BAD(bad, copy, of, n);
	return err;
}

int shadow_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad_wr)
{
	struct shadow_qp *s = to_qp(qp);

	if (s->recvq)
		return recvq_post(s, wr, bad_wr);
	return s->post_recv(s->real, wr, bad_wr);
}
