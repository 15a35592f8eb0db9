// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "elsewhere.h"

#include <string.h>

#include "clock.h"
#include "gate.h"
#include "sources.h"
#include "suspend.h"

#define PATIENCE 10000000000 /* ns */

/* They grow with the gate closed, and what is in them stays. */
static LIST_HEAD(, place) places;

static bool same(const union ibv_gid *a, const union ibv_gid *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* --- ways --- */

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

static int add_way(struct shadow_ah *ah, const struct place *to,
		   struct ibv_ah *(*make)(struct shadow_ah *ah,
					  const union ibv_gid *gid))
{
	struct way *way = way_to(ah, to);
	bool is_new = !way;
	int err;

	if (is_new)
		way = calloc(1, sizeof(*way));
	if (!way)
		return ENOMEM;
	way->to = to;
	if (!way->real)
		__atomic_store_n(&way->real, make(ah, &to->at),
				 __ATOMIC_RELEASE);
	err = way->real ? 0 : errno;
	if (is_new) {
		atomic_init(&way->next, ah->ways);
		atomic_store_explicit(&ah->ways, way, memory_order_release);
	}
	return err;
}

bool elsewhere_add_ways(struct shadow_ah *ah)
{
	struct place *place;
	bool some = false;

	LIST_FOREACH (place, &places, entry) {
		if (!leads_to(ah, place))
			continue;
		if (add_way(ah, place, ah_make_at))
			place->has_ways = false; /* it is tried again */
		else
			some = true;
	}
	return some;
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
		way->other = ah_make_if_found(ah, &way->to->at);
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

/* --- places --- */

/* All handles that lead to its GID have a way there before anybody is looked up in it. */
static int add_all_ways(const struct place *place, struct swap *s)
{
	struct shadow_context *c;
	struct shadow_ah *ah;
	int err, bad = 0;

	EACH (c, ah, ahs)
		if (leads_to(ah, place)) {
			err = add_way(ah, place, ah_make_if_found);
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

/* --- what is told --- */

enum {
	MOST_TOLD = 1 << 20,
};

static struct elsewhere *told;
static size_t n_told, room_told;

int elsewhere_add(const struct elsewhere *qps, unsigned int n)
{
	size_t room = room_told ? room_told : 256;
	struct elsewhere *more = told;

	if (n > MOST_TOLD - n_told)
		return E2BIG;
	while (room < n_told + n)
		room *= 2;
	if (room > room_told)
		more = realloc(told, room * sizeof(*told));
	if (!more)
		return ENOMEM;
	told = more;
	room_told = room;
	memcpy(told + n_told, qps, n * sizeof(*qps));
	n_told += n;
	return 0;
}

void elsewhere_forget(void)
{
	free(told);
	told = NULL;
	n_told = room_told = 0;
}

/* which of them was at a GID under a number: one more than its place, in a table for each */
struct index {
	union ibv_gid gid;
	struct names *places;
	struct index *next;
};

static const struct elsewhere *find(const struct index *index,
				    const union ibv_gid *gid, uint32_t was)
{
	uint32_t place = 0;

	for (; index; index = index->next)
		if (same(&index->gid, gid))
			place = names_get(index->places, was & 0xffffff);
	return place ? &told[place - 1] : NULL;
}

static int add_to_index(struct index **all, size_t i)
{
	struct index *x = *all;

	while (x && !same(&x->gid, &told[i].gid))
		x = x->next;
	if (!x) {
		x = calloc(1, sizeof(*x));
		if (!x)
			return ENOMEM;
		x->gid = told[i].gid;
		x->next = *all;
		*all = x;
		x->places = names_new();
	}
	return x->places ? names_set(x->places, told[i].was, (uint32_t)i + 1)
			 : ENOMEM;
}

static void free_index(struct index *x)
{
	struct index *next;

	for (; x; x = next) {
		next = x->next;
		names_free(x->places);
		free(x);
	}
}

/* a name, and where it leads from now on */
struct change {
	union ibv_gid gid;
	uint32_t name;
	const struct elsewhere *to;
};

struct changes {
	const struct index *index;
	const struct place *place; /* that is looked at */
	struct change *all;
	size_t n, room;
	bool no_memory;
};

static void add_change(struct changes *c, const union ibv_gid *gid,
		       uint32_t name, const struct elsewhere *to)
{
	size_t room = c->room ? 2 * c->room : 256;
	struct change *all = c->all;

	if (c->n == c->room) {
		all = realloc(all, room * sizeof(*all));
		if (!all) {
			c->no_memory = true;
			return;
		}
		c->all = all;
		c->room = room;
	}
	all[c->n++] = (struct change){ *gid, name, to };
}

static void goes_further(void *arg, uint32_t name, uint32_t real)
{
	struct changes *c = arg;
	const struct elsewhere *to = find(c->index, &c->place->at, real);

	if (to)
		add_change(c, &c->place->gid, name, to);
}

static bool is_name(const union ibv_gid *gid, uint32_t name)
{
	const struct place *place;

	LIST_FOREACH (place, &places, entry)
		if (same(&place->gid, gid) &&
		    names_get(place->qpns, name & 0xffffff))
			return true;
	return false;
}

/* Numbers of before may be those of now, of others: nothing changes while they are looked at. */
static void find_changes(struct changes *c)
{
	union ibv_gid gid;
	uint32_t name;

	LIST_FOREACH (c->place, &places, entry)
		names_each(c->place->qpns, goes_further, c);
	for (size_t i = 0; i < n_told; i++) {
		gid = told[i].gid;
		name = told[i].was;
		sources_known_as(&gid, &name);
		/* else that number has never been shown */
		if (same(&gid, &told[i].gid) && name == told[i].was &&
		    !is_name(&gid, name))
			add_change(c, &gid, name, &told[i]);
	}
}

/* Where they lead to there is a place, to which all handles have a way; also what had none. */
static int make_places(const struct changes *c, struct swap *s)
{
	struct place *place;
	int err, bad = 0;

	for (size_t i = 0; i < c->n; i++)
		if (!place_of(&c->all[i].gid, &c->all[i].to->at))
			return swap_refuse(s, ENOMEM,
					   "no memory for another place");
	LIST_FOREACH (place, &places, entry) {
		err = place->has_ways ? 0 : add_all_ways(place, s);
		place->has_ways = !err;
		bad = bad ? bad : err;
	}
	return bad;
}

static int make_change(const struct change *c)
{
	struct place *place, *to = place_of(&c->gid, &c->to->at);

	LIST_FOREACH (place, &places, entry)
		if (place != to && same(&place->gid, &c->gid))
			names_set(place->qpns, c->name, 0);
	return names_set(to->qpns, c->name, c->to->is);
}

/* Does a name lead there? */
static bool leads(const struct change *known, const struct elsewhere *to)
{
	const struct place *place = place_of(&known->gid, &to->at);

	return place &&
	       names_get(place->qpns, known->name & 0xffffff) == to->is;
}

/* who they are known as, before anything is known of where they are now */
static int note_sources(void)
{
	struct change *known = calloc(n_told + 1, sizeof(*known));
	int err = known ? 0 : ENOMEM;

	for (size_t i = 0; known && i < n_told; i++) {
		known[i].gid = told[i].gid;
		known[i].name = told[i].was;
		sources_known_as(&known[i].gid, &known[i].name);
	}
	for (size_t i = 0; known && i < n_told; i++) {
		sources_drop(&told[i].gid, told[i].was);
		sources_drop(&told[i].at, told[i].is);
	}
	for (size_t i = 0; known && i < n_told && !err; i++)
		if (leads(&known[i], &told[i]))
			err = sources_add(&told[i].at, told[i].is,
					  &known[i].gid, known[i].name);
	free(known);
	return err;
}

static int tell(struct swap *s)
{
	struct index *index = NULL;
	struct changes c = {};
	int err = 0, bad;

	for (size_t i = 0; i < n_told && !err; i++)
		err = add_to_index(&index, i);
	c.index = index;
	if (!err)
		find_changes(&c);
	if (err || c.no_memory) {
		err = swap_refuse(s, ENOMEM, "no memory for names");
	} else {
		bad = make_places(&c,
				  s); /* who has no way there has the name */
		for (size_t i = 0; i < c.n && bad != ENOMEM && !err; i++)
			err = make_change(&c.all[i]);
		if (bad != ENOMEM && !err)
			err = note_sources();
		err = err ? swap_refuse(s, err, "no memory for names") : bad;
	}
	free(c.all);
	free_index(index);
	return err;
}

int layer_elsewhere(struct swap *s)
{
	bool suspended;
	int err;

	*s = (struct swap){};
	suspended = suspend_hold();
	if (!suspended && !gate_close(clock_ns() + PATIENCE))
		return swap_refuse(s, ETIMEDOUT, "a verb does not return");
	ah_look_again();
	err = tell(s);
	if (suspended)
		suspend_release();
	else
		gate_open();
	elsewhere_forget();
	return err;
}
