// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "meet.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
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
	AGAIN_MS = 200, /* after which who is busy is told again */
	ANSWER_BYTES = 512,
};

/* a connection to the daemon */
struct call {
	int fd;
	uint64_t deadline;
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

static bool enlist(struct call *c, const struct meeting *m)
{
	bool may;

	pthread_mutex_lock(&calls_lock);
	may = !is_void(m);
	if (may)
		LIST_INSERT_HEAD(&calls, c, entry);
	pthread_mutex_unlock(&calls_lock);
	return may;
}

static void delist(struct call *c)
{
	pthread_mutex_lock(&calls_lock);
	LIST_REMOVE(c, entry);
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
		shutdown(c->fd, SHUT_RDWR);
	while (!LIST_EMPTY(&calls))
		pthread_cond_wait(&no_calls, &calls_lock);
	pthread_mutex_unlock(&calls_lock);
}

void meet_in_child(void)
{
	struct call *c;

	LIST_FOREACH (c, &calls, entry)
		close(c->fd);
	LIST_INIT(&calls);
	unlock_in_child(&calls_lock);
	pthread_cond_init(&no_calls, NULL);
}

/* Return: 0 or ETIMEDOUT */
static int wait_for(const struct call *c, short events)
{
	struct pollfd p = { .fd = c->fd, .events = events };
	uint64_t now = clock_ns();

	if (now >= c->deadline)
		return ETIMEDOUT;
	poll(&p, 1, (int)((c->deadline - now) / 1000000) + 1);
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
		n = send(c->fd, text, bytes, MSG_NOSIGNAL);
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
static int hear(struct call *c)
{
	size_t at = 0;
	ssize_t n;
	int err;

	while (at < sizeof(c->answer)) {
		n = recv(c->fd, c->answer + at, 1, 0);
		if (n > 0 && c->answer[at] == '\n') {
			c->answer[at] = 0;
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

static int talk(struct call *c, const char *text, size_t bytes)
{
	struct sockaddr_un addr;
	int err = address(&addr);

	if (!err && connect(c->fd, (struct sockaddr *)&addr, sizeof(addr)))
		err = errno;
	if (!err)
		err = put(c, text, bytes);
	/* it may have said why it hears no more */
	return !err || err == EPIPE ? hear(c) : err;
}

/*
 * Return: 0 with an answer; EAGAIN, if it is to be called again; EINTR, if what is to be said is
 * void; or why not
 */
static int call(struct call *c, const struct meeting *m)
{
	int err;

	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->fd < 0)
		return errno;
	if (!enlist(c, m)) {
		close(c->fd);
		return EINTR;
	}
	err = talk(c, m->text, m->bytes);
	delist(c);
	return err || strcmp(c->answer, "busy") ? err : EAGAIN;
}

static void complain(uint32_t qpn, const char *who, const char *reason)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&said))
		fprintf(stderr,
			"libmigrrdma: QP 0x%06x: its peer does not know what keys "
			"are since a move: %s: %s\n",
			qpn, who, reason);
}

/* what is to be said, to be freed; NULL if that is nothing, or there is no memory */
static char *text_of(const struct shadow_qp *qp, const struct ibv_qp_attr *a,
		     size_t *bytes)
{
	char own[INET6_ADDRSTRLEN], peer[INET6_ADDRSTRLEN];
	union ibv_gid gid;
	char *text = NULL;
	bool any;
	FILE *f;

	if (real()->ibv_query_gid(real_context(qp->qp.context),
				  a->ah_attr.port_num,
				  a->ah_attr.grh.sgid_index, &gid))
		return NULL; /* so there is no RTR either */
	f = open_memstream(&text, bytes);
	if (!f)
		return NULL;
	inet_ntop(AF_INET6, gid.raw, own, sizeof(own));
	inet_ntop(AF_INET6, a->ah_attr.grh.dgid.raw, peer, sizeof(peer));
	fprintf(f, "meet %u %s %u %s %u\n", qp->qp.qp_num, own, a->dest_qp_num,
		peer, names_turn());
	any = tell_other_keys(f);
	fprintf(f, "end\n");
	if (!fclose(f) && any)
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

/* a daemon that is not there, which others have found, too, is not waited for */
static atomic_bool is_away;

static bool may_come_back(int err, uint64_t begun)
{
	return err == ECONNREFUSED && !is_away && clock_ns() < begun + RESTART;
}

static int call_again(const struct meeting *m, struct call *c)
{
	const struct timespec pause = { .tv_nsec = AGAIN_MS * 1000000 };
	uint64_t begun = clock_ns();
	int err;

	for (;;) {
		err = call(c, m);
		if (err != EAGAIN && !may_come_back(err, begun))
			break;
		if (m->hurry || clock_ns() >= c->deadline)
			break;
		nanosleep(&pause, NULL);
	}
	is_away = err == ECONNREFUSED;
	return err == EAGAIN ? EBUSY : err;
}

void meet_peer(struct meeting *m)
{
	struct call c = { .deadline =
				  clock_ns() + (m->hurry ? HURRY : PATIENCE) };
	int cancel = cancel_off(), err = call_again(m, &c);

	free(m->text);
	m->text = NULL;
	m->done = !is_void(m);
	if (err && m->done)
		complain(m->qpn, "migrd", strerror(err));
	else if (m->done && strcmp(c.answer, "met"))
		complain(m->qpn, "migrd says", c.answer);
	cancel_back(cancel);
}
