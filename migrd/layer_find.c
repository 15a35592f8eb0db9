// SPDX-License-Identifier: GPL-2.0
/*
 * The container's processes, and those of their peers: the daemon of the host that has
 * the peer's GID knows whose that QP is.
 */
#include "layer.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MOST_REPLACED =
		4096, /* QPs of a process: their numbers are said in one line */
};

/* its number inside, of .../CONTAINER/run/migrrdma/NUMBER.sock; 0: it is another one's */
static int inner(const char *path, const char *container)
{
	const char *name = path ? strrchr(path, '/') : NULL;
	char end[128];
	int bytes, n, read = 0;

	if (!name || sscanf(name, "/%9d.sock%n", &n, &read) != 1 || !read ||
	    name[read] || n <= 0)
		return 0;
	bytes = snprintf(end, sizeof(end), "/%s/run/migrrdma", container);
	if (name - path < bytes || memcmp(name - bytes, end, (size_t)bytes))
		return 0;
	return n;
}

static int by_inner(const void *a, const void *b)
{
	return ((const struct layer_found *)a)->inner -
	       ((const struct layer_found *)b)->inner;
}

static bool choose(const struct layer *l, const json_t *list,
		   struct layer_found *found, size_t *n)
{
	*n = 0;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *o = json_array_get(list, i);
		const char *id = json_string_value(json_object_get(o, "id"));
		int number =
			inner(json_string_value(json_object_get(o, "socket")),
			      l->container);

		if (!number)
			continue;
		if (*n == MOST_PROCS || !layer_is_id(id))
			return false;
		strcpy(found[*n].id, id);
		found[(*n)++].inner = number;
	}
	qsort(found, *n, sizeof(*found), by_inner);
	return true;
}

bool layer_processes(struct layer *l, const char *host, long long deadline,
		     struct layer_found found[MOST_PROCS], size_t *n,
		     char *reason, size_t bytes)
{
	char line[MOST_CONTAINER + 16];
	json_t *answer;
	bool good;

	/* Others may have as many as they like. */
	snprintf(line, sizeof(line), "processes %s", l->container);
	answer = layer_ask_host(l, host, false, line, deadline, reason, bytes);
	good = answer &&
	       choose(l, json_object_get(answer, "processes"), found, n);
	if (answer && !good)
		snprintf(reason, bytes, "too many processes, or none");
	if (good && json_object_get(answer, "left_out")) {
		snprintf(reason, bytes,
			 "there are more processes than are told");
		good = false;
	}
	json_decref(answer);
	return good;
}

/* one that is open */
static struct layer_proc *add(struct layer *l, const char *host, bool by_gid,
			      const char *id, char *reason, size_t bytes)
{
	struct layer_proc *p = calloc(1, sizeof(*p));

	if (!p || l->n == MOST_PROCS) {
		snprintf(reason, bytes, "too many processes");
		free(p);
		return NULL;
	}
	snprintf(p->host, sizeof(p->host), "%s", host);
	snprintf(p->id, sizeof(p->id), "%s", id);
	p->by_gid = by_gid;
	if (!layer_open(l, p, now_ms() + PATIENCE_MS, reason, bytes)) {
		free(p);
		return NULL;
	}
	l->procs[l->n++] = p;
	return p;
}

static bool names_of(struct layer_proc *p, char *reason, size_t bytes)
{
	char why[256];
	json_t *answer = layer_ask(&p->conn, "names", now_ms() + PATIENCE_MS,
				   why, sizeof(why));
	bool good = answer &&
		    layer_names_parse(&p->names, answer, why, sizeof(why));

	if (!good)
		snprintf(reason, bytes, "process %s: names: %s", p->id, why);
	json_decref(answer);
	return good;
}

static bool add_movers(struct layer *l)
{
	struct layer_found found[MOST_PROCS];
	struct layer_proc *p;
	char reason[512];
	size_t n;

	if (!layer_processes(l, l->local, now_ms() + PATIENCE_MS, found, &n,
			     reason, sizeof(reason)))
		return layer_fail(l, "%s: %s", l->local, reason);
	for (size_t i = 0; i < n; i++) {
		p = add(l, l->local, false, found[i].id, reason,
			sizeof(reason));
		if (!p || !names_of(p, reason, sizeof(reason)))
			return layer_fail(l, "%s: %s", l->local, reason);
		layer_names_no_next(&p->names);
		p->is_mover = true;
		p->inner = found[i].inner;
	}
	l->movers = n;
	return true;
}

/* --- peers --- */

static bool same_gid(const struct in6_addr *a, const struct in6_addr *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static struct layer_proc *known(struct layer *l, const char *id)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->procs[i]->id, id))
			return l->procs[i];
	return NULL;
}

