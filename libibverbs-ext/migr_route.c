// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Does this host reach a peer from one of its addresses? Asked of the kernel's
 * routing tables, rtnetlink(7), in the network namespace of the caller.
 */

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "migr_qp.h"
#include "migr_restore.h"

struct request {
	struct nlmsghdr nlh;
	struct rtmsg rtm;
	char attrs[3 * RTA_SPACE(16)];
};

struct answer {
	uint8_t type;	  /* RTN_* */
	uint32_t ifindex; /* 0: the route has several or none */
	uint8_t source[16];
	bool has_source;
};

static void add_attr(struct request *req, uint16_t type, const void *data,
		     uint16_t length)
{
	struct rtattr *rta = (void *)((char *)req + req->nlh.nlmsg_len);

	rta->rta_type = type;
	rta->rta_len = (uint16_t)RTA_LENGTH(length);
	memcpy(RTA_DATA(rta), data, length);
	req->nlh.nlmsg_len += RTA_ALIGN(rta->rta_len);
}

static void add_addr(struct request *req, uint16_t type, const uint8_t *gid)
{
	if (req->rtm.rtm_family == AF_INET)
		add_attr(req, type, gid + 12, 4);
	else
		add_attr(req, type, gid, 16);
}

static int read_answer(const struct nlmsghdr *nlh, struct answer *a)
{
	struct rtmsg *rtm = NLMSG_DATA(nlh);
	struct rtattr *rta = RTM_RTA(rtm);
	int left = (int)RTM_PAYLOAD(nlh);

	a->type = rtm->rtm_type;
	for (; RTA_OK(rta, left); rta = RTA_NEXT(rta, left)) {
		if (rta->rta_type == RTA_OIF &&
		    RTA_PAYLOAD(rta) == sizeof(a->ifindex)) {
			memcpy(&a->ifindex, RTA_DATA(rta), sizeof(a->ifindex));
		} else if (rta->rta_type == RTA_PREFSRC &&
			   RTA_PAYLOAD(rta) <= sizeof(a->source)) {
			/* an IPv4 address at its place in a GID */
			memcpy(a->source + 16 - RTA_PAYLOAD(rta), RTA_DATA(rta),
			       RTA_PAYLOAD(rta));
			a->has_source = true;
		}
	}
	return 0;
}

static int talk(int sock, const struct request *req, struct answer *a)
{
	union {
		struct nlmsghdr nlh;
		char room[4096];
	} buf;
	const struct nlmsgerr *e = NLMSG_DATA(&buf.nlh);
	ssize_t n;

	memset(a, 0, sizeof(*a));
	if (send(sock, req, req->nlh.nlmsg_len, 0) < 0)
		return -errno;
	n = recv(sock, &buf, sizeof(buf), 0);
	if (n < 0)
		return -errno;
	if (!NLMSG_OK(&buf.nlh, (size_t)n))
		return -EPROTO;
	if (buf.nlh.nlmsg_type == NLMSG_ERROR)
		return e->error ?: -EPROTO;
	if (buf.nlh.nlmsg_type != RTM_NEWROUTE)
		return -EPROTO;
	return read_answer(&buf.nlh, a);
}

/* What the kernel does with a packet to `dgid` that leaves through `ifindex` */
static int ask(int sock, const uint8_t *dgid, const uint8_t *sgid,
	       uint32_t ifindex, struct answer *a)
{
	bool ipv4 = migr_gid_is_ipv4(dgid);
	struct request req = {
		.nlh.nlmsg_len = NLMSG_LENGTH(sizeof(req.rtm)),
		.nlh.nlmsg_type = RTM_GETROUTE,
		.nlh.nlmsg_flags = NLM_F_REQUEST,
		.rtm.rtm_family = ipv4 ? AF_INET : AF_INET6,
		.rtm.rtm_dst_len = ipv4 ? 32 : 128,
	};

	add_addr(&req, RTA_DST, dgid);
	add_attr(&req, RTA_OIF, &ifindex, sizeof(ifindex));
	if (sgid) {
		/* without it IPv4 takes whoever has no route for a neighbour */
		req.rtm.rtm_flags = RTM_F_FIB_MATCH;
		req.rtm.rtm_src_len = req.rtm.rtm_dst_len;
		add_addr(&req, RTA_SRC, sgid);
	}
	return talk(sock, &req, a);
}

static enum migr_reach reach(int sock, const uint8_t *dgid, const uint8_t *sgid,
			     uint32_t ifindex)
{
	struct answer a;
	int ret;

	/* in another namespace than the device's nothing follows from routes */
	if (ask(sock, sgid, NULL, ifindex, &a) || a.type != RTN_LOCAL)
		return MIGR_REACH_UNKNOWN;

	ret = ask(sock, dgid, sgid, ifindex, &a);
	if (ret == -ENETUNREACH || ret == -EHOSTUNREACH || ret == -EACCES)
		return MIGR_REACH_NONE;
	if (ret)
		return MIGR_REACH_UNKNOWN;
	if (a.type != RTN_UNICAST && a.type != RTN_LOCAL)
		return MIGR_REACH_NONE;
	if (a.type == RTN_UNICAST && a.ifindex && a.ifindex != ifindex)
		return MIGR_REACH_NONE; /* IPv6 takes RTA_OIF for a wish */

	ret = ask(sock, dgid, NULL, ifindex, &a);
	if (!ret && a.has_source) {
		if (migr_gid_is_ipv4(sgid))
			return memcmp(a.source + 12, sgid + 12, 4)
				       ? MIGR_REACH_ROUTE
				       : MIGR_REACH_BEST;
		if (!memcmp(a.source, sgid, 16))
			return MIGR_REACH_BEST;
	}
	return MIGR_REACH_ROUTE;
}

enum migr_reach migr_route(const uint8_t *dgid, const uint8_t *sgid,
			   uint32_t ifindex)
{
	enum migr_reach ret;
	int sock;

	sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (sock < 0)
		return MIGR_REACH_UNKNOWN;
	ret = reach(sock, dgid, sgid, ifindex);
	close(sock);
	return ret;
}
