// SPDX-License-Identifier: GPL-2.0
/*
 * Pre-setup: what processes need on the host that they move to can be made there while
 * they still run here, by programs that are told what that is.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer.h"
#include "note.h"

/* Its length first, as the shell reads a line of which it does not know that byte by byte. */
static bool tell_list(FILE *f, const char *word, const json_t *list)
{
	char *text = json_dumps(list, JSON_COMPACT | JSON_ENSURE_ASCII);

	if (text)
		fprintf(f, "%s %zu\n%s\n", word, strlen(text), text);
	free(text);
	return text;
}

/* Who refuses is left out. Return: false if there is no memory */
static bool add_record(json_t *records, struct layer_proc *p)
{
	if (p->answer)
		return !json_array_append_new(records,
					      json_pack("{s:i, s:O}", "pid",
							p->inner, "record",
							p->answer));
	fprintf(stderr, "migr-layer: %s: process %s: no pre-setup: %s\n",
		p->host, p->id, p->reason);
	p->failed = false;
	return true;
}

bool layer_record(struct layer *l, FILE *f)
{
	json_t *records = json_array();
	bool good = records;

	for (size_t i = 0; i < l->movers; i++)
		layer_tell(l->procs[i], "record");
	layer_round(l);
	for (size_t i = 0; i < l->movers; i++) {
		/* its next answer would be taken for that to something else */
		if (!l->procs[i]->open) {
			json_decref(records);
			return false;
		}
		good = good && add_record(records, l->procs[i]);
	}
	*l->reason = 0;
	good = good && tell_list(f, "records", records);
	json_decref(records);
	l->ahead = good;
	return good || layer_fail(l, "no memory for records");
}

/*
 * NULL if one of them is not known yet, as its process moves, too. Before that one is
 * suspended it is the next one that is meant; 0 if there is none.
 */
static json_t *peers_of(const struct layer_proc *p, bool suspended)
{
	json_t *peers = json_array();
	char gid[INET6_ADDRSTRLEN];

	for (size_t i = 0; peers && i < p->names.n_qps; i++) {
		const struct layer_qp *qp = &p->names.qps[i], *peer;

		if (!qp->to)
			continue;
		peer = layer_names_qp(&qp->to->names, qp->peer_qpn);
		if (!peer || qp->to->is_mover) {
			json_decref(peers);
			return NULL;
		}
		inet_ntop(AF_INET6, &peer->gid, gid, sizeof(gid));
		json_array_append_new(
			peers, json_pack("[I, I, s]", (json_int_t)qp->qpn,
					 (json_int_t)(suspended ? peer->real
								: peer->next),
					 gid));
	}
	return peers;
}

/* Has everybody made what is to come? */
static bool all_have_next(const struct layer *l)
{
	for (size_t i = l->movers; i < l->n; i++)
		for (size_t j = 0; j < l->procs[i]->names.n_qps; j++)
			if (l->procs[i]->names.qps[j].to &&
			    !l->procs[i]->names.qps[j].next)
				return false;
	return true;
}

void layer_tell_ahead(struct layer *l, bool suspended, FILE *f)
{
	json_t *all = json_array(), *peers;
	bool good = all && !l->told_ahead && (suspended || all_have_next(l));

	for (size_t i = 0; good && i < l->movers; i++) {
		peers = peers_of(l->procs[i], suspended);
		if (peers)
			good = !json_array_append_new(
				all,
				json_pack("{s:i, s:o}", "pid",
					  l->procs[i]->inner, "peers", peers));
	}
	l->told_ahead |= good && tell_list(f, "peers", all);
	json_decref(all);
}

/* --- what they have connected --- */

static struct layer_proc *mover(struct layer *l, json_int_t inner)
{
	for (size_t i = 0; i < l->movers; i++)
		if (l->procs[i]->inner == inner)
			return l->procs[i];
	return NULL;
}

static bool note_made(struct layer_proc *p, json_t *made)
{
	json_int_t qpn, real;
	struct layer_qp *qp;
	const char *gid;
	json_t *json;
	size_t i;

	json_array_foreach (made, i, json) {
		if (json_unpack(json, "[I, I, s !]", &qpn, &real, &gid) ||
		    qpn < 0 || qpn >= QPNS || real <= 0 || real >= QPNS)
			return false;
		qp = layer_names_qp(&p->names, (uint32_t)qpn);
		if (!qp || inet_pton(AF_INET6, gid, &qp->next_gid) != 1)
			return false;
		qp->next = (uint32_t)real;
	}
	return true;
}

static bool note_all_made(struct layer *l, json_t *list)
{
	struct layer_proc *p;
	json_t *json, *made;
	json_int_t inner;
	size_t i;

	if (!json_is_array(list))
		return false;
	json_array_foreach (list, i, json) {
		if (json_unpack(json, "{s:I, s:o !}", "pid", &inner, "made",
				&made))
			return false;
		p = mover(l, inner);
		if (!p || !note_made(p, made))
			return false;
	}
	return true;
}

/* Return: a line of so many bytes; NULL if it is not one */
static char *read_line(const char *bytes, FILE *f)
{
	char *end, *line = NULL;
	unsigned long n;

	errno = 0;
	n = strtoul(bytes, &end, 10);
	if (errno || *end || end == bytes || !n || n > MOST_SAID)
		return NULL;
	line = malloc(n + 2);
	if (line && fread(line, 1, n + 1, f) == n + 1 && line[n] == '\n') {
		line[n] = 0;
		return line;
	}
	free(line);
	return NULL;
}

bool layer_lead(struct layer *l, const char *bytes, FILE *f)
{
	char *line = read_line(bytes, f);
	json_error_t error;
	json_t *list = line ? json_loads(line, 0, &error) : NULL;
	bool good = note_all_made(l, list);

	free(line);
	json_decref(list);
	if (!good)
		return layer_fail(l, "that is no list of what was made");
	for (size_t i = l->movers; i < l->n; i++)
		layer_tell_peers(l, l->procs[i], true);
	layer_round(l);
	for (size_t i = l->movers; i < l->n; i++)
		if (l->procs[i]->failed)
			fprintf(stderr,
				"migr-layer: %s: process %s: not all is connected ahead: %s\n",
				l->procs[i]->host, l->procs[i]->id,
				l->procs[i]->reason);
	layer_begin_anew(l);
	*l->reason = 0;
	return true;
}

void layer_note_presetup(struct layer *l)
{
	for (size_t i = 0; i < l->movers; i++) {
		const struct layer_proc *p = l->procs[i];
		const char *said = json_string_value(
			json_object_get(p->answer, "presetup"));
		char why[256];

		l->taped +=
			json_integer_value(json_object_get(p->answer, "taped"));
		if (!said || !*said)
			continue;
		snprintf(why, sizeof(why), "%s", said);
		note_clean(why);
		fprintf(stderr,
			"migr-layer: %s: process %s: its pre-setup was of no use: %s\n",
			p->host, p->id, why);
	}
}
