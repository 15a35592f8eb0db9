// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "elsewhere.h"

#include <string.h>

#include "clock.h"
#include "gate.h"
#include "suspend.h"

#define PATIENCE 10000000000 /* ns */

/* They grow with the gate closed, and what is in them stays. */
static LIST_HEAD(, place) places;

/* who is at a GID, by real numbers: how he was known when he was told of first */
struct sources {
	union ibv_gid at;
	struct names *known;
	struct sources *next;
};
static struct sources *_Atomic all_sources;
atomic_bool elsewhere_is_told;

static bool same(const union ibv_gid *a, const union ibv_gid *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* --- ways --- */

static struct ibv_ah *make(const struct shadow_ah *ah, const struct place *to)
{
	struct ibv_ah_attr attr = ah->attr;

	attr.grh.sgid_index = ah->source.index;
	attr.grh.dgid = to->at;
	return real()->ibv_create_ah(coming_pd(ah->ah.pd), &attr);
}

static bool leads_to(const struct shadow_ah *ah, const struct place *place)
{
	return ah->attr.is_global && same(&place->gid, &ah->attr.grh.dgid);
}

static struct way *way_to(const struct shadow_ah *ah, const struct place *place)
{
	struct way *way = ah->ways;

	while (way && way->to != place)
		way = way->next;
	return way;
}

static int add_way(struct shadow_ah *ah, const struct place *to)
{
	struct way *way = way_to(ah, to);
	bool is_new = !way;

	if (is_new)
		way = calloc(1, sizeof(*way));
	if (!way)
		return ENOMEM;
	way->to = to;
	if (!way->real)
		way->real = make(ah, to);
	if (is_new) {
		atomic_init(&way->next, ah->ways);
		atomic_store_explicit(&ah->ways, way, memory_order_release);
	}
	return way->real ? 0 : errno;
}

void elsewhere_add_ways(struct shadow_ah *ah)
{
	struct place *place;

	LIST_FOREACH (place, &places, entry)
		if (leads_to(ah, place))
			add_way(ah, place);
}

void elsewhere_drop_ways(struct shadow_ah *ah)
{
	struct way *way;

	while ((way = ah->ways)) {
		ah->ways = way->next;
		if (way->real)
			real()->ibv_destroy_ah(way->real);
		free(way);
	}
}

void elsewhere_make_ways(struct shadow_ah *ah)
{
	struct way *way;

	for (way = ah->ways; way; way = way->next)
		way->other = make(ah, way->to);
}

void elsewhere_swap_ways(struct shadow_ah *ah)
{
	struct ibv_ah *old;
	struct way *way;

	for (way = ah->ways; way; way = way->next) {
		old = way->real;
		way->real = way->other;
		way->other = old;
	}
}

void elsewhere_unmake_ways(struct shadow_ah *ah)
{
	struct way *way;

	for (way = ah->ways; way; way = way->next)
		if (way->other) {
			real()->ibv_destroy_ah(way->other);
			way->other = NULL;
		}
}

/* --- sources --- */

static struct sources *sources_at(const union ibv_gid *at)
{
	struct sources *s =
		atomic_load_explicit(&all_sources, memory_order_acquire);

	while (s && !same(&s->at, at))
		s = s->next;
	return s;
}

static struct sources *new_sources(const union ibv_gid *at)
{
	struct sources *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->known = names_new();
	if (!s->known) {
		free(s);
		return NULL;
	}
	s->at = *at;
	s->next = all_sources;
	atomic_store_explicit(&all_sources, s, memory_order_release);
	atomic_store(&elsewhere_is_told, true);
	return s;
}

/* by which number is it known? */
static uint32_t known_as(const union ibv_gid *gid, uint32_t qpn)
{
	const struct sources *s = sources_at(gid);
	uint32_t name = s ? names_get(s->known, qpn & 0xffffff) : 0;

	return name ? name : qpn;
}

/* A header of version 6, or an IPv4 one in its last bytes (IBA annex A17, RoCEv2). */
uint32_t elsewhere_source_of(const struct ibv_context *ctx,
			     const struct ibv_grh *grh, uint32_t qpn)
{
	enum {
		IPV4 = 20,
		SOURCE = 12
	};
	const uint8_t *bytes = (const uint8_t *)grh;
	union ibv_gid from = { .raw = { [10] = 0xff, 0xff } };

	/* then it may be no address of this process */
	if (atomic_load(&container_of(ctx, struct shadow_context, verbs.context)
				 ->has_iovas))
		return qpn;
	if (bytes[0] >> 4 == 6)
		from = grh->sgid;
	else if (bytes[IPV4] >> 4 == 4)
		memcpy(from.raw + 12, bytes + IPV4 + SOURCE, 4);
	else
		return qpn;
	return known_as(&from, qpn);
}

/* --- places --- */

/* All handles that lead to its GID have a way there before anybody is looked up in it. */
static int add_all_ways(const struct place *place, struct swap *s)
{
	struct shadow_context *c;
	struct shadow_ah *ah;
	int err, bad = 0;

	EACH (c, ah, ahs)
		if (leads_to(ah, place)) {
			err = add_way(ah, place);
			bad = bad ? bad : err;
		}
	return bad ? swap_refuse(s, bad, "an address handle of another GID: %s",
				 strerror(bad))
		   : 0;
}

/* the one that there is, or a new one; NULL if there is no memory */
static struct place *place_of(const union ibv_gid *gid, const union ibv_gid *at)
{
	struct place *place;

	LIST_FOREACH (place, &places, entry)
		if (same(&place->gid, gid) && same(&place->at, at))
			return place;
	place = calloc(1, sizeof(*place));
	if (place)
		place->qpns = names_new();
	if (!place || !place->qpns) {
		free(place);
		return NULL;
	}
	place->gid = *gid;
	place->at = *at;
	LIST_INSERT_HEAD(&places, place, entry);
	return place;
}

/* Of one name there is one QP, and it is at one place. */
static int set(const union ibv_gid *gid, uint32_t name, const union ibv_gid *at,
	       uint32_t real, struct swap *s)
{
	struct place *place, *to = place_of(gid, at);
	int err;

	if (!to)
		return swap_refuse(s, ENOMEM, "no memory for another place");
	err = add_all_ways(to, s);
	if (err)
		return err;
	if (names_set(to->qpns, name, real))
		return swap_refuse(s, ENOMEM, "no memory for names");
	LIST_FOREACH (place, &places, entry)
		if (place != to && same(&place->gid, gid))
			names_set(place->qpns, name, 0);
	return 0;
}

/* What was told of those that are elsewhere now: they are further than that. */
struct further {
	const struct place *place;
	const struct names *is; /* of what a number was */
	const union ibv_gid *at;
	struct swap *s;
	int err;
};

static void go_further(void *arg, uint32_t name, uint32_t was)
{
	struct further *f = arg;
	uint32_t is = names_get(f->is, was);

	if (is && !f->err)
		f->err = set(&f->place->gid, name, f->at, is, f->s);
}

static int go_all_further(const union ibv_gid *gid, struct further *f)
{
	struct place *place, *next;

	/* New places come first in the list, and need not be looked at. */
	for (place = LIST_FIRST(&places); place && !f->err; place = next) {
		next = LIST_NEXT(place, entry);
		f->place = place;
		if (same(&place->at, gid))
			names_each(place->qpns, go_further, f);
	}
	return f->err;
}

/*
 * Who answers a datagram names the GID that it has come from, and the number he knows. The
 * real one at @gid is known to who is shown that, unless it is another one's name there.
 */
static int set_one(const union ibv_gid *gid, const union ibv_gid *at,
		   const struct elsewhere *qp, uint32_t name, struct swap *s)
{
	int err = set(gid, name, at, qp->is, s);

	if (!err && name != qp->is)
		err = set(at, name, at, qp->is, s);
	return err;
}

static bool is_name(const union ibv_gid *gid, uint32_t name)
{
	struct place *place;

	LIST_FOREACH (place, &places, entry)
		if (same(&place->gid, gid) &&
		    names_get(place->qpns, name & 0xffffff))
			return true;
	return false;
}

static int note_source(const union ibv_gid *at, uint32_t real, uint32_t name,
		       struct swap *s)
{
	struct sources *sources = sources_at(at);

	if (!sources)
		sources = new_sources(at);
	if (!sources || names_set(sources->known, real, name))
		return swap_refuse(s, ENOMEM, "no memory for names");
	return 0;
}

/* Numbers of before may be those of now, of others: they are looked at before any changes. */
static int tell_named(const union ibv_gid *gid, const union ibv_gid *at,
		      const struct elsewhere *qps, unsigned int n,
		      uint32_t *name, struct swap *s)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < n; i++)
		name[i] = known_as(gid, qps[i].was);
	for (i = 0; i < n && !err; i++)
		err = set_one(gid, at, &qps[i], name[i], s);
	for (i = 0; i < n && !err; i++)
		if (!is_name(gid, qps[i].was))
			err = set(gid, qps[i].was, at, qps[i].is, s);
	for (i = 0; i < n && !err; i++)
		err = note_source(at, qps[i].is, name[i], s);
	return err;
}

