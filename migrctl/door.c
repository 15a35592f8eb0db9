// SPDX-License-Identifier: GPL-2.0
/*
 * In CRIU's place for the runc of `migr-ctr move`. So much of a move is the start of runc
 * and CRIU that it has to be over before a container is stopped, or has arrived: both are
 * started, and what runc asks CRIU for is held here until there is word that it may be done.
 * (Neither notices: between the sockets that each has passes what they say.) Of a dump
 * the container is unplugged when CRIU says that its network is to be locked, which is when
 * its processes stand still; and runc hears how it has ended when CRIU has, and the
 * container is plugged in again if it runs on.
 *
 * In the folder MIGR_CTR_DOOR are two pipes. "says" is told "ready", and of a dump how CRIU has
 * ended: "criu 0" if the image is whole, or "criu 1"; "go" gives the word, "dump" or "restore".
 * Any other, or its end, makes both give up. "errors" gets what there is to complain about.
 * With MIGR_CTR_HOLD a container that is unplugged is "frozen", and a dump that is complete is
 * "held" before anything is killed (gate.h), and goes on by the word "leave"; or the container
 * does, where it is. One that was granted to the other end is not plugged in again, however CRIU
 * has ended: the same addresses may live there.
 * MIGR_CTR_LINK is the container's veth. In CRIU's own environment MIGR_CTR_REQUEST is what
 * it will be asked for, by which a test in CRIU's place knows it.
 *
 * What is none of this, as that runc asks for CRIU's version, is CRIU's.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate.h"
#include "link.h"
#include "rpc.h"

struct door {
	const char *folder;
	const char *request; /* what is asked for, and the word for it */
	const char *veth;
	int says, go;
	int runc, criu; /* -1 once nothing is heard of it any more */
	unsigned int master;
	bool is_held, is_unplugged, is_done;
	bool is_answered; /* CRIU, for runc, which answers next */
};

/* packets, of which there is one at a time, and CRIU's last one to runc */
static struct rpc_message packet, last;

static int open_in(const struct door *d, const char *name, int flags)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", d->folder, name);
	return open(path, flags | O_CLOEXEC);
}

/* with errno */
static void complain(const struct door *d, const char *who, const char *what)
{
	const char *why = strerror(errno);
	int fd = open_in(d, "errors", O_WRONLY | O_APPEND);

	if (fd < 0)
		return;
	dprintf(fd, "%s %s: %s\n", who, what, why);
	close(fd);
}

/*
 * "says" for reading, too: who listens may have been killed, and that must not end us. Who gives
 * the word may have been killed before: only after somebody could write has a pipe an end.
 */
static bool open_pipes(struct door *d)
{
	int any;

	d->says = open_in(d, "says", O_RDWR);
	any = open_in(d, "go", O_RDWR);
	d->go = open_in(d, "go", O_RDONLY | O_NONBLOCK);
	if (any >= 0)
		close(any);
	return d->says >= 0 && d->go >= 0;
}

/* a word is one write of a few bytes, and so one read */
static bool may_go_on(const struct door *d)
{
	char word[32];
	ssize_t n = read(d->go, word, sizeof(word) - 1);
	size_t length = strlen(d->request);

	return n == (ssize_t)length + 1 && !memcmp(word, d->request, length) &&
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
	d->is_unplugged =
		link_master(d->veth, &d->master) && link_plug(d->veth, 0);
	if (!d->is_unplugged)
		complain(d, d->veth, "cannot be unplugged");
	return d->is_unplugged;
}

/* The other end has it, or may: whoever takes it back plugs it in. */
static bool is_away(const struct door *d)
{
	return d->is_held && gate_is_granted(d->folder);
}

/*
 * It runs on, and who would plug it in again may have been killed; unless it is granted just now,
 * by somebody who has not heard yet that CRIU has ended.
 */
static void plug_again(const struct door *d)
{
	if (is_away(d))
		return;
	errno = ENODEV; /* if it was plugged into nothing */
	if (!d->master || !link_plug(d->veth, d->master))
		complain(d, d->veth, "cannot be plugged in again");
	else if (is_away(d) && !link_plug(d->veth, 0))
		complain(d, d->veth, "cannot be unplugged");
}

static bool is_dump(const struct door *d)
{
	return !strcmp(d->request, "dump");
}

/* CRIU has no runc any more: that ends it as soon as it wants to know something. */
static void runc_is_gone(struct door *d)
{
	shutdown(d->criu, SHUT_WR);
	d->runc = -1;
}

static void runc_speaks(struct door *d)
{
	/* of who has ended there may still be something to be heard */
	if (rpc_receive(d->runc, &packet) <= 0)
		runc_is_gone(d);
	else if (!d->is_answered)
		rpc_send(d->criu, &packet);
	d->is_answered = false;
	rpc_close_files(&packet);
}

static void tell_runc(struct door *d, const struct rpc_message *m)
{
	if (d->runc >= 0 && !rpc_send(d->runc, m))
		runc_is_gone(d);
}

