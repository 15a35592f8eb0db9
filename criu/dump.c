// SPDX-License-Identifier: GPL-2.0
/*
 * The dump side. CHECKPOINT_DEVICES, called for one frozen task after the
 * other, takes the task's contexts and stops them; the first DUMP_EXT_FILE,
 * when all are stopped, writes their images.
 *
 * The guard file of STOP stays open until CRIU has decided what becomes of the
 * tasks. If CRIU dies, the kernel closes it, and the QPs run on.
 */
#define _GNU_SOURCE
#include <criu/criu-plugin.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rdma_plugin.h"

struct context {
	struct rp_task *task;
	struct rp_device dev;
	int number; /* of its fd in the task, the smallest */
	int fd;	    /* the same file, ours */
	int guard;  /* -1: not stopped */
	uint32_t *fds; /* all numbers in the task that are this context's */
	size_t nr_fds;
	void *data;
	struct migr_image img;
	struct context *next;
};

struct task {
	struct rp_task scan;
	struct task *next;
};

static struct task *tasks;
static struct context *contexts, **contexts_end = &contexts;
static pid_t owner;	 /* CRIU's children must not settle anything */
static bool written;	 /* the images are */
static bool outcome_due; /* CRIU is about to kill the tasks, or so it says */

/* names of plug-ins that the restore needs; CRIU >= 4.1 */
int add_inventory_plugin(const char *name) __attribute__((weak));

static void settle(void);

/* ---- taking ---- */

static struct context *find_context(int fd)
{
	struct context *c;

	for (c = contexts; c; c = c->next)
		if (rp_same_file(c->fd, fd))
			return c;
	return NULL;
}

static int note_number(struct context *c, int fd)
{
	uint32_t *p = reallocarray(c->fds, c->nr_fds + 1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	c->fds = p;
	c->fds[c->nr_fds++] = fd;
	return 0;
}

static int new_context(struct rp_task *task, const struct rp_fd *f,
		       const struct rp_device *dev, int fd)
{
	struct context *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->task = task;
	c->dev = *dev;
	c->number = f->fd;
	c->fd = fd;
	c->guard = -1;
	*contexts_end = c;
	contexts_end = &c->next;
	if (!owner) {
		owner = getpid();
		if (atexit(settle))
			return -ENOMEM;
		if (add_inventory_plugin && add_inventory_plugin(RP_NAME))
			return -ENOMEM;
	}
	return note_number(c, f->fd);
}

/* Takes ownership of `fd` */
static int take_uverbs(struct rp_task *task, const struct rp_fd *f, int fd)
{
	struct rxe_migr_resolve_resp resp;
	struct context *c = find_context(fd);
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
	       err == -EOPNOTSUPP ? "it is the stock module" :
				    strerror(-err));
	return -EOPNOTSUPP;
}

