// SPDX-License-Identifier: GPL-2.0
/*
 * Rounds before a dump (criu pre-dump), and dumps that are a difference to older images
 * (--prev-images-dir): CRIU asks the page tables what has changed, which do not know what
 * the device writes. The driver does, and makes it soft-dirty (TRACK, rxe_migr_abi.h).
 *
 * In a round PAUSE_DEVICES names the tasks, some of which may still run: their contexts are
 * tracked from then on, if they have not been before. When CRIU looks at the first mapping of a
 * device all tasks are frozen, and it has copied and cleared only of tasks that have none: so they
 * are asked once more. (Who has no mapping of it has no queue: nothing is written for him, until
 * he makes one.)
 *
 * Each round has a number, and the driver says which one a context was in before: not in
 * that of the older images, but in another one, if they are not the last ones, if the one
 * after them came to nothing, or if somebody else has tracked it. If it was in none, it may
 * be a context that has been opened since the older images were made: all of its memory
 * has been pinned since then, which makes it dirty. So each round leaves an image with
 * what it has tracked, by numbers that the driver gives: pid and file descriptor may be
 * used again. Of a context that has ended since then, the driver has made dirty what it had
 * written, or counts it.
 */
#define _GNU_SOURCE
#include <criu/criu-plugin.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rdma_plugin.h"

static pid_t *pids;
static size_t nr_pids;
static bool done; /* in this round */
static struct rp_tracked_image *list;

/* contexts that have ended for which TRACK would have said LOST, as the module tells it */
static struct {
	bool known;
	uint32_t count; /* how many, from a random number on */
	uint32_t nr;	/* the last ones of them, the very last first */
	uint64_t context[64];
} lost; /* when it was looked for the last time: what comes later the next one finds */

/* of the images to which this is a difference, once it has been looked for */
static struct rp_tracked_image *older;
static bool has_looked;
static const char *no_older; /* why there is none, though there should be */

static const char *lost_path = "/sys/module/rdma_rxe/parameters/migr_lost";

/* not known: there is no such module, maybe no more, or it is the stock one */
static void look_for_lost(void)
{
	FILE *f = fopen(lost_path, "re");
	const uint32_t most = sizeof(lost.context) / sizeof(*lost.context);

	lost.known = f && fscanf(f, "%" SCNu32, &lost.count) == 1;
	lost.nr = 0;
	while (lost.known && lost.nr < most &&
	       fscanf(f, "%" SCNu64, lost.context + lost.nr) == 1)
		lost.nr++;
	if (f)
		fclose(f);
}

static size_t size_of(uint32_t nr)
{
	return sizeof(struct rp_tracked_image) + nr * sizeof(uint64_t);
}

void rp_track_begin(void)
{
	free(pids);
	free(list);
	free(older);
	pids = NULL;
	nr_pids = 0;
	list = older = NULL;
	no_older = NULL;
	done = has_looked = lost.known = false;
}

/* ---- what the round before has left ------------------------------------ */

static int is_there(int dir, const char *name, uint32_t number)
{
	(void)dir;
	(void)name;
	(void)number;
	return 1;
}

/* A dump leaves these, if there was a context. */
static bool has_contexts(int dir)
{
	return rp_for_each_image(dir, "rdma-ctx-", 10, is_there) ||
	       rp_for_each_image(dir, "rdma-task-", 10, is_there);
}

static void look_for_older(int dir)
{
	void *img;

	rp_image_any_dump();
	if (!faccessat(dir, RP_TRACKED_NAME, F_OK, AT_SYMLINK_NOFOLLOW)) {
		if (rp_read_image(dir, RP_TRACKED_NAME, RP_IMAGE_TRACKED, &img))
			no_older = "what they say of contexts cannot be read";
		else
			older = img;
	} else if (errno != ENOENT || has_contexts(dir)) {
		no_older = "they do not say which contexts were tracked";
	}
}

