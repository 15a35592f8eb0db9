// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Address handles
 */
#include "gate.h"

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

struct ibv_ah *ah_make(struct shadow_ah *s)
{
	struct ibv_ah_attr attr = s->attr;

	return real()->ibv_create_ah(coming_pd(s->ah.pd), &attr);
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
	return GATED(made_ah(s, ah_make(s)));
}

/* what it is made of is asked for first, to be remembered */
static struct ibv_ah *create_from_wc(struct shadow_ah *s, struct ibv_wc *wc,
				     struct ibv_grh *grh, uint8_t port_num)
{
	int err = real()->ibv_init_ah_from_wc(real_context(s->ah.context),
					      port_num, wc, grh, &s->attr);
	struct ibv_ah *ah = NULL;

	if (err)
		errno = err;
	else
		ah = real()->ibv_create_ah_from_wc(real_pd(s->ah.pd), wc, grh,
						   port_num);
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

	if (!err)
		UNLINK(to_context(s->ah.context), ahs, s);
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
	return GATED(real()->ibv_init_ah_from_wc(real_context(ctx), port_num,
						 wc, grh, attr));
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
