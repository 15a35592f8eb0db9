// SPDX-License-Identifier: GPL-2.0
/*
 * The restore side up to the point where CRIU's restorer takes over.
 *
 * The master reads and checks every image before a task exists. The tasks are
 * its children and inherit what was read; each makes its own contexts when CRIU
 * opens their first file. MRs are still shells then and QPs stopped; the rest
 * is done in late.c.
 */
#define _GNU_SOURCE
#include <criu/criu-plugin.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rdma_plugin.h"

struct rp_context *rp_contexts;
unsigned int rp_nr_contexts;

static struct file {
	uint32_t id;
	struct rp_file_image *img;
	int fd; /* in the restored task, until it is handed out; -1 */
} *files;
static unsigned int nr_files;

static bool *made = MAP_FAILED; /* of each context, shared with the tasks */
static size_t made_bytes;

static struct rp_device cm; /* rdma_cm's, if a file is of that */

/* was the plug-in in use at the dump? CRIU >= 4.1 */
bool check_and_remove_inventory_plugin(const char *name, size_t n)
	__attribute__((weak));

/* ---- reading ---- */

static int bad(const char *name, const char *why)
{
	rp_err("%s: %s", name, why);
	return -EINVAL;
}

/* Each mapping of the task is one of the context's rings */
static int check_vmas(const struct rp_context *c)
{
	const struct rp_vma *vma = rp_image_vmas(c->task);
	const struct rxe_migr_ring *ring;
	struct rp_rings rings;
	int err;

	err = rp_rings_init(&rings, &c->img);
	for (uint32_t i = 0; i < c->task->nr_vmas && !err; i++) {
		ring = rp_rings_find(&rings, vma[i].offset);
		if (!ring || ring->mmap_size != vma[i].end - vma[i].start)
			err = -EINVAL;
	}
	rp_rings_free(&rings);
	return err;
}

static int read_context(int dir, struct rp_context *c, uint32_t number)
{
	struct migr_error why;
	size_t length;
	char name[32];
	int err;

	snprintf(name, sizeof(name), "rdma-ctx-%u.img", number);
	err = rp_read_file(dir, name, &c->data, &length);
	if (err)
		return bad(name, strerror(-err));
	if (migr_image_parse(c->data, length, &c->img, &why))
		return bad(name, why.text);
	if (((struct rxe_migr_image_hdr *)c->data)->crc32 !=
	    c->task->context_crc32)
		return bad(name, "of another dump than its task");
	err = check_vmas(c);
	if (err)
		return bad(name, err == -EINVAL
					 ? "a mapping of the task is no ring"
					 : strerror(-err));
	return 0;
}

static int read_task(int dir, const char *name, uint32_t number)
{
	struct rp_context *c;
	void *img;
	int err;

	if (number >= rp_nr_contexts)
		return bad(name, "the image of another context is missing");
	err = rp_read_image(dir, name, RP_IMAGE_TASK, &img);
	if (err)
		return err;
	c = rp_contexts + number;
	c->task = img;
	if (c->task->context != number)
		return bad(name, "another context's image");
	return read_context(dir, c, number);
}

static int count_task(int dir, const char *name, uint32_t number)
{
	(void)dir;
	(void)name;
	(void)number;
	rp_nr_contexts++;
	return 0;
}

/* A task has so many as each of them says, and each by a number of its own */
static bool know_of_each_other(const struct rp_context *c)
{
	const struct rp_context *other = rp_contexts;
	uint32_t n = 0;

	for (; other < rp_contexts + rp_nr_contexts; other++) {
		if (other->task->vpid != c->task->vpid)
			continue;
		if (other != c && other->task->fd == c->task->fd)
			return false;
		n++;
	}
	return n == c->task->contexts;
}

static int check_contexts(void)
{
	char name[32];

	for (uint32_t i = 0; i < rp_nr_contexts; i++)
		if (!know_of_each_other(rp_contexts + i)) {
			snprintf(name, sizeof(name), "rdma-task-%u.img", i);
			return bad(name,
				   "others of its task say something else");
		}
	return 0;
}

static int read_tasks(int dir)
{
	int err = rp_for_each_image(dir, "rdma-task-", 10, count_task);

	if (err)
		return err;
	rp_contexts = calloc(rp_nr_contexts + 1, sizeof(*rp_contexts));
	made_bytes = rp_nr_contexts + 1;
	made = mmap(NULL, made_bytes, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!rp_contexts || made == MAP_FAILED) {
		rp_nr_contexts = 0;
		return -ENOMEM;
	}
	for (unsigned int i = 0; i < rp_nr_contexts; i++) {
		rp_contexts[i].late_fd = -1;
		rp_contexts[i].is_made = made + i;
	}
	return rp_for_each_image(dir, "rdma-task-", 10, read_task)
		       ?: check_contexts();
}

