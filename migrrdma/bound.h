/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What memory windows are bound to, and by which keys, as the application's requests have
 * it when all of them are done: as far as there is control. A request counts from right
 * before it is posted, as its window may be invalidated by a peer right after that.
 */
#ifndef MIGRRDMA_BOUND_H
#define MIGRRDMA_BOUND_H

#include "shadow.h"

/* a request that counts, and what was before */
struct bound_note {
	struct shadow_mw *mw; /* NULL: there is nothing to it */
	uint32_t key;
	bool fresh;
	struct binding was;
	unsigned int change;
};

/** bound_post - a request that binds a window, or invalidates its key, is about to be posted */
void bound_post(struct shadow_qp *qp, const struct ibv_send_wr *wr,
		struct bound_note *note);

/**
 * bound_refused - after all it was not: the last one first, of several
 * @unsure: or may have been, as the provider says nothing
 */
void bound_refused(const struct bound_note *note, bool unsure);

/** bound_in_batch - it is one of ibv_wr_*(): it counts if the batch is posted */
void bound_in_batch(struct shadow_qp *qp, const struct ibv_send_wr *wr);

/**
 * bound_end_batch - post the batch, or abort it
 *
 * Return: what the provider's wr_complete() says, or ENOMEM and it is aborted after all
 */
int bound_end_batch(struct shadow_qp *qp, bool post);

/*
 * Does a completion say that a key was invalidated? rdma_rxe gives the kernel's flag to the
 * application, whose bit is another one there.
 */
static inline bool bound_is_inv(unsigned int wc_flags)
{
	const unsigned int kernels = IBV_WC_IP_CSUM_OK;

	return wc_flags & IBV_WC_WITH_INV ||
	       (wc_flags & (kernels | IBV_WC_WITH_IMM)) == kernels;
}

/**
 * bound_completed - look at a completion of a context with windows
 *
 * A key that was invalidated becomes the one that the application knows. Numbers of QPs
 * are still the real ones.
 */
void bound_completed(struct shadow_context *ctx, struct ibv_wc *wc);

/** bound_known_key - of a window, the key that the application knows instead of the real */
uint32_t bound_known_key(const struct shadow_mw *mw, uint32_t real);

/*
 * A window is there, and found by its real key, or not any more. With the lock of its
 * context. Return: 0 or ENOMEM
 */
int bound_add(struct shadow_mw *mw);
void bound_remove(struct shadow_mw *mw);

/* it is bound to nothing; with that lock, as the following */
void bound_forget(struct shadow_mw *mw);

/* what windows may be bound to, or with, is gone */
void bound_forget_mr(struct shadow_mr *mr);
void bound_forget_qp(struct shadow_qp *qp);

/* a region is another one, and a device may have left windows bound to it, or not */
void bound_doubt_mr(struct shadow_mr *mr);

#endif
