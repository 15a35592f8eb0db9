/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A tape of what a provider has said to the kernel, and what that has answered. One
 * process makes objects and records it; another one, which has got that one's files, makes
 * the same objects by the same calls with what is on the tape, and the kernel does not
 * hear of it (MigrRDMA, section 3.2).
 *
 * All commands are ioctl()s; a kernel that has to be written to is too old. Nothing else
 * goes by the tape: mappings are the real file's. Questions for GIDs do not, either, which
 * are the host's, and asked for when the other process is there.
 */
#ifndef MIGRRDMA_TAPE_H
#define MIGRRDMA_TAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/rdma_user_ioctl_cmds.h>

enum {
	MOST_TAPE_FILES = 240, /* as many as a message can have, nearly */
	MOST_TAPE_BYTES = 1 << 30,
};

struct tape;

/** tape_new - one to record. Return: it, or NULL for want of memory */
struct tape *tape_new(void);

/**
 * tape_load - one that was recorded, to be played
 * @bytes: from tape_bytes() of the other process; may be anything
 * @files: that other process' files, tape_files(), in the same order. They are the
 *	tape's, also if it fails.
 * @why: receives why not
 *
 * Return: it, or NULL and EPROTO if it is no tape, ENOMEM
 */
struct tape *tape_load(const void *bytes, size_t n, const int *files,
		       unsigned int n_files, const char **why);

/**
 * tape_more - play this next, with the files of what was played before
 *
 * Objects with user handles cannot be made by it.
 *
 * Return: false if it is no tape, or for want of memory; then only tape_free() is left
 */
bool tape_more(struct tape *tape, const void *bytes, size_t n,
	       const char **why);

/** tape_free - files that were not given to the provider are closed with it */
void tape_free(struct tape *tape);

/**
 * tape_use - commands of this thread are recorded, or played; NULL: none
 *
 * When one differs from what is on the tape, it and all that follow fail with EIO, which
 * libibverbs takes for done where something is destroyed (bury.h).
 */
void tape_use(struct tape *tape);
bool tape_is_used(void);

/** tape_trouble - which command has differed, or could not be recorded, and why; or NULL */
const char *tape_trouble(const struct tape *tape);

/**
 * tape_end - all that was wanted is done
 *
 * What is played must be over then. The objects' user handles become known to handles.h.
 *
 * Return: false, and tape_trouble()
 */
bool tape_end(struct tape *tape);

/** tape_cut - what is recorded from now on is a tape of its own, for tape_more() */
void tape_cut(struct tape *tape);

/* what was recorded */
const void *tape_bytes(const struct tape *tape, size_t *n);
const int *tape_files(const struct tape *tape, unsigned int *n);
unsigned int tape_commands(const struct tape *tape);

/** tape_command - ioctl(fd, RDMA_VERBS_IOCTL, hdr) while a tape is used */
int tape_command(int fd, struct ib_uverbs_ioctl_hdr *hdr);

/** tape_kernel - who is asked; tests have another one. As ioctl() */
extern int (*tape_kernel)(int fd, struct ib_uverbs_ioctl_hdr *hdr);

#endif
