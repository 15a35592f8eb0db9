// SPDX-License-Identifier: GPL-2.0
/*
 * Writing what take.c has taken, and the end of a dump. The images are written
 * with the first DUMP_EXT_FILE, when all contexts of all tasks are stopped.
 */
#define _GNU_SOURCE
#include <criu/criu-plugin.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "dump.h"
#include "migr_qp.h"

/* how long a partner has to say that it waits; it is told each second, at least */
#define HEARD_MS 5000

static pid_t owner;	 /* CRIU's children must not settle anything */
static bool begun;	 /* those of an older dump are gone */
static bool written;	 /* the images are */
static bool outcome_due; /* CRIU is about to kill the tasks, or so it says */

/* ---- writing ---- */

static bool owns_map(struct dump_context *c, struct rp_task *task,
		     const struct rp_map *map)
{
	const struct rxe_migr_ring *ring;

	if (c->task != task || c->dev.rdev != map->rdev || !map->shared)
		return false;
	ring = rp_rings_find(&c->rings, map->offset);
	return ring && ring->mmap_size == map->end - map->start;
}

static int check_maps(void)
{
	struct dump_context *c;
	struct dump_task *t;

	for (t = dump_tasks; t; t = t->next)
		for (size_t i = 0; i < t->scan.nr_maps; i++) {
			for (c = dump_contexts; c; c = c->next)
				if (owns_map(c, &t->scan, t->scan.maps + i))
					break;
			if (c ||
			    dump_owns_foreign_map(&t->scan, t->scan.maps + i) ||
			    !rp_dump_knows(t->scan.maps[i].rdev))
				continue; /* or nobody claims it in CRIU */
			rp_err("pid %d: the mapping at %#llx is no ring of a context of this process",
			       t->scan.pid,
			       (unsigned long long)t->scan.maps[i].start);
			return -EOPNOTSUPP;
		}
	return 0;
}

static void fill_vmas(struct dump_context *c, struct rp_vma *vma)
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

static size_t owned_maps(struct dump_context *c)
{
	size_t nr = 0;

	for (size_t i = 0; i < c->task->nr_maps; i++)
		nr += owns_map(c, c->task, c->task->maps + i);
	return nr;
}

static int write_task(struct dump_context *c, unsigned int number)
{
	struct rp_task_image *img;
	const size_t nr_vmas = owned_maps(c);
	struct dump_context *other;
	const char *why;
	char name[32];
	size_t size;
	int err;

	size = rp_task_image_size(nr_vmas, c->nr_fds);
	img = calloc(1, size);
	if (!img)
		return -ENOMEM;
	img->context = number;
	img->vpid = c->task->vpid;
	img->fd = c->number;
	img->max_fd = c->task->max_fd;
	for (other = dump_contexts; other; other = other->next)
		img->contexts += other->task == c->task;
	img->nr_vmas = nr_vmas;
	img->nr_fds = c->nr_fds;
	img->context_crc32 = ((struct rxe_migr_image_hdr *)c->data)->crc32;
	fill_vmas(c, (struct rp_vma *)rp_image_vmas(img));
	memcpy((uint32_t *)rp_image_fds(img), c->fds,
	       c->nr_fds * sizeof(uint32_t));
	rp_image_seal(img, RP_IMAGE_TASK, size);

	snprintf(name, sizeof(name), "rdma-task-%u.img", number);
	/* as for contexts: what would be refused later is refused now */
	why = rp_image_check(img, size, RP_IMAGE_TASK);
	if (why) {
		rp_err("pid %d, fd %d: %s: %s", c->task->pid, c->number, name,
		       why);
		err = -EINVAL;
	} else {
		err = rp_write_file(criu_get_image_dir(), name, img, size);
	}
	free(img);
	return err;
}

