/* SPDX-License-Identifier: GPL-2.0 */
/* What the NIC has to do with the transport */
#ifndef MLX5SOFT_RDMA_H
#define MLX5SOFT_RDMA_H

#include <stdbool.h>

#include "bits.h"
#include "roce.h"

struct nic;
struct qp;

int rdma_create(struct nic *nic);
/* A WQE that changes a memory key; `len` bytes of it are there. */
enum roce_wc_status umr_execute(struct nic *nic, const uint8_t *wqe,
				uint32_t len);
/* Is it for the transport? */
bool rdma_receive(struct nic *nic, const void *frame, size_t len);
/* There may be something to send. */
void qp_doorbell(struct nic *nic, struct qp *qp);
/* a QP that goes away */
void rdma_forget(struct nic *nic, struct qp *qp);

#endif /* MLX5SOFT_RDMA_H */
