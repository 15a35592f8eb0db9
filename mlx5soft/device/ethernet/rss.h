/* SPDX-License-Identifier: GPL-2.0 */
/* Receive side scaling: the hash a TIR asks for. */
#ifndef MLX5SOFT_RSS_H
#define MLX5SOFT_RSS_H

#include "ethernet/frame.h"

/* The key has at least len + 4 bytes. */
uint32_t rss_toeplitz(const uint8_t *key, const uint8_t *data, uint32_t len);

/*
 * The hash of a frame, and the CQE's rss_hash_type: 0 for a frame that has not
 * the fields the TIR selects.
 */
uint32_t rss_hash(const uint8_t *tirc, const uint8_t *f, const struct frame *h,
		  uint8_t *type);

#endif /* MLX5SOFT_RSS_H */