/* Who was found for another one has told of its own: for each a daemon would take long. */
static struct layer_proc *names_itself(struct layer *l,
				       const struct layer_qp *qp)
{
	const struct layer_qp *peer;

	for (size_t i = 0; i < l->n; i++) {
		peer = layer_names_qp(&l->procs[i]->names, qp->peer_qpn);
		if (peer && peer->connected && peer->real == qp->at_qpn &&
		    same_gid(&peer->gid, &qp->at_gid))
			return l->procs[i];
	}
	return NULL;
}

static bool find_peer(struct layer *l, struct layer_qp *qp)
{
	char host[MOST_HOST], gid[INET6_ADDRSTRLEN], id[MOST_ID] = "";
	char reason[512];

	qp->to = names_itself(l, qp);
	if (!qp->to &&
	    layer_ask_whose(l, qp, host, id, reason, sizeof(reason))) {
		qp->to = known(l, id);
		if (!qp->to) {
			qp->to = add(l, host, true, id, reason, sizeof(reason));
			if (qp->to && !names_of(qp->to, reason, sizeof(reason)))
				qp->to = NULL;
		}
	}
	if (qp->to &&
	    layer_reach(l, qp->to, &qp->at_gid, reason, sizeof(reason)))
		return true;
	inet_ntop(AF_INET6, &qp->at_gid, gid, sizeof(gid));
	return layer_fail(l, "the peer of QP %u, QP %u at %s: %s", qp->qpn,
			  qp->at_qpn, gid, reason);
}

static bool find_peers(struct layer *l)
{
	bool good = true;

	for (size_t i = 0; i < l->movers; i++) {
		struct layer_names *n = &l->procs[i]->names;

		for (size_t j = 0; good && j < n->n_qps; j++)
			if (n->qps[j].connected)
				good = find_peer(l, &n->qps[j]);
	}
	return good;
}

/* Both say of each other that they are connected, and under which numbers. */
static bool match(struct layer *l, struct layer_proc *p, struct layer_qp *qp)
{
	struct layer_qp *peer;
	char gid[INET6_ADDRSTRLEN];

	if (!qp->to)
		return layer_fail(l, "%s: process %s: QP %u has a peer since",
				  p->host, p->id, qp->qpn);
	peer = layer_names_qp(&qp->to->names, qp->peer_qpn);
	if (peer && peer->connected && peer->real == qp->at_qpn &&
	    same_gid(&peer->gid, &qp->at_gid) && peer->peer_qpn == qp->qpn &&
	    peer->at_qpn == qp->real && same_gid(&peer->at_gid, &qp->gid) &&
	    layer_is_reached(qp->to, &qp->at_gid)) {
		qp->to_gid = qp->at_gid;
		peer->to = p;
		peer->to_gid = peer->at_gid;
		return true;
	}
	inet_ntop(AF_INET6, &qp->at_gid, gid, sizeof(gid));
	return layer_fail(
		l,
		"the peer of QP %u, QP %u at %s, process %s: it is not connected to that",
		qp->qpn, qp->at_qpn, gid, qp->to->id);
}

static bool match_all(struct layer *l)
{
	for (size_t i = l->movers; i < l->n; i++)
		for (size_t j = 0; j < l->procs[i]->names.n_qps; j++)
			l->procs[i]->names.qps[j].to = NULL;
	for (size_t i = 0; i < l->movers; i++) {
		struct layer_names *n = &l->procs[i]->names;

		for (size_t j = 0; j < n->n_qps; j++)
			if (!n->qps[j].connected)
				n->qps[j].to = NULL;
			else if (!match(l, l->procs[i], &n->qps[j]))
				return false;
	}
	return true;
}

bool layer_match(struct layer *l)
{
	if (!match_all(l))
		return false;
	for (size_t i = 0; i < l->n; i++)
		if (!layer_names_few_keys(l, l->procs[i]))
			return false;
	for (size_t i = 0; i < l->n; i++)
		if (layer_replaced(l->procs[i]) > MOST_REPLACED)
			return layer_fail(
				l, "%s: process %s: too many QPs lead there",
				l->procs[i]->host, l->procs[i]->id);
	return true;
}

/* What they have named is theirs. */
static bool own_them(struct layer *l)
{
	layer_check_owners(l, true);
	return !*l->reason;
}

/* It can be reached, by that name. */
static bool ask_target(struct layer *l)
{
	struct layer_found found[MOST_PROCS];
	char reason[512];
	size_t n;

	return !l->target ||
	       layer_processes(l, l->target, now_ms() + PATIENCE_MS, found, &n,
			       reason, sizeof(reason)) ||
	       layer_fail(l, "%s: %s", l->target, reason);
}

bool layer_check(struct layer *l)
{
	double begin = layer_clock();
	bool good = ask_target(l) && add_movers(l) && find_peers(l) &&
		    layer_match(l) && own_them(l) && layer_prove_datagrams(l) &&
		    layer_open_spare(l);

	l->check = layer_clock() - begin;
	return good;
}
