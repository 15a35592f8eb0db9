// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "slots_inner.h"

#include <string.h>

#include "post.h"
#include "random.h"

enum {
	MOST_SLOTS = 1 << SLOT_BITS,
	MOST_SRQS = 1 << SRQ_BITS,
	FIRST_SLOTS = 64,
	MOST_RETIRED = 4096,
};

#define NONE UINT32_MAX

static struct slots *all[MOST_SRQS];
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
uint64_t slots_cookie;

/* --- all of them --- */

static bool enlist(struct slots *s)
{
	bool found = false;

	pthread_mutex_lock(&all_lock);
	if (!slots_cookie)
		slots_cookie = random_bits(64 - SRQ_BITS - SLOT_BITS);
	for (uint32_t i = 0; i < MOST_SRQS && !found; i++)
		if (!all[i]) {
			s->id = i;
			__atomic_store_n(&all[i], s, __ATOMIC_RELEASE);
			found = true;
		}
	pthread_mutex_unlock(&all_lock);
	return found;
}

struct slots *slots_new(const struct ibv_srq_attr *became)
{
	struct slots *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	pthread_mutex_init(&s->lock, NULL);
	s->max_sge = became->max_sge;
	s->max_wr = became->max_wr;
	s->free = NONE;
	if (enlist(s))
		return s;
	free(s);
	return NULL;
}

static void delete(struct slots *s)
{
	__atomic_store_n(&all[s->id], NULL, __ATOMIC_RELEASE);
	pthread_mutex_destroy(&s->lock);
	free(s->slot);
	free(s->sge);
	free(s);
}

void slots_retire(struct slots *s, struct shadow_context *c)
{
	bool is_used;

	/* other threads may poll the last ones, of any CQ of the context */
	pthread_mutex_lock(&s->lock);
	is_used = s->used;
	pthread_mutex_unlock(&s->lock);
	s->last_cq = c->cqs_made;
	if (is_used)
		LIST_INSERT_HEAD(&c->slots, s, entry);
	else
		delete (s);
}

/* the number of the oldest CQ that may have completions of SRQs */
static uint64_t oldest_cq(const struct shadow_context *c)
{
	const struct shadow_cq *cq;

	TAILQ_FOREACH (cq, &c->cqs, entry)
		if (atomic_load(&cq->slow) & CQ_SLOTS)
			return cq->number;
	return UINT64_MAX;
}

void slots_free_retired(struct shadow_context *c)
{
	const uint64_t oldest = oldest_cq(c);
	struct slots *s, *next;

	for (s = LIST_FIRST(&c->slots); s; s = next) {
		next = LIST_NEXT(s, entry);
		if (s->last_cq >= oldest)
			continue;
		LIST_REMOVE(s, entry);
		delete (s);
	}
}

unsigned int slots_retired(const struct shadow_context *c)
{
	const struct slots *s;
	unsigned int n = 0;

	LIST_FOREACH (s, &c->slots, entry)
		n++;
	return n;
}

/* the slot of this id, with the lock of all that are like it; or NULL */
static struct slots *find(uint64_t wr_id, uint32_t *slot)
{
	struct slots *s;

