// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Is the memory of an MR still what was registered?
 *
 * What the driver has pinned it keeps, whatever the application does with its
 * addresses. But the image has the addresses only: ATTACH pins what is there at
 * the time of the dump, or nothing, and that cannot be undone any more.
 */
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/sched/mm.h>
#include <linux/userfaultfd_k.h>
#include <rdma/ib_umem.h>

#include "rxe.h"

/* what there is in a range of addresses, see look_at() */
struct seen {
	bool userfaults;
	bool read_only;
	bool served;
};

/* does a file system read it, which may have to ask somebody? */
static bool is_served(const struct vm_area_struct *vma)
{
	unsigned long magic;

	if (!vma->vm_file)
		return false;
	magic = file_inode(vma->vm_file)->i_sb->s_magic;
	return magic != TMPFS_MAGIC && magic != HUGETLBFS_MAGIC;
}

/*
 * Is there somebody who answers userfaults, or a file that is served? Or, if the pages are
 * to be written, memory that may only be read? Context: mmap lock held
 */
static void look_at(const struct rxe_migr_memory *mem, unsigned long addr,
		    unsigned long end, struct seen *seen)
{
	VMA_ITERATOR(vmi, mem->mm, addr);
	struct vm_area_struct *vma;

	for_each_vma_range(vmi, vma, end) {
		seen->userfaults |= userfaultfd_armed(vma);
		seen->read_only |= mem->writable && !(vma->vm_flags & VM_WRITE);
		seen->served |= is_served(vma);
	}
}

/*
 * Compare up to @n pages from page @first on. Pages of files may have been
 * unmapped while they were pinned, so faults are no sign of anything. Whoever
 * serves them may be waited for, but not who answers userfaults: STOP's caller
 * may have frozen him. If nobody may be waited for: what has been pinned to be
 * written is in a mapping of a file that is served if no fault is needed, or not at
 * all, for it is no page of that file (writable_file_mapping_allowed() of mm/gup.c).
 *
 * Return: how many were compared, -ESTALE if one differs or is not there, -EINTR
 * or -ENOMEM
 */
static long compare(const struct rxe_migr_memory *mem, unsigned long first,
		    unsigned long n, struct page **pages)
{
	unsigned long addr = mem->addr + (first << PAGE_SHIFT);
	unsigned int flags = mem->flags;
	struct seen seen = {};
	struct folio *folio;
	bool same = true;
	int locked = 1;
	long got, i, of_folio;

	if (mmap_read_lock_killable(mem->mm))
		return -EINTR;
	look_at(mem, addr, addr + (n << PAGE_SHIFT), &seen);
	if (mem->at_once && seen.served)
		flags |= FOLL_NOFAULT;
	got = seen.read_only ? -EFAULT :
		get_user_pages_remote(mem->mm, addr, n, flags, pages,
				      seen.userfaults ? NULL : &locked);
	if (locked)
		mmap_read_unlock(mem->mm);

	for (i = 0; i < got; i += of_folio) {
		folio = page_folio(pages[i]);
		for (of_folio = 0; i + of_folio < got &&
		     page_folio(pages[i + of_folio]) == folio; of_folio++)
			same = same && mem->pinned[first + i + of_folio] ==
				       pages[i + of_folio];
		if (!folio_is_zone_device(folio))
			folio_put_refs(folio, of_folio);
		else /* for who waits for the last one, as to truncate a file of DAX */
			release_pages(pages + i, of_folio);
	}
	if (got == -EINTR || got == -ENOMEM)
		return got;

	return got > 0 && same ? got : -ESTALE;
}

/**
 * rxe_migr_compare - is what is pinned mapped there?
 * @mem: of an MR, to which no reference is needed
 * @pages: room for RXE_MIGR_BATCH of them
 *
 * Context: process; sleeps, takes the mmap lock.
 * Return: 0, -ESTALE if other pages are, or none, -EINTR or -ENOMEM
 */
