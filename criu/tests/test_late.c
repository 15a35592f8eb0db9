// SPDX-License-Identifier: GPL-2.0
/*
 * Killing what CRIU restores: here CRIU is a child, and has a process with threads
 * that is the init of a pid namespace, and its children. Which of the threads is
 * the last one, and waits for all others in there, is up to chance: so there
 * are many.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../tests/check.h"
#include "rdma_plugin.h"

#define CHILDREN 2
#define THREADS 3 /* of each process, beside the first one */
#define TIMES 25
#define SECONDS 30

struct rp_context *rp_contexts;
unsigned int rp_nr_contexts;
struct rp_dead *rp_dead;
unsigned int rp_nr_dead;

static void *sleeper(void *arg)
{
	for (;;)
		pause();
	return arg;
}

static void run(int ready)
{
	pthread_t thread;

	for (int i = 0; i < THREADS; i++)
		MUST(!pthread_create(&thread, NULL, sleeper, NULL));
	MUST(write(ready, "", 1) == 1);
	sleeper(NULL);
}

/* It has no more than these children, and ends with CRIU */
static pid_t start_init(void)
{
	int ready[2];
	pid_t pid;
	char c;

	MUST(!pipe(ready) && !unshare(CLONE_NEWPID));
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		for (int i = 0; i < CHILDREN; i++)
			if (!fork())
				run(ready[1]);
		run(ready[1]);
	}
	for (int i = 0; i < CHILDREN + 1; i++)
		MUST(read(ready[0], &c, 1) == 1);
	return pid;
}

/* Stopped, as CRIU has them */
static int trace(pid_t pid)
{
	struct dirent *de;
	char path[32];
	int n = 0;
	pid_t tid;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	MUST(d);
	while ((de = readdir(d))) {
		tid = atoi(de->d_name);
		if (tid <= 0)
			continue;
		MUST(!ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_EXITKILL));
		MUST(!ptrace(PTRACE_INTERRUPT, tid, 0, 0));
		MUST(waitpid(tid, NULL, __WALL) == tid);
		n++;
	}
	closedir(d);
	return n;
}

static void criu(void)
{
	const pid_t init = start_init();
	int status, traced = trace(init);
	struct dirent *de;
	pid_t pid;
	DIR *d;

	d = opendir("/proc");
	MUST(d);
	while ((de = readdir(d))) {
		pid = atoi(de->d_name);
		if (pid > 0 && rp_task_parent(pid) == init)
			traced += trace(pid);
	}
	closedir(d);
	CHECK(traced == (CHILDREN + 1) * (THREADS + 1), "%d", traced);
	alarm(SECONDS);
	rp_late_kill();
	/* CRIU waits for this one, and has nobody else any more */
	CHECK(waitpid(init, &status, 0) == init && WIFSIGNALED(status));
	CHECK(waitpid(-1, NULL, __WALL) == -1 && errno == ECHILD);
}

int main(void)
{
	int status;
	pid_t pid;

	for (int i = 0; i < TIMES && !check_failures; i++) {
		pid = fork();
		MUST(pid >= 0);
		if (!pid) {
			criu();
			_exit(check_result());
		}
		MUST(waitpid(pid, &status, 0) == pid);
		CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "time %d: %#x",
		      i, status);
	}
	return check_result();
}

/* not reached here */
struct rp_dead *rp_dead_of(uint32_t vpid)
{
	(void)vpid;
	return NULL;
}

struct rp_inject *rp_inject_begin(pid_t pid)
{
	(void)pid;
	return NULL;
}

void rp_inject_end(struct rp_inject *inj)
{
	(void)inj;
}

int rp_inject_close(struct rp_inject *inj, int fd)
{
	(void)inj;
	(void)fd;
	return -1;
}

int rp_inject_mmap(struct rp_inject *inj, const struct rp_vma *vma, int fd)
{
	(void)inj;
	(void)vma;
	(void)fd;
	return -1;
}

int rp_inject_attach(struct rp_inject *inj, int fd, struct rxe_migr_status *st)
{
	(void)inj;
	(void)fd;
	(void)st;
	return -1;
}
