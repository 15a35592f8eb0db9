// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "met.h"

#include <string.h>

#include "gate.h"
#include "peer.h"
#include "suspend.h"

enum {
	TRIES = 4
};

/* who has said to be the peer of a QP: as many as there are peers, at most */
struct met {
	struct peer *_Atomic peer;
	uint32_t num;
	union ibv_gid gid;
	STAILQ_ENTRY(met) entry;
};

static void forget(struct shadow_qp *qp, struct met *m)
{
	STAILQ_REMOVE(&qp->met, m, met, entry);
	peer_say(&m->peer, NULL);
	free(m);
}

void met_forget(struct shadow_qp *qp)
{
	while (!STAILQ_EMPTY(&qp->met))
		forget(qp, STAILQ_FIRST(&qp->met));
}

static bool is_of(const struct met *m, uint32_t num, const union ibv_gid *gid)
{
	return m->num == num && !memcmp(&m->gid, gid, sizeof(*gid));
}

/* The last one counts, of an address and of a process, whatever turn it says it is in. */
static int add(struct shadow_qp *qp, struct peer *peer, uint32_t num,
	       const union ibv_gid *gid)
{
	struct met *m, *next, *new;

	for (m = STAILQ_FIRST(&qp->met); m; m = next) {
		next = STAILQ_NEXT(m, entry);
		if (is_of(m, num, gid) || peer_is_of(m->peer, peer_id(peer)))
			forget(qp, m);
	}
	new = calloc(1, sizeof(*new));
	if (!new)
		return ENOMEM;
	new->num = num;
	new->gid = *gid;
	peer_say(&new->peer, peer);
	STAILQ_INSERT_TAIL(&qp->met, new, entry);
	return 0;
}

static bool is_connected(const struct shadow_qp *qp)
{
	const int both = IBV_QP_AV | IBV_QP_DEST_QPN;

	return (qp->attr_mask & both) == both && qp->attr.ah_attr.is_global;
}

/* One whose peer has moved leads elsewhere, and whoever has its address now is not the peer. */
static bool leads_as_known(const struct shadow_qp *qp)
{
	return !qp->swap.told ||
	       (qp->swap.peer_num == qp->attr.dest_qp_num &&
		!memcmp(&qp->swap.peer_gid, &qp->attr.ah_attr.grh.dgid,
			sizeof(qp->swap.peer_gid)));
}

/* is it connected to who has said so? */
static bool is_to(const struct shadow_qp *qp, const struct met *m)
{
	return is_of(m, qp->attr.dest_qp_num, &qp->attr.ah_attr.grh.dgid) &&
	       leads_as_known(qp);
}

void met_adopt(struct shadow_qp *qp)
{
	struct met *m;

	if (!is_connected(qp))
		return;
	STAILQ_FOREACH (m, &qp->met, entry)
		if (is_to(qp, m)) {
			peer_lead(&qp->peer, m->peer);
			atomic_fetch_or(&qp->slow, SLOW_NAMES);
		}
	met_forget(qp); /* nobody else is */
}

void met_keep(struct shadow_qp *qp)
{
	if (qp->peer && is_connected(qp) && leads_as_known(qp))
		add(qp, qp->peer, qp->attr.dest_qp_num,
		    &qp->attr.ah_attr.grh.dgid);
}

/* with the lock of its context, whose application may connect it at this moment */
static int meet(struct shadow_qp *qp, struct peer *peer, uint32_t num,
		const union ibv_gid *gid)
{
	int err = add(qp, peer, num, gid);

	if (!err)
		met_adopt(qp);
	return err;
}

static bool is_of_turn_before(const struct peer *peer, const char *id)
{
	return peer_is_of(peer, id) && strcmp(peer_id(peer), id);
}

static bool is_this_one(const struct peer *peer, const char *id)
{
	return !strcmp(peer_id(peer), id);
}

/* with the lock of its context */
static void drop(struct shadow_qp *qp,
		 bool (*which)(const struct peer *peer, const char *id),
		 const char *id)
{
	struct met *m, *next;

	for (m = STAILQ_FIRST(&qp->met); m; m = next) {
		next = STAILQ_NEXT(m, entry);
		if (which(m->peer, id))
			forget(qp, m);
	}
}

static void drop_all(bool (*which)(const struct peer *peer, const char *id),
		     const char *id)
{
	struct shadow_context *c;
	struct shadow_qp *qp;

	gate_lock_contexts();
	TAILQ_FOREACH (c, &contexts, entry) {
		pthread_mutex_lock(&c->lock);
		TAILQ_FOREACH (qp, &c->qps, entry)
			drop(qp, which, id);
		pthread_mutex_unlock(&c->lock);
	}
	gate_unlock_contexts();
}

void met_drop_turns(const char *id)
{
	drop_all(is_of_turn_before, id);
}

/* If a QP has been connected to it meanwhile it is the next one. */
void met_make_room(const char *id)
{
	const char *who;

	for (int i = 0; i < TRIES && (who = peer_makes_room(id)); i++)
		drop_all(is_this_one, who);
}

/* the first one of this number from @qp on */
static struct shadow_qp *next_of(struct shadow_qp *qp, uint32_t qpn)
{
	while (qp && (qp->qp.qp_num != qpn || !qp_has_peer(qp)))
		qp = TAILQ_NEXT(qp, entry);
	return qp;
}

static unsigned int count(uint32_t qpn)
{
	struct shadow_context *c;
	struct shadow_qp *qp;
	unsigned int n = 0;

	TAILQ_FOREACH (c, &contexts, entry) {
		pthread_mutex_lock(&c->lock);
		for (qp = next_of(TAILQ_FIRST(&c->qps), qpn); qp;
		     qp = next_of(TAILQ_NEXT(qp, entry), qpn))
			n++;
		pthread_mutex_unlock(&c->lock);
	}
	return n;
}

static int meet_qp(uint32_t qpn, struct peer *peer, uint32_t peer_num,
		   const union ibv_gid *gid, struct swap *s)
{
	struct shadow_context *c;
	unsigned int n = count(qpn);
	struct shadow_qp *qp;
	int err = 0;

	if (n != 1)
		return swap_refuse(s, EINVAL, "%s 0x%06x",
				   n ? "two QPs are" : "no QP is", qpn);
	TAILQ_FOREACH (c, &contexts, entry) {
		pthread_mutex_lock(&c->lock);
		qp = next_of(TAILQ_FIRST(&c->qps), qpn);
		if (qp)
			err = meet(qp, peer, peer_num, gid);
		pthread_mutex_unlock(&c->lock);
	}
	return err ? swap_refuse(s, err, "no memory for another peer") : 0;
}

static int meet_if_told(uint32_t qpn, const char *id, uint32_t peer_num,
			const union ibv_gid *gid, struct swap *s)
{
	struct peer *peer = peer_find(id);
	int err;

	if (!peer)
		return swap_refuse(s, EINVAL, "it has not told its keys");
	gate_lock_contexts();
	err = meet_qp(qpn, peer, peer_num, gid, s);
	gate_unlock_contexts();
	return err;
}

int layer_met(uint32_t qpn, uint32_t peer_num, const union ibv_gid *gid,
	      const char *id, struct swap *s)
{
	int err;

	*s = (struct swap){};
	err = suspend_take_turn() ? swap_refuse(s, EBUSY, "it is suspended")
				  : meet_if_told(qpn, id, peer_num, gid, s);
	suspend_release();
	return err;
}
