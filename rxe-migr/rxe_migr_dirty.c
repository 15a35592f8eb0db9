// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Which pages of its MRs has the device written?
 *
 * Each MR that is tracked has a bit for each of its pages, which is set behind each
 * copy. TRACK takes the bits and makes the pages soft-dirty: a fault for writing does
 * that, and changes nothing else. (What is soft-dirty already needs no fault: when the
 * bits are cleared the page tables lose the right to write. Where they do not,
 * rxe_migr_find_unseen() finds it.)
 *
 * An MR that is registered between two TRACKs has no bits at first: to pin its pages
 * takes a fault for writing, too.
 */
#include <linux/bitmap.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <rdma/ib_umem.h>

#include "rxe.h"

#define NR_LOST	64U	/* a power of 2 */

static DEFINE_SPINLOCK(lost_lock);

/*
 * Contexts that have ended for which TRACK would have said LOST: how many, from a random
 * number on, and the last ones. Under lost_lock
 */
static struct {
	u32	count;
	u64	id[NR_LOST];
} lost;

static int get_lost(char *buf, const struct kernel_param *kp)
{
	u32 i;
	u64 id;
	int n;

	spin_lock(&lost_lock);
	n = sysfs_emit(buf, "%u\n", lost.count);
	for (i = 1; i <= NR_LOST; i++) {
		id = lost.id[(lost.count - i) % NR_LOST];
		if (!id)
			break;
		n += sysfs_emit_at(buf, n, "%llu\n", id);
	}
	spin_unlock(&lost_lock);

	return n;
}

static void add_lost(u64 id)
{
	spin_lock(&lost_lock);
	lost.id[lost.count++ % NR_LOST] = id;
	spin_unlock(&lost_lock);
}

/**
 * rxe_migr_track_init - nothing is lost yet
 *
 * Who has noted a number of this module's before it was unloaded is to see another one.
 */
void rxe_migr_track_init(void)
{
	lost.count = get_random_u32();
}

/* also where the module is loaded with it: parse_args() asks for nothing else */
static int set_lost(const char *val, const struct kernel_param *kp)
{
	return -EPERM;
}

static const struct kernel_param_ops lost_ops = {
	.get = get_lost,
	.set = set_lost,
};

/* for those who cannot ask a context any more */
module_param_cb(migr_lost, &lost_ops, NULL, 0444);
MODULE_PARM_DESC(migr_lost, "how many contexts have ended for which TRACK would have said LOST, and which ones");

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
 * What is written from now on is to be looked at, or all pages. Context: track_lock of the
 * MR's context held
 */
static int begin(struct rxe_mr *mr, bool all)
{
	if (!mr->migr_dirty)
		mr->migr_dirty = kvcalloc(BITS_TO_LONGS(mr->nbuf), sizeof(long),
					  GFP_KERNEL | __GFP_NOWARN);
	if (!mr->migr_dirty)
		return -ENOMEM;
	if (all)
		bitmap_fill(mr->migr_dirty, mr->nbuf);
	/* the bits are there for whoever sees that: __rxe_migr_dirty() */
	smp_store_release(&mr->migr_track, true);

	return 0;
}

/*
 * Pages that follow each other, from *@first on, which is moved to them. Their bits go,
 * and they get references, since the MR may be destroyed meanwhile
 */
static unsigned long take_run(struct rxe_mr *mr, unsigned long *first,
			      struct room *room)
{
	unsigned long n, i = find_next_bit(mr->migr_dirty, mr->nbuf, *first);

	*first = i;
	for (n = 0; n < RXE_MIGR_BATCH && i < mr->nbuf; n++, i++) {
		if (!test_and_clear_bit(i, mr->migr_dirty))
			break;
		room->pinned[n] = mr->page_info[i].page;
		get_page(room->pinned[n]);
	}

	return n;
}

/*
 * Where @n pages are, and a count of the memory's users. If it has none any more nobody can
 * copy it, and of a file that others have they copy all: then mm is NULL
 */
