/* SPDX-License-Identifier: GPL-2.0 */
/* Receive queues that others share: SRQ, XRC SRQ and RMP */
#ifndef MLX5SOFT_SRQ_H
#define MLX5SOFT_SRQ_H

#include "dma.h"
#include "object.h"
#include "roce.h"

struct srq {
	struct obj obj;
	struct cq *cq; /* XRC */
	u32 pd, xrcd;
	struct pas pas;
	u8 log_size, log_stride;
	u64 db;
	u16 next, ci; /* element to take; how many were taken */
	u16 limit;
	u16 ctx_len;
	u8 ctx[BYTES(rmpc)];
};

/* Take the next element: 1, 0 if there is none, or -EINVAL if it is bad. */
int srq_take(struct nic *nic, struct srq *srq, struct roce_recv_wqe *out);

#endif /* MLX5SOFT_SRQ_H */
