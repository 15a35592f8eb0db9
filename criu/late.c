// SPDX-License-Identifier: GPL-2.0
/*
 * The last step of a restore, in CRIU's master: the tasks have their memory
 * and credentials back and stand still before their first own instruction.
 *
 * Each context gets its MR pages in its own task. No QP starts before every
 * context of the tree is complete: until then a failure loses nothing, for the
 * partners have not heard of this host.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate.h"
#include "rdma_plugin.h"

static bool resumed;
static bool all_here; /* who has something to be resumed */
static enum {
	NOT_ASKED,
	OPEN,
	SHUT
} gate;

void rp_late_begin(void)
{
	resumed = all_here = false;
	gate = NOT_ASKED;
}

static pid_t tracer_of(const char *pid)
{
	pid_t tracer = 0;
	char line[300];
	FILE *f;

	snprintf(line, sizeof(line), "/proc/%s/status", pid);
	f = fopen(line, "re");
	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "TracerPid: %d", &tracer) == 1)
			break;
	fclose(f);
	return tracer;
}

/* Every task that CRIU is restoring: -errno if they cannot be found */
static int for_each_task(void (*fn)(const char *pid, void *arg), void *arg)
{
	struct dirent *de;
	DIR *d;

	d = opendir("/proc");
	if (!d)
		return -errno;
	while ((de = readdir(d)))
		if (atoi(de->d_name) > 0 && tracer_of(de->d_name) == getpid())
			fn(de->d_name, arg);
	closedir(d);
	return 0;
}

static void count_dead(const char *pid, void *arg)
{
	const uint32_t vpid = rp_task_vpid(atoi(pid));
	unsigned int *count = arg;

	for (unsigned int i = 0; i < rp_nr_dead; i++)
		*count += rp_dead[i].img->vpid == vpid;
}

/*
 * CRIU names each task of the tree, and never says which one is the last: an image of
 * a task that is not there would keep all others Stopped, for ever, in a restore
 * that CRIU takes for a good one.
 */
static int check_tasks(void)
{
	unsigned int count = 0;
	int err = 0;

	for (unsigned int i = 0; i < rp_nr_contexts; i++)
		count += *rp_contexts[i].is_made;
	/* to look at all processes takes time */
	if (rp_nr_dead)
		err = for_each_task(count_dead, &count);
	if (!err && count < rp_nr_contexts + rp_nr_dead)
		err = -ESRCH;
	if (err)
		rp_err("of %u images of tasks only %u are of those that are restored",
		       rp_nr_contexts + rp_nr_dead, count);
	all_here = !err;
	return err;
}

/*
 * Files that the restore needed and CRIU did not close. They are above all that
 * the task has had; those of other verbs devices below are not ours to close.
 */
static int close_leaked(struct rp_inject *inj, const struct rp_task *task)
{
	const struct rp_dead *dead = rp_dead_of(task->vpid);
	uint32_t max_fd = dead ? dead->img->max_fd : 0;
	struct rp_context *c;
	int err = 0;

	for (c = rp_contexts; c < rp_contexts + rp_nr_contexts; c++)
		if (c->task->vpid == (uint32_t)task->vpid &&
		    c->task->max_fd > max_fd)
			max_fd = c->task->max_fd;
	for (size_t i = 0; i < task->nr_fds && !err; i++)
		if ((uint32_t)task->fds[i].fd > max_fd)
			err = rp_inject_close(inj, task->fds[i].fd);
	return err;
}

/* Take the context's file from the task and see that it is what it should */
static int take_file(struct rp_context *c, pid_t pid)
{
	struct rxe_migr_resolve_resp resp;
	struct stat st;
	int err = 0;

	c->late_fd = rp_take_fd(pid, c->task->fd);
	if (c->late_fd < 0)
		err = -errno;
	else if (fstat(c->late_fd, &st))
		err = -errno;
	else if (!S_ISCHR(st.st_mode) || st.st_rdev != c->dev.rdev)
		err = -EBADF;
	if (!err)
		err = migr_cmd_resolve(c->late_fd, c->late_fd, &resp);
	if (!err && resp.type != RXE_MIGR_CONTEXT)
		err = -EBADF;
	if (err)
		rp_err("pid %d, fd %u is not a context of %s: %s", pid,
		       c->task->fd, c->dev.ibdev, strerror(-err));
	return err;
}

