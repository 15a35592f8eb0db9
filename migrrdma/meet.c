// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "meet.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "cancel.h"
#include "clock.h"
#include "gate.h"
#include "names.h"
#include "swap.h"
#include "tell.h"

#define PATIENCE 20000000000UL /* ns: as long as a peer may be suspended */
#define HURRY 1000000000UL     /* if others wait for us */
#define RESTART 5000000000UL   /* in which a daemon is there again */

enum {
	FULL_MS = 5,	/* after which it is tried again to call */
	AGAIN_MS = 200, /* after which who is busy is told again */
	LOOK_MS =
		1000, /* after which it is looked whether it is still that file */
	ANSWER_BYTES = 1024,
};

/* a connection to the daemon */
struct call {
	int fd;
	struct stat
		file; /* the program may close it, and have another one there */
	uint64_t begun, patience;
	uint64_t most;		   /* patience, if it says a word */
	bool heard;		   /* one */
	char answer[ANSWER_BYTES]; /* without its end */
	LIST_ENTRY(call) entry;
};

/* that are open; and whoever waits until there are none */
static LIST_HEAD(, call) calls;
static pthread_mutex_t calls_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t no_calls = PTHREAD_COND_INITIALIZER;

/* Who is held says nothing, nor who has been replaced since: it is not true any more. */
static bool is_void(const struct meeting *m)
{
	return layer_is_held() || names_turn() != m->turn;
}

static bool is_ours(const struct call *c)
{
	struct stat now;

	return !fstat(c->fd, &now) && now.st_dev == c->file.st_dev &&
	       now.st_ino == c->file.st_ino;
}

static int open_socket(struct call *c)
{
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return c->fd < 0 || fstat(c->fd, &c->file) ? errno : 0;
}

/* Return: 0; EINTR, if what is to be said is void; or why there is none */
static int enlist(struct call *c, const struct meeting *m)
{
	int err;

	pthread_mutex_lock(&calls_lock);
	err = is_void(m) ? EINTR : open_socket(c);
	if (!err)
		LIST_INSERT_HEAD(&calls, c, entry);
	pthread_mutex_unlock(&calls_lock);
	return err;
}

static void delist(struct call *c)
{
	pthread_mutex_lock(&calls_lock);
	LIST_REMOVE(c, entry);
	if (is_ours(c))
		close(c->fd);
	if (LIST_EMPTY(&calls))
		pthread_cond_broadcast(&no_calls);
	pthread_mutex_unlock(&calls_lock);
}

void meet_hang_up(void)
{
	struct call *c;

	pthread_mutex_lock(&calls_lock);
	LIST_FOREACH (c, &calls, entry)
		if (is_ours(c))
			shutdown(c->fd, SHUT_RDWR);
	while (!LIST_EMPTY(&calls))
		pthread_cond_wait(&no_calls, &calls_lock);
	pthread_mutex_unlock(&calls_lock);
}

void meet_in_child(void)
{
	struct call *c;

	LIST_FOREACH (c, &calls, entry)
		if (is_ours(c))
			close(c->fd);
	LIST_INIT(&calls);
	unlock_in_child(&calls_lock);
	pthread_cond_init(&no_calls, NULL);
}

/* Return: 0 or ETIMEDOUT */
static int wait_for(const struct call *c, short events)
{
	struct pollfd p = { .fd = c->fd, .events = events };
	uint64_t now = clock_ns(), ms;

	if (now >= c->begun + c->patience)
		return ETIMEDOUT;
	ms = (c->begun + c->patience - now) / 1000000 + 1;
	poll(&p, 1, ms < LOOK_MS ? (int)ms : LOOK_MS);
	return 0;
}

static int address(struct sockaddr_un *addr)
{
	const char *name = secure_getenv("MIGRD_SOCKET");

	if (!name)
		name = "/run/migrd/sock";
	if (strlen(name) >= sizeof(addr->sun_path))
		return ENAMETOOLONG;
	addr->sun_family = AF_UNIX;
	strcpy(addr->sun_path, name);
	return 0;
}

