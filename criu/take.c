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
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dump.h"

struct dump_task *dump_tasks;
struct dump_context *dump_contexts;
static struct dump_context **contexts_end = &dump_contexts;

static void *files; /* of all contexts: a tree of tsearch() */

/* names of plug-ins that the restore needs; CRIU >= 4.1 */
int add_inventory_plugin(const char *name) __attribute__((weak));
bool check_and_remove_inventory_plugin(const char *name, size_t n)
	__attribute__((weak));

static int by_file(const void *a, const void *b)
{
	const struct dump_file *x = a, *y = b;

	return rp_compare_files(x->fd, y->fd);
}

const struct dump_file *dump_find_file(int fd)
{
	const struct dump_file key = { .fd = fd };
	struct dump_file **found = tfind(&key, &files, by_file);

	return found ? *found : NULL;
}

int dump_keep_file(const struct dump_file *file)
{
	struct dump_file *f = malloc(sizeof(*f));

	if (f) {
		*f = *file;
		if (tsearch(f, &files, by_file))
			return 0;
	}
	free(f);
	close(file->fd);
	return -ENOMEM;
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

static int note_own_number(struct dump_context *c, int fd)
{
	c->nr_own++;
	return note_number(c, fd);
}

static bool said; /* that the restore needs us, which is enough once */

int dump_need_plugin(void)
{
	if (said || !add_inventory_plugin)
		return 0;
	said = true;
	return add_inventory_plugin(RP_NAME) ? -ENOMEM : 0;
}

/* After a dump that failed CRIU still has the name, and a restore wants all */
void dump_forget_plugin(void)
{
	said = false;
	if (check_and_remove_inventory_plugin)
		check_and_remove_inventory_plugin(RP_NAME, sizeof(RP_NAME));
}

struct dump_context *dump_new_context(struct rp_task *task, int number,
				      const struct rp_device *dev, int fd)
{
	struct dump_context *c = calloc(1, sizeof(*c));

	if (!c) {
		close(fd);
		return NULL;
	}
	c->task = task;
	c->dev = *dev;
	c->number = number;
	c->fd = fd;
	c->guard = -1;
	return c;
}

int dump_keep_context(struct dump_context *c, uint32_t type)
{
	return dump_keep_file(&(struct dump_file){
		.fd = c->fd,
		.context = c,
		.type = type,
		.channel = RXE_MIGR_NO_HANDLE,
	});
}

/* Takes ownership of `fd` */
static int new_context(struct rp_task *task, const struct rp_fd *f,
		       const struct rp_device *dev, int fd)
{
	struct dump_context *c = dump_new_context(task, f->fd, dev, fd);

	if (!c)
		return -ENOMEM;
	*contexts_end = c;
	contexts_end = &c->next;
	if (dump_keep_context(c, RXE_MIGR_CONTEXT))
		return -ENOMEM;
	if (c == dump_contexts && dump_settle_at_exit())
		return -ENOMEM;
	return dump_need_plugin() ?: note_own_number(c, f->fd);
}

/* Takes ownership of `fd` */
static int take_uverbs(struct rp_task *task, const struct rp_fd *f, int fd)
{
	struct rxe_migr_resolve_resp resp;
	const struct dump_file *known = dump_find_file(fd);
	struct rp_device dev;
	int err;

	if (known) {
		close(fd);
		if (known->context->task == task)
			return note_own_number(known->context, f->fd);
		rp_err("pids %d and %d share a verbs context (fd %d): that cannot be migrated",
		       known->context->task->pid, task->pid, f->fd);
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
	if (err == -EOPNOTSUPP || !rp_device_is_rxe(&dev))
		return dump_take_foreign(task, f, &dev, fd);
	close(fd);
	rp_err("pid %d, fd %d: the rdma_rxe of %s cannot migrate it: %s",
	       task->pid, f->fd, dev.ibdev, strerror(-err));
	return -EOPNOTSUPP;
}

/* Takes ownership of `fd` */
static int new_event_file(struct dump_context *c, const struct rp_fd *f, int fd,
			  const struct rxe_migr_resolve_resp *resp)
{
	const bool channel = resp->type == RXE_MIGR_COMP_CHANNEL;
	const struct dump_file file = {
		.fd = fd,
		.context = c,
		.type = resp->type,
		.channel = channel ? resp->handle : RXE_MIGR_NO_HANDLE,
	};
	int err;

	err = dump_keep_file(&file);
	if (!err && channel)
		err = note(&c->channels, &c->nr_channels, file.channel);
	c->has_async |= !channel;
	return err ?: note_number(c, f->fd);
}

int dump_refuse_shared(const struct rp_task *task, int number,
		       const struct dump_file *known)
{
	rp_err("pid %d, fd %d: verbs events of a context of pid %d (fd %d): that cannot be migrated",
	       task->pid, number, known->context->task->pid,
	       known->context->number);
	return -EOPNOTSUPP;
}

/* Takes ownership of `fd` */
static int take_event(struct rp_task *task, const struct rp_fd *f, int fd)
{
	const struct dump_file *known = dump_find_file(fd);
	struct rxe_migr_resolve_resp resp;
	struct dump_context *c;
	int err;

	if (known) {
		close(fd);
		return known->context->task == task
			       ? note_number(known->context, f->fd)
			       : dump_refuse_shared(task, f->fd, known);
	}
	for (c = dump_contexts; c; c = c->next) {
		if (c->task != task)
			continue;
		err = migr_cmd_resolve(c->fd, fd, &resp);
		if (!err)
			return new_event_file(c, f, fd, &resp);
		if (err == -ENOENT)
			continue;
		close(fd);
		rp_err("pid %d, fd %d: cannot migrate events of context (fd %d): %s",
		       task->pid, f->fd, c->number,
		       err == -EOPNOTSUPP ? "a second asynchronous event file"
					  : strerror(-err));
		return err;
	}
	if (task->suspended)
		return dump_take_foreign_event(task, f, fd);
	close(fd);
	rp_err("pid %d, fd %d: verbs events of a context that the process has not open",
	       task->pid, f->fd);
	return -EOPNOTSUPP;
}

/* Takes ownership of `fd` */
static int take_cm(struct rp_task *task, const struct rp_fd *f, int fd)
{
	const struct dump_file file = {
		.fd = fd,
		.type = RP_FILE_CM,
		.channel = RXE_MIGR_NO_HANDLE,
	};
	struct rp_cm_ids ids;
	int err;

	err = rp_cm_ids(task->pid, fd, &ids);
	if (err)
		rp_err("pid %d, fd %d: cannot tell whether rdma_cm has ids: %s",
		       task->pid, f->fd, strerror(-err));
	else if (ids.own)
		rp_err("pid %d, fd %d: connections made by rdma_cm cannot be migrated (ids: %u)",
		       task->pid, f->fd, ids.own);
	else if (ids.unclear)
		rp_err("pid %d, fd %d: rdma_cm has ids whose maker has ended, or has no channel of its own (%u): they may be this channel's",
		       task->pid, f->fd, ids.unclear);
	if (err || ids.own || ids.unclear) {
		close(fd);
		return err ?: -EOPNOTSUPP;
	}
	if (dump_find_file(fd)) { /* known by another number */
		close(fd);
		return 0;
	}
	rp_warn("pid %d, fd %d: a channel of rdma_cm, restored for show; an id that is bound to no device would be lost",
		task->pid, f->fd);
	return dump_keep_file(&file) ?: dump_need_plugin();
}

static int take_one(struct rp_task *task, const struct rp_fd *f)
{
	int fd, err;

	fd = rp_take_fd(task->pid, f->fd);
	if (fd < 0) {
		err = -errno;
		rp_err("pid %d, fd %d: cannot take: %s", task->pid, f->fd,
		       strerror(-err));
		return err;
	}
	if (f->kind == RP_CM)
		return take_cm(task, f, fd);
	return f->kind == RP_UVERBS ? take_uverbs(task, f, fd)
				    : take_event(task, f, fd);
}

static int stop_context(struct dump_context *c)
{
	struct rxe_migr_status st;
	struct migr_error why;
	int err;

	err = migr_cmd_stop_task(c->fd, c->task->pid, &st);
	if (err) {
		migr_status_text(&st, err, &why);
		rp_err("pid %d, fd %d (%s): cannot stop: %s", c->task->pid,
		       c->number, c->dev.ibdev,
		       err == -EINVAL ? "the device is open, but has no context"
				      : why.text);
		return err;
	}
	c->guard = st.guard_fd;
	c->table_shared = st.table_shared;
	rp_info("pid %d, fd %d (%s): %u QPs stopped", c->task->pid, c->number,
		c->dev.ibdev, st.objects);
	/* nothing more is written to its memory */
	return dump_is_incremental()
		       ? rp_track_last(c->task->pid, c->number, c->fd)
		       : 0;
}

/* Devices first, rdma_cm's too: events belong to contexts */
static int take_kinds(struct rp_task *task, bool events)
{
	int err = 0;

	for (size_t i = 0; i < task->nr_fds && !err; i++)
		if (task->fds[i].kind != RP_STANDIN &&
		    (task->fds[i].kind == RP_EVENT) == events)
			err = take_one(task, task->fds + i);
	return err;
}

/* Nothing stands in for a ring now: who has such a name has it by chance */
static bool has_any(const struct rp_task *task)
{
	for (size_t i = 0; i < task->nr_fds; i++)
		if (task->fds[i].kind != RP_STANDIN)
			return true;
	return task->nr_maps;
}

/* The task registers its memory again, as what it is when it is restored */
static int check_pins(pid_t pid)
{
	struct rp_pins pins;
	int err = rp_task_pins(pid, &pins);

	if (err) {
		rp_err("pid %d: cannot tell what it may pin: %s", pid,
		       strerror(-err));
		return err;
	}
	if (rp_pins_fit(&pins))
		return 0;
	rp_err("pid %d has pinned %llu kB for RDMA, and by now may only %llu kB (RLIMIT_MEMLOCK), without CAP_IPC_LOCK",
	       pid, (unsigned long long)pins.pinned >> 10,
	       (unsigned long long)pins.limit >> 10);
	return -EOPNOTSUPP;
}

static bool has_taken(const struct dump_context *c, const struct rp_task *task)
{
	while (c && c->task != task)
		c = c->next;
	return c;
}

/* What can be told before anything is stopped */
static int check_task(const struct rp_task *task)
{
	const pid_t pid = task->pid;

	/* what becomes a dead file needs no capability */
	if (has_taken(dump_contexts, task) && !rp_task_same_userns(pid)) {
		rp_err("pid %d: in a user namespace: that cannot be restored, for the restore needs CAP_CHECKPOINT_RESTORE in the initial one",
		       pid);
		return -EOPNOTSUPP;
	}
	if (dump_is_incremental() && has_taken(dump_foreign, task)) {
		rp_err("pid %d: its memory cannot be dumped as a difference to older images (--prev-images-dir): what this device has written nobody can tell",
		       pid);
		return -EOPNOTSUPP;
	}
	return check_pins(pid);
}

int rp_dump_take(pid_t pid)
{
	struct dump_task *t = calloc(1, sizeof(*t));
	struct dump_context *c;
	bool found;
	int err;

	if (!t)
		return -ENOMEM;
	err = rp_track_check_ended(pid) ?: rp_task_scan(pid, &t->scan);
	if (err || !has_any(&t->scan)) {
		if (!err)
			rp_task_free(&t->scan);
		free(t);
		return err ?: RP_NOT_OURS;
	}
	t->scan.vpid = rp_task_vpid(pid);
	t->next = dump_tasks;
	dump_tasks = t;

	err = take_kinds(&t->scan, false);
	/* who is suspended may have closed the device, and its events not */
	if (!err && (t->scan.suspended || has_taken(dump_contexts, &t->scan)))
		err = take_kinds(&t->scan, true);
	found = has_taken(dump_contexts, &t->scan) ||
		has_taken(dump_foreign, &t->scan);
	if (!err && found)
		err = check_task(&t->scan);
	for (c = dump_contexts; c && !err; c = c->next)
		if (c->task == &t->scan)
			err = stop_context(c);
	return err ?: found ? 0 : RP_NOT_OURS;
}

static void free_file(void *file)
{
	close(((struct dump_file *)file)->fd);
	free(file);
}

static void free_contexts(struct dump_context **list)
{
	struct dump_context *c;

	while ((c = *list)) {
		*list = c->next;
		if (c->guard >= 0)
			close(c->guard);
		rp_rings_free(&c->rings);
		migr_image_free(&c->img);
		free(c->data);
		free(c->fds);
		free(c->channels);
		free(c);
	}
}

void dump_release_foreign(void)
{
	struct dump_file *f;

	for (struct dump_context *c = dump_foreign; c; c = c->next) {
		f = (struct dump_file *)dump_find_file(c->fd);
		if (!f)
			continue;
		tdelete(f, &files, by_file);
		free_file(f);
	}
	free_contexts(&dump_foreign);
}

void dump_release_all(void)
{
	struct rxe_migr_track_resp resp;
	struct dump_task *t;

	/* who runs on has been copied whole, or will be; of others it asks nothing */
	for (struct dump_context *c = dump_contexts; c; c = c->next)
		migr_cmd_track(c->fd, RXE_MIGR_TRACK_END, 0, &resp);
	/* first: if no task has the context by now, it stays stopped */
	tdestroy(files, free_file);
	files = NULL;
	free_contexts(&dump_contexts);
	free_contexts(&dump_foreign);
	contexts_end = &dump_contexts;
	while ((t = dump_tasks)) {
		dump_tasks = t->next;
		rp_task_free(&t->scan);
		free(t);
	}
}
