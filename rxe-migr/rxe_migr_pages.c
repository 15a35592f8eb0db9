// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Is the memory of an MR still what was registered?
 *
 * What the driver has pinned it keeps, whatever the application does with its
 * addresses. But the image has the addresses only: ATTACH pins what is there at
 * the time of the dump, or nothing, and that cannot be undone any more.
 */
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/sched/mm.h>
#include <rdma/ib_umem.h>

#include "rxe.h"

#define BATCH	512UL	/* pages */

/*
 * Compare up to @n pages from @addr on with what comes next in @pinned. Pages of
 * files may have been unmapped while they were pinned, so faults are no sign of
 * anything; but none drops the lock to wait for user space (userfaultfd).
 *
 * Return: how many were compared, -ESTALE if one differs or is not there, -EINTR
 * or -ENOMEM
 */
static long compare(struct mm_struct *mm, unsigned long addr, unsigned long n,
		    unsigned int flags, struct page **pages,
		    struct sg_page_iter *pinned)
{
	bool same = true;
	long got, i;

	if (mmap_read_lock_killable(mm))
		return -EINTR;
	got = get_user_pages_remote(mm, addr, n, flags, pages, NULL);
	mmap_read_unlock(mm);

	for (i = 0; i < got; i++) {
		same = same && __sg_page_iter_next(pinned) &&
		       sg_page_iter_page(pinned) == pages[i];
		put_page(pages[i]);
	}
	if (got == -EINTR || got == -ENOMEM)
		return got;

	return got > 0 && same ? got : -ESTALE;
}

/* who destroys an object takes it out of its pool, and waits for us */
static bool is_going(struct rxe_mr *mr)
{
	return xa_load(&mr->elem.pool->xa, mr->elem.index) != &mr->elem;
}

static long chk_mr(struct rxe_mr *mr, struct page **pages)
{
	unsigned int flags = ib_access_writable(mr->access) ? FOLL_WRITE : 0;
	struct ib_umem *umem = READ_ONCE(mr->umem);
	struct sg_page_iter pinned;
	unsigned long addr, left;
	struct mm_struct *mm;
	struct sg_table *sgt;
	long n = 0;

	if (!umem)	/* rxe_migr_chk_context() refuses it */
		return 0;

	mm = umem->owning_mm;
	if (!mmget_not_zero(mm))	/* exit or execve */
		return -ESTALE;

	sgt = &umem->sgt_append.sgt;
	__sg_page_iter_start(&pinned, sgt->sgl, sgt->orig_nents, 0);
	addr = umem->address & PAGE_MASK;
	for (left = ib_umem_num_pages(umem); left; left -= n) {
		if (is_going(mr))
			break;
		n = compare(mm, addr, min(left, BATCH), flags, pages, &pinned);
		if (n < 0)
			break;
		addr += n << PAGE_SHIFT;
		cond_resched();
		if (fatal_signal_pending(current)) {
			n = -EINTR;
			break;
		}
	}
	mmput(mm);

	return min(n, 0L);
}

/**
 * rxe_migr_chk_memory - do the MRs of a context have the pages that are mapped?
 * @uc: the context
 * @st: receives the first MR that has others, or whose memory is not there
 *
 * It takes as long as the pages are many. Those that somebody has to give back
 * are given back at once.
 *
 * Context: process; sleeps, takes mmap locks.
 * Return: 0, -EOPNOTSUPP, -EAGAIN if an MR is just being created, -EINTR or
 * -ENOMEM
 */
int rxe_migr_chk_memory(struct ib_ucontext *uc, struct rxe_migr_status *st)
{
	struct rxe_dev *rxe = to_rdev(uc->device);
	struct rxe_pool_elem *elem;
	unsigned long index = 0;
	struct ib_uobject *uobj;
	struct page **pages;
	long err = 0;

	pages = kmalloc_array(BATCH, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return -ENOMEM;

	while (!err && (elem = rxe_migr_next(&rxe->mr_pool, uc, &index))) {
		uobj = rxe_migr_uobject(elem);
		err = uobj ? chk_mr(elem->obj, pages) : -EAGAIN;
		if (err == -ESTALE) {
			st->why = RXE_MIGR_WHY_MEMORY;
			st->type = RXE_MIGR_MR;
			st->handle = uobj->id;
			err = -EOPNOTSUPP;
		}
		__rxe_put(elem);
	}
	kfree(pages);

	return err;
}
