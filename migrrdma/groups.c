// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Multicast groups of QPs of datagrams
 */
#include "groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gate.h"

static struct group *find(struct shadow_qp *s, const union ibv_gid *gid,
			  uint16_t lid)
{
	struct group *g;

	SLIST_FOREACH (g, &s->groups, entry)
		if (!memcmp(&g->gid, gid, sizeof(*gid)) && g->lid == lid)
			return g;
	return NULL;
}

static void forget(struct shadow_qp *s, struct group *g)
{
	SLIST_REMOVE(&s->groups, g, group, entry);
	free(g);
}

/* whoever is in one already is in it once, and leaves it once, as in the kernel */
static int attach(struct shadow_qp *s, const union ibv_gid *gid, uint16_t lid)
{
	struct group *g = find(s, gid, lid), *made = NULL;
	int err;

	if (!g) {
		made = calloc(1, sizeof(*made));
		if (!made)
			return ENOMEM;
		made->gid = *gid;
		made->lid = lid;
	}
	err = real()->ibv_attach_mcast(s->real, gid, lid);
	if (err)
		free(made);
	else if (made)
		SLIST_INSERT_HEAD(&s->groups, made, entry);
	return err;
}

static int detach(struct shadow_qp *s, const union ibv_gid *gid, uint16_t lid)
{
	int err = real()->ibv_detach_mcast(s->real, gid, lid);
	struct group *g = err ? NULL : find(s, gid, lid);

	if (g)
		forget(s, g);
	return err;
}

typedef int change_groups(struct shadow_qp *s, const union ibv_gid *gid,
			  uint16_t lid);

/*
 * The lock is one of its own: libibverbs' commands may look at all contexts (bury.c), and
 * who has their lock waits for that of one of them.
 */
static int change(struct shadow_qp *s, change_groups *how,
		  const union ibv_gid *gid, uint16_t lid)
{
	struct shadow_context *c = to_context(s->qp.context);
	int err;

	pthread_mutex_lock(&c->groups_lock);
	err = how(s, gid, lid);
	pthread_mutex_unlock(&c->groups_lock);
	return err;
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	if (!is_shadow(qp->context))
		return real()->ibv_attach_mcast(qp, gid, lid);
	return GATED_WITH(to_qp(qp), change(to_qp(qp), attach, gid, lid));
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	if (!is_shadow(qp->context))
		return real()->ibv_detach_mcast(qp, gid, lid);
	return GATED_WITH(to_qp(qp), change(to_qp(qp), detach, gid, lid));
}

int groups_join(struct shadow_qp *s)
{
	struct group *g;
	int err = 0;

	SLIST_FOREACH (g, &s->groups, entry)
		if (!err)
			err = real()->ibv_attach_mcast(s->other, &g->gid,
						       g->lid);
	return err;
}

void groups_leave(struct shadow_qp *s)
{
	struct group *g;

	SLIST_FOREACH (g, &s->groups, entry)
		real()->ibv_detach_mcast(s->other, &g->gid, g->lid);
}

void groups_free(struct shadow_qp *s)
{
	while (!SLIST_EMPTY(&s->groups))
		forget(s, SLIST_FIRST(&s->groups));
}
