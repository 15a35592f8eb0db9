// SPDX-License-Identifier: GPL-2.0
/*
 * Whose a queue pair is: that daemons are asked, as their kernels know it, and what
 * processes say of themselves is compared with it.
 */
#include "layer.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool layer_is_id(const char *id)
{
	size_t bytes = id ? strlen(id) : 0;

	for (size_t i = 0; i < bytes; i++)
		if (!isalnum((unsigned char)id[i]) && !strchr(":-_", id[i]))
			return false;
	return bytes && bytes < MOST_ID;
}

void layer_host_of(const struct in6_addr *gid, char *host)
{
	if (IN6_IS_ADDR_V4MAPPED(gid))
		inet_ntop(AF_INET, gid->s6_addr + 12, host, MOST_HOST);
	else
		inet_ntop(AF_INET6, gid, host, MOST_HOST);
}

enum {
	/* an end that comes sooner may be none the next time */
	SILENT_MS = 1000,
};

/* --- connections --- */

static struct conn *find_conn(struct layer_hosts *hosts, const char *name)
{
	for (size_t i = 0; i < hosts->n; i++)
		if (!strcmp(hosts->all[i].name, name))
			return &hosts->all[i].conn;
	return NULL;
}

/* the one that there is, or a new one */
static struct conn *daemon_of(struct layer *l, const char *name, bool by_gid,
			      bool *is_new, long long deadline, char *reason,
			      size_t bytes)
{
	struct layer_hosts *hosts = &l->hosts;
	struct conn *c = find_conn(hosts, name);

	*is_new = false;
	if (c)
		return c;
	/* as many as there are: a host may have one for each of its processes */
	if (hosts->n == LAYER_HOSTS)
		conn_free(&hosts->all[--hosts->n].conn);
	c = &hosts->all[hosts->n].conn;
	*is_new = true;
	if (!client_open(c, l->ctx, name, l->port, by_gid ? NULL : name,
			 deadline, reason, bytes))
		return NULL;
	strcpy(hosts->all[hosts->n++].name, name);
	return c;
}

/* An answer that comes yet would be taken for the next one. */
static void forget(struct layer_hosts *hosts, struct conn *c)
{
	for (size_t i = 0; i < hosts->n; i++)
		if (&hosts->all[i].conn == c) {
			conn_free(c);
			hosts->all[i] = hosts->all[--hosts->n];
			return;
		}
}

json_t *layer_ask_host(struct layer *l, const char *name, bool by_gid,
		       const char *line, long long deadline, char *reason,
		       size_t bytes)
{
	json_t *answer;
	struct conn *c;
	bool is_new, ended;

	do {
		c = daemon_of(l, name, by_gid, &is_new, deadline, reason,
			      bytes);
		if (!c)
			return NULL;
		answer = layer_ask(c, line, deadline, reason, bytes);
		ended = !answer && *c->reason;
		if (ended)
			forget(&l->hosts, c);
	} while (ended && !is_new && now_ms() < deadline);
	return answer;
}

static bool is_silent(const struct layer_hosts *hosts, const char *name)
{
	for (size_t i = 0; i < hosts->n_silent; i++)
		if (!strcmp(hosts->silent[i], name))
			return true;
	return false;
}

json_t *layer_ask_once(struct layer *l, const char *name, bool by_gid,
		       const char *line, char *reason, size_t bytes)
{
	struct layer_hosts *hosts = &l->hosts;
	long long begun = now_ms();
	json_t *answer;

	if (is_silent(hosts, name)) {
		snprintf(reason, bytes, "its host has not answered before");
		return NULL;
	}
	answer = layer_ask_host(l, name, by_gid, line, begun + PATIENCE_MS,
				reason, bytes);
	/* of who refuses the connection stays */
	if (!answer && !find_conn(hosts, name) &&
	    now_ms() - begun >= SILENT_MS && hosts->n_silent < LAYER_HOSTS)
		strcpy(hosts->silent[hosts->n_silent++], name);
	return answer;
}

bool layer_open_spare(struct layer *l)
{
	struct layer_hosts *hosts = &l->hosts;
	char reason[512];

	for (; l->target && hosts->spares < l->movers; hosts->spares++)
		if (!client_open(&hosts->spare[hosts->spares], l->ctx,
				 l->target, l->port, l->target,
				 now_ms() + PATIENCE_MS, reason,
				 sizeof(reason)))
			return layer_fail(l,
					  "%s: no place for %zu processes: %s",
					  l->target, l->movers, reason);
	return true;
}