static int read_file(int dir, const char *name, uint32_t id)
{
	const struct rp_file_image *file;
	struct file *f;
	void *img;
	int err;

	err = rp_read_image(dir, name, RP_IMAGE_FILE, &img);
	if (err)
		return err;
	file = img;
	if (rp_file_has_context(file->type) &&
	    file->context >= rp_nr_contexts) {
		free(img);
		return bad(name, "a file of no context");
	}
	f = reallocarray(files, nr_files + 1, sizeof(*f));
	if (!f) {
		free(img);
		return -ENOMEM;
	}
	files = f;
	files[nr_files++] = (struct file){ .id = id, .img = img, .fd = -1 };
	return 0;
}

/* by context, type and channel */
static int by_object(const void *a, const void *b)
{
	const struct rp_file_image *x = ((const struct file *)a)->img;
	const struct rp_file_image *y = ((const struct file *)b)->img;

	if (x->context != y->context)
		return x->context < y->context ? -1 : 1;
	if (x->type != y->type)
		return x->type < y->type ? -1 : 1;
	return (x->channel > y->channel) - (x->channel < y->channel);
}

static bool has_file(const struct rp_context *c, uint32_t type,
		     uint32_t channel)
{
	struct rp_file_image img = { .context = c - rp_contexts,
				     .type = type,
				     .channel = channel };
	const struct file key = { .img = &img };

	return bsearch(&key, files, nr_files, sizeof(key), by_object);
}

/* of channels without CQs a context can have any number, a task of the others */
static bool is_nameless(const struct file *f)
{
	return !rp_file_has_context(f->img->type) ||
	       (f->img->type == RXE_MIGR_COMP_CHANNEL &&
		f->img->channel == RXE_MIGR_NO_HANDLE);
}

/* What the context's image says was open has its file, and no file is of more */
static int check_files(struct rp_context *c)
{
	const struct rxe_migr_rec_comp_channel *rec;
	unsigned int found = 1; /* its own */

	if (!has_file(c, RXE_MIGR_CONTEXT, RXE_MIGR_NO_HANDLE))
		return bad("images", "that of a context's file is missing");
	for (unsigned int i = 0; i < c->img.count; i++) {
		rec = (const void *)c->img.records[i];
		if (rec->rec.type != RXE_MIGR_COMP_CHANNEL &&
		    rec->rec.type != RXE_MIGR_ASYNC_FD)
			continue;
		found++;
		if (!has_file(c, rec->rec.type,
			      rec->rec.type == RXE_MIGR_ASYNC_FD
				      ? RXE_MIGR_NO_HANDLE
				      : rec->cq))
			return bad("images",
				   "that of an event file is missing");
	}
	return found == c->nr_files
		       ? 0
		       : bad("images",
			     "one of a file that the context does not know");
}

static int sort_files(void)
{
	uint64_t nr_dead = 0;
	struct file *f;

	qsort(files, nr_files, sizeof(*files), by_object);
	for (f = files; f < files + nr_files; f++) {
		if (f > files && !is_nameless(f) && !by_object(f - 1, f))
			return bad("images", "two of the same file");
		if (!is_nameless(f))
			rp_contexts[f->img->context].nr_files++;
		nr_dead += f->img->type == RP_FILE_DEAD;
	}
	return nr_dead == rp_dead_files()
		       ? 0
		       : bad("images",
			     "that of a dead file, or of its task, is missing");
}

/* The first context on the same device */
static struct rp_context *first_on_device(const struct rp_context *c)
{
	struct rp_context *first = rp_contexts;

	while (strcmp(first->img.context->device, c->img.context->device))
		first++;
	return first;
}

/* The log may be read on a terminal */
static void say_no_device(const struct rxe_migr_rec_context *context)
{
	char name[sizeof(context->device)];
	size_t i = 0;

	do
		name[i] = context->device[i] < ' ' ? '?' : context->device[i];
	while (context->device[i++]);
	name[i - 1] = '\0';
	rp_err("this host has no RDMA device %s", name);
}

static int find_device(struct rp_context *c)
{
	if (rp_device_by_ibdev(c->img.context->device, &c->dev)) {
		say_no_device(c->img.context);
		return -ENODEV;
	}
	return rp_device_probe(&c->dev, &c->gids) ? -EOPNOTSUPP : 0;
}

/* The device of each context, asked only once */
static int find_devices(void)
{
	struct rp_context *c, *known;
	struct migr_error why;
	int err;

	for (c = rp_contexts; c < rp_contexts + rp_nr_contexts; c++) {
		if (!c->task)
			return bad("images", "an image is missing");
		if (check_files(c))
			return -EINVAL;
		known = first_on_device(c);
		if (known == c) {
			err = find_device(c);
			if (err)
				return err;
		}
		c->dev = known->dev;
		err = migr_check_mtu(&c->img, &known->gids, &why);
		if (err) {
			rp_err("%s: %s", c->dev.ibdev, why.text);
			return err;
		}
	}
	return 0;
}

