// SPDX-License-Identifier: GPL-2.0
/*
 * Who sends datagrams to a QP of the container is connected to nothing: he is told where
 * that is now, by GID and number. What was lost meanwhile is lost, as datagrams may be.
 */
#include "layer.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	BUSY_MS = 2000,	 /* somebody else may be speaking to a process */
	HURRY_MS = 1000, /* for who is told while the container waits */
	ROOM = 64,	 /* at the end of a line */
};

/* --- what is told --- */

static bool same_gids(const struct layer_qp *a, const struct layer_qp *b)
{
	return a->n_gids == b->n_gids && a->n_gids &&
	       !memcmp(a->gids, b->gids, a->n_gids * sizeof(*a->gids));
}

static bool has_changed(const struct layer_qp *qp, const struct layer_gid *gid)
{
	return qp->was && (qp->was != qp->real ||
			   memcmp(&gid->was, &gid->is, sizeof(gid->is)));
}

/* of those from @i to before @end that have the same GIDs, under one of them */
static void tell_run(struct layer_proc *to, const struct layer_qp *qps,
		     size_t i, size_t end, const struct layer_gid *gid)
{
	char line[LINE_BYTES], was[INET6_ADDRSTRLEN], is[INET6_ADDRSTRLEN];
	size_t n;

	inet_ntop(AF_INET6, &gid->was, was, sizeof(was));
	inet_ntop(AF_INET6, &gid->is, is, sizeof(is));
	while (i < end) {
		size_t head = (size_t)sprintf(line, "elsewhere %s %s", was, is);

		for (n = head; i < end && n < sizeof(line) - ROOM; i++)
			if (has_changed(&qps[i], gid))
				n += (size_t)sprintf(line + n, " %u %u",
						     qps[i].was, qps[i].real);
		if (n > head)
			layer_tell(to, "%s", line);
	}
}

static void tell_of(struct layer_proc *to, const struct layer_names *n)
{
	for (size_t i = 0, end; i < n->n_qps; i = end) {
		for (end = i + 1; end < n->n_qps; end++)
			if (!same_gids(&n->qps[end], &n->qps[i]))
				break;
		for (size_t k = 0; k < n->qps[i].n_gids; k++)
			tell_run(to, n->qps, i, end, &n->qps[i].gids[k]);
	}
}

static void tell_of_all(const struct layer *l, struct layer_proc *to)
{
	for (size_t i = 0; i < l->movers; i++)
		if (!l->procs[i]->is_lost)
			tell_of(to, &l->procs[i]->names);
}

/* It goes on with what it is connected to. */
static void name_failed(struct layer *l, const char *container)
{
	for (size_t i = 0; i < l->n; i++) {
		struct layer_proc *p = l->procs[i];

		if (p->failed)
			fprintf(stderr,
				"migr-layer: %s: process %s: its datagrams do not follow %s: %s\n",
				p->host, p->id, container, p->reason);
		p->failed = false;
	}
	*l->reason = 0;
}

/* --- others --- */

static bool is_known(const struct layer *l, const char *id)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->procs[i]->id, id))
			return true;
	return false;
}

static void add_other(struct layer *l, const char *host, bool by_gid,
		      const char *id)
{
	struct layer *others = l->others;
	struct layer_proc *p;
	char reason[512];

	if (is_known(l, id) || is_known(others, id))
		return;
	p = others->n < MOST_PROCS ? calloc(1, sizeof(*p)) : NULL;
	if (!p) {
		fprintf(stderr,
			"migr-layer: %s: process %s: its datagrams may not follow %s: too many processes\n",
			host, id, l->container);
		return;
	}
	snprintf(p->host, sizeof(p->host), "%s", host);
	snprintf(p->id, sizeof(p->id), "%s", id);
	p->by_gid = by_gid;
	others->procs[others->n++] = p;
	if (!layer_open(others, p, now_ms() + BUSY_MS, reason, sizeof(reason)))
		layer_proc_fails(others, p, "%s", reason);
}

static void add_host(struct layer *l, const char *host, bool by_gid)
{
	char reason[512];
	json_t *answer, *list;
	const char *id;

	answer = layer_ask_host(l, host, by_gid, "processes",
				now_ms() + PATIENCE_MS, reason, sizeof(reason));
	if (!answer)
		fprintf(stderr,
			"migr-layer: %s: datagrams from there may not follow %s: %s\n",
			host, l->container, reason);
	list = json_object_get(answer, "processes");
	for (size_t i = 0; i < json_array_size(list); i++) {
		id = json_string_value(
			json_object_get(json_array_get(list, i), "id"));
		if (layer_is_id(id))
			add_other(l, host, by_gid, id);
	}
	json_decref(answer);
}

/* a group is nobody's, and a link-local address says nothing of a host */
static bool is_of_host(const struct in6_addr *gid)
{
	return !IN6_IS_ADDR_MULTICAST(gid) && !IN6_IS_ADDR_LINKLOCAL(gid) &&
	       !(IN6_IS_ADDR_V4MAPPED(gid) && gid->s6_addr[12] >= 224);
}

static void find_others(struct layer *l)
{
	char host[MOST_HOST];

	add_host(l, l->local, false);
	if (l->target)
		add_host(l, l->target, false);
	for (size_t i = 0; i < l->movers; i++)
		for (size_t j = 0; j < l->procs[i]->names.n_destinations; j++) {
			const struct in6_addr *gid =
				&l->procs[i]->names.destinations[j];

			if (!is_of_host(gid))
				continue;
			layer_host_of(gid, host);
			add_host(l, host, true);
		}
	name_failed(l->others, l->container);
}

/* --- before, and after the stop --- */

static bool prove(struct layer *l, bool *some)
{
	*some = false;
	layer_check_owners(l, false);
	for (size_t i = 0; i < l->movers; i++) {
		struct layer_names *n = &l->procs[i]->names;

		if (l->procs[i]->failed)
			return false;
		for (size_t j = 0; j < n->n_qps; j++)
			if (layer_is_datagram(&n->qps[j])) {
				n->qps[j].was = n->qps[j].real;
				*some = true;
			}
	}
	return true;
}

bool layer_prove_datagrams(struct layer *l)
{
	bool some;

	if (!prove(l, &some))
		return false;
	if (!some)
		return true;
	l->others = calloc(1, sizeof(*l->others));
	if (!l->others)
		return layer_fail(l, "no memory");
	l->others->ctx = l->ctx;
	l->others->port = l->port;
	l->others->hurry = HURRY_MS;
	find_others(l);
	return true;
}

static void tell_all(struct layer *l, struct layer *to)
{
	for (size_t i = 0; i < to->n; i++)
		if (to->procs[i]->open && !to->procs[i]->is_lost)
			tell_of_all(l, to->procs[i]);
	layer_round(to);
	name_failed(to, l->container);
}

void layer_tell_datagrams(struct layer *l)
{
	tell_all(l, l);
	if (l->others)
		tell_all(l, l->others);
}

void layer_free_others(struct layer *l)
{
	struct layer *others = l->others;

	for (size_t i = 0; others && i < others->n; i++) {
		layer_close(others->procs[i]);
		json_decref(others->procs[i]->answer);
		free(others->procs[i]->text);
		free(others->procs[i]);
	}
	free(others);
}
