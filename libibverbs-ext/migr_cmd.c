// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The driver's commands on a context.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "migr_cmd.h"
#include "migr_uverbs.h"

/* most images are smaller: 64 idle QPs of common size */
#define DUMP_GUESS (256 * 1024)
/* a stopped context hardly changes; more rounds than this are a bug */
#define DUMP_TRIES 8

static void status_init(struct rxe_migr_status *st)
{
	memset(st, 0, sizeof(*st));
	st->guard_fd = -1;
}

static int stop(const struct rxe_migr_stop *in, struct rxe_migr_status *st)
{
	status_init(st);
	return migr_device_run(in->fd, RXE_MIGR_METHOD_STOP, in, sizeof(*in),
			       st, sizeof(*st));
}

int migr_cmd_stop(int fd, uint32_t flags, uint32_t timeout_ms,
		  struct rxe_migr_status *st)
{
	struct rxe_migr_stop in = {
		.fd = fd,
		.flags = flags,
		.timeout_ms = timeout_ms,
	};

	return stop(&in, st);
}

int migr_cmd_stop_task(int fd, pid_t pid, struct rxe_migr_status *st)
{
	struct rxe_migr_stop in = { .fd = fd, .pid = pid };

	return stop(&in, st);
}

/* Who has none is not told about a port. */
static bool has_context(int fd)
{
	uint8_t any;

	return !migr_query_mtu(fd, &any);
}

/*
 * The core says EINVAL if there is no context, and also if a module of another version wants
 * more, or less, to be said: then nothing has been tracked that would have to be.
 */
static int track(int fd, const struct rxe_migr_track *in,
		 struct rxe_migr_track_resp *resp)
{
	int ret;

	memset(resp, 0, sizeof(*resp));
	ret = migr_device_run(fd, RXE_MIGR_METHOD_TRACK, in, sizeof(*in), resp,
			      sizeof(*resp));
	return ret == -EINVAL && has_context(fd) ? -EPROTO : ret;
}

int migr_cmd_track(int fd, uint32_t flags, pid_t pid,
		   struct rxe_migr_track_resp *resp)
{
	const struct rxe_migr_track in = { .flags = flags, .pid = pid };

	return track(fd, &in, resp);
}

int migr_cmd_track_round(int fd, pid_t pid, uint64_t round,
			 struct rxe_migr_track_resp *resp)
{
	const struct rxe_migr_track in = { .pid = pid, .round = round };

	return track(fd, &in, resp);
}

int migr_cmd_commit(int fd, uint32_t flags, uint32_t timeout_ms,
		    struct rxe_migr_status *st)
{
	struct rxe_migr_commit in = {
		.flags = flags,
		.timeout_ms = timeout_ms,
	};

	status_init(st);
	return migr_device_run(fd, RXE_MIGR_METHOD_COMMIT, &in, sizeof(in), st,
			       sizeof(*st));
}

int migr_cmd_dump_once(int fd, void *image, size_t length,
		       struct rxe_migr_dump_resp *resp)
{
	struct rxe_migr_buf in = {
		.addr = (uintptr_t)image,
		.length = length,
	};

	memset(resp, 0, sizeof(*resp));
	return migr_device_run(fd, RXE_MIGR_METHOD_DUMP, &in, sizeof(in), resp,
			       sizeof(*resp));
}