/* Before a task exists: has this host rdma_cm, if a task wants it? */
static int find_cm(void)
{
	for (unsigned int i = 0; i < nr_files; i++) {
		if (files[i].img->type != RP_FILE_CM)
			continue;
		if (!rp_device_cm(&cm))
			return 0;
		rp_err("this host has no rdma_cm: is rdma_ucm loaded?");
		return -ENODEV;
	}
	return 0;
}

/*
 * Connections get this host's addresses, those between the tasks of the tree at
 * both ends. That is the master's work: it alone knows all contexts, and is in
 * the network namespace of the devices.
 */
static int relocate(void)
{
	struct migr_place *places;
	struct migr_error why;
	unsigned int i;
	int err;

	places = calloc(rp_nr_contexts + 1, sizeof(*places));
	if (!places)
		return -ENOMEM;
	for (i = 0; i < rp_nr_contexts; i++) {
		places[i].img = &rp_contexts[i].img;
		places[i].gids = &first_on_device(rp_contexts + i)->gids;
	}
	err = migr_relocate(places, rp_nr_contexts, &why);
	if (err)
		rp_err("%s", why.text);
	free(places);
	return err;
}

int rp_restore_init(void)
{
	int dir = criu_get_image_dir();
	int err;

	/* without us at the dump: any files are left over from another one */
	if (check_and_remove_inventory_plugin &&
	    !check_and_remove_inventory_plugin(RP_NAME, sizeof(RP_NAME)))
		return 0;
	if (dir < 0)
		return 0;
	rp_image_any_dump();
	err = read_tasks(dir);
	if (!err)
		err = rp_dead_read(dir);
	if (!err)
		err = rp_for_each_image(dir, "rdma-file-", 16, read_file);
	if (!err)
		err = sort_files();
	if (!err)
		err = find_devices();
	if (!err)
		err = find_cm();
	if (!err)
		err = relocate();
	if (err)
		rp_err("refusing to restore: %s", strerror(-err));
	return err;
}

void rp_restore_fini(void)
{
	struct rp_context *c;

	for (c = rp_contexts; c < rp_contexts + rp_nr_contexts; c++) {
		if (c->late_fd >= 0)
			close(c->late_fd);
		migr_image_free(&c->img);
		migr_gids_free(&c->gids);
		free(c->data);
		free(c->task);
	}
	free(rp_contexts);
	rp_contexts = NULL;
	if (made != MAP_FAILED)
		munmap(made, made_bytes);
	made = MAP_FAILED;
	rp_nr_contexts = 0;
	while (nr_files)
		free(files[--nr_files].img);
	free(files);
	files = NULL;
	rp_dead_free();
}

/* ---- in the restored task ---- */

/* Out of the way of the task's own files and of CRIU's */
static int move_high(uint32_t max_fd, int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, RP_HIGH_FD(max_fd));

	if (high < 0)
		rp_err("no free file descriptor: %s", strerror(errno));
	close(fd);
	return high;
}

/* Each file of the context gets what has been made for it */
static int take_files(struct rp_context *c, int fd, struct migr_files *made)
{
	struct file *f;
	int *from, new;

	for (f = files; f < files + nr_files; f++) {
		if (f->img->context != c - rp_contexts)
			continue;
		if (f->img->type == RXE_MIGR_CONTEXT) {
			f->fd = fd;
			continue;
		}
		from = &new;
		if (f->img->type == RXE_MIGR_ASYNC_FD)
			from = &made->async_fd;
		else if (f->img->channel != RXE_MIGR_NO_HANDLE)
			from = migr_files_channel(made, f->img->channel);
		else
			new = migr_cmd_new_channel(fd);
		if (*from < 0) {
			rp_err("file %#x: no completion channel: %s", f->id,
			       strerror(-*from));
			return -1;
		}
		f->fd = move_high(c->task->max_fd, *from);
		*from = -1;
		if (f->fd < 0)
			return -1;
	}
	return 0;
}

static int open_context(struct rp_context *c)
{
	unsigned int number = c - rp_contexts;
	struct migr_files made;
	struct migr_error why;
	int fd, err;

	fd = rp_device_open(&c->dev);
	if (fd >= 0)
		fd = move_high(c->task->max_fd, fd);
	if (fd < 0)
		return -1;
	err = migr_restore_context(fd, &c->img, &made, &why);
	if (err)
		rp_err("context %u (%s): %s", number, c->dev.ibdev, why.text);
	else
		err = take_files(c, fd, &made);
	/* what the application has closed */
	migr_files_close(&made);
	if (err) {
		close(fd);
		return -1;
	}
	c->open = true;
	*c->is_made = (uint32_t)getpid() == c->task->vpid;
	rp_info("context %u (%s): %u objects made", number, c->dev.ibdev,
		c->img.count);
	return 0;
}

