// SPDX-License-Identifier: GPL-2.0
/*
 * A connection that is bound to a process. Each line of the client goes to the process
 * as it is, and one line comes back. What the process says is nobody's business here,
 * but that it is one line, and that it was asked.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "answer.h"
#include "note.h"
#include "session.h"
#include "shared.h"

enum {
	FIRST_ROOM = 4096,
	/* in which who has hung up is dumped, or back by itself */
	KEPT_MS = 600000,
};

struct relay {
	struct conn *client;
	const struct process *process;
	bool lent, held;
	int fd, pidfd;
	char *buf; /* an answer, or a part of it */
	size_t len, room;
};

enum outcome {
	DONE,
	CLIENT_ENDED,
	PROCESS_ENDED,
	TOO_LATE,
	TOO_LONG,
	TOO_MUCH, /* it says what it was not asked */
};

static const char *told(enum outcome o)
{
	switch (o) {
	case PROCESS_ENDED:
		return "it has ended, or does not listen any more";
	case TOO_LATE:
		return "somebody has it open, or it does not answer";
	case TOO_LONG:
		return "its answer is too long";
	case TOO_MUCH:
		return "it says what nobody has asked";
	default:
		return "";
	}
}

static bool has_room(const struct conn *c)
{
	return c->len < c->most;
}

static bool gone_by_itself(int fd)
{
	socklen_t bytes = sizeof(int);
	int err = 0;

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &bytes) ||
	       err != ETIMEDOUT;
}

/* What the client says meanwhile waits, so that its end is seen. */
static enum outcome look_at_client(struct conn *c, short events)
{
	enum conn_read got = CONN_MORE;

	if (events & (POLLRDHUP | POLLHUP | POLLERR)) {
		snprintf(c->reason, sizeof(c->reason), "%s",
			 gone_by_itself(c->fd)
				 ? "the peer has closed the connection"
				 : "the peer's host does not answer");
		return CLIENT_ENDED;
	}
	while (got == CONN_MORE)
		got = conn_read(c);
	/* no memory for more is an end, too */
	return got == CONN_END || (got == CONN_FULL && has_room(c))
		       ? CLIENT_ENDED
		       : DONE;
}

/*
 * Wait for @events of the process, or, if there are none, for the client; also for the
 * end of either. A process may end while a child of it has the socket still.
 */
static enum outcome wait_for(struct relay *r, short events, long long deadline)
{
	struct pollfd p[] = {
		{ .fd = r->client->fd, .events = POLLRDHUP },
		{ .fd = r->fd, .events = events ? events : POLLIN },
		{ .fd = r->pidfd, .events = POLLIN },
	};
	enum outcome o;
	long long left = -1;

	for (;;) {
		if (has_room(r->client))
			p[0].events |= POLLIN;
		else
			p[0].events &= ~POLLIN;
		if (deadline) {
			left = deadline - now_ms();
			if (left <= 0)
				return TOO_LATE;
		}
		if (poll(p, 3, (int)left) < 0)
			continue;
		if (p[0].revents) {
			o = look_at_client(r->client, p[0].revents);
			if (o != DONE)
				return o;
		}
		if (p[1].revents)
			return DONE;
		if (p[2].revents)
			return PROCESS_ENDED;
		if (p[0].revents && !events)
			return DONE;
	}
}

static enum outcome put(struct relay *r, const char *text, size_t bytes)
{
	enum outcome o;
	ssize_t n;

	while (bytes) {
		n = send(r->fd, text, bytes, MSG_NOSIGNAL);
		if (n >= 0) {
			text += n;
			bytes -= (size_t)n;
		} else if (errno == EAGAIN) {
			o = wait_for(r, POLLOUT, 0);
			if (o != DONE)
				return o;
		} else if (errno != EINTR) {
			return PROCESS_ENDED;
		}
	}
	return DONE;
}

/* an answer, of r->len bytes with its end */
static enum outcome hear(struct relay *r, long long deadline)
{
	enum outcome o;
	char *buf, *end;
	ssize_t n;

	r->len = 0;
	for (;;) {
		if (r->len == r->room) {
			if (r->room == ANSWER_BYTES)
				return TOO_LONG;
			buf = realloc(r->buf, r->room * 2);
			if (!buf)
				return TOO_LONG;
			r->buf = buf;
			r->room *= 2;
		}
		n = recv(r->fd, r->buf + r->len, r->room - r->len, 0);
		if (!n || (n < 0 && errno != EAGAIN && errno != EINTR))
			return PROCESS_ENDED;
		if (n < 0) {
			o = wait_for(r, POLLIN, deadline);
			if (o != DONE)
				return o;
			continue;
		}
		end = memchr(r->buf + r->len, '\n', (size_t)n);
		r->len += (size_t)n;
		if (end)
			return end == r->buf + r->len - 1 ? DONE : TOO_MUCH;
	}
}

/* nobody has asked anything */
static enum outcome idle(struct relay *r)
{
	enum outcome o = wait_for(r, 0, 0);
	char byte;
	ssize_t n;

