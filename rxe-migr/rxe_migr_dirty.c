// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Which pages of its MRs has the device written?
 *
 * Each MR that is tracked has a bit for each of its pages, which is set behind each
 * copy. TRACK takes the bits and makes the pages soft-dirty: a fault for writing does
 * that, and changes nothing else. (What is soft-dirty already needs no fault: when the
 * bits are cleared the page tables lose the right to write. But of small private pages
 * that are pinned: those that could be written without being soft-dirty by then are
 * missed, whoever writes them, as clear_soft_dirty() of fs/proc/task_mmu.c does.)
 *
 * An MR that is registered between two TRACKs needs no bits before the second: to pin
 * its pages takes a fault for writing, too.
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <rdma/ib_umem.h>

#include "rxe.h"

/* for a run of pages that were written */
struct room {
	struct page	*pinned[RXE_MIGR_BATCH];
	struct page	*mapped[RXE_MIGR_BATCH];
};

/**
 * __rxe_migr_dirty - a page of a tracked MR has been written
 * @mr: the MR, with a reference
 * @index: of the page
 *
 * Context: any
 */
void __rxe_migr_dirty(struct rxe_mr *mr, unsigned long index)
{
	/*
	 * The page is written before its bit is looked at, which whoever takes it does
	 * before he looks at the page: take_run(). And what begin() has made is there.
	 */
	smp_mb();
	if (!test_bit(index, mr->migr_dirty))
		set_bit(index, mr->migr_dirty);
}

/*
 * All pages are to be looked at, and what is written from now on. Context: lock of the
 * MR's context held
 */
static int begin(struct rxe_mr *mr)
{
	if (!mr->migr_dirty)
		mr->migr_dirty = kvcalloc(BITS_TO_LONGS(mr->nbuf), sizeof(long),
					  GFP_KERNEL | __GFP_NOWARN);
	if (!mr->migr_dirty)
		return -ENOMEM;
	bitmap_fill(mr->migr_dirty, mr->nbuf);
	/* the bits are there for whoever sees that: __rxe_migr_dirty() */
	smp_store_release(&mr->migr_track, true);

	return 0;
}

/* pages that follow each other, from *@first on, which is moved to them; their bits go */
static unsigned long take_run(struct rxe_mr *mr, unsigned long *first,
			      struct room *room)
{
	unsigned long n, i = find_next_bit(mr->migr_dirty, mr->nbuf, *first);

	*first = i;
	for (n = 0; n < RXE_MIGR_BATCH && i < mr->nbuf; n++, i++) {
		if (!test_and_clear_bit(i, mr->migr_dirty))
			break;
		room->pinned[n] = mr->page_info[i].page;
	}

	return n;
}

/* where a run is; false: there is no memory any more */
static bool get_run(struct rxe_mr *mr, struct mm_struct *mm,
		    unsigned long first, unsigned long n, struct room *room,
		    struct rxe_migr_memory *run)
{
	*run = (struct rxe_migr_memory) {
		.mm	= mm ?: mr->umem->owning_mm,
		.addr	= (mr->umem->address & PAGE_MASK) + (first << PAGE_SHIFT),
		.n	= n,
		.writable = true,
		.pinned	= room->pinned,
	};

	return mmget_not_zero(run->mm);
}

/*
 * To what was given back no new memory is given. Return: 0, or -ESTALE, -EINTR or -ENOMEM:
 * what was written is in no page that is seen
 */
static int mark_run(struct rxe_migr_memory *run, struct room *room)
{
	int err;

	run->flags = 0;
	err = rxe_migr_compare(run, room->mapped);
	run->flags = FOLL_WRITE;
	if (!err)
		err = rxe_migr_compare(run, room->mapped);
	mmput(run->mm);
	return err;
}

/*
 * The next run of an MR, from *@first on: @run, with a count of its memory's users.
 *
 * Return: its pages, 0 if there is none, -ESTALE if its memory is gone, or -ENOMEM
 */
static long next_run(struct rxe_mr *mr, struct mm_struct *mm,
		     unsigned long *first, struct room *room,
		     struct rxe_migr_memory *run)
{
	unsigned long n;
	int err;

	/* what was pinned to be read gets no other rights: ib_umem_check_rereg() */
	if (!mr->umem || !mr->umem->writable)
		return 0;
	if (!mr->migr_track) {
		err = begin(mr);
		if (err)
			return err;
	}

