// SPDX-License-Identifier: GPL-2.0
/*
 * In CRIU's place for the runc of `migr-ctr move`. So much of a move is the start of runc
 * and CRIU that it has to be over before a container is stopped, or has arrived: both are
 * started, and what runc asks CRIU for is held here until there is word that it may be done.
 * (Neither notices: between the sockets that each has passes what they say.) Of a dump
 * the container is unplugged when CRIU says that its network is to be locked, which is when
 * its processes stand still.
 *
 * In the folder MIGR_CTR_DOOR are two pipes. "says" is told "ready", and of a dump how CRIU has
 * ended: "criu 0" if the image is whole, or "criu 1"; "go" gives the word, "dump" or "restore".
 * Any other, or its end, makes both give up. "errors" gets what there is to complain about.
 * MIGR_CTR_LINK is the container's veth. In CRIU's own environment MIGR_CTR_REQUEST is what
 * it will be asked for.
 *
 * What is none of this, as that runc asks for CRIU's version, is CRIU's.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "link.h"
#include "rpc.h"

#ifndef CRIU
#define CRIU "/usr/sbin/criu"
#endif

struct door {
	const char *word; /* what is asked for */
	const char *link;
	int folder, says, go;
	int runc, criu; /* -1 once nothing is heard of it any more */
	unsigned int master;
	bool is_unplugged, is_done;
};

static __attribute__((format(printf, 2, 3))) void complain(const struct door *d,
							   const char *fmt, ...)
{
	int fd = openat(d->folder, "errors", O_WRONLY | O_APPEND | O_CLOEXEC);
	va_list args;

	if (fd < 0)
		return;
	va_start(args, fmt);
	vdprintf(fd, fmt, args);
	va_end(args);
	close(fd);
}

static void say(const struct door *d, const char *what, int code)
{
	if (code < 0)
		dprintf(d->says, "%s\n", what);
	else
		dprintf(d->says, "%s %d\n", what, code);
}

/*
 * "says" for reading, too: who listens may have been killed, and that must not end us. Who gives
 * the word may have been killed before: only after somebody could write has a pipe an end.
 */