bool layer_target_lives(struct layer *l)
{
	struct layer_hosts *hosts = &l->hosts;

	for (size_t i = 0; i < hosts->spares; i++) {
		struct conn *c = &hosts->spare[i];

		if (conn_read(c) != CONN_NOTHING)
			return layer_fail(l, "%s: %s", l->target,
					  *c->reason
						  ? c->reason
						  : "an answer to no question");
	}
	return true;
}

bool layer_take_spare(struct layer *l, const char *host, struct conn *c)
{
	if (!l->hosts.spares || !l->target || strcmp(host, l->target))
		return false;
	*c = l->hosts.spare[--l->hosts.spares];
	return true;
}

void layer_hosts_end(struct layer *l)
{
	while (l->hosts.n)
		conn_free(&l->hosts.all[--l->hosts.n].conn);
	while (l->hosts.spares)
		conn_free(&l->hosts.spare[--l->hosts.spares]);
}

/* --- whose a queue pair is --- */

bool layer_is_reached(const struct layer_proc *p, const struct in6_addr *gid)
{
	char host[MOST_HOST];

	if (!p->by_gid)
		return true;
	layer_host_of(gid, host);
	if (!strcmp(host, p->host))
		return true;
	for (size_t i = 0; i < p->n_reached; i++)
		if (!memcmp(&p->reached[i], gid, sizeof(*gid)))
			return true;
	return false;
}

bool layer_reach(struct layer *l, struct layer_proc *p,
		 const struct in6_addr *gid, char *reason, size_t bytes)
{
	char host[MOST_HOST];
	struct in6_addr *all;
	struct conn *c;
	bool is_new;

	if (layer_is_reached(p, gid))
		return true;
	layer_host_of(gid, host);
	c = daemon_of(l, host, true, &is_new, now_ms() + PATIENCE_MS, reason,
		      bytes);
	if (!c)
		return false;
	snprintf(reason, bytes, "process %s is not on the host with that GID",
		 p->id);
	all = tls_same_peer(c->ssl, p->conn.ssl)
		      ? realloc(p->reached, (p->n_reached + 1) * sizeof(*all))
		      : NULL;
	if (!all)
		return false;
	p->reached = all;
	p->reached[p->n_reached++] = *gid;
	return true;
}

bool layer_ask_whose(struct layer *l, const struct layer_qp *qp, char *host,
		     char *id, char *reason, size_t bytes)
{
	char line[INET6_ADDRSTRLEN + 32], gid[INET6_ADDRSTRLEN];
	const char *is;
	json_t *answer;

	layer_host_of(&qp->at_gid, host);
	inet_ntop(AF_INET6, &qp->at_gid, gid, sizeof(gid));
	snprintf(line, sizeof(line), "find %u %s", qp->at_qpn, gid);
	answer = layer_ask_host(l, host, true, line,
				now_ms() + (l->hurry ? l->hurry : PATIENCE_MS),
				reason, bytes);
	is = json_string_value(
		json_object_get(json_object_get(answer, "process"), "id"));
	if (layer_is_id(is))
		strcpy(id, is);
	else if (answer)
		snprintf(reason, bytes, "an answer that is none");
	json_decref(answer);
	return layer_is_id(id);
}

/* --- what processes say of themselves --- */

/*
 * A host may have a name for each of its processes, but it has one certificate: that name
 * under which it has not answered, if there is one.
 */
static const char *host_of(const struct layer *l, const struct layer_proc *p)
{
	for (size_t i = 0; i < l->n; i++) {
		const struct layer_proc *other = l->procs[i];

		if (other->open && p->open &&
		    is_silent(&l->hosts, other->host) &&
		    tls_same_peer(other->conn.ssl, p->conn.ssl))
			return other->host;
	}
	return p->host;
}

static bool ask_owns(struct layer *l, const struct layer_proc *p,
		     const char *line, char *reason, size_t bytes)
{
	json_t *answer = layer_ask_once(l, host_of(l, p), p->by_gid, line,
					reason, bytes);

	json_decref(answer);
	return answer;
}