static void get_run(struct rxe_mr *mr, struct mm_struct *mm,
		    unsigned long first, unsigned long n, struct room *room,
		    struct rxe_migr_memory *run)
{
	*run = (struct rxe_migr_memory) {
		.mm	= mm ?: mr->umem->owning_mm,
		.addr	= (mr->umem->address & PAGE_MASK) + (first << PAGE_SHIFT),
		.n	= n,
		.writable = true,
		.at_once = true,
		.pinned	= room->pinned,
	};
	if (!mmget_not_zero(run->mm))
		run->mm = NULL;
}

static void put_run(struct rxe_migr_memory *run)
{
	if (run->mm)
		mmput(run->mm);
}

static bool is_mapped(struct page *page)
{
	struct folio *folio = page_folio(page);

	if (!folio_test_large(folio))
		return folio_mapped(folio);

	return folio_entire_mapcount(folio) || atomic_read(&page->_mapcount) >= 0;
}

/* has nobody any more what is in there? What a file still has can be mapped again */
static bool is_dead(struct page *page)
{
	struct folio *folio = page_folio(page);

	return !is_mapped(page) && !folio_test_swapcache(folio) &&
		(folio_test_anon(folio) || !READ_ONCE(folio->mapping));
}

static int compare_as(struct rxe_migr_memory *run, unsigned int flags,
		      struct room *room)
{
	run->flags = flags;
	return rxe_migr_compare(run, room->mapped);
}

/*
 * What is mapped is made soft-dirty, and nothing else is mapped for that: in its place,
 * where it was given back, there would be new memory.
 *
 * Return: 0, or -ESTALE, -EINTR or -ENOMEM: what was written is in no page that is seen
 */
static int mark(struct rxe_migr_memory *run, struct room *room)
{
	return compare_as(run, FOLL_NOFAULT, room) ?:
		compare_as(run, FOLL_WRITE, room);
}

/*
 * One that is in a file, or on the move, may be there again if somebody asks. In the place of
 * one that is dead there would be new memory, for hugetlb from the pool
 */
static int mark_one(struct rxe_migr_memory *one, struct room *room)
{
	int err = mark(one, room);

	if (err != -ESTALE || is_dead(*one->pinned))
		return err;

	return compare_as(one, 0, room) ?: compare_as(one, FOLL_WRITE, room);
}

/* one by one: what was in those that are dead is not missed */
static int mark_singly(const struct rxe_migr_memory *run, struct room *room)
{
	struct rxe_migr_memory one = *run;
	unsigned long i;
	int err, ret = 0;

	one.n = 1;
	for (i = 0; i < run->n; i++, one.addr += PAGE_SIZE, one.pinned++) {
		err = mark_one(&one, room);
		if (err == -ESTALE && is_dead(*one.pinned))
			err = 0;
		ret = ret ?: err;
		if (err && err != -ESTALE)
			return err;
	}

	return ret;
}

/* The references go. Return: as mark() */
static int mark_run(struct rxe_migr_memory *run, struct room *room)
{
	int err = run->mm ? mark(run, room) : 0;
	unsigned long i;

	if (err == -ESTALE)
		err = mark_singly(run, room);
	for (i = 0; i < run->n; i++)
		put_page(run->pinned[i]);
	put_run(run);

	return err;
}

/*
 * The next run of an MR, from *@first on; if there is none any more, @run is all of it
 *
 * Return: pages of the run, 0 or -ENOMEM
 */
static long next_run(struct rxe_mr *mr, struct mm_struct *mm,
		     unsigned long *first, struct room *room,
		     struct rxe_migr_memory *run)
{
	unsigned long n = 0;
	int err;

	*run = (struct rxe_migr_memory) {};
	if (!mr->umem)
		return 0;