static int attach_context(struct rp_inject *inj, struct rp_context *c,
			  pid_t pid)
{
	const struct rp_vma *vma = rp_image_vmas(c->task);
	struct rxe_migr_status st;
	struct migr_error why;
	int err;

	err = take_file(c, pid);
	/* with several contexts there are stand-ins: see rp_restore_vma() */
	for (uint32_t i = 0;
	     c->task->contexts > 1 && i < c->task->nr_vmas && !err; i++)
		err = rp_inject_mmap(inj, vma + i, c->task->fd);
	if (err)
		return err;
	err = rp_inject_attach(inj, c->task->fd, &st);
	if (err) {
		migr_status_text(&st, err, &why);
		rp_err("pid %d, fd %u (%s): cannot attach: %s", pid,
		       c->task->fd, c->dev.ibdev, why.text);
	}
	return err;
}

static int attach_task(struct rp_task *task)
{
	struct rp_inject *inj = rp_inject_begin(task->pid);
	struct rp_context *c;
	int err = 0;

	if (!inj)
		return -EIO;
	for (c = rp_contexts; c < rp_contexts + rp_nr_contexts && !err; c++)
		if (c->task->vpid == (uint32_t)task->vpid)
			err = attach_context(inj, c, task->pid);
	if (!err)
		err = close_leaked(inj, task);
	rp_inject_end(inj);
	return err;
}

static int resume(const struct rp_context *c,
		  int (*cmd)(int fd, struct rxe_migr_status *st))
{
	struct rxe_migr_status st;
	struct migr_error why;
	int err = cmd(c->late_fd, &st);

	if (err) {
		migr_status_text(&st, err, &why);
		rp_err("fd %u (%s): cannot resume: %s", c->task->fd,
		       c->dev.ibdev, why.text);
	}
	return err;
}

/*
 * All is restored, and nothing resumed: whoever moves the tree may want to be asked now
 * (migr-mover). Until then nobody has noticed anything of it.
 */
static int pass_gate(void)
{
	const char *folder = getenv("MIGR_CTR_DOOR");

	if (!folder || !getenv("MIGR_CTR_HOLD"))
		return 0;
	/* once for all tasks, also if that was a no */
	if (gate == NOT_ASKED) {
		rp_info("waits for word to go on");
		gate = gate_wait(folder, "restored", "resume", true, -1) ? OPEN
									 : SHUT;
		if (gate == SHUT)
			rp_err("the move was given up");
		else
			rp_info("has word to go on");
	}
	return gate == OPEN ? 0 : -ECANCELED;
}

/*
 * What has been resumed cannot be taken back: partners have followed it. So all
 * are asked before the first one is resumed. After that it takes want of memory, or
 * somebody who forgets the cluster's key just then, to resume only some of them.
 */
static int resume_all(void)
{
	struct rp_context *c;
	int err;

	for (c = rp_contexts; c < rp_contexts + rp_nr_contexts; c++) {
		err = resume(c, migr_cmd_resume_check);
		if (err)
			return err;
	}
	err = pass_gate();
	if (err)
		return err;
	for (c = rp_contexts; c < rp_contexts + rp_nr_contexts; c++) {
		err = resume(c, migr_cmd_resume);
		if (err)
			return err;
		rp_info("fd %u (%s): resumed", c->task->fd, c->dev.ibdev);
		/* or the context would live as long as CRIU does */
		close(c->late_fd);
		c->late_fd = -1;
	}
	resumed = true;
	return 0;
}

