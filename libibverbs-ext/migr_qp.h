/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What checking and restoring a QP have in common. Internal to this folder.
 */
#ifndef MIGR_QP_H
#define MIGR_QP_H

#include <stdbool.h>

#include "migr_cmd.h"

/* in a state with an address vector: RTR, RTS, SQD */
bool migr_qp_connected(const struct rxe_migr_rec_qp *qp);

bool migr_gid_is_ipv4(const uint8_t *gid);

#endif /* MIGR_QP_H */
