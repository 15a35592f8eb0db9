// SPDX-License-Identifier: GPL-2.0
/*
 * Channels of rdma_cm, /dev/infiniband/rdma_cm. One without ids has no state but
 * its flags, so that a new one can take its place: a program may have such a channel
 * and know nothing of it, because a library opens one in advance. It is in its
 * place only. The kernel lets nobody write to it whose credentials are not those
 * that opened it (ib_safe_file_access()), and they were CRIU's: whoever wants an
 * id, and had none before, gets EACCES.
 *
 * Which ids there are netlink tells, of those that are bound to a device. An id
 * without one (made and not yet bound, or bound to any address and not listening)
 * nobody can see from outside: it is lost with its channel.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/kcmp.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rdma_plugin.h"

/* ---- attributes ---- */

/* Call `fn` for each attribute of this type, until it returns something */
static int for_each(const void *data, size_t length, int type,
		    int (*fn)(const void *data, size_t length, void *arg),
		    void *arg)
{
	const struct nlattr *a;
	size_t whole;
	int ret;

	while (length >= sizeof(*a)) {
		a = data;
		if (a->nla_len < sizeof(*a) || a->nla_len > length)
			return -EBADMSG;
		ret = 0;
		if ((a->nla_type & NLA_TYPE_MASK) == type)
			ret = fn(a + 1, a->nla_len - sizeof(*a), arg);
		whole = NLA_ALIGN(a->nla_len);
		if (ret || whole >= length)
			return ret;
		data = (const char *)data + whole;
		length -= whole;
	}
	return length ? -EBADMSG : 0;
}

static int get_number(const void *data, size_t length, void *arg)
{
	if (length != sizeof(uint32_t))
		return -EBADMSG;
	memcpy(arg, data, length);
	return 0;
}

static int note_it(const void *data, size_t length, void *arg)
{
	(void)data;
	(void)length;
	*(bool *)arg = true;
	return 0;
}

/* ---- requests ---- */

int rp_cm_take_answer(const struct nlmsghdr *h, int length,
		      const struct rp_cm_dump *d)
{
	int ret = 0;

	for (; NLMSG_OK(h, (unsigned int)length) && !ret;
	     h = NLMSG_NEXT(h, length)) {
		if (h->nlmsg_type != NLMSG_DONE &&
		    h->nlmsg_type != NLMSG_ERROR) {
			ret = d->fn(NLMSG_DATA(h), NLMSG_PAYLOAD(h, 0), d->arg);
			continue;
		}
		/* both begin with what has gone wrong */
		if (NLMSG_PAYLOAD(h, 0) < sizeof(int))
			return -EBADMSG;
		ret = *(const int *)NLMSG_DATA(h);
		if (!ret && h->nlmsg_type == NLMSG_DONE)
			return 1;
	}
	return ret;
}

/* Everything that a command of rdma-netlink(7) knows, of a device or of all */
static int dump(int command, const uint32_t *device, const struct rp_cm_dump *d)
{
	struct {
		struct nlmsghdr h;
		struct nlattr attr;
		uint32_t device;
	} req = {
		.h.nlmsg_len = device ? sizeof(req) : sizeof(req.h),
		.h.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command),
		.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		.attr.nla_len = sizeof(req.attr) + sizeof(req.device),
		.attr.nla_type = RDMA_NLDEV_ATTR_DEV_INDEX,
		.device = device ? *device : 0,
	};
	/* the kernel makes no larger ones */
	_Alignas(struct nlmsghdr) char buf[32768];
	int sock, ret;
	ssize_t n;

	sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	if (sock < 0)
		return -errno;
	ret = send(sock, &req, req.h.nlmsg_len, 0) < 0 ? -errno : 0;
	while (!ret) {
		n = recv(sock, buf, sizeof(buf), MSG_TRUNC);
		if (n < 0)
			ret = errno == EINTR ? 0 : -errno;
		else if (n == 0 || (size_t)n > sizeof(buf))
			ret = -EBADMSG;
		else
			ret = rp_cm_take_answer((void *)buf, (int)n, d);
	}
	close(sock);
	return ret < 0 ? ret : 0;
}

/* ---- ids ---- */

/* Is the thread one of the process? */
static bool has_thread(pid_t pid, pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", pid, tid);
	return !access(path, F_OK);
}

/*
 * Has who made an id a channel of its own? Then that is taken for the id's. Else it
 * may have made it on ours, which it has inherited or passed on.
 */
static bool has_another_channel(const struct rp_cm_ids *ids, pid_t tid)
{
	bool has = false, same = false;
	struct rp_task task;
	long order;

	if (rp_task_scan_files(tid, &task))
		return false;
	for (size_t i = 0; i < task.nr_fds; i++) {
		if (task.fds[i].kind != RP_CM)
			continue;
		order = syscall(SYS_kcmp, getpid(), tid, KCMP_FILE, ids->fd,
				task.fds[i].fd);
		same |= !order;
		has |= order > 0;
	}
	rp_task_free(&task);
	return has && !same;
}

/* An id belongs to the thread that made it, if that lives, or to the kernel */
static int see_id(const void *attrs, size_t length, void *arg)
{
	struct rp_cm_ids *ids = arg;
	bool kernel = false;
	uint32_t tid = 0;
	int err;

	err = for_each(attrs, length, RDMA_NLDEV_ATTR_RES_KERN_NAME, note_it,
		       &kernel);
	if (!err)
		err = for_each(attrs, length, RDMA_NLDEV_ATTR_RES_PID,
			       get_number, &tid);
	if (err || kernel)
		return err;
	if (tid && has_thread(ids->pid, tid))
		ids->own++;
	else if (!tid || !has_another_channel(ids, tid))
		ids->unclear++;
	return 0;
}

static int see_table(const void *attrs, size_t length, void *arg)
{
	return for_each(attrs, length, RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY, see_id,
			arg);
}

int rp_cm_see_ids(const void *attrs, size_t length, void *ids)
{
	return for_each(attrs, length, RDMA_NLDEV_ATTR_RES_CM_ID, see_table,
			ids);
}

struct devices {
	uint32_t *index;
	size_t nr;
};

static int note_device(const void *attrs, size_t length, void *arg)
{
	struct devices *devices = arg;
	uint32_t *p;
	int err;

	p = reallocarray(devices->index, devices->nr + 1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	devices->index = p;
	p[devices->nr] = UINT32_MAX;
	err = for_each(attrs, length, RDMA_NLDEV_ATTR_DEV_INDEX, get_number,
		       p + devices->nr);
	devices->nr++;
	return err;
}

int rp_cm_ids(pid_t pid, int fd, struct rp_cm_ids *ids)
{
	struct devices devices = { 0 };
	const struct rp_cm_dump all = { note_device, &devices };
	const struct rp_cm_dump one = { rp_cm_see_ids, ids };
	int err;

	*ids = (struct rp_cm_ids){ .pid = pid, .fd = fd };
	err = dump(RDMA_NLDEV_CMD_GET, NULL, &all);
	for (size_t i = 0; i < devices.nr && !err; i++)
		err = dump(RDMA_NLDEV_CMD_RES_CM_ID_GET, devices.index + i,
			   &one);
	free(devices.index);
	return err;
}
