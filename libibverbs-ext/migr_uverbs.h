/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * RDMA_VERBS_IOCTL calls by hand: a command is a method and a few attributes.
 * Internal to this folder.
 */
#ifndef MIGR_UVERBS_H
#define MIGR_UVERBS_H

#include <stddef.h>
#include <stdint.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "rxe_migr_abi.h"

#define MIGR_MAX_ATTRS 6

struct migr_ioctl {
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr attr[MIGR_MAX_ATTRS];
};

void migr_ioctl_init(struct migr_ioctl *cmd, uint16_t object, uint16_t method);

/* Input by address; up to 8 bytes are copied into the attribute itself */
void migr_ioctl_in(struct migr_ioctl *cmd, uint16_t id, const void *data,
		   size_t length);
void migr_ioctl_out(struct migr_ioctl *cmd, uint16_t id, void *data,
		    size_t length);
void migr_ioctl_const(struct migr_ioctl *cmd, uint16_t id, uint64_t value);
void migr_ioctl_handle(struct migr_ioctl *cmd, uint16_t id, uint32_t handle);

/* Returns the attribute, whose data_s64 holds the new descriptor after a run */
const struct ib_uverbs_attr *migr_ioctl_new_fd(struct migr_ioctl *cmd,
					       uint16_t id);

/*
 * 0 or -errno. -EOPNOTSUPP: the file is no uverbs device, or its driver does
 * not know the method, or it is another driver than rdma_rxe.
 */
int migr_ioctl_run(int fd, struct migr_ioctl *cmd);

/* A command of rdma_rxe on a context; `in` and `out` may be NULL */
int migr_device_run(int fd, uint16_t method, const void *in, size_t in_length,
		    void *out, size_t out_length);

/* A write() command of ib_user_verbs.h, by INVOKE_WRITE */
struct migr_write {
	uint32_t command; /* IB_USER_VERBS_CMD_* */
	const void *in;
	size_t in_length;
	void *out; /* may be NULL */
	size_t out_length;
	void *driver_out; /* the driver's answer (UHW), may be NULL */
	size_t driver_out_length;
	const struct rxe_migr_restore *restore; /* may be NULL */
};

int migr_write_run(int fd, const struct migr_write *w);

/* The port's active MTU, enum ib_mtu. -EINVAL: the file has no context */
int migr_query_mtu(int fd, uint8_t *active_mtu);

#endif /* MIGR_UVERBS_H */
