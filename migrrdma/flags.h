/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What tells posts and polls that a QP is suspended: with the gate closed
 */
#ifndef MIGRRDMA_FLAGS_H
#define MIGRRDMA_FLAGS_H

struct shadow_cq;

/** flags_set_cqs - polls look at what the layer has from now on */
void flags_set_cqs(void);

/** flags_of_new_cq - the same of one that nobody has yet, while all is suspended */
void flags_of_new_cq(struct shadow_cq *cq);

/** flags_set_qps - posts wait. Return: how many are connected and can send */
unsigned int flags_set_qps(void);

/** flags_let_batches - no thread is in a batch of the provider's: ours may begin */
void flags_let_batches(void);

#endif