int migr_cmd_dump(int fd, void **image, size_t *length, struct migr_error *err)
{
	struct rxe_migr_dump_resp resp = { .needed = DUMP_GUESS };
	struct migr_error ignored;
	size_t room = 0;
	void *buf = NULL;
	int tries, ret = 0;

	if (!err)
		err = &ignored;
	*image = NULL;
	*length = 0;

	for (tries = 0; tries < DUMP_TRIES; tries++) {
		if (resp.needed > room) {
			free(buf);
			room = resp.needed;
			buf = malloc(room);
			if (!buf) {
				snprintf(
					err->text, sizeof(err->text),
					"context: no memory for an image of %zu bytes",
					room);
				return -ENOMEM;
			}
		}
		ret = migr_cmd_dump_once(fd, buf, room, &resp);
		if (ret != -ENOSPC && ret != -EAGAIN)
			break;
	}
	if (!ret && resp.needed > room)
		ret = -EPROTO;
	if (ret) {
		free(buf);
		if (ret == -EINVAL)
			snprintf(err->text, sizeof(err->text),
				 "context: cannot be dumped: it is not stopped");
		else if (ret == -ENOSPC)
			snprintf(
				err->text, sizeof(err->text),
				"context: the image does not settle: %zu bytes, then %llu",
				room, (unsigned long long)resp.needed);
		else
			migr_status_text(NULL, ret, err);
		return ret;
	}
	*image = buf;
	*length = resp.needed;
	return 0;
}

int migr_cmd_resolve(int fd, int other_fd, struct rxe_migr_resolve_resp *resp)
{
	struct rxe_migr_resolve in = {
		.fd = other_fd,
		.context_fd = fd,
	};

	memset(resp, 0, sizeof(*resp));
	return migr_device_run(fd, RXE_MIGR_METHOD_RESOLVE, &in, sizeof(in),
			       resp, sizeof(*resp));
}

int migr_cmd_attach(int fd, struct rxe_migr_status *st)
{
	struct rxe_migr_attach in = { .fd = fd };

	status_init(st);
	return migr_device_run(fd, RXE_MIGR_METHOD_ATTACH, &in, sizeof(in), st,
			       sizeof(*st));
}

int migr_cmd_load(int fd, const void *data, size_t length)
{
	struct rxe_migr_buf in = {
		.addr = (uintptr_t)data,
		.length = length,
	};
	int ret = migr_device_run(fd, RXE_MIGR_METHOD_LOAD, &in, sizeof(in),
				  NULL, 0);

	/* which says to uverbs that the driver knows no LOAD */
	return ret == -EPROTO ? -EPROTONOSUPPORT : ret;
}

int migr_cmd_resume(int fd, struct rxe_migr_status *st)
{
	status_init(st);
	return migr_device_run(fd, RXE_MIGR_METHOD_RESUME, NULL, 0, st,
			       sizeof(*st));
}

int migr_cmd_resume_check(int fd, struct rxe_migr_status *st)
{
	const __u64 flags = RXE_MIGR_RESUME_CHECK_ONLY;

	status_init(st);
	return migr_device_run(fd, RXE_MIGR_METHOD_RESUME, &flags,
			       sizeof(flags), st, sizeof(*st));
}

struct attach_blob {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attr[2];
	struct rxe_migr_status status;
};

/* what goes in must fit into the attribute: the blob has one pointer only */
_Static_assert(sizeof(struct rxe_migr_attach) <= sizeof(__u64),
	       "ATTACH's input is passed inline");

size_t migr_cmd_attach_blob(void *buf, size_t length, uint64_t base,
			    int target_fd, size_t *status_offset)
{
	const size_t status_at = offsetof(struct attach_blob, status);
	struct rxe_migr_attach in = { .fd = target_fd };
	struct attach_blob blob = {};
	struct migr_ioctl cmd;

	if (status_offset)
		*status_offset = status_at;
	if (!buf)
		return sizeof(blob);
	if (length < sizeof(blob))
		return 0;

	migr_ioctl_init(&cmd, UVERBS_OBJECT_DEVICE, RXE_MIGR_METHOD_ATTACH);
	migr_ioctl_in(&cmd, RXE_MIGR_ATTR_IN, &in, sizeof(in));
	migr_ioctl_out(&cmd, RXE_MIGR_ATTR_OUT, NULL, sizeof(blob.status));
	cmd.attr[1].data = base + status_at;

	blob.hdr = cmd.hdr;
	blob.hdr.length = sizeof(blob.hdr) + sizeof(blob.attr);
	memcpy(blob.attr, cmd.attr, sizeof(blob.attr));
	blob.status.guard_fd = -1;
	memcpy(buf, &blob, sizeof(blob));
	return sizeof(blob);
}
