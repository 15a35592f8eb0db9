// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The objects of one context, found in the pools of their device, which hold
 * the objects of all contexts.
 *
 * The core frees most objects with plain kfree(), so RCU does not protect who
 * looks at what it finds in a pool. The lock of the pool's xarray does: an
 * object in it has not been erased by __rxe_cleanup(), which happens before it
 * is freed. A reference that is taken under the lock makes __rxe_cleanup(), and
 * with it the core and the object's uobject, wait. Objects of others are judged
 * under the lock and get no reference: some AHs of the kernel cannot wait.
 */
#include <linux/wait_bit.h>

#include "rxe.h"

/**
 * rxe_migr_uobject - the uobject of an object
 * @elem: its element; a reference to it, or the lock of the pool, is held
 *
 * The core's own uobjects all begin with struct ib_uobject.
 *
 * Return: it, or NULL if the object belongs to the kernel, or if it is an AH or
 * MR that the core has not finished
 */
struct ib_uobject *rxe_migr_uobject(struct rxe_pool_elem *elem)
{
	void *obj = elem->obj;

	switch (elem->pool->type) {
	case RXE_TYPE_PD:
		return ((struct rxe_pd *)obj)->ibpd.uobject;
	case RXE_TYPE_AH:
		return READ_ONCE(((struct rxe_ah *)obj)->ibah.uobject);
	case RXE_TYPE_SRQ:
		return (void *)((struct rxe_srq *)obj)->ibsrq.uobject;
	case RXE_TYPE_QP:
		return (void *)((struct rxe_qp *)obj)->ibqp.uobject;
	case RXE_TYPE_CQ:
		return (void *)((struct rxe_cq *)obj)->ibcq.uobject;
	case RXE_TYPE_MR:
		return READ_ONCE(((struct rxe_mr *)obj)->ibmr.uobject);
	case RXE_TYPE_MW:
		return ((struct rxe_mw *)obj)->ibmw.uobject;
	default:
		return NULL;
	}
}

/* Context: lock of the pool held, also by who changes the PD of an MR */
static struct ib_ucontext *context_of(struct rxe_pool_elem *elem)
{
	struct ib_uobject *uobj = rxe_migr_uobject(elem);
	struct ib_pd *pd = NULL;

	/* these get theirs last */
	if (!uobj && elem->pool->type == RXE_TYPE_AH)
		pd = ((struct rxe_ah *)elem->obj)->ibah.pd;
	if (!uobj && elem->pool->type == RXE_TYPE_MR)
		pd = ((struct rxe_mr *)elem->obj)->ibmr.pd;
	if (pd)
		uobj = pd->uobject;

	return uobj ? uobj->context : NULL;
}

/**
 * rxe_migr_next - the next object of a context in a pool
 * @pool: the pool
 * @uc: the context; only compared, not looked into
 * @index: where to begin, 0 at first; receives where to go on
 *
 * Context: process; sleeps.
 * Return: its element with a reference, or NULL
 */
struct rxe_pool_elem *rxe_migr_next(struct rxe_pool *pool,
				    struct ib_ucontext *uc,
				    unsigned long *index)
{
	struct rxe_pool_elem *elem;
	unsigned long i = *index;

	xa_lock(&pool->xa);
	xa_for_each_start(&pool->xa, i, elem, i) {
		if (context_of(elem) == uc && __rxe_get(elem))
			break;
		cond_resched_lock(&pool->xa.xa_lock);
	}
	xa_unlock(&pool->xa);
	*index = i + 1;

	return elem;
}

/**
 * rxe_migr_get - an object of whatever context, by its index
 * @pool: the pool
 * @index: the index
 *
 * Context: process
 * Return: its element with a reference, or NULL
 */
struct rxe_pool_elem *rxe_migr_get(struct rxe_pool *pool, u32 index)
{
	struct rxe_pool_elem *elem;

