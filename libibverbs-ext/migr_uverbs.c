// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>

#include "migr_uverbs.h"

void migr_ioctl_init(struct migr_ioctl *cmd, uint16_t object, uint16_t method)
{
	memset(cmd, 0, sizeof(*cmd));
	cmd->hdr.object_id = object;
	cmd->hdr.method_id = method;
	cmd->hdr.driver_id = RDMA_DRIVER_RXE;
}

static struct ib_uverbs_attr *add(struct migr_ioctl *cmd, uint16_t id,
				  size_t length)
{
	struct ib_uverbs_attr *attr = &cmd->attr[cmd->hdr.num_attrs++];

	attr->attr_id = id;
	attr->len = (uint16_t)length;
	attr->flags = UVERBS_ATTR_F_MANDATORY;
	return attr;
}

void migr_ioctl_in(struct migr_ioctl *cmd, uint16_t id, const void *data,
		   size_t length)
{
	struct ib_uverbs_attr *attr = add(cmd, id, length);

	/* the kernel looks for short data in the attribute, not behind it */
	if (length <= sizeof(attr->data))
		memcpy(&attr->data, data, length);
	else
		attr->data = (uintptr_t)data;
}

void migr_ioctl_out(struct migr_ioctl *cmd, uint16_t id, void *data,
		    size_t length)
{
	add(cmd, id, length)->data = (uintptr_t)data;
}

void migr_ioctl_const(struct migr_ioctl *cmd, uint16_t id, uint64_t value)
{
	add(cmd, id, sizeof(value))->data = value;
}

void migr_ioctl_handle(struct migr_ioctl *cmd, uint16_t id, uint32_t handle)
{
	add(cmd, id, 0)->data = handle;
}

const struct ib_uverbs_attr *migr_ioctl_new_fd(struct migr_ioctl *cmd,
					       uint16_t id)
{
	struct ib_uverbs_attr *attr = add(cmd, id, 0);

	attr->data_s64 = -1;
	return attr;
}

static int run(int fd, struct migr_ioctl *cmd)
{
	cmd->hdr.length =
		sizeof(cmd->hdr) + cmd->hdr.num_attrs * sizeof(cmd->attr[0]);
	return ioctl(fd, RDMA_VERBS_IOCTL, cmd) ? -errno : 0;
}

/*
 * The core says EINVAL to commands for another driver. A method that cannot
 * fail otherwise tells this EINVAL from the ones that mean something.
 */
static bool is_rxe(int fd)
{
	struct migr_ioctl cmd;
	uint32_t handle;

	migr_ioctl_init(&cmd, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES);
	migr_ioctl_const(&cmd, UVERBS_ATTR_INFO_OBJECT_ID, UVERBS_OBJECT_PD);
	migr_ioctl_out(&cmd, UVERBS_ATTR_INFO_HANDLES_LIST, &handle,
		       sizeof(handle));
	return run(fd, &cmd) != -EINVAL;
}

int migr_ioctl_run(int fd, struct migr_ioctl *cmd)
{
	int ret = run(fd, cmd);

	switch (ret) {
	case -ENOTTY:
	case -EPROTONOSUPPORT:
		return -EOPNOTSUPP;
	case -EINVAL:
		return is_rxe(fd) ? ret : -EOPNOTSUPP;
	default:
		return ret;
	}
}

int migr_device_run(int fd, uint16_t method, const void *in, size_t in_length,
		    void *out, size_t out_length)
{
	struct migr_ioctl cmd;

	migr_ioctl_init(&cmd, UVERBS_OBJECT_DEVICE, method);
	if (in)
		migr_ioctl_in(&cmd, RXE_MIGR_ATTR_IN, in, in_length);
	if (out)
		migr_ioctl_out(&cmd, RXE_MIGR_ATTR_OUT, out, out_length);
	return migr_ioctl_run(fd, &cmd);
}

int migr_write_run(int fd, const struct migr_write *w)
{
	struct migr_ioctl cmd;

	migr_ioctl_init(&cmd, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	migr_ioctl_const(&cmd, UVERBS_ATTR_WRITE_CMD, w->command);
	migr_ioctl_in(&cmd, UVERBS_ATTR_CORE_IN, w->in, w->in_length);
	if (w->out)
		migr_ioctl_out(&cmd, UVERBS_ATTR_CORE_OUT, w->out,
			       w->out_length);
	if (w->driver_out)
		migr_ioctl_out(&cmd, UVERBS_ATTR_UHW_OUT, w->driver_out,
			       w->driver_out_length);
	if (w->restore)
		migr_ioctl_in(&cmd, RXE_MIGR_ATTR_RESTORE, w->restore,
			      sizeof(*w->restore));
	return migr_ioctl_run(fd, &cmd);
}

int migr_query_mtu(int fd, uint8_t *active_mtu)
{
	const struct ib_uverbs_query_port in = { .port_num = 1 };
	struct ib_uverbs_query_port_resp out = {};
	const struct migr_write cmd = {
		.command = IB_USER_VERBS_CMD_QUERY_PORT,
		.in = &in,
		.in_length = sizeof(in),
		.out = &out,
		.out_length = sizeof(out),
	};
	int ret = migr_write_run(fd, &cmd);

	*active_mtu = out.active_mtu;
	return ret;
}
