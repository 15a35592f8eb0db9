// SPDX-License-Identifier: GPL-2.0
#include "layer.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MOST_QPS = 1 << 16,
	MOST_KEYS = 1 << 19,
	MOST_KEYS_TOLD = 1 << 20, /* of a process, to all */
	MOST_DESTINATIONS = 64,
};

static bool number(const json_t *o, const char *name, json_int_t limit,
		   uint32_t *n)
{
	const json_t *value = json_object_get(o, name);
	json_int_t is = json_integer_value(value);

	*n = (uint32_t)is;
	return json_is_integer(value) && is >= 0 && is < limit;
}

static bool address(const json_t *value, struct in6_addr *to)
{
	const char *text = json_string_value(value);

	return text && inet_pton(AF_INET6, text, to) == 1;
}

static bool gid(const json_t *o, const char *name, struct in6_addr *to)
{
	return address(json_object_get(o, name), to);
}

static bool parse_peer(struct layer_qp *qp, const json_t *o)
{
	const json_t *peer = json_object_get(o, "peer");

	if (!gid(o, "gid", &qp->gid) ||
	    !number(peer, "qpn", QPNS, &qp->peer_qpn) ||
	    !gid(peer, "gid", &qp->at_gid))
		return false;
	qp->at_qpn = qp->peer_qpn;
	return !json_object_get(peer, "real") ||
	       (number(peer, "real", QPNS, &qp->at_qpn) &&
		gid(peer, "real_gid", &qp->at_gid));
}

static bool parse_qp(struct layer_qp *qp, const json_t *o)
{
	const char *state = json_string_value(json_object_get(o, "state"));
	const char *type = json_string_value(json_object_get(o, "type"));

	*qp = (struct layer_qp){ 0 };
	if (!state || !number(o, "qpn", QPNS, &qp->qpn) ||
	    !number(o, "real", QPNS, &qp->real) ||
	    (json_object_get(o, "next") && !number(o, "next", QPNS, &qp->next)))
		return false;
	if (strcmp(state, "RTR") && strcmp(state, "RTS"))
		return true;
	if (type && !strcmp(type, "UD")) {
		qp->is_datagram = gid(o, "gid", &qp->gid);
		return qp->is_datagram || !json_object_get(o, "gid");
	}
	qp->connected = true;
	return parse_peer(qp, o);
}

static int by_qpn(const void *a, const void *b)
{
	const uint32_t x = ((const struct layer_qp *)a)->qpn,
		       y = ((const struct layer_qp *)b)->qpn;

	return x < y ? -1 : x > y;
}

static bool parse_qps(struct layer_names *n, const json_t *list, char *reason,
		      size_t bytes)
{
	snprintf(reason, bytes, "its QPs are none");
	if (!json_is_array(list) || json_array_size(list) > MOST_QPS)
		return false;
	n->qps = calloc(json_array_size(list) + 1, sizeof(*n->qps));
	for (size_t i = 0; n->qps && i < json_array_size(list); i++)
		if (!parse_qp(&n->qps[n->n_qps++], json_array_get(list, i))) {
			snprintf(reason, bytes, "QP %u is no QP with a peer",
				 n->qps[n->n_qps - 1].qpn);
			return false;
		}
	if (!n->qps)
		return false;
	qsort(n->qps, n->n_qps, sizeof(*n->qps), by_qpn);
	for (size_t i = 1; i < n->n_qps; i++)
		if (n->qps[i].qpn == n->qps[i - 1].qpn) {
			snprintf(reason, bytes, "two QPs are %u",
				 n->qps[i].qpn);
			return false;
		}
	return true;
}

static int by_key(const void *a, const void *b)
{
	const uint32_t x = ((const struct layer_key *)a)->virtual,
		       y = ((const struct layer_key *)b)->virtual;

	return x < y ? -1 : x > y;
}

/* Of two devices they may be the same, and those who use them have one table. */
static bool are_told_apart(struct layer_names *n, char *reason, size_t bytes)
{
	qsort(n->keys, n->n_keys, sizeof(*n->keys), by_key);
	for (size_t i = 1; i < n->n_keys; i++)
		if (n->keys[i].virtual >> 8 == n->keys[i - 1].virtual >> 8 &&
		    n->keys[i].real >> 8 != n->keys[i - 1].real >> 8) {
			snprintf(reason, bytes, "two keys are 0x%06xxx",
				 n->keys[i].virtual >> 8);
			return false;
		}
	return true;
}

