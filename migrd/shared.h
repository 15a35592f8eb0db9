/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the daemon's processes share: whose sockets these are, as far as anybody had
 * to ask, and which processes somebody has open. A process that dies, in whatever
 * state, leaves nothing locked: the kernel does the locking.
 */
#ifndef MIGRD_SHARED_H
#define MIGRD_SHARED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* a socket in a file system: it is always the same process that listens to it */
struct shared_key {
	uint64_t dev, ino, ctime_s, ctime_ns;
	uint64_t folder_dev,
		folder_ino; /* of few of which much is remembered */
};

struct shared_owner {
	pid_t pid;
	unsigned long long start; /* see proc_start() */
};

/* before there are other processes */
bool shared_init(void);

bool shared_find(const struct shared_key *key, struct shared_owner *owner);
void shared_remember(const struct shared_key *key,
		     const struct shared_owner *owner);

/*
 * A process is ours until we end, or, if it is @lent, until somebody else wants it: that
 * ends us. False if it is somebody's already, and not lent; or if it is not to be lent.
 */
bool shared_hold(const struct shared_owner *owner, bool lent);
void shared_let_go(pid_t pid);

/* One of a container's few places for callers is ours until we leave; false if there is none. */
bool shared_enter(uint64_t container);
void shared_leave(uint64_t container);

/* It is not to be lent before that, by now_ms(). */
void shared_keep(const struct shared_owner *owner, long long until);

#endif
