// SPDX-License-Identifier: GPL-2.0
/*
 * Taking contexts. CHECKPOINT_DEVICES comes here for one frozen task after the
 * other: its verbs files become ours, too, what cannot be moved is refused, and
 * the QPs are stopped.
 *
 * The guard file of STOP stays open until CRIU has decided what becomes of the
 * tasks. If CRIU dies, the kernel closes it, and the QPs run on.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dump.h"

struct dump_task *dump_tasks;
struct dump_context *dump_contexts;
static struct dump_context **contexts_end = &dump_contexts;

/* names of plug-ins that the restore needs; CRIU >= 4.1 */
int add_inventory_plugin(const char *name) __attribute__((weak));

struct dump_context *dump_find_context(int fd)
{
	struct dump_context *c;

	for (c = dump_contexts; c; c = c->next)
		if (rp_same_file(c->fd, fd))
			return c;
	return NULL;
}

static int note(uint32_t **list, size_t *n, uint32_t number)
{
	uint32_t *p = reallocarray(*list, *n + 1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	*list = p;
	p[(*n)++] = number;
	return 0;
}

static int note_number(struct dump_context *c, int fd)
{
	return note(&c->fds, &c->nr_fds, fd);
}

static int new_context(struct rp_task *task, const struct rp_fd *f,
		       const struct rp_device *dev, int fd)
{
	struct dump_context *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->task = task;
	c->dev = *dev;
	c->number = f->fd;
	c->fd = fd;
	c->async = -1;
	c->guard = -1;
	*contexts_end = c;
	contexts_end = &c->next;
	if (c == dump_contexts &&
	    (dump_settle_at_exit() ||
	     (add_inventory_plugin && add_inventory_plugin(RP_NAME))))
		return -ENOMEM;
	return note_number(c, f->fd);
}

/* Takes ownership of `fd` */
static int take_uverbs(struct rp_task *task, const struct rp_fd *f, int fd)
{
	struct rxe_migr_resolve_resp resp;
	struct dump_context *c = dump_find_context(fd);
	struct rp_device dev;
	int err;

	if (c) {
		close(fd);
		if (c->task == task)
			return note_number(c, f->fd);
		rp_err("pids %d and %d share a verbs context (fd %d): that cannot be migrated",
		       c->task->pid, task->pid, f->fd);
		return -EOPNOTSUPP;
	}
	if (rp_device_of(f->rdev, &dev)) {
		close(fd);
		rp_err("pid %d, fd %d: its verbs device has vanished",
		       task->pid, f->fd);
		return -ENODEV;
	}
	err = migr_cmd_resolve(fd, fd, &resp);
	if (!err && resp.type == RXE_MIGR_CONTEXT)
		return new_context(task, f, &dev, fd);
	close(fd);
	if (!rp_device_is_rxe(&dev)) {
		/* perhaps another plug-in knows what to do */
		rp_warn("pid %d, fd %d: %s is no rdma_rxe device", task->pid,
			f->fd, dev.ibdev);
		return 0;
	}
	rp_err("pid %d, fd %d: the rdma_rxe of %s cannot migrate it: %s",
	       task->pid, f->fd, dev.ibdev,
	       err == -EOPNOTSUPP ? "it is the stock module" : strerror(-err));
	return -EOPNOTSUPP;
}

/* The restore makes one, and which QP belongs to which file is not known */
static int check_async(struct dump_context *c, const struct rp_fd *f, int fd)
{
	if (c->async >= 0 && !rp_same_file(c->async, fd)) {
		rp_err("pid %d, fd %d: a second asynchronous event file of a context (fd %d) cannot be migrated",
		       c->task->pid, f->fd, c->number);
		return -EOPNOTSUPP;
	}
	if (c->async < 0)
		c->async = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return c->async < 0 ? -errno : note_number(c, f->fd);
}

/* Has the task a verbs file that take_uverbs() left to others? */
static bool has_foreign(const struct rp_task *task)
{
	for (size_t i = 0; i < task->nr_fds; i++)
		if (task->fds[i].kind == RP_UVERBS &&
		    !rp_dump_knows(task->fds[i].rdev))
			return true;
	return false;
}

static int check_event(struct rp_task *task, const struct rp_fd *f, int fd)
{
	struct rxe_migr_resolve_resp resp;
	struct dump_context *c;
	int err;

	for (c = dump_contexts; c; c = c->next) {
		if (c->task != task)
			continue;
		err = migr_cmd_resolve(c->fd, fd, &resp);
		if (err == -ENOENT)
			continue;
		if (err) {
			rp_err("pid %d, fd %d: cannot resolve: %s", task->pid,
			       f->fd, strerror(-err));
			return err;
		}
		if (resp.type != RXE_MIGR_COMP_CHANNEL)
			return check_async(c, f, fd);
		err = note(&c->channels, &c->nr_channels, resp.handle);
		return err ?: note_number(c, f->fd);
	}
	if (has_foreign(task)) {
		rp_warn("pid %d, fd %d: verbs events of no context on rdma_rxe",
			task->pid, f->fd);
		return 0;
	}
	rp_err("pid %d, fd %d: verbs events of a context that the process has not open",
	       task->pid, f->fd);
	return -EOPNOTSUPP;
}

static int take_one(struct rp_task *task, const struct rp_fd *f)
{
	int fd, err;

	if (f->kind == RP_CM) {
		rp_err("pid %d, fd %d: connections made by rdma_cm cannot be migrated",
		       task->pid, f->fd);
		return -EOPNOTSUPP;
	}
	fd = rp_take_fd(task->pid, f->fd);
	if (fd < 0) {
		err = -errno;
		rp_err("pid %d, fd %d: cannot take: %s", task->pid, f->fd,
		       strerror(-err));
		return err;
	}
	if (f->kind == RP_UVERBS)
		return take_uverbs(task, f, fd);
	err = check_event(task, f, fd);
	close(fd);
	return err;
}

static int stop_context(struct dump_context *c)
{
	struct rxe_migr_status st;
	struct migr_error why;
	int err;

	err = migr_cmd_stop(c->fd, 0, 0, &st);
	if (err) {
		migr_status_text(&st, err, &why);
		rp_err("pid %d, fd %d (%s): cannot stop: %s", c->task->pid,
		       c->number, c->dev.ibdev, why.text);
		return err;
	}
	c->guard = st.guard_fd;
	rp_info("pid %d, fd %d (%s): %u QPs stopped", c->task->pid, c->number,
		c->dev.ibdev, st.objects);
	return 0;
}

/* Devices first: events belong to contexts */
static int take_kinds(struct rp_task *task, bool events)
{
	int err = 0;

	for (size_t i = 0; i < task->nr_fds && !err; i++)
		if ((task->fds[i].kind == RP_EVENT) == events)
			err = take_one(task, task->fds + i);
	return err;
}

int rp_dump_take(pid_t pid)
{
	struct dump_task *t = calloc(1, sizeof(*t));
	bool found = false;
	struct dump_context *c;
	int err;

	if (!t)
		return -ENOMEM;
	err = rp_task_scan(pid, &t->scan);
	if (err || (!t->scan.nr_fds && !t->scan.nr_maps)) {
		free(t);
		return err ?: RP_NOT_OURS;
	}
	t->scan.vpid = rp_task_vpid(pid);
	t->next = dump_tasks;
	dump_tasks = t;

	err = take_kinds(&t->scan, false);
	for (c = dump_contexts; c; c = c->next)
		found |= c->task == &t->scan;
	if (!err && found)
		err = take_kinds(&t->scan, true);
	for (c = dump_contexts; c && !err; c = c->next)
		if (c->task == &t->scan)
			err = stop_context(c);
	return err ?: found ? 0 : RP_NOT_OURS;
}

int rp_pre_dump_check(pid_t pid)
{
	struct rp_task task;
	bool found;

	if (rp_task_scan(pid, &task))
		return RP_NOT_OURS; /* it may have died; CRIU will see */
	found = task.nr_fds || task.nr_maps;
	rp_task_free(&task);
	if (!found)
		return RP_NOT_OURS;
	rp_err("pid %d: pre-copy of RDMA memory is not supported yet", pid);
	return -EOPNOTSUPP;
}
void dump_release_all(void)
{
	struct dump_context *c;
	struct dump_task *t;

	while ((c = dump_contexts)) {
		dump_contexts = c->next;
		/* first: if no task has the context by now, it stays stopped */
		close(c->fd);
		if (c->async >= 0)
			close(c->async);
		if (c->guard >= 0)
			close(c->guard);
		migr_image_free(&c->img);
		free(c->data);
		free(c->fds);
		free(c->channels);
		free(c);
	}
	contexts_end = &dump_contexts;
	while ((t = dump_tasks)) {
		dump_tasks = t->next;
		rp_task_free(&t->scan);
		free(t);
	}
}
