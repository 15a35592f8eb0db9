// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "peer.h"

#include <string.h>

#include "names.h"

struct peer {
	struct names *_Atomic keys;
	atomic_uint leading; /* QPs, and what has been said of them ... */
	atomic_uint said;    /* ... of which that is so many */
	char id[PEER_ID_BYTES];
	LIST_ENTRY(peer) entry;
};

/* of the thread that is told of them; of those in the other list nobody is told any more */
static LIST_HEAD(, peer) peers, unused;

struct peer *peer_find(const char *id)
{
	struct peer *p;

	LIST_FOREACH (p, &peers, entry)
		if (!strcmp(p->id, id))
			return p;
	return NULL;
}

/* without what is behind the last colon */
static size_t process_bytes(const char *id)
{
	const char *turn = strrchr(id, ':');

	return turn ? (size_t)(turn - id) : strlen(id);
}

const char *peer_id(const struct peer *p)
{
	return p->id;
}

bool peer_is_of(const struct peer *p, const char *id)
{
	size_t n = process_bytes(id);

	return process_bytes(p->id) == n && !memcmp(p->id, id, n);
}

struct peer *peer_get(const char *id)
{
	struct peer *p = peer_find(id);

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	strncpy(p->id, id, sizeof(p->id) - 1);
	LIST_INSERT_HEAD(&peers, p, entry);
	return p;
}

void peer_lead(struct peer *_Atomic *from, struct peer *to)
{
	struct peer *before;

	if (to)
		atomic_fetch_add(&to->leading, 1);
	before = atomic_exchange(from, to);
	if (before)
		atomic_fetch_sub(&before->leading, 1);
}

void peer_say(struct peer *_Atomic *from, struct peer *to)
{
	struct peer *before = *from;

	/* Once it does not lead there, that may be freed. */
	if (before)
		atomic_fetch_sub(&before->said, 1);
	peer_lead(from, to);
	if (to)
		atomic_fetch_add(&to->said, 1);
}

bool peer_is_used(const struct peer *p)
{
	return atomic_load(&p->leading);
}

void peers_drop_unused(void)
{
	struct peer *p, *next;

	while ((p = LIST_FIRST(&unused))) {
		LIST_REMOVE(p, entry);
		names_free(p->keys);
		free(p);
	}
	for (p = LIST_FIRST(&peers); p; p = next) {
		next = LIST_NEXT(p, entry);
		if (peer_is_used(p))
			continue;
		LIST_REMOVE(p, entry);
		LIST_INSERT_HEAD(&unused, p, entry);
	}
}

static bool is_only_said(const struct peer *p)
{
	unsigned int said = atomic_load(&p->said);

	return said && atomic_load(&p->leading) == said;
}

static bool is_of_host(const char *id, const char *other)
{
	size_t n = strcspn(other, ":");

	return !strncmp(id, other, n) && (!id[n] || id[n] == ':');
}

/* of this host, of which only others say that QPs will lead there */
static unsigned int only_said_of(const char *host)
{
	const struct peer *p;
	unsigned int n = 0;

	LIST_FOREACH (p, &peers, entry)
		n += is_only_said(p) && is_of_host(p->id, host);
	return n;
}

/* The newest is the first one. */
static const char *eldest_of_most(const char *id)
{
	const char *who = NULL;
	unsigned int n, most = 0;
	const struct peer *p;

	LIST_FOREACH (p, &peers, entry) {
		if (!is_only_said(p))
			continue;
		n = only_said_of(p->id) + is_of_host(id, p->id);
		if (n < most)
			continue;
		most = n;
		who = p->id;
	}
	return who;
}

/* Of those that are told when they are suspended there may be more: then one less is no help. */
const char *peer_makes_room(const char *id)
{
	unsigned int used = 0, turns = 0;
	const struct peer *p;

	LIST_FOREACH (p, &peers, entry) {
		used += peer_is_used(p);
		turns += peer_is_used(p) && peer_is_of(p, id);
	}
	p = peer_find(id);
	if (used != PEER_MOST || turns >= PEER_MOST_TURNS ||
	    (p && peer_is_used(p)))
		return NULL;
	return eldest_of_most(id);
}

const char *peer_lacks_place(const char *id)
{
	unsigned int all = 0, turns = 0;
	const struct peer *p;

	LIST_FOREACH (p, &peers, entry) {
		all++;
		turns += peer_is_of(p, id);
	}
	if (peer_find(id))
		return NULL;
	if (turns >= PEER_MOST_TURNS)
		return "QPs lead to that process by keys of too many turns";
	return all >= PEER_MOST ? "QPs lead to too many processes" : NULL;
}

bool peer_is_full(const struct peer *p)
{
	return p->keys && p->keys->parts > PEER_MOST_PARTS;
}

const struct names *peer_keys(const struct peer *p)
{
	return atomic_load_explicit(&p->keys, memory_order_acquire);
}

int peer_forget_keys(struct peer *p)
{
	struct names *n = p->keys;

	if (n) {
		names_clear(n);
		return 0;
	}
	n = names_new();
	if (!n)
		return ENOMEM;
	atomic_store(&p->keys, n);
	return 0;
}

int peer_set_key(struct peer *p, uint32_t key, uint32_t real)
{
	int err = p->keys ? 0 : peer_forget_keys(p);

	if (err)
		return err;
	return real ? names_set_key(p->keys, key, real)
		    : names_set(p->keys, key >> 8, 0);
}
