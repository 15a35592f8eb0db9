// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Address handles
 */
#include <string.h>

#include "elsewhere.h"
#include "gate.h"
#include "gid.h"
#include "sources.h"

static struct shadow_ah *new_ah(struct ibv_pd *pd)
{
	struct shadow_ah *s = calloc(1, sizeof(*s));

	if (s) {
		s->ah.context = pd->context;
		s->ah.pd = pd;
	} else {
		errno = ENOMEM;
	}
	return s;
}

static struct ibv_ah *made_ah(struct shadow_ah *s, struct ibv_ah *ah)
{
	if (!ah) {
		free(s);
		return NULL;
	}
	s->real = ah;
	s->ah.handle = ah->handle;
	LINK(to_context(s->ah.context), ahs, s);
	return &s->ah;
}

/*
 * Kernels look for who is to get datagrams when the handle is made. He may be gone, and that
 * takes a second, for each handle: these are not looked for again. With the gate closed.
 */
enum {
	MOST_NOWHERE = 16
};
/* from one device, port and GID, that is: another may find him */
static struct {
	const struct ibv_context *from;
	uint8_t port, index;
	union ibv_gid gid;
} nowhere[MOST_NOWHERE];
static unsigned int n_nowhere;

static bool is_nowhere(const struct shadow_ah *s, const union ibv_gid *gid)
{
	for (unsigned int i = 0; i < n_nowhere; i++)
		if (nowhere[i].from == s->ah.context &&
		    nowhere[i].port == s->attr.port_num &&
		    nowhere[i].index == s->source.index &&
		    !memcmp(&nowhere[i].gid, gid, sizeof(*gid)))
			return true;
	return false;
}

static void note_nowhere(const struct shadow_ah *s, const union ibv_gid *gid)
{
	if (n_nowhere == MOST_NOWHERE)
		return;
	nowhere[n_nowhere].from = s->ah.context;
	nowhere[n_nowhere].port = s->attr.port_num;
	nowhere[n_nowhere].index = s->source.index;
	nowhere[n_nowhere++].gid = *gid;
}

void ah_look_again(void)
{
	n_nowhere = 0;
}

struct ibv_ah *ah_make_at(struct shadow_ah *s, const union ibv_gid *gid)
{
	struct ibv_ah_attr attr = s->attr;

	attr.grh.sgid_index = s->source.index;
	attr.grh.dgid = *gid;
	return real()->ibv_create_ah(coming_pd(s->ah.pd), &attr);
}

struct ibv_ah *ah_make_if_found(struct shadow_ah *s, const union ibv_gid *gid)
{
	struct ibv_ah *ah;

	if (is_nowhere(s, gid)) {
		errno = EHOSTUNREACH;
		return NULL;
	}
	ah = ah_make_at(s, gid);
	if (!ah && errno != ENOMEM)
		note_nowhere(s, gid);
	return ah;
}

static struct ibv_ah *make_lost(struct shadow_ah *s)
{
	union ibv_gid own;

	if (!s->attr.is_global ||
	    real()->ibv_query_gid(coming_context(s->ah.context),
				  s->attr.port_num, s->source.index, &own))
		return NULL;
	return ah_make_at(s, &own);
}

/* Where its destination was may be nobody any more, but those who were there are elsewhere. */
static struct ibv_ah *make_first(struct shadow_ah *s)
{
	struct ibv_ah *ah = ah_make_at(s, &s->attr.grh.dgid);
	int err = errno;

	if (ah) {
		elsewhere_add_ways(s);
		return ah;
	}
	if (err != ENOMEM && elsewhere_add_ways(s)) {
		s->lost = true;
		ah = make_lost(s);
	}
	if (!ah)
		elsewhere_drop_ways(s);
	errno = err;
	return ah;
}

