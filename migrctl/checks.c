// SPDX-License-Identifier: GPL-2.0
#include "checks.h"

#include <ctype.h>
#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "layer.h"

#ifndef SYS /* a test has its own */
#define SYS "/sys"
#endif
#ifndef MEMINFO
#define MEMINFO "/proc/meminfo"
#endif
#define MODULE SYS "/module/rdma_rxe"

enum {
	MOST_DEEP = 4096, /* processes above one another */
};

/* the first line; "" if it cannot be read */
static void line_of(const char *path, char *line, size_t bytes)
{
	FILE *f = fopen(path, "re");

	*line = 0;
	if (f && fgets(line, (int)bytes, f))
		line[strcspn(line, "\n")] = 0;
	if (f)
		fclose(f);
}

/* what follows KEY in a file of such lines; "" if there is none */
static void value_of(const char *path, const char *key, char *value,
		     size_t bytes)
{
	FILE *f = fopen(path, "re");
	char line[8192];
	size_t n = strlen(key);

	*value = 0;
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, n)) {
			line[strcspn(line, "\n")] = 0;
			snprintf(value, bytes, "%s",
				 line + n + strspn(line + n, " \t:"));
			break;
		}
	if (f)
		fclose(f);
}

static long number_of(const char *path, const char *key)
{
	char value[64];

	value_of(path, key, value, sizeof(value));
	return strtol(value, NULL, 10);
}

static long of_process(pid_t pid, const char *key)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	return number_of(path, key);
}

/* ---- its processes --------------------------------------------------------- */

static bool cgroup_of(pid_t pid, char *path, size_t bytes)
{
	char line[PATH_MAX], proc[64];

	snprintf(proc, sizeof(proc), "/proc/%d/cgroup", pid);
	value_of(proc, "0::", line, sizeof(line));
	snprintf(path, bytes, SYS "/fs/cgroup%s", line);
	return *line == '/';
}

/* in one group; who is gone meanwhile has nobody any more */
static bool each_in(const char *file, bool (*f)(pid_t pid, void *arg),
		    void *arg)
{
	FILE *procs = fopen(file, "re");
	bool goes_on = true;
	int pid;

	while (procs && goes_on && fscanf(procs, "%d", &pid) == 1)
		goes_on = f(pid, arg);
	if (procs)
		fclose(procs);
	return goes_on;
}

/*
 * For all that are in its cgroup, or in one below it, which its programs may make, until that is
 * false. False if there are none, too.
 */
static bool each_process(pid_t init, bool (*f)(pid_t pid, void *arg), void *arg)
{
	char path[PATH_MAX + 64], *const roots[] = { path, NULL };
	bool goes_on = true, some = false;
	FTSENT *e;
	FTS *t = cgroup_of(init, path, sizeof(path))
			 ? fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL)
			 : NULL;

	while (t && goes_on && (e = fts_read(t))) {
		if (e->fts_info != FTS_F ||
		    strcmp(e->fts_name, "cgroup.procs") != 0)
			continue;
		some = true;
		goes_on = each_in(e->fts_path, f, arg);
	}
	if (t)
		fts_close(t);
	return goes_on && some;
}

/* CRIU dumps the tree below the container's first process, and nothing else. */
static bool is_below(pid_t pid, pid_t init)
{
	for (int i = 0; pid > 0 && i < MOST_DEEP; i++) {
		if (pid == init)
			return true;
		pid = (pid_t)of_process(pid, "PPid:");
	}
	return false;
}

struct look {
	struct move *m;
	pid_t init;
};

static bool is_its(pid_t pid, void *arg)
{
	const struct look *l = arg;
	char comm[64], path[64];

	/* who ends meanwhile is nobody's */
	if (is_below(pid, l->init) || !of_process(pid, "Pid:"))
		return true;
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	line_of(path, comm, sizeof(comm));
	return move_fails(
		l->m,
		"process %d (%s) is in %s, but no child of its first process, as one of `runc exec`: CRIU would lose it; end it first",
		pid, comm, l->m->name);
}

static pid_t init_of(const json_t *about)
{
	return (pid_t)json_integer_value(json_object_get(about, "pid"));
}

bool checks_processes(struct move *m, const json_t *about)
{
	struct look l = { m, init_of(about) };

	*m->reason = 0;
	if (each_process(l.init, is_its, &l))
		return true;
	return *m->reason
		       ? false
		       : move_fails(
				 m,
				 "the processes of %s are not to be found: it has no cgroup of version 2",
				 m->name);
}

static bool kill_tracer(pid_t pid, void *arg)
{
	long tracer = of_process(pid, "TracerPid:");

	(void)arg;
	if (tracer > 1)
		kill((pid_t)tracer, SIGKILL);
	return true;
}

void checks_kill_tracers(const json_t *about)
{
	each_process(init_of(about), kill_tracer, NULL);
}

/* ---- what it needs --------------------------------------------------------- */

/* the RDMA devices that a process has open: by name */
static void devices_of(pid_t pid, json_t *all)
{
	char path[PATH_MAX], target[64], name[64];
	struct dirent *de;
	ssize_t n;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	d = opendir(path);
	while (d && (de = readdir(d))) {
		n = readlinkat(dirfd(d), de->d_name, target,
			       sizeof(target) - 1);
		if (n < 0)
			continue;
		target[n] = 0;
		if (strncmp(target, "/dev/infiniband/uverbs", 22) != 0)
			continue;
		snprintf(path, sizeof(path),
			 SYS "/class/infiniband_verbs/%s/ibdev", target + 16);
		line_of(path, name, sizeof(name));
		if (*name)
			json_object_set_new(all, name, json_true());
	}
	if (d)
		closedir(d);
}

struct needs {
	json_t *devices;
	json_int_t bytes;
};