static const struct rp_tracked_image *older_image(void)
{
	int dir;

	if (has_looked)
		return older;
	has_looked = true;
	dir = openat(criu_get_image_dir(), "parent",
		     O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0) {
		look_for_older(dir);
		close(dir);
	} else if (errno != ENOENT) { /* to CRIU, too, that is no parent */
		no_older = "they cannot be read";
	}
	return older;
}

static bool is_in(const struct rp_tracked_image *img, uint64_t context)
{
	for (uint32_t i = 0; img && i < img->nr; i++)
		if (img->contexts[i] == context)
			return true;
	return false;
}

/*
 * Is all seen that was written since the older images were made? What is not in their list
 * has come since, and has no round before this one.
 */
static bool follows(const struct rxe_migr_track_resp *resp)
{
	const struct rp_tracked_image *img = older_image();

	return img &&
	       resp->since == (is_in(img, resp->context) ? img->hdr.dump : 0);
}

/* ---- what this one leaves ---------------------------------------------- */

static int add(uint64_t context)
{
	uint32_t nr = list ? list->nr : 0;
	struct rp_tracked_image *img = realloc(list, size_of(nr + 1));

	if (!img)
		return -ENOMEM;
	if (!list)
		memset(img, 0, sizeof(*img));
	list = img;
	list->contexts[list->nr++] = context;
	return 0;
}

/*
 * Of the older images' contexts one may be on its way to its end: its file is closed, and it is
 * counted as lost when its memory has been let go. So it stays in the list, for the next one.
 */
static int keep_older(void)
{
	const struct rp_tracked_image *img = older_image();
	int err = 0;

	for (uint32_t i = 0; img && i < img->nr && !err; i++)
		if (!is_in(list, img->contexts[i]))
			err = add(img->contexts[i]);
	return err;
}

static int write_list(void)
{
	static struct rp_tracked_image none;
	struct rp_tracked_image *img;
	int err = keep_older();

	if (err)
		return err;
	img = list ?: &none;

	/* or the next one could not tell who has ended */
	if (img->nr && !lost.known) {
		rp_err("migr_lost: cannot tell which contexts have ended (%s)",
		       lost_path);
		return -EIO;
	}
	img->lost = lost.known ? lost.count : 0;
	rp_image_seal(img, RP_IMAGE_TRACKED, size_of(img->nr));
	err = rp_write_file(criu_get_image_dir(), RP_TRACKED_NAME, img,
			    size_of(img->nr));
	if (err)
		rp_err("%s: %s", RP_TRACKED_NAME, strerror(-err));
	return err;
}

/* ---- contexts ---------------------------------------------------------- */

static void say_refused(pid_t pid, int number, const char *why)
{
	rp_err("pid %d, fd %d: its memory cannot be dumped as a difference to older images (--prev-images-dir): %s",
	       pid, number, why);
}

/* What of it is seen only in a whole copy? NULL: nothing */
static const char *not_seen(const struct rxe_migr_track_resp *resp)
{
	static char text[160];

	if (resp->unseen) {
		snprintf(
			text, sizeof(text),
			"what is written at %#llx the kernel does not see (hugetlb, or mprotect() after the mapping had grown)",
			(unsigned long long)resp->unseen);
		return text;
	}
	if (resp->flags & RXE_MIGR_TRACK_LOST)
		return "RDMA has written what is mapped elsewhere by now";
	if (!follows(resp))
		return "what RDMA has written since was not tracked";
	return NULL;
}

/*
 * Has one of the list ended, and was lost? Also yes, if nobody can tell. Of one that has come
 * since, all memory is dirty
 */
static bool has_lost(const struct rp_tracked_image *img)
{
	const uint32_t since = lost.count - img->lost;

	if (!img->nr)
		return false;
	if (!lost.known || since > lost.nr)
		return true;
	for (uint32_t i = 0; i < since; i++)
		if (is_in(img, lost.context[i]))
			return true;
	return false;
}

