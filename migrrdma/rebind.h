/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory windows that are replaced are bound again, to what they were bound to. All with the
 * gate closed.
 */
#ifndef MIGRRDMA_REBIND_H
#define MIGRRDMA_REBIND_H

#include "swap.h"

/** rebind_check - can it be done? As build_check() */
int rebind_check(bool all, struct swap *s);

/**
 * rebind_prepare - make places in the tables to come, of keys and of windows
 *
 * Return: 0 or ENOMEM
 */
int rebind_prepare(struct shadow_context *ctx, struct names *keys);

/** rebind_name - windows and tables have been replaced: which are to be bound? */
void rebind_name(struct shadow_context *ctx);

/**
 * rebind_all - bind all that are to be, when QPs are connected
 *
 * If it fails it may be tried again: of those that were not bound a QP is apart.
 *
 * Return: 0, or an errno and a reason
 */
int rebind_all(struct swap *s);

/** rebind_give_up - those that have not been bound will not be, if their QPs are lost */
void rebind_give_up(void);

/**
 * rebind_unbind - a QP is to be replaced, and its windows stay: they are invalidated, to be
 *		   bound again, with the same keys, when its successor is connected
 *
 * If something else comes in between rebind_all() binds them. One that was not done by
 * the deadline may be free at any time, and is refused until it is bound anew.
 *
 * Return: 0, or an errno and a reason: for instance, if it is in ERR
 */
int rebind_unbind(struct shadow_qp *qp, uint64_t deadline, struct swap *s);

#endif
