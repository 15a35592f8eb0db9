/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What tests of memory windows share: an application that binds them, on a provider where
 * that is done at once
 */
#ifndef WINDOWS_RIG_H
#define WINDOWS_RIG_H

#include "replace_rig.h"

enum {
	AT = 8, /* in the region, and so much of it */
	BYTES = 16
};

/* the world's region is one for windows; what is bound and invalidated is done at once */
void windows_make(void);

/* does the provider do it, or is it to be finished; and with this status */
extern bool at_once;
extern enum ibv_wc_status done_with;

struct ibv_mw *new_window(enum ibv_mw_type type);

/* a list of one, as applications post it: the key is the next one */
struct ibv_send_wr bind_wr(struct ibv_mw *mw, uint64_t length);
struct ibv_send_wr inv_wr(uint32_t key);

/* posted; a window of type 2 is bound with the next key, which it has then */
int bind_2(struct ibv_qp *qp, struct ibv_mw *mw);
int bind_1(struct ibv_qp *qp, struct ibv_mw *mw, uint64_t length);
int invalidate(struct ibv_qp *qp, struct ibv_mw *mw);

/* Is it what the application has bound it to with this QP, or, with NULL, to nothing? */
void check_window(struct ibv_mw *mw, struct ibv_qp *qp, int line);
#define IS_BOUND(mw, qp) check_window(mw, qp, __LINE__)
#define IS_FREE(mw) check_window(mw, NULL, __LINE__)

/* what a peer calls it in reality */
uint32_t real_key_of(const struct ibv_mw *mw);

#endif