static bool all_complete(void)
{
	for (unsigned int i = 0; i < rp_nr_contexts; i++)
		if (rp_contexts[i].late_fd < 0)
			return false;
	for (unsigned int i = 0; i < rp_nr_dead; i++)
		if (!rp_dead[i].done)
			return false;
	return true;
}

int rp_late_attach(pid_t pid)
{
	pid_t vpid = rp_nr_contexts || rp_nr_dead ? rp_task_vpid(pid) : 0;
	struct rp_dead *dead = rp_dead_of(vpid);
	struct rp_context *c;
	struct rp_task task;
	bool found = dead;
	int err;

	if (!rp_nr_contexts && !rp_nr_dead)
		return pass_gate() ? -ECANCELED : RP_NOT_OURS;
	if (!rp_late_done() && !all_here) {
		err = check_tasks();
		if (err)
			return err;
	}
	for (c = rp_contexts; c < rp_contexts + rp_nr_contexts; c++)
		found |= c->task->vpid == (uint32_t)vpid;
	if (!found)
		return RP_NOT_OURS;
	err = rp_task_scan_files(pid, &task);
	if (err)
		return err;
	task.vpid = vpid;
	err = attach_task(&task);
	rp_task_free(&task);
	if (err)
		return err;
	if (dead)
		dead->done = true;
	return all_complete() ? resume_all() : 0;
}

bool rp_late_done(void)
{
	return (!rp_nr_contexts && !rp_nr_dead) || resumed;
}

/* is it the init of a pid namespace? */
static bool is_init(const char *pid)
{
	char line[300], name[300];
	bool is = false;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%s/status", pid);
	f = fopen(name, "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, "NSpid:", 6))
			is = atoi(strrchr(line, '\t')) == 1;
	fclose(f);
	return is;
}

/* threads that CRIU traces and waits for no more */
struct tracees {
	pid_t *tid;
	size_t nr;
};

/* CRIU waits for the leader of the init itself, and for nobody else */
static void end_task(const char *pid, void *arg)
{
	pid_t leader = is_init(pid) ? atoi(pid) : 0, tid;
	struct tracees *t = arg;
	struct dirent *de;
	char name[300];
	void *p;
	DIR *d;

	snprintf(name, sizeof(name), "/proc/%s/task", pid);
	d = opendir(name);
	while (d && (de = readdir(d))) {
		tid = atoi(de->d_name);
		if (tid <= 0 || tid == leader)
			continue;
		p = reallocarray(t->tid, t->nr + 1, sizeof(tid));
		if (!p)
			abort(); /* see below */
		t->tid = p;
		t->tid[t->nr++] = tid;
	}
	if (d)
		closedir(d);
	kill(atoi(pid), SIGKILL);
}

/*
 * What dies while it is traced stays until its tracer has seen that: the other
 * threads hold up their leader, and everything holds up the thread of an init that
 * waits for its namespace to be empty, which may be any of them. So whoever of them all
 * is dead is taken, and nobody is waited for before the others.
 */
static void reap(struct tracees *t)
{
	int status;
	pid_t got;

	for (; t->nr; usleep(1000))
		for (size_t i = t->nr; i--;) {
			got = waitpid(t->tid[i], &status, __WALL | WNOHANG);
			if (got < 0 ? errno != EINTR
				    : got && (WIFEXITED(status) ||
					      WIFSIGNALED(status)))
				t->tid[i] = t->tid[--t->nr];
		}
}

/*
 * CRIU 4.1 only logs that a late hook has failed, and goes on. It traces every
 * task of the tree at this point; with the tasks dead it cannot detach from
 * them, and that it takes as a failed restore: it cleans up and says so.
 */
void rp_late_kill(void)
{
	struct tracees t = { NULL, 0 };

	rp_err("killing the restored tasks");
	if (for_each_task(end_task, &t))
		abort(); /* takes the traced tasks along (PTRACE_O_EXITKILL) */
	reap(&t);
	free(t.tid);
}
