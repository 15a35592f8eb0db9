/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Connections that are made after a move: before a QP is in RTR, the process at the other end
 * is told what our keys are in reality. Who was never replaced has nothing to tell, and asks
 * nobody.
 *
 * The daemon of this host knows the way. It is called at the Unix socket MIGRD_SOCKET of the
 * environment, or else /run/migrd/sock, and is told in lines
 *
 *	meet QPN GID PEER PEER_GID TURN
 *	key VIRTUAL REAL	(none or more of these)
 *	end
 *
 * QPN is our QP, GID where it is; PEER at PEER_GID is the one that it is to be connected to.
 * TURN differs whenever keys that were told have changed. Its answer is a line: "met"; "busy",
 * and it may be told again; or "failed", and why. Before that there may be one more, "wait": it is
 * there, and looks for the peer.
 */
#ifndef MIGRRDMA_MEET_H
#define MIGRRDMA_MEET_H

#include "shadow.h"

/* of one ibv_modify_qp(); zero at first */
struct meeting {
	char *text; /* what is to be said */
	size_t bytes;
	uint32_t qpn;
	unsigned int turn; /* of the keys in it */
	bool done;	   /* it was said, or cannot be */
	bool hurry;	   /* others wait for this thread */
};

/**
 * meet_is_due - is something to be told to a QP's peer before it is in RTR?
 * @attr: as the application gives it
 *
 * Context: within the gate, which is to be left for meet_peer(), and entered again
 */
bool meet_is_due(struct meeting *m, const struct shadow_qp *qp,
		 const struct ibv_qp_attr *attr, int mask);

/**
 * meet_peer - tell it
 *
 * It takes 20 s at most, or one, if the thread is within a batch or in another verb, for which a
 * suspension would have to wait. The QP is not kept from its connection if the peer cannot be told:
 * stderr says so, once after a move.
 *
 * Context: not within the gate, which may be closed meanwhile. It ends when the process is held,
 * or its keys are others than what is to be said. In any case it is to be asked once more
 * whether it is due: with the keys of then, if the QP has the number of before in reality, too
 */
void meet_peer(struct meeting *m);

/** meet_hang_up - nothing is open any more; the process is held */
void meet_hang_up(void);

/* in a process that has just been forked */
void meet_in_child(void);

#endif
