/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Many commands of a device, by several threads: each of them takes the next one.
 */
#ifndef MIGRRDMA_CREW_H
#define MIGRRDMA_CREW_H

#include <stdbool.h>
#include <stddef.h>

enum {
	CREW_MOST = 8, /* threads */
};

/**
 * crew_do - do pieces of work
 * @pieces: how many
 * @threads: at most so many at a time, this one included, and no more than CREW_MOST; who
 *	cannot be started is not missed
 * @piece: does one; false: no more are begun
 *
 * Context: signals are blocked, and so they are for its threads
 */
void crew_do(size_t pieces, size_t threads, bool (*piece)(size_t i, void *arg),
	     void *arg);

#endif