int rxe_migr_compare(const struct rxe_migr_memory *mem, struct page **pages)
{
	unsigned long i = 0;
	long n;

	while (i < mem->n) {
		n = compare(mem, i, min(mem->n - i, RXE_MIGR_BATCH), pages);
		if (n < 0)
			return n;
		i += n;
		cond_resched();
		if (fatal_signal_pending(current))
			return -EINTR;
	}

	return 0;
}

/*
 * @mm: of who will ATTACH, or NULL: of who has registered it. Context: process;
 * sleeps. Return: 0, -ESTALE if that is gone, or -ENOMEM
 */
static int get_memory(struct rxe_mr *mr, struct mm_struct *mm,
		      struct rxe_migr_memory *mem)
{
	struct ib_umem *umem = READ_ONCE(mr->umem);
	struct sg_page_iter page;
	unsigned long i;

	mem->n = umem ? ib_umem_num_pages(umem) : 0;
	if (!mem->n)	/* rxe_migr_chk_context() refuses it */
		return 0;

	mem->mm = mm ?: umem->owning_mm;
	mem->addr = umem->address & PAGE_MASK;
	/* without FOLL_WRITE, which would make all of it soft-dirty */
	mem->writable = umem->writable;
	if (!mmget_not_zero(mem->mm))	/* exit or execve */
		return -ESTALE;
	mem->pinned = kvcalloc(mem->n, sizeof(*mem->pinned),
			       GFP_KERNEL | __GFP_NOWARN);
	if (!mem->pinned) {
		mmput(mem->mm);
		return -ENOMEM;
	}

	__sg_page_iter_start(&page, umem->sgt_append.sgt.sgl,
			     umem->sgt_append.sgt.orig_nents, 0);
	for (i = 0; i < mem->n && __sg_page_iter_next(&page); i++)
		mem->pinned[i] = sg_page_iter_page(&page);

	return 0;
}

static void put_memory(struct rxe_migr_memory *mem)
{
	kvfree(mem->pinned);
	mmput(mem->mm);
}

/* what is wrong with an MR that has been destroyed does not matter any more */
static bool is_gone(struct rxe_pool *pool, unsigned long index,
		    struct rxe_pool_elem *elem)
{
	return xa_load(&pool->xa, index) != elem;
}

/**
 * rxe_migr_chk_memory - do the MRs of a context have the pages that are mapped?
 * @uc: the context
 * @mm: where they must be mapped; NULL: where each was registered
 * @st: receives the first MR that has others, or whose memory is not there
 *
 * It takes as long as the pages are many, and 8 bytes for each of an MR. Pages
 * that somebody has to give back are given back at once.
 *
 * Context: process; sleeps, takes mmap locks.
 * Return: 0, -EOPNOTSUPP, -EAGAIN if an MR is just being created, -EINTR or
 * -ENOMEM
 */
int rxe_migr_chk_memory(struct ib_ucontext *uc, struct mm_struct *mm,
			struct rxe_migr_status *st)
{
	struct rxe_pool *pool = &to_rdev(uc->device)->mr_pool;
	struct rxe_pool_elem *elem;
	unsigned long index = 0;
	struct ib_uobject *uobj;
	struct page **pages;
	u32 handle = 0;
	int err = 0;

	pages = kmalloc_array(RXE_MIGR_BATCH, sizeof(*pages), GFP_KERNEL);
	if (!pages)
		return -ENOMEM;

	while (!err && (elem = rxe_migr_next(pool, uc, &index))) {
		struct rxe_migr_memory mem = {};

		uobj = rxe_migr_uobject(elem);
		if (uobj) {
			handle = uobj->id;
			err = get_memory(elem->obj, mm, &mem);
		} else {
			err = -EAGAIN;
		}
		__rxe_put(elem);

		if (mem.pinned) {
			err = rxe_migr_compare(&mem, pages);
			put_memory(&mem);
		}
		if (err == -ESTALE && is_gone(pool, index - 1, elem))
			err = 0;
		if (err == -ESTALE) {
			st->why = RXE_MIGR_WHY_MEMORY;
			st->type = RXE_MIGR_MR;
			st->handle = handle;
			err = -EOPNOTSUPP;
		}
	}
	kfree(pages);

	return err;
}
