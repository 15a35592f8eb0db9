/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A connection that speaks lines. Nothing here waits for longer than it is told to.
 */
#ifndef MIGRD_CONN_H
#define MIGRD_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "tls.h"

enum {
	LINE_BYTES = 65536, /* of what is said to the daemon */
	ANSWER_BYTES = 16 << 20,
};

struct conn {
	SSL *ssl;
	int fd;
	char *buf;
	size_t at, len; /* what has not been taken yet */
	size_t seen;	/* so much of that has no end of a line */
	size_t room, most;
	char reason[256]; /* why it is at its end */
	bool is_late;	  /* that is so as the peer takes too long */
};

/* what has come of trying to read */
enum conn_read {
	CONN_MORE,
	CONN_NOTHING, /* yet */
	CONN_FULL,    /* there is no room */
	CONN_END,
};

long long now_ms(void);

/* @fd is closed with it. A line, with its end, has at most @most bytes. */
bool conn_init(struct conn *c, SSL_CTX *ctx, int fd, size_t most);
void conn_free(struct conn *c);

/* until @deadline; conn.reason says why it was not possible */
bool conn_handshake(struct conn *c, bool server, long long deadline);
enum conn_read conn_read(struct conn *c);

/* have room for so many bytes; false, and as before, if more are here already */
bool conn_grow(struct conn *c, size_t room);

/**
 * conn_line - the next line that is here already
 *
 * Return: it, without its end, up to the next call; NULL if there is none
 */
char *conn_line(struct conn *c, size_t *bytes);

bool conn_send(struct conn *c, const char *text, size_t bytes,
	       long long deadline);

/**
 * conn_put - send without waiting
 *
 * Return: how many bytes have gone, for it is a record of TLS at most; 0: once more with the
 * same, when there is room; -1: it is at its end
 */
ssize_t conn_put(struct conn *c, const char *text, size_t bytes);

/* nobody waits for the peer any more */
void conn_late(struct conn *c);

/* A host that has died is noticed within ten seconds. */
void conn_keep_alive(int fd);

#endif
