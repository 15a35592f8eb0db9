// SPDX-License-Identifier: GPL-2.0
#include "listen.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "note.h"

enum {
	QUEUE = 64
};

static int listen_on(const struct addrinfo *a)
{
	int fd = socket(a->ai_family,
			SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int on = 1, off = 0;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (a->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (!bind(fd, a->ai_addr, a->ai_addrlen) && !listen(fd, QUEUE))
		return fd;
	close(fd);
	return -1;
}

/* Without an address: IPv6 with IPv4 in it, or IPv4 where there is no other. */
int listen_on_port(const char *address, const char *port)
{
	const struct addrinfo hints = {
		.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV,
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
	};
	const char *const all[] = { "::", "0.0.0.0" };
	struct addrinfo *a;
	int fd = -1, ret = 0;

	for (int i = 0; fd < 0 && i < (address ? 1 : 2); i++) {
		ret = getaddrinfo(address ? address : all[i], port, &hints, &a);
		if (ret)
			break;
		fd = listen_on(a);
		freeaddrinfo(a);
	}
	if (fd < 0)
		note("cannot listen on %s, port %s: %s",
		     address ? address : "any address", port,
		     ret ? gai_strerror(ret) : strerror(errno));
	return fd;
}

static int stream(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* however long the path of that folder is */
static void path_at(struct sockaddr_un *addr, int dir, const char *name)
{
	snprintf(addr->sun_path, sizeof(addr->sun_path), "/proc/self/fd/%d/%s",
		 dir, name);
}

/* Nothing is there, or a socket at which nobody listens any more. */
static bool is_free(const struct sockaddr_un *addr)
{
	bool refused = false;
	struct stat st;
	int fd;

	if (lstat(addr->sun_path, &st))
		return true;
	if (!S_ISSOCK(st.st_mode))
		return false;
	fd = stream();
	if (fd >= 0) {
		refused = connect(fd, (const struct sockaddr *)addr,
				  sizeof(*addr)) &&
			  errno == ECONNREFUSED;
		close(fd);
	}
	return refused;
}

/*
 * Whoever calls meanwhile finds the old one, or the new one when everybody may call it. If
 * another daemon has come to be there since it was looked at, that one stays.
 */
static bool put_in_place(int dir, const char *name, const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	if (!renameat2(dir, name, AT_FDCWD, path, RENAME_NOREPLACE))
		return true;
	if (errno != EEXIST ||
	    renameat2(dir, name, AT_FDCWD, path, RENAME_EXCHANGE))
		return false;
	path_at(&addr, dir, name);
	if (is_free(&addr))
		return !unlinkat(dir, name, 0);
	renameat2(dir, name, AT_FDCWD, path, RENAME_EXCHANGE);
	errno = EADDRINUSE;
	return false;
}

static void close_quietly(int fd)
{
	int err = errno;

	close(fd);
	errno = err;
}

/* @dir: the folder of @path, in which it has another name until then */
static int listen_in(int dir, const char *path, mode_t mode)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int err, fd = stream();
	char name[32];

	if (fd < 0)
		return -1;
	snprintf(name, sizeof(name), ".migrd.%d", getpid());
	path_at(&addr, dir, name);
	unlinkat(dir, name, 0);
	if (!bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) &&
	    !chmod(addr.sun_path, mode) && !listen(fd, QUEUE) &&
	    put_in_place(dir, name, path))
		return fd;
	err = errno;
	unlinkat(dir, name, 0);
	errno = err;
	close_quietly(fd);
	return -1;
}

static int folder_of(const char *path)
{
	char copy[PATH_MAX];

	strcpy(copy, path);
	return open(dirname(copy), O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int listen_at(const struct sockaddr_un *addr, mode_t mode)
{
	int dir, fd;

	if (!is_free(addr)) {
		errno = EADDRINUSE;
		return -1;
	}
	dir = folder_of(addr->sun_path);
	if (dir < 0)
		return -1;
	fd = listen_in(dir, addr->sun_path, mode);
	close_quietly(dir);
	return fd;
}

int listen_at_path(const char *path, mode_t mode)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = -1;

	errno = ENAMETOOLONG;
	if (strlen(path) < sizeof(addr.sun_path)) {
		strcpy(addr.sun_path, path);
		fd = listen_at(&addr, mode);
	}
	if (fd < 0)
		note("cannot listen at %s: %s", path, strerror(errno));
	return fd;
}

int dial_path(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd;

	errno = ENAMETOOLONG;
	if (strlen(path) >= sizeof(addr.sun_path))
		return -1;
	strcpy(addr.sun_path, path);
	fd = stream();
	if (fd < 0 ||
	    !connect(fd, (const struct sockaddr *)&addr, sizeof(addr)))
		return fd;
	close_quietly(fd);
	return -1;
}