int rp_track_check_ended(pid_t pid)
{
	const struct rp_tracked_image *img = older_image();
	const char *why = no_older;

	look_for_lost();
	if (img && has_lost(img))
		why = "a context has ended since, maybe its own, for which RDMA had written what was mapped elsewhere, or was not seen";
	if (!why)
		return 0;
	rp_err("pid %d: its memory cannot be dumped as a difference to older images (--prev-images-dir): %s",
	       pid, why);
	return -EOPNOTSUPP;
}

static int track_one(pid_t pid, int number, int fd,
		     struct rxe_migr_track_resp *resp)
{
	int err = migr_cmd_track_round(fd, pid, rp_image_dump(), resp);
	const char *why;

	if (err == -EINVAL) /* the device is open, but has no context */
		return RP_NOT_OURS;
	if (err == -ESRCH && !rp_task_has_memory(pid)) /* it is about to end */
		return RP_NOT_OURS;
	if (err) {
		rp_err("pid %d, fd %d: cannot tell what the device has written: %s",
		       pid, number, migr_errno_text(err));
		return err;
	}
	rp_info("pid %d, fd %d: the device has written %llu pages of %u MRs",
		pid, number, (unsigned long long)resp->pages, resp->regions);
	if (!rp_is_incremental(criu_get_image_dir()))
		return 0;
	why = not_seen(resp);
	if (!why)
		return 0;
	/* so it is if somebody tries again: then there was this round in between */
	say_refused(pid, number, why);
	return -EOPNOTSUPP;
}

int rp_track_last(pid_t pid, int number, int fd)
{
	struct rxe_migr_track_resp resp;
	int err = track_one(pid, number, fd, &resp);

	if (err != RP_NOT_OURS)
		return err;
	/* for CRIU that would be the word on the whole task, of which something is stopped */
	say_refused(pid, number, "it has no context, or no memory, any more");
	return -EOPNOTSUPP;
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
	struct rxe_migr_track_resp resp;
	int err = track_one(task->pid, f->fd, fd, &resp);

	if (err == RP_NOT_OURS)
		return 0;
	/* it may have several descriptors, and the task two names */
	return err || is_in(list, resp.context) ? err : add(resp.context);
}

typedef int device_fn(const struct rp_task *task, const struct rp_fd *f,
		      int fd);

static int for_one(const struct rp_task *task, const struct rp_fd *f,
		   device_fn *fn)
{
	int fd = rp_take_fd(task->pid, f->fd), err = -errno;

	if (fd < 0 && rp_is_gone(err))
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
	int err = rp_task_scan_files(pid, &task);

	if (err)
		return rp_is_gone(err) ? 0 : err;
	for (size_t i = 0; i < task.nr_fds && !err; i++)
		if (task.fds[i].kind == RP_UVERBS)
			err = for_one(&task, task.fds + i, fn);
	rp_task_free(&task);
	return err;
}

static int check_and_track(const struct rp_task *task, const struct rp_fd *f,
			   int fd)
{
	return check(task, f, fd) ?: track(task, f, fd);
}

static bool is_noted(pid_t pid)
{
	for (size_t i = 0; i < nr_pids; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

/* CRIU gives the tasks so much time to stop, of which this is no part */
static int track_all(pid_t pid)
{
	const unsigned int left = alarm(0);
	int err = for_each_device(pid, check_and_track);

	alarm(left);
	return err;
}

int rp_track_note(pid_t pid)
{
	pid_t *more;
	int err;

	if (is_noted(pid))
		return RP_NOT_OURS;
	/* who comes after this is not in the list, and was not there */
	err = rp_track_check_ended(pid) ?: track_all(pid) ?: write_list();
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
	int err;

	if (rp_device_of(rdev, &dev) || !rp_device_is_rxe(&dev))
		return RP_NOT_OURS;
	if (done)
		return 0;
	done = true;
	err = nr_pids ? rp_track_check_ended(pids[0]) : 0;
	for (size_t i = 0; i < nr_pids && !err; i++)
		err = for_each_device(pids[i], track);
	return err ?: write_list();
}
