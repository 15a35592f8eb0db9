/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sockets that others connect to: each is one that listens and does not block, or -1, and it
 * has been told why
 */
#ifndef MIGRD_LISTEN_H
#define MIGRD_LISTEN_H

/* of TCP; NULL as the address is all */
int listen_on_port(const char *address, const char *port);

/* A Unix socket that everybody may call. One that nobody listens at makes room. */
int listen_at_path(const char *path);

#endif
