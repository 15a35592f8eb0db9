/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Datagrams to QPs that are elsewhere now: who sends names a GID, by an address handle, and
 * the number of a QP there. Both are looked up in each request (section 3.3 of the paper).
 * What arrives from there is shown as from the GID and number that are known.
 */
#ifndef MIGRRDMA_ELSEWHERE_H
#define MIGRRDMA_ELSEWHERE_H

#include "names.h"
#include "swap.h"

/* some of those that are known at a GID, and are at another one */
struct place {
	union ibv_gid gid, at;
	struct names *qpns;   /* to real numbers */
	atomic_bool has_ways; /* of all handles that were there */

	LIST_ENTRY(place) entry;
};

/* from an address handle to such a place */
struct way {
	const struct place *to;
	struct ibv_ah *real, *other; /* as the handle's own, or NULL */
	struct way *_Atomic next;
};

/* what no QP has: who sends there sends to nobody */
#define NO_QPN 0xfffffe

/**
 * elsewhere_ah - the real address handle for a request; of a real one, itself
 * @qpn: the number that the application knows, which becomes the real one
 */
static inline struct ibv_ah *elsewhere_ah(struct ibv_ah *ah, uint32_t *qpn)
{
	const struct way *way;
	struct ibv_ah *other;
	uint32_t real;

	if (!ah || !is_shadow(ah->context))
		return ah;
	way = atomic_load_explicit(&to_ah(ah)->ways, memory_order_acquire);
	for (; unlikely(way); way = way->next) {
		real = names_get(way->to->qpns, *qpn & 0xffffff);
		if (!real)
			continue;
		other = __atomic_load_n(&way->real, __ATOMIC_ACQUIRE);
		*qpn = other ? real : NO_QPN;
		return other ? other : to_ah(ah)->real;
	}
	if (unlikely(to_ah(ah)->lost))
		*qpn = NO_QPN;
	return to_ah(ah)->real;
}

/* has anybody been told of? */
extern atomic_bool elsewhere_is_told;

uint32_t elsewhere_source_of(const struct ibv_context *ctx, void *grh,
			     uint32_t qpn);

/**
 * elsewhere_source - the number by which the sender of a datagram is known
 * @grh: what has come before it, in the memory that the application has posted: the GID in
 *	it becomes the one that is known
 * @qpn: the real one
 */
static inline uint32_t elsewhere_source(const struct ibv_context *ctx,
					void *grh, uint32_t qpn)
{
	return unlikely(atomic_load_explicit(&elsewhere_is_told,
					     memory_order_acquire))
		       ? elsewhere_source_of(ctx, grh, qpn)
		       : qpn;
}

/*
 * The ways of an address handle. A new one gets them within the gate, and loses them so when
 * it is destroyed; they are made again as it is itself, with the gate closed. What cannot be
 * made leads to nobody.
 */
bool elsewhere_add_ways(struct shadow_ah *ah); /* is there one? */
void elsewhere_drop_ways(struct shadow_ah *ah);
void elsewhere_make_ways(struct shadow_ah *ah);
void elsewhere_swap_ways(struct shadow_ah *ah);
void elsewhere_unmake_ways(struct shadow_ah *ah);

/* a QP of UD that was at @gid, by its real numbers */
struct elsewhere {
	union ibv_gid gid, at;
	uint32_t was, is;
};

/**
 * elsewhere_add - tell of some, for the next layer_elsewhere()
 *
 * Return: 0, ENOMEM, or E2BIG if they are too many
 */
int elsewhere_add(const struct elsewhere *qps, unsigned int n);

/** elsewhere_forget - forget what was told since the last one */
void elsewhere_forget(void);

/**
 * layer_elsewhere - all of them, at once, are where they are
 *
 * Who was told of one before, under whichever name, knows it by that. A number that is
 * another one's name at that GID is not known.
 *
 * Return: 0; or an error and its reason: then there is no memory, or there are handles without
 * a way, and what is sent by these comes to nobody until it is told again
 */
int layer_elsewhere(struct swap *s);

#endif
