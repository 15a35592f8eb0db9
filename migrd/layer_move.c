// SPDX-License-Identifier: GPL-2.0
/*
 * What can be undone by the end of a connection comes first, of everybody. After that
 * there is only one way: new QPs at both ends, wherever the container is.
 */
#include "layer.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	HOLD_S = 120,	 /* of its own time, in which a mover has to arrive */
	BACK_MS = 10000, /* in which one answers that has not been anywhere */
	AGAIN_MS = 100,
	/* at one of two hosts, and for the answer to "open": a daemon asks a process for 5 s */
	LOOK_MS = 6000,
};

/* a word for only those that lead to somebody who is replaced, too */
static void tell_of_qps(struct layer_proc *p, const char *word, unsigned int ms)
{
	char line[LINE_BYTES];
	int n = snprintf(line, sizeof(line), "%s %u", word, ms);

	for (size_t i = 0; i < p->names.n_qps; i++)
		if (p->names.qps[i].to && n < (int)sizeof(line))
			n += snprintf(line + n, sizeof(line) - (size_t)n, " %u",
				      p->names.qps[i].qpn);
	/* without a number all would be meant */
	if (layer_replaced(p))
		layer_tell(p, "%s", line);
}

static void replace_qps(const struct layer *l, struct layer_proc *p)
{
	tell_of_qps(p, "replace", layer_limit(l, p));
}

/* What they had made ahead is not among it. */
static void note_late(struct layer *l)
{
	for (size_t i = l->movers; i < l->n; i++)
		l->late += json_integer_value(
			json_object_get(l->procs[i]->answer, "objects"));
}

bool layer_prepare(struct layer *l)
{
	for (size_t i = l->movers; i < l->n; i++)
		tell_of_qps(l->procs[i], "prepare",
			    layer_limit(l, l->procs[i]));
	layer_round(l);
	layer_begin_anew(l);
	/* who says what is none is found when all are suspended */
	layer_get_names(l);
	layer_prove_next(l);
	layer_begin_anew(l);
	*l->reason = 0;
	for (size_t i = 0; i < l->n; i++)
		if (!l->procs[i]->open)
			return layer_fail(l, "%s: process %s: %s",
					  l->procs[i]->host, l->procs[i]->id,
					  l->procs[i]->reason);
	return true;
}

static bool is_astray(const struct layer_proc *p)
{
	for (size_t i = 0; i < p->names.n_qps; i++) {
		const struct layer_qp *qp = &p->names.qps[i], *peer;

		if (!qp->led || !qp->to || qp->to->is_lost)
			continue;
		peer = layer_names_qp(&qp->to->names, qp->peer_qpn);
		if (!peer || peer->real != qp->led ||
		    memcmp(&peer->gid, &qp->led_gid, sizeof(peer->gid)))
			return true;
	}
	return false;
}

bool layer_led_astray(struct layer *l)
{
	bool any = false;

	for (size_t i = l->movers; i < l->n; i++) {
		struct layer_proc *p = l->procs[i];

		if (p->is_lost || !is_astray(p))
			continue;
		any = true;
		replace_qps(l, p);
		for (size_t j = 0; j < p->names.n_qps; j++)
			p->names.qps[j].led = 0;
	}
	if (any) {
		layer_round(l);
		note_late(l);
	}
	layer_go_on(l);
	return any;
}

/* Who has not answered may have done it, and only who has refused has not. */
static bool replace_partners(struct layer *l)
{
	bool good;

	for (size_t i = l->movers; i < l->n; i++)
		if (!l->procs[i]->is_replaced)
			replace_qps(l, l->procs[i]);
	good = layer_round(l);
	note_late(l);
	for (size_t i = l->movers; i < l->n; i++)
		l->procs[i]->is_replaced |=
			!l->procs[i]->failed || !l->procs[i]->open;
	return good;
}

