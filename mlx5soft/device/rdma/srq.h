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
	uint32_t pd, xrcd;
	struct pas pas;
	uint8_t log_size, log_stride;
	uint64_t db;
	uint16_t next, ci; /* element to take; how many were taken */
	bool failed;	   /* ...nobody knows which */
	uint16_t limit;
	uint16_t ctx_len;
	uint8_t ctx[BYTES(rmpc)];
};

/*
 * Take the next element: 1, 0 if there is none, -EINVAL if it is bad, -EIO if
 * the queue is.
 */
int srq_take(struct nic *nic, struct srq *srq, struct roce_recv_wqe *out);

#endif /* MLX5SOFT_SRQ_H */
