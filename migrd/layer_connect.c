// SPDX-License-Identifier: GPL-2.0
/*
 * New QPs are told of each other, wherever the container is, and all go on; who does not do
 * what he is told is left out.
 */
#include "layer.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

enum {
	IN_A_LINE = 1000, /* QPs, or keys: a process takes 8192 words */
};

/* of which the process' time is measured from @begin to now */
double layer_since(double *begin)
{
	double now = layer_clock(), ms = now - *begin;

	*begin = now;
	return ms;
}

void layer_begin_anew(struct layer *l)
{
	for (size_t i = 0; i < l->n; i++) {
		l->procs[i]->failed = false;
		layer_unsay(l->procs[i]);
	}
}

void layer_lose(struct layer_proc *p)
{
	fprintf(stderr,
		"migr-layer: %s: process %s: %s: its connections are lost\n",
		p->host, p->id, p->reason);
	p->failed = false;
	p->is_lost = true;
	layer_close(p);
}

/* Who has failed does not keep the others from going on. */
void layer_go_on(struct layer *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->procs[i]->failed)
			layer_lose(l->procs[i]);
	*l->reason = 0;
}

static bool has_told(const struct layer_proc *p, const struct layer_proc *other)
{
	for (size_t i = 0; i < p->names.n_qps; i++)
		if (p->names.qps[i].to == other)
			return true;
	return false;
}

static void tell_keys(struct layer *l, struct layer_proc *p,
		      struct layer_proc *to)
{
	char line[LINE_BYTES];
	size_t i = 0;

	if (!to->is_lost && !layer_names_few_keys(l, to))
		return;
	layer_tell(p, "keys %s", to->id);
	while (i < to->names.n_keys) {
		size_t end = i + IN_A_LINE;
		size_t n = (size_t)sprintf(line, "key %s", to->id);

		for (; i < end && i < to->names.n_keys; i++)
			n += (size_t)sprintf(line + n, " %u %u",
					     to->names.keys[i].virtual,
					     to->names.keys[i].real);
		layer_tell(p, "%s", line);
	}
}

/*
 * Where its peer is now: one that stays has the GID that it had. Of whom that is not so
 * nothing is believed any more, and nobody else is held up by him.
 *
 * Return: its real number; 0: it is gone
 */
static uint32_t find_peer(struct layer *l, const struct layer_proc *p,
			  const struct layer_qp *qp, struct in6_addr *gid)
{
	const struct layer_qp *peer =
		layer_names_qp(&qp->to->names, qp->peer_qpn);

	*gid = qp->to_gid;
	if (!qp->to->is_lost && peer && peer->to == p &&
	    (qp->to->is_mover ||
	     !memcmp(&peer->gid, &qp->to_gid, sizeof(peer->gid)))) {
		*gid = peer->gid;
		return peer->real;
	}
	if (!qp->to->is_lost)
		layer_proc_fails(l, qp->to, "QP %u is gone, or elsewhere",
				 qp->peer_qpn);
	return 0;
}

/* the one that a shadow process has, which is to be a mover's; 0 if there is none */
static uint32_t find_next(const struct layer_qp *qp, struct in6_addr *gid)
{
	const struct layer_qp *peer =
		qp->to->is_mover && qp->next
			? layer_names_qp(&qp->to->names, qp->peer_qpn)
			: NULL;

	if (!peer || !peer->next)
		return 0;
	*gid = peer->next_gid;
	return peer->next;
}

/* a line for those that follow each other and lead to the same process, at the same GID */
struct told {
	char line[LINE_BYTES];
	size_t bytes;
	unsigned int n;
	const struct layer_proc *to;
	struct in6_addr gid;
};

static void tell_line(struct layer_proc *p, struct told *t)
{
	if (t->bytes)
		layer_tell(p, "%s", t->line);
	t->bytes = t->n = 0;
}

static void tell_peer(struct layer_proc *p, const char *word,
		      const struct layer_qp *qp, uint32_t qpn,
		      const struct in6_addr *at, struct told *t)
{
	char text[INET6_ADDRSTRLEN];
	struct in6_addr gid = *at;

	if (t->to != qp->to || memcmp(&t->gid, &gid, sizeof(gid)) ||
	    t->n == IN_A_LINE)
		tell_line(p, t);
	t->n++;
	if (t->bytes) {
		t->bytes += (size_t)sprintf(t->line + t->bytes, " %u %u",
					    qp->qpn, qpn);
		return;
	}
	inet_ntop(AF_INET6, &gid, text, sizeof(text));
	t->bytes = (size_t)sprintf(t->line, "%s %u %u %s %s", word, qp->qpn,
				   qpn, text, qp->to->id);
	t->to = qp->to;
	t->gid = gid;
}