static bool open_pipes(struct door *d, const char *folder)
{
	int any;

	d->folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	d->says = openat(d->folder, "says", O_RDWR | O_CLOEXEC);
	any = openat(d->folder, "go", O_RDWR | O_CLOEXEC);
	d->go = openat(d->folder, "go", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (any >= 0)
		close(any);
	return d->folder >= 0 && d->says >= 0 && d->go >= 0;
}

/* a word is one write of a few bytes, and so one read */
static bool may_go_on(const struct door *d)
{
	char word[32];
	ssize_t n = read(d->go, word, sizeof(word) - 1);
	size_t length = strlen(d->word);

	return n == (ssize_t)length + 1 && !memcmp(word, d->word, length) &&
	       word[length] == '\n';
}

/* until there is word; false: not to go on, by whosever fault */
static bool hold(const struct door *d)
{
	/* runc says nothing more before it is answered, nor does CRIU */
	struct pollfd p[] = { { .fd = d->go, .events = POLLIN },
			      { .fd = d->runc, .events = POLLIN },
			      { .fd = d->criu, .events = POLLIN } };

	while (poll(p, 3, -1) < 0)
		if (errno != EINTR)
			return false;
	return p[0].revents && !p[1].revents && !p[2].revents && may_go_on(d);
}

/* Nobody reaches it from now on: CRIU relies on that. */
static bool unplug(struct door *d)
{
	if (!link_master(d->link, &d->master) || !link_plug(d->link, 0)) {
		complain(d, "%s cannot be unplugged: %s\n", d->link,
			 strerror(errno));
		return false;
	}
	d->is_unplugged = true;
	return true;
}

/* It runs on, and who would plug it in again may have been killed. */
static void plug_again(const struct door *d)
{
	if (!link_plug(d->link, d->master))
		complain(d, "%s cannot be plugged in again: %s\n", d->link,
			 strerror(errno));
}

/* false: runc is not to hear of it */
static bool look_at(struct door *d, const struct rpc_message *m)
{
	CriuResp *r = rpc_response(m);
	bool is_for_runc = true;

	if (r && r->type == CRIU_REQ_TYPE__DUMP)
		d->is_done = r->success;
	if (r && r->type == CRIU_REQ_TYPE__NOTIFY && r->notify &&
	    r->notify->script && !strcmp(r->notify->script, "network-lock") &&
	    !strcmp(d->word, "dump") && !unplug(d)) {
		rpc_refuse(d->criu);
		is_for_runc = false;
	}
	criu_resp__free_unpacked(r, NULL);
	return is_for_runc;
}

/* CRIU has no runc any more: that ends it as soon as it wants to know something. */
static void runc_is_gone(struct door *d)
{
	shutdown(d->criu, SHUT_WR);
	d->runc = -1;
}

static void runc_speaks(struct door *d)
{
	struct rpc_message m;

	if (rpc_receive(d->runc, &m) <= 0) {
		runc_is_gone(d);
		return;
	}
	/* of one that has ended something may be left to be heard */
	rpc_send(d->criu, &m);
	rpc_free(&m);
}

static void criu_speaks(struct door *d)
{
	struct rpc_message m;

	if (rpc_receive(d->criu, &m) <= 0) {
		d->criu = -1;
		return;
	}
	if (look_at(d, &m) && d->runc >= 0 && !rpc_send(d->runc, &m))
		runc_is_gone(d);
	rpc_free(&m);
}

/* until CRIU has ended: only then is all done that it does */
static void pass_on(struct door *d)
{
	while (d->criu >= 0) {
		struct pollfd p[] = { { .fd = d->criu, .events = POLLIN },
				      { .fd = d->runc, .events = POLLIN } };

		if (poll(p, 2, -1) < 0)
			continue;
		if (p[0].revents)
			criu_speaks(d);
		if (p[1].revents && d->runc >= 0)
			runc_speaks(d);
	}
}

static int stand_between(struct door *d, const struct rpc_message *request)
{
	say(d, "ready", -1);
	if (!hold(d))
		return 1; /* with the sockets, so that both hear of it */
	if (!rpc_send(d->criu, request))
		runc_is_gone(d);
	pass_on(d);
	if (strcmp(d->word, "dump"))
		return 0;
	if (!d->is_done && d->is_unplugged)
		plug_again(d);
	say(d, "criu", !d->is_done);
	return 0;
}

/*
 * CRIU has to be runc's own child, whose sibling the restored process is, and must not
 * have one that it does not know of.
 */
static bool starts_between(struct door *d, const struct rpc_message *request,
			   int criu)
{
	pid_t child = fork();
	int status;

	if (child < 0)
		return false;
	if (child)
		return waitpid(child, &status, 0) == child && !status;
	child = fork();
	if (child)
		_exit(child < 0);
	close(criu);
	_exit(stand_between(d, request));
}

static int become_criu(char **argv)
{
	execv(CRIU, argv);
	return 1;
}

static const char *held_request(int fd)
{
	switch (rpc_peek(fd)) {
	case CRIU_REQ_TYPE__DUMP:
		return "dump";
	case CRIU_REQ_TYPE__RESTORE:
		return "restore";
	default:
		return NULL;
	}
}

/* false: there is nobody between them, and CRIU is not to be started */
static bool open_door(struct door *d, const char *folder)
{
	struct rpc_message request = { .data = NULL };
	int ends[2];
	bool ok;

	if (!open_pipes(d, folder) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return false;
	d->criu = ends[0];
	ok = rpc_receive(d->runc, &request) == 1 &&
	     rpc_take_folders(d->runc, &request);
	if (!ok)
		complain(d, "runc's request to CRIU: %s\n", strerror(errno));
	ok = ok && starts_between(d, &request, ends[1]) &&
	     dup2(ends[1], d->runc) >= 0;
	rpc_free(&request);
	return ok;
}

/* criu swrk FD */
int main(int argc, char **argv)
{
	const char *folder = getenv("MIGR_CTR_DOOR");
	struct door d = { .link = getenv("MIGR_CTR_LINK") };

	if (argc != 3 || strcmp(argv[1], "swrk") || !folder || !d.link)
		return become_criu(argv);
	d.runc = atoi(argv[2]);
	d.word = held_request(d.runc);
	if (d.word &&
	    (!open_door(&d, folder) || setenv("MIGR_CTR_REQUEST", d.word, 1)))
		return 1;
	return become_criu(argv);
}
