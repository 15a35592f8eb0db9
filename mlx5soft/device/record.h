/* SPDX-License-Identifier: GPL-2.0 */
/* Recording of what comes from outside; cmd_ops.h has the format. */
#ifndef MLX5SOFT_RECORD_H
#define MLX5SOFT_RECORD_H

#include "bits.h"

struct nic;

int record_open(struct nic *nic, const char *folder);
void record_close(struct nic *nic);

/* If it is on: what the command buffer holds, a doorbell, a frame */
void record_cmd(struct nic *nic, uint32_t in_len, uint32_t out_len);
void record_bar(struct nic *nic, uint64_t off, const void *bytes, size_t n);
void record_frame(struct nic *nic, const uint8_t *frame, uint32_t n);

#endif /* MLX5SOFT_RECORD_H */
