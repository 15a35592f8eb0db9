/* SPDX-License-Identifier: GPL-2.0 */
/* Recording of what comes from outside; cmd_ops.h has the format. */
#ifndef MLX5SOFT_RECORD_H
#define MLX5SOFT_RECORD_H

#include "bits.h"

struct nic;

int record_open(struct nic *nic, const char *folder);
void record_close(struct nic *nic);

/* If it is on: what the command buffer holds, a doorbell, a frame */
void record_cmd(struct nic *nic, u32 in_len, u32 out_len);
void record_bar(struct nic *nic, u64 off, const void *bytes, size_t n);
void record_frame(struct nic *nic, const u8 *frame, u32 n);

#endif /* MLX5SOFT_RECORD_H */
