// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The public calls: contexts instead of descriptors, errors as libibverbs
 * returns them.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs_ext.h>

#include "migr_check.h"
#include "migr_qp.h"
#include "migr_restore.h"

static _Thread_local struct migr_error last_error;

static int failed(int err, const char *text)
{
	snprintf(last_error.text, sizeof(last_error.text), "%s", text);
	return err;
}

/* ---- dump ---- */

/* say how much is needed, in the words of the format */
static void write_needed(void *dump, size_t length,
			 const struct rxe_migr_dump_resp *resp)
{
	struct rxe_migr_image_hdr hdr = {
		.magic = RXE_MIGR_MAGIC,
		.version = RXE_MIGR_IMAGE_VERSION,
		.hdr_length = sizeof(hdr),
		.length = resp->needed,
		.count = resp->count,
	};

	if (dump && length >= sizeof(hdr))
		memcpy(dump, &hdr, sizeof(hdr));
}

int ibv_dump_context(struct ibv_context *ctx, int *count, void *dump,
		     size_t length)
{
	struct rxe_migr_dump_resp resp;
	int ret;

	if (!ctx || (!dump && length))
		return failed(EINVAL,
			      "context: no context, or no memory for the dump");

	ret = migr_cmd_dump_once(ctx->cmd_fd, dump, length, &resp);
	if (!ret || ret == -ENOSPC)
		if (count)
			*count = (int)resp.count;
	if (ret == -ENOSPC) {
		write_needed(dump, length, &resp);
		snprintf(last_error.text, sizeof(last_error.text),
			 "context: the dump takes %llu bytes, there are %zu",
			 (unsigned long long)resp.needed, length);
	} else if (ret == -EINVAL) {
		failed(EINVAL, "context: cannot be dumped: it is not stopped");
	} else if (ret) {
		migr_status_text(NULL, ret, &last_error);
	}
	return -ret;
}

int ibv_migr_dump_size(struct ibv_context *ctx, size_t *length)
{
	struct rxe_migr_dump_resp resp;
	int ret;

	if (!ctx || !length)
		return EINVAL;
	ret = migr_cmd_dump_once(ctx->cmd_fd, NULL, 0, &resp);
	if (ret && ret != -ENOSPC)
		return -ret;
	*length = resp.needed;
	return 0;
}

/* ---- restore ---- */

/* the record is as untrusted as a whole image, but stands alone here */
static int check_args(int object_type, const void *args, size_t length)
{
	const struct rxe_migr_rec *rec = args;
	int ret;

	if (!args || (uintptr_t)args % 8 || length < sizeof(*rec))
		return failed(EINVAL,
			      "args: no record, or not aligned to 8 bytes");
	if (rec->length > length)
		return failed(EINVAL, "args: the record is longer than length");
	if (object_type < 0 || rec->type != (uint32_t)object_type)
		return failed(EINVAL,
			      "args: the record is of another object_type");
	if (!migr_type_known(rec->type) || rec->type == RXE_MIGR_COMP_CHANNEL)
		return failed(EOPNOTSUPP,
			      "object_type: cannot be restored alone");
	ret = migr_check_frame(rec, MIGR_MAX_HANDLE, &last_error);
	if (!ret)
		ret = migr_check_record(NULL, rec, &last_error);
	return -ret;
}

static const struct {
	int (*run)(struct migr_restore *r, const struct rxe_migr_rec *rec);
	uint32_t only_type; /* 0: any */
} commands[] = {
	[IBV_RESTORE_CREATE] = { migr_place_object, 0 },
	[IBV_RESTORE_REFILL] = { migr_refill_object, 0 },
	[IBV_RESTORE_MR_KEYS] = { migr_place_object, RXE_MIGR_MR },
};

int ibv_restore_object(struct ibv_context *ctx, void **object, int object_type,
		       int cmd, void *args, size_t length)
{
	const struct rxe_migr_rec *rec = args;
	struct migr_restore r;
	int ret;

	if (!ctx)
		return failed(EINVAL, "context: none");
	if (cmd < 0 || (size_t)cmd >= sizeof(commands) / sizeof(commands[0]))
		return failed(EINVAL, "cmd: unknown");
	ret = check_args(object_type, args, length);
	if (ret)
		return ret;
	if (commands[cmd].only_type && commands[cmd].only_type != rec->type)
		return failed(EINVAL, "cmd: not for this object_type");
	/* every context has an event file; groups are joined by their QP */
	if (rec->type == RXE_MIGR_ASYNC_FD ||
	    (rec->type == RXE_MIGR_MCAST && cmd != IBV_RESTORE_REFILL)) {
		if (object)
			*object = NULL;
		return 0;
	}

	migr_restore_init(&r, ctx->cmd_fd, &last_error);
	r.comp_vectors = (uint32_t)ctx->num_comp_vectors;
	ret = commands[cmd].run(&r, rec);
	migr_restore_release(&r);
	if (!ret && object)
		*object = (void *)(uintptr_t)rec->user_handle;
	return -ret;
}

