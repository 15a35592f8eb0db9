/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory for the queues and doorbell records of objects that are made in one process and
 * used in another: a memfd, which both have at the same address. The one that will use
 * them has reserved two ranges of addresses at its beginning: of one the objects that it
 * has may be, and the next ones are of the other.
 */
#ifndef MIGRRDMA_ARENA_H
#define MIGRRDMA_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#define ARENA_BYTES ((size_t)1 << 30) /* of each range */

/** arena_reserve - keep addresses; they cost nothing. Does nothing when called again */
void arena_reserve(void);

/** arena_next - where the next objects' memory may be. Return: 0 if there is no place */
uintptr_t arena_next(void);

/**
 * arena_map - map it, and give its memory out from its beginning
 * @fd: a memfd of @bytes, in whole pages and at most ARENA_BYTES
 * @at: arena_next() of the process that uses it, which may be this one
 *
 * Return: 0 or an errno, EEXIST if something is there
 */
int arena_map(uintptr_t at, size_t bytes, int fd);

/** arena_is_taken - does the provider of a context take another's memory? */
bool arena_is_taken(struct ibv_context *real);

/**
 * arena_give - let the provider of a context have its queues in what is mapped
 *
 * Return: 0, EOPNOTSUPP if this provider takes no allocator, or what it says
 */
int arena_give(struct ibv_context *real);

/** arena_used - bytes that were given out */
size_t arena_used(void);

/** arena_close - what is allocated from now on is this process' own memory */
void arena_close(void);

/** arena_keep - objects in what was mapped last are used, and those before are gone */
void arena_keep(void);

/** arena_is_used - are there such objects? */
bool arena_is_used(void);

/** arena_drop - what was mapped last is not used */
void arena_drop(void);

#endif
