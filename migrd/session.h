/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One connection, in a process of its own
 */
#ifndef MIGRD_SESSION_H
#define MIGRD_SESSION_H

#include <stdatomic.h>

#include "conn.h"
#include "process.h"

enum {
	OPEN_MS = 5000, /* in which a process that nobody has open answers */
};

struct session {
	SSL_CTX *ctx;
	SSL_CTX *client; /* for connections to others */
	const char *host;
	const char *port;      /* of all daemons */
	const char *mover;     /* its socket; NULL: there is none */
	char *const *patterns; /* of folders */
	atomic_bool *known;    /* set when the peer has shown its certificate */
	int woken;	       /* an eventfd, written to then */
};

/* until one of both ends; @fd is its */
void session_run(const struct session *s, int fd);

/**
 * session_line - the next line, if there is one
 *
 * Return: CONN_MORE with a line; CONN_NOTHING; or CONN_END, also when lines cannot be
 * told apart any more, and then the peer has been told
 */
enum conn_read session_line(struct conn *c, char **line, size_t *bytes);

/**
 * relay_open - bind a connection to a process
 * @lent: whoever else opens it has it, and this is the end
 * @goes_on: whether the client is still there
 *
 * Return: whether it was, and everything is over; else it has been refused
 */
bool relay_open(struct conn *c, const struct process *p, bool lent,
		bool *goes_on);

#endif