static bool parse_keys(struct layer_names *n, const json_t *list, char *reason,
		       size_t bytes)
{
	const json_int_t limit = (json_int_t)UINT32_MAX + 1;

	snprintf(reason, bytes, "its keys are none");
	if (!json_is_array(list) || json_array_size(list) > MOST_KEYS)
		return false;
	n->keys = calloc(json_array_size(list) + 1, sizeof(*n->keys));
	for (size_t i = 0; n->keys && i < json_array_size(list); i++) {
		const json_t *o = json_array_get(list, i);
		struct layer_key *key = &n->keys[n->n_keys++];

		if (!number(o, "virtual", limit, &key->virtual) ||
		    !number(o, "real", limit, &key->real))
			return false;
	}
	return n->keys && are_told_apart(n, reason, bytes);
}

/* There may be none. */
static bool parse_destinations(struct layer_names *n, const json_t *list,
			       char *reason, size_t bytes)
{
	snprintf(reason, bytes, "its destinations are none");
	if (json_array_size(list) > MOST_DESTINATIONS)
		return false;
	n->destinations =
		calloc(json_array_size(list) + 1, sizeof(*n->destinations));
	for (size_t i = 0; n->destinations && i < json_array_size(list); i++)
		if (!address(json_array_get(list, i),
			     &n->destinations[n->n_destinations++]))
			return false;
	return n->destinations;
}

bool layer_names_parse(struct layer_names *n, const json_t *answer,
		       char *reason, size_t bytes)
{
	*n = (struct layer_names){ 0 };
	if (parse_qps(n, json_object_get(answer, "qps"), reason, bytes) &&
	    parse_keys(n, json_object_get(answer, "keys"), reason, bytes) &&
	    parse_destinations(n, json_object_get(answer, "destinations"),
			       reason, bytes)) {
		n->more_destinations = json_is_true(
			json_object_get(answer, "more_destinations"));
		return true;
	}
	layer_names_free(n);
	return false;
}

void layer_names_free(struct layer_names *n)
{
	free(n->qps);
	free(n->keys);
	free(n->destinations);
	*n = (struct layer_names){ 0 };
}

bool layer_names_few_keys(struct layer *l, struct layer_proc *p)
{
	return p->names.n_keys * l->n <= MOST_KEYS_TOLD ||
	       layer_proc_fails(l, p, "too many keys: %zu", p->names.n_keys);
}

struct layer_qp *layer_names_qp(const struct layer_names *n, uint32_t qpn)
{
	const struct layer_qp key = { .qpn = qpn };

	return n->n_qps ? bsearch(&key, n->qps, n->n_qps, sizeof(key), by_qpn)
			: NULL;
}

/* Whom a QP leads to does not change when it gets another number. */
static void take_over(struct layer_names *to, struct layer_names *from)
{
	for (size_t i = 0; i < to->n_qps; i++) {
		const struct layer_qp *old =
			layer_names_qp(from, to->qps[i].qpn);

		if (!old)
			continue;
		to->qps[i].to = old->to;
		to->qps[i].to_gid = old->to_gid;
		to->qps[i].led = old->led;
		to->qps[i].led_gid = old->led_gid;
		to->qps[i].owned = old->owned;
		to->qps[i].owned_gid = old->owned_gid;
		to->qps[i].was = old->was;
		to->qps[i].was_gid = old->was_gid;
	}
	layer_names_free(from);
}

void layer_names_no_next(struct layer_names *n)
{
	for (size_t i = 0; i < n->n_qps; i++)
		n->qps[i].next = 0;
}

bool layer_get_names(struct layer *l)
{
	struct layer_names names;
	char reason[256];
	bool good;

	for (size_t i = 0; i < l->n; i++)
		if (!l->procs[i]->is_lost)
			layer_tell(l->procs[i], "names");
	good = layer_round(l);
	for (size_t i = 0; i < l->n; i++) {
		struct layer_proc *p = l->procs[i];

		if (p->failed || p->is_lost)
			continue;
		if (layer_names_parse(&names, p->answer, reason,
				      sizeof(reason))) {
			take_over(&names, &p->names);
			p->names = names;
			if (p->is_mover)
				layer_names_no_next(&p->names);
		} else {
			good = layer_proc_fails(l, p, "names: %s", reason);
		}
	}
	return good;
}
