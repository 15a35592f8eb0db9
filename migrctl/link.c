// SPDX-License-Identifier: GPL-2.0
#include "link.h"

#include <errno.h>
#include <net/if.h>
#include <stdint.h>
#include <string.h>

#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>

union message {
	struct nlmsghdr h;
	char room[8192]; /* MNL_SOCKET_BUFFER_SIZE is no constant */
};

static bool begin(union message *m, uint16_t type, const char *name)
{
	struct ifinfomsg *info;

	mnl_nlmsg_put_header(m);
	m->h.nlmsg_type = type;
	m->h.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	m->h.nlmsg_seq = 1;
	info = mnl_nlmsg_put_extra_header(&m->h, sizeof(*info));
	info->ifi_index = (int)if_nametoindex(name);
	return info->ifi_index;
}

static int read_master(const struct nlmsghdr *h, void *master)
{
	const struct nlattr *a;

	mnl_attr_for_each (a, h, sizeof(struct ifinfomsg))
		if (mnl_attr_get_type(a) == IFLA_MASTER &&
		    mnl_attr_validate(a, MNL_TYPE_U32) >= 0)
			*(unsigned int *)master = mnl_attr_get_u32(a);
	return MNL_CB_OK;
}

/* Its answers, up to that by which the kernel says how it went */
static bool ask(union message *m, unsigned int *master)
{
	struct mnl_socket *s = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	int rc = -1, e;

	if (!s)
		return false;
	if (!mnl_socket_bind(s, 0, MNL_SOCKET_AUTOPID) &&
	    mnl_socket_sendto(s, m, m->h.nlmsg_len) >= 0)
		do {
			ssize_t n = mnl_socket_recvfrom(s, m, sizeof(*m));

			rc = n < 0 ? -1
				   : mnl_cb_run(m, (size_t)n, 1,
						mnl_socket_get_portid(s),
						read_master, master);
		} while (rc > MNL_CB_STOP);
	e = errno;
	mnl_socket_close(s);
	errno = e;
	return rc == MNL_CB_STOP;
}

bool link_master(const char *name, unsigned int *master)
{
	union message m;

	*master = 0;
	return begin(&m, RTM_GETLINK, name) && ask(&m, master);
}

bool link_plug(const char *name, unsigned int master)
{
	union message m;
	unsigned int none;

	if (!begin(&m, RTM_NEWLINK, name))
		return false;
	mnl_attr_put_u32(&m.h, IFLA_MASTER, master);
	return ask(&m, &none);
}