void layer_tell_peers(struct layer *l, struct layer_proc *p, bool ahead)
{
	struct told t = { .bytes = 0 };
	struct in6_addr gid;
	uint32_t qpn;

	for (size_t i = 0; i < p->names.n_qps; i++) {
		struct layer_qp *qp = &p->names.qps[i];

		if (!qp->to)
			continue;
		qpn = ahead ? find_next(qp, &gid) : find_peer(l, p, qp, &gid);
		if (ahead && !qpn)
			continue;
		if (ahead) {
			qp->led = qpn;
			qp->led_gid = gid;
		}
		tell_peer(p, ahead ? "lead" : "peer", qp, qpn, &gid, &t);
	}
	tell_line(p, &t);
}

static size_t lost_ones(const struct layer *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		n += l->procs[i]->is_lost;
	return n;
}

static void tell_that_lost(struct layer *l, size_t i)
{
	struct told t = { .bytes = 0 };

	for (; i < l->n; i++) {
		struct layer_proc *p = l->procs[i];

		for (size_t j = 0; !p->is_lost && j < p->names.n_qps; j++) {
			const struct layer_qp *qp = &p->names.qps[j];

			if (qp->to && qp->to->is_lost)
				tell_peer(p, "peer", qp, 0, &qp->to_gid, &t);
		}
		tell_line(p, &t);
	}
	layer_round(l);
	layer_go_on(l);
}

/*
 * Some may have been lost since there were @lost, of whom others were told that they are
 * there: those from @i on, which are not connected yet, are not to be connected to them. Nor
 * to who is lost when he hears of that.
 */
static void tell_of_lost(struct layer *l, size_t i, size_t lost)
{
	while (lost_ones(l) != lost) {
		lost = lost_ones(l);
		tell_that_lost(l, i);
	}
}

/* what they need to know of those that they lead to */
static void exchange(struct layer *l)
{
	size_t lost = lost_ones(l);

	for (size_t i = 0; i < l->n; i++) {
		struct layer_proc *p = l->procs[i];

		if (p->is_lost)
			continue;
		for (size_t j = 0; j < l->n; j++)
			if (has_told(p, l->procs[j]))
				tell_keys(l, p, l->procs[j]);
		layer_tell_peers(l, p, false);
	}
	layer_round(l);
	layer_go_on(l);
	tell_of_lost(l, 0, lost);
}

/* those from @i to before @end */
bool layer_word_for(struct layer *l, size_t i, size_t end, const char *word)
{
	for (; i < end; i++)
		if (!l->procs[i]->is_lost)
			layer_tell(l->procs[i], "%s", word);
	return layer_round(l);
}

static bool connect_all_movers(struct layer *l)
{
	bool good = layer_word_for(l, 0, l->movers, "connect");

	layer_note_presetup(l);
	return good;
}

void layer_replace_movers(struct layer *l)
{
	for (size_t i = 0; i < l->movers; i++)
		if (!l->procs[i]->is_lost)
			layer_tell(l->procs[i], "replace %u",
				   layer_limit(l, l->procs[i]));
	layer_round(l);
	layer_note_presetup(l);
	layer_go_on(l);
}

/* what they are connected to from now on; nobody is led to QPs of somebody else */
static void get_real_names(struct layer *l)
{
	layer_get_names(l);
	layer_go_on(l);
	if (layer_led_astray(l)) {
		layer_get_names(l);
		layer_go_on(l);
	}
	layer_check_owners(l, true);
	layer_go_on(l);
}

/*
 * Shadow processes have connected them in another way: all begin anew, and nothing is
 * left of what was made before. Partners are not connected yet.
 */
static void connect_movers_anew(struct layer *l)
{
	fprintf(stderr, "migr-layer: %s: once more, without pre-setup\n",
		l->reason);
	layer_begin_anew(l);
	l->ahead = false;
	l->taped = 0;
	layer_replace_movers(l);
	get_real_names(l);
	exchange(l);
	connect_all_movers(l);
}

/* false, and the first of them is the reason, if processes of the container are lost */
bool layer_connect(struct layer *l, double *begin)
{
	bool good = true;
	size_t lost;

	get_real_names(l);
	l->restore = layer_since(begin);
	exchange(l);
	l->exchange = layer_since(begin);
	lost = lost_ones(l);
	if (!connect_all_movers(l) && l->ahead)
		connect_movers_anew(l);
	layer_go_on(l);
	layer_tell_datagrams(l);
	layer_go_on(l);
	tell_of_lost(l, l->movers, lost);
	layer_word_for(l, l->movers, l->n, "connect");
	layer_go_on(l);
	l->connect = layer_since(begin);
	layer_word_for(l, 0, l->n, "resume");
	layer_go_on(l);
	l->resume = layer_since(begin);
	for (size_t i = 0; i < l->movers; i++)
		if (l->procs[i]->is_lost)
			good = layer_fail(l, "%s: process %s: %s",
					  l->procs[i]->host, l->procs[i]->id,
					  l->procs[i]->reason);
	return good;
}
