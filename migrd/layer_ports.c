// SPDX-License-Identifier: GPL-2.0
/*
 * What has become of a GID: the daemons of both hosts say which ones there are beside it.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gids.h"
#include "layer_ports.h"

struct layer_port {
	struct layer_port *next;
	char host[MOST_HOST];
	struct in6_addr gid; /* by which it was asked for */
	size_t n;
	struct gid_entry all[];
};

static struct layer_port *known(const struct layer *l, const char *host,
				const struct in6_addr *gid)
{
	struct layer_port *p = l->ports;

	while (p &&
	       (strcmp(p->host, host) || memcmp(&p->gid, gid, sizeof(*gid))))
		p = p->next;
	return p;
}

static bool parse(struct gid_entry *e, const json_t *o)
{
	const char *gid = json_string_value(json_object_get(o, "gid"));
	const char *type = json_string_value(json_object_get(o, "type"));
	const json_t *index = json_object_get(o, "index");

	if (!gid || inet_pton(AF_INET6, gid, &e->gid) != 1 || !type ||
	    strlen(type) >= sizeof(e->type) || !json_is_integer(index))
		return false;
	strcpy(e->type, type);
	e->index = (unsigned int)json_integer_value(index);
	return true;
}

static struct layer_port *parse_all(const json_t *list)
{
	size_t n = json_array_size(list);
	struct layer_port *p = NULL;

	if (json_is_array(list) && n <= MOST_GIDS)
		p = calloc(1, sizeof(*p) + n * sizeof(p->all[0]));
	for (; p && p->n < n; p->n++)
		if (!parse(&p->all[p->n], json_array_get(list, p->n))) {
			free(p);
			return NULL;
		}
	return p;
}

const struct layer_port *layer_port(struct layer *l, const char *host,
				    const struct in6_addr *gid, char *reason,
				    size_t bytes)
{
	char line[INET6_ADDRSTRLEN + 8] = "gids ";
	struct layer_port *p = known(l, host, gid);
	json_t *answer;

	if (p)
		return p;
	inet_ntop(AF_INET6, gid, line + strlen(line), INET6_ADDRSTRLEN);
	answer = layer_ask_once(l, host, false, line, reason, bytes);
	p = parse_all(json_object_get(answer, "gids"));
	if (answer && !p)
		snprintf(reason, bytes, "an answer that is none");
	json_decref(answer);
	if (!p)
		return NULL;
	snprintf(p->host, sizeof(p->host), "%s", host);
	p->gid = *gid;
	p->next = l->ports;
	l->ports = p;
	return p;
}

/* --- what takes the place of what, as in migrrdma/gid.c --- */

static int family(const struct in6_addr *gid)
{
	if (IN6_IS_ADDR_V4MAPPED(gid))
		return 4;
	return IN6_IS_ADDR_LINKLOCAL(gid) ? 0 : 6;
}

static int rank(const struct gid_entry *e, const struct gid_entry *was)
{
	if (strcmp(e->type, was->type) || family(&e->gid) != family(&was->gid))
		return 0;
	if (!memcmp(&e->gid, &was->gid, sizeof(e->gid)))
		return 3;
	return e->index == was->index ? 2 : 1;
}

static const struct gid_entry *successor(const struct layer_port *p,
					 const struct gid_entry *was)
{
	const struct gid_entry *best = NULL;

	for (size_t i = 0; i < p->n; i++)
		if (rank(&p->all[i], was) > (best ? rank(best, was) : 0))
			best = &p->all[i];
	return best;
}

/* The same address may be of several types: it is told of once. */
bool layer_port_pair(const struct layer_port *was, const struct layer_port *is,
		     size_t i, const struct in6_addr **gid,
		     const struct in6_addr **at)
{
	const struct gid_entry *e = successor(is, &was->all[i]);

	for (size_t k = 0; e && k < i; k++)
		if (!memcmp(&was->all[k].gid, &was->all[i].gid,
			    sizeof(was->all[i].gid)) &&
		    successor(is, &was->all[k]))
			return false;
	*gid = &was->all[i].gid;
	*at = e ? &e->gid : NULL;
	return e;
}

size_t layer_port_gids(const struct layer_port *p)
{
	return p->n;
}

void layer_free_ports(struct layer *l)
{
	struct layer_port *next;

	for (; l->ports; l->ports = next) {
		next = l->ports->next;
		free(l->ports);
	}
}
