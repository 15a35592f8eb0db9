// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Address handles
 */
#include "shadow.h"

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
	return &s->ah;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct shadow_ah *s;

	if (!is_shadow(pd->context))
		return real()->ibv_create_ah(pd, attr);

	s = new_ah(pd);
	return s ? made_ah(s, real()->ibv_create_ah(real_pd(pd), attr)) : NULL;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
				     struct ibv_grh *grh, uint8_t port_num)
{
	struct shadow_ah *s;

	if (!is_shadow(pd->context))
		return real()->ibv_create_ah_from_wc(pd, wc, grh, port_num);

	s = new_ah(pd);
	return s ? made_ah(s, real()->ibv_create_ah_from_wc(real_pd(pd), wc,
							    grh, port_num))
		 : NULL;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	bool shadow = is_shadow(ah->context);
	int err = real()->ibv_destroy_ah(real_ah(ah));

	if (!err && shadow)
		free(to_ah(ah));
	return err;
}

int ibv_init_ah_from_wc(struct ibv_context *ctx, uint8_t port_num,
			struct ibv_wc *wc, struct ibv_grh *grh,
			struct ibv_ah_attr *attr)
{
	return real()->ibv_init_ah_from_wc(real_context(ctx), port_num, wc, grh,
					   attr);
}

int ibv_resolve_eth_l2_from_gid(struct ibv_context *ctx,
				struct ibv_ah_attr *attr,
				uint8_t eth_mac[ETHERNET_LL_SIZE],
				uint16_t *vid)
{
	return real()->ibv_resolve_eth_l2_from_gid(real_context(ctx), attr,
						   eth_mac, vid);
}