	/* what was pinned to be read gets no other rights: ib_umem_check_rereg() */
	if (mr->umem->writable) {
		err = mr->migr_track ? 0 : begin(mr, true);
		if (err)
			return err;
		n = take_run(mr, first, room);
	}
	get_run(mr, mm, n ? *first : 0, n ?: ib_umem_num_pages(mr->umem), room,
		run);

	return n;
}

/* Return: 0 or -EINTR */
static int look_at_all(struct rxe_migr_memory *run,
		       struct rxe_migr_unseen *unseen)
{
	int err = run->mm ? rxe_migr_find_unseen(run, unseen) : 0;

	put_run(run);
	return err;
}

/* Return: 0, or -EINTR or -ENOMEM */
static int track_all(struct rxe_migr_uc *muc, struct mm_struct *mm,
		     struct room *room, struct rxe_migr_unseen *unseen,
		     struct rxe_migr_track_resp *resp)
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

		if (fatal_signal_pending(current)) {
			__rxe_put(elem);
			return -EINTR;
		}
		if (next != last)
			first = 0;
		last = next;
		cond_resched();
		n = next_run(mr, mm, &first, room, &run);
		if (!n && mr->migr_track)
			resp->regions++;
		__rxe_put(elem);
		if (n < 0)
			return n;
		if (!n) {
			err = look_at_all(&run, unseen);
			if (err)
				return err;
			continue;
		}

		err = mark_run(&run, room);
		if (err) {
			WRITE_ONCE(muc->track_lost, true);
			if (err != -ESTALE)
				return err;
		}
		first += n;
		next--;
		resp->pages += err ? 0 : n;
	}

	return 0;
}

static void untrack_all(struct rxe_migr_uc *muc)
{
	struct rxe_pool *pool = &to_rdev(muc->uc.ibuc.device)->mr_pool;
	struct rxe_pool_elem *elem;
	unsigned long next = 0;

	while ((elem = rxe_migr_next(pool, &muc->uc.ibuc, &next))) {
		WRITE_ONCE(((struct rxe_mr *)elem->obj)->migr_track, false);
		__rxe_put(elem);
	}
	WRITE_ONCE(muc->track_lost, false);
	muc->told_lost = false;
	muc->track_unseen = 0;
	muc->told_unseen = 0;
	muc->tracked = false;
}

/*
 * What is to be told in this round, from now on also to who asks again: nobody knows
 * whether it came to who had asked first, nor what became of his round. Context:
 * track_lock held
 */
static void enter_round(struct rxe_migr_uc *muc, u64 round)
{
	if (muc->tracked && round && round == muc->round)
		return;

	muc->since = muc->tracked ? muc->round : 0;
	muc->round = round ?: get_random_u64();
	muc->told_lost = false;
	/* by now the bits have been cleared, and it was there when they were */
	muc->told_unseen = muc->track_unseen;
}

static void tell(struct rxe_migr_uc *muc, const struct rxe_migr_unseen *unseen,
		 struct rxe_migr_track_resp *resp)
{
	if (xchg(&muc->track_lost, false))
		muc->told_lost = true;
	if (unseen->now)
		muc->told_unseen = unseen->now;
	muc->track_unseen = unseen->next;

	resp->context = muc->id;
	resp->since = muc->since;
	resp->unseen = muc->told_unseen;
	if (muc->told_lost || muc->told_unseen)
		resp->flags |= RXE_MIGR_TRACK_LOST;
	if (!muc->since)
		resp->flags |= RXE_MIGR_TRACK_BEGUN;
}

/**
 * rxe_migr_track - TRACK
 * @muc: the context; track_lock is held
 * @mm: in whose memory its MRs are; NULL: of who has registered each
 * @round: its number; 0: any
 * @resp: receives what was done
 *
 * Context: process; sleeps, takes mmap locks.
 * Return: 0, -EINTR or -ENOMEM
 */
int rxe_migr_track(struct rxe_migr_uc *muc, struct mm_struct *mm, u64 round,
		   struct rxe_migr_track_resp *resp)
{
	struct room *room = kmalloc(sizeof(*room), GFP_KERNEL);
	struct rxe_migr_unseen unseen = {};
	int err;

