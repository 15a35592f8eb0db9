/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Work requests on their way to the provider
 */
#ifndef MIGRRDMA_POST_H
#define MIGRRDMA_POST_H

#include "names.h"
#include "peer.h"

enum {
	MOST_SGES = 64 /* of one request that is copied; no provider has more */
};

/* the real key of a region of this context */
static inline uint32_t post_lkey(const struct ibv_context *ctx, uint32_t key)
{
	const struct names *n =
		container_of(ctx, struct shadow_context, verbs.context)->keys;

	return n ? names_key(n, key, NO_KEY) : key;
}

/* the real key of a region of the QP's peer; of a new one nobody has told, and it is that */
static inline uint32_t post_rkey(const struct shadow_qp *qp, uint32_t key)
{
	const struct peer *peer =
		atomic_load_explicit(&qp->peer, memory_order_acquire);
	const struct names *n = peer ? peer_keys(peer) : NULL;

	return n ? names_key(n, key, key) : key;
}

/**
 * post_name_sges - copy SGEs, with real keys
 *
 * Return: how many there are: none, if there are fewer than that
 */
int post_name_sges(const struct ibv_context *ctx, struct ibv_sge *to,
		   const struct ibv_sge *from, int n);

/**
 * post_send_real - give the provider requests of real objects instead of these
 *
 * Context: a section, or the QP's lock and no other thread posts
 */
int post_send_real(struct shadow_qp *qp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad_wr);

/**
 * post_bind - the same of a request that binds a window
 * @key: of the window, when it was collected: the application may have gone on since
 */
int post_bind(struct shadow_qp *qp, const struct ibv_send_wr *wr, uint32_t key);

/* post_recv_real() of a QP with names, or slots */
int post_recv_named(struct shadow_qp *qp, struct ibv_recv_wr *wr,
		    struct ibv_recv_wr **bad_wr);

/** post_recv_real - the same; *@bad_wr is NULL if the provider does not tell */
static inline int post_recv_real(struct shadow_qp *qp, struct ibv_recv_wr *wr,
				 struct ibv_recv_wr **bad_wr)
{
	*bad_wr = NULL;
	if (unlikely(atomic_load_explicit(&qp->slow, memory_order_relaxed) &
		     (SLOW_NAMES | SLOW_AH)))
		return post_recv_named(qp, wr, bad_wr);
	return qp->post_recv(qp->real, wr, bad_wr);
}

#endif