struct ibv_ah *ah_make_other(struct shadow_ah *s)
{
	struct ibv_ah *ah = s->attr.is_global
				    ? ah_make_if_found(s, &s->attr.grh.dgid)
				    : ah_make_at(s, &s->attr.grh.dgid);

	s->other_lost = !ah && errno != ENOMEM;
	if (s->other_lost)
		ah = make_lost(s);
	if (ah)
		elsewhere_make_ways(s);
	return ah;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct shadow_ah *s;

	if (!is_shadow(pd->context))
		return real()->ibv_create_ah(pd, attr);

	s = new_ah(pd);
	if (!s)
		return NULL;
	s->attr = *attr;
	s->source.index = attr->grh.sgid_index;
	return GATED(made_ah(s, make_first(s)));
}

/*
 * What came on the host before was sent to a GID of that: here the answer comes from one of
 * the same family and type, of which libibverbs knows by the header.
 */
static int init_from_wc(const struct shadow_context *c, uint8_t port_num,
			struct ibv_wc *wc, struct ibv_grh *grh,
			struct ibv_ah_attr *attr)
{
	int err = real()->ibv_init_ah_from_wc(c->real, port_num, wc, grh, attr);
	struct ibv_grh here;

	if (!err || !c->gids || !(wc->wc_flags & IBV_WC_GRH))
		return err;
	for (size_t i = 0; i < c->gids->n && err; i++) {
		here = *grh;
		if (c->gids->all[i].port_num == port_num &&
		    sources_set_destination(&here, &c->gids->all[i].gid))
			err = real()->ibv_init_ah_from_wc(c->real, port_num, wc,
							  &here, attr);
	}
	return err;
}

/* what it is made of is asked for first, to be remembered */
static struct ibv_ah *create_from_wc(struct shadow_ah *s, struct ibv_wc *wc,
				     struct ibv_grh *grh, uint8_t port_num)
{
	int err = init_from_wc(to_context(s->ah.context), port_num, wc, grh,
			       &s->attr);
	struct ibv_ah *ah = NULL;

	s->source.index = s->attr.grh.sgid_index;
	if (err)
		errno = err > 0 ? err : errno;
	else
		ah = make_first(s);
	return made_ah(s, ah);
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
				     struct ibv_grh *grh, uint8_t port_num)
{
	struct shadow_ah *s;

	if (!is_shadow(pd->context))
		return real()->ibv_create_ah_from_wc(pd, wc, grh, port_num);

	s = new_ah(pd);
	return s ? GATED(create_from_wc(s, wc, grh, port_num)) : NULL;
}

static int destroy_ah(struct shadow_ah *s)
{
	int err = real()->ibv_destroy_ah(s->real);

	if (!err) {
		UNLINK(to_context(s->ah.context), ahs, s);
		elsewhere_drop_ways(s);
	}
	return err;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	int err;

	if (!is_shadow(ah->context))
		return real()->ibv_destroy_ah(ah);
	err = GATED(destroy_ah(to_ah(ah)));
	if (!err)
		free(to_ah(ah));
	return err;
}

int ibv_init_ah_from_wc(struct ibv_context *ctx, uint8_t port_num,
			struct ibv_wc *wc, struct ibv_grh *grh,
			struct ibv_ah_attr *attr)
{
	if (!is_shadow(ctx))
		return real()->ibv_init_ah_from_wc(ctx, port_num, wc, grh,
						   attr);
	return GATED(init_from_wc(to_context(ctx), port_num, wc, grh, attr));
}

int ibv_resolve_eth_l2_from_gid(struct ibv_context *ctx,
				struct ibv_ah_attr *attr,
				uint8_t eth_mac[ETHERNET_LL_SIZE],
				uint16_t *vid)
{
	if (!is_shadow(ctx))
		return real()->ibv_resolve_eth_l2_from_gid(ctx, attr, eth_mac,
							   vid);
	return GATED(real()->ibv_resolve_eth_l2_from_gid(real_context(ctx),
							 attr, eth_mac, vid));
}
