/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The control connection: 64-bit words over TCP, used before and after the
 * traffic, silent but open in between.
 */
#ifndef MIX_CONN_H
#define MIX_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All return -1 after a message to stderr, else 0 (or the socket). */
int conn_listen(const char *port);
int conn_connect(const char *host, const char *port);
int conn_send(int fd, const uint64_t *word, size_t n);
/* @seconds: how long the peer may stay silent, 0 for ever. */
int conn_recv(int fd, uint64_t *word, size_t n, unsigned int seconds);

#endif
