// SPDX-License-Identifier: GPL-2.0
/*
 * Who sends datagrams to a QP of the container is connected to nothing: he is told where
 * that is now, by GID and number. What was lost meanwhile is lost, as datagrams may be.
 */
#include "layer_ports.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	HURRY_MS =
		2000, /* for who is told while the container waits, and looks for a host */
	ROOM = 64,     /* at the end of a line */
	ASK_MS = 5000, /* for a daemon that may be nowhere */
	MOST_ASKED = 256,
	MOST_PAIRS = 4000, /* in a line, of as many words as a process hears */
	MOST_OTHERS =
		12, /* a daemon has 64 connections, and movers come first */
};

/* --- what is told --- */

static bool same(const struct in6_addr *a, const struct in6_addr *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* Were they at the same port, and are they? */
static bool are_together(const struct layer_qp *a, const struct layer_qp *b)
{
	return a->is_datagram && b->is_datagram && a->was && b->was &&
	       same(&a->was_gid, &b->was_gid) && same(&a->gid, &b->gid);
}

/* of those from @i to before @end, which are together, under one of their GIDs */
static void tell_run(struct layer_proc *to, const struct layer_qp *qps,
		     size_t i, size_t end, const struct in6_addr *gid,
		     const struct in6_addr *at)
{
	char line[LINE_BYTES], was[INET6_ADDRSTRLEN], is[INET6_ADDRSTRLEN];
	size_t n;

	inet_ntop(AF_INET6, gid, was, sizeof(was));
	inet_ntop(AF_INET6, at, is, sizeof(is));
	while (i < end) {
		size_t head = (size_t)sprintf(line, "elsewhere %s %s", was, is);
		unsigned int pairs = 0;

		for (n = head;
		     i < end && n < sizeof(line) - ROOM && pairs < MOST_PAIRS;
		     i++)
			if (qps[i].was != qps[i].real || !same(gid, at))
				n += (size_t)sprintf(line + n, " %u %u",
						     qps[i].was, qps[i].real),
					pairs++;
		if (n > head)
			layer_tell(to, "%s", line);
	}
}

static bool tell_port(struct layer *l, struct layer_proc *to,
		      const struct layer_proc *of, size_t i, size_t end,
		      char *reason, size_t bytes)
{
	const struct layer_qp *qp = &of->names.qps[i];
	const struct layer_port *was, *is;
	const struct in6_addr *gid, *at;

	was = layer_port(l, l->local, &qp->was_gid, reason, bytes);
	is = was ? layer_port(l, of->host, &qp->gid, reason, bytes) : NULL;
	if (!is)
		return false;
	for (size_t k = 0; k < layer_port_gids(was); k++)
		if (layer_port_pair(was, is, k, &gid, &at))
			tell_run(to, of->names.qps, i, end, gid, at);
	return true;
}

/* false, and the reason, if that is not known */
static bool tell_of(struct layer *l, struct layer_proc *to,
		    const struct layer_proc *of, char *reason, size_t bytes)
{
	const struct layer_names *n = &of->names;

	for (size_t i = 0, end; i < n->n_qps; i = end) {
		for (end = i + 1; end < n->n_qps; end++)
			if (!are_together(&n->qps[end], &n->qps[i]))
				break;
		if (n->qps[i].was && n->qps[i].is_datagram &&
		    !tell_port(l, to, of, i, end, reason, bytes))
			return false;
	}
	return true;
}

/* @of: the layer that has the one who is told */
static void tell_of_all(struct layer *l, struct layer *of,
			struct layer_proc *to)
{
	size_t lines = to->lines;
	char reason[512];

	for (size_t i = 0; i < l->movers; i++)
		if (!l->procs[i]->is_lost &&
		    !tell_of(l, to, l->procs[i], reason, sizeof(reason)))
			layer_proc_fails(of, to, "%s", reason);
	if (to->lines > lines)
		layer_tell(to, "elsewhere");
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
	p = others->n < MOST_OTHERS ? calloc(1, sizeof(*p)) : NULL;
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
	/* bound to the process only when there is something to be told */
	p->open = client_open(&p->conn, l->ctx, host, l->port,
			      by_gid ? NULL : host, now_ms() + ASK_MS, reason,
			      sizeof(reason));
	if (!p->open)
		layer_proc_fails(others, p, "%s", reason);
}

static void add_host(struct layer *l, const char *host, bool by_gid)
{
	char reason[512];
	json_t *answer, *list;
	const char *id;

	answer = layer_ask_host(l, host, by_gid, "processes", now_ms() + ASK_MS,
				reason, sizeof(reason));
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

static bool is_asked(char (*asked)[MOST_HOST], size_t n, const char *host)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(asked[i], host))
			return true;
	return false;
}

