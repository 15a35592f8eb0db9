/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What checking and restoring QPs and AHs have in common. Internal to this
 * folder, and for the CRIU plug-in.
 */
#ifndef MIGR_QP_H
#define MIGR_QP_H

#include <stdbool.h>

#include "migr_cmd.h"

/* with a peer, and so an address vector: RTR, RTS, SQD, and not UD */
bool migr_qp_connected(const struct rxe_migr_rec_qp *qp);

bool migr_gid_is_ipv4(const uint8_t *gid);
bool migr_gid_is_multicast(const uint8_t *gid);

/* The address vector of a connected QP, or of an AH, which has no QP numbers */
struct migr_path {
	const struct rxe_migr_rec *rec;
	const uint8_t *dgid, *sgid;
	uint8_t sgid_index;
	uint32_t qpn, dest_qpn;
};

/* false: the record has none */
bool migr_path_of(const struct rxe_migr_rec *rec, struct migr_path *path);

#endif /* MIGR_QP_H */
