/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The daemon's own answers: one line of JSON each. False: the peer is gone.
 */
#ifndef MIGRD_ANSWER_H
#define MIGRD_ANSWER_H

#include "conn.h"
#include "gids.h"
#include "process.h"

enum {
	SEND_MS = 30000
}; /* in which somebody has to take an answer */

bool answer_hello(struct conn *c, const char *host);
bool answer_ok(struct conn *c);
bool answer_processes(struct conn *c, const struct processes *p);
bool answer_process(struct conn *c, const struct process *p);
bool answer_gids(struct conn *c, const struct gid_entry *all, size_t n);

/* as negative errnos are no numbers of errors, @err is positive */
__attribute__((format(printf, 3, 4))) bool
answer_refuse(struct conn *c, int err, const char *fmt, ...);

#endif
