// SPDX-License-Identifier: GPL-2.0
/* Whose are the ids of rdma_cm, by what netlink says, whole or not */
#include <errno.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <string.h>
#include <unistd.h>

#include "../../tests/check.h"
#include "rdma_plugin.h"

static _Alignas(4) char msg[512];
static size_t length;

static struct nlattr *begin(int type)
{
	struct nlattr *a = (void *)(msg + length);

	length += sizeof(*a);
	a->nla_type = type;
	return a;
}

static void end(struct nlattr *a)
{
	a->nla_len = msg + length - (char *)a;
	length = NLA_ALIGN(length);
}

static void put(int type, const void *data, size_t n)
{
	struct nlattr *a = begin(type);

	memcpy(msg + length, data, n);
	length += n;
	end(a);
}

static void put_id(uint32_t tid, const char *kernel)
{
	struct nlattr *a = begin(RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY);
	uint32_t space = 0x106;

	put(RDMA_NLDEV_ATTR_RES_PS, &space, sizeof(space));
	if (kernel)
		put(RDMA_NLDEV_ATTR_RES_KERN_NAME, kernel, strlen(kernel) + 1);
	if (tid)
		put(RDMA_NLDEV_ATTR_RES_PID, &tid, sizeof(tid));
	end(a);
}

static struct rp_cm_ids seen(void)
{
	struct rp_cm_ids ids = { .pid = getpid(), .fd = -1 };

	CHECK(!rp_cm_see_ids(msg, length, &ids));
	return ids;
}

static void owners(void)
{
	uint32_t index = 0;
	struct nlattr *table;

	put(RDMA_NLDEV_ATTR_DEV_INDEX, &index, sizeof(index));
	CHECK(!seen().own && !seen().unclear);
	table = begin(RDMA_NLDEV_ATTR_RES_CM_ID);
	put_id(0, "nvme_rdma");
	end(table);
	CHECK(!seen().own && !seen().unclear);
	table = begin(RDMA_NLDEV_ATTR_RES_CM_ID);
	put_id(getppid(), NULL); /* another process, without a channel */
	end(table);
	CHECK(!seen().own && seen().unclear == 1);
	put_id(getpid(), NULL); /* outside of any table */
	CHECK(!seen().own);
	table = begin(RDMA_NLDEV_ATTR_RES_CM_ID | NLA_F_NESTED);
	put_id(getpid(), NULL);
	put_id(0, NULL);
	put_id(getpid(), NULL);
	end(table);
	CHECK(seen().own == 2 && seen().unclear == 2);
}

/* what is cut off is told from what is not there */
static void damaged(void)
{
	struct rp_cm_ids ids = { .pid = getpid(), .fd = -1 };
	struct nlattr *table, *id;
	uint16_t half = 1;

	length = 0;
	table = begin(RDMA_NLDEV_ATTR_RES_CM_ID);
	id = begin(RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY);
	put(RDMA_NLDEV_ATTR_RES_PID, &half, sizeof(half));
	end(id);
	end(table);
	CHECK(rp_cm_see_ids(msg, length, &ids) == -EBADMSG);
	CHECK(rp_cm_see_ids(msg, length - 4, &ids) == -EBADMSG);
	id->nla_len = 2;
	CHECK(rp_cm_see_ids(msg, length, &ids) == -EBADMSG);
	CHECK(!ids.own && !ids.unclear);
}

static int count(const void *attrs, size_t n, void *arg)
{
	(void)attrs;
	(void)n;
	++*(int *)arg;
	return 0;
}

/* a message, and what ends the answer with it */
static int answer(int last, int result, size_t n, int *counted)
{
	struct {
		struct nlmsghdr first, last;
		int result;
	} a = {
		.first.nlmsg_len = sizeof(a.first),
		.first.nlmsg_type = 0x1401,
		.last.nlmsg_len = (uint32_t)(sizeof(a.last) + n),
		.last.nlmsg_type = (uint16_t)last,
		.result = result,
	};
	const struct rp_cm_dump d = { count, counted };

	*counted = 0;
	return rp_cm_take_answer(&a.first, sizeof(a), &d);
}

/* that a dump has failed stands in its last message, too */
static void ends(void)
{
	int n;

	CHECK(answer(NLMSG_DONE, 0, sizeof(int), &n) == 1 && n == 1);
	CHECK(answer(NLMSG_DONE, -EMSGSIZE, sizeof(int), &n) == -EMSGSIZE);
	CHECK(answer(NLMSG_DONE, 0, 0, &n) == -EBADMSG);
	CHECK(answer(NLMSG_ERROR, -EPERM, sizeof(int), &n) == -EPERM);
	CHECK(answer(NLMSG_ERROR, 0, 2, &n) == -EBADMSG);
}

int main(void)
{
	owners();
	damaged();
	ends();
	return check_result();
}
