/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Names: keys and numbers of QPs as applications know them, and the real ones.
 *
 * A table has an entry for each of 2^24 indices. Who looks takes no lock; who writes has
 * one. An index of a key may be another one in reality; its low 8 bits may be the
 * application's, as those of memory windows are, so they are shifted only.
 */
#ifndef MIGRRDMA_NAMES_H
#define MIGRRDMA_NAMES_H

#include "shadow.h"

enum {
	NAMES_PART_BITS = 12,
	NAMES_PARTS = 1 << (24 - NAMES_PART_BITS),
	NAMES_IN_PART = 1 << NAMES_PART_BITS,
};

struct names {
	_Atomic(_Atomic uint32_t *) part[NAMES_PARTS];
	unsigned int parts; /* that there are; of who writes */
};

/* what no object has: who uses it gets the error that the provider has for this */
#define NO_KEY UINT32_MAX

/** names_get - what is at an index of 24 bits, or 0 */
static inline uint32_t names_get(const struct names *n, uint32_t index)
{
	_Atomic uint32_t *part =
		atomic_load_explicit(&n->part[index >> NAMES_PART_BITS],
				     memory_order_acquire);

	return part ? atomic_load_explicit(&part[index % NAMES_IN_PART],
					   memory_order_relaxed)
		    : 0;
}

/** names_key - the real key that is meant by this one, or @unknown */
static inline uint32_t names_key(const struct names *n, uint32_t key,
				 uint32_t unknown)
{
	uint32_t entry = names_get(n, key >> 8);

	return entry ? (entry & ~0xffU) | ((key + entry) & 0xff) : unknown;
}

/** names_qpn - the number that the application knows of a real QP; of none, its own */
static inline uint32_t names_qpn(const struct names *n, uint32_t real)
{
	uint32_t num = names_get(n, real & 0xffffff);

	return num ? num : real;
}

/** names_new - an empty table, or NULL */
struct names *names_new(void);

/** names_free - when nobody looks; of NULL, nothing */
void names_free(struct names *n);

/**
 * names_set - write an entry
 *
 * Return: 0, or ENOMEM; clearing an entry does not fail
 */
int names_set(struct names *n, uint32_t index, uint32_t entry);

/** names_set_key - the same, for a key that means this real one */
int names_set_key(struct names *n, uint32_t key, uint32_t real);

/** names_each - call @f for each entry that there is; it may clear it */
void names_each(const struct names *n,
		void (*f)(void *arg, uint32_t index, uint32_t entry),
		void *arg);

/** names_clear - there is none any more, for those who look from now on */
void names_clear(struct names *n);

/*
 * Nobody tells peers of what is new, so they take its key for the real one. It cannot have
 * one whose index they take for another: that of a name which they were told when all was
 * replaced, if what had it is still there or not. When all is replaced again they are told
 * anew.
 */

/** names_note_told - of all contexts' other_keys. Return: 0, or ENOMEM */
int names_note_told(void);

/** names_swap_told - that is what peers are told from now on */
void names_swap_told(void);

/** names_drop_told - what they were told before, or are not told after all */
void names_drop_told(void);

/** names_told - how many there are */
size_t names_told(void);

/** names_turn - another number whenever they are others; may be asked at any time */
unsigned int names_turn(void);

/**
 * names_own_key - a new key is its own name
 * @n: of its context, or NULL
 *
 * Return: 0; EEXIST if peers take it for another; or ENOMEM
 */
int names_own_key(struct names *n, uint32_t key);

/**
 * names_drop_key - what has this name is gone
 *
 * If that was its own name it is left: the device may have given it to the next one already,
 * and says itself of a key that nothing has.
 */
void names_drop_key(struct names *n, uint32_t key);

/**
 * names_mr - the keys of a new region are their own names
 *
 * Context: the lock of the region's context is held
 * Return: as names_own_key(); it has none then
 */
int names_mr(struct shadow_mr *mr);
void names_drop_mr(struct shadow_mr *mr);

/** names_rename_mr - its names are those of another real one from now on */
int names_rename_mr(struct names *n, const struct shadow_mr *mr,
		    const struct ibv_mr *real);

/**
 * names_qpns - from now on numbers of the context's QPs may be others than the real ones
 *
 * Return: 0, or ENOMEM
 */
int names_qpns(struct shadow_context *c);

/**
 * names_qp - give a number to a new QP: the real one, unless another QP of the device has
 *	      it, in whichever context of the process
 *
 * It stays in the table when the QP is destroyed, of which a CQ may still have
 * completions, until another QP is the same real one.
 *
 * Context: gate_lock_contexts(), until the QP is in its context's list
 * Return: 0, or ENOMEM
 */
int names_qp(struct shadow_qp *qp);

#endif