static bool is_told_of(const struct layer_proc *p, const struct layer_qp *qp,
		       bool all)
{
	return (all && qp->to && !qp->to->is_lost) ||
	       (p->is_mover && qp->is_datagram);
}

static bool is_at(const struct layer_qp *qp, uint32_t real,
		  const struct in6_addr *gid)
{
	return qp->real == real && !memcmp(&qp->gid, gid, sizeof(*gid));
}

/* Is that what its peer was led to, which was made for it where it is now? */
static bool was_made(const struct layer *l, const struct layer_proc *p,
		     const struct layer_qp *qp)
{
	const struct layer_qp *peer;

	if (!l->ahead || !l->target || strcmp(p->host, l->target) || !qp->to)
		return false;
	peer = layer_names_qp(&qp->to->names, qp->peer_qpn);
	return peer && peer->to == p && peer->peer_qpn == qp->qpn &&
	       peer->led && is_at(qp, peer->led, &peer->led_gid);
}

static bool is_proven(const struct layer *l, const struct layer_proc *p,
		      const struct layer_qp *qp)
{
	return p->is_mover ? was_made(l, p, qp)
			   : qp->owned && is_at(qp, qp->owned, &qp->owned_gid);
}

enum what {
	DATAGRAMS, /* sent to them */
	ALL,
	NEXT, /* of a partner */
};

static bool is_asked_of(const struct layer *l, const struct layer_proc *p,
			const struct layer_qp *qp, enum what what)
{
	return what == NEXT
		       ? qp->to && qp->next
		       : is_told_of(p, qp, what == ALL) && !is_proven(l, p, qp);
}

/* of one GID, from @i on; where the next one begins */
static size_t owns_line(const struct layer *l, const struct layer_proc *p,
			size_t i, enum what what, char *line)
{
	const struct layer_qp *first = NULL, *qp;
	char gid[INET6_ADDRSTRLEN];
	size_t n = 0;

	for (; i < p->names.n_qps && n < LINE_BYTES - 16; i++) {
		qp = &p->names.qps[i];
		if (!is_asked_of(l, p, qp, what))
			continue;
		if (!first) {
			first = qp;
			inet_ntop(AF_INET6, &qp->gid, gid, sizeof(gid));
			n = (size_t)sprintf(line, "owns %s %s", p->id, gid);
		} else if (memcmp(&qp->gid, &first->gid, sizeof(qp->gid))) {
			break;
		}
		n += (size_t)sprintf(line + n, " %u",
				     what == NEXT ? qp->next : qp->real);
	}
	line[n] = 0;
	return i;
}

/* those of a line */
static void note_owned(const struct layer *l, struct layer_proc *p, size_t from,
		       size_t end)
{
	for (size_t i = from; i < end; i++) {
		struct layer_qp *qp = &p->names.qps[i];

		if (!is_asked_of(l, p, qp, NEXT))
			continue;
		qp->owned = qp->next;
		qp->owned_gid = qp->gid;
	}
}

/* false, and the reason, if one of them is not its own, or its daemon does not say so */
static bool ask_owner(struct layer *l, struct layer_proc *p, enum what what,
		      char *reason, size_t bytes)
{
	char line[LINE_BYTES];
	size_t from, at = 0;

	while (at < p->names.n_qps) {
		from = at;
		at = owns_line(l, p, from, what, line);
		if (*line && !ask_owns(l, p, line, reason, bytes))
			return false;
		if (what == NEXT)
			note_owned(l, p, from, at);
	}
	return true;
}

void layer_check_owners(struct layer *l, bool all)
{
	char reason[512];

	l->hosts.n_silent = 0;
	for (size_t i = 0; i < l->n; i++) {
		struct layer_proc *p = l->procs[i];

		if (!p->is_lost && !p->failed &&
		    !ask_owner(l, p, all ? ALL : DATAGRAMS, reason,
			       sizeof(reason)))
			layer_proc_fails(l, p, "its QPs: %s", reason);
	}
}

void layer_prove_next(struct layer *l)
{
	char reason[512];

	l->hosts.n_silent = 0;
	for (size_t i = l->movers; i < l->n; i++)
		if (l->procs[i]->open)
			ask_owner(l, l->procs[i], NEXT, reason, sizeof(reason));
}