int ibv_migr_load(struct ibv_context *ctx, const void *image, size_t length)
{
	struct migr_image img;
	int ret;

	if (!ctx)
		return failed(EINVAL, "context: none");
	ret = migr_image_parse(image, length, &img, &last_error);
	migr_image_free(&img);
	if (ret)
		return -ret;
	ret = migr_cmd_load(ctx->cmd_fd, image, length);
	return ret ? failed(-ret, migr_load_text(ret)) : 0;
}

/* into the images: their records are what ibv_restore_object() gets */
static void readdress(struct migr_image *img)
{
	struct rxe_migr_rec_qp *qp;
	struct rxe_migr_rec_ah *ah;
	struct migr_path path;
	unsigned int i;

	for (i = 0; i < img->count; i++) {
		qp = (void *)(uintptr_t)img->records[i];
		ah = (void *)(uintptr_t)img->records[i];
		if (!migr_path_of(img->records[i], &path))
			continue;
		memcpy((void *)(uintptr_t)path.sgid, img->address[i].sgid, 16);
		memcpy((void *)(uintptr_t)path.dgid, img->address[i].dgid, 16);
		if (qp->rec.type == RXE_MIGR_QP)
			qp->sgid_index = img->address[i].sgid_index;
		else
			ah->sgid_index = img->address[i].sgid_index;
	}
	migr_image_seal(img);
}

/* the images are parsed into `img`, and `place` refers to them */
static int relocate(struct migr_gids *gids, const struct iovec *images,
		    size_t n, struct migr_image *img, struct migr_place *place)
{
	size_t i;
	int ret;

	for (i = 0; i < n; i++) {
		ret = migr_image_parse(images[i].iov_base, images[i].iov_len,
				       &img[i], &last_error);
		if (!ret)
			ret = migr_check_mtu(&img[i], gids, &last_error);
		if (ret)
			return ret;
		place[i] = (struct migr_place){ .img = &img[i], .gids = gids };
	}
	ret = migr_relocate(place, n, &last_error);
	for (i = 0; i < n && !ret; i++)
		readdress(&img[i]);
	return ret;
}

int ibv_migr_relocate(struct ibv_context *ctx, const struct iovec *images,
		      int count)
{
	struct migr_gids gids = {};
	struct migr_place *place;
	struct migr_image *img;
	int i, ret;

	if (!ctx || !images || count <= 0)
		return failed(EINVAL, "context: no context, or no images");
	img = calloc((size_t)count, sizeof(*img));
	place = calloc((size_t)count, sizeof(*place));
	if (!img || !place) {
		ret = -failed(ENOMEM, "image: no memory");
		goto out;
	}
	ret = migr_gids_query(ctx->cmd_fd, &gids);
	if (ret)
		migr_status_text(NULL, ret, &last_error);
	else
		ret = relocate(&gids, images, (size_t)count, img, place);
	for (i = 0; i < count; i++)
		migr_image_free(&img[i]);
	migr_gids_free(&gids);
out:
	free(place);
	free(img);
	return -ret;
}

/* ---- commands on a context ---- */

int ibv_migr_stop(struct ibv_context *ctx, uint32_t timeout_ms,
		  struct rxe_migr_status *status)
{
	if (!ctx || !status)
		return EINVAL;
	return -migr_cmd_stop(ctx->cmd_fd, 0, timeout_ms, status);
}

int ibv_migr_check_peers(struct ibv_context *ctx, uint32_t timeout_ms,
			 struct rxe_migr_status *status)
{
	if (!ctx || !status)
		return EINVAL;
	return -migr_cmd_stop(ctx->cmd_fd, RXE_MIGR_STOP_CHECK_ONLY, timeout_ms,
			      status);
}

int ibv_migr_commit(struct ibv_context *ctx, uint32_t flags,
		    uint32_t timeout_ms, struct rxe_migr_status *status)
{
	if (!ctx || !status)
		return EINVAL;
	return -migr_cmd_commit(ctx->cmd_fd, flags, timeout_ms, status);
}

int ibv_migr_attach(struct ibv_context *ctx, struct rxe_migr_status *status)
{
	if (!ctx || !status)
		return EINVAL;
	return -migr_cmd_attach(ctx->cmd_fd, status);
}

int ibv_migr_resume(struct ibv_context *ctx, struct rxe_migr_status *status)
{
	if (!ctx || !status)
		return EINVAL;
	return -migr_cmd_resume(ctx->cmd_fd, status);
}

int ibv_migr_resolve(struct ibv_context *ctx, int fd,
		     struct rxe_migr_resolve_resp *resp)
{
	if (!ctx || !resp)
		return EINVAL;
	return -migr_cmd_resolve(ctx->cmd_fd, fd, resp);
}

/* ---- texts ---- */

int ibv_migr_image_check(const void *image, size_t length, char *text,
			 size_t text_length)
{
	struct migr_error err = {};
	struct migr_image img;
	int ret;

	ret = migr_image_parse(image, length, &img, &err);
	migr_image_free(&img);
	if (text && text_length)
		snprintf(text, text_length, "%s", err.text);
	return -ret;
}

const char *ibv_migr_status_str(const struct rxe_migr_status *status, int err,
				char *text, size_t text_length)
{
	struct migr_error e;

	migr_status_text(status, err, &e);
	if (text_length)
		snprintf(text, text_length, "%s", e.text);
	return text;
}

const char *ibv_migr_error_str(void)
{
	return last_error.text;
}
