/* SPDX-License-Identifier: GPL-2.0 */
/* Work queue entries: what stands in them, as the transport wants to have it. */
#ifndef MLX5SOFT_WQE_H
#define MLX5SOFT_WQE_H

#include "bits.h"
#include "roce.h"

#define WQE_BB 64U    /* of a send queue */
#define WQE_DS 16U    /* what a WQE's length is counted in */
#define WQE_MAX 1024U /* bytes: more than the 63 * 16 that the field can say */
#define WQE_MAX_SGE 32U
#define END_LKEY 0x100U /* ends a receive WQE's list */

enum wqe_opcode {
	WQE_NOP = 0x00,
	WQE_SEND_INVAL = 0x01,
	WQE_WRITE = 0x08,
	WQE_WRITE_IMM = 0x09,
	WQE_SEND = 0x0a,
	WQE_SEND_IMM = 0x0b,
	WQE_READ = 0x10,
	WQE_ATOMIC_CS = 0x11,
	WQE_ATOMIC_FA = 0x12,
	WQE_UMR = 0x25,
};

/* from the control segment */
static inline uint8_t wqe_opcode(const uint8_t *wqe)
{
	return wqe[3];
}

static inline uint32_t wqe_bytes(const uint8_t *wqe)
{
	return (wqe[7] & 0x3f) * WQE_DS;
}

/*
 * Decode a send WQE.
 * @wqe, @len: a copy of it, of wqe_bytes()
 * @type: of the QP
 * @out: with room for WQE_MAX_SGE elements at out->sge; the cookie stays
 * @data: where inline data go, WQE_MAX bytes
 * @data_len: how many they are; out->sge[0] is then to be set by the caller,
 *	who knows where they stay
 * Returns 0, or -EINVAL if it is malformed or of no use to this type.
 */
int wqe_decode_send(const uint8_t *wqe, uint32_t len, enum roce_qp_type type,
		    struct roce_send_wqe *out, uint8_t *data,
		    uint32_t *data_len);

/*
 * Decode the list of a receive WQE.
 * @list, @len: its data segments
 * Returns 0, or -EINVAL with more than WQE_MAX_SGE elements.
 */
int wqe_decode_recv(const uint8_t *list, uint32_t len,
		    struct roce_recv_wqe *out);

#endif /* MLX5SOFT_WQE_H */
