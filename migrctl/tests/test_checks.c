// SPDX-License-Identifier: GPL-2.0
/*
 * What is refused before anything is stopped: needs that this host has, each with something that
 * it has not. SYS is a folder in the place of /sys.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "checks.h"

static struct move m = { .name = "c1" };

bool move_fails(struct move *to, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(to->reason, sizeof(to->reason), fmt, args);
	va_end(args);
	return false;
}

static void make(const char *path, const char *text)
{
	char *cmd;

	MUST(asprintf(&cmd, "mkdir -p $(dirname '%s') && echo '%s' >'%s'", path,
		      text, path) > 0);
	MUST(!system(cmd));
	free(cmd);
}

/* kB */
static void memory_is(long available, long total)
{
	char text[128];

	snprintf(text, sizeof(text), "MemTotal: %ld kB\nMemAvailable: %ld kB",
		 total, available);
	make(MEMINFO, text);
}

static json_t *about(pid_t pid)
{
	return json_pack("{si}", "pid", pid);
}

static json_t *needs(void)
{
	json_t *a = about(getpid()), *o = checks_needs(a);

	json_decref(a);
	return o;
}

/* needs with one other value; and what is said of it, or NULL */
static void there(const char *key, json_t *value, const char *said)
{
	json_t *o = needs();
	bool is;

	if (key)
		MUST(!json_object_set_new(o, key, value));
	m.reason[0] = 0;
	is = checks_there(&m, o);
	CHECK(is == !said, "%s: %s", key ? key : "all", m.reason);
	CHECK(!said || strstr(m.reason, said), "%s: %s", key, m.reason);
	json_decref(o);
}

/* of the same kind, as far as these go */
static json_t *device(const char *name)
{
	return json_pack("{sb}", name, 1);
}

static void test_there(void)
{
	const char *flags;
	json_t *o = needs();
	char more[16384];

	there(NULL, NULL, NULL);
	there("kernel", json_string("2.4.18"), "the kernel here is");
	there("machine", json_string("s390"), "the kernel here is");
	flags = json_string_value(json_object_get(o, "cpu"));
	snprintf(more, sizeof(more), "%s avx9", flags);
	there("cpu", json_string(more), "have no 'avx9', which c1 may use");
	there("cpu", json_string("p"), "have no 'p'"); /* but pae */
	there("cpu", json_string(""), NULL);
	there("devices", device("rxe9"), "no RDMA device rxe9 here");
	there("devices", device("../../module"), "no name of a device");
	there("devices", device(".."), "no name of a device");
	there("bytes", json_integer(1LL << 60), "needs twice its");
	there("bytes", json_integer(-1), "needs twice its");
	json_decref(o);
}

static void test_module(void)
{
	json_t *o = json_pack("{sb}", "rxe0", 1);

	make(SYS "/class/infiniband/rxe0/node", "");
	/* who asks has no module, and nobody's is wanted */
	there("devices", json_incref(o), NULL);
	make(SYS "/module/rdma_rxe/srcversion", "ABC");
	there("devices", json_incref(o), "cannot migrate: load ours");
	make(SYS "/module/rdma_rxe/parameters/migr_key", "");
	there("devices", json_incref(o), NULL);
	there("module", json_string("DEF"), NULL); /* it has no device open */
	json_decref(o);
	o = needs();
	json_object_set_new(o, "devices", device("rxe0"));
	json_object_set_new(o, "module", json_string("DEF"));
	CHECK(!checks_there(&m, o));
	CHECK(strstr(m.reason,
		     "another one than where c1 runs: ABC, and there DEF"),
	      "%s", m.reason);
	json_decref(o);
}

static bool here(pid_t pid)
{
	json_t *o = about(pid);
	bool is;

	m.reason[0] = 0;
	is = checks_here(&m, o);
	json_decref(o);
	return is;
}

