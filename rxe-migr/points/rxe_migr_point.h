/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Fault points, in test builds only: see rxe_migr_point.c. Included at the end
 * of rxe_loc.h.
 */
#ifndef RXE_MIGR_POINT_H
#define RXE_MIGR_POINT_H

/* where a task of a QP is with a packet */
enum rxe_migr_point_at {
	RXE_MIGR_AT_SENT,	/* a request or a response has gone out */
	RXE_MIGR_AT_LOST,	/* ... and the network loses it */
	RXE_MIGR_AT_TAKEN,	/* one has come in and is looked at now */
	RXE_MIGR_AT_HANDLED,	/* ... and all of it is done */
	RXE_MIGR_ATS
};

void rxe_migr_point(struct rxe_qp *qp, enum rxe_migr_point_at at);
int rxe_migr_point_xmit(struct rxe_qp *qp, struct rxe_pkt_info *pkt,
			struct sk_buff *skb);

#endif /* RXE_MIGR_POINT_H */
