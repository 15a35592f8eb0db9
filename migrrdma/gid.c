// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "gid.h"

#include <string.h>

#include "successor.h"

struct gids *gids_get(struct ibv_context *real_ctx)
{
	struct gids *gids =
		calloc(1, sizeof(*gids) + MOST_GIDS * sizeof(gids->all[0]));
	ssize_t n;

	if (!gids) {
		errno = ENOMEM;
		return NULL;
	}
	n = real()->_ibv_query_gid_table(real_ctx, gids->all, MOST_GIDS, 0,
					 sizeof(gids->all[0]));
	if (n < 0) {
		free(gids);
		errno = (int)-n;
		return NULL;
	}
	gids->n = (size_t)n;
	return gids;
}

/* --- on the host of before --- */

/* @port: 0 if it has none. What is not known here has no successor there. */
static int note(struct source_gid *source, const struct gids *gids,
		uint32_t port, struct swap *s, const char *what, uint32_t which)
{
	source->was.port_num = 0;
	for (size_t i = 0; i < gids->n; i++)
		if (gids->all[i].port_num == port &&
		    gids->all[i].gid_index == source->index)
			source->was = gids->all[i];
	return source->was.port_num == port
		       ? 0
		       : swap_refuse(s, EADDRNOTAVAIL,
				     "%s 0x%06x: port %u has no GID %u any more",
				     what, which, port, source->index);
}

/* What comes to ERR again needs none. */
static bool is_connected(const struct shadow_qp *qp)
{
	return qp->attr_mask & IBV_QP_AV && qp->qp.state != IBV_QPS_ERR;
}

int gids_note(struct shadow_context *c, struct swap *s)
{
	struct gids *gids = gids_get(c->real);
	struct shadow_ah *ah;
	struct shadow_qp *qp;
	int err = 0;

	if (!gids)
		return swap_refuse(s, errno, "GIDs of %s: %s",
				   c->verbs.context.device->name,
				   strerror(errno));
	TAILQ_FOREACH (qp, &c->qps, entry)
		err = err ? err
			  : note(&qp->source, gids,
				 is_connected(qp) ? qp->attr.ah_attr.port_num
						  : 0,
				 s, "QP", qp->qp.qp_num);
	TAILQ_FOREACH (ah, &c->ahs, entry)
		err = err ? err
			  : note(&ah->source, gids,
				 ah->attr.is_global ? ah->attr.port_num : 0, s,
				 "AH", ah->ah.handle);
	free(gids);
	return err;
}

/* --- on the next one --- */

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

const struct ibv_gid_entry *gids_any(const struct gids *gids, uint32_t port)
{
	const struct ibv_gid_entry *any = NULL, *e;

	for (size_t i = 0; i < gids->n; i++) {
		e = &gids->all[i];
		if (e->port_num == port &&
		    (!any || (e->gid_type == IBV_GID_TYPE_ROCE_V2 &&
			      any->gid_type != e->gid_type)))
			any = e;
	}
	return any;
}

int gid_find(struct source_gid *source, const struct shadow_context *c,
	     struct swap *s, const char *what, uint32_t which)
{
	const struct ibv_gid_entry *best, *was = &source->was;

	if (!was->port_num || !c->gids)
		return 0;
	best = successor_of(c->gids->all, c->gids->n, was, source->index);
	if (!best)
		return swap_refuse(
			s, EADDRNOTAVAIL,
			"%s 0x%06x: port %u has no GID of type %s, %s", what,
			which, was->port_num, type(was->gid_type),
			successor_family(&was->gid));
	source->index = (uint8_t)best->gid_index;
	return 0;
}
