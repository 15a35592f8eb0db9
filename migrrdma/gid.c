// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "gid.h"

#include <netinet/in.h>
#include <string.h>

enum {
	MOST_GIDS = 1024 /* of all ports: an ioctl takes no more than 64 KiB */
};

void gid_note(struct shadow_qp *qp)
{
	struct ibv_context *ctx = real_context(qp->qp.context);
	const struct ibv_ah_attr *av = &qp->attr.ah_attr;

	qp->gid.port_num = 0; /* it is not known */
	if (qp->attr_mask & IBV_QP_AV &&
	    real()->_ibv_query_gid_ex(ctx, av->port_num, qp->sgid_index,
				      &qp->gid, 0, sizeof(qp->gid)))
		qp->gid.port_num = 0;
}

static const char *family(const union ibv_gid *gid)
{
	const struct in6_addr *addr = (const struct in6_addr *)gid->raw;

	if (IN6_IS_ADDR_V4MAPPED(addr))
		return "IPv4";
	return IN6_IS_ADDR_LINKLOCAL(addr) ? "link-local" : "IPv6";
}

static const char *type(uint32_t type)
{
	switch (type) {
	case IBV_GID_TYPE_IB:
		return "IB";
	case IBV_GID_TYPE_ROCE_V1:
		return "RoCE v1";
	case IBV_GID_TYPE_ROCE_V2:
		return "RoCE v2";
	default:
		return "unknown";
	}
}

/* how well it takes the place of what the QP had; 0: not at all */
static int rank(const struct shadow_qp *qp, const struct ibv_gid_entry *e)
{
	if (e->port_num != qp->gid.port_num ||
	    e->gid_type != qp->gid.gid_type ||
	    strcmp(family(&e->gid), family(&qp->gid.gid)))
		return 0;
	if (!memcmp(&e->gid, &qp->gid.gid, sizeof(e->gid)))
		return 3;
	return e->gid_index == qp->sgid_index ? 2 : 1;
}

static int take_best(struct shadow_qp *qp, const struct ibv_gid_entry *all,
		     ssize_t n, struct swap *s)
{
	const struct ibv_gid_entry *best = NULL;

	for (ssize_t i = 0; i < n; i++)
		if (rank(qp, &all[i]) > (best ? rank(qp, best) : 0))
			best = &all[i];
	if (!best)
		return swap_refuse(
			s, EADDRNOTAVAIL,
			"QP 0x%06x: port %u has no GID of type %s, %s",
			qp->qp.qp_num, qp->gid.port_num, type(qp->gid.gid_type),
			family(&qp->gid.gid));
	qp->sgid_index = (uint8_t)best->gid_index;
	return 0;
}

int gid_find(struct shadow_qp *qp, struct ibv_context *real_ctx, struct swap *s)
{
	struct ibv_gid_entry *all;
	ssize_t n;
	int err;

	if (!qp->gid.port_num)
		return 0;
	all = calloc(MOST_GIDS, sizeof(*all));
	if (!all)
		return swap_refuse(s, ENOMEM, "no memory for GIDs");
	n = real()->_ibv_query_gid_table(real_ctx, all, MOST_GIDS, 0,
					 sizeof(*all));
	err = n < 0 ? swap_refuse(s, (int)-n, "GIDs: %s", strerror((int)-n))
		    : take_best(qp, all, n, s);
	free(all);
	return err;
}
