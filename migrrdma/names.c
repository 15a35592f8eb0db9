// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "names.h"

#include "gate.h"

/* --- tables --- */

struct names *names_new(void)
{
	return calloc(1, sizeof(struct names));
}

void names_free(struct names *n)
{
	for (unsigned int i = 0; n && i < NAMES_PARTS; i++)
		free((void *)atomic_load(&n->part[i]));
	free(n);
}

int names_set(struct names *n, uint32_t index, uint32_t entry)
{
	_Atomic(_Atomic uint32_t *) *at = &n->part[index >> NAMES_PART_BITS];
	_Atomic uint32_t *part = atomic_load(at);

	if (!part && !entry)
		return 0;
	if (!part) {
		part = calloc(NAMES_IN_PART, sizeof(*part));
		if (!part)
			return ENOMEM;
		atomic_store(at, part);
		n->parts++;
	}
	atomic_store(&part[index % NAMES_IN_PART], entry);
	return 0;
}

int names_set_key(struct names *n, uint32_t key, uint32_t real)
{
	return names_set(n, key >> 8, (real & ~0xffU) | ((real - key) & 0xff));
}

void names_clear(struct names *n)
{
	_Atomic uint32_t *part;

	for (unsigned int i = 0; i < NAMES_PARTS; i++) {
		part = atomic_load(&n->part[i]);
		for (unsigned int k = 0; part && k < NAMES_IN_PART; k++)
			atomic_store(&part[k], 0);
	}
}

void names_each(const struct names *n,
		void (*f)(void *arg, uint32_t index, uint32_t entry), void *arg)
{
	_Atomic uint32_t *part;
	uint32_t entry;

	for (uint32_t i = 0; i < NAMES_PARTS; i++) {
		part = atomic_load(&n->part[i]);
		for (uint32_t k = 0; part && k < NAMES_IN_PART; k++) {
			entry = atomic_load(&part[k]);
			if (entry)
				f(arg, i << NAMES_PART_BITS | k, entry);
		}
	}
}

/* --- keys --- */

/*
 * Names that are not the real keys, when all was replaced the last time, in one table, as
 * peers have one of a process; and those of a replacement that is under way. Written with
 * the gate closed.
 */
static struct told {
	struct names *names;
	size_t n;
	int err;
} told, other_told;
static atomic_uint turn;

static void note_told(void *arg, uint32_t index, uint32_t entry)
{
	struct told *t = arg;

	if (t->err || entry == index << 8)
		return;
	t->err = names_set(t->names, index, entry);
	t->n++;
}

int names_note_told(void)
{
	const struct shadow_context *c;

	other_told = (struct told){ .names = names_new() };
	if (!other_told.names)
		return ENOMEM;
	TAILQ_FOREACH (c, &contexts, entry)
		names_each(c->other_keys, note_told, &other_told);
	return other_told.err;
}

void names_swap_told(void)
{
	struct told before = told;

	told = other_told;
	other_told = before;
	turn++;
}

void names_drop_told(void)
{
	names_free(other_told.names);
	other_told = (struct told){};
}

size_t names_told(void)
{
	return told.n;
}

unsigned int names_turn(void)
{
	return turn;
}

int names_own_key(struct names *n, uint32_t key)
{
	if (told.n && names_get(told.names, key >> 8))
		return EEXIST;
	return n ? names_set_key(n, key, key) : 0;
}

void names_drop_key(struct names *n, uint32_t key)
{
	uint32_t index = key >> 8;

	if (names_get(n, index) != index << 8)
		names_set(n, index, 0);
}

int names_mr(struct shadow_mr *s)
{
	struct names *n = to_context(s->mr.context)->keys;
	const struct ibv_mr *r = s->real;
	int err = names_own_key(n, r->lkey);

	if (!err && r->rkey) /* none is none */
		err = names_own_key(n, r->rkey);
	s->mr.lkey = err ? NO_KEY : r->lkey;
	s->mr.rkey = err ? NO_KEY : r->rkey;
	return err;
}

void names_drop_mr(struct shadow_mr *s)
{
	struct names *n = to_context(s->mr.context)->keys;

	if (!n)
		return;
	names_drop_key(n, s->mr.lkey);
	if (s->mr.rkey)
		names_drop_key(n, s->mr.rkey);
}

int names_rename_mr(struct names *n, const struct shadow_mr *s,
		    const struct ibv_mr *real)
{
	int err = names_set_key(n, s->mr.lkey, real->lkey);

	if (!err && s->mr.rkey)
		err = names_set_key(n, s->mr.rkey, real->rkey);
	return err;
}

/* --- numbers of QPs --- */

static bool has_qpn(struct shadow_context *c, uint32_t num)
{
	const struct shadow_qp *qp;

	pthread_mutex_lock(&c->lock);
	TAILQ_FOREACH (qp, &c->qps, entry)
		if (qp->qp.qp_num == num)
			break;
	pthread_mutex_unlock(&c->lock);
	return qp;
}

/*
 * Devices give out the same numbers, but one device, opened twice, does not: the real one,
 * which may have two shadows, if one was listed on another host.
 */
static bool is_qpn(const struct ibv_device *device, uint32_t num)
{
	struct shadow_context *c;

	TAILQ_FOREACH (c, &contexts, entry)
		if (c->real->device == device && has_qpn(c, num))
			return true;
	return false;
}

/* Are there names that are not the real numbers? */
static bool has_names(const struct ibv_device *device)
{
	const struct shadow_context *c;

	TAILQ_FOREACH (c, &contexts, entry)
		if (c->real->device == device && c->qpns)
			return true;
	return false;
}

int names_qpns(struct shadow_context *c)
{
	struct names *n = c->qpns ? c->qpns : names_new();
	struct shadow_cq *cq;

	if (!n)
		return ENOMEM;
	pthread_mutex_lock(&c->lock);
	c->qpns = n;
	TAILQ_FOREACH (cq, &c->cqs, entry)
		atomic_fetch_or(&cq->slow, CQ_NAMES);
	pthread_mutex_unlock(&c->lock);
	return 0;
}

int names_qp(struct shadow_qp *qp)
{
	struct shadow_context *c = to_context(qp->qp.context);
	uint32_t num = qp->real->qp_num;

	if (has_names(c->real->device) && is_qpn(c->real->device, num)) {
		if (names_qpns(c))
			return ENOMEM;
		for (num = 0xfffffe; is_qpn(c->real->device, num); num--)
			;
	}
	qp->qp.qp_num = num;
	return c->qpns ? names_set(c->qpns, qp->real->qp_num, num) : 0;
}
