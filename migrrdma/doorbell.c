// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "doorbell.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "section.h"

/* a write() of this size, with no work request in it: those are in the queue */
struct doorbell {
	struct ib_uverbs_cmd_hdr hdr;
	struct ib_uverbs_post_send cmd;
};

static atomic_bool moved;

void doorbell_moved(void)
{
	atomic_store(&moved, true);
}

/* not our ioctl(), which has a lock: who posts must not wait for one */
static int ring(int fd, const struct ib_uverbs_post_send *cmd)
{
	struct ib_uverbs_post_send_resp resp;
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attrs[3];
	} c = {
		.hdr = { .length = sizeof(c),
			 .object_id = UVERBS_OBJECT_DEVICE,
			 .method_id = UVERBS_METHOD_INVOKE_WRITE,
			 .num_attrs = 3,
			 .driver_id = RDMA_DRIVER_RXE },
		.attrs = { { .attr_id = UVERBS_ATTR_WRITE_CMD,
			     .len = sizeof(__u64),
			     .flags = UVERBS_ATTR_F_MANDATORY,
			     .data = IB_USER_VERBS_CMD_POST_SEND },
			   { .attr_id = UVERBS_ATTR_CORE_IN,
			     .len = sizeof(*cmd),
			     .flags = UVERBS_ATTR_F_MANDATORY,
			     .data = (uintptr_t)cmd },
			   { .attr_id = UVERBS_ATTR_CORE_OUT,
			     .len = sizeof(resp),
			     .flags = UVERBS_ATTR_F_MANDATORY,
			     .data = (uintptr_t)&resp } },
	};

	return (int)syscall(SYS_ioctl, fd, RDMA_VERBS_IOCTL, &c);
}

/* as __read() in handles.c */
ssize_t __write(int fd, const void *buf, size_t bytes);

ssize_t write(int fd, const void *buf, size_t bytes)
{
	struct doorbell bell;

	/* a provider's, in a post */
	if (bytes != sizeof(bell) || own_section.depth <= 0 ||
	    !atomic_load(&moved))
		return __write(fd, buf, bytes);
	memcpy(&bell, buf, sizeof(bell));
	if (bell.hdr.command != IB_USER_VERBS_CMD_POST_SEND ||
	    bell.cmd.wr_count || ring(fd, &bell.cmd))
		return __write(fd, buf, bytes);
	return (ssize_t)bytes;
}
