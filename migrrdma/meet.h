/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Connections that are made after a move: before a QP is in RTR, the process at the other end
 * is told what our keys are in reality, and the number of the QP. Who was never replaced has
 * nothing to tell, and asks nobody.
 *
 * The daemon of this host knows the way. It is called at the Unix socket MIGRD_SOCKET of the
 * environment, or else /run/migrd/sock, and is told in lines
 *
 *	meet QPN REAL GID PEER PEER_GID TURN
 *	key VIRTUAL REAL	(none or more of these)
 *	end
 *
 * QPN is our QP, as its application knows it, GID where it is; PEER at PEER_GID is the one that
 * it is to be connected to. TURN differs whenever keys that were told have changed. Its answer
 * is a line: "met"; "busy", and it may be told again; or "failed", and why.
 */
#ifndef MIGRRDMA_MEET_H
#define MIGRRDMA_MEET_H

#include "shadow.h"

/**
 * meet_peer - tell the peer of a QP that is to be in RTR, if there is something to tell
 * @attr: as the application gives it
 *
 * It is not kept from its connection if that cannot be done in time: stderr says so once.
 *
 * Context: within the gate
 * Return: true; or false if somebody waits for the gate to be closed: nothing is open any
 * more, and it is to be left, and entered again
 */
bool meet_peer(const struct shadow_qp *qp, const struct ibv_qp_attr *attr,
	       int mask);

#endif
