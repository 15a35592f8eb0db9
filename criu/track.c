// SPDX-License-Identifier: GPL-2.0
/*
 * Rounds before a dump (criu pre-dump), and dumps that are a difference to older images
 * (--prev-images-dir): CRIU asks the page tables what has changed, which do not know what
 * the device writes. The driver does, and makes it soft-dirty (TRACK, rxe_migr_abi.h).
 *
 * In a round PAUSE_DEVICES names the tasks, which still run. When CRIU looks at the first
 * mapping of a device all of them are frozen, and it has copied and cleared nothing yet.
 * (Who has no mapping of it has no queue, and nothing is written for him.)
 *
 * That a context was tracked before, the driver says. If it was not, it may be one that has
 * been opened since the older images were made: all of its memory has been pinned since
 * then, which makes it dirty. So each round leaves an image with what it has tracked.
 */
#define _GNU_SOURCE
#include <criu/criu-plugin.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rdma_plugin.h"

static pid_t *pids;
static size_t nr_pids;
static bool done; /* in this round */
static struct rp_tracked_image *list;
/* of the images to which this is a difference, once it has been looked for */
static struct rp_tracked_image *older;
static bool has_looked;

static size_t size_of(uint32_t nr)
{
	return sizeof(struct rp_tracked_image) + nr * sizeof(struct rp_tracked);
}

void rp_track_begin(void)
{
	free(pids);
	free(list);
	free(older);
	pids = NULL;
	nr_pids = 0;
	list = older = NULL;
	done = has_looked = false;
}

/* ---- what the round before has left ------------------------------------ */

static const struct rp_tracked_image *older_image(void)
{
	int dir;
	void *img;

	if (has_looked)
		return older;
	has_looked = true;
	dir = openat(criu_get_image_dir(), "parent",
		     O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return NULL;
	rp_image_any_dump();
	if (!faccessat(dir, RP_TRACKED_NAME, F_OK, 0) &&
	    !rp_read_image(dir, RP_TRACKED_NAME, RP_IMAGE_TRACKED, &img))
		older = img;
	close(dir);
	return older;
}

/* Was it there, and has lost what was written since? Also yes, if nobody can tell */
static bool was_there(pid_t pid, int number)
{
	const struct rp_tracked_image *img = older_image();

	for (uint32_t i = 0; img && i < img->nr; i++)
		if (img->tracked[i].pid == pid && img->tracked[i].fd == number)
			return true;
	return !img;
}

/* ---- what this one leaves ---------------------------------------------- */

static int add(pid_t pid, int number)
{
	uint32_t nr = list ? list->nr : 0;
	struct rp_tracked_image *img = realloc(list, size_of(nr + 1));

	if (!img)
		return -ENOMEM;
	if (!list)
		memset(img, 0, sizeof(*img));
	list = img;
	list->tracked[list->nr++] = (struct rp_tracked){ pid, number };
	return 0;
}

static int write_list(void)
{
	static struct rp_tracked_image none;
	struct rp_tracked_image *img = list ?: &none;
	int err;

	rp_image_seal(img, RP_IMAGE_TRACKED, size_of(img->nr));
	err = rp_write_file(criu_get_image_dir(), RP_TRACKED_NAME, img,
			    size_of(img->nr));
	if (err)
		rp_err("%s: %s", RP_TRACKED_NAME, strerror(-err));
	return err;
}

/* ---- contexts ---------------------------------------------------------- */

/* Nor is it done if somebody tries again */
static int refuse(pid_t pid, int number, int fd, const char *why)
{
	struct rxe_migr_track_resp resp;

	migr_cmd_track(fd, RXE_MIGR_TRACK_END, 0, &resp);
	rp_err("pid %d, fd %d: its memory cannot be dumped as a difference to older images (--prev-images-dir): %s",
	       pid, number, why);
	return -EOPNOTSUPP;
}

int rp_track_last(pid_t pid, int number, int fd)
{
	struct rxe_migr_track_resp resp;
	int err = migr_cmd_track(fd, 0, pid, &resp);

	if (err == -EINVAL) /* the device is open, but has no context */
		return RP_NOT_OURS;
	if (err) {
		rp_err("pid %d, fd %d: cannot tell what the device has written: %s",
		       pid, number, migr_errno_text(err));
		return err;
	}
	rp_info("pid %d, fd %d: the device has written %llu pages of %u MRs",
		pid, number, (unsigned long long)resp.pages, resp.regions);
	if (!rp_is_incremental(criu_get_image_dir()))
		return 0;
	if (resp.flags & RXE_MIGR_TRACK_LOST)
		return refuse(
			pid, number, fd,
			"RDMA has written what is mapped elsewhere by now");
	if (resp.flags & RXE_MIGR_TRACK_BEGUN && was_there(pid, number))
		return refuse(pid, number, fd,
			      "what RDMA has written since was not tracked");
	return 0;
}

/* Is it of a device that says what it writes? @fd: ours */
static int check(const struct rp_task *task, const struct rp_fd *f, int fd)
{
	struct rxe_migr_resolve_resp resp;
	int err = migr_cmd_resolve(fd, fd, &resp);

	if (!err)
		return 0;
	rp_err("pid %d, fd %d: what this device writes nobody can tell: no pre-copy (%s)",
	       task->pid, f->fd, strerror(-err));
	return -EOPNOTSUPP;
}

static int track(const struct rp_task *task, const struct rp_fd *f, int fd)
{
	int err = rp_track_last(task->pid, f->fd, fd);

	if (err == RP_NOT_OURS)
		return 0;
	return err ?: add(task->pid, f->fd);
}

/* Of one that is about to end nothing is copied, nor of a file that is closed */
static bool is_gone(int err)
{
	return err == -ESRCH || err == -ENOENT || err == -EBADF;
}

typedef int device_fn(const struct rp_task *task, const struct rp_fd *f,
		      int fd);

static int for_one(const struct rp_task *task, const struct rp_fd *f,
		   device_fn *fn)
{
	int fd = rp_take_fd(task->pid, f->fd), err = -errno;

	if (fd < 0 && is_gone(err))
		return 0;
	if (fd < 0) {
		rp_err("pid %d, fd %d: cannot take: %s", task->pid, f->fd,
		       strerror(-err));
		return err;
	}
	err = fn(task, f, fd);
	close(fd);
	return err;
}

static int for_each_device(pid_t pid, device_fn *fn)
{
	struct rp_task task;
	int err = rp_task_scan(pid, &task);

	if (err)
		return is_gone(err) ? 0 : err;
	for (size_t i = 0; i < task.nr_fds && !err; i++)
		if (task.fds[i].kind == RP_UVERBS)
			err = for_one(&task, task.fds + i, fn);
	rp_task_free(&task);
	return err;
}

int rp_track_note(pid_t pid)
{
	int err = for_each_device(pid, check);
	pid_t *more;

	/* who comes after this is not in it, and was not there */
	if (!err && !nr_pids)
		err = write_list();
	if (err)
		return err;
	more = reallocarray(pids, nr_pids + 1, sizeof(*pids));
	if (!more)
		return -ENOMEM;
	pids = more;
	pids[nr_pids++] = pid;
	return RP_NOT_OURS;
}

int rp_track_round(dev_t rdev)
{
	struct rp_device dev;
	int err = 0;

	if (rp_device_of(rdev, &dev) || !rp_device_is_rxe(&dev))
		return RP_NOT_OURS;
	if (done)
		return 0;
	done = true;
	for (size_t i = 0; i < nr_pids && !err; i++)
		err = for_each_device(pids[i], track);
	return err ?: write_list();
}
