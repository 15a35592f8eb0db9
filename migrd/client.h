/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A connection to a daemon
 */
#ifndef MIGRD_CLIENT_H
#define MIGRD_CLIENT_H

#include "conn.h"

/**
 * client_open - connect to a daemon, and hear who it is
 * @name: what its certificate has to be for; NULL: it is any host's of the cluster
 * @reason: why that was not possible; nothing is to be freed then
 */
bool client_open(struct conn *c, SSL_CTX *ctx, const char *host,
		 const char *port, const char *name, long long deadline,
		 char *reason, size_t bytes);

/**
 * client_hear - wait for a line
 * @deadline: 0 is none
 *
 * Return: it, without its end, up to the next call; NULL, and conn.reason says why
 */
char *client_hear(struct conn *c, size_t *bytes, long long deadline);

/**
 * client_try - a line, if one has come
 *
 * Return: CONN_MORE with a line, as above; CONN_NOTHING; or CONN_END, and conn.reason says why
 */
enum conn_read client_try(struct conn *c, char **line, size_t *bytes);

#endif
