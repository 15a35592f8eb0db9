/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * User handles: what the kernel was told to call an object by in its events, which is its
 * address for libibverbs. Another process has told it of those that a tape makes, with
 * numbers in the place of addresses, as it cannot know these. They are no addresses that a
 * program can have, and are replaced when an event is read.
 */
#ifndef MIGRRDMA_HANDLES_H
#define MIGRRDMA_HANDLES_H

#include <stdbool.h>
#include <stdint.h>

/* the handle with this number; the upper 16 bits are those of no address */
#define HANDLE(number) (0xa5a5ull << 48 | (number))

/** handle_number - the reverse. Return: false if it is an address */
static inline bool handle_number(uint64_t handle, uint32_t *number)
{
	*number = (uint32_t)handle;
	return handle >> 32 == HANDLE(0) >> 32;
}

/**
 * handles_are - from now on these are the objects
 * @table: their addresses, by number; freed when the next but one comes
 *
 * Context: no event comes of those that there were before
 */
void handles_are(uint64_t *table, uint32_t n);

/* this thread reads events until handles_end(): nothing else is looked at */
void handles_begin(void);
void handles_end(void);

#endif