static bool count(pid_t pid, void *arg)
{
	struct needs *n = arg;

	devices_of(pid, n->devices);
	n->bytes += of_process(pid, "VmRSS:") * 1024L;
	return true;
}

json_t *checks_needs(const json_t *about)
{
	struct needs n = { .devices = json_object() };
	char flags[8192], module[64];
	struct utsname u;

	uname(&u);
	value_of("/proc/cpuinfo", "flags", flags, sizeof(flags));
	*module = 0;
	/* the layer does with any that there is */
	if (!layer_moves(about))
		line_of(MODULE "/srcversion", module, sizeof(module));
	each_process(init_of(about), count, &n);
	return json_pack("{sssssssssosIsb}", "kernel", u.release, "machine",
			 u.machine, "cpu", flags, "module", module, "devices",
			 n.devices, "bytes", n.bytes, "layer",
			 layer_moves(about));
}

/* All that it has is dumped into a file system that may have half of the memory that there is. */
static bool has_room_here(struct move *m, const json_t *about)
{
	struct needs n = { .devices = json_object() };
	json_int_t room = number_of(MEMINFO, "MemAvailable:") * 1024LL,
		   half = number_of(MEMINFO, "MemTotal:") * 512LL;

	each_process(init_of(about), count, &n);
	json_decref(n.devices);
	if (room > half)
		room = half;
	return n.bytes <= room ||
	       move_fails(
		       m,
		       "%s needs its %lld MiB of memory here once more for a moment, and there are %lld: make room",
		       m->name, (long long)n.bytes >> 20,
		       (long long)room >> 20);
}

bool checks_here(struct move *m, const json_t *about)
{
	return checks_processes(m, about) && has_room_here(m, about);
}

/* ---- is it there? ---------------------------------------------------------- */

static bool same_kernel(struct move *m, const json_t *needs)
{
	const char *kernel = talk_text(needs, "kernel"),
		   *machine = talk_text(needs, "machine");
	struct utsname u;

	uname(&u);
	return (!strcmp(u.release, kernel) && !strcmp(u.machine, machine)) ||
	       move_fails(
		       m,
		       "the kernel here is %s (%s), and %s runs on %s (%s): start the same one",
		       u.release, u.machine, m->name, kernel, machine);
}

static bool has_flag(const char *flags, const char *flag, size_t n)
{
	for (const char *at = flags; (at = strstr(at, flag)); at += n)
		if ((at == flags || at[-1] == ' ') && (!at[n] || at[n] == ' '))
			return true;
	return false;
}

/* Libraries choose by what there was when they were started. */
static bool same_processor(struct move *m, const json_t *needs)
{
	char flags[8192], flag[32];
	const char *at = talk_text(needs, "cpu");
	size_t n;

	value_of("/proc/cpuinfo", "flags", flags, sizeof(flags));
	for (; *at; at += n + (at[n] == ' ')) {
		n = strcspn(at, " ");
		if (!n || n >= sizeof(flag))
			continue;
		snprintf(flag, sizeof(flag), "%.*s", (int)n, at);
		if (!has_flag(flags, flag, n))
			return move_fails(
				m,
				"the processors here have no '%s', which %s may use: move it to a host with the same kind, or start it where there is none",
				flag, m->name);
	}
	return true;
}

/* which is what the layer takes if none has the name */
static bool has_one_device(void)
{
	DIR *d = opendir(SYS "/class/infiniband");
	struct dirent *de;
	int n = 0;

	while (d && (de = readdir(d)))
		n += *de->d_name != '.';
	if (d)
		closedir(d);
	return n == 1;
}

static bool has_devices(struct move *m, const json_t *devices, bool by_layer)
{
	char path[PATH_MAX];
	const char *name;
	json_t *any;

	json_object_foreach((json_t *)devices, name, any)
	{
		(void)any;
		if (strlen(name) > 63 || strchr(name, '/') || *name == '.')
			return move_fails(m, "that is no name of a device");
		snprintf(path, sizeof(path), SYS "/class/infiniband/%s", name);
		if (access(path, F_OK) && !(by_layer && has_one_device()))
			return move_fails(
				m,
				"there is no RDMA device %s here, which %s has open: make one (rdma link add), or name it so",
				name, m->name);
	}
	return true;
}

static bool same_module(struct move *m, const json_t *needs)
{
	const char *wanted = talk_text(needs, "module");
	char module[64];

	if (!*wanted || !json_object_size(json_object_get(needs, "devices")))
		return true;
	if (access(MODULE "/parameters/migr_key", F_OK))
		return move_fails(
			m, "the rdma_rxe here cannot migrate: load ours");
	line_of(MODULE "/srcversion", module, sizeof(module));
	return !strcmp(module, wanted) ||
	       move_fails(
		       m,
		       "the rdma_rxe here is another one than where %s runs: %s, and there %s",
		       m->name, module, wanted);
}

/* the images, and what comes of them, at the same time */
static bool has_room(struct move *m, const json_t *needs)
{
	json_int_t bytes = json_integer_value(json_object_get(needs, "bytes"));
	long long there = number_of(MEMINFO, "MemAvailable:") * 1024LL;

	return (bytes >= 0 && bytes <= there / 2) ||
	       move_fails(
		       m,
		       "%s needs twice its %lld MiB of memory for a moment, and here are %lld: make room",
		       m->name, (long long)bytes >> 20, there >> 20);
}

bool checks_there(struct move *m, const json_t *needs)
{
	return same_kernel(m, needs) && same_processor(m, needs) &&
	       has_devices(m, json_object_get(needs, "devices"),
			   json_is_true(json_object_get(needs, "layer"))) &&
	       same_module(m, needs) && has_room(m, needs);
}