	n = take_run(mr, first, room);
	if (n && !get_run(mr, mm, *first, n, room, run))
		return -ESTALE;

	return n;
}

/* Return: 0, or -EINTR or -ENOMEM */
static int track_all(struct rxe_migr_uc *muc, struct mm_struct *mm,
		     struct room *room, struct rxe_migr_track_resp *resp)
{
	struct rxe_pool *pool = &to_rdev(muc->uc.ibuc.device)->mr_pool;
	unsigned long next = 0, last = ULONG_MAX, first = 0;
	struct rxe_migr_memory run;
	struct rxe_pool_elem *elem;
	long n;
	int err;

	/* an MR is looked at until there is no run any more; or it has been destroyed */
	while ((elem = rxe_migr_next(pool, &muc->uc.ibuc, &next))) {
		struct rxe_mr *mr = elem->obj;

		if (next != last)
			first = 0;
		last = next;
		n = next_run(mr, mm, &first, room, &run);
		if (!n && mr->migr_track)
			resp->regions++;
		__rxe_put(elem);
		if (n == -ENOMEM)
			return n;

		err = n > 0 ? mark_run(&run, room) : n;
		if (err) {
			WRITE_ONCE(muc->track_lost, true);
			if (err != -ESTALE)
				return err;
		}
		if (n) {
			first += n > 0 ? n : 1;
			next--;
			resp->pages += n > 0 && !err ? n : 0;
		}
	}

	return 0;
}

/**
 * rxe_migr_track - TRACK
 * @muc: the context; the lock is held
 * @mm: in whose memory its MRs are; NULL: of who has registered each
 * @resp: receives what was done
 *
 * Context: process; sleeps, takes mmap locks.
 * Return: 0, -EINTR or -ENOMEM
 */
int rxe_migr_track(struct rxe_migr_uc *muc, struct mm_struct *mm,
		   struct rxe_migr_track_resp *resp)
{
	struct room *room = kmalloc(sizeof(*room), GFP_KERNEL);
	int err;

	if (!room)
		return -ENOMEM;
	err = track_all(muc, mm, room, resp);
	kfree(room);
	if (err)
		return err;

	/*
	 * Who has not seen that an MR is tracked has written before he looked, and what he
	 * has written is there after this: each processor has had a barrier.
	 */
	synchronize_rcu();
	if (xchg(&muc->track_lost, false))
		resp->flags |= RXE_MIGR_TRACK_LOST;
	if (!muc->tracked)
		resp->flags |= RXE_MIGR_TRACK_BEGUN;
	muc->tracked = true;

	return 0;
}

/**
 * rxe_migr_track_end - nothing of a context is tracked any more
 * @muc: the context; the lock is held
 *
 * Context: process; sleeps.
 */
void rxe_migr_track_end(struct rxe_migr_uc *muc)
{
	struct rxe_pool *pool = &to_rdev(muc->uc.ibuc.device)->mr_pool;
	struct rxe_pool_elem *elem;
	unsigned long next = 0;

	while ((elem = rxe_migr_next(pool, &muc->uc.ibuc, &next))) {
		WRITE_ONCE(((struct rxe_mr *)elem->obj)->migr_track, false);
		__rxe_put(elem);
	}
	muc->track_lost = false;
	muc->tracked = false;
}

/* Return: is all that was written since the last TRACK seen? */
static bool mark_rest(struct rxe_mr *mr)
{
	struct room *room = kmalloc(sizeof(*room), GFP_KERNEL);
	struct rxe_migr_memory run;
	unsigned long first = 0;
	bool ok = room;
	long n = 0;

	while (ok && (n = next_run(mr, NULL, &first, room, &run)) > 0) {
		ok = !mark_run(&run, room);
		first += n;
	}
	kfree(room);

	return ok && !n;
}

/**
 * rxe_migr_mr_cleanup - hook in rxe_mr_cleanup()
 * @mr: the MR, which nobody uses any more
 *
 * Context: process; sleeps, takes mmap locks.
 */
void rxe_migr_mr_cleanup(struct rxe_mr *mr)
{
	if (!mr->migr_dirty)
		return;
	if (mr->migr_track && !mark_rest(mr))
		WRITE_ONCE(to_migr_uc(mr->ibmr.pd->uobject->context)->track_lost,
			   true);
	kvfree(mr->migr_dirty);
}
