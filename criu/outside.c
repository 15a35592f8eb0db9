// SPDX-License-Identifier: GPL-2.0
/*
 * Processes that are not dumped, but have a context that is: the server that has
 * opened the device and forked, for one. Its QPs would stay stopped, here, and
 * run on elsewhere.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "dump.h"

static bool is_dumped(pid_t pid)
{
	for (const struct dump_task *t = dump_tasks; t; t = t->next)
		if (t->scan.pid == pid)
			return true;
	return false;
}

/* CRIU, or one of its children, which have its files for a while */
static bool is_criu(pid_t pid)
{
	while (pid > 1 && pid != getpid())
		pid = rp_task_parent(pid);
	return pid == getpid();
}

/* CRIU's own are asked about last: it takes the longest */
static int check_among(const struct dump_context *c, pid_t pid, pid_t tid,
		       int fd, dev_t rdev)
{
	int order;

	for (; c; c = c->next) {
		if (c->dev.rdev != rdev)
			continue;
		order = syscall(SYS_kcmp, getpid(), tid, KCMP_FILE, c->fd, fd);
		if (order > 0 || (order < 0 && errno != EPERM) || is_criu(pid))
			continue;
		if (order < 0)
			rp_err("cannot tell whether fd %d of pid %d, which is not dumped, is a context of pid %d (fd %d)",
			       fd, pid, c->task->pid, c->number);
		else
			rp_err("pid %d, fd %d (%s): pid %d, which is not dumped, has this verbs context, too (fd %d): that cannot be migrated",
			       c->task->pid, c->number, c->dev.ibdev, pid, fd);
		return -EOPNOTSUPP;
	}
	return 0;
}

static int check_file(pid_t pid, pid_t tid, int fd, dev_t rdev)
{
	return check_among(dump_contexts, pid, tid, fd, rdev)
		       ?: check_among(dump_foreign, pid, tid, fd, rdev);
}

/* Processes come and go: what is not there any more has nothing */
static int check_files(pid_t pid, pid_t tid)
{
	struct dirent *de;
	char path[64];
	int err = 0;
	dev_t rdev;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/fd", pid, tid);
	d = opendir(path);
	while (d && !err && (de = readdir(d)))
		if (de->d_name[0] != '.' &&
		    rp_is_device(dirfd(d), de->d_name, &rdev))
			err = check_file(pid, tid, atoi(de->d_name), rdev);
	if (d)
		closedir(d);
	return err;
}

/* Most threads have the files of the first one, which may have ended */
static int check_process(pid_t pid)
{
	struct dirent *de;
	char path[32];
	int err = 0;
	pid_t tid;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	while (d && !err && (de = readdir(d))) {
		tid = atoi(de->d_name);
		if (tid > 0 &&
		    (tid == pid || syscall(SYS_kcmp, pid, tid, KCMP_FILES)))
			err = check_files(pid, tid);
	}
	if (d)
		closedir(d);
	return err;
}

/*
 * Threads of the kernel have no files, and there are more of them than of anything else. They are
 * children of number 2, if that is one (PF_KTHREAD), and so may helpers be that the kernel has
 * started, which have a program.
 */
static char *kernels_children(void)
{
	unsigned int flags = 0;
	char *line = NULL;
	size_t bytes = 0;
	FILE *f;

	f = fopen("/proc/2/stat", "re");
	if (!f)
		return NULL;
	if (fscanf(f, "2 (kthreadd) %*c %*d %*d %*d %*d %*d %u", &flags) != 1)
		flags = 0;
	fclose(f);
	f = flags & 0x200000 ? fopen("/proc/2/task/2/children", "re") : NULL;
	if (f && getline(&line, &bytes, f) < 0) {
		free(line);
		line = NULL;
	}
	if (f)
		fclose(f);
	return line;
}

/* @rest: of the list, which is in the order in which we ask, or else we look in vain */
static bool is_kernels(char **rest, pid_t pid)
{
	char path[32], to[2], *end;
	long child;

	while ((child = strtol(*rest, &end, 10)) && child < pid)
		*rest = end;
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return child == pid && readlink(path, to, sizeof(to)) < 0 &&
	       errno == ENOENT;
}

/* ---- is there anybody? --------------------------------------------------- */

/* Which descriptors of CRIU's, ours and those that it has of tasks, are files of contexts? */
static void count_ours(void)
{
	const struct dump_file *f;
	struct dump_context *c;
	struct dirent *de;
	dev_t rdev;
	DIR *d;

	for (c = dump_contexts; c; c = c->next)
		c->nr_ours = 0;
	d = opendir("/proc/self/fd");
	while (d && (de = readdir(d))) {
		if (!rp_is_device(dirfd(d), de->d_name, &rdev))
			continue;
		f = dump_find_file(atoi(de->d_name));
		if (f && f->context && f->type == RXE_MIGR_CONTEXT)
			f->context->nr_ours++;
	}
	if (d)
		closedir(d);
}

/* of the same device, which is what can be told of rings before there is an image */
static bool are_together(const struct dump_context *a,
			 const struct dump_context *b)
{
	return a->task == b->task && a->dev.rdev == b->dev.rdev;
}

static size_t count_maps(const struct dump_context *c)
{
	size_t nr = 0;

	for (size_t i = 0; i < c->task->nr_maps; i++)
		nr += c->task->maps[i].shared &&
		      c->task->maps[i].rdev == c->dev.rdev;
	return nr;
}

/*
 * Whoever else has one of the files of this task and device, the kernel counts him: this one
 * counts at most as many as there are. But those who share a table it counts only once. 0: it
 * does not say.
 */
static int64_t count_others(struct dump_context *c)
{
	int64_t others = -(int64_t)count_maps(c);
	struct rxe_migr_resolve_resp resp;
	const struct dump_context *first = c;

	for (; c; c = c->next) {
		if (!are_together(c, first))
			continue;
		if (c->table_shared || migr_cmd_resolve(c->fd, c->fd, &resp) ||
		    !resp.users)
			return -1;
		others += resp.users;
		others -= c->nr_own + c->nr_ours + (c->guard >= 0);
	}
	return others;
}

static bool is_first(const struct dump_context *c)
{
	const struct dump_context *first = dump_contexts;

	while (!are_together(first, c))
		first = first->next;
	return first == c;
}

/* How many there are, at least, with whom we do not reckon; -1: who knows */
static int64_t count_all_others(void)
{
	int64_t n, all = 0;

	count_ours();
	for (struct dump_context *c = dump_contexts; c; c = c->next) {
		n = is_first(c) ? count_others(c) : 0;
		if (n < 0)
			return -1;
		all += n;
	}
	return dump_foreign ? -1 : all;
}

int dump_check_outside(void)
{
	static char none[] = "";
	char *children, *rest;
	const int64_t others = count_all_others();
	struct dirent *de;
	int err = 0;
	pid_t pid;
	DIR *d;

	if (!others) {
		rp_info("nobody else has its contexts");
		return 0;
	}
	d = opendir("/proc");
	if (!d)
		return -errno;
	children = kernels_children();
	rest = children ?: none;
	while (!err && (de = readdir(d))) {
		pid = atoi(de->d_name);
		if (pid > 0 && pid != getpid() && !is_dumped(pid) &&
		    !is_kernels(&rest, pid))
			err = check_process(pid);
	}
	closedir(d);
	free(children);
	if (!err && others > 0)
		rp_warn("verbs contexts are used %lld times by whom nobody finds: in a message on its way, or a mapping of a process that is not dumped",
			(long long)others);
	return err;
}