static int by_number(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* An event file that is open, but not in the task, would be lost */
static int check_event_files(struct dump_context *c)
{
	const struct rxe_migr_rec_comp_channel *rec;

	qsort(c->channels, c->nr_channels, sizeof(*c->channels), by_number);
	for (unsigned int i = 0; i < c->img.count; i++) {
		rec = (const void *)c->img.records[i];
		if (rec->rec.type == RXE_MIGR_ASYNC_FD && !c->has_async) {
			rp_err("pid %d, fd %d (%s): its asynchronous event file is open elsewhere only",
			       c->task->pid, c->number, c->dev.ibdev);
			return -EOPNOTSUPP;
		}
		if (rec->rec.type == RXE_MIGR_COMP_CHANNEL &&
		    !bsearch(&rec->cq, c->channels, c->nr_channels,
			     sizeof(*c->channels), by_number)) {
			rp_err("pid %d, fd %d (%s): the completion channel of CQ %u is open elsewhere only",
			       c->task->pid, c->number, c->dev.ibdev, rec->cq);
			return -EOPNOTSUPP;
		}
	}
	return 0;
}

/* Each file of a context is in one task: the restore makes all of them there */
static int check_shared(const struct rp_task *task)
{
	const struct dump_file *known;
	int fd;

	for (size_t i = 0; i < task->nr_fds; i++) {
		if (task->fds[i].kind != RP_EVENT)
			continue;
		fd = rp_take_fd(task->pid, task->fds[i].fd);
		if (fd < 0) {
			rp_err("pid %d, fd %d: cannot take: %s", task->pid,
			       task->fds[i].fd, strerror(errno));
			return -EIO;
		}
		known = dump_find_file(fd);
		close(fd);
		if (known && known->context->task != task)
			return dump_refuse_shared(task, task->fds[i].fd, known);
	}
	return 0;
}

/* who sends to a UD QP has its address from elsewhere, and nobody tells him */
static void warn_of_datagrams(const struct dump_context *c)
{
	const struct rxe_migr_rec_qp *qp;

	for (unsigned int i = 0; i < c->img.count; i++) {
		qp = (const void *)c->img.records[i];
		if (qp->rec.type == RXE_MIGR_QP && qp->qp_type == IBV_QPT_UD &&
		    qp->state >= IBV_QPS_RTR && qp->state <= IBV_QPS_SQD)
			rp_warn("pid %d, fd %d (%s): QP %u (QPN %#x) is UD: who sends to it does not learn where it will be",
				c->task->pid, c->number, c->dev.ibdev,
				qp->rec.handle, qp->qpn);
	}
}

static int write_context(struct dump_context *c, unsigned int number)
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
	err = rp_rings_init(&c->rings, &c->img);
	if (!err)
		err = check_event_files(c);
	if (err)
		return err;
	warn_of_datagrams(c);
	snprintf(name, sizeof(name), "rdma-ctx-%u.img", number);
	err = rp_write_file(criu_get_image_dir(), name, c->data, length);
	if (err)
		rp_err("cannot write %s: %s", name, strerror(-err));
	else
		rp_info("%s: %u objects, %zu bytes", name, c->img.count,
			length);
	return err;
}

/*
 * Is there a partner that has not heard that it is to wait? When the tasks are gone nobody
 * tells him any more.
 */
static int wait_heard(const struct dump_context *c)
{
	struct rxe_migr_status st;
	struct migr_error why;
	int err;

	if (c->guard < 0)
		return 0;
	err = migr_cmd_commit(c->fd, RXE_MIGR_COMMIT_CHECK_ONLY, HEARD_MS, &st);
	if (err) {
		migr_status_text(&st, err, &why);
		rp_err("pid %d, fd %d (%s): not all wait: %s", c->task->pid,
		       c->number, c->dev.ibdev, why.text);
	}
	return err;
}

static int write_all(void)
{
	unsigned int number;
	struct dump_context *c;
	struct dump_task *t;
	int err = 0;

	for (t = dump_tasks; t && !err; t = t->next)
		err = check_shared(&t->scan);
	/* before there is an image, of which the partners would hear */
	if (!err)
		err = dump_check_outside();
	for (c = dump_contexts, number = 0; c && !err; c = c->next)
		err = write_context(c, number++);
	if (!err)
		err = check_maps();
	for (c = dump_contexts; c && !err; c = c->next)
		err = wait_heard(c);
	for (c = dump_contexts, number = 0; c && !err; c = c->next) {
		err = write_task(c, number);
		if (err)
			rp_err("cannot write rdma-task-%u.img: %s", number,
			       strerror(-err));
		number++;
	}
	return err ?: dump_write_foreign();
}

