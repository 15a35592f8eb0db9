/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Meetings: a process of this host that has moved has a queue pair that is to be connected,
 * and what it says of its keys is told to the process at the other end, whichever host that
 * is on. What is said is in libmigrrdma's meet.h.
 */
#ifndef MIGRD_MEET_H
#define MIGRD_MEET_H

#include "session.h"

/* one of them, in a process of its own; @fd is that of who has called at the socket */
void meet_run(const struct session *s, int fd);

#endif
