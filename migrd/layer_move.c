// SPDX-License-Identifier: GPL-2.0
/*
 * What can be undone by the end of a connection comes first, of everybody. After that
 * there is only one way: new QPs at both ends, wherever the container is.
 */
#include "layer.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "note.h"

enum {
	HOLD_S = 600, /* of its own time, in which a mover has to arrive */
	AGAIN_MS = 100,
	MOST_WORDS = 1000, /* of QPs in a line */
};

static bool is_partner(const struct layer *l, size_t i)
{
	return i >= l->movers;
}

/* of which the process' time is measured from @begin to now */
static double since(double *begin)
{
	double now = layer_clock(), ms = now - *begin;

	*begin = now;
	return ms;
}

/* only those that lead to the container */
static bool tell_replace(struct layer *l, struct layer_proc *p)
{
	char line[LINE_BYTES];
	int n = snprintf(line, sizeof(line), "replace %u", l->budget);
	unsigned int qps = 0;

	for (size_t i = 0; i < p->names.n_qps; i++) {
		if (!p->names.qps[i].to)
			continue;
		if (++qps > MOST_WORDS)
			return layer_fail(
				l, "%s: process %s: too many QPs lead there",
				p->host, p->id);
		n += snprintf(line + n, sizeof(line) - (size_t)n, " %u",
			      p->names.qps[i].qpn);
	}
	/* without a number all would be meant */
	if (qps)
		layer_tell(p, "%s", line);
	return true;
}

static bool replace_partners(struct layer *l)
{
	bool good;

	for (size_t i = l->movers; i < l->n; i++)
		if (!l->procs[i]->is_stopped && !l->procs[i]->is_lost &&
		    !tell_replace(l, l->procs[i]))
			return false;
	good = layer_round(l);
	for (size_t i = l->movers; i < l->n; i++)
		l->procs[i]->is_stopped |= !l->procs[i]->failed;
	return good;
}

/* Until its connection has ended it cannot be dumped. */
static bool wait_for_end(struct layer *l, struct layer_proc *p)
{
	size_t bytes;
	bool ended = !client_hear(&p->conn, &bytes, now_ms() + PATIENCE_MS) &&
		     strcmp(p->conn.reason, "the peer takes too long");

	layer_close(p);
	return ended ||
	       layer_fail(l, "%s: process %s: hold: it does not let go",
			  p->host, p->id);
}

static bool hold_movers(struct layer *l)
{
	bool good;

	for (size_t i = 0; i < l->movers; i++)
		layer_tell(l->procs[i], "hold %u %u", l->budget, HOLD_S);
	good = layer_round(l);
	for (size_t i = 0; i < l->movers; i++)
		if (!l->procs[i]->failed)
			good &= wait_for_end(l, l->procs[i]);
	return good;
}

static void close_all(struct layer *l)
{
	for (size_t i = 0; i < l->n; i++)
		layer_close(l->procs[i]);
}

bool layer_stop(struct layer *l)
{
	double begin = layer_clock();
	char reason[sizeof(l->reason)];

	for (size_t i = 0; i < l->n; i++)
		layer_tell(l->procs[i], "suspend %u", l->budget);
	if (!layer_round(l) || !layer_get_names(l) || !layer_match(l)) {
		close_all(l);
		return false;
	}
	l->suspend = since(&begin);
	if (replace_partners(l)) {
		l->replace_partners = since(&begin);
		if (hold_movers(l)) {
			l->hold = since(&begin);
			return true;
		}
	}
	memcpy(reason, l->reason, sizeof(reason));
	*l->reason = 0;
	if (!layer_start(l, l->local, 0))
		fprintf(stderr, "migr-layer: %s does not go on either: %s\n",
			l->container, l->reason);
	memcpy(l->reason, reason, sizeof(reason));
	return false;
}

/* --- start --- */

/* A partner that is gone does not keep the others from going on. */
static bool all_but_partners(struct layer *l, bool good)
{
	bool movers = true;

	for (size_t i = 0; !good && i < l->n; i++) {
		struct layer_proc *p = l->procs[i];

		if (!p->failed)
			continue;
		p->failed = false;
		if (is_partner(l, i)) {
			fprintf(stderr, "migr-layer: %s\n", l->reason);
			*l->reason = 0;
			p->is_lost = true;
			layer_close(p);
		} else {
			movers = false;
		}
	}
	return good || (movers && !*l->reason);
}