	if (!slots_cookie || wr_id >> (SRQ_BITS + SLOT_BITS) != slots_cookie)
		return NULL;
	s = __atomic_load_n(&all[wr_id >> SLOT_BITS & (MOST_SRQS - 1)],
			    __ATOMIC_ACQUIRE);
	if (!s)
		return NULL;
	*slot = wr_id & (MOST_SLOTS - 1);
	pthread_mutex_lock(&s->lock);
	if (*slot < s->n && s->slot[*slot].num_sge != FREE)
		return s;
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* --- slots, with the lock --- */

static bool grow(struct slots *s)
{
	uint32_t n = s->n ? 2 * s->n : FIRST_SLOTS;
	struct slot *slot;
	struct ibv_sge *sge;

	if (n > MOST_SLOTS)
		return false;
	slot = realloc(s->slot, n * sizeof(*slot));
	if (!slot)
		return false;
	s->slot = slot;
	sge = realloc(s->sge, (size_t)n * s->max_sge * sizeof(*sge));
	if (!sge && s->max_sge)
		return false;
	s->sge = sge;
	for (uint32_t i = n; i-- > s->n;) {
		slot[i].num_sge = FREE;
		slot[i].next = s->free;
		s->free = i;
	}
	s->n = n;
	return true;
}

void slot_put(struct slots *s, uint32_t i)
{
	s->slot[i].num_sge = FREE;
	s->slot[i].next = s->free;
	s->free = i;
	s->used--;
}

uint64_t slot_id(const struct slots *s, uint32_t i)
{
	return (slots_cookie << SRQ_BITS | s->id) << SLOT_BITS | i;
}

bool slot_take(struct slots *s, const struct ibv_recv_wr *wr, uint32_t *at)
{
	uint32_t i;

	if (s->free == NONE && !grow(s))
		return false;
	i = s->free;
	s->free = s->slot[i].next;
	s->slot[i] = (struct slot){ .wr_id = wr->wr_id,
				    .turn = s->turn++,
				    .num_sge = wr->num_sge };
	if (wr->num_sge)
		memcpy(&s->sge[(size_t)i * s->max_sge], wr->sg_list,
		       (size_t)wr->num_sge * sizeof(struct ibv_sge));
	s->used++;
	*at = i;
	return true;
}

/* the request that is in a slot */
static int post_slot(struct shadow_srq *srq, uint32_t i)
{
	struct slots *s = srq->slots;
	struct ibv_sge sge[MOST_SGES];
	struct ibv_recv_wr *bad, wr = {
		.wr_id = slot_id(s, i),
		.sg_list = sge,
		.num_sge = s->slot[i].num_sge,
	};
	int err;

	post_name_sges(srq->srq.context, sge, &s->sge[(size_t)i * s->max_sge],
		       wr.num_sge);
	err = srq->post_recv(srq->real, &wr, &bad);
	s->slot[i].posted = !err;
	return err;
}

/* --- what becomes of them --- */

bool slots_are_sure(const struct slots *s)
{
	return !s->unsure;
}

/* in the first piece of its memory, if it is not cut in that */
static void *grh_of(const struct slots *s, uint32_t i)
{
	const struct ibv_sge *sge = &s->sge[(size_t)i * s->max_sge];

	return s->datagrams && s->slot[i].num_sge > 0 &&
			       sge->length >= sizeof(struct ibv_grh)
		       ? (void *)(uintptr_t)sge->addr
		       : NULL;
}

uint64_t slots_take(uint64_t wr_id, void **grh)
{
	uint32_t i;
	struct slots *s = find(wr_id, &i);

	if (!s)
		return wr_id;
	wr_id = s->slot[i].wr_id;
	*grh = grh_of(s, i);
	slot_put(s, i);
	pthread_mutex_unlock(&s->lock);
	return wr_id;
}

void slots_resize(struct slots *s, uint32_t max_wr)
{
	pthread_mutex_lock(&s->lock);
	s->max_wr = max_wr;
	pthread_mutex_unlock(&s->lock);
}

void slots_all_in_child(void)
{
	pthread_mutex_init(&all_lock, NULL);
}

void slots_in_child(struct shadow_context *c)
{
	struct shadow_srq *srq;
	struct shadow_qp *qp;
	struct slots *s;

	TAILQ_FOREACH (srq, &c->srqs, entry)
		if (srq->slots) {
			pthread_mutex_init(&srq->slots->lock, NULL);
			srq->slots->hold = false;
		}
	TAILQ_FOREACH (qp, &c->qps, entry)
		if (qp->slots)
			pthread_mutex_init(&qp->slots->lock, NULL);
	LIST_FOREACH (s, &c->slots, entry)
		pthread_mutex_init(&s->lock, NULL);
}

/* --- of QPs --- */

void slots_of_datagrams(struct slots *s)
{
	pthread_mutex_lock(&s->lock);
	s->datagrams = true;
	pthread_mutex_unlock(&s->lock);
}

void slots_clear(struct slots *s)
{
	pthread_mutex_lock(&s->lock);
	for (uint32_t i = 0; i < s->n; i++)
		if (s->slot[i].num_sge != FREE)
			slot_put(s, i);
	pthread_mutex_unlock(&s->lock);
}

static bool is_used(struct slots *s)
{
	bool is;

	pthread_mutex_lock(&s->lock);
	is = s->used;
	pthread_mutex_unlock(&s->lock);
	return is;
}

/* A CQ is polled before that many QPs have ended, or been in RESET; with the lock. */
static void forget_oldest(struct shadow_context *c)
{
	struct slots *s, *oldest = NULL;

	if (slots_retired(c) <= MOST_RETIRED)
		return;
	LIST_FOREACH (s, &c->slots, entry)
		oldest = s;
	LIST_REMOVE(oldest, entry);
	delete (oldest);
}

/* @s: that it has from now on, or NULL */
static void use(struct shadow_qp *qp, struct slots *s)
{
	struct shadow_context *c = to_context(qp->qp.context);
	struct slots *old = qp->slots;

	__atomic_store_n(&qp->slots, s, __ATOMIC_RELEASE);
	pthread_mutex_lock(&c->lock);
	slots_retire(old, c);
	slots_free_retired(c);
	forget_oldest(c);
	pthread_mutex_unlock(&c->lock);
}

void slots_drop(struct shadow_qp *qp)
{
	if (qp->slots)
		use(qp, NULL);
}

void slots_renew(struct shadow_qp *qp)
{
	const struct ibv_srq_attr became = { .max_wr = qp->cap.max_recv_wr,
					     .max_sge = qp->cap.max_recv_sge };
	struct slots *s;

	/* another thread may be posting: only those are given up that stay where they are */
	if (!qp->slots || !is_used(qp->slots))
		return;
	s = slots_new(&became);
	if (!s)
		return;
	slots_of_datagrams(s);
	use(qp, s);
}

/* --- replacement --- */

void slots_hold(struct slots *s)
{
	pthread_mutex_lock(&s->lock);
	s->hold = true;
	pthread_mutex_unlock(&s->lock);
}

bool slots_flushed(uint64_t wr_id)
{
	uint32_t i;
	struct slots *s = find(wr_id, &i);

	if (!s)
		return false;
	s->slot[i].posted = false;
	pthread_mutex_unlock(&s->lock);
	return true;
}

void slots_flushed_all(struct slots *s)
{
	pthread_mutex_lock(&s->lock);
	for (uint32_t i = 0; i < s->n; i++)
		s->slot[i].posted = false;
	pthread_mutex_unlock(&s->lock);
}

static int by_turn(const void *a, const void *b, void *slots)
{
	const struct slots *s = slots;
	uint64_t one = s->slot[*(const uint32_t *)a].turn,
		 other = s->slot[*(const uint32_t *)b].turn;

	return one < other ? -1 : one > other;
}

int slots_post_again(struct shadow_srq *srq, unsigned int *n)
{
	struct slots *s = srq->slots;
	uint32_t *order, all = 0;
	int err = 0;

	*n = 0;
	pthread_mutex_lock(&s->lock);
	order = malloc((s->used + 1) * sizeof(*order));
	for (uint32_t i = 0; order && i < s->n; i++)
		if (s->slot[i].num_sge != FREE && !s->slot[i].posted)
			order[all++] = i;
	if (order)
		qsort_r(order, all, sizeof(*order), by_turn, s);
	else
		err = ENOMEM;
	for (; !err && *n < all; ++*n)
		err = post_slot(srq, order[*n]);
	s->hold = err;
	pthread_mutex_unlock(&s->lock);
	free(order);
	return err;
}
