// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "meet.h"

#include <arpa/inet.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "gate.h"
#include "names.h"
#include "tell.h"

#define PATIENCE 20000000000L /* ns: as long as a peer may be suspended */

enum {
	LOOK_MS = 20,	/* in which it is seen that the gate is wanted */
	AGAIN_MS = 200, /* after which who is busy is told again */
	ANSWER_BYTES = 512,
};

/* a connection to the daemon */
struct call {
	int fd;
	uint64_t deadline;
	char answer[ANSWER_BYTES]; /* without its end */
};

/* for @ms, or until there are @events, if any are wanted. Return: 0; EAGAIN, EINTR or ETIMEDOUT */
static int wait_for(const struct call *c, short events, int ms)
{
	struct pollfd p = { .fd = events ? c->fd : -1, .events = events };

	for (; ms > 0; ms -= LOOK_MS) {
		if (gate_is_wanted())
			return EINTR;
		if (clock_ns() >= c->deadline)
			return ETIMEDOUT;
		if (poll(&p, 1, LOOK_MS) > 0)
			return 0;
	}
	return EAGAIN;
}

static int dial(struct call *c)
{
	const char *name = secure_getenv("MIGRD_SOCKET");
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	c->fd = -1;
	if (!name)
		name = "/run/migrd/sock";
	if (strlen(name) >= sizeof(addr.sun_path))
		return ENAMETOOLONG;
	strcpy(addr.sun_path, name);
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->fd < 0)
		return errno;
	return connect(c->fd, (struct sockaddr *)&addr, sizeof(addr)) ? errno
								      : 0;
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
			err = wait_for(c, POLLOUT, INT_MAX);
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
			err = wait_for(c, POLLIN, INT_MAX);
			if (err)
				return err;
		} else if (errno != EINTR) {
			return errno == ECONNRESET ? EAGAIN : errno;
		}
	}
	return EPROTO;
}

/* Return: 0 with an answer; EAGAIN, if it is to be called again; EINTR; or why not */
static int call(struct call *c, const char *text, size_t bytes)
{
	int err = dial(c);

	if (!err)
		err = put(c, text, bytes);
	/* it may have said why it hears no more */
	if (!err || err == EPIPE)
		err = hear(c);
	if (c->fd >= 0)
		close(c->fd);
	return err || strcmp(c->answer, "busy") ? err : EAGAIN;
}

static void complain(const struct shadow_qp *qp, const char *who,
		     const char *reason)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&said))
		fprintf(stderr,
			"libmigrrdma: QP 0x%06x: its peer does not know what keys "
			"are since a move: %s: %s\n",
			qp->qp.qp_num, who, reason);
}

/* what is to be said, to be freed; NULL if that is nothing, or there is no memory */
static char *text_of(const struct shadow_qp *qp, const struct ibv_qp_attr *a,
		     size_t *bytes)
{
	char own[INET6_ADDRSTRLEN], peer[INET6_ADDRSTRLEN];
	union ibv_gid gid;
	bool any = qp->qp.qp_num != qp->real_num;
	char *text = NULL;
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
	fprintf(f, "meet %u %u %s %u %s %u\n", qp->qp.qp_num, qp->real_num, own,
		a->dest_qp_num, peer, names_turn());
	any |= tell_other_keys(f);
	fprintf(f, "end\n");
	if (!fclose(f) && any)
		return text;
	free(text);
	return NULL;
}

static bool has_to(const struct shadow_qp *qp, const struct ibv_qp_attr *attr,
		   int mask)
{
	const int connects = IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN;

	return (names_told() || qp->qp.qp_num != qp->real_num) &&
	       qp_has_peer(qp) && (mask & connects) == connects &&
	       attr->qp_state == IBV_QPS_RTR && attr->ah_attr.is_global &&
	       !qp->swap.apart && !qp->swap.moved;
}

bool meet_peer(const struct shadow_qp *qp, const struct ibv_qp_attr *attr,
	       int mask)
{
	struct call c = { .deadline = clock_ns() + PATIENCE };
	size_t bytes;
	char *text;
	int err;

	text = has_to(qp, attr, mask) ? text_of(qp, attr, &bytes) : NULL;
	if (!text)
		return true;
	do {
		err = call(&c, text, bytes);
		if (err == EAGAIN)
			err = wait_for(&c, 0, AGAIN_MS);
	} while (err == EAGAIN);
	free(text);
	if (err && err != EINTR)
		complain(qp, "migrd", strerror(err));
	else if (!err && strcmp(c.answer, "met"))
		complain(qp, "migrd says", c.answer);
	return err != EINTR;
}
