// SPDX-License-Identifier: GPL-2.0
/* What /proc tells about tasks, their files and mappings */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "rdma_plugin.h"

enum rp_kind rp_char_kind(dev_t rdev)
{
	char path[64], link[256];
	ssize_t n;

	snprintf(path, sizeof(path), "/sys/dev/char/%u:%u", major(rdev),
		 minor(rdev));
	n = readlink(path, link, sizeof(link) - 1);
	if (n < 0)
		return RP_OTHER;
	link[n] = '\0';
	if (strstr(link, "/infiniband_verbs/uverbs"))
		return RP_UVERBS;
	if (strstr(link, "/misc/rdma_cm"))
		return RP_CM;
	return RP_OTHER;
}

enum rp_kind rp_link_kind(const char *target)
{
	if (!strcmp(target, "anon_inode:[infinibandevent]"))
		return RP_EVENT;
	if (!strcmp(target, "/memfd:" RP_STANDIN_NAME " (deleted)"))
		return RP_STANDIN;
	if (!strcmp(target, "/memfd:" RP_SUSPENDED_NAME " (deleted)"))
		return RP_SUSPENDED;
	return RP_OTHER;
}

/* start-end perms offset dev inode path */
bool rp_parse_map(const char *line, struct rp_map *map)
{
	unsigned long inode;
	char perms[5];

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %lu",
		   &map->start, &map->end, perms, &map->offset, &inode) != 5)
		return false;
	if (!inode || map->start >= map->end)
		return false;
	map->shared = perms[3] == 's';
	map->prot = (perms[0] == 'r' ? PROT_READ : 0) |
		    (perms[1] == 'w' ? PROT_WRITE : 0);
	return true;
}

static void *grow(void *array, size_t nr, size_t size)
{
	/* capacities are powers of two, so they need not be stored */
	if (nr & (nr - 1) || (nr && nr < 8))
		return array;
	return reallocarray(array, nr ? nr * 2 : 8, size);
}

/*
 * The sign names its process, by the pid that it has for itself: a child of
 * fork() has its parent's sign open, and holds still or not.
 */
static bool is_own_sign(const struct rp_task *task, int dirfd, const char *name)
{
	char want[16], got[sizeof(want)];
	ssize_t n = -1;
	int fd;

	/* anything can have the name, and only a memfd, or its like, has seals */
	fd = openat(dirfd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (fcntl(fd, F_GET_SEALS) >= 0)
		n = read(fd, got, sizeof(got));
	close(fd);
	snprintf(want, sizeof(want), "%d\n", rp_task_vpid(task->pid));
	return n == (ssize_t)strlen(want) && !memcmp(got, want, n);
}

/* A device's number needs no answer from a file server that may be away */
bool rp_is_device(int dirfd, const char *name, dev_t *rdev)
{
	struct statx st;

	if (statx(dirfd, name, AT_STATX_DONT_SYNC, STATX_TYPE, &st) ||
	    !S_ISCHR(st.stx_mode))
		return false;
	*rdev = makedev(st.stx_rdev_major, st.stx_rdev_minor);
	return true;
}

static int scan_fd(struct rp_task *task, int dirfd, const char *name)
{
	struct rp_fd f = { .fd = atoi(name) };
	char link[64];
	ssize_t n;
	void *p;

	if (f.fd > task->max_fd)
		task->max_fd = f.fd;
	n = readlinkat(dirfd, name, link, sizeof(link) - 1);
	if (n < 0) /* not all that are looked at are frozen: it may be closed */
		return errno == ENOENT ? 0 : -errno;
	link[n] = '\0';
	f.kind = rp_link_kind(link);
	if (f.kind == RP_OTHER) {
		/* only a device can be ours: others have no path below /dev */
		if (!rp_is_device(dirfd, name, &f.rdev))
			return 0;
		f.kind = rp_char_kind(f.rdev);
	}
	if (f.kind == RP_SUSPENDED)
		task->suspended |= is_own_sign(task, dirfd, name);
	if (f.kind == RP_OTHER || f.kind == RP_SUSPENDED)
		return 0;
	p = grow(task->fds, task->nr_fds, sizeof(f));
	if (!p)
		return -ENOMEM;
	task->fds = p;
	task->fds[task->nr_fds++] = f;
	return 0;
}

static int scan_fds(struct rp_task *task)
{
	struct dirent *de;
	char path[32];
	int err = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", task->pid);
	d = opendir(path);
	if (!d)
		return -errno;
	while (!err && (de = readdir(d)))
		if (de->d_name[0] != '.')
			err = scan_fd(task, dirfd(d), de->d_name);
	closedir(d);
	return err;
}

static int add_map(struct rp_task *task, const struct rp_map *map)
{
	void *p = grow(task->maps, task->nr_maps, sizeof(*map));

	if (!p)
		return -ENOMEM;
	task->maps = p;
	task->maps[task->nr_maps++] = *map;
	return 0;
}

/* what such a line says of the file: dev, inode, path */
static const char *file_in(const char *line)
{
	for (int i = 0; i < 3; i++)
		line += strcspn(line, " ") + 1;
	return line;
}

/* Most mappings are of the same few libraries, one after the other. */
static int scan_maps(struct rp_task *task)
{
	char path[96], *line = NULL, *no_device = NULL;
	size_t size = 0;
	struct rp_map map;
	int err = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", task->pid);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (!err && getline(&line, &size, f) > 0) {
		if (!rp_parse_map(line, &map) ||
		    (no_device && !strcmp(file_in(line), file_in(no_device))))
			continue;
		snprintf(path, sizeof(path),
			 "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, task->pid,
			 map.start, map.end);
		if (rp_is_device(AT_FDCWD, path, &map.rdev)) {
			if (rp_char_kind(map.rdev) == RP_UVERBS)
				err = add_map(task, &map);
			continue;
		}
		free(no_device);
		no_device = line;
		line = NULL;
		size = 0;
	}
	free(no_device);
	free(line);
	fclose(f);
	return err;
}

