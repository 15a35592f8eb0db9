/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the stock headers and tables of rxe need to know of the migration
 * protocol's packets. Included by rxe_hdr.h.
 */
#ifndef RXE_MIGR_HDR_H
#define RXE_MIGR_HDR_H

#include "rxe_migr_wire.h"

/*
 * Entry of rxe_opcode[]. Everything behind the BTH counts as payload, so that
 * a packet of the wrong length reaches rxe_migr_rcv(), which counts it. The
 * packets are neither requests nor responses to the rest of the driver.
 */
#define RXE_MIGR_OPCODE(_name) {					\
	.name	= "RXE_OPCODE_" _name,					\
	.mask	= RXE_MIGR_MASK | RXE_START_MASK | RXE_END_MASK,	\
	.length	= RXE_BTH_BYTES,					\
	.offset	= {							\
		[RXE_BTH]	= 0,					\
		[RXE_PAYLOAD]	= RXE_BTH_BYTES,			\
	}								\
}

/* the capability bit, for the BTH word that holds the QPN: RC packets only */
static inline __be32 rxe_migr_bth_cap(u8 opcode)
{
	return cpu_to_be32((opcode >> 5) ? 0 : (u32)MIGR_BTH_CAP_BIT << 24);
}

#endif /* RXE_MIGR_HDR_H */