/*
 * It runs elsewhere from now on, and is killed here whatever has become of runc: without it
 * CRIU would let it run on.
 */
static bool may_leave(struct door *d)
{
	d->is_answered =
		gate_wait(d->folder, "held", "leave", false, d->criu) &&
		rpc_acknowledge(d->criu, true);
	return d->is_answered;
}

/* From now on its files stay as they are, and need not wait for its memory. */
static bool tell_frozen(const struct door *d)
{
	return !d->is_held || dprintf(d->says, "frozen\n") > 0;
}

/* May that be which CRIU notifies runc of? After "post-dump" the processes are killed. */
static bool may_be(struct door *d, const char *script)
{
	if (!is_dump(d) || !script)
		return true;
	if (!strcmp(script, "network-lock"))
		return unplug(d) && tell_frozen(d);
	if (strcmp(script, "post-dump") != 0)
		return true;
	if (d->is_unplugged && d->is_held)
		return may_leave(d);
	return d->is_unplugged;
}

static void criu_says(struct door *d, const CriuResp *r)
{
	if (r && r->type == CRIU_REQ_TYPE__NOTIFY) {
		if (may_be(d, r->notify ? r->notify->script : NULL))
			tell_runc(d, &packet);
		else if (!rpc_acknowledge(d->criu, false))
			runc_is_gone(d);
	} else if (is_dump(d)) {
		d->is_done = r && r->success;
		last.bytes = packet.bytes;
		memcpy(last.data, packet.data, packet.bytes);
	} else {
		tell_runc(d, &packet);
	}
}

static void criu_speaks(struct door *d)
{
	int rc = rpc_receive(d->criu, &packet);
	CriuResp *r;

	if (!rc)
		d->criu = -1;
	if (rc < 0 && errno != ECONNRESET) {
		complain(d, "CRIU", "says what cannot be understood");
		runc_is_gone(d);
	}
	if (rc <= 0)
		return;
	r = rpc_response(&packet);
	criu_says(d, r);
	if (r)
		criu_resp__free_unpacked(r, NULL);
	rpc_close_files(&packet);
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
		if (p[1].revents && d->runc >= 0 && d->criu >= 0)
			runc_speaks(d);
	}
}

/* of a dump, before runc has ended, too, and somebody goes on from that */
static void tell_end(struct door *d)
{
	if (!d->is_done && d->is_unplugged)
		plug_again(d);
	dprintf(d->says, "criu %d\n", !d->is_done);
	if (last.bytes && d->runc >= 0)
		rpc_send(d->runc, &last);
}

/* It is in CRIU's cgroups, which at a restore are the container's. */
static int stand_between(struct door *d)
{
	dprintf(d->says, "ready\n");
	if (!hold(d))
		return 1; /* with the sockets, so that both hear of it */
	if (!rpc_send(d->criu, &packet))
		runc_is_gone(d);
	pass_on(d);
	if (is_dump(d))
		tell_end(d);
	return 0;
}

/*
 * CRIU has to be runc's own child, whose sibling the restored process is, and must not
 * have one that it does not know of.
 */
static bool starts_between(struct door *d, int criu_end)
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
	close(criu_end);
	_exit(stand_between(d));
}

/* false: there is nobody between them, and CRIU is not to be started */
static bool open_door(struct door *d)
{
	int ends[2];

	if (!open_pipes(d) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return false;
	d->criu = ends[0];
	return rpc_receive(d->runc, &packet) == 1 &&
	       rpc_take_folders(d->runc, &packet) &&
	       starts_between(d, ends[1]) && dup2(ends[1], d->runc) >= 0 &&
	       !setenv("MIGR_CTR_REQUEST", d->request, 1);
}

static int become_criu(char **argv)
{
	execv(CRIU, argv);
	return 1;
}

/* criu swrk FD */
int main(int argc, char **argv)
{
	struct door d = { .folder = getenv("MIGR_CTR_DOOR"),
			  .veth = getenv("MIGR_CTR_LINK"),
			  .is_held = getenv("MIGR_CTR_HOLD") };

	if (argc != 3 || strcmp(argv[1], "swrk") || !d.folder || !d.veth)
		return become_criu(argv);
	d.runc = atoi(argv[2]);
	errno = EBADMSG;
	switch (rpc_peek(d.runc)) {
	case CRIU_REQ_TYPE__DUMP:
		d.request = "dump";
		break;
	case CRIU_REQ_TYPE__RESTORE:
		d.request = "restore";
		break;
	case -1:
		complain(&d, "runc's request to CRIU", "cannot be read");
		return 1;
	default:
		return become_criu(argv);
	}
	if (!open_door(&d)) {
		complain(&d, "runc's request to CRIU", "cannot be held");
		return 1;
	}
	become_criu(argv);
	complain(&d, CRIU, "cannot be started");
	return 1;
}
