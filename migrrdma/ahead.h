/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What need not be done while QPs are suspended: new ones of a partner are made before that,
 * and the old ones destroyed when they go on (MigrRDMA, section 3.2, of partners).
 */
#ifndef MIGRRDMA_AHEAD_H
#define MIGRRDMA_AHEAD_H

#include <stdint.h>

union ibv_gid;
struct swap;

/**
 * layer_prepare - make other real QPs, for the next replacement of these
 * @qpns: numbers of the QPs, as the application knows them
 * @n: how many
 * @timeout_ms: for what has to be waited for
 *
 * Verbs wait while some are made, and get in between; nothing is suspended. The application
 * may change or destroy a QP: then the other one is gone.
 *
 * Return: 0; EBUSY if the process is suspended, EINVAL if there is no such QP, or it leads to
 * no other, EOPNOTSUPP if one cannot be made again, ETIMEDOUT, or what the provider says;
 * with a reason, and then none of them is left
 */
int layer_prepare(const uint32_t *qpns, unsigned int n, unsigned int timeout_ms,
		  struct swap *s);

/**
 * layer_lead - connect what was prepared: the peer's new QPs are there
 * @qpns: numbers of the QPs, as the application knows them
 * @peers: the real numbers of their peers
 * @gid: of these
 *
 * Nothing is sent before the QPs go on; layer_connect() finds them connected then.
 *
 * Return: 0; EBUSY if the process is suspended, or of the first that could not be, while all
 * others are: EINVAL if there is none that was prepared, or it was led before, ETIMEDOUT, or
 * what the provider says; with a reason
 */
int layer_lead(const uint32_t *qpns, const uint32_t *peers, unsigned int n,
	       const union ibv_gid *gid, struct swap *s);

/** ahead_turn - what was made ahead in another one is of no use any more */
unsigned int ahead_turn(void);

/** ahead_left - QPs that were replaced are left for ahead_end() */
void ahead_left(void);

/**
 * ahead_end - destroy those that were replaced, or made and not used
 *
 * Context: nothing is suspended, or the process is held. If a verb does not return they stay
 * until the next time, and nobody uses them.
 */
void ahead_end(void);

/** ahead_drop - the same, with the gate closed */
void ahead_drop(void);

#endif
