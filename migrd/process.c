// SPDX-License-Identifier: GPL-2.0
#include "process.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "folders.h"
#include "note.h"
#include "proc.h"
#include "shared.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

enum {
	PART_BYTES = 20
}; /* of an ID, for a name */

static char host[PART_BYTES + 1] = "host";

/* what may be in an ID, and does not part it */
static void part(char *to, const char *name)
{
	size_t n = 0;

	for (; *name && n < PART_BYTES; name++)
		to[n++] = isalnum((unsigned char)*name) || *name == '-' ? *name
									: '_';
	to[n] = 0;
}

void process_set_host(const char *name)
{
	part(host, name);
}

static int connect_to(int path, int type)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err;

	if (fd < 0)
		return -errno;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d",
		 path);
	if (!connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return fd;
	err = errno;
	close(fd);
	return -err;
}

static bool is_alive(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return !poll(&p, 1, 0);
}

/* Whoever is at the other end, of which @pidfd makes sure that it is the same. */
static bool listener(int fd, struct shared_owner *owner, int *pidfd)
{
	socklen_t bytes = sizeof(*pidfd);
	struct ucred peer;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, pidfd, &bytes)) {
		if (errno != ENOPROTOOPT)
			return false;
		*pidfd = -1; /* before Linux 6.5 */
	}
	bytes = sizeof(peer);
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) &&
	    peer.pid > 0) {
		if (*pidfd < 0)
			*pidfd = (int)syscall(SYS_pidfd_open, peer.pid, 0);
		owner->pid = peer.pid;
		owner->start = proc_start(peer.pid);
		if (*pidfd >= 0 && owner->start && is_alive(*pidfd))
			return true;
	}
	if (*pidfd >= 0)
		close(*pidfd);
	return false;
}

int process_dial(const struct process *p, int *pidfd)
{
	struct shared_owner owner;
	int fd = connect_to(p->socket, SOCK_STREAM);

	if (fd < 0)
		return fd;
	if (!listener(fd, &owner, pidfd)) {
		close(fd);
		return -ESRCH;
	}
	if (owner.pid == p->pid && owner.start == p->start)
		return fd;
	close(*pidfd);
	close(fd);
	return -ESRCH;
}

/* A socket of the wrong type is not let in, but only if there is one. */
static bool is_bound(int path)
{
	return connect_to(path, SOCK_DGRAM) == -EPROTOTYPE;
}

/*
 * A connection waits in the process' queue until it has time for it, also when it is
 * closed; so nobody is asked twice who he is.
 */
static bool identify(const struct candidate *c, int path,
		     struct shared_owner *owner)
{
	struct stat st, folder;
	struct shared_key key;
	int fd, pidfd;
	bool known;

	if (fstat(path, &st) || !S_ISSOCK(st.st_mode) || fstat(c->dir, &folder))
		return false;
	key = (struct shared_key){ st.st_dev,
				   st.st_ino,
				   (uint64_t)st.st_ctim.tv_sec,
				   (uint64_t)st.st_ctim.tv_nsec,
				   folder.st_dev,
				   folder.st_ino };
	if (shared_find(&key, owner) &&
	    proc_start(owner->pid) == owner->start && is_bound(path))
		return true;
	fd = connect_to(path, SOCK_STREAM);
	if (fd < 0)
		return false;
	known = listener(fd, owner, &pidfd);
	if (known) {
		/* one name for a process, and that its own */
		known = proc_inner(owner->pid) == c->inner && is_alive(pidfd);
		close(pidfd);
	}
	close(fd);
	if (known)
		shared_remember(&key, owner);
	return known;
}

static bool has(const struct processes *p, pid_t pid)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->all[i].pid == pid)
			return true;
	return false;
}

/* FNV-1a: what the host has called it, and nobody in it */
static uint64_t container_of(const struct candidate *c)
{
	const char *name = *c->container ? c->container : c->path;
	uint64_t hash = 0xcbf29ce484222325;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 0x100000001b3;
	return hash;
}

static bool add(struct processes *p, const struct candidate *c,
		const struct shared_owner *owner, int socket)
{
	char container[PART_BYTES + 1];
	struct process new = { .pid = owner->pid,
			       .start = owner->start,
			       .socket = socket,
			       .container = container_of(c) },
		       *all;

	part(container, c->container);
	snprintf(new.id, sizeof(new.id), "%s:%s%s%d:%llu", host, container,
		 *container ? ":" : "", owner->pid, owner->start);
	if (p->id && strcmp(p->id, new.id))
		return false;
	all = realloc(p->all, (p->n + 1) * sizeof(*all));
	if (!all)
		return false;
	p->all = all;
	if (asprintf(&new.path, "%s/%s", c->path, c->name) < 0)
		return false;
	note_clean(new.path); /* it is only to be shown */
	all[p->n++] = new;
	return true;
}

/* Who owns a folder may fill it, but not the list of all. */
static bool has_room(struct processes *p, const char *folder)
{
	if (!p->folder || strcmp(p->folder, folder)) {
		free(p->folder);
		p->folder = strdup(folder);
		p->in_folder = 0;
	}
	return p->folder && p->in_folder < MOST_OF_FOLDER &&
	       p->n < MOST_PROCESSES;
}

static bool found(const struct candidate *c, void *arg)
{
	struct processes *p = arg;
	struct shared_owner owner;
	int fd;

	if ((p->container && strcmp(p->container, c->container)) ||
	    (p->inner && p->inner != c->inner))
		return false;
	if (!p->pid && !p->id && !has_room(p, c->path)) {
		p->left_out++;
		return false;
	}
	fd = folders_open(c->dir, c->name, O_PATH);
	if (fd < 0)
		return false;
	if (!identify(c, fd, &owner) || has(p, owner.pid) ||
	    (p->pid && p->pid != owner.pid) || !add(p, c, &owner, fd))
		close(fd);
	else
		p->in_folder++;
	return (p->pid || p->id) && p->n;
}

static int by_pid(const void *a, const void *b)
{
	return ((const struct process *)a)->pid -
	       ((const struct process *)b)->pid;
}

/* the number in an ID, or 0: "HOST:PID:START", also with a container behind the host */
static pid_t pid_of(const char *id)
{
	const char *start = strrchr(id, ':');

	while (start && start > id && isdigit((unsigned char)start[-1]))
		start--;
	return start ? (pid_t)strtol(start, NULL, 10) : 0;
}

/* Of a folder only the socket with its number is looked at, if it is known who is meant. */
void processes_get(struct processes *p, char *const *patterns)
{
	if (p->pid || p->id) {
		p->inner = proc_inner(p->pid ? p->pid : pid_of(p->id));
		if (!p->inner)
			return; /* it is gone */
	}
	for (; *patterns; patterns++)
		if (folders_each(*patterns, found, p))
			break;
	if (p->n)
		qsort(p->all, p->n, sizeof(*p->all), by_pid);
	if (p->left_out)
		note("too many processes: %u sockets are left out",
		     p->left_out);
}

bool process_caller(int fd, char *const *patterns, struct processes *p)
{
	struct shared_owner owner;
	bool is_it;
	int pidfd;

	if (!listener(fd, &owner, &pidfd))
		return false;
	p->pid = owner.pid;
	processes_get(p, patterns);
	is_it = p->n && p->all->start == owner.start && is_alive(pidfd);
	close(pidfd);
	return is_it;
}

void processes_free(struct processes *p)
{
	for (size_t i = 0; i < p->n; i++) {
		close(p->all[i].socket);
		free(p->all[i].path);
	}
	free(p->folder);
	free(p->all);
}
