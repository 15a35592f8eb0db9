/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * New real objects beside those that there are, made of what shadows remember. All with
 * the gate closed.
 */
#ifndef MIGRRDMA_BUILD_H
#define MIGRRDMA_BUILD_H

#include "gate.h"
#include "swap.h"

#define EACH_CHOSEN(ctx, qp) \
	EACH (ctx, qp, qps)  \
		if ((qp)->swap.chosen)

/**
 * build_check - can it be done?
 * @all: all objects of the process, or the QPs that are chosen
 *
 * Return: 0, or EOPNOTSUPP and a reason
 */
int build_check(bool all, struct swap *s);

/**
 * build_make - make them, QPs up to INIT; but no regions
 *
 * Return: 0, or an errno and a reason: then there is none of them
 */
int build_make(bool all, struct swap *s);

/**
 * build_first_step - what takes a new QP as far as build_make() does
 *
 * Return: the mask for ibv_modify_qp(); 0 if it stays in RESET
 */
int build_first_step(const struct shadow_qp *qp, struct ibv_qp_attr *attr);

/**
 * build_ahead - the same of one QP, which is used by the next build_make() that it is
 * chosen for
 */
int build_ahead(struct shadow_qp *qp, struct swap *s);

/**
 * build_drop - destroy what of a QP is not, or not any more, its real one, if there is one
 *
 * It is in no multicast groups any more: groups_leave().
 *
 * Context: the gate is closed, or within it
 */
void build_drop(struct shadow_qp *qp);

/** build_regions - register all regions anew, with several threads. Return: the same */
int build_regions(struct swap *s);

/** build_unmake - destroy what is not, or not any more, an object's real one */
void build_unmake(void);

/**
 * swap_objects - let new ones take the place of the old, with RECVs and events
 *
 * Context: nobody uses the old ones, and the locks of CQs are held
 * Return: 0, or what the provider says, with a reason
 */
int swap_objects(bool all, struct swap *s);

/** swap_post_held - post RECVs that were flushed, or collected since. Return: the same */
int swap_post_held(struct swap *s);

#endif
