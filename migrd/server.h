/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who may come in
 */
#ifndef MIGRD_SERVER_H
#define MIGRD_SERVER_H

#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "session.h"

enum {
	MOST_CHILDREN = 64,
	/* before they have shown a certificate */
	MOST_UNKNOWN = 32,
	MOST_UNKNOWN_OF = 4, /* an address */
	MOST_CALLERS = 32,   /* of this host, that meet somebody ... */
	MOST_CALLERS_OF = 8, /* ... of a process, whosever that is */
	MOST_WAITING = 64,
	MOST_WAITING_OF = 16, /* an address */
};

struct server {
	struct session session;
	int listener;
	int meetings;	    /* the same, of a Unix socket; -1: there is none */
	sigset_t signals;   /* as they were before they were held back */
	int signalled;	    /* which have come */
	atomic_bool *known; /* of the children: shared with them */
	struct child {
		pid_t pid; /* 0: nobody */
		struct in6_addr addr;
	} children[MOST_CHILDREN];
	struct caller {
		pid_t pid; /* 0: nobody */
		pid_t of;
	} callers[MOST_CALLERS];
	struct waiting {
		int fd;
		struct in6_addr addr;
		char text[INET6_ADDRSTRLEN];
		long long until;
	} waiting[MOST_WAITING]; /* for a child, in their order */
	size_t n_waiting;
};

bool server_init(struct server *s);
void server_accept(struct server *s);
/* Give children to those who wait, and may have one now, or let them wait no more. */
void server_admit(struct server *s);
/* when that has to be done, even if nothing happens: in so many ms, or -1 */
int server_patience(const struct server *s);
/* a meeting, for which there may be no place: the caller sees that it has an end */
void server_meet(struct server *s);
void server_bury(struct server *s); /* those who have ended */
void server_end(struct server *s);  /* all of them */

#endif
