/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Pre-setup: what a process needs on another host is made there while it still runs where
 * it is, by a shadow process (migr-presetup), which is told what there is. When the process
 * has come it gets the shadow process' files, and makes its own objects by a tape (tape.h)
 * in memory that both have (arena.h), without the kernel (MigrRDMA, section 3.2).
 */
#ifndef MIGRRDMA_PRESETUP_H
#define MIGRRDMA_PRESETUP_H

#include "swap.h"

/**
 * presetup_record - tell who asks, in a line of JSON, what has to be made
 *
 * Return: 0; EOPNOTSUPP if a shadow process cannot make it, ETIMEDOUT if a verb does not
 * return, ENOMEM, with a reason
 */
int presetup_record(int fd, struct swap *s);

/**
 * presetup_take - receive the files of a shadow process: its tape, the queues' memory, the
 * tape of connecting QPs, and the files that these name
 * @sock: a message of one byte comes with them
 *
 * They are used by the next replacement of all objects.
 *
 * Return: 0; EINVAL if the process is not held on another host, EPROTO if it is something
 * else that comes, with a reason
 */
int presetup_take(int sock, struct swap *s);

/**
 * presetup_make - as build_make() of all, by what was taken, if that can be done: why it
 * could not is @s->presetup
 */
int presetup_make(struct swap *s);

/**
 * presetup_connect - as layer_connect(), by what was taken
 * @connect: goes through all QPs
 *
 * Return: what that says; EIO if the shadow process has connected them in another way, with
 * a reason: all objects have to be replaced once more then
 */
int presetup_connect(int (*connect)(struct swap *s), struct swap *s);

/**
 * presetup_let_go - keep no mapping of a shadow process' files: these are of another mount
 * namespace, and CRIU does not find their places
 *
 * Context: the process is held; all of its objects are going to be replaced
 * Return: 0, or an errno and a reason
 */
int presetup_let_go(struct swap *s);

/** presetup_forget - nobody will be connected */
void presetup_forget(void);

/** presetup_end - what was made is in its place, and what was before is gone; or not */
void presetup_end(bool swapped);

#endif
