// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "recvq.h"

#include <sched.h>

#include "cancel.h"
#include "post.h"
#include "section.h"
#include "taken.h"

struct recv {
	uint64_t wr_id;
	int num_sge; /* of the first place: NEVER, until it is used */
};

#define NEVER (-1)

struct recvq {
	_Atomic(struct section *) owner; /* a thread, or nobody yet, or... */
	atomic_bool busy;		 /* it is posting */
	atomic_bool unsure; /* what the provider has, as it has not said so */
	unsigned int next;  /* where the next one goes */
	uint32_t size;	    /* twice @most */
	uint32_t max_sge;
	struct recv *recv;
	struct ibv_sge *sge; /* @max_sge of each */

	pthread_mutex_t lock;
	pthread_cond_t counted;
	uint32_t most;	    /* the provider has at a time */
	uint32_t flushed;   /* that it had */
	bool is_counted;    /* there will be no more of them */
	uint32_t collected; /* since then */
	unsigned int first; /* of both, whoever has them since then */
};

/* ...all, with the lock */
static struct section everybody;

struct recvq *recvq_new(const struct ibv_qp_cap *cap)
{
	struct recvq *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->most = cap->max_recv_wr;
	q->size = 2 * q->most;
	q->max_sge = cap->max_recv_sge;
	q->recv = calloc(q->size ? q->size : 1, sizeof(*q->recv));
	q->sge = calloc((size_t)q->size * q->max_sge + 1, sizeof(*q->sge));
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->counted, NULL);
	if (!q->recv || !q->sge) {
		recvq_free(q);
		return NULL;
	}
	q->recv[0].num_sge = NEVER;
	return q;
}

void recvq_free(struct recvq *q)
{
	if (!q)
		return;
	pthread_cond_destroy(&q->counted);
	pthread_mutex_destroy(&q->lock);
	free(q->recv);
	free(q->sge);
	free(q);
}

/* --- keeping: by the owner, or with the lock --- */

static void keep(struct recvq *q, const struct ibv_recv_wr *wr)
{
	struct ibv_sge *sge = &q->sge[(size_t)q->next * q->max_sge];
	struct recv *r = &q->recv[q->next];

	r->wr_id = wr->wr_id;
	r->num_sge = wr->num_sge;
	for (int i = 0; i < wr->num_sge; i++)
		sge[i] = wr->sg_list[i];
	if (++q->next == q->size)
		q->next = 0;
}

/* the bad one, if it is one of these; what a provider says need not be */
static __attribute__((noinline)) struct ibv_recv_wr *
find_bad(struct recvq *q, struct ibv_recv_wr *wr, struct ibv_recv_wr *bad)
{
	struct ibv_recv_wr *first = wr;

	while (wr && wr != bad)
		wr = wr->next;
	if (wr || !first)
		return wr;
	if (!first->next)
		return first;
	atomic_store(&q->unsure, true);
	return NULL;
}

/* what the provider has taken, which is all before @bad */
static int post_and_keep(struct shadow_qp *qp, struct ibv_recv_wr *wr,
			 struct ibv_recv_wr **bad_wr)
{
	struct ibv_recv_wr *bad = NULL;
	int err = post_recv_real(qp, wr, &bad);

	if (unlikely(err)) {
		bad = find_bad(qp->recvq, wr, bad);
		*bad_wr = bad;
		if (!bad)
			return err;
	}
	for (; wr != bad; wr = wr->next)
		keep(qp->recvq, wr);
	return err;
}

/* as the provider would: as many as it has room for */
static int collect(struct shadow_qp *qp, struct ibv_recv_wr *wr,
		   struct ibv_recv_wr **bad_wr)
{
	struct recvq *q = qp->recvq;

	for (; wr; wr = wr->next) {
		*bad_wr = wr;
		if (is_unplugged(qp->qp.context))
			return EIO;
		if (wr->num_sge < 0 || (uint32_t)wr->num_sge > q->max_sge)
			return EINVAL;
		if ((q->next + q->size - q->first) % q->size >= q->most)
			return ENOMEM;
		keep(q, wr);
		q->collected++;
	}
	return 0;
}

/* --- who may --- */

/* with the lock: the ring is everybody's, or this thread's */
static void acquire(struct recvq *q)
{
	struct section *owner = atomic_load(&q->owner);

	if (!owner) {
		atomic_store(&q->owner, &own_section);
	} else if (owner != &everybody && owner != &own_section) {
		atomic_store(&q->owner, &everybody);
		sections_barrier();
		while (atomic_load_explicit(&q->busy, memory_order_acquire))
			sched_yield();
	}
}

/*
 * How many there is room for is known when all are flushed: who posts until there is no
 * room any more has to wait for that. Nobody waits for his section meanwhile.
 */
static int post_held(struct shadow_qp *qp, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad_wr)
{
	struct recvq *q = qp->recvq;
	int err = 0, cancel = cancel_off();
	bool held;

	while (atomic_load(&qp->slow) & SLOW_RECVS && !q->is_counted)
		pthread_cond_wait(&q->counted, &q->lock);
	cancel_back(cancel);
	held = atomic_load(&qp->slow) & SLOW_RECVS;
	if (held)
		err = collect(qp, wr, bad_wr);
	pthread_mutex_unlock(&q->lock);
	return held ? err : recvq_post(qp, wr, bad_wr);
}