	xa_lock(&pool->xa);
	elem = xa_load(&pool->xa, index);
	if (elem && !__rxe_get(elem))
		elem = NULL;
	xa_unlock(&pool->xa);

	return elem;
}

/**
 * rxe_migr_set_pd - hook in rxe_rereg_user_mr()
 * @mr: the MR
 * @pd: its new PD, with a reference
 *
 * The core may free the old PD when this has returned.
 */
void rxe_migr_set_pd(struct rxe_mr *mr, struct ib_pd *pd)
{
	struct xarray *xa = &mr->elem.pool->xa;

	xa_lock(xa);
	mr->ibmr.pd = pd;
	xa_unlock(xa);
}

/* as many as fit into @max of @qps get a reference; returns how many exist */
static unsigned int get_qps(struct rxe_pool *pool, struct ib_ucontext *uc,
			    struct rxe_qp **qps, unsigned int max,
			    unsigned int *n)
{
	struct rxe_pool_elem *elem;
	unsigned long index = 0;
	unsigned int all = 0;

	*n = 0;
	while ((elem = rxe_migr_next(pool, uc, &index))) {
		if (all++ < max)
			qps[(*n)++] = elem->obj;
		else
			__rxe_put(elem);
	}

	return all;
}

static void put_qps(struct rxe_qp **qps, unsigned int n)
{
	while (n--)
		rxe_put(qps[n]);
	kvfree(qps);
}

/**
 * rxe_migr_collect - take references to all QPs of a context
 * @uc: the context
 * @qps: receives an array, to be given to rxe_migr_release()
 * @n: receives its length
 *
 * Until they are released the QPs are not destroyed, and neither are their uobjects,
 * for however long: see rxe_migr_hide_qp().
 *
 * Context: process; sleeps.
 * Return: 0 or -ENOMEM
 */
int rxe_migr_collect(struct ib_ucontext *uc, struct rxe_qp ***qps,
		     unsigned int *n)
{
	struct rxe_pool *pool = &to_rdev(uc->device)->qp_pool;
	unsigned int max = 0;
	unsigned int all = 0;

	/* before the lock of the pool is taken: see rxe_migr_hide_qp() */
	atomic_inc(&to_migr_uc(uc)->collectors);
	do {
		max = max(all, max + 16); /* more may come meanwhile */
		*qps = kvcalloc(max, sizeof(**qps), GFP_KERNEL);
		if (!*qps) {
			rxe_migr_release(uc, NULL, 0);
			return -ENOMEM;
		}
		all = get_qps(pool, uc, *qps, max, n);
		if (all > max)
			put_qps(*qps, *n);
	} while (all > max);

	return 0;
}

/**
 * rxe_migr_release - give back what rxe_migr_collect() has got
 * @uc: the context
 * @qps: the array
 * @n: its length
 */
void rxe_migr_release(struct ib_ucontext *uc, struct rxe_qp **qps,
		      unsigned int n)
{
	atomic_t *collectors = &to_migr_uc(uc)->collectors;

	put_qps(qps, n);
	if (atomic_dec_and_test(collectors))
		wake_up_var(collectors);
}

/**
 * rxe_migr_hide_qp - a QP is being destroyed: wait for those who have collected it
 * @qp: the QP
 *
 * The pool waits for references, too, but for 50 s only, and who has all QPs of a
 * context may wait for longer, for the one that is modified by a thread that does
 * not come back. The number stays the QP's until the pool has erased it.
 *
 * Context: process; sleeps.
 */
void rxe_migr_hide_qp(struct rxe_qp *qp)
{
	struct ib_uobject *uobj = rxe_migr_uobject(&qp->elem);
	atomic_t *collectors;

	if (!uobj)
		return;

	collectors = &to_migr_uc(uobj->context)->collectors;
	xa_store(&qp->elem.pool->xa, qp->elem.index, NULL, GFP_KERNEL);
	wait_var_event(collectors, !atomic_read(collectors));
}
