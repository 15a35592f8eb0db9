/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A connection that goes on as a socket of somebody else: bytes, both ways
 */
#ifndef MIGRD_PUMP_H
#define MIGRD_PUMP_H

#include "conn.h"

/**
 * pump - pass on what comes from either end, until one of them has ended
 * @fd: the socket, which gets no more than it takes
 *
 * What an end has said before it ended still goes to the other one, if that takes it within
 * half a minute. conn.reason says why it is over.
 */
void pump(struct conn *c, int fd);

#endif
