/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The cluster's key, for tests that sign what a kernel of the cluster could have
 * signed.
 */
#ifndef CLUSTER_KEY_H
#define CLUSTER_KEY_H

#include <stddef.h>
#include <stdint.h>

#define CLUSTER_KEY_MAC 32 /* bytes */

/* "ID:64 hex digits", as the module takes it; exits if there is none */
void cluster_key_read(const char *path, uint32_t *id);
/* HMAC-SHA-256 under that key, or one of zeros if none was read */
void cluster_key_mac(const void *in, size_t length, uint8_t *mac);

#endif /* CLUSTER_KEY_H */
