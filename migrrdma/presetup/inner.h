/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What is made of one context, by make.c and qp.c */
#ifndef PRESETUP_INNER_H
#define PRESETUP_INNER_H

#include <stdint.h>

#include <infiniband/verbs.h>

#include "make.h"
#include "successor.h"

struct made {
	struct ibv_context *ctx;
	struct ibv_pd **pds;
	struct ibv_comp_channel **channels;
	struct ibv_cq **cqs;
	struct ibv_srq **srqs;
	int n_pds, n_channels, n_cqs, n_srqs;
	struct ibv_gid_entry gids[MOST_GIDS]; /* of the device */
	ssize_t n_gids;
	char *reason;
	size_t bytes;
};

/* the object at a place that the record tells; NULL of -1 */
#define AT(m, list, place) ((place) < 0 ? NULL : (m)->list[place])
#define IS_PLACE(m, list, place) ((place) >= -1 && (place) < (m)->n_##list)

/* write the reason. Return: false */
__attribute__((format(printf, 2, 3))) bool make_fail(struct made *m,
						     const char *fmt, ...);
bool make_failed(struct made *m, const char *what, int err);

/* room for so many more QPs */
bool make_qps_room(struct made *m, size_t n);
bool make_qp(struct made *m, json_t *json);

#endif