int rp_dump_file(int lfd, uint32_t id)
{
	const struct dump_file *f = dump_find_file(lfd);
	struct rp_file_image img = { .flags = fcntl(lfd, F_GETFL) };
	const struct dump_context *c;
	char name[32];
	int err;

	if (!f)
		return RP_NOT_OURS;
	if (!written) {
		begun = true;
		if (rp_remove_images(criu_get_image_dir()))
			rp_warn("cannot remove the files of an older dump");
		err = write_all();
		if (err)
			return err;
		written = true;
	}
	if (rp_file_has_context(f->type))
		for (c = dump_contexts; c != f->context; c = c->next)
			img.context++;
	else
		img.context = RXE_MIGR_NO_HANDLE;
	img.type = f->type;
	img.channel = f->channel;
	rp_image_seal(&img, RP_IMAGE_FILE, sizeof(img));
	snprintf(name, sizeof(name), "rdma-file-%x.img", id);
	err = rp_write_file(criu_get_image_dir(), name, &img, sizeof(img));
	if (err)
		rp_err("cannot write %s: %s", name, strerror(-err));
	return err;
}

bool dump_is_incremental(void)
{
	return rp_is_incremental(criu_get_image_dir());
}

static bool has_device(const struct dump_context *c, dev_t rdev)
{
	while (c && c->dev.rdev != rdev)
		c = c->next;
	return c;
}

bool rp_dump_knows(dev_t rdev)
{
	return has_device(dump_contexts, rdev) ||
	       has_device(dump_foreign, rdev);
}

/* ---- the outcome ---- */

static bool all_dying(void)
{
	for (struct dump_context *c = dump_contexts; c; c = c->next)
		if (!rp_task_dying(c->task->pid))
			return false;
	return true;
}

/* CRIU kills all of the tree or nothing of it; a task may also exit by itself */
static bool tasks_killed(void)
{
	for (int i = 0; i < 20; i++) {
		if (all_dying())
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
	struct rxe_migr_status st;
	struct dump_context *c;
	int err;

	if (getpid() != owner || !dump_contexts)
		return;
	if (outcome_due && tasks_killed())
		for (c = dump_contexts; c; c = c->next) {
			err = c->guard < 0
				      ? 0
				      : migr_cmd_commit(c->fd,
							RXE_MIGR_COMMIT_FORCE,
							0, &st);
			if (err)
				rp_err("cannot commit: %s", strerror(-err));
		}
	dump_release_all();
}

int dump_settle_at_exit(void)
{
	owner = getpid();
	return atexit(settle);
}

/* CRIU has decided about the tasks of the dump before, and does something else */
void rp_dump_settle(void)
{
	settle();
	dump_release_all();
	begun = written = false;
	outcome_due = false;
}

void rp_dump_begin(void)
{
	dump_forget_plugin();
}

/* as the driver's UNSTOP makes sure: or there would be two who go on from it */
static void warn_of_images(void)
{
	const struct rxe_migr_rec_qp *qp;
	const struct dump_context *c;
	unsigned int connected = 0;

	for (c = dump_contexts; c; c = c->next)
		for (unsigned int i = 0; i < c->img.count; i++) {
			qp = (const void *)c->img.records[i];
			connected += qp->rec.type == RXE_MIGR_QP &&
				     migr_qp_connected(qp);
		}
	if (connected)
		rp_warn("these images are good for no connection that leads out of them, for the tasks run on: whoever is restored from them will not be answered (QPs with a peer: %u)",
			connected);
}

void rp_dump_finish(bool failed, bool tasks_live)
{
	if (!dump_tasks)
		return;
	if (failed && begun)
		rp_remove_images(criu_get_image_dir());
	if (!failed && tasks_live)
		warn_of_images();
	if (failed || tasks_live)
		dump_release_all();
	else
		outcome_due = true;
	/* nothing of these has been stopped */
	dump_release_foreign();
}