/* Each takes some time if it is nowhere, and that is over if nobody waits for us any more. */
static void find_others(struct layer *l)
{
	static char asked[MOST_ASKED][MOST_HOST];
	size_t n = 0;
	char host[MOST_HOST];

	add_host(l, l->local, false);
	if (l->target)
		add_host(l, l->target, false);
	for (size_t i = 0; i < l->movers; i++)
		for (size_t j = 0; j < l->procs[i]->names.n_destinations; j++) {
			const struct in6_addr *gid =
				&l->procs[i]->names.destinations[j];

			if (!is_of_host(gid) || !layer_is_waited_for(0))
				continue;
			layer_host_of(gid, host);
			if (is_asked(asked, n, host))
				continue;
			if (n < MOST_ASKED)
				strcpy(asked[n++], host);
			add_host(l, host, true);
		}
	name_failed(l->others, l->container);
}

/* --- before, and after the stop --- */

static bool prove(struct layer *l, struct layer_qp *qp)
{
	char reason[512];

	if (!layer_port(l, l->local, &qp->gid, reason, sizeof(reason)))
		return layer_fail(l, "datagrams to QP %u: %s", qp->qpn, reason);
	qp->was = qp->real;
	qp->was_gid = qp->gid;
	return true;
}

static bool prove_all(struct layer *l, bool *some)
{
	*some = false;
	layer_check_owners(l, false);
	for (size_t i = 0; i < l->movers; i++) {
		struct layer_names *n = &l->procs[i]->names;

		if (l->procs[i]->failed)
			return false;
		if (n->more_destinations)
			fprintf(stderr,
				"migr-layer: %s: process %s: it sends datagrams to too many: some may not follow\n",
				l->procs[i]->host, l->procs[i]->id);
		for (size_t j = 0; j < n->n_qps; j++) {
			if (!n->qps[j].is_datagram)
				continue;
			if (!prove(l, &n->qps[j]))
				return false;
			*some = true;
		}
	}
	return true;
}

/* The program may have made others since, and somebody else have got their numbers. */
bool layer_prove_datagrams_still(struct layer *l)
{
	layer_check_owners(l, false);
	for (size_t i = 0; i < l->movers; i++)
		for (size_t j = 0; j < l->procs[i]->names.n_qps; j++) {
			struct layer_qp *qp = &l->procs[i]->names.qps[j];

			/* at another GID it is none that was proven */
			if (qp->is_datagram && qp->was)
				qp->was = memcmp(&qp->gid, &qp->was_gid,
						 sizeof(qp->gid))
						  ? 0
						  : qp->real;
		}
	return !*l->reason;
}

bool layer_prove_datagrams(struct layer *l)
{
	bool some;

	if (!prove_all(l, &some))
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

static void tell_others(struct layer *l)
{
	struct layer *others = l->others;

	for (size_t i = 0; i < others->n; i++) {
		struct layer_proc *p = others->procs[i];
		size_t lines;

		if (!p->open)
			continue;
		layer_tell(p, "open %s", p->id);
		lines = p->lines;
		tell_of_all(l, others, p);
		if (p->lines == lines)
			layer_unsay(p);
	}
	layer_round(others);
	name_failed(others, l->container);
	/* others may want to speak to them, too; they are told once */
	for (size_t i = 0; i < others->n; i++)
		layer_close(others->procs[i]);
}

/* made between the proof and the stop */
static void name_unproven(const struct layer *l)
{
	for (size_t i = 0; i < l->movers; i++)
		for (size_t j = 0; j < l->procs[i]->names.n_qps; j++) {
			const struct layer_qp *qp = &l->procs[i]->names.qps[j];

			if (qp->is_datagram && !qp->was)
				fprintf(stderr,
					"migr-layer: %s: process %s: datagrams to QP %u do not follow: it was not there in time\n",
					l->procs[i]->host, l->procs[i]->id,
					qp->qpn);
		}
}

void layer_tell_datagrams(struct layer *l)
{
	name_unproven(l);
	for (size_t i = 0; i < l->n; i++)
		if (!l->procs[i]->is_lost)
			tell_of_all(l, l, l->procs[i]);
	layer_round(l);
	name_failed(l, l->container);
	for (size_t i = 0; i < l->n; i++) /* but for who is gone */
		l->procs[i]->failed |=
			!l->procs[i]->is_lost && !l->procs[i]->open;
	if (l->others)
		tell_others(l);
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
	layer_free_ports(l);
}
