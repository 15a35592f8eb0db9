// SPDX-License-Identifier: GPL-2.0
/*
 * Multicast groups and their members.
 */
#include "impl.h"

struct group *group_find(struct roce_engine *e, const uint8_t gid[16])
{
	uint8_t mac[6];

	if (!gid_multicast_mac(gid, mac))
		return NULL; /* as nearly all */
	for (uint32_t i = 0; i < ROCE_MAX_GROUPS; i++)
		if (e->groups[i].count && !memcmp(e->groups[i].gid, gid, 16))
			return &e->groups[i];
	return NULL;
}

static struct group *free_group(struct roce_engine *e)
{
	for (uint32_t i = 0; i < ROCE_MAX_GROUPS; i++)
		if (!e->groups[i].count)
			return &e->groups[i];
	return NULL;
}

static bool leave(struct group *g, const struct roce_qp *qp)
{
	for (uint32_t i = 0; i < g->count; i++)
		if (g->qp[i] == qp) {
			g->qp[i] = g->qp[--g->count];
			return true;
		}
	return false;
}

void group_leave_all(struct roce_qp *qp)
{
	for (uint32_t i = 0; i < ROCE_MAX_GROUPS; i++)
		leave(&qp->engine->groups[i], qp);
}

int roce_attach(struct roce_qp *qp, const uint8_t gid[16])
{
	struct group *g = group_find(qp->engine, gid);
	uint8_t mac[6];

	if (qp->init.type != ROCE_QPT_UD || !gid_multicast_mac(gid, mac))
		return -EINVAL;
	if (!g)
		g = free_group(qp->engine);
	if (!g)
		return -ENOSPC;
	for (uint32_t i = 0; i < g->count; i++)
		if (g->qp[i] == qp)
			return 0;
	if (g->count == ROCE_MAX_GROUP_QPS)
		return -ENOSPC;
	memcpy(g->gid, gid, 16);
	g->qp[g->count++] = qp;
	return 0;
}

int roce_detach(struct roce_qp *qp, const uint8_t gid[16])
{
	struct group *g = group_find(qp->engine, gid);

	return g && leave(g, qp) ? 0 : -ENOENT;
}
