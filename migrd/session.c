// SPDX-License-Identifier: GPL-2.0
#include "session.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "answer.h"
#include "listen.h"
#include "note.h"
#include "proc.h"
#include "pump.h"
#include "rdma.h"
#include "words.h"

enum {
	HANDSHAKE_MS = 5000,
	QPNS = 1 << 24,
};

/* one space between words, as the library wants it; true if there are @n */
static bool split(char *line, char **words, int n)
{
	for (int i = 0; i < n; i++) {
		words[i] = line;
		line = strchr(line, ' ');
		if (!line != (i == n - 1) || !*words[i])
			return false;
		if (line)
			*line++ = 0;
	}
	return *words[n - 1];
}

static bool is_qpn(const char *word, uint32_t *qpn)
{
	return word_number(word, QPNS, qpn);
}

static bool refuse_line(struct conn *c)
{
	return answer_refuse(c, EINVAL, "%s", strerror(EINVAL));
}

/* without @container: all */
static bool do_processes(const struct session *s, struct conn *c,
			 const char *container)
{
	struct processes p = { .container = container };
	bool sent;

	processes_get(&p, s->patterns);
	sent = answer_processes(c, &p);
	processes_free(&p);
	return sent;
}

/* in the unit of a process' start */
static unsigned long long uptime(void)
{
	unsigned long long hz = (unsigned long long)sysconf(_SC_CLK_TCK);
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (unsigned long long)t.tv_sec * hz +
	       (unsigned long long)t.tv_nsec * hz / 1000000000;
}

/* A process that was not there yet when the kernel was asked only has the number of the
 * one that was meant.
 */
static bool do_find(const struct session *s, struct conn *c, uint32_t qpn,
		    const struct in6_addr *gid)
{
	unsigned long long asked = uptime();
	struct processes p = { 0 };
	char reason[256], comm[32];
	bool sent;
	int err;

	err = rdma_owner(qpn, gid, &p.pid, reason, sizeof(reason));
	if (err)
		return answer_refuse(c, err, "%s", reason);
	processes_get(&p, s->patterns);
	if (p.n && p.all->start <= asked) {
		sent = answer_process(c, p.all);
	} else {
		proc_comm(p.pid, comm, sizeof(comm));
		sent = answer_refuse(
			c, ESRCH, "the process %d (%s) is not under the layer",
			p.pid, comm);
	}
	processes_free(&p);
	return sent;
}

/* The process was there before the kernel was asked, and is there still. */
static bool answer_owns(const struct session *s, struct conn *c, const char *id,
			const struct in6_addr *gid, const uint32_t *qpns,
			size_t n)
{
	struct processes p = { .id = id };
	char reason[256];
	bool sent;
	int err = ESRCH;

	processes_get(&p, s->patterns);
	if (p.n)
		err = rdma_owns(p.all->pid, qpns, n, gid, reason,
				sizeof(reason));
	if (!p.n || (!err && proc_start(p.all->pid) != p.all->start))
		sent = answer_refuse(c, ESRCH, "there is no process %.80s", id);
	else
		sent = err ? answer_refuse(c, err, "%s", reason) : answer_ok(c);
	processes_free(&p);
	return sent;
}

/* "owns ID GID QPN...", of which @rest is what follows the first word */
static bool do_owns(const struct session *s, struct conn *c, char *rest)
{
	uint32_t qpns[LINE_BYTES / 2];
	const char *id = strsep(&rest, " "), *word = strsep(&rest, " ");
	struct in6_addr gid;
	size_t n = 0;

	if (!word || inet_pton(AF_INET6, word, &gid) != 1)
		return refuse_line(c);
	while ((word = strsep(&rest, " ")))
		if (!is_qpn(word, &qpns[n++]))
			return refuse_line(c);
	return n ? answer_owns(s, c, id, &gid, qpns, n) : refuse_line(c);
}

/* true if that is all that was to be done */
static bool do_open(const struct session *s, struct conn *c, const char *id,
		    bool lent, bool *goes_on)
{
	struct processes p = { .id = id };
	bool bound = false;

	processes_get(&p, s->patterns);
	*goes_on = true;
	if (!p.n)
		*goes_on = answer_refuse(c, ESRCH, "there is no process %.80s",
					 id);
	else
		bound = relay_open(c, p.all, lent, goes_on);
	processes_free(&p);
	return bound;
}

static bool do_gids(struct conn *c, const struct in6_addr *gid)
{
	struct gid_entry *all = calloc(MOST_GIDS, sizeof(*all));
	size_t n = all ? gids_beside(gid, all) : 0;
	bool sent = n ? answer_gids(c, all, n)
		      : answer_refuse(c, ENOENT, "no device has that GID");

	free(all);
	return sent;
}