/* its cgroup, as /proc says, or one below it, has these processes */
static bool has_cgroup(const char *below, const char *pids)
{
	char line[4096] = "", path[8192];
	FILE *f = fopen("/proc/self/cgroup", "re");

	while (f && fgets(line, sizeof(line), f) &&
	       strncmp(line, "0::", 3) != 0)
		;
	if (f)
		fclose(f);
	line[strcspn(line, "\n")] = 0;
	if (strncmp(line, "0::", 3) != 0)
		return false;
	snprintf(path, sizeof(path), SYS "/fs/cgroup%s%s/cgroup.procs",
		 line + 3, below);
	make(path, pids);
	return true;
}

/* Who traces one of its processes is killed, and nobody else; that one goes on. */
static void test_tracers(void)
{
	json_t *its = about(getpid());
	pid_t child, tracer;
	char pids[64];
	int status;

	child = fork();
	MUST(child >= 0);
	if (!child)
		_exit(!pause());
	tracer = fork();
	MUST(tracer >= 0);
	if (!tracer) {
		MUST(!ptrace(PTRACE_SEIZE, child, NULL, NULL));
		MUST(!ptrace(PTRACE_INTERRUPT, child, NULL, NULL));
		MUST(waitpid(child, &status, __WALL) == child);
		raise(SIGSTOP); /* it is there */
		_exit(!pause());
	}
	MUST(waitpid(tracer, &status, WUNTRACED) == tracer);
	snprintf(pids, sizeof(pids), "%d\n%d", getpid(), child);
	if (has_cgroup("", pids)) {
		checks_kill_tracers(its);
		MUST(waitpid(tracer, &status, 0) == tracer);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "%#x",
		      status);
		CHECK(!kill(child, 0), "it is dead");
		checks_kill_tracers(its); /* nobody does */
	}
	checks_kill_tracers(NULL);
	kill(tracer, SIGKILL);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	json_decref(its);
}

static void test_processes(void)
{
	char pids[64];
	pid_t child;

	CHECK(!here(getpid()) && strstr(m.reason, "no cgroup of version 2"),
	      "%s", m.reason);
	CHECK(!here(0) && strstr(m.reason, "no cgroup of version 2"), "%s",
	      m.reason);
	snprintf(pids, sizeof(pids), "%d", getpid());
	if (!has_cgroup("", pids))
		return; /* as on a host without any: that was it */
	CHECK(here(getpid()), "%s", m.reason);
	child = fork();
	MUST(child >= 0);
	if (!child)
		_exit(!pause());
	snprintf(pids, sizeof(pids), "%d\n%d", getpid(), child);
	MUST(has_cgroup("", pids));
	CHECK(here(getpid()), "%s", m.reason);
	/* as seen from the child, who is above it is a stranger */
	CHECK(!here(child) && strstr(m.reason, "runc exec"), "%s", m.reason);
	/* it has made a group of its own, and somebody was put into that */
	snprintf(pids, sizeof(pids), "%d", child);
	MUST(has_cgroup("", pids) && has_cgroup("/a/b", pids));
	CHECK(here(child), "%s", m.reason);
	snprintf(pids, sizeof(pids), "%d", getpid());
	MUST(has_cgroup("/a/b", pids));
	CHECK(!here(child) && strstr(m.reason, "runc exec"), "%s", m.reason);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	CHECK(here(getpid()), "%s", m.reason); /* who has ended is nobody's */
}

/* Images are in memory, here as there. */
static void test_room(void)
{
	char pids[64];

	snprintf(pids, sizeof(pids), "%d", getpid());
	if (!has_cgroup("", pids) || !has_cgroup("/a/b", pids))
		return;
	memory_is(100000000, 200000000);
	CHECK(here(getpid()), "%s", m.reason);
	memory_is(100, 200000000);
	CHECK(!here(getpid()) && strstr(m.reason, "needs its"), "%s", m.reason);
	memory_is(100000000, 100); /* of which images have half */
	CHECK(!here(getpid()) && strstr(m.reason, "needs its"), "%s", m.reason);
	memory_is(100000000, 200000000);
}

int main(void)
{
	MUST(!system("rm -rf '" SYS "'"));
	memory_is(100000000, 200000000);
	test_processes();
	test_tracers();
	test_room();
	test_there();
	test_module();
	return check_result();
}
