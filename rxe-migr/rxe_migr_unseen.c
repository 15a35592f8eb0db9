// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Is there memory of an MR that is written without being seen?
 *
 * A page is seen as written by a fault, which makes it soft-dirty. When the bits are
 * cleared the page tables lose the right to write, so that there is another fault; but
 * clear_soft_dirty() of fs/proc/task_mmu.c leaves both alone, bit and right, of a small
 * private page that is pinned. Such a page is soft-dirty for ever, or never: if it got the
 * right without a fault, by mprotect() in a mapping that is soft-dirty as a whole
 * (can_change_pte_writable()). Of a huge page that is mapped by small entries all are taken
 * for pinned if one is: so there may be such pages beside the MR. And of hugetlb pages there
 * is no bit.
 */
#include <linux/hugetlb.h>
#include <linux/mm.h>
#include <linux/pgtable.h>

#include "rxe.h"

static bool has_part(const struct rxe_migr_memory *mem, unsigned long addr,
		     unsigned long end)
{
	return addr < mem->addr + (mem->n << PAGE_SHIFT) && end > mem->addr;
}

/* as pte_is_pinned() judges of all that is in one folio. Context: PTE lock held */
static bool is_pinned(pte_t pte)
{
	struct folio *folio;

	if (pte_special(pte) || !pfn_valid(pte_pfn(pte)))
		return false;
	folio = page_folio(pte_page(pte));

	return folio_test_large(folio) && folio_maybe_dma_pinned(folio);
}

/*
 * @table: where @pmd has been read, of a table with the entries of addr to end. One that has
 * gone since is of a file, with no page that belongs to this mapping alone:
 * retract_page_tables(). Context: RCU, for that is how tables are freed by those who do not
 * need the mmap lock
 *
 * Return: an address, or 0
 */
static unsigned long find_pte(const struct rxe_migr_memory *mem, pmd_t *table,
			      pmd_t pmd, unsigned long addr, unsigned long end)
{
	pte_t *entry = pte_offset_kernel(&pmd, addr);
	spinlock_t *lock = pte_lockptr(mem->mm, &pmd);
	unsigned long found = 0;

	spin_lock(lock);
	if (!pmd_same(pmd, pmdp_get_lockless(table)))
		addr = end;
	for (; addr < end && !found; addr += PAGE_SIZE, entry++) {
		pte_t pte = ptep_get(entry);

		if (pte_present(pte) && pte_write(pte) && !pte_soft_dirty(pte) &&
		    (has_part(mem, addr, addr + PAGE_SIZE) || is_pinned(pte)))
			found = addr;
	}
	spin_unlock(lock);

	return found;
}

/*
 * @addr, @end: in a mapping, and in one table. Entries are read as they are at the moment,
 * like those that CRIU reads afterwards. Context: mmap lock held, thus no table above
 * those of PTEs is freed
 * @stays: receives whether it is so when the bits have been cleared, too, which of a huge page
 * that is mapped as one takes the right, pinned or not: clear_soft_dirty_pmd()
 *
 * Return: an address, or 0
 */
static unsigned long find(const struct rxe_migr_memory *mem, unsigned long addr,
			  unsigned long end, bool *stays)
{
	pgd_t *pgd = pgd_offset(mem->mm, addr);
	unsigned long found = 0;
	pmd_t *table, pmd;
	p4d_t *p4d;
	pud_t *pud;

	*stays = true;
	if (!pgd_present(*pgd))
		return 0;
	p4d = p4d_offset(pgd, addr);
	if (!p4d_present(*p4d))
		return 0;
	pud = pud_offset(p4d, addr);
	if (!pud_present(*pud))
		return 0;
	if (pud_leaf(*pud))	/* has no bit that anybody reads */
		return has_part(mem, addr, end) ? addr : 0;

	rcu_read_lock();
	table = pmd_offset(pud, addr);
	pmd = pmdp_get_lockless(table);
	if (pmd_present(pmd) && !pmd_leaf(pmd)) {
		found = find_pte(mem, table, pmd, addr, end);
	} else if (pmd_present(pmd) && pmd_write(pmd) && !pmd_soft_dirty(pmd) &&
		   has_part(mem, addr, end)) {
		found = addr;
		*stays = false;
	}
	rcu_read_unlock();

	return found;
}

/* @addr, @end: all that one table has, or a part. Context: mmap lock held */
static void look(const struct rxe_migr_memory *mem, unsigned long addr,
		 unsigned long end, struct rxe_migr_unseen *unseen)
{
	VMA_ITERATOR(vmi, mem->mm, addr);
	struct vm_area_struct *vma;
	unsigned long from, to, found;
	bool huge, stays;

	for_each_vma_range(vmi, vma, end) {
		huge = is_vm_hugetlb_page(vma);
		stays = true;
		from = max(addr, vma->vm_start);
		to = min(end, vma->vm_end);
		if (huge)
			found = has_part(mem, from, to) ? from : 0;
		else
			found = find(mem, from, to, &stays);
		if (!found)
			continue;
		/* of a shared mapping the right goes with the bit */
		if (stays && (huge || is_cow_mapping(vma->vm_flags)))
			unseen->next = found;
		/* all of it is taken for written, until the bits are cleared */
		if (!(vma->vm_flags & VM_SOFTDIRTY))
			unseen->now = found;
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
	unsigned long addr = ALIGN_DOWN(mem->addr, PMD_SIZE);
	unsigned long end = mem->addr + (mem->n << PAGE_SHIFT);

	/*
	 * All that its huge pages have, if it has such pages: after mremap() these may begin
	 * anywhere
	 */
	addr -= min(addr, PMD_SIZE);
	end += PMD_SIZE;
	for (; addr < end; addr += PMD_SIZE) {
		if (mmap_read_lock_killable(mem->mm))
			return -EINTR;
		look(mem, addr, addr + PMD_SIZE, unseen);
		mmap_read_unlock(mem->mm);
		cond_resched();
	}

	return 0;
}
