/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Migration of a verbs context by file descriptor: what the library and the
 * CRIU plug-in have in common. Nothing here needs libibverbs.
 *
 * Unless said otherwise a function returns 0 or a negative errno, and `fd` is
 * an open uverbs character device (the context's own file, or a duplicate).
 */
#ifndef MIGR_CMD_H
#define MIGR_CMD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "rxe_migr_abi.h"
#include "rxe_migr_image.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "what object: what is wrong", never empty after a failure */
struct migr_error {
	char text[256];
};

/* ---- commands (migr_cmd.c) ---- */

/*
 * Stop every QP of the context. `flags` are RXE_MIGR_STOP_*, `timeout_ms` is
 * how long to wait for silent peers (0: the driver's default). `st` is filled
 * on success and on failure; on success st->guard_fd keeps the context stopped
 * and belongs to the caller; it is -1 with RXE_MIGR_STOP_CHECK_ONLY and on
 * failure.
 */
int migr_cmd_stop(int fd, uint32_t flags, uint32_t timeout_ms,
		  struct rxe_migr_status *st);

/* The same, where task `pid` will attach, whoever has registered memory */
int migr_cmd_stop_task(int fd, pid_t pid, struct rxe_migr_status *st);

/*
 * The image is safe elsewhere: closing the guard no longer restarts the QPs.
 * RXE_MIGR_COMMIT_*; `st` is filled always, also with -ETIMEDOUT: a peer has not said
 * within timeout_ms that it waits.
 */
int migr_cmd_commit(int fd, uint32_t flags, uint32_t timeout_ms,
		    struct rxe_migr_status *st);

/*
 * One DUMP into a buffer of the caller; `resp` says what it takes, also with
 * -ENOSPC. `image` may be NULL when `length` is 0.
 */
int migr_cmd_dump_once(int fd, void *image, size_t length,
		       struct rxe_migr_dump_resp *resp);

/*
 * The image of a stopped context in a buffer from malloc(), which grows until
 * the image fits; the caller frees it. `err` may be NULL.
 */
int migr_cmd_dump(int fd, void **image, size_t *length, struct migr_error *err);

/*
 * What is the file `other_fd` to the context? -ENOENT: nothing of it. Both
 * descriptors are the caller's.
 */
int migr_cmd_resolve(int fd, int other_fd, struct rxe_migr_resolve_resp *resp);

/* Pin the pages of all MR shells in the caller's own memory */
int migr_cmd_attach(int fd, struct rxe_migr_status *st);

/*
 * Make what the device has written to MRs since the last time soft-dirty in the task
 * that has the memory; `flags` are RXE_MIGR_TRACK_*, `pid` as in migr_cmd_stop_task(), 0:
 * who has registered it. `resp` is filled on success.
 */
int migr_cmd_track(int fd, uint32_t flags, pid_t pid,
		   struct rxe_migr_track_resp *resp);

/* The same in the round of this number */
int migr_cmd_track_round(int fd, pid_t pid, uint64_t round,
			 struct rxe_migr_track_resp *resp);

/*
 * Give a fresh context the image, as it was dumped, from which objects are then
 * restored. `data` is copied.
 */
int migr_cmd_load(int fd, const void *data, size_t length);

/* Start the QPs of a restored context */
int migr_cmd_resume(int fd, struct rxe_migr_status *st);

/* Would they start? Nothing changes. */
int migr_cmd_resume_check(int fd, struct rxe_migr_status *st);

/*
 * The ATTACH ioctl as a blob to inject into another task: fills `buf` as it
 * must look at address `base` of the target, where the context's file is
 * `target_fd`. Then let the target call
 *
 *	ioctl(target_fd, RDMA_VERBS_IOCTL, base)
 *
 * and read struct rxe_migr_status from base + *status_offset. Returns the size
 * in bytes; 0 if `length` is too small. With buf == NULL nothing is written
 * and the size is returned (length is not looked at).
 */
size_t migr_cmd_attach_blob(void *buf, size_t length, uint64_t base,
			    int target_fd, size_t *status_offset);

/* ---- texts (migr_text.c) ---- */

/* What an enum rxe_migr_why means; never NULL */
const char *migr_why_text(uint32_t why);

/* "PD", "CQ", ...; "object" for an unknown enum rxe_migr_type; never NULL */
const char *migr_type_text(uint32_t type);

/* What an errno (either sign) means to a command on a context; never NULL */
const char *migr_errno_text(int err);

/* The same to LOAD: what is wrong with the image */
const char *migr_load_text(int err);

/*
 * One line that names object, QPN, peer and reason. `err` is what the command
 * returned (either sign), it speaks where the status does not.
 */
void migr_status_text(const struct rxe_migr_status *st, int err,
		      struct migr_error *out);

/* ---- image (migr_image.c) ---- */

/* Where a connected QP and its peer are on the host to which it moves */
struct migr_address {
	uint8_t sgid[16];
	uint8_t dgid[16];
	uint8_t sgid_index;
};

/*
 * A checked image. `records` are those of known types, in the order of the
 * image, without the CONTEXT record; everything points into `data`, which must
 * be aligned to 8 bytes (as malloc() and mmap() do) and must outlive this. The
 * image is signed, so what changes with the host is beside it: `address` has
 * one for each record, those of connected QPs are set; NULL before
 * migr_relocate().
 */
struct migr_image {
	const void *data;
	size_t length;
	const struct rxe_migr_rec_context *context;
	const struct rxe_migr_rec **records;
	unsigned int count;
	struct migr_address *address;
};

/*
 * Check the whole image: header, checksum, structure of the records, unique
 * handles, references, ranges. -EINVAL with a text that names the object and
 * the field; -ENOMEM; -EPROTONOSUPPORT for another version. `err` may be NULL.
 */
int migr_image_parse(const void *data, size_t length, struct migr_image *img,
		     struct migr_error *err);

/* Release what migr_image_parse() allocated, not `data`; safe after failure */
void migr_image_free(struct migr_image *img);

/*
 * Correct the checksum after a change, which is the caller's: `data` must be
 * writable memory
 */
void migr_image_seal(const struct migr_image *img);

/* ---- addresses (migr_gid.c, migr_relocate.c) ---- */

struct ib_uverbs_gid_entry;

/* A device's table, and what its port lets pass */
struct migr_gids {
	struct ib_uverbs_gid_entry *entry;
	size_t count;
	uint8_t active_mtu; /* enum ib_mtu */
};

/* `fd` must have a context; nothing is done if the table is there already */
int migr_gids_query(int fd, struct migr_gids *gids);
void migr_gids_free(struct migr_gids *gids);

/*
 * Does the port let the packets of all connected QPs pass? -EMSGSIZE: `err` names
 * one that has a larger path_mtu.
 */
int migr_check_mtu(const struct migr_image *img, const struct migr_gids *gids,
		   struct migr_error *err);

/* An image, and the GIDs of the device on which it is to be restored */
struct migr_place {
	struct migr_image *img;
	const struct migr_gids *gids;
};

/*
 * Where on this host is what moves together? All connected QPs get one of its
 * GIDs, from which their peers can be reached; those whose peer is in one of
 * the images get the peer's new GID. img->address is set on success only. To be
 * called in the network namespace of the devices. -EADDRNOTAVAIL,
 * -EHOSTUNREACH: `err` names the peers.
 */
int migr_relocate(const struct migr_place *places, size_t n,
		  struct migr_error *err);

/* ---- restore (migr_restore.c) ---- */

/* The files that a context has beside its own; -1: none */
struct migr_files {
	int async_fd;
	struct migr_channel {
		uint32_t cq; /* by which the image knows the channel */
		int fd;
	} *channel;
	unsigned int channels;
};

/* Close what is not -1, and forget all */
void migr_files_close(struct migr_files *files);

/* The place of a channel's file, NULL: there is no such channel */
int *migr_files_channel(const struct migr_files *files, uint32_t cq);

/* A channel without CQs, of which images do not know: its file, or -errno */
int migr_cmd_new_channel(int fd);

/*
 * Make the objects of an image on a freshly opened uverbs cdev: the context,
 * then every object at its old handle and with its old identities. QPs are
 * taken to their state and refilled but stay Stopped, MRs are shells without
 * pages. After that: ATTACH in the restored task, then RESUME.
 *
 * On success `files` are the context's event files. On failure `err` names the
 * object and the reason, `files` are none, and closing `cdev_fd` undoes
 * everything. -EBUSY: an identity is taken on this host.
 */
int migr_restore_context(int cdev_fd, const struct migr_image *img,
			 struct migr_files *files, struct migr_error *err);

#ifdef __cplusplus
}
#endif

#endif /* MIGR_CMD_H */
