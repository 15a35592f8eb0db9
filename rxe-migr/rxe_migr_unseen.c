// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Is there memory of an MR that is written without being seen?
 *
 * A page is seen as written by a fault, which makes it soft-dirty. When the bits are
 * cleared the page tables lose the right to write, so that there is another fault; but
 * clear_soft_dirty() of fs/proc/task_mmu.c leaves both alone, bit and right, of a small
 * private page that is pinned. Such a page is soft-dirty for ever, or never: if it got the
 * right without a fault, by mprotect() in a mapping that is soft-dirty as a whole
 * (can_change_pte_writable()). And of hugetlb pages there is no bit.
 */
#include <linux/hugetlb.h>
#include <linux/mm.h>
#include <linux/pgtable.h>

#include "rxe.h"

/*
 * @pmd: of a table with the entries of addr to end. Context: RCU, for that is how tables
 * are freed by those who do not need the mmap lock
 */
static bool has_unseen_pte(pmd_t pmd, unsigned long addr, unsigned long end)
{
	pte_t *entry = pte_offset_kernel(&pmd, addr);

	for (; addr < end; addr += PAGE_SIZE, entry++) {
		pte_t pte = ptep_get(entry);

		if (pte_present(pte) && pte_write(pte) && !pte_soft_dirty(pte))
			return true;
	}

	return false;
}

/*
 * @addr, @end: in a mapping, and in one table. Entries are read as they are at the moment,
 * like those that CRIU reads afterwards. Context: mmap lock held, thus no table above
 * those of PTEs is freed
 */
static bool has_unseen(struct mm_struct *mm, unsigned long addr,
		       unsigned long end)
{
	pgd_t *pgd = pgd_offset(mm, addr);
	bool found = false;
	p4d_t *p4d;
	pud_t *pud;
	pmd_t pmd;

	if (!pgd_present(*pgd))
		return false;
	p4d = p4d_offset(pgd, addr);
	if (!p4d_present(*p4d))
		return false;
	pud = pud_offset(p4d, addr);
	if (!pud_present(*pud))
		return false;
	if (pud_leaf(*pud))
		return true;	/* has no bit that anybody reads */

	rcu_read_lock();
	pmd = pmdp_get_lockless(pmd_offset(pud, addr));
	if (pmd_leaf(pmd))
		found = pmd_present(pmd) && pmd_write(pmd) &&
			!pmd_soft_dirty(pmd);
	else if (pmd_present(pmd))
		found = has_unseen_pte(pmd, addr, end);
	rcu_read_unlock();

	return found;
}

/* Context: mmap lock held */
static void look(const struct rxe_migr_memory *mem, unsigned long addr,
		 unsigned long end, struct rxe_migr_unseen *unseen)
{
	VMA_ITERATOR(vmi, mem->mm, addr);
	struct vm_area_struct *vma;
	unsigned long from, to;
	bool huge;

	for_each_vma_range(vmi, vma, end) {
		huge = is_vm_hugetlb_page(vma);
		from = max(addr, vma->vm_start);
		to = min(end, vma->vm_end);
		if (!huge && !has_unseen(mem->mm, from, to))
			continue;
		/* of a shared mapping the right goes with the bit */
		if (huge || is_cow_mapping(vma->vm_flags))
			unseen->next = from;
		/* all of it is taken for written, until the bits are cleared */
		if (!(vma->vm_flags & VM_SOFTDIRTY))
			unseen->now = from;
	}
}

/**
 * rxe_migr_find_unseen - is there memory that is written without being seen?
 * @mem: of an MR, to which no reference is needed
 * @unseen: receives where such memory is, if there is any
 *
 * Context: process; sleeps, takes the mmap lock.
 * Return: 0, or -EINTR
 */
int rxe_migr_find_unseen(const struct rxe_migr_memory *mem,
			 struct rxe_migr_unseen *unseen)
{
	unsigned long addr = mem->addr, end = addr + (mem->n << PAGE_SHIFT);
	unsigned long next;

	for (; addr < end; addr = next) {
		/* what one table has */
		next = min(end, ALIGN(addr + 1, PMD_SIZE));
		if (mmap_read_lock_killable(mem->mm))
			return -EINTR;
		look(mem, addr, next, unseen);
		mmap_read_unlock(mem->mm);
		cond_resched();
	}

	return 0;
}
