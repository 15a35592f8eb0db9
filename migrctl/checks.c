// SPDX-License-Identifier: GPL-2.0
#include "checks.h"

#include <ctype.h>
#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "layer.h"

#define MODULE "/sys/module/rdma_rxe"

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
	snprintf(path, bytes, "/sys/fs/cgroup%s/cgroup.procs", line);
	return *line == '/';
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

static bool all_are_below(struct move *m, pid_t init, FILE *procs)
{
	char comm[64], path[64];
	int pid;

	while (fscanf(procs, "%d", &pid) == 1) {
		/* who ends meanwhile is nobody's */
		if (is_below(pid, init) || !of_process(pid, "Pid:"))
			continue;
		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		line_of(path, comm, sizeof(comm));
		return move_fails(
			m,
			"process %d (%s) is in %s, but no child of its first process, as one of `runc exec`: CRIU would lose it; end it first",
			pid, comm, m->name);
	}
	return true;
}

static bool processes_are_its(struct move *m, pid_t init)
{
	char path[PATH_MAX + 64];
	FILE *f =
		cgroup_of(init, path, sizeof(path)) ? fopen(path, "re") : NULL;
	bool all;

	if (!f)
		return move_fails(
			m,
			"the processes of %s are not to be found: it has no cgroup of version 2",
			m->name);
	all = all_are_below(m, init, f);
	fclose(f);
	return all;
}

bool checks_here(struct move *m, const json_t *about)
{
	pid_t init = (pid_t)json_integer_value(json_object_get(about, "pid"));

	return processes_are_its(m, init);
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
			 "/sys/class/infiniband_verbs/%s/ibdev", target + 16);
		line_of(path, name, sizeof(name));
		if (*name)
			json_object_set_new(all, name, json_true());
	}
	if (d)
		closedir(d);
}

static void count(pid_t init, json_t *devices, json_int_t *bytes)
{
	char path[PATH_MAX + 64];
	FILE *f =
		cgroup_of(init, path, sizeof(path)) ? fopen(path, "re") : NULL;
	int pid;

	while (f && fscanf(f, "%d", &pid) == 1) {
		devices_of(pid, devices);
		*bytes += of_process(pid, "VmRSS:") * 1024L;
	}
	if (f)
		fclose(f);
}

json_t *checks_needs(const json_t *about)
{
	pid_t init = (pid_t)json_integer_value(json_object_get(about, "pid"));
	json_t *devices = json_object();
	char flags[8192], module[64];
	struct utsname u;
	json_int_t bytes = 0;

	uname(&u);
	value_of("/proc/cpuinfo", "flags", flags, sizeof(flags));
	*module = 0;
	/* the layer does with any that there is */
	if (!layer_moves(about))
		line_of(MODULE "/srcversion", module, sizeof(module));
	count(init, devices, &bytes);
	return json_pack("{sssssssssosIsb}", "kernel", u.release, "machine",
			 u.machine, "cpu", flags, "module", module, "devices",
			 devices, "bytes", bytes, "layer", layer_moves(about));
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
	DIR *d = opendir("/sys/class/infiniband");
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
		snprintf(path, sizeof(path), "/sys/class/infiniband/%s", name);
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
	long long there = number_of("/proc/meminfo", "MemAvailable:") * 1024LL;

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