/* What has been made for the file, in its task */
static int hand_out(struct file *f)
{
	struct rp_context *c;
	int fd;

	if (f->img->type == RP_FILE_CM)
		return rp_device_open(&cm);
	if (f->img->type == RP_FILE_DEAD) {
		fd = rp_dead_open();
		if (fd < 0)
			rp_err("file %#x: %s", f->id, strerror(errno));
		return fd;
	}
	c = rp_contexts + f->img->context;
	if (!c->open && open_context(c))
		return -1;
	fd = f->fd;
	f->fd = -1;
	if (fd < 0)
		rp_err("file %#x is asked for twice", f->id);
	return fd;
}

int rp_restore_file(uint32_t id)
{
	struct file *f;
	int fd;

	for (f = files; f < files + nr_files; f++)
		if (f->id == id)
			break;
	if (f == files + nr_files)
		return RP_NOT_OURS;
	fd = hand_out(f);
	if (fd < 0)
		return -1;
	if (fcntl(fd, F_SETFL, f->img->flags)) {
		rp_err("file %#x: cannot set its flags: %s", id,
		       strerror(errno));
		close(fd);
		return -1;
	}
	return fd;
}

static struct rp_context *find_vma(uint64_t start, uint64_t offset,
				   const struct rp_vma **vma)
{
	struct rp_context *c;

	for (c = rp_contexts; c < rp_contexts + rp_nr_contexts; c++) {
		*vma = c->open ? rp_find_vma(rp_image_vmas(c->task),
					     c->task->nr_vmas, start, offset)
			       : NULL;
		if (*vma)
			return c;
	}
	return NULL;
}

static int make_memory(uint64_t size)
{
	int fd = memfd_create(RP_STANDIN_NAME, MFD_CLOEXEC);

	if (fd >= 0 && ftruncate(fd, size)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* As large as the largest ring: CRIU may use it for several of them */
static int make_standin(void)
{
	const struct rp_vma *vma;
	struct rp_context *c;
	uint64_t size = 0;

	for (c = rp_contexts; c < rp_contexts + rp_nr_contexts; c++) {
		vma = rp_image_vmas(c->task);
		for (uint32_t i = 0; c->open && i < c->task->nr_vmas; i++)
			if (vma[i].end - vma[i].start > size)
				size = vma[i].end - vma[i].start;
	}
	return make_memory(size);
}

/* One for all dead mappings of this task: it goes with what has leaked */
static int dead_memory(const struct rp_dead *dead)
{
	static int memory = -1;
	static pid_t owner;

	/* a child of CRIU's would have its parent's, if that came first */
	if (owner != getpid()) {
		memory = make_memory(rp_dead_size(dead));
		if (memory < 0)
			return -1;
		memory = move_high(dead->img->max_fd, memory);
		if (memory >= 0)
			owner = getpid();
	}
	return memory < 0 ? -1 : dup(memory);
}

/*
 * CRIU wants a file and an offset for a mapping and closes that file itself.
 * But when mappings of one device follow each other it maps all of them from
 * the file it got for the first, and the file we give for the second one leaks
 * (open_filemap() in files-reg.c). With one context in the task both files are
 * the same, and late.c closes what has leaked. With several contexts the wrong
 * one would be mapped, so the mappings get memory as a stand-in, which late.c
 * replaces by the rings. All dead mappings of a task are in one memory, where each
 * has a place of its own, so that any of its files will do.
 */
int rp_restore_vma(uint64_t start, uint64_t offset, uint64_t *new_offset,
		   int *fd)
{
	const struct rp_vma *vma;
	struct rp_context *c = find_vma(start, offset, &vma);
	const struct rp_dead *dead = NULL;

	if (!c)
		dead = rp_dead_find_vma(start, offset, new_offset);
	if (!c && !dead)
		return RP_NOT_OURS;
	if (dead) {
		*fd = dead_memory(dead);
	} else if (c->task->contexts > 1) {
		*fd = make_standin();
		*new_offset = 0;
	} else {
		/* files come before mappings: it is at its place */
		*fd = dup(c->task->fd);
		*new_offset = vma->offset;
	}
	if (*fd < 0) {
		rp_err("mapping at %#llx: %s", (unsigned long long)start,
		       strerror(errno));
		return -1;
	}
	*fd = move_high(c ? c->task->max_fd : dead->img->max_fd, *fd);
	return *fd < 0 ? -1 : 1;
}