static int tell(const union ibv_gid *gid, const union ibv_gid *at,
		const struct elsewhere *qps, unsigned int n, struct names *is,
		struct swap *s)
{
	struct further f = { .is = is, .at = at, .s = s };
	uint32_t *name;
	int err;

	for (unsigned int i = 0; i < n; i++)
		if (names_set(is, qps[i].was, qps[i].is))
			return swap_refuse(s, ENOMEM, "no memory for names");
	err = go_all_further(gid, &f);
	if (err)
		return err;
	name = calloc(n, sizeof(*name));
	if (!name)
		return swap_refuse(s, ENOMEM, "no memory for names");
	err = tell_named(gid, at, qps, n, name, s);
	free(name);
	return err;
}

int layer_elsewhere(const union ibv_gid *gid, const union ibv_gid *at,
		    const struct elsewhere *qps, unsigned int n, struct swap *s)
{
	struct names *is = names_new();
	bool suspended;
	int err;

	*s = (struct swap){};
	if (!is)
		return swap_refuse(s, ENOMEM, "no memory for names");
	suspended = suspend_hold();
	if (!suspended && !gate_close(clock_ns() + PATIENCE)) {
		names_free(is);
		return swap_refuse(s, ETIMEDOUT, "a verb does not return");
	}
	err = tell(gid, at, qps, n, is, s);
	if (suspended)
		suspend_release();
	else
		gate_open();
	names_free(is);
	return err;
}