/* within a section */
static __attribute__((noinline)) int post_slow(struct shadow_qp *qp,
					       struct ibv_recv_wr *wr,
					       struct ibv_recv_wr **bad_wr)
{
	struct recvq *q = qp->recvq;
	int err;

	pthread_mutex_lock(&q->lock);
	acquire(q);
	if (atomic_load(&qp->slow) & SLOW_RECVS) {
		section_end();
		return post_held(qp, wr, bad_wr);
	}
	err = post_and_keep(qp, wr, bad_wr);
	pthread_mutex_unlock(&q->lock);
	section_end();
	return err;
}

static __attribute__((noinline)) int post_first(struct shadow_qp *qp,
						struct ibv_recv_wr *wr,
						struct ibv_recv_wr **bad_wr)
{
	section_enlist();
	return post_slow(qp, wr, bad_wr);
}

static bool is_mine(struct recvq *q)
{
	return atomic_load_explicit(&q->owner, memory_order_relaxed) ==
	       &own_section;
}

int recvq_post(struct shadow_qp *qp, struct ibv_recv_wr *wr,
	       struct ibv_recv_wr **bad_wr)
{
	struct recvq *q = qp->recvq;
	int err;

	if (unlikely(!section_enter()))
		return post_first(qp, wr, bad_wr);
	if (unlikely(!is_mine(q) ||
		     atomic_load_explicit(&qp->slow, memory_order_acquire) &
			     SLOW_RECVS))
		return post_slow(qp, wr, bad_wr);
	atomic_store_explicit(&q->busy, true, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (unlikely(!is_mine(q))) {
		atomic_store_explicit(&q->busy, false, memory_order_release);
		return post_slow(qp, wr, bad_wr);
	}
	err = post_and_keep(qp, wr, bad_wr);
	atomic_store_explicit(&q->busy, false, memory_order_release);
	section_end();
	return err;
}

void recvq_reset(struct recvq *q)
{
	atomic_store(&q->unsure, false);
}

bool recvq_is_sure(const struct recvq *q)
{
	return !atomic_load(&q->unsure);
}

bool recvq_is_unused(struct recvq *q)
{
	bool unused;

	pthread_mutex_lock(&q->lock);
	unused = q->recv[0].num_sge == NEVER;
	pthread_mutex_unlock(&q->lock);
	return unused;
}

/* The owner may be another thread, in the midst of it. */
void recvq_in_child(struct recvq *q)
{
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->counted, NULL);
	atomic_store(&q->busy, false);
	atomic_store(&q->owner, &everybody);
}

/* --- replacement --- */

void recvq_counted(struct recvq *q, uint32_t n)
{
	uint32_t all;

	pthread_mutex_lock(&q->lock);
	q->flushed += n;
	all = q->flushed + q->collected;
	q->first = (q->next + q->size - all % q->size) % q->size;
	q->is_counted = true;
	pthread_cond_broadcast(&q->counted);
	pthread_mutex_unlock(&q->lock);
}

/* None of them has completed: the QP has not been connected since. */
bool recvq_flush(struct shadow_qp *qp)
{
	struct shadow_cq *cq = to_cq(qp->qp.recv_cq);
	struct recvq *q = qp->recvq;
	bool all = true;

	pthread_mutex_lock(&q->lock);
	while (all && q->first != q->next) {
		all = taken_flush(cq, qp->qp.qp_num, q->recv[q->first].wr_id);
		if (all)
			q->first = (q->first + 1) % q->size;
	}
	q->is_counted = true; /* who waits for that is refused */
	pthread_cond_broadcast(&q->counted);
	pthread_mutex_unlock(&q->lock);
	return all;
}

static int post_kept(struct shadow_qp *qp, unsigned int i)
{
	struct recvq *q = qp->recvq;
	struct ibv_recv_wr *bad, wr = {
		.wr_id = q->recv[i].wr_id,
		.sg_list = &q->sge[(size_t)i * q->max_sge],
		.num_sge = q->recv[i].num_sge,
	};

	return post_recv_real(qp, &wr, &bad);
}

int recvq_post_again(struct shadow_qp *qp, unsigned int *n)
{
	struct recvq *q = qp->recvq;
	unsigned int all;
	int err = 0;

	pthread_mutex_lock(&q->lock);
	acquire(q);
	all = q->flushed + q->collected;
	if (all > q->size)
		err = EOVERFLOW; /* the provider had more than it has told */
	for (*n = 0; !err && *n < all; ++*n)
		err = post_kept(qp, (q->next + q->size - all + *n) % q->size);
	if (!err) {
		atomic_fetch_and(&qp->slow, (unsigned char)~SLOW_RECVS);
		q->is_counted = false;
		pthread_cond_broadcast(&q->counted);
	} else if (*n) {
		--*n; /* that one was not taken */
	}
	/* what was taken is flushed once more, if it is tried again */
	all = *n < q->flushed ? *n : q->flushed;
	q->flushed -= all;
	q->collected -= *n - all;
	atomic_store(&q->owner, NULL); /* who comes next */
	pthread_mutex_unlock(&q->lock);
	return err;
}
