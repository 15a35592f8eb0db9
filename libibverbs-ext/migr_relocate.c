// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What moves together: the connections of a set of images get the addresses
 * that they have on this host.
 *
 * A QP whose peer stays where it is needs only a GID of its own; the peer
 * learns it from RESUME. But if the peer is in one of the images as well, it
 * cannot be found where it was, so each of the two gets the other's new GID.
 * QP numbers stay as they are. An AH has no peer, only a place to which it leads.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "migr_check.h"
#include "migr_qp.h"
#include "migr_restore.h"

#define GID 16 /* bytes */

struct end {
	struct migr_path path;
	struct migr_address *address; /* to be filled */
	const struct migr_place *place;
	const struct end *peer; /* NULL: it does not move along */
	const struct ib_uverbs_gid_entry *gid;
	int err; /* why it has none */
};

struct ends {
	struct end *end;
	size_t count;
};

static int compare(uint32_t qpn, const uint8_t *gid, const struct end *end)
{
	if (qpn != end->path.qpn)
		return qpn < end->path.qpn ? -1 : 1;
	return memcmp(gid, end->path.sgid, GID);
}

static int by_address(const void *a, const void *b)
{
	const struct end *x = a;

	return compare(x->path.qpn, x->path.sgid, b);
}

static int by_peer(const void *key, const void *end)
{
	const struct migr_path *path = key;

	return compare(path->dest_qpn, path->dgid, end);
}

static void forget(const struct migr_place *places, size_t n)
{
	while (n--) {
		free(places[n].img->address);
		places[n].img->address = NULL;
	}
}

static int collect(const struct migr_place *places, size_t n, struct ends *ends)
{
	struct migr_path path;
	struct migr_image *img;
	size_t i, room = 0;
	unsigned int k;

	for (i = 0; i < n; i++)
		room += places[i].img->count;
	ends->count = 0;
	ends->end = calloc(room ? room : 1, sizeof(*ends->end));
	if (!ends->end)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		img = places[i].img;
		img->address = calloc(img->count + 1, sizeof(*img->address));
		if (!img->address)
			return -ENOMEM;
		for (k = 0; k < img->count; k++) {
			if (!migr_path_of(img->records[k], &path))
				continue;
			ends->end[ends->count++] = (struct end){
				.path = path,
				.address = &img->address[k],
				.place = &places[i],
			};
		}
	}
	qsort(ends->end, ends->count, sizeof(*ends->end), by_address);
	return 0;
}

/* Both must mean each other: numbers alone repeat from host to host */
static void find_peers(struct ends *ends)
{
	const struct end *peer;
	size_t i;

	for (i = 0; i < ends->count; i++) {
		if (!ends->end[i].path.dest_qpn)
			continue;
		peer = bsearch(&ends->end[i].path, ends->end, ends->count,
			       sizeof(*ends->end), by_peer);
		if (peer && !by_peer(&peer->path, &ends->end[i]))
			ends->end[i].peer = peer;
	}
}

/* 0 where the question, which may cost a look at the routes, is the same */
static int compare_questions(const struct end *a, const struct end *b)
{
	int ret = memcmp(a->path.dgid, b->path.dgid, GID);

	if (!ret)
		ret = memcmp(a->path.sgid, b->path.sgid, GID);
	if (!ret)
		ret = a->path.sgid_index - b->path.sgid_index;
	if (!ret)
		ret = (int)a->path.rec->type - (int)b->path.rec->type;
	if (!ret)
		ret = !a->peer - !b->peer;
	if (!ret)
		ret = (a->place->gids > b->place->gids) -
		      (a->place->gids < b->place->gids);
	return ret;
}

static int by_place(const void *a, const void *b)
{
	const struct end *x = *(struct end *const *)a;
	const struct end *y = *(struct end *const *)b;

	return (x > y) - (x < y);
}

static int by_question(const void *a, const void *b)
{
	return compare_questions(*(struct end *const *)a,
				 *(struct end *const *)b)
		       ?: by_place(a, b);
}

/*
 * `asked`, which has room for all ends, gets one end for each question: the
 * first one, in the order of the ends
 */
static size_t pick_all(struct ends *ends, struct end **asked)
{
	struct end *e, *first = NULL;
	size_t i, n = 0;

	for (i = 0; i < ends->count; i++)
		asked[i] = &ends->end[i];
	qsort(asked, ends->count, sizeof(*asked), by_question);
	for (i = 0; i < ends->count; i++) {
		e = asked[i];
		if (first && !compare_questions(first, e)) {
			e->gid = first->gid;
			e->err = first->err;
			continue;
		}
		e->err = migr_pick_gid(e->place->gids, &e->path, e->peer,
				       &e->gid);
		first = e;
		asked[n++] = e;
	}
	qsort(asked, n, sizeof(*asked), by_place);
	return n;
}

/* The first one that failed in full, of the others the peers' addresses */
static int name_failures(struct end *const *asked, size_t n,
			 struct migr_error *err)
{
	const struct end *first = NULL, *last = NULL;
	char gid[INET6_ADDRSTRLEN];
	size_t i, at;

	for (i = 0; i < n; i++) {
		if (!asked[i]->err || (last && !memcmp(asked[i]->path.dgid,
						       last->path.dgid, GID)))
			continue;
		last = asked[i];
		if (!first) {
			first = last;
			migr_gid_error(&first->path, first->err, err);
			continue;
		}
		inet_ntop(AF_INET6, last->path.dgid, gid, sizeof(gid));
		at = strlen(err->text);
		if (at + sizeof(gid) + 16 > sizeof(err->text)) {
			snprintf(err->text + at, sizeof(err->text) - at,
				 ", ...");
			break;
		}
		snprintf(err->text + at, sizeof(err->text) - at, ", nor to %s",
			 gid);
	}
	return first ? first->err : 0;
}

static void readdress(const struct ends *ends)
{
	const struct end *e;

	for (e = ends->end; e < ends->end + ends->count; e++) {
		memcpy(e->address->sgid, e->gid->gid, sizeof(e->gid->gid));
		e->address->sgid_index = (uint8_t)e->gid->gid_index;
		memcpy(e->address->dgid,
		       e->peer ? (const void *)e->peer->gid->gid : e->path.dgid,
		       GID);
	}
}

int migr_relocate(const struct migr_place *places, size_t n,
		  struct migr_error *err)
{
	struct end **asked = NULL;
	struct migr_error ignored;
	struct ends ends;
	int ret;

	if (!err)
		err = &ignored;
	forget(places, n);
	ret = collect(places, n, &ends);
	if (!ret)
		asked = calloc(ends.count + 1, sizeof(*asked));
	if (asked) {
		find_peers(&ends);
		ret = name_failures(asked, pick_all(&ends, asked), err);
	} else {
		migr_bad(err, NULL, "no memory");
		ret = -ENOMEM;
	}
	if (ret)
		forget(places, n);
	else
		readdress(&ends);
	free(asked);
	free(ends.end);
	return ret;
}
