// SPDX-License-Identifier: GPL-2.0
#include "nldev.h"

#include <string.h>

#include <rdma/rdma_netlink.h>

static struct nlmsghdr *begin(void *buf, uint32_t seq, int command, int flags)
{
	struct nlmsghdr *h = mnl_nlmsg_put_header(buf);

	h->nlmsg_type = (uint16_t)RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command);
	h->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	h->nlmsg_seq = seq;
	return h;
}

struct nlmsghdr *nldev_ask_devices(void *buf, uint32_t seq)
{
	return begin(buf, seq, RDMA_NLDEV_CMD_GET, NLM_F_ACK | NLM_F_DUMP);
}

static struct nlmsghdr *ask(void *buf, uint32_t seq, int command,
			    uint32_t device, uint16_t what, uint32_t id)
{
	struct nlmsghdr *h = begin(buf, seq, command, NLM_F_ACK);

	mnl_attr_put_u32(h, RDMA_NLDEV_ATTR_DEV_INDEX, device);
	mnl_attr_put_u32(h, what, id);
	return h;
}

/* The kernel wants the port of an object that has one, and of no other. */
struct nlmsghdr *nldev_ask_qp(void *buf, uint32_t seq, uint32_t device,
			      uint32_t port, uint32_t qpn)
{
	struct nlmsghdr *h = ask(buf, seq, RDMA_NLDEV_CMD_RES_QP_GET, device,
				 RDMA_NLDEV_ATTR_RES_LQPN, qpn);

	mnl_attr_put_u32(h, RDMA_NLDEV_ATTR_PORT_INDEX, port);
	return h;
}

struct nlmsghdr *nldev_ask_pd(void *buf, uint32_t seq, uint32_t device,
			      uint32_t pdn)
{
	return ask(buf, seq, RDMA_NLDEV_CMD_RES_PD_GET, device,
		   RDMA_NLDEV_ATTR_RES_PDN, pdn);
}

struct nlmsghdr *nldev_ask_mrs(void *buf, uint32_t seq, uint32_t device)
{
	struct nlmsghdr *h = begin(buf, seq, RDMA_NLDEV_CMD_RES_MR_GET,
				   NLM_F_ACK | NLM_F_DUMP);

	mnl_attr_put_u32(h, RDMA_NLDEV_ATTR_DEV_INDEX, device);
	return h;
}

static int to_table(const struct nlattr *a, void *data)
{
	const struct nlattr **table = data;
	uint16_t type = mnl_attr_get_type(a);

	if (type < RDMA_NLDEV_ATTR_MAX)
		table[type] = a;
	return MNL_CB_OK;
}

static bool parse(const struct nlmsghdr *h, const struct nlattr **table)
{
	return mnl_attr_parse(h, 0, to_table, (void *)table) > MNL_CB_STOP;
}

static bool get_u32(const struct nlattr *a, uint32_t *n)
{
	if (!a || mnl_attr_validate(a, MNL_TYPE_U32) < 0)
		return false;
	*n = mnl_attr_get_u32(a);
	return true;
}

bool nldev_is_device(const struct nlmsghdr *h, struct nldev_device *d)
{
	const struct nlattr *table[RDMA_NLDEV_ATTR_MAX] = { NULL };
	const struct nlattr *name;

	if (!parse(h, table) ||
	    !get_u32(table[RDMA_NLDEV_ATTR_DEV_INDEX], &d->index))
		return false;
	name = table[RDMA_NLDEV_ATTR_DEV_NAME];
	if (!name || mnl_attr_validate(name, MNL_TYPE_NUL_STRING) < 0 ||
	    mnl_attr_get_payload_len(name) > sizeof(d->name))
		return false;
	strcpy(d->name, mnl_attr_get_str(name));
	return true;
}

static void read_object(const struct nlattr *const *table,
			struct nldev_object *o)
{
	*o = (struct nldev_object){ 0 };
	get_u32(table[RDMA_NLDEV_ATTR_RES_PID], &o->tid);
	o->has_pdn = get_u32(table[RDMA_NLDEV_ATTR_RES_PDN], &o->pdn);
	o->is_kernels = table[RDMA_NLDEV_ATTR_RES_KERN_NAME];
}

bool nldev_is_object(const struct nlmsghdr *h, struct nldev_object *o)
{
	const struct nlattr *table[RDMA_NLDEV_ATTR_MAX] = { NULL };
	bool good = parse(h, table);

	read_object(table, o);
	return good;
}

void nldev_each_mr(const struct nlmsghdr *h,
		   void (*each)(const struct nldev_object *o, void *arg),
		   void *arg)
{
	const struct nlattr *all[RDMA_NLDEV_ATTR_MAX] = { NULL };
	const struct nlattr *table[RDMA_NLDEV_ATTR_MAX];
	const struct nlattr *entry;
	struct nldev_object o;

	if (!parse(h, all) || !all[RDMA_NLDEV_ATTR_RES_MR])
		return;
	mnl_attr_for_each_nested(entry, all[RDMA_NLDEV_ATTR_RES_MR])
	{
		memset(table, 0, sizeof(table));
		if (mnl_attr_parse_nested(entry, to_table, (void *)table) <=
		    MNL_CB_STOP)
			continue;
		read_object(table, &o);
		each(&o, arg);
	}
}