/*
 * From then on all is between the client and this host's mover, which hears first who that is.
 * True if that is over; else it was refused.
 */
static bool do_mover(const struct session *s, struct conn *c, bool *goes_on)
{
	char name[128], line[256];
	int fd = s->mover ? dial_path(s->mover) : -1;

	if (fd < 0) {
		*goes_on = answer_refuse(c, ENXIO,
					 "nothing moves containers here: %s",
					 s->mover ? strerror(errno)
						  : "migrd has no -m");
		return false;
	}
	tls_peer(c->ssl, name, sizeof(name));
	snprintf(line, sizeof(line), "{\"peer\": \"%s\", \"operator\": %s}\n",
		 name, tls_is_operator(c->ssl) ? "true" : "false");
	if (answer_ok(c) &&
	    send(fd, line, strlen(line), MSG_NOSIGNAL) == (ssize_t)strlen(line))
		pump(c, fd);
	close(fd);
	return true;
}

static bool obey(const struct session *s, struct conn *c, char *line,
		 bool *goes_on)
{
	char *words[3], copy[256];
	struct in6_addr gid;
	uint32_t qpn;

	*goes_on = true;
	if (!strcmp(line, "mover"))
		return do_mover(s, c, goes_on);
	if (tls_is_operator(c->ssl)) {
		*goes_on = answer_refuse(c, EPERM, "that is for hosts only");
		return false;
	}
	if (!strcmp(line, "processes")) {
		*goes_on = do_processes(s, c, NULL);
		return false;
	}
	if (strlen(line) < sizeof(copy)) {
		strcpy(copy, line);
		if (split(copy, words, 2)) {
			if (!strcmp(words[0], "open") ||
			    !strcmp(words[0], "borrow"))
				return do_open(s, c, words[1], *words[0] == 'b',
					       goes_on);
			if (!strcmp(words[0], "processes")) {
				*goes_on = do_processes(s, c, words[1]);
				return false;
			}
			if (!strcmp(words[0], "gids") &&
			    inet_pton(AF_INET6, words[1], &gid) == 1) {
				*goes_on = do_gids(c, &gid);
				return false;
			}
		}
		strcpy(copy, line);
		if (split(copy, words, 3) && !strcmp(words[0], "find") &&
		    is_qpn(words[1], &qpn) &&
		    inet_pton(AF_INET6, words[2], &gid) == 1) {
			*goes_on = do_find(s, c, qpn, &gid);
			return false;
		}
	}
	*goes_on = !strncmp(line, "owns ", 5) ? do_owns(s, c, line + 5)
					      : refuse_line(c);
	return false;
}

static enum conn_read bad_line(struct conn *c, int err, const char *reason)
{
	snprintf(c->reason, sizeof(c->reason), "%s", reason);
	answer_refuse(c, err, "%s", reason);
	return CONN_END;
}

/* After a line that is none nobody knows what the next one is an answer to. */
enum conn_read session_line(struct conn *c, char **line, size_t *bytes)
{
	enum conn_read got;

	while (!(*line = conn_line(c, bytes))) {
		got = conn_read(c);
		if (got == CONN_FULL)
			return bad_line(c, EMSGSIZE, "a line is too long");
		if (got != CONN_MORE)
			return got;
	}
	if (memchr(*line, 0, *bytes))
		return bad_line(c, EBADMSG, "a line has a 0 in it");
	return CONN_MORE;
}

/* until there will be no lines any more */
static void talk(const struct session *s, struct conn *c)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };
	bool goes_on = true;
	size_t bytes;
	char *line;

	while (goes_on) {
		switch (session_line(c, &line, &bytes)) {
		case CONN_MORE:
			if (obey(s, c, line, &goes_on))
				return;
			break;
		case CONN_NOTHING:
			poll(&p, 1, -1);
			break;
		default:
			goes_on = false;
		}
	}
	note("ended: %s", c->reason);
}

void session_run(const struct session *s, int fd)
{
	struct conn c;
	char name[128];

	conn_keep_alive(fd);
	if (!conn_init(&c, s->ctx, fd, LINE_BYTES)) {
		note("no memory");
	} else if (!conn_handshake(&c, true, now_ms() + HANDSHAKE_MS)) {
		note("refused: %s", c.reason);
	} else {
		atomic_store(s->known, true);
		eventfd_write(s->woken, 1);
		tls_peer(c.ssl, name, sizeof(name));
		note("%s is connected", name);
		if (answer_hello(&c, s->host))
			talk(s, &c);
	}
	conn_free(&c);
}
