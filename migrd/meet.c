// SPDX-License-Identifier: GPL-2.0
#include "meet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "layer.h"
#include "note.h"
#include "proc.h"
#include "rdma.h"
#include "shared.h"
#include "words.h"

enum {
	SAY_MS = 5000, /* in which it has said what it has to */
	PEER_MS =
		5000, /* in which its peer is found, and has heard that: each */
	LENT_MS = OPEN_MS + 3000, /* in which a daemon says that it is open */
	FIRST_ROOM = 4096,
	IN_A_LINE =
		1000, /* keys; the library takes no more than some thousand */
};

/* what it has said */
struct meeting {
	int fd;
	char *text;
	uint32_t qpn, peer, turn;
	struct in6_addr gid, peer_gid;
	struct layer_key *keys;
	size_t n;
	char reason[512]; /* why not */
};

static bool fail(struct meeting *m, const char *reason)
{
	snprintf(m->reason, sizeof(m->reason), "%s", reason);
	return false;
}

/* --- what it says --- */

static bool is_whole(const char *text, size_t bytes)
{
	static const char end[] = "\nend\n";
	const size_t n = sizeof(end) - 1;

	return bytes >= n && !memcmp(text + bytes - n, end, n);
}

/* all of it, with a 0 behind */
static bool hear(struct meeting *m)
{
	struct pollfd p = { .fd = m->fd, .events = POLLIN };
	long long until = now_ms() + SAY_MS, left;
	size_t room = FIRST_ROOM, n = 0;
	ssize_t got;
	char *text;

	while (n == 0 || !is_whole(m->text, n)) {
		if (!m->text || n == room - 1) {
			room *= 2;
			text = room <= ANSWER_BYTES ? realloc(m->text, room)
						    : NULL;
			if (!text)
				return fail(m, "that is too much");
			m->text = text;
		}
		left = until - now_ms();
		if (left <= 0 || poll(&p, 1, (int)left) < 0)
			return fail(m, "that takes too long");
		got = recv(m->fd, m->text + n, room - 1 - n, MSG_DONTWAIT);
		if (!got || (got < 0 && errno != EAGAIN && errno != EINTR))
			return fail(m, "it has gone away");
		if (got > 0)
			n += (size_t)got;
	}
	m->text[n] = 0;
	return strlen(m->text) == n || fail(m, "a 0 is no text");
}

/* the next word of a line; "" if there is none */
static const char *word_of(char **line)
{
	const char *word = strsep(line, " ");

	return word ? word : "";
}

static bool parse_meet(struct meeting *m, char *line)
{
	return !strcmp(word_of(&line), "meet") &&
	       word_number(word_of(&line), QPNS, &m->qpn) &&
	       inet_pton(AF_INET6, word_of(&line), &m->gid) == 1 &&
	       word_number(word_of(&line), QPNS, &m->peer) &&
	       inet_pton(AF_INET6, word_of(&line), &m->peer_gid) == 1 &&
	       word_number(word_of(&line), UINT32_MAX, &m->turn) && !line;
}

static bool parse_key(char *line, struct layer_key *key)
{
	const uint64_t keys = (uint64_t)UINT32_MAX + 1;

	return !strcmp(word_of(&line), "key") &&
	       word_number(word_of(&line), keys, &key->virtual) &&
	       word_number(word_of(&line), keys, &key->real) && !line;
}

static bool parse(struct meeting *m)
{
	char *rest = m->text, *line = strsep(&rest, "\n");
	size_t lines = 0;

	if (!parse_meet(m, line))
		return fail(m, "nobody knows whom it means");
	for (const char *c = rest; (c = strchr(c, '\n')); c++)
		lines++;
	m->keys = calloc(lines, sizeof(*m->keys));
	if (!m->keys)
		return fail(m, "no memory for its keys");
	while (strcmp(line = strsep(&rest, "\n"), "end"))
		if (!parse_key(line, &m->keys[m->n++]))
			return fail(m, "its keys are none");
	return !*rest || fail(m, "it says more than that");
}

/* --- and is told --- */

/* 0, or an errno and a reason; EBUSY at its end, too, as somebody else may have it */
static int ask(struct meeting *m, struct layer_proc *p, const char *line,
	       long long deadline)
{
	int err;
	json_t *answer = layer_ask_err(&p->conn, line, deadline, &err,
				       m->reason, sizeof(m->reason));

	if (!answer)
		return err ? err : *p->conn.reason ? EBUSY : EPROTO;
	json_decref(answer);
	return 0;
}

