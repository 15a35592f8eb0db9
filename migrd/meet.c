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
	TEXT_BYTES = 4096,	  /* of which a line is a small part */
	FIRST_KEYS = 256,
	/* the library takes no more of a peer; with all places taken, 64 MiB */
	MOST_KEYS = 65 * 4096,
	IN_A_LINE =
		1000, /* keys; the library takes no more than some thousand */
};

/* what it has said */
struct meeting {
	int fd;
	uint32_t qpn, peer, turn;
	struct in6_addr gid, peer_gid;
	struct layer_key *keys;
	size_t n, room;
	bool is_clear; /* whom it means */
	bool is_whole;
	char reason[512]; /* why not */
};

static bool fail(struct meeting *m, const char *reason)
{
	snprintf(m->reason, sizeof(m->reason), "%s", reason);
	return false;
}

/* --- what it says --- */

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

static bool has_room(struct meeting *m)
{
	size_t room = m->room ? m->room * 2 : FIRST_KEYS;
	struct layer_key *keys;

	if (m->n < m->room)
		return true;
	if (m->n == MOST_KEYS)
		return fail(m, "it has more keys than a peer takes");
	if (room > MOST_KEYS)
		room = MOST_KEYS;
	keys = realloc(m->keys, room * sizeof(*keys));
	if (!keys)
		return fail(m, "no memory for its keys");
	m->keys = keys;
	m->room = room;
	return true;
}

/* @line: of so many bytes */
static bool obey(struct meeting *m, char *line, size_t bytes)
{
	if (strlen(line) != bytes)
		return fail(m, "a 0 is no text");
	if (!m->is_clear) {
		m->is_clear = parse_meet(m, line);
		return m->is_clear || fail(m, "nobody knows whom it means");
	}
	m->is_whole = !strcmp(line, "end");
	if (m->is_whole)
		return true;
	if (!has_room(m))
		return false;
	return parse_key(line, &m->keys[m->n++]) ||
	       fail(m, "its keys are none");
}

/* Return: how many bytes of a text were lines; less than 0: one of them was none */
static ssize_t obey_lines(struct meeting *m, char *text, size_t bytes)
{
	char *line = text, *end;

	while (!m->is_whole &&
	       (end = memchr(line, '\n', bytes - (size_t)(line - text)))) {
		*end = 0;
		if (!obey(m, line, (size_t)(end - line)))
			return -1;
		line = end + 1;
	}
	return line - text;
}

/* a part of it, or that it takes too long; less than 0: there is no more */
static ssize_t hear_some(struct meeting *m, char *to, size_t room,
			 long long until)
{
	struct pollfd p = { .fd = m->fd, .events = POLLIN };
	long long left = until - now_ms();
	ssize_t got;

	if (left <= 0 || poll(&p, 1, (int)left) < 0) {
		fail(m, "that takes too long");
		return -1;
	}
	got = recv(m->fd, to, room, MSG_DONTWAIT);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (got > 0)
		return got;
	fail(m, "it has gone away");
	return -1;
}

static bool hear(struct meeting *m)
{
	long long until = now_ms() + SAY_MS;
	char text[TEXT_BYTES];
	ssize_t got, used;
	size_t n = 0;

	while (!m->is_whole) {
		if (n == sizeof(text))
			return fail(m, "that is no line");
		got = hear_some(m, text + n, sizeof(text) - n, until);
		if (got < 0)
			return false;
		n += (size_t)got;
		used = obey_lines(m, text, n);
		if (used < 0)
			return false;
		n -= (size_t)used;
		memmove(text, text + used, n);
	}
	return !n || fail(m, "it says more than that");
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

static void say(const struct meeting *m, const char *line)
{
	send(m->fd, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void answer(const struct meeting *m, int err)
{
	char line[sizeof(m->reason) + 16];

	snprintf(line, sizeof(line), "failed %s\n", m->reason);
	say(m, !err ? "met\n" : err == EBUSY ? "busy\n" : line);
}

/* Who is not under the layer, or says what is none, is only told so. */
static void note_failed(const struct meeting *m, const char *id)
{
	char gid[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, &m->peer_gid, gid, sizeof(gid));
	note("%s: QP %u does not meet QP %u at %s: %s", id, m->qpn, m->peer,
	     gid, m->reason);
}

void meet_run(const struct session *s, int fd)
{
	struct meeting m = { .fd = fd };
	struct processes p = { 0 };
	bool is_heard = false;
	int err = EINVAL;

	if (!process_caller(fd, s->patterns, &p)) {
		fail(&m, "it is not under the layer");
	} else if (!shared_enter(p.all->container)) {
		err = EBUSY;
	} else {
		say(&m, "wait\n");
		is_heard = hear(&m);
	}
	if (is_heard)
		err = meet_for(&m, s, p.all);
	note_clean(m.reason);
	if (p.n) /* who is answered may call again at once */
		shared_leave(p.all->container);
	answer(&m, err);
	if (is_heard && err && err != EBUSY)
		note_failed(&m, p.all->id);
	processes_free(&p);
	free(m.keys);
	close(fd);
}