/* the container's processes, whose connections have ended, or which are elsewhere now */
static bool try_open(struct layer *l, const char *host, char *reason,
		     size_t bytes)
{
	struct layer_found found[MOST_PROCS];
	size_t n;

	if (!layer_processes(l, host, found, &n, reason, bytes))
		return false;
	if (n != l->movers) {
		snprintf(reason, bytes,
			 "there are %zu processes of %s, in the place of %zu",
			 n, l->container, l->movers);
		return false;
	}
	for (size_t i = 0; i < n; i++) {
		struct layer_proc *p = l->procs[i];

		if (p->inner != found[i].inner) {
			snprintf(reason, bytes, "%s has other processes",
				 l->container);
			return false;
		}
		if (p->open)
			continue;
		snprintf(p->host, sizeof(p->host), "%s", host);
		strcpy(p->id, found[i].id);
		if (!layer_open(l, p, reason, bytes))
			return false;
	}
	return true;
}

static bool open_movers(struct layer *l, const char *host, long long patience)
{
	long long deadline = now_ms() + patience;
	char reason[512];
	bool all = true;

	for (size_t i = 0; i < l->movers; i++)
		all &= l->procs[i]->open;
	while (!all && !try_open(l, host, reason, sizeof(reason))) {
		if (now_ms() >= deadline)
			return layer_fail(l, "%s: %s", host, reason);
		usleep(AGAIN_MS * 1000);
	}
	return true;
}

static bool has_told(const struct layer_proc *p, const struct layer_proc *other)
{
	for (size_t i = 0; i < p->names.n_qps; i++)
		if (p->names.qps[i].to == other)
			return true;
	return false;
}

static bool tell_peers(struct layer *l, struct layer_proc *p)
{
	char gid[INET6_ADDRSTRLEN];

	for (size_t i = 0; i < p->names.n_qps; i++) {
		const struct layer_qp *qp = &p->names.qps[i], *peer;

		if (!qp->to)
			continue;
		peer = layer_names_qp(&qp->to->names, qp->peer_qpn);
		if (!peer)
			return layer_fail(l, "%s: process %s: QP %u is gone",
					  qp->to->host, qp->to->id,
					  qp->peer_qpn);
		inet_ntop(AF_INET6, &peer->gid, gid, sizeof(gid));
		layer_tell(p, "peer %u %u %s %s", qp->qpn, peer->real, gid,
			   qp->to->id);
	}
	return true;
}

/* what they need to know of those that they lead to */
static bool exchange(struct layer *l)
{
	for (size_t i = 0; i < l->n; i++) {
		struct layer_proc *p = l->procs[i];

		for (size_t j = 0; j < l->n; j++) {
			const struct layer_proc *to = l->procs[j];

			if (p->is_lost || !has_told(p, to))
				continue;
			layer_tell(p, "keys %s", to->id);
			for (size_t k = 0; k < to->names.n_keys; k++)
				layer_tell(p, "key %s %u %u", to->id,
					   to->names.keys[k].virtual,
					   to->names.keys[k].real);
		}
		if (!p->is_lost && !tell_peers(l, p))
			return false;
	}
	return layer_round(l);
}

static bool word_for_all(struct layer *l, const char *word)
{
	for (size_t i = 0; i < l->n; i++)
		if (!l->procs[i]->is_lost)
			layer_tell(l->procs[i], "%s", word);
	return layer_round(l);
}

static bool replace_movers(struct layer *l)
{
	for (size_t i = 0; i < l->movers; i++)
		layer_tell(l->procs[i], "replace %u", l->budget);
	return layer_round(l);
}

bool layer_start(struct layer *l, const char *host, long long patience)
{
	double begin = layer_clock();

	for (size_t i = 0; i < l->n; i++) {
		l->procs[i]->failed = false;
		l->procs[i]->bytes = l->procs[i]->lines = 0;
	}
	if (!open_movers(l, host, patience) || !replace_movers(l) ||
	    !all_but_partners(l, replace_partners(l)) ||
	    !all_but_partners(l, layer_get_names(l)))
		return false;
	l->restore = since(&begin);
	if (!all_but_partners(l, exchange(l)))
		return false;
	l->exchange = since(&begin);
	if (!all_but_partners(l, word_for_all(l, "connect")))
		return false;
	l->connect = since(&begin);
	if (!all_but_partners(l, word_for_all(l, "resume")))
		return false;
	l->resume = since(&begin);
	return true;
}