/* Of whom nobody can tell it has: who has none is not looked at any more. */
static bool thread_has_memory(int tasks, const char *tid)
{
	char path[NAME_MAX + 8], pages;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/statm", tid);
	fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return !rp_is_gone(-errno);
	n = read(fd, &pages, 1);
	if (n < 0)
		n = !rp_is_gone(-errno);
	else
		n = n && pages != '0';
	close(fd);
	return n;
}

bool rp_task_has_memory(pid_t pid)
{
	struct dirent *de;
	char path[64];
	bool has;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	if (!d)
		return !rp_is_gone(-errno);
	has = false;
	while (!has && (de = readdir(d)))
		has = *de->d_name != '.' &&
		      thread_has_memory(dirfd(d), de->d_name);
	closedir(d);
	return has;
}

static int scan(pid_t pid, struct rp_task *task,
		int (*and_then)(struct rp_task *task))
{
	int err;

	memset(task, 0, sizeof(*task));
	task->pid = pid;
	task->max_fd = -1;
	err = scan_fds(task);
	if (!err && and_then)
		err = and_then(task);
	if (err) {
		rp_err("cannot look at the files of pid %d: %s", pid,
		       strerror(-err));
		rp_task_free(task);
	}
	return err;
}

int rp_task_scan(pid_t pid, struct rp_task *task)
{
	return scan(pid, task, scan_maps);
}

int rp_task_scan_files(pid_t pid, struct rp_task *task)
{
	return scan(pid, task, NULL);
}

void rp_task_free(struct rp_task *task)
{
	free(task->fds);
	free(task->maps);
	memset(task, 0, sizeof(*task));
}

/* The rest of the line of /proc/PID/`file` that starts with `key` */
static bool proc_line(pid_t pid, const char *file, const char *key, char *buf,
		      size_t size)
{
	size_t n = strlen(key);
	bool found = false;
	char path[32];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (!found && fgets(buf, size, f))
		found = !strncmp(buf, key, n);
	fclose(f);
	if (found)
		memmove(buf, buf + n, strlen(buf + n) + 1);
	return found;
}

static bool status_line(pid_t pid, const char *key, char *buf, size_t size)
{
	return proc_line(pid, "status", key, buf, size);
}

pid_t rp_task_parent(pid_t pid)
{
	char line[64];

	return status_line(pid, "PPid:", line, sizeof(line)) ? atoi(line) : -1;
}

int rp_task_pins(pid_t pid, struct rp_pins *pins)
{
	char line[256], limit[32];

	*pins = (struct rp_pins){ .limit = UINT64_MAX };
	if (!status_line(pid, "CapEff:", line, sizeof(line)))
		return -ESRCH;
	pins->unlimited = strtoull(line, NULL, 16) & 1ULL << CAP_IPC_LOCK;
	if (status_line(pid, "VmPin:", line, sizeof(line)))
		pins->pinned = strtoull(line, NULL, 10) << 10;
	if (!proc_line(pid, "limits", "Max locked memory", line,
		       sizeof(line)) ||
	    sscanf(line, "%31s", limit) != 1)
		return -ESRCH;
	if (strcmp(limit, "unlimited"))
		pins->limit = strtoull(limit, NULL, 10);
	return 0;
}

bool rp_pins_fit(const struct rp_pins *pins)
{
	return pins->unlimited || pins->pinned <= pins->limit;
}

pid_t rp_task_vpid(pid_t pid)
{
	char line[256], *last;

	if (!status_line(pid, "NSpid:", line, sizeof(line)))
		return -1;
	last = strrchr(line, '\t');
	return last ? atoi(last) : -1;
}

bool rp_task_same_userns(pid_t pid)
{
	struct stat own, its;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	return !stat("/proc/self/ns/user", &own) && !stat(path, &its) &&
	       own.st_dev == its.st_dev && own.st_ino == its.st_ino;
}

bool rp_task_dying(pid_t pid)
{
	static const char *const pending[] = { "SigPnd:", "ShdPnd:" };
	unsigned int flags;
	char line[512], *p;
	size_t n;
	FILE *f;

	for (int i = 0; i < 2; i++) {
		if (!status_line(pid, pending[i], line, sizeof(line)))
			return true; /* gone */
		if (strtoull(line, NULL, 16) & 1ULL << (SIGKILL - 1))
			return true;
	}
	snprintf(line, sizeof(line), "/proc/%d/stat", pid);
	f = fopen(line, "re");
	if (!f)
		return true;
	/* a task's name may have anything in it */
	n = fread(line, 1, sizeof(line) - 1, f);
	fclose(f);
	line[n] = '\0';
	p = strrchr(line, ')');
	if (!p)
		return !n;
	if (p[1] && (p[2] == 'Z' || p[2] == 'X'))
		return true;
	/* state ppid pgrp session tty tpgid flags; 4 is PF_EXITING */
	return sscanf(p + 2, "%*c %*d %*d %*d %*d %*d %u", &flags) == 1 &&
	       flags & 4;
}

int rp_take_fd(pid_t pid, int fd)
{
	int pidfd, ret;

	pidfd = syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		return -1;
	ret = syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	close(pidfd);
	return ret;
}

int rp_compare_files(int a, int b)
{
	pid_t pid = getpid();

	int order = syscall(SYS_kcmp, pid, pid, KCMP_FILE, a, b);

	return order == 1 ? -1 : order; /* 2 is more */
}