/* Until its connection has ended it cannot be dumped. */
static bool wait_for_end(struct layer *l, struct layer_proc *p,
			 long long deadline)
{
	size_t bytes;
	bool ended =
		!client_hear(&p->conn, &bytes, deadline) && !p->conn.is_late;

	layer_close(p);
	return ended || layer_proc_fails(l, p, "hold: it does not let go");
}

static bool hold_movers(struct layer *l)
{
	long long deadline;
	bool good;

	for (size_t i = 0; i < l->movers; i++)
		layer_tell(l->procs[i], "hold %u %u",
			   layer_limit(l, l->procs[i]), HOLD_S);
	good = layer_round(l);
	deadline = now_ms() + PATIENCE_MS;
	for (size_t i = 0; i < l->movers; i++)
		if (!l->procs[i]->failed)
			good &= wait_for_end(l, l->procs[i], deadline);
	return good;
}

static void close_all(struct layer *l)
{
	for (size_t i = 0; i < l->n; i++)
		layer_close(l->procs[i]);
}

/* --- stop --- */

static bool is_left(const struct layer_proc *p)
{
	return p->is_mover || !p->is_replaced;
}

/* those whose connections have ended */
static void lose_silent(struct layer *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->procs[i]->failed && !l->procs[i]->open)
			layer_lose(l->procs[i]);
}

/*
 * A partner cannot be replaced, not even the second time. The container has let go of
 * nothing yet: what leads to that partner stays as it is, and all else gets peers anew. Of
 * one that has not answered nobody knows which queue pairs it has: what leads there is lost.
 */
static bool undo_replace(struct layer *l)
{
	double begin = layer_clock();

	lose_silent(l);
	layer_begin_anew(l);
	l->ahead = false;
	replace_partners(l);
	lose_silent(l);
	*l->reason = 0;
	for (size_t i = 0; i < l->n; i++) {
		struct layer_proc *p = l->procs[i];

		p->failed = false;
		for (size_t j = 0; j < p->names.n_qps; j++) {
			struct layer_qp *qp = &p->names.qps[j];

			if (qp->to && is_left(p) && is_left(qp->to))
				qp->to = NULL;
		}
	}
	for (size_t i = 0; i < l->movers; i++)
		if (!l->procs[i]->is_lost)
			replace_qps(l, l->procs[i]);
	layer_round(l);
	layer_go_on(l);
	return layer_connect(l, &begin);
}

bool layer_stop(struct layer *l)
{
	double begin = layer_clock();
	char reason[sizeof(l->reason)];
	bool replaced, named;

	for (size_t i = 0; i < l->n; i++)
		if (l->procs[i]->is_mover)
			layer_tell(l->procs[i], "suspend %u", l->budget);
		else
			tell_of_qps(l->procs[i], "suspend", l->budget);
	/* after this partners are replaced, and there is no way back to what was */
	if (!layer_round(l) || !layer_get_names(l) || !layer_match(l) ||
	    !layer_prove_datagrams_still(l) ||
	    !layer_word_for(l, 0, l->movers, "check") ||
	    !layer_target_lives(l)) {
		close_all(l);
		return false;
	}
	l->suspend = layer_since(&begin);
	replaced = replace_partners(l);
	named = replaced && (!l->ahead || l->told_ahead || layer_get_names(l));
	l->replace_partners = layer_since(&begin);
	if (named && hold_movers(l) && layer_target_lives(l)) {
		l->hold = layer_since(&begin);
		return true;
	}
	memcpy(reason, l->reason, sizeof(reason));
	*l->reason = 0;
	if (!(replaced ? layer_start(l, l->local, NULL, BACK_MS)
		       : undo_replace(l)))
		fprintf(stderr, "migr-layer: %s does not go on either: %s\n",
			l->container, l->reason);
	memcpy(l->reason, reason, sizeof(reason));
	return false;
}

/* --- start --- */

