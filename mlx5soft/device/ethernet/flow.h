/* SPDX-License-Identifier: GPL-2.0 */
/* Steering of received frames */
#ifndef MLX5SOFT_FLOW_H
#define MLX5SOFT_FLOW_H

#include "bits.h"

struct frame;
struct nic;
struct tir;
struct wq;

/* whom a frame belongs to; NULL: nobody wants it */
struct tir *flow_lookup(struct nic *nic, const uint8_t *f, uint32_t len,
			const struct frame *h);
struct wq *tir_to_rq(struct nic *nic, const struct tir *tir, uint32_t hash);

#endif /* MLX5SOFT_FLOW_H */