static int put(const struct call *c, const char *text, size_t bytes)
{
	ssize_t n;
	int err;

	while (bytes) {
		if (!is_ours(c))
			return EBADF;
		n = send(c->fd, text, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n >= 0) {
			text += n;
			bytes -= (size_t)n;
		} else if (errno == EAGAIN) {
			err = wait_for(c, POLLOUT);
			if (err)
				return err;
		} else if (errno != EINTR) {
			return errno;
		}
	}
	return 0;
}

/* Who goes away without a word has no place for us now. */
static int hear_line(struct call *c)
{
	size_t at = 0;
	ssize_t n;
	int err;

	while (at < sizeof(c->answer)) {
		if (!is_ours(c))
			return EBADF;
		n = recv(c->fd, c->answer + at, 1, MSG_DONTWAIT);
		if (n > 0 && c->answer[at] == '\n') {
			c->answer[at] = 0;
			c->heard = true;
			c->patience = c->most;
			return 0;
		}
		if (n > 0) {
			at++;
		} else if (!n) {
			return EAGAIN;
		} else if (errno == EAGAIN) {
			err = wait_for(c, POLLIN);
			if (err)
				return err;
		} else if (errno != EINTR) {
			return errno == ECONNRESET ? EAGAIN : errno;
		}
	}
	return EPROTO;
}

/* "wait": it looks for the peer */
static int hear(struct call *c)
{
	int err = hear_line(c);

	return err || strcmp(c->answer, "wait") ? err : hear_line(c);
}

static int connect_now(struct call *c, const struct sockaddr_un *addr)
{
	int err = 0;

	pthread_mutex_lock(&calls_lock); /* others may look at it */
	if (!is_ours(c))
		err = EBADF;
	else if (connect(c->fd, (const struct sockaddr *)addr, sizeof(*addr)))
		err = errno;
	pthread_mutex_unlock(&calls_lock);
	return err;
}

/* Where many wait to be heard it is tried often, to be one of them. */
static int connect_soon(struct call *c, const struct meeting *m,
			const struct sockaddr_un *addr)
{
	const struct timespec pause = { .tv_nsec = FULL_MS * 1000000 };
	int err;

	while ((err = connect_now(c, addr)) == EAGAIN && !is_void(m) &&
	       clock_ns() < c->begun + c->patience)
		nanosleep(&pause, NULL);
	return err == EAGAIN && is_void(m) ? EINTR : err;
}

static int talk(struct call *c, const struct meeting *m)
{
	struct sockaddr_un addr;
	int err = address(&addr);

	if (!err)
		err = connect_soon(c, m, &addr);
	if (!err)
		err = put(c, m->text, m->bytes);
	/* it may have said why it hears no more */
	return !err || err == EPIPE ? hear(c) : err;
}

/*
 * Return: 0 with an answer; EAGAIN, if it is to be called again; EINTR, if what is to be said is
 * void; or why not
 */
static int call(struct call *c, const struct meeting *m)
{
	int err = enlist(c, m);

	*c->answer = 0;
	if (err)
		return err;
	err = talk(c, m);
	delist(c);
	return err || strcmp(c->answer, "busy") ? err : EAGAIN;
}

/* once in a turn */
static void complain(uint32_t qpn, unsigned int turn, const char *who,
		     const char *reason)
{
	static atomic_uint said;

	if (atomic_exchange(&said, turn) != turn)
		fprintf(stderr,
			"libmigrrdma: QP 0x%06x: its peer does not know what keys "
			"are since a move: %s: %s\n",
			qpn, who, reason);
}

/* Return: is there something to be said? */
static bool write_text(FILE *f, const struct shadow_qp *qp,
		       const union ibv_gid *gid, const struct ibv_qp_attr *a)
{
	char own[INET6_ADDRSTRLEN], peer[INET6_ADDRSTRLEN];
	bool any;

	inet_ntop(AF_INET6, gid->raw, own, sizeof(own));
	inet_ntop(AF_INET6, a->ah_attr.grh.dgid.raw, peer, sizeof(peer));
	fprintf(f, "meet %u %s %u %s %u\n", qp->qp.qp_num, own, a->dest_qp_num,
		peer, names_turn());
	any = tell_other_keys(f);
	fprintf(f, "end\n");
	return any;
}

