// SPDX-License-Identifier: GPL-2.0
#include "folders.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/openat2.h>

#include "note.h"

enum {
	MOST_ENTRIES =
		4096, /* of a folder; its owner may make as many as he likes */
	PID_LIMIT = 1 << 22,
};

struct walk {
	struct candidate c;
	found_fn found;
	void *arg;
};

int folders_open(int dir, const char *name, int flags)
{
	struct open_how how = {
		.flags = (unsigned int)flags | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH,
	};

	return (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));
}

bool folders_is_pattern(const char *pattern)
{
	size_t n;

	if (*pattern != '/' || strlen(pattern) >= PATH_MAX / 2)
		return false;
	while (*pattern) {
		pattern += strspn(pattern, "/");
		n = strcspn(pattern, "/");
		if (n > NAME_MAX || (n == 1 && *pattern == '.') ||
		    (n == 2 && !strncmp(pattern, "..", 2)))
			return false;
		pattern += n;
	}
	return true;
}

/* PID.sock, as the library writes it */
static bool is_socket_name(const char *name, pid_t *pid)
{
	char *end;
	long n;

	if (!isdigit((unsigned char)*name) || *name == '0')
		return false;
	errno = 0;
	n = strtol(name, &end, 10);
	if (errno || n > PID_LIMIT || strcmp(end, ".sock"))
		return false;
	*pid = (pid_t)n;
	return true;
}

/* what may not be there, or be something else, at any time */
static void complain(const struct walk *w, const char *name)
{
	if (errno != ENOENT && errno != ENOTDIR)
		note("%s/%s: %s", w->c.path, name,
		     errno == ELOOP ? "a symbolic link is not followed"
				    : strerror(errno));
}

static DIR *list(int dir)
{
	int fd = folders_open(dir, ".", O_RDONLY | O_DIRECTORY);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d && fd >= 0)
		close(fd);
	return d;
}

static bool sockets(struct walk *w, int dir)
{
	DIR *d = list(dir);
	struct dirent *e;
	bool enough = false;
	int n = 0;

	if (!d)
		return false;
	w->c.dir = dir;
	while (!enough && n++ < MOST_ENTRIES && (e = readdir(d)))
		if (is_socket_name(e->d_name, &w->c.inner)) {
			strcpy(w->c.name, e->d_name);
			enough = w->found(&w->c, w->arg);
		}
	closedir(d);
	return enough;
}

static bool descend(struct walk *w, int dir, const char *rest, bool named);

static bool enter(struct walk *w, int dir, const char *name, const char *rest,
		  bool named)
{
	size_t before = strlen(w->c.path);
	bool enough = false;
	int fd;

	if (before + strlen(name) + NAME_MAX + 2 >= sizeof(w->c.path))
		return false;
	fd = folders_open(dir, name, O_PATH | O_DIRECTORY);
	if (fd < 0) {
		complain(w, name);
		return false;
	}
	sprintf(w->c.path + before, "/%s", name);
	enough = descend(w, fd, rest, named);
	w->c.path[before] = 0;
	close(fd);
	return enough;
}

static bool enter_all(struct walk *w, int dir, const char *pattern,
		      const char *rest, bool named)
{
	DIR *d = list(dir);
	bool enough = false;
	struct dirent *e;
	int n = 0;

	if (!d)
		return false;
	while (!enough && n++ < MOST_ENTRIES && (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
		    fnmatch(pattern, e->d_name, FNM_PERIOD))
			continue;
		if (!named)
			strcpy(w->c.container, e->d_name);
		enough = enter(w, dir, e->d_name, rest, true);
	}
	closedir(d);
	return enough;
}

static bool descend(struct walk *w, int dir, const char *rest, bool named)
{
	char name[NAME_MAX + 1];
	size_t n;

	rest += strspn(rest, "/");
	n = strcspn(rest, "/");
	if (!n)
		return sockets(w, dir);
	memcpy(name, rest, n);
	name[n] = 0;
	if (strpbrk(name, "*?["))
		return enter_all(w, dir, name, rest + n, named);
	return enter(w, dir, name, rest + n, named);
}

bool folders_each(const char *pattern, found_fn found, void *arg)
{
	struct walk w = { .found = found, .arg = arg };
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool enough;

	if (root < 0)
		return false;
	enough = descend(&w, root, pattern, false);
	close(root);
	return enough;
}