	if (o != DONE)
		return o;
	n = recv(r->fd, &byte, 1, 0); /* also takes what is out of band away */
	if (n > 0)
		return TOO_MUCH;
	return n < 0 && (errno == EAGAIN || errno == EINTR) ? DONE
							    : PROCESS_ENDED;
}

/* An answer may have been long, and there are many connections. */
static void shrink(struct relay *r)
{
	char *buf = r->room > FIRST_ROOM ? realloc(r->buf, FIRST_ROOM) : NULL;

	if (!buf)
		return;
	r->buf = buf;
	r->room = FIRST_ROOM;
}

/* one line, with its end, and its answer */
static enum outcome pass(struct relay *r, const char *line, size_t bytes)
{
	static const char hold[] = "hold ";
	enum outcome o = put(r, line, bytes);

	r->held = !strncmp(line, hold, sizeof(hold) - 1);
	if (o == DONE)
		o = hear(r, 0);
	if (o == DONE &&
	    !conn_send(r->client, r->buf, r->len, now_ms() + SEND_MS))
		o = CLIENT_ENDED;
	shrink(r);
	if (o != DONE && o != CLIENT_ENDED)
		answer_refuse(r->client,
			      o == PROCESS_ENDED ? ECONNRESET : EPROTO,
			      "%s: %s", r->process->id, told(o));
	return o;
}

/* The buffer is used for what comes meanwhile. */
static enum outcome pass_copy(struct relay *r, const char *line, size_t bytes)
{
	char *copy = malloc(bytes + 1);
	enum outcome o = TOO_LONG;

	if (copy) {
		memcpy(copy, line, bytes);
		copy[bytes] = '\n';
		o = pass(r, copy, bytes + 1);
	}
	free(copy);
	return o;
}

static enum outcome talk(struct relay *r)
{
	struct conn *c = r->client;
	enum outcome o = DONE;
	size_t bytes;
	char *line;

	while (o == DONE) {
		switch (session_line(c, &line, &bytes)) {
		case CONN_MORE:
			o = pass_copy(r, line, bytes);
			break;
		case CONN_NOTHING:
			o = idle(r);
			break;
		default:
			o = CLIENT_ENDED;
		}
	}
	return o;
}

/*
 * An empty line is no word: a process that answers has no other connection, and knows
 * now that it has this one.
 */
static bool bind_to(struct relay *r, bool *goes_on)
{
	enum outcome o = put(r, "\n", 1);

	if (o == DONE)
		o = hear(r, now_ms() + OPEN_MS);
	*goes_on = o != CLIENT_ENDED;
	if (o == DONE)
		return true;
	if (*goes_on)
		*goes_on = answer_refuse(r->client,
					 o == TOO_LATE	      ? EBUSY
					 : o == PROCESS_ENDED ? ECONNRESET
							      : EPROTO,
					 "%s: %s", r->process->id, told(o));
	return false;
}

static int refusal(int err, const char **why)
{
	switch (err) {
	case EAGAIN: /* its queue is full of those who wait */
		*why = told(TOO_LATE);
		return EBUSY;
	case ECONNREFUSED:
	case ESRCH:
		*why = told(PROCESS_ENDED);
		return ESRCH;
	default:
		*why = strerror(err);
		return err;
	}
}

/*
 * Who is held hangs up after that word, to be dumped, which a connection would make fail:
 * nobody borrows it before it has been opened again.
 */
static void keep(const struct relay *r, bool kept)
{
	const struct shared_owner owner = { r->process->pid,
					    r->process->start };

	if (!r->lent)
		shared_keep(&owner, kept ? now_ms() + KEPT_MS : 0);
}

static bool serve(struct relay *r, bool *goes_on)
{
	enum outcome o;

	if (!bind_to(r, goes_on))
		return false;
	keep(r, false);
	note("%s is %s", r->process->id, r->lent ? "lent" : "open");
	o = answer_ok(r->client) ? talk(r) : CLIENT_ENDED;
	keep(r, o == PROCESS_ENDED && r->held);
	note("%s is closed: %s", r->process->id,
	     o == CLIENT_ENDED ? r->client->reason : told(o));
	return true;
}

bool relay_open(struct conn *c, const struct process *p, bool lent,
		bool *goes_on)
{
	struct relay r = {
		.client = c, .process = p, .lent = lent, .room = FIRST_ROOM
	};
	const struct shared_owner owner = { p->pid, p->start };
	bool bound = false;
	const char *why;
	int err;

	*goes_on = true;
	if (!shared_hold(&owner, lent)) {
		*goes_on =
			answer_refuse(c, EBUSY,
				      "%s: somebody has it open, or moves it",
				      p->id);
		return false;
	}
	r.buf = malloc(r.room);
	r.fd = r.buf ? process_dial(p, &r.pidfd) : -ENOMEM;
	if (r.fd < 0) {
		err = refusal(-r.fd, &why);
		*goes_on = answer_refuse(c, err, "%s: %s", p->id, why);
	} else {
		bound = serve(&r, goes_on);
		close(r.fd);
		close(r.pidfd);
	}
	free(r.buf);
	shared_let_go(p->pid);
	return bound;
}