static int tell_keys(struct meeting *m, struct layer_proc *p, const char *id,
		     long long deadline)
{
	char line[LINE_BYTES];
	size_t at = 0, end, bytes;
	int err = 0;

	while (!err && at < m->n) {
		bytes = (size_t)sprintf(line, "key %s", id);
		end = m->n - at < IN_A_LINE ? m->n : at + IN_A_LINE;
		for (; at < end; at++)
			bytes += (size_t)sprintf(line + bytes, " %u %u",
						 m->keys[at].virtual,
						 m->keys[at].real);
		err = ask(m, p, line, deadline);
	}
	return err;
}

/* Who has gone away may say something else now, from another host. */
static bool is_there(struct meeting *m)
{
	struct pollfd p = { .fd = m->fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) <= 0 || fail(m, "it has gone away");
}

/*
 * Who has been told of another of its queue pairs knows the keys: a QP leads there already,
 * and then they are told no more.
 */
static int tell(struct meeting *m, struct layer_proc *p, const char *id,
		long long deadline)
{
	char line[256], gid[INET6_ADDRSTRLEN];
	int err;

	snprintf(line, sizeof(line), "keys %s", id);
	err = ask(m, p, line, deadline);
	if (!err)
		err = tell_keys(m, p, id, deadline);
	else if (err == EBUSY && !*p->conn.reason)
		err = 0;
	if (err)
		return err;
	inet_ntop(AF_INET6, &m->gid, gid, sizeof(gid));
	snprintf(line, sizeof(line), "met %u %u %s %s", m->peer, m->qpn, gid,
		 id);
	return is_there(m) ? ask(m, p, line, deadline) : ECONNRESET;
}

/* 0, EBUSY, or another errno; with a reason */
static int meet(struct meeting *m, struct layer *l, const char *id)
{
	const struct layer_qp qp = { .at_qpn = m->peer, .at_gid = m->peer_gid };
	struct layer_proc p = { .by_gid = true, .is_lent = true };
	int err = EBUSY;

	if (!layer_ask_whose(l, &qp, p.host, p.id, m->reason,
			     sizeof(m->reason)))
		return ESRCH;
	if (!is_there(m))
		return ECONNRESET;
	if (layer_open(l, &p, now_ms() + LENT_MS, m->reason, sizeof(m->reason)))
		err = tell(m, &p, id, now_ms() + PEER_MS);
	else if (!l->is_busy)
		err = ECONNREFUSED;
	layer_close(&p);
	return err;
}

/*
 * What it says of its queue pair is what the kernel says, and who it is, too: the one that
 * was there before it was asked.
 */
static int meet_for(struct meeting *m, const struct session *s,
		    const struct process *p)
{
	struct layer l = { .ctx = s->client,
			   .port = s->port,
			   .hurry = PEER_MS };
	char id[ID_BYTES];
	int err;

	err = rdma_owns(p->pid, &m->qpn, 1, &m->gid, m->reason,
			sizeof(m->reason));
	if (!err && proc_start(p->pid) != p->start) {
		fail(m, "it has ended");
		err = ESRCH;
	}
	if (err)
		return err;
	/* its keys are others from turn to turn */
	snprintf(id, sizeof(id), "@%.*s:%d:%llu:%u", (int)strcspn(p->id, ":"),
		 p->id, p->pid, p->start, m->turn);
	err = meet(m, &l, id);
	layer_hosts_end(&l);
	return err;
}

static void answer(const struct meeting *m, int err)
{
	char line[sizeof(m->reason) + 16];
	int n;

	if (err && err != EBUSY)
		n = snprintf(line, sizeof(line), "failed %s\n", m->reason);
	else
		n = snprintf(line, sizeof(line), err ? "busy\n" : "met\n");
	send(m->fd, line, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void meet_run(const struct session *s, int fd)
{
	struct meeting m = { .fd = fd };
	struct processes p = { 0 };
	int err = EINVAL;

	if (!process_caller(fd, s->patterns, &p))
		fail(&m, "it is not under the layer");
	else if (!shared_enter(p.all->container))
		err = EBUSY;
	else if (hear(&m) && parse(&m))
		err = meet_for(&m, s, p.all);
	note_clean(m.reason);
	if (p.n) /* who is answered may call again at once */
		shared_leave(p.all->container);
	answer(&m, err);
	if (err)
		note("%s: QP %u meets nobody: %s", p.n ? p.all->id : "a caller",
		     m.qpn, m.reason);
	processes_free(&p);
	free(m.keys);
	free(m.text);
	close(fd);
}
