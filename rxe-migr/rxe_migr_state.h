/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The states of a QP with respect to migration, rxe_qp.migr, and which may
 * follow which. docs/protocol.md says why; tests/tools/state_test.c compares
 * the two. Nothing of the kernel in here.
 */
#ifndef RXE_MIGR_STATE_H
#define RXE_MIGR_STATE_H

/*
 * The order matters: from PAUSED on the requester does nothing, from HELD on
 * the responder doesn't either, in STOPPED nothing is received.
 */
enum rxe_migr_state {
	RXE_MIGR_RUNNING,
	RXE_MIGR_ASKING,	/* as RUNNING; STOP wants, or wanted, to know
				 * the peer
				 */
	RXE_MIGR_TRYING,	/* as RUNNING; was the sign of life a true one? */
	RXE_MIGR_PAUSED,	/* the peer said NAK_STOPPED */
	RXE_MIGR_RESUMING,	/* restored; RESUME is not acknowledged yet */
	RXE_MIGR_HELD,		/* for a moment, while the address changes */
	RXE_MIGR_STOPPED,
	RXE_MIGR_STATES
};

/* sets of states */
#define RXE_MIGR_IN(_state)	(1U << RXE_MIGR_##_state)
#define RXE_MIGR_NOT_IN(_state)	(((1U << RXE_MIGR_STATES) - 1) & \
				 ~RXE_MIGR_IN(_state))

/* may a QP go from one state to the other? */
static inline bool rxe_migr_may_change(unsigned int from, unsigned int to)
{
	static const unsigned int next[RXE_MIGR_STATES] = {
		[RXE_MIGR_RUNNING]	= RXE_MIGR_IN(ASKING) |
					  RXE_MIGR_IN(PAUSED) |
					  RXE_MIGR_IN(HELD) |
					  RXE_MIGR_IN(STOPPED),
		[RXE_MIGR_ASKING]	= RXE_MIGR_IN(RUNNING) |
					  RXE_MIGR_IN(PAUSED) |
					  RXE_MIGR_IN(HELD) |
					  RXE_MIGR_IN(STOPPED),
		[RXE_MIGR_TRYING]	= RXE_MIGR_IN(RUNNING) |
					  RXE_MIGR_IN(PAUSED) |
					  RXE_MIGR_IN(HELD) |
					  RXE_MIGR_IN(STOPPED),
		[RXE_MIGR_PAUSED]	= RXE_MIGR_IN(RUNNING) |
					  RXE_MIGR_IN(TRYING) |
					  RXE_MIGR_IN(HELD) |
					  RXE_MIGR_IN(STOPPED),
		[RXE_MIGR_RESUMING]	= RXE_MIGR_IN(RUNNING) |
					  RXE_MIGR_IN(PAUSED) |
					  RXE_MIGR_IN(HELD) |
					  RXE_MIGR_IN(STOPPED),
		[RXE_MIGR_HELD]		= RXE_MIGR_IN(RUNNING) |
					  RXE_MIGR_IN(ASKING) |
					  RXE_MIGR_IN(RESUMING),
		[RXE_MIGR_STOPPED]	= RXE_MIGR_IN(RUNNING) |
					  RXE_MIGR_IN(PAUSED) |
					  RXE_MIGR_IN(RESUMING),
	};

	return from < RXE_MIGR_STATES && next[from] >> to & 1;
}

#endif /* RXE_MIGR_STATE_H */
