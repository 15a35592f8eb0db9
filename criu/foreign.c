// SPDX-License-Identifier: GPL-2.0
/*
 * Devices that cannot migrate by themselves: of other drivers, and of the stock
 * rdma_rxe. A process with such devices can be dumped when the layer
 * (libmigrrdma.so) has suspended it: nothing is under way then, and after the
 * restore the layer makes all objects anew. So nothing has to be carried but the
 * numbers of the files and the addresses of the mappings, see dead.c.
 *
 * Only the process itself can know that it is suspended. It says so by a memfd
 * with a name that nobody has by chance and its own pid in it, open as long as it
 * holds still. Each process has to say it, and to be the only one that has its devices open: the
 * layer makes objects anew where they had been made, and cannot share them.
 */
#include <criu/criu-plugin.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dump.h"

struct dump_context *dump_foreign;

/* Takes ownership of `fd` */
static int take(struct rp_task *task, int number, const struct rp_device *dev,
		int fd)
{
	struct dump_context *c = dump_new_context(task, number, dev, fd);

	if (!c)
		return -ENOMEM;
	c->next = dump_foreign;
	dump_foreign = c;
	rp_info("pid %d, fd %d (%s): will be dead", task->pid, number,
		dev->ibdev);
	return dump_keep_context(c, RP_FILE_DEAD) ?: dump_need_plugin();
}

int dump_take_foreign(struct rp_task *task, const struct rp_fd *f,
		      const struct rp_device *dev, int fd)
{
	if (task->suspended)
		return take(task, f->fd, dev, fd);
	close(fd);
	rp_err("pid %d, fd %d (%s): %s cannot migrate it, and the layer has not suspended the process: run it under libmigrrdma.so, and suspend it before the dump",
	       task->pid, f->fd, dev->ibdev,
	       rp_device_is_rxe(dev) ? "the stock rdma_rxe" : "its driver");
	return -EOPNOTSUPP;
}

/* Files of devices; those of events have none here */
static bool has_device(const struct rp_task *task)
{
	const struct dump_context *c = dump_foreign;

	while (c && (c->task != task || !c->dev.rdev))
		c = c->next;
	return c;
}

int dump_take_foreign_event(struct rp_task *task, const struct rp_fd *f, int fd)
{
	/* the kernel does not say of which device */
	static const struct rp_device any = { .ibdev = "events" };

	if (!has_device(task))
		rp_warn("pid %d, fd %d: verbs events, and the process has no device that cannot migrate open; should they be of another process's context, they would be lost",
			task->pid, f->fd);
	return take(task, f->fd, &any, fd);
}

bool dump_owns_foreign_map(const struct rp_task *task, const struct rp_map *map)
{
	for (const struct dump_context *c = dump_foreign; c; c = c->next)
		if (c->task == task && c->dev.rdev == map->rdev)
			return map->shared;
	return false;
}

static void fill_vmas(const struct rp_task *task, struct rp_vma *vma)
{
	const struct rp_map *map = task->maps;

	for (size_t i = 0; i < task->nr_maps; i++, map++)
		if (dump_owns_foreign_map(task, map))
			*vma++ = (struct rp_vma){
				.start = map->start,
				.end = map->end,
				.offset = map->offset,
				.prot = map->prot,
			};
}

static int write_task(const struct rp_task *task, uint32_t nr_files,
		      unsigned int number)
{
	size_t size, nr_vmas = 0;
	struct rp_dead_image *img;
	const char *why;
	char name[32];
	int err;

	for (size_t i = 0; i < task->nr_maps; i++)
		nr_vmas += dump_owns_foreign_map(task, task->maps + i);
	size = rp_dead_image_size(nr_vmas);
	img = calloc(1, size);
	if (!img)
		return -ENOMEM;
	img->vpid = task->vpid;
	img->max_fd = task->max_fd;
	img->nr_files = nr_files;
	img->nr_vmas = nr_vmas;
	fill_vmas(task, (struct rp_vma *)rp_dead_vmas(img));
	rp_image_seal(img, RP_IMAGE_DEAD, size);

	snprintf(name, sizeof(name), "rdma-dead-%u.img", number);
	/* what would be refused later is refused now */
	why = rp_image_check(img, size, RP_IMAGE_DEAD);
	err = why ? -EINVAL
		  : rp_write_file(criu_get_image_dir(), name, img, size);
	if (err)
		rp_err("pid %d: cannot write %s: %s", task->pid, name,
		       why ?: strerror(-err));
	else
		rp_info("%s: pid %d, %u files, %zu mappings", name, task->pid,
			nr_files, nr_vmas);
	free(img);
	return err;
}

int dump_write_foreign(void)
{
	unsigned int number = 0;
	uint32_t nr_files;
	int err = 0;

	for (struct dump_task *t = dump_tasks; t && !err; t = t->next) {
		nr_files = 0;
		for (struct dump_context *c = dump_foreign; c; c = c->next)
			nr_files += c->task == &t->scan;
		if (nr_files)
			err = write_task(&t->scan, nr_files, number++);
	}
	return err;
}
