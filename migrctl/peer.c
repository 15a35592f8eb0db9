// SPDX-License-Identifier: GPL-2.0
#include "peer.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "note.h"
#include "pump.h"

struct tls_files peer_files;
const char *peer_port = "18620";

const char *peer_self(void)
{
	static char host[256];

	if (!*host && !gethostname(host, sizeof(host) - 1)) {
		host[strcspn(host, ".")] = 0;
		note_clean(host);
	}
	return host;
}

/* The daemon's answer is in the form of ours, so it goes on as it is. */
static bool bind_to_mover(struct conn *c, int fd)
{
	static const char word[] = "mover\n";
	long long until = now_ms() + DIAL_MS;
	size_t bytes;
	char *line;

	if (!conn_send(c, word, sizeof(word) - 1, until))
		return false;
	line = client_hear(c, &bytes, until);
	if (!line)
		return false;
	line[bytes] = '\n';
	return send(fd, line, bytes + 1, MSG_NOSIGNAL) == (ssize_t)bytes + 1;
}

static void refuse(int fd, const char *host, const char *reason)
{
	struct talk t;

	if (talk_init(&t, dup(fd)))
		talk_refuse(&t, "%s: %s", host, reason);
	talk_free(&t);
}

static void pass_on(const char *host, int fd)
{
	char reason[256];
	SSL_CTX *ctx = tls_context(false, &peer_files, reason, sizeof(reason));
	struct conn c;

	if (!ctx || !client_open(&c, ctx, host, peer_port, host,
				 now_ms() + DIAL_MS, reason, sizeof(reason))) {
		refuse(fd, host, reason);
	} else if (!bind_to_mover(&c, fd)) {
		refuse(fd, host, c.reason);
		conn_free(&c);
	} else {
		pump(&c, fd);
		conn_free(&c);
	}
	SSL_CTX_free(ctx);
}

/* It is nobody's child, so that nobody has to wait for it; it ends with the connection. */
static bool start(const char *host, int its)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return false;
	if (pid)
		return waitpid(pid, &status, 0) == pid && !status;
	pid = fork();
	if (pid)
		_exit(pid < 0);
	signal(SIGINT, SIG_IGN); /* a terminal's is not for it */
	/* nor are locks and pipes of a move */
	if (dup2(its, STDERR_FILENO + 1) < 0)
		_exit(1);
	close_range(STDERR_FILENO + 2, ~0U, 0);
	pass_on(host, STDERR_FILENO + 1);
	_exit(0);
}

bool peer_greeted(struct talk *t, json_t **hello)
{
	json_t *o = talk_answered(t, DIAL_MS);
	json_int_t version =
		json_integer_value(json_object_get(o, "migr-mover"));

	if (hello)
		*hello = json_incref(o);
	json_decref(o);
	if (o && version != MOVER_VERSION)
		snprintf(t->reason, sizeof(t->reason),
			 "its migr-mover is of version %d, and this one of %d",
			 (int)version, MOVER_VERSION);
	return o && version == MOVER_VERSION;
}

bool peer_dial(struct talk *t, const char *host, json_t **hello)
{
	int ends[2];
	json_t *bound;
	bool started;

	if (hello)
		*hello = NULL;
	*t = (struct talk){ .fd = -1 };
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
		snprintf(t->reason, sizeof(t->reason), "%s", strerror(errno));
		return false;
	}
	started = start(host, ends[1]);
	close(ends[1]);
	if (!talk_init(t, ends[0]) || !started) {
		snprintf(t->reason, sizeof(t->reason), "%s", strerror(errno));
		return false;
	}
	bound = talk_answered(t, 2 * DIAL_MS);
	json_decref(bound);
	return bound && peer_greeted(t, hello);
}