	if (!room)
		return -ENOMEM;
	err = track_all(muc, mm, room, &unseen, resp);
	kfree(room);
	if (err) {
		/* or the next one would go on from this one */
		if (!muc->tracked)
			untrack_all(muc);
		return err;
	}

	/*
	 * Who has not seen that an MR is tracked has written before he looked, and what he
	 * has written is there after this: each processor has had a barrier. Expedited, since
	 * peers wait for the last round.
	 */
	synchronize_rcu_expedited();
	enter_round(muc, round);
	tell(muc, &unseen, resp);
	muc->tracked = true;
	muc->untracked = false;

	return 0;
}

/**
 * rxe_migr_track_end - nothing of a context is tracked any more
 * @muc: the context; track_lock is held
 * @resp: receives which round was the last one
 *
 * Context: process; sleeps.
 */
void rxe_migr_track_end(struct rxe_migr_uc *muc,
			struct rxe_migr_track_resp *resp)
{
	resp->context = muc->id;
	if (!muc->tracked)
		return;

	resp->since = muc->round;
	untrack_all(muc);
	muc->untracked = true;
}

/**
 * rxe_migr_track_mr - an MR has got its pages, by which nobody writes yet
 * @muc: its context; track_lock is held
 * @mr: the MR
 *
 * The next TRACK may come when it is gone, and the bits have been cleared.
 *
 * Context: process; sleeps.
 */
void rxe_migr_track_mr(struct rxe_migr_uc *muc, struct rxe_mr *mr)
{
	if (!muc->tracked || mr->migr_track || !mr->umem ||
	    !mr->umem->writable)
		return;
	if (begin(mr, false))
		WRITE_ONCE(muc->track_lost, true);
}

/**
 * rxe_migr_finish_mr - hook in rxe_reg_user_mr(), in the place of rxe_finalize()
 * @mr: the MR, which nobody else knows yet
 *
 * If TRACK does not find it, it is tracked from here on.
 *
 * Context: process; sleeps.
 * Return: 0, or -EINTR
 */
int rxe_migr_finish_mr(struct rxe_mr *mr)
{
	struct ib_uobject *uobj = mr_pd(mr)->ibpd.uobject;
	struct rxe_migr_uc *muc = uobj ? to_migr_uc(uobj->context) : NULL;

	if (muc && mutex_lock_killable(&muc->track_lock))
		return -EINTR;
	if (muc)
		rxe_migr_track_mr(muc, mr);
	rxe_finalize(mr);
	if (muc)
		mutex_unlock(&muc->track_lock);

	return 0;
}

/* Return: is all that was written since the last TRACK seen? */
static bool mark_rest(struct rxe_mr *mr)
{
	struct room *room = kmalloc(sizeof(*room), GFP_KERNEL);
	struct rxe_migr_unseen unseen = {};
	struct rxe_migr_memory run;
	unsigned long first = 0;
	bool ok = room;
	long n;

	while (ok && (n = next_run(mr, NULL, &first, room, &run)) > 0) {
		ok = !mark_run(&run, room);
		first += n;
		cond_resched();
	}
	if (ok)
		ok = !n && !look_at_all(&run, &unseen) && !unseen.now;
	kfree(room);

	return ok;
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

/*
 * May a context have written what nobody knows of who goes on from its last round? What
 * was told may have been told to one that came to nothing.
 */
static bool is_lost(const struct rxe_migr_uc *muc)
{
	return muc->track_lost || muc->told_lost || muc->track_unseen ||
		muc->told_unseen || muc->untracked;
}

/**
 * rxe_migr_track_cleanup - a context ends, which has no MRs any more
 * @muc: the context
 */
void rxe_migr_track_cleanup(struct rxe_migr_uc *muc)
{
	if (is_lost(muc) && !muc->committed)
		add_lost(muc->id);
}
