/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sockets that others connect to: each is one that listens and does not block, or -1, and it
 * has been told why
 */
#ifndef MIGRD_LISTEN_H
#define MIGRD_LISTEN_H

#include <sys/types.h>

/* of TCP; NULL as the address is all */
int listen_on_port(const char *address, const char *port);

/* A Unix socket, with @mode. One that nobody listens at makes room. */
int listen_at_path(const char *path, mode_t mode);

/* a connection to one, which does not block; -1 with errno */
int dial_path(const char *path);

#endif