static int check_event(struct rp_task *task, const struct rp_fd *f, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct rxe_migr_resolve_resp resp;
	struct context *c;
	int err;

	for (c = contexts; c; c = c->next) {
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
		if (resp.type == RXE_MIGR_COMP_CHANNEL) {
			rp_err("pid %d, fd %d: completion channels cannot be migrated yet",
			       task->pid, f->fd);
			return -EOPNOTSUPP;
		}
		if (poll(&p, 1, 0) > 0) {
			rp_err("pid %d, fd %d: asynchronous events that the application has not read cannot be migrated yet",
			       task->pid, f->fd);
			return -EOPNOTSUPP;
		}
		return note_number(c, f->fd);
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

static int stop_context(struct context *c)
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
	struct task *t = calloc(1, sizeof(*t));
	bool found = false;
	struct context *c;
	int err;

	if (!t)
		return -ENOMEM;
	err = rp_task_scan(pid, &t->scan);
	if (err || (!t->scan.nr_fds && !t->scan.nr_maps)) {
		free(t);
		return err ?: RP_NOT_OURS;
	}
	t->scan.vpid = rp_task_vpid(pid);
	t->next = tasks;
	tasks = t;

	err = take_kinds(&t->scan, false);
	for (c = contexts; c; c = c->next)
		found |= c->task == &t->scan;
	if (!err && found)
		err = take_kinds(&t->scan, true);
	for (c = contexts; c && !err; c = c->next)
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

/* ---- writing ---- */

static bool owns_map(struct context *c, struct rp_task *task,
		     const struct rp_map *map)
{
	const struct rxe_migr_ring *ring;

	if (c->task != task || c->dev.rdev != map->rdev)
		return false;
	ring = rp_find_ring(&c->img, map->offset);
	return ring && ring->mmap_size == map->end - map->start;
}

static int check_maps(void)
{
	struct context *c;
	struct task *t;

	for (t = tasks; t; t = t->next)
		for (size_t i = 0; i < t->scan.nr_maps; i++) {
			for (c = contexts; c; c = c->next)
				if (owns_map(c, &t->scan, t->scan.maps + i))
					break;
			if (c || !rp_dump_knows(t->scan.maps[i].rdev))
				continue; /* or nobody claims it in CRIU */
			rp_err("pid %d: the mapping at %#llx is no ring of a context of this process",
			       t->scan.pid,
			       (unsigned long long)t->scan.maps[i].start);
			return -EOPNOTSUPP;
		}
	return 0;
}

static void fill_vmas(struct context *c, struct rp_vma *vma)
{
	const struct rp_map *map = c->task->maps;

	for (size_t i = 0; i < c->task->nr_maps; i++, map++)
		if (owns_map(c, c->task, map))
			*vma++ = (struct rp_vma){
				.start = map->start,
				.end = map->end,
				.offset = map->offset,
				.prot = map->prot,
			};
}

static int write_task(struct context *c, unsigned int number)
{
	struct rp_task_image *img;
	size_t size, nr_vmas = 0;
	struct context *other;
	char name[32];
	int err;

	for (size_t i = 0; i < c->task->nr_maps; i++)
		nr_vmas += owns_map(c, c->task, c->task->maps + i);
	size = rp_task_image_size(nr_vmas, c->nr_fds);
	img = calloc(1, size);
	if (!img)
		return -ENOMEM;
	img->context = number;
	img->vpid = c->task->vpid;
	img->fd = c->number;
	img->max_fd = c->task->max_fd;
	for (other = contexts; other; other = other->next)
		img->contexts += other->task == c->task;
	img->nr_vmas = nr_vmas;
	img->nr_fds = c->nr_fds;
	fill_vmas(c, (struct rp_vma *)rp_image_vmas(img));
	memcpy((uint32_t *)rp_image_fds(img), c->fds,
	       c->nr_fds * sizeof(uint32_t));
	rp_image_seal(img, RP_IMAGE_TASK, size);

	snprintf(name, sizeof(name), "rdma-task-%u.img", number);
	err = rp_write_file(criu_get_image_dir(), name, img, size);
	free(img);
	return err;
}

static int write_context(struct context *c, unsigned int number)
{
	struct migr_error why;
	size_t length;
	char name[32];
	int err;

	err = migr_cmd_dump(c->fd, &c->data, &length, &why);
	/* what the destination would refuse must not leave this host */
	if (!err)
		err = migr_image_parse(c->data, length, &c->img, &why);
	if (err) {
		rp_err("pid %d, fd %d (%s): cannot dump: %s", c->task->pid,
		       c->number, c->dev.ibdev, why.text);
		return err;
	}
	snprintf(name, sizeof(name), "rdma-ctx-%u.img", number);
	err = rp_write_file(criu_get_image_dir(), name, c->data, length);
	if (err)
		rp_err("cannot write %s: %s", name, strerror(-err));
	else
		rp_info("%s: %u objects, %zu bytes", name, c->img.count,
			length);
	return err;
}

static int write_all(void)
{
	unsigned int number;
	struct context *c;
	int err = 0;

	for (c = contexts, number = 0; c && !err; c = c->next)
		err = write_context(c, number++);
	if (!err)
		err = check_maps();
	for (c = contexts, number = 0; c && !err; c = c->next) {
		err = write_task(c, number);
		if (err)
			rp_err("cannot write rdma-task-%u.img: %s", number,
			       strerror(-err));
		number++;
	}
	return err;
}

/* What is the file to which context? NULL: nothing */
static struct context *identify(int lfd, uint32_t *type)
{
	struct rxe_migr_resolve_resp resp;
	char path[32], link[64];
	struct context *c;
	ssize_t n;

	c = find_context(lfd);
	*type = RXE_MIGR_CONTEXT;
	if (c)
		return c;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", lfd);
	n = readlink(path, link, sizeof(link) - 1);
	link[n < 0 ? 0 : n] = '\0';
	if (rp_link_kind(link) != RP_EVENT)
		return NULL;
	for (c = contexts; c; c = c->next) {
		if (migr_cmd_resolve(c->fd, lfd, &resp))
			continue;
		*type = resp.type;
		return c;
	}
	return NULL;
}

int rp_dump_file(int lfd, uint32_t id)
{
	struct rp_file_image img = { .flags = 0 };
	struct pollfd p = { .fd = lfd, .events = POLLIN };
	struct context *c, *i;
	char name[32];
	int err;

	c = contexts ? identify(lfd, &img.type) : NULL;
	if (!c)
		return RP_NOT_OURS;
	/* CHECKPOINT_DEVICES has seen it, but events can come at any time */
	if (img.type != RXE_MIGR_CONTEXT &&
	    (img.type != RXE_MIGR_ASYNC_FD || poll(&p, 1, 0) > 0)) {
		rp_err("pid %d: a completion channel, or an asynchronous event that the application has not read",
		       c->task->pid);
		return -EOPNOTSUPP;
	}
	if (!written) {
		err = write_all();
		if (err)
			return err;
		written = true;
	}
	for (i = contexts; i != c; i = i->next)
		img.context++;
	img.flags = fcntl(lfd, F_GETFL);
	rp_image_seal(&img, RP_IMAGE_FILE, sizeof(img));
	snprintf(name, sizeof(name), "rdma-file-%x.img", id);
	err = rp_write_file(criu_get_image_dir(), name, &img, sizeof(img));
	if (err)
		rp_err("cannot write %s: %s", name, strerror(-err));
	return err;
}

bool rp_dump_knows(dev_t rdev)
{
	struct context *c;

	for (c = contexts; c; c = c->next)
		if (c->dev.rdev == rdev)
			return true;
	return false;
}

/* ---- the outcome ---- */

/* Give everything back; a guard that is closed before COMMIT is UNSTOP */
static void release_all(void)
{
	struct context *c;
	struct task *t;

	while ((c = contexts)) {
		contexts = c->next;
		if (c->guard >= 0)
			close(c->guard);
		close(c->fd);
		migr_image_free(&c->img);
		free(c->data);
		free(c->fds);
		free(c);
	}
	contexts_end = &contexts;
	while ((t = tasks)) {
		tasks = t->next;
		rp_task_free(&t->scan);
		free(t);
	}
}

/* CRIU kills all of the tree or nothing of it */
static bool tasks_killed(void)
{
	for (int i = 0; i < 20; i++) {
		if (rp_task_dying(contexts->task->pid))
			return true;
		usleep(10000);
	}
	return false;
}

/*
 * When CRIU exits. Only now it is known whether the tasks were killed: a
 * failed post-dump script, for one, lets them run on after a dump that exit()
 * was told to be good. They cannot be gone for good before this point, since
 * `fd` holds the context, stopped.
 */
static void settle(void)
{
	struct context *c;
	int err;

	if (getpid() != owner || !contexts)
		return;
	if (outcome_due && tasks_killed())
		for (c = contexts; c; c = c->next) {
			err = c->guard >= 0 ? migr_cmd_commit(c->fd) : 0;
			if (err)
				rp_err("cannot commit: %s", strerror(-err));
		}
	release_all();
}

void rp_dump_finish(bool failed, bool tasks_live)
{
	if (!contexts)
		return;
	if (failed)
		rp_remove_images(criu_get_image_dir());
	if (failed || tasks_live)
		release_all();
	else
		outcome_due = true;
}