/* what is to be said, to be freed; NULL if that is nothing, or there is no memory */
static char *text_of(const struct shadow_qp *qp, const struct ibv_qp_attr *a,
		     size_t *bytes)
{
	union ibv_gid gid;
	char *text = NULL;
	bool any;
	FILE *f;

	if (real()->ibv_query_gid(real_context(qp->qp.context),
				  a->ah_attr.port_num,
				  a->ah_attr.grh.sgid_index, &gid))
		return NULL; /* so there is no RTR either */
	f = open_memstream(&text, bytes);
	any = f && write_text(f, qp, &gid, a);
	if (!f || fclose(f))
		complain(qp->qp.qp_num, names_turn(), "libmigrrdma",
			 strerror(ENOMEM));
	else if (any)
		return text;
	free(text);
	return NULL;
}

/* A QP that has another number in reality is not found by who is told of it. */
static bool has_to(const struct shadow_qp *qp, const struct ibv_qp_attr *attr,
		   int mask)
{
	const int connects = IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN;

	return names_told() && qp->qp.qp_num == qp->real_num &&
	       qp_has_peer(qp) && (mask & connects) == connects &&
	       attr->qp_state == IBV_QPS_RTR && attr->ah_attr.is_global &&
	       !qp->swap.apart && !qp->swap.moved;
}

bool meet_is_due(struct meeting *m, const struct shadow_qp *qp,
		 const struct ibv_qp_attr *attr, int mask)
{
	if (!has_to(qp, attr, mask) || (m->done && m->turn == names_turn()))
		return false;
	m->text = text_of(qp, attr, &m->bytes);
	m->turn = names_turn();
	m->qpn = qp->qp.qp_num;
	m->hurry = gate_is_waited_for();
	return m->text;
}

/* the turn in which nobody has been there for others, or has said a word; 0: none; and when */
static atomic_uint away;
static _Atomic uint64_t away_at;

static bool is_away(const struct meeting *m)
{
	return away == m->turn && clock_ns() < away_at + PATIENCE;
}

/* @heard: something; @quick: it has not had the time in which it might have been */
static void note(const struct meeting *m, int err, bool heard, bool quick)
{
	if (!err || heard) {
		away = 0;
	} else if (!quick &&
		   (err == ECONNREFUSED || err == ETIMEDOUT || err == EAGAIN)) {
		away_at = clock_ns();
		away = m->turn;
	}
}

/* @refused: when it was not there for the first time, or 0 */
static bool may_answer(int err, uint64_t refused, bool quick)
{
	return err == EAGAIN || (err == ECONNREFUSED && !quick &&
				 clock_ns() < refused + RESTART);
}

/* One that others have found to be away is not waited for, until it says something. */
static int call_again(const struct meeting *m, struct call *c)
{
	const struct timespec pause = { .tv_nsec = AGAIN_MS * 1000000 };
	uint64_t refused = 0;
	bool quick;
	int err;

	c->begun = clock_ns();
	c->patience = m->hurry || is_away(m) ? HURRY : PATIENCE;
	c->most = m->hurry ? HURRY : PATIENCE;
	for (;;) {
		err = call(c, m);
		if (err == ECONNREFUSED && !refused)
			refused = clock_ns();
		quick = c->patience == HURRY;
		if (!may_answer(err, refused, quick) ||
		    clock_ns() >= c->begun + c->patience)
			break;
		nanosleep(&pause, NULL);
	}
	note(m, err, c->heard, quick);
	return err == EAGAIN ? EBUSY : err;
}

void meet_peer(struct meeting *m)
{
	struct call c = {};
	int cancel = cancel_off(), err = call_again(m, &c);

	free(m->text);
	m->text = NULL;
	m->done = err != EINTR && !is_void(m);
	if (err && m->done)
		complain(m->qpn, m->turn, "migrd", strerror(err));
	else if (m->done && strcmp(c.answer, "met"))
		complain(m->qpn, m->turn, "migrd says", c.answer);
	cancel_back(cancel);
}
