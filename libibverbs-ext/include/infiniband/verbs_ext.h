/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Checkpoint and restore of a verbs context: an extension beside the stock
 * libibverbs, for devices of a migratable rdma_rxe. See ibv_dump_context(3).
 *
 * As in libibverbs, functions return 0 or a (positive) errno. A context whose
 * device does not know migration gives EOPNOTSUPP.
 */
#ifndef INFINIBAND_VERBS_EXT_H
#define INFINIBAND_VERBS_EXT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <infiniband/verbs.h>

#include "rxe_migr_abi.h"
#include "rxe_migr_image.h"

#ifdef __cplusplus
extern "C" {
#endif

/* commands of ibv_restore_object() */
enum ibv_restore_cmd {
	IBV_RESTORE_CREATE,  /* an object with its old handle and identities */
	IBV_RESTORE_REFILL,  /* CQ, SRQ: contents; QP: states, then contents */
	IBV_RESTORE_MR_KEYS, /* CREATE for an MR: a shell with its old keys */
};

/*
 * Write the image of a stopped context to `dump`; *count (may be NULL) gets
 * the number of records: of objects, of completion channels and of the async
 * event file, but not of the context. ENOSPC: `length` is too small; *count is
 * set, and if there is room for a struct rxe_migr_image_hdr, `dump` gets one
 * whose field `length` says how many bytes are needed.
 */
int ibv_dump_context(struct ibv_context *ctx, int *count, void *dump,
		     size_t length);

/*
 * Give a context the image from which objects are to be restored in it, aligned
 * to 8 bytes. The kernel takes a copy and believes only what a kernel of the
 * same cluster has signed: EBADMSG, ENOKEY, EPROTONOSUPPORT.
 */
int ibv_migr_load(struct ibv_context *ctx, const void *image, size_t length);

/*
 * Execute a restore command for one object of enum rxe_migr_type. `args` is
 * the object's record from the image that was loaded, aligned to 8 bytes,
 * `length` the size of the memory that holds it. *object (may be NULL) gets the
 * application's pointer to the object, NULL if the image has none.
 */
int ibv_restore_object(struct ibv_context *ctx, void **object, int object_type,
		       int cmd, void *args, size_t length);

/*
 * Adapt the images of all contexts that move together to this host, where they
 * are about to be restored on the device of `ctx`: each connected QP gets a GID
 * of this device from which its peer can be reached; where the peer is in one
 * of the images, too, that one's new GID. What has changed is no longer as it
 * was signed: ibv_migr_load() comes first. EADDRNOTAVAIL or EHOSTUNREACH: a
 * peer cannot be reached, and nothing has changed.
 */
int ibv_migr_relocate(struct ibv_context *ctx, const struct iovec *images,
		      int count);

/* How many bytes ibv_dump_context() needs now */
int ibv_migr_dump_size(struct ibv_context *ctx, size_t *length);

/*
 * Stop every QP of the context, after all its peers have shown that they can
 * be told. timeout_ms: how long to wait for a silent one, 0 for the default.
 * The context stays stopped while status->guard_fd is open.
 */
int ibv_migr_stop(struct ibv_context *ctx, uint32_t timeout_ms,
		  struct rxe_migr_status *status);

/* The same checks, stopping nothing */
int ibv_migr_check_peers(struct ibv_context *ctx, uint32_t timeout_ms,
			 struct rxe_migr_status *status);

/*
 * From now on closing the guard does not restart the QPs. Before that every peer has said
 * that it waits; ETIMEDOUT after timeout_ms: the one that status names has not, and nothing
 * has changed. flags: RXE_MIGR_COMMIT_FORCE: all the same; RXE_MIGR_COMMIT_CHECK_ONLY: only
 * wait for that.
 */
int ibv_migr_commit(struct ibv_context *ctx, uint32_t flags,
		    uint32_t timeout_ms, struct rxe_migr_status *status);

/* Pin the memory of all restored MRs in the calling process */
int ibv_migr_attach(struct ibv_context *ctx, struct rxe_migr_status *status);

/* Start the restored QPs */
int ibv_migr_resume(struct ibv_context *ctx, struct rxe_migr_status *status);

/* What is `fd` to the context? ENOENT: nothing */
int ibv_migr_resolve(struct ibv_context *ctx, int fd,
		     struct rxe_migr_resolve_resp *resp);

/*
 * Check an image without a device. `text` (may be NULL) gets what is wrong,
 * at most text_length bytes with the NUL.
 */
int ibv_migr_image_check(const void *image, size_t length, char *text,
			 size_t text_length);

/* One line for a status and the errno that came with it; returns `text` */
const char *ibv_migr_status_str(const struct rxe_migr_status *status, int err,
				char *text, size_t text_length);

/*
 * One line for this thread's last failed ibv_dump_context(), ibv_migr_load(),
 * ibv_restore_object() or ibv_migr_relocate(); never NULL.
 */
const char *ibv_migr_error_str(void);

#ifdef __cplusplus
}
#endif

#endif /* INFINIBAND_VERBS_EXT_H */