static bool is_any_open(const struct layer *l)
{
	for (size_t i = 0; i < l->movers; i++)
		if (l->procs[i]->open)
			return true;
	return false;
}

static const struct layer_found *find_inner(const struct layer_found *found,
					    size_t n, int inner)
{
	for (size_t i = 0; i < n; i++)
		if (found[i].inner == inner)
			return &found[i];
	return NULL;
}

static bool connect_to(struct layer *l, struct layer_proc *p, const char *host,
		       const char *id, long long deadline, char *reason,
		       size_t bytes)
{
	snprintf(p->host, sizeof(p->host), "%s", host);
	strcpy(p->id, id);
	/* the daemon may be another one since: the next time it is a new connection */
	p->open = layer_take_spare(l, host, &p->conn) ||
		  client_open(&p->conn, l->ctx, host, l->port, host, deadline,
			      reason, bytes);
	return p->open;
}

/* At the same time: who does not answer takes no time from others. */
static bool bind_all(struct layer *some, char *reason, size_t bytes)
{
	bool good;

	for (size_t i = 0; i < some->n; i++)
		layer_tell(some->procs[i], "open %s", some->procs[i]->id);
	good = layer_round(some);
	for (size_t i = 0; i < some->n; i++) {
		struct layer_proc *p = some->procs[i];

		if (!p->failed)
			continue;
		snprintf(reason, bytes, "%s", p->reason);
		p->failed = false;
		layer_close(p);
	}
	return good;
}

/*
 * The container's processes, whose connections have ended, or which are elsewhere now.
 * All of a container are restored before any of them runs: of whom there is nothing
 * when another one has answered has ended.
 */
static bool try_open(struct layer *l, const char *host, long long deadline,
		     char *reason, size_t bytes)
{
	struct layer some = { .hurry = LOOK_MS };
	struct layer_found found[MOST_PROCS];
	const struct layer_found *f;
	bool runs = is_any_open(l), all = true;
	size_t n;

	if (!layer_processes(l, host, deadline, found, &n, reason, bytes))
		return false;
	for (size_t i = 0; i < l->movers; i++) {
		struct layer_proc *p = l->procs[i];

		if (p->open || p->failed)
			continue;
		f = find_inner(found, n, p->inner);
		if (f &&
		    connect_to(l, p, host, f->id, deadline, reason, bytes)) {
			some.procs[some.n++] = p;
		} else if (f) {
			all = false;
		} else if (runs) {
			layer_proc_fails(l, p, "it has ended");
		} else {
			snprintf(reason, bytes, "there is no process %d of %s",
				 p->inner, l->container);
			all = false;
		}
	}
	return bind_all(&some, reason, bytes) && all;
}

static bool open_movers(struct layer *l, const char *host, const char *other,
			long long patience)
{
	long long deadline = now_ms() + patience, until;
	bool all = true;
	char reason[512];
	const char *here;

	for (size_t i = 0; i < l->movers; i++)
		all &= l->procs[i]->open;
	while (!all) {
		until = other ? now_ms() + LOOK_MS : deadline;
		if (until > deadline)
			until = deadline;
		all = try_open(l, host, until, reason, sizeof(reason));
		if (all || now_ms() >= deadline)
			break;
		usleep(AGAIN_MS * 1000);
		if (other && !is_any_open(l)) {
			here = host;
			host = other;
			other = here;
		}
	}
	for (size_t i = 0; i < l->movers; i++)
		if (!l->procs[i]->open)
			layer_proc_fails(l, l->procs[i], "%s", reason);
	return !l->movers || is_any_open(l);
}

bool layer_start(struct layer *l, const char *host, const char *other,
		 long long patience_ms)
{
	double begin = layer_clock();

	layer_begin_anew(l);
	if (!open_movers(l, host, other, patience_ms))
		return false;
	layer_go_on(l);
	layer_replace_movers(l);
	return layer_connect(l, &begin);
}
