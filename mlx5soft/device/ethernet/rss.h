/* SPDX-License-Identifier: GPL-2.0 */
/* Receive side scaling: the hash a TIR asks for. */
#ifndef MLX5SOFT_RSS_H
#define MLX5SOFT_RSS_H

#include "ethernet/frame.h"

/* The key has at least len + 4 bytes. */
u32 rss_toeplitz(const u8 *key, const u8 *data, u32 len);

/*
 * The hash of a frame, and the CQE's rss_hash_type: 0 for a frame that has not
 * the fields the TIR selects.
 */
u32 rss_hash(const u8 *tirc, const u8 *f, const struct frame *h, u8 *type);

#endif /* MLX5SOFT_RSS_H */
