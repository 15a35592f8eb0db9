// SPDX-License-Identifier: GPL-2.0
/*
 * Dead files and mappings: what a task gets back of devices that cannot migrate
 * by themselves. The layer, which the dump found holding still, makes its objects
 * anew on a device of this host. Until it has done so its old provider may still
 * ring a doorbell, and somebody wait for an event.
 *
 * A dead file is a timer that nobody sets. It is never ready, like an event file
 * without events; read() waits, or says EAGAIN; write() and ioctl() are refused;
 * epoll takes it; and CRIU can dump it, so that the task can move once more. What
 * else there is: an eventfd lets itself be written to, and then be read. Somebody
 * must hold the other end of a pipe. Of inotify a user has 128. A signalfd wakes
 * up with its task's signals, and epoll takes no memfd.
 *
 * A dead mapping is memory, zero at first: nobody else maps it.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "rdma_plugin.h"

struct rp_dead *rp_dead;
unsigned int rp_nr_dead;

/* A task can have many mappings, and is asked for each */
static uint64_t *find_places(const struct rp_dead_image *img)
{
	uint64_t *place = calloc((size_t)img->nr_vmas + 1, sizeof(*place));
	const struct rp_vma *vma = rp_dead_vmas(img);

	for (uint32_t i = 0; place && i < img->nr_vmas; i++)
		place[i + 1] = place[i] + vma[i].end - vma[i].start;
	return place;
}

static int read_one(int dir, const char *name, uint32_t number)
{
	uint64_t *place;
	struct rp_dead *d;
	void *img;
	int err;

	(void)number;
	err = rp_read_image(dir, name, RP_IMAGE_DEAD, &img);
	if (err)
		return err;
	d = rp_dead_of(((struct rp_dead_image *)img)->vpid);
	if (d) {
		rp_err("%s: two of the same task, pid %u", name, d->img->vpid);
		free(img);
		return -EINVAL;
	}
	place = find_places(img);
	d = reallocarray(rp_dead, rp_nr_dead + 1, sizeof(*d));
	if (d)
		rp_dead = d;
	if (!d || !place) {
		free(place);
		free(img);
		return -ENOMEM;
	}
	d[rp_nr_dead++] = (struct rp_dead){ .img = img, .place = place };
	return 0;
}

int rp_dead_read(int dir)
{
	return rp_for_each_image(dir, "rdma-dead-", 10, read_one);
}

void rp_dead_free(void)
{
	while (rp_nr_dead) {
		free(rp_dead[--rp_nr_dead].img);
		free(rp_dead[rp_nr_dead].place);
	}
	free(rp_dead);
	rp_dead = NULL;
}

uint64_t rp_dead_files(void)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < rp_nr_dead; i++)
		n += rp_dead[i].img->nr_files;
	return n;
}

struct rp_dead *rp_dead_of(uint32_t vpid)
{
	for (unsigned int i = 0; i < rp_nr_dead; i++)
		if (rp_dead[i].img->vpid == vpid)
			return rp_dead + i;
	return NULL;
}

int rp_dead_open(void)
{
	return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
}

uint64_t rp_dead_size(const struct rp_dead *dead)
{
	return dead->place[dead->img->nr_vmas];
}

const struct rp_dead *rp_dead_find_vma(uint64_t start, uint64_t offset,
				       uint64_t *place)
{
	const struct rp_dead *d = rp_dead_of(getpid());
	const struct rp_vma *vmas, *found;

	if (!d)
		return NULL;
	vmas = rp_dead_vmas(d->img);
	found = rp_find_vma(vmas, d->img->nr_vmas, start, offset);
	if (!found)
		return NULL;
	*place = d->place[found - vmas];
	return d;
}
