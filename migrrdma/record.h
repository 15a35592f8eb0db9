/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the application has made of its QPs, to be done again with others
 */
#ifndef MIGRRDMA_RECORD_H
#define MIGRRDMA_RECORD_H

#include "shadow.h"

/** record_modify - the application has done this; what was before RESET is void */
void record_modify(struct shadow_qp *qp, const struct ibv_qp_attr *attr,
		   int mask);

/** record_query - let it see its own names for what the provider says */
void record_query(const struct shadow_qp *qp, struct ibv_qp_attr *attr);

/**
 * record_step - what takes the QP from the state before to this one
 * @state: INIT, RTR or RTS
 * @attr: receives what the application has set for this, or later
 *
 * Return: the mask
 */
int record_step(const struct shadow_qp *qp, enum ibv_qp_state state,
		struct ibv_qp_attr *attr);

/** record_unmakeable - why a QP cannot be made again, or NULL */
const char *record_unmakeable(const struct shadow_qp *qp);

#endif
